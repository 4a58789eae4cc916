//! Particles of XML Schema: the child elements that an element may have, their number and their order.
//!
//! Names are matched first, as an automaton over sets of positions, so that no pattern backtracks without end; the types of the
//! children are checked afterwards. XML Schema demands that equal names have equal types, so the order of the two does not
//! matter.

use std::collections::BTreeSet;

use crate::constraints::published::{self, PublishedType};
use crate::constraints::types::{Type, single_child_of_type};
use crate::constraints::view::View;
use crate::languages::{TermMeaning, meaning_in_language};
use crate::xml::ns::{self, XS};
use crate::xml::{DocumentCheck, Node, qualified_name, shorten_text_in_violation};

/// Most steps that matching the children of one element may take.
const STEPS_MAX: usize = 100_000;
/// Deepest nesting of particles in a template.
const NESTING_MAX: usize = 16;

/// A term with how often it occurs.
pub(crate) struct Particle {
    least: usize,
    most: Option<usize>,
    term: ParticleTerm,
    /// How many particles there are in it, itself counted.
    size: usize,
}

enum ParticleTerm {
    Element(Box<ParticleElement>),
    Sequence(Vec<Particle>),
    Choice(Vec<Particle>),
    All(Vec<Particle>),
    Any,
}

struct ParticleElement {
    /// None matches the namespace of the element that the constraint selects.
    namespace: Option<String>,
    local: String,
    /// What the name means, where it is one of a language of others.
    meaning: Option<TermMeaning>,
    content: ParticleContent,
}

enum ParticleContent {
    Anything,
    Simple(Type),
    Children(Box<Particle>),
    /// Of a published type, by its name.
    Published(String, fn(&mut DocumentCheck, Node<'_>)),
}

impl ParticleContent {
    /// The content of a type by its qualified name at an element.
    ///
    /// # Errors
    /// That it is not known.
    fn named(name: &str, scope: Node<'_>) -> Result<ParticleContent, String> {
        let (namespace, local) = published::resolve_published_name(name, scope).unwrap_or_default();
        match published::find_published_type(namespace, local) {
            Some(PublishedType::Content(read)) => Ok(ParticleContent::Published(
                shorten_text_in_violation(name).into_owned(),
                *read,
            )),
            _ if (namespace, local) == (XS, "anyType") => Ok(ParticleContent::Anything),
            _ => Type::named(name, scope).map(ParticleContent::Simple),
        }
    }
}

impl ParticleTerm {
    fn members(&self) -> &[Particle] {
        match self {
            ParticleTerm::Element(_) | ParticleTerm::Any => &[],
            ParticleTerm::Sequence(members) | ParticleTerm::Choice(members) | ParticleTerm::All(members) => {
                members
            }
        }
    }

    /// Whether it is one element, and a node is such.
    fn takes(&self, node: Node<'_>, namespace: &str) -> bool {
        match self {
            ParticleTerm::Element(element) => element.matches(node, namespace),
            term => matches!(term, ParticleTerm::Any),
        }
    }
}

impl Particle {
    /// Whether a node of a template is a particle.
    pub(crate) fn is_particle(node: Node<'_>) -> bool {
        node.namespace() == XS && matches!(node.local(), "all" | "choice" | "sequence" | "group")
    }

    /// Compiles `xs:all`, `xs:choice`, `xs:sequence`, `xs:group` or a member of them.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub(crate) fn read(node: Node<'_>, nesting: usize) -> Result<Particle, String> {
        if nesting > NESTING_MAX {
            return Err(format!("particles may be nested {NESTING_MAX} deep at most"));
        }
        let least = read_occurs_of_particle(node, "minOccurs")?.ok_or("minOccurs must be a number")?;
        let most = read_occurs_of_particle(node, "maxOccurs")?;
        if most.is_some_and(|most| most < least) {
            return Err("maxOccurs is less than minOccurs".to_owned());
        }
        let members = || -> Result<Vec<Particle>, String> {
            let children = node.children().filter(|child| !child.is(XS, "annotation"));
            children.map(|child| Particle::read(child, nesting + 1)).collect()
        };
        let term = match (node.namespace(), node.local()) {
            (XS, "sequence") => ParticleTerm::Sequence(members()?),
            (XS, "choice") => ParticleTerm::Choice(members()?),
            (XS, "all") => ParticleTerm::All(members()?),
            (XS, "group") if node.attribute("", "ref").is_none() => ParticleTerm::Sequence(members()?),
            (XS, "group") => return Err("a group that is defined elsewhere cannot be looked up".to_owned()),
            (XS, "any") => ParticleTerm::Any,
            (XS, "element") => ParticleTerm::Element(Box::new(ParticleElement::read(node, nesting)?)),
            _ => return Err(format!("{} is not known in a particle", node.name())),
        };
        let single =
            |member: &Particle| matches!(member.term, ParticleTerm::Element(_)) && member.most == Some(1);
        if let ParticleTerm::All(members) = &term
            && (!members.iter().all(single) || most != Some(1))
        {
            return Err("xs:all may only have elements that occur at most once".to_owned());
        }
        Ok(Particle {
            least,
            most,
            size: 1 + term.members().iter().map(|member| member.size).sum::<usize>(),
            term,
        })
    }

    /// Whether no child at all is enough.
    pub(crate) fn is_emptiable(&self) -> bool {
        self.least == 0
            || match &self.term {
                ParticleTerm::Element(_) | ParticleTerm::Any => false,
                ParticleTerm::Sequence(members) | ParticleTerm::All(members) => {
                    members.iter().all(Particle::is_emptiable)
                }
                ParticleTerm::Choice(members) => members.iter().any(Particle::is_emptiable),
            }
    }

    /// Checks the children of an element and reports each violation with the element at which it shows.
    ///
    /// # Errors
    /// Once it takes too long.
    pub(crate) fn check<'d>(
        &self,
        node: Node<'d>,
        view: &View<'_>,
        report: &mut impl FnMut(Node<'d>, String),
    ) -> Result<(), String> {
        let children: Vec<Node<'d>> = node.children().filter(|child| view.has(*child)).collect();
        let mut run = ParticleMatch {
            children: &children,
            namespace: node.namespace(),
            furthest: 0,
            steps: 0,
        };
        let ends = run.repeat(self, &BTreeSet::from([0]));
        view.charge(run.steps + children.len() * self.size)?;
        if run.steps > STEPS_MAX {
            report(
                node,
                "its content takes too long to compare with the constraint".to_owned(),
            );
            return Ok(());
        }
        if !ends.contains(&children.len()) {
            let place = children.get(run.furthest).copied().unwrap_or(node);
            let message = format!("{} is expected in {}", self.describe(), node.name());
            view.charge(message.len() / 64)?;
            report(place, message);
            return Ok(());
        }
        for child in children {
            if let Some(element) = self.find(child, node.namespace()) {
                element.check(child, view, report)?;
            }
        }
        Ok(())
    }

    /// The declaration of a child.
    fn find(&self, child: Node<'_>, namespace: &str) -> Option<&ParticleElement> {
        match &self.term {
            ParticleTerm::Element(element) => element.matches(child, namespace).then_some(&**element),
            term => term
                .members()
                .iter()
                .find_map(|member| member.find(child, namespace)),
        }
    }

    /// For people: `(StartTime, EndTime, Duration?)`.
    fn describe(&self) -> String {
        let join = |members: &[Particle], separator: &str| {
            let described: Vec<String> = members.iter().map(Particle::describe).collect();
            format!("({})", described.join(separator))
        };
        let term = match &self.term {
            ParticleTerm::Element(element) => {
                qualified_name(element.namespace.as_deref().unwrap_or_default(), &element.local)
            }
            ParticleTerm::Sequence(members) => join(members, ", "),
            ParticleTerm::Choice(members) => join(members, " or "),
            ParticleTerm::All(members) => join(members, " and "),
            ParticleTerm::Any => "any element".to_owned(),
        };
        match (self.least, self.most) {
            (1, Some(1)) => term,
            (0, Some(1)) => format!("{term}?"),
            (0, None) => format!("{term}*"),
            (1, None) => format!("{term}+"),
            (least, Some(most)) => format!("{term}{{{least},{most}}}"),
            (least, None) => format!("{term}{{{least},}}"),
        }
    }
}

/// Why a type that an element of XML Schema names or derives is not known. None where there is none, or it is known.
pub(super) fn unknown_type_of_particle(node: Node<'_>) -> Option<String> {
    let named = |attribute| node.attribute("", attribute).unwrap_or_default();
    let simple = |names: &str| {
        let mut names = names.split_ascii_whitespace();
        names.find_map(|name| Type::named(name, node).err())
    };
    let content = |names: &str| {
        let mut names = names.split_ascii_whitespace();
        names.find_map(|name| ParticleContent::named(name, node).err())
    };
    match (node.namespace(), node.local()) {
        (XS, "element") => content(named("type")),
        (XS, "complexContent" | "simpleContent") => Some(format!(
            "a type that is derived by {} is not supported; supported are xs:sequence, xs:choice and xs:all in it, and types by \
             their names",
            node.name()
        )),
        (XS, "restriction") => simple(named("base")),
        (XS, "list") => simple(named("itemType")),
        (XS, "union") => simple(named("memberTypes")),
        _ => None,
    }
}

/// `minOccurs` or `maxOccurs`; none is unbounded.
fn read_occurs_of_particle(node: Node<'_>, name: &str) -> Result<Option<usize>, String> {
    match node.attribute("", name).unwrap_or("1") {
        "unbounded" => Ok(None),
        number => match number.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("{name} must be a number or unbounded")),
        },
    }
}

impl ParticleElement {
    fn read(node: Node<'_>, nesting: usize) -> Result<ParticleElement, String> {
        let name = node.attribute("", "name").or_else(|| node.attribute("", "ref"));
        let name = name.ok_or("xs:element needs a name or a ref")?;
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let namespace = match prefix {
            "" => None,
            _ => node.resolve(prefix).or_else(|| ns::namespace_of_prefix(prefix)),
        };
        if namespace.is_none() && !prefix.is_empty() {
            return Err("the prefix of an element is not declared".to_owned());
        }
        let content = match node.attribute("", "type") {
            Some(name) => ParticleContent::named(name, node)?,
            None => match node.children().find(|child| !child.is(XS, "annotation")) {
                None => ParticleContent::Anything,
                Some(child) if child.is(XS, "simpleType") => ParticleContent::Simple(Type::read(child)?),
                Some(child) if child.is(XS, "complexType") => ParticleContent::Children(Box::new(
                    Particle::read(single_child_of_type(child)?, nesting + 1)?,
                )),
                Some(child) => return Err(format!("{} is not known in xs:element", child.name())),
            },
        };
        Ok(ParticleElement {
            namespace: namespace.map(str::to_owned),
            local: local.to_owned(),
            meaning: namespace.and_then(|namespace| meaning_in_language(namespace, Some(local))),
            content,
        })
    }

    fn matches(&self, node: Node<'_>, namespace: &str) -> bool {
        let is_meant = self.meaning == Some((node.namespace(), Some(node.local())));
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        is_meant || (node.local() == self.local && node.namespace() == namespace)
    }

    fn check<'d>(
        &self,
        node: Node<'d>,
        view: &View<'_>,
        report: &mut impl FnMut(Node<'d>, String),
    ) -> Result<(), String> {
        match &self.content {
            ParticleContent::Anything => {}
            ParticleContent::Simple(simple) => {
                let text = node.text();
                if let Some(child) = node.first_child() {
                    report(child, format!("{} may hold only a value", node.name()));
                } else if let Err(message) = simple.check_charged(&text, view)? {
                    report(node, message);
                }
            }
            ParticleContent::Children(particle) => particle.check(node, view, report)?,
            ParticleContent::Published(name, read) => {
                view.charge(node.descendants().len())?;
                let mut check = DocumentCheck::default();
                read(&mut check, node);
                if let Some(first) = check.into_violations().first() {
                    report(node, format!("the content of {name} is expected; {first}"));
                }
            }
        }
        Ok(())
    }
}

/// One match of children against particles: sets of positions that can be reached.
struct ParticleMatch<'r, 'd> {
    children: &'r [Node<'d>],
    namespace: &'d str,
    furthest: usize,
    steps: usize,
}

impl ParticleMatch<'_, '_> {
    /// Where a particle can end, from where it can start.
    fn repeat(&mut self, particle: &Particle, starts: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut ends = if particle.least == 0 {
            starts.clone()
        } else {
            BTreeSet::new()
        };
        let mut current = starts.clone();
        let mut round = 0;
        // More rounds than children cannot reach anything new, unless an empty round still counts.
        let rounds = particle
            .most
            .unwrap_or(usize::MAX)
            .min(self.children.len().max(1) + particle.least);
        while round < rounds && !current.is_empty() && self.steps <= STEPS_MAX {
            let next = self.once(&particle.term, &current);
            round += 1;
            if round >= particle.least {
                let before = ends.len();
                ends.extend(&next);
                if ends.len() == before && round > particle.least {
                    break;
                }
            }
            if next == current && round >= particle.least {
                break;
            }
            current = next;
        }
        ends
    }

    fn once(&mut self, term: &ParticleTerm, starts: &BTreeSet<usize>) -> BTreeSet<usize> {
        self.steps += starts.len().max(1);
        match term {
            ParticleTerm::Element(_) | ParticleTerm::Any => {
                let takes = |child: &Node<'_>| term.takes(*child, self.namespace);
                let fits = |start: &&usize| self.children.get(**start).is_some_and(takes);
                let ends: BTreeSet<usize> = starts.iter().filter(fits).map(|start| start + 1).collect();
                self.furthest = self.furthest.max(ends.last().copied().unwrap_or(0));
                ends
            }
            ParticleTerm::Sequence(members) => members
                .iter()
                .fold(starts.clone(), |starts, member| self.repeat(member, &starts)),
            ParticleTerm::Choice(members) => members
                .iter()
                .flat_map(|member| self.repeat(member, starts))
                .collect(),
            ParticleTerm::All(members) => starts
                .iter()
                .filter_map(|start| self.all(members, *start))
                .collect(),
        }
    }

    /// The members in any order, each at most once, as far as they reach.
    fn all(&mut self, members: &[Particle], start: usize) -> Option<usize> {
        let mut seen = vec![false; members.len()];
        let mut at = start;
        while let Some(child) = self.children.get(at) {
            self.steps += members.len();
            let takes = |member: &Particle| member.term.takes(*child, self.namespace);
            match members.iter().position(takes) {
                Some(index) if !seen[index] => seen[index] = true,
                _ => break,
            }
            at += 1;
        }
        self.furthest = self.furthest.max(at);
        let missing = members
            .iter()
            .zip(&seen)
            .any(|(member, seen)| member.least > 0 && !seen);
        (!missing).then_some(at)
    }
}
