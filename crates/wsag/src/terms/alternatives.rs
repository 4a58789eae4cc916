//! The alternatives of a choice between terms (GFD.192, section 4.2.2): each way in which the compositors of an offer can hold.

use serde::{Deserialize, Serialize};

use super::{ServiceDescription, Term, TermTree, Terms, term_nodes_of_document};
use crate::xml::datatypes::parse_positive_integer;
use crate::xml::{Document, UnchosenTerms, element};

/// The most ways to read an offer. More are no choice that a requester means, and the product of many choices is large.
pub const ALTERNATIVES_MAX: usize = 32;

/// One way in which the terms of an offer can hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Alternative<'t> {
    /// The terms that hold, in document order.
    pub terms: Vec<&'t Term>,
    /// The choices that were made, in document order.
    pub choices: Vec<CompositorChoice>,
}

element! {
    /// The member that was chosen of a compositor with several: `bsp:Choice`, in the answer to the offer.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct CompositorChoice {
        /// Path of the compositor.
        pub path: String = "bsp:Path",
        /// Which of its members hold, counted from 1.
        pub members: Vec<u32> = "bsp:Member" by parse_positive_integer,
    }
}

impl Terms {
    /// Every way in which the terms can hold, the requester's first choice first: members of an `ExactlyOne` in their
    /// order; of a `OneOrMore` all together, where they can stand together, and then each alone. None where there are
    /// more than [`ALTERNATIVES_MAX`].
    pub fn alternatives(&self) -> Option<Vec<Alternative<'_>>> {
        let Some(members) = &self.all else {
            return Some(vec![Alternative::default()]);
        };
        alternatives_of_all(members, "/wsag:Terms/wsag:All")
    }
}

impl<'t> Alternative<'t> {
    /// The terms of the first offer in a document that this one of so many ways leaves out. `terms` are those of this offer, as they
    /// were read.
    pub fn left_out(&self, terms: &Terms, document: &Document<'_>, ways: usize) -> UnchosenTerms {
        let terms = terms.flatten().into_iter();
        let others = terms.zip(term_nodes_of_document(document)).filter(|(term, _)| {
            let mut chosen = self.terms.iter();
            !chosen.any(|chosen| std::ptr::eq(*chosen, *term))
        });
        UnchosenTerms::of(others.map(|(_, node)| node), ways)
    }

    /// The terms of both ways together.
    fn with(&self, other: &Self) -> Self {
        Self {
            terms: [self.terms.as_slice(), &other.terms].concat(),
            choices: [self.choices.as_slice(), &other.choices].concat(),
        }
    }

    fn chosen(mut self, path: &str, members: Vec<u32>) -> Self {
        let path = path.to_owned();
        self.choices.insert(0, CompositorChoice { path, members });
        self
    }

    /// Whether no two of its terms describe the same of a service.
    fn is_consistent(&self) -> bool {
        let kinds = |term: &&&'t Term| match term {
            Term::ServiceDescription(description) => match description.content {
                ServiceDescription::JobDefinition(_) => Some(0),
                ServiceDescription::AllocationTime(_) => Some(1),
                ServiceDescription::Scheduling(_) => Some(2),
                ServiceDescription::Other(_) => None,
            },
            _ => None,
        };
        let mut seen: Vec<_> = self.terms.iter().filter_map(|term| kinds(&term)).collect();
        seen.sort_unstable();
        seen.windows(2).all(|pair| pair[0] != pair[1])
    }
}

/// Every way in which all members hold. The guard bounds the depth of this recursion.
fn alternatives_of_all<'t>(members: &'t [TermTree], path: &str) -> Option<Vec<Alternative<'t>>> {
    let mut found = vec![Alternative::default()];
    for (index, member) in members.iter().enumerate() {
        let more = alternatives_of_tree(member, &path_of_compositor(members, index, path))?;
        if found.len() * more.len() > ALTERNATIVES_MAX {
            return None;
        }
        found = found
            .iter()
            .flat_map(|way| more.iter().map(|next| way.with(next)))
            .collect();
    }
    Some(found)
}

fn alternatives_of_tree<'t>(tree: &'t TermTree, path: &str) -> Option<Vec<Alternative<'t>>> {
    match tree {
        TermTree::Term(term) => Some(vec![Alternative {
            terms: vec![term],
            choices: Vec::new(),
        }]),
        TermTree::All(members) => alternatives_of_all(members, path),
        // There is nothing to choose.
        TermTree::ExactlyOne(members) | TermTree::OneOrMore(members) if members.len() == 1 => {
            alternatives_of_all(members, path)
        }
        TermTree::ExactlyOne(members) => alternatives_of_one(members, path),
        TermTree::OneOrMore(members) => {
            let numbers: Vec<u32> = (1..).take(members.len()).collect();
            let mut found: Vec<_> = alternatives_of_all(members, path)?
                .into_iter()
                .filter(Alternative::is_consistent)
                .map(|all| all.chosen(path, numbers.clone()))
                .collect();
            found.extend(alternatives_of_one(members, path)?);
            (found.len() <= ALTERNATIVES_MAX).then_some(found)
        }
    }
}

/// Every way in which one of the members holds.
fn alternatives_of_one<'t>(members: &'t [TermTree], path: &str) -> Option<Vec<Alternative<'t>>> {
    let mut found = Vec::new();
    for ((index, member), number) in members.iter().enumerate().zip(1..) {
        let ways = alternatives_of_tree(member, &path_of_compositor(members, index, path))?;
        found.extend(ways.into_iter().map(|way| way.chosen(path, vec![number])));
        if found.len() > ALTERNATIVES_MAX {
            return None;
        }
    }
    Some(found)
}

/// The path of a compositor among its siblings, with its position where there are several of its kind.
fn path_of_compositor(siblings: &[TermTree], index: usize, parent: &str) -> String {
    let name = |tree: &TermTree| match tree {
        TermTree::All(_) => "wsag:All",
        TermTree::ExactlyOne(_) => "wsag:ExactlyOne",
        TermTree::OneOrMore(_) => "wsag:OneOrMore",
        TermTree::Term(_) => "",
    };
    let own = name(&siblings[index]);
    let alike = |trees: &[TermTree]| trees.iter().filter(|tree| name(tree) == own).count();
    if alike(siblings) == 1 {
        return format!("{parent}/{own}");
    }
    format!("{parent}/{own}[{}]", alike(&siblings[..=index]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::EndpointReference;
    use crate::scheduling::AllocationTimeConstraint;
    use crate::terms::{ServiceDescriptionTerm, ServiceReference};

    fn reference(name: &str) -> TermTree {
        TermTree::Term(Box::new(Term::ServiceReference(ServiceReference {
            name: name.to_owned(),
            service_name: "S".to_owned(),
            reference: EndpointReference::new("urn:x"),
        })))
    }

    fn time(name: &str) -> TermTree {
        TermTree::Term(Box::new(Term::ServiceDescription(ServiceDescriptionTerm {
            name: name.to_owned(),
            service_name: "S".to_owned(),
            content: ServiceDescription::AllocationTime(AllocationTimeConstraint::default()),
            is_wsag4j: false,
        })))
    }

    /// The names of the terms of each alternative.
    fn names(all: Vec<TermTree>) -> Option<Vec<String>> {
        let terms = Terms { all: Some(all) };
        let found = terms.alternatives()?;
        let join = |way: &Alternative<'_>| way.terms.iter().map(|term| term.name()).collect::<String>();
        Some(found.iter().map(join).collect())
    }

    #[test]
    fn choices_multiply_and_come_in_the_order_of_the_document() {
        let tree = vec![
            reference("a"),
            TermTree::ExactlyOne(vec![
                reference("b"),
                TermTree::All(vec![reference("c"), reference("d")]),
            ]),
            TermTree::ExactlyOne(vec![reference("e"), reference("f")]),
        ];
        assert_eq!(names(tree.clone()).unwrap(), ["abe", "abf", "acde", "acdf"]);
        let terms = Terms { all: Some(tree) };
        let last = terms.alternatives().unwrap().pop().unwrap();
        let choice = |path: &str| CompositorChoice {
            path: path.to_owned(),
            members: vec![2],
        };
        assert_eq!(
            last.choices,
            [
                choice("/wsag:Terms/wsag:All/wsag:ExactlyOne[1]"),
                choice("/wsag:Terms/wsag:All/wsag:ExactlyOne[2]"),
            ]
        );
    }

    #[test]
    fn one_or_more_are_all_where_they_can_stand_together_and_each_alone() {
        let more = |members| vec![TermTree::OneOrMore(members)];
        assert_eq!(
            names(more(vec![reference("a"), reference("b")])).unwrap(),
            ["ab", "a", "b"]
        );
        assert_eq!(names(more(vec![time("a"), time("b")])).unwrap(), ["a", "b"]);
        assert_eq!(names(more(vec![time("a")])).unwrap(), ["a"]);
        assert_eq!(names(Vec::new()).unwrap(), [""]);
    }

    #[test]
    fn too_many_ways_are_refused_before_they_are_counted() {
        let choice = TermTree::ExactlyOne(vec![reference("a"), reference("b")]);
        assert_eq!(names(vec![choice.clone(); 5]).unwrap().len(), ALTERNATIVES_MAX);
        assert_eq!(names(vec![choice.clone(); 6]), None);
        assert_eq!(names(vec![choice; 500]), None);
        let nested = TermTree::ExactlyOne(vec![TermTree::ExactlyOne(vec![reference("a"); 20]); 20]);
        assert_eq!(names(vec![nested]), None);
    }
}
