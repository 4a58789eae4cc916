//! Which resources may take something. On some nothing new is promised, because they have not been checked yet or an operator has
//! frozen them; earlier promises there stay.

use domain::agreement::Agreement;
use domain::resources::Resource;

use crate::context::View;

/// Names the resources that are closed, in words; `None` where all are open.
pub(crate) fn ineligible_as_closed_in_words(view: View<'_>) -> Option<String> {
    let closed: Vec<&str> = view.schedules.closed().collect();
    (!closed.is_empty()).then(|| {
        format!(
            "nothing is promised on {} before it has been checked; no other resource takes what is asked for",
            closed.join(", ")
        )
    })
}

/// Names the frozen resources that would take something, in words; `None` where there are none.
pub(crate) fn ineligible_as_frozen_in_words(
    view: View<'_>,
    takes: impl Fn(&Resource) -> bool,
) -> Option<String> {
    let frozen = view.schedules.frozen().filter(|frozen| takes(frozen));
    let frozen: Vec<&str> = frozen.map(|frozen| frozen.name.as_str()).collect();
    (!frozen.is_empty()).then(|| {
        let is = if frozen.len() == 1 { "is" } else { "are" };
        format!(
            "{} {is} frozen by the operator, and no other resource takes what is asked for",
            frozen.join(", ")
        )
    })
}

/// Whether an agreement may go to a resource, or have another place there: the resource is in service and meets its filters.
/// Work that was lost is run again where its job of before can be stopped.
pub(crate) fn may_go_to_resource(view: View<'_>, at: usize, agreement: &Agreement) -> bool {
    let resource = view.schedules.get(at);
    resource.is_some_and(|there| there.may_have(agreement))
        && (agreement.restarts() == 0 || tells_old_job_is_gone(view, at, agreement))
}

/// Whether a resource can tell that nothing is left of a job on that of an agreement: it is the same, or both are this
/// machine.
fn tells_old_job_is_gone(view: View<'_>, at: usize, agreement: &Agreement) -> bool {
    let there = view
        .schedules
        .get(at)
        .map(|resource| resource.resource.name.as_str());
    there.is_some_and(|there| {
        there == agreement.resource
            || view.schedules.is_local(there) && view.schedules.is_local(&agreement.resource)
    })
}

#[cfg(test)]
mod tests {
    use domain::resources::{NodeReport, NodeState, Reporter, Resource};
    use scheduler::{Reason, Time};

    use crate::State;
    use crate::commands::OpenResource;
    use crate::error::Error;
    use crate::resources::repair;
    use crate::tests::harness::{Domain, proposal};

    fn closed(name: &str) -> Resource {
        Resource {
            closed: true,
            ..Resource::new(name, "slurm", 4)
        }
    }

    #[test]
    fn nothing_new_is_promised_on_a_closed_resource_and_an_open_one_stays_open_when_the_plan_is_read_anew() {
        let mut domain = Domain::new(vec![closed("cluster")]);
        let refusal = domain.place(proposal(2, 100, (0, 400))).unwrap_err();
        assert_eq!(refusal.reason, Reason::ResourceNotOffered);
        assert!(
            refusal.binding.contains("promised on cluster before"),
            "{refusal:?}"
        );
        assert_eq!(
            domain.decide(|decider| decider.decide(OpenResource {
                resource: "no-such".into()
            })),
            Err(Error::NotFound)
        );
        domain
            .decide(|decider| {
                decider.decide(OpenResource {
                    resource: "cluster".into(),
                })
            })
            .unwrap();
        let first = domain.place(proposal(2, 100, (0, 400))).unwrap().agreement;
        assert_eq!(first.resource, "cluster");

        let known = domain.known.values().cloned().collect();
        let mut rebuilt = State::rebuild(
            &domain.settings,
            &domain.settings.resources,
            known,
            Vec::new(),
            Time(0),
        )
        .unwrap();
        rebuilt.recall_reports(&domain.state, Time(0));
        domain.state = rebuilt;
        domain.place(proposal(2, 100, (0, 400))).unwrap();
        domain.check();
    }

    #[test]
    fn what_was_promised_is_kept_on_a_closed_resource_where_its_own_nodes_fail() {
        let mut domain = Domain::new(vec![Resource::new("local", "local", 4), closed("cluster")]);
        let promised = domain.place(proposal(4, 100, (100, 200))).unwrap().agreement;
        assert_eq!(promised.resource, "local");
        assert!(domain.place(proposal(4, 100, (100, 200))).is_err());
        let report = NodeReport {
            states: vec![NodeState::Drained; 4],
            ..NodeReport::default()
        };
        let repaired =
            domain.decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &report));
        assert_eq!(repaired.unwrap().moved, 1);
        assert_eq!(domain.of(promised.id).resource, "cluster");
        domain.check();
    }
}
