//! The guarantees of an offer.

use domain::agreement::{Guarantee, GuaranteeState};
use wsag::expression::Expression;
use wsag::guarantees::{GuaranteeTerm, Obligated};
use wsag::terms::{Term, TermTree, path_of_term};
use wsag::{Violation, ViolationKind, ns};

use super::guarantee_values::values_of_guarantee;
use super::offer::OfferCheck;

impl OfferCheck<'_> {
    /// The offer's guarantees: the ones of the template, unchanged.
    pub(crate) fn guarantees(&mut self) -> Vec<Guarantee> {
        let offer = self.offer;
        let mut taken = Vec::new();
        for (nth, term) in offer.terms.flatten().into_iter().enumerate() {
            let Term::Guarantee(guarantee) = term else {
                continue;
            };
            if !self.is_chosen(term) {
                continue;
            }
            match self.guarantee(guarantee, &taken) {
                Ok(guarantee) => taken.push(guarantee),
                Err((kind, message)) => {
                    let path = path_of_term(self.document, nth);
                    self.found.push(Violation { path, kind, message });
                }
            }
        }
        self.obligations(&taken);
        taken
    }

    /// A guarantee of the offer beside those that were taken before, or its fault.
    fn guarantee(
        &self,
        term: &GuaranteeTerm,
        taken: &[Guarantee],
    ) -> Result<Guarantee, (ViolationKind, String)> {
        let name = &term.name;
        let wrong = |message| Err((ViolationKind::Value, message));
        if taken.iter().any(|one| one.name == *name) {
            return wrong(format!("the guarantee {name:?} is given once"));
        }
        let mut known = self.offered.template.terms.guarantees();
        match known.find(|known| known.name == *name) {
            None => return wrong(format!("the template has no guarantee named {name:?}")),
            Some(known) if !known.compares_equal_to(term) => {
                let message = format!("the guarantee {name:?} is offered as it stands in the template only");
                return wrong(message);
            }
            Some(_) => {}
        }
        let unreadable = |why| {
            (
                ViolationKind::NotEvaluable,
                format!("its value cannot be evaluated: {why}"),
            )
        };
        let values = values_of_guarantee(term, self.service.templates.currency()).map_err(unreadable)?;
        let bound = |expression: &Expression| {
            let bound = self
                .offered
                .compiled
                .bound(expression.text.trim(), self.document, &self.left_out);
            bound.map_err(|why| (ViolationKind::NotEvaluable, why))
        };
        Ok(Guarantee {
            name: name.clone(),
            objective: bound(&term.objective.level)?,
            qualifying_condition: term.qualifying_condition.as_ref().map(bound).transpose()?,
            state: GuaranteeState::NotDetermined,
            evidence: None,
            values,
        })
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
