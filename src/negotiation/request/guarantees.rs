//! The guarantees of an offer.

use wsag::guarantees::Obligated;
use wsag::terms::{Term, TermTree};
use wsag::{Violation, ViolationKind, ns};

use super::offer::Check;
use super::worth::values;
use crate::agreement::{Guarantee, GuaranteeState};
use crate::negotiation::error::wrong;

impl Check<'_> {
    /// The offer's guarantees: the ones of the template, unchanged.
    pub(in crate::negotiation) fn guarantees(&mut self) -> Vec<Guarantee> {
        let offer = self.offer;
        let mut guarantees = Vec::new();
        let mut place = 0;
        for term in offer.terms.flatten() {
            let Term::Guarantee(guarantee) = term else {
                continue;
            };
            let nth = place;
            place += 1;
            if !self.is_chosen(term) {
                continue;
            }
            let term = guarantee;
            if guarantees.iter().any(|one: &Guarantee| one.name == term.name) {
                let message = format!("the guarantee {:?} is given once", term.name);
                self.violation(ns::WSAG, "GuaranteeTerm", nth, message);
                continue;
            }
            let mut known = self.offered.template.terms.guarantees();
            match known.find(|known| known.name == term.name) {
                None => {
                    let message = format!("the template has no guarantee named {:?}", term.name);
                    self.violation(ns::WSAG, "GuaranteeTerm", nth, message);
                }
                Some(known) if known != term => {
                    let message = format!(
                        "the guarantee {:?} is offered as it stands in the template only",
                        term.name
                    );
                    self.violation(ns::WSAG, "GuaranteeTerm", nth, message);
                }
                Some(_) => match values(term, self.negotiation.templates.currency) {
                    Err(why) => {
                        let path = self.document.path_to(ns::WSAG, "GuaranteeTerm", nth);
                        self.found.push(Violation {
                            kind: ViolationKind::NotEvaluable,
                            ..wrong(path, format!("its value cannot be evaluated: {why}"))
                        });
                    }
                    Ok(values) => guarantees.push(Guarantee {
                        name: term.name.clone(),
                        objective: term.objective.level.text.trim().to_owned(),
                        qualifying_condition: term
                            .qualifying_condition
                            .as_ref()
                            .map(|of| of.text.trim().to_owned()),
                        state: GuaranteeState::NotDetermined,
                        evidence: None,
                        values,
                    }),
                },
            }
        }
        self.obligations(&guarantees);
        guarantees
    }

    /// Whether the requester has taken over its obligations in the template. A guarantee that the provider owes may be left
    /// out; one that the requester owes may not. A guarantee inside a choice of the template is one that may be left out.
    fn obligations(&mut self, taken: &[Guarantee]) {
        let mut owed = Vec::new();
        let mut members: Vec<&TermTree> = self.offered.template.terms.all.iter().flatten().collect();
        while let Some(member) = members.pop() {
            match member {
                TermTree::All(all) => members.extend(all),
                TermTree::ExactlyOne(_) | TermTree::OneOrMore(_) => {}
                TermTree::Term(term) => match &**term {
                    Term::Guarantee(term) if term.obligated == Obligated::ServiceConsumer => {
                        owed.push(term);
                    }
                    _ => {}
                },
            }
        }
        for term in owed
            .into_iter()
            .filter(|term| taken.iter().all(|one| one.name != term.name))
        {
            let message = format!(
                "the guarantee {:?} is expected: it is the requester's, and part of every offer from this template",
                term.name
            );
            self.violation(ns::WSAG, "Terms", 0, message);
        }
    }
}
