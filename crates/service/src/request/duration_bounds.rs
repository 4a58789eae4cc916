//! The bounds of a template on the duration, for what is granted: also where an offer does not state a duration. It follows from a law
//! of scaling then, from a limit of the job, from a prediction, or from the template's default.

use std::cell::RefCell;
use std::collections::BTreeMap;

use scheduler::Seconds;
use wsag::agreements::AgreementOffer;
use wsag::terms::{ServiceDescription, Term, TermTree};
use wsag::{Document, ValuePlaces, ViolationKind};

use crate::templates::OfferedTemplate;

/// What a template demands of the duration of one way to read an offer, which keeps to the template otherwise.
pub(crate) struct DurationBounds<'a> {
    offer: AgreementOffer,
    offered: &'a OfferedTemplate,
    /// What was found out: for each duration the faults of an offer that states it.
    known: RefCell<BTreeMap<Seconds, Vec<String>>>,
}

impl<'a> DurationBounds<'a> {
    /// The bounds for an offer without an open choice that does not state its duration.
    pub(crate) fn of_silent(offer: AgreementOffer, offered: &'a OfferedTemplate) -> Self {
        Self {
            offer,
            offered,
            known: RefCell::default(),
        }
    }

    /// Why the template does not allow a duration, if so, in words.
    pub(crate) fn why_not(&self, duration: Seconds) -> Option<String> {
        let faults = self.faults(duration);
        let first = faults.first()?;
        // Where every duration has the same faults, no duration may be stated, and none is bounded.
        let others = [1, self.offered.defaults().duration, Seconds::from(i32::MAX)];
        let is_bound = others.into_iter().any(|other| self.faults(other) != faults);
        is_bound.then(|| first.clone())
    }

    /// The faults of the offer if it stated this duration.
    fn faults(&self, duration: Seconds) -> Vec<String> {
        if let Some(known) = self.known.borrow().get(&duration) {
            return known.clone();
        }
        let found = self.check_stated(i32::try_from(duration).unwrap_or(i32::MAX));
        self.known.borrow_mut().insert(duration, found.clone());
        found
    }

    fn check_stated(&self, duration: i32) -> Vec<String> {
        let mut stated = self.offer.clone();
        let all = stated.terms.all.get_or_insert_default();
        let mut is_stated = false;
        for tree in all.iter_mut() {
            is_stated |= state_duration(tree, duration);
        }
        let mut descriptions = self.offered.template.terms.descriptions();
        let of_time =
            |description: &ServiceDescription| matches!(description, ServiceDescription::AllocationTime(_));
        if !is_stated && let Some(found) = descriptions.find(|description| of_time(&description.content)) {
            let mut tree = TermTree::Term(Box::new(Term::ServiceDescription(found.clone())));
            state_duration(&mut tree, duration);
            all.push(tree);
        }
        let made = stated.make();
        let places = ValuePlaces::document("");
        // What cannot be written is refused elsewhere.
        let Ok(document) = Document::made(&made, &places) else {
            return Vec::new();
        };
        let violations = self.offered.compiled.check(&document).into_iter();
        violations
            .filter(|violation| violation.kind == ViolationKind::Constraint)
            .map(|violation| violation.message)
            .collect()
    }
}

/// Whether an offer states its duration, which is checked with its other terms then.
pub(crate) fn states_duration(offer: &AgreementOffer) -> bool {
    let states = |description: &ServiceDescription| match description {
        ServiceDescription::AllocationTime(time) => time.duration.is_some(),
        _ => false,
    };
    let mut descriptions = offer.terms.descriptions();
    descriptions.any(|description| states(&description.content))
}

/// States a duration in a tree of terms; whether it says when.
fn state_duration(tree: &mut TermTree, duration: i32) -> bool {
    match tree {
        TermTree::All(trees) | TermTree::ExactlyOne(trees) | TermTree::OneOrMore(trees) => {
            let mut is_stated = false;
            for tree in trees {
                is_stated |= state_duration(tree, duration);
            }
            is_stated
        }
        TermTree::Term(term) => match &mut **term {
            Term::ServiceDescription(description) => match &mut description.content {
                ServiceDescription::AllocationTime(time) => {
                    time.duration = Some(duration);
                    true
                }
                _ => false,
            },
            _ => false,
        },
    }
}
