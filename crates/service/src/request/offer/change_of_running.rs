//! The parts that cannot change any more in an agreement with a slot that has begun.

use domain::agreement::{Agreement, Filter, Job, Shape};
use domain::resources::Scaling;
use planner::Request;
use scheduler::counted;
use wsag::ns;

use super::OfferCheck;
use crate::views::money_and_time::second_as_date_time;

/// Checks a request that is to replace an agreement in progress: the parts that cannot change any more must be
/// equal.
pub(super) fn check_change_of_running(
    check: &mut OfferCheck<'_>,
    begun: &Agreement,
    request: Option<&mut Request>,
    job: Option<&Job>,
    filters: &[Filter],
) {
    if let Some((asked, runs)) = job.zip(begun.job.as_ref())
        && (&asked.application, &asked.version) == (&runs.application, &runs.version)
    {
        let pairs = asked.arguments.iter().zip(&runs.arguments);
        if let Some(at) = pairs.into_iter().position(|(asked, runs)| asked != runs) {
            let message = format!("{:?} is expected: the job has begun with it", runs.arguments[at]);
            check.violation(ns::JSDL_POSIX, "Argument", at, message);
        }
        if asked.staging != runs.staging {
            let message = "the files that are moved for a job can change until its slot begins only";
            check.violation(ns::JSDL, "DataStaging", 0, message);
        }
    } else if job != begun.job.as_ref() {
        let what = match &begun.job {
            Some(runs) => format!("{} is expected: it has begun", runs.application),
            None => "no application is expected: the slot has begun without one".to_owned(),
        };
        check.violation(ns::JSDL, "Application", 0, what);
    }
    if filters != begun.constraints.filters {
        let message = "what is asked of the nodes can change until the slot begins only";
        check.violation(ns::JSDL, "Resources", 0, message);
    }
    let Some(request) = request else { return };
    let start = begun.placement().start;
    request.shapes.retain(|shape| shape.nodes == begun.nodes());
    if request.shapes.is_empty() {
        let message = format!(
            "{} is expected: the slot has begun on so many nodes",
            begun.nodes()
        );
        check.violation(ns::JSDL, "TotalResourceCount", 0, message);
    }
    if request.ready.is_some_and(|ready| ready > start) {
        let start = second_as_date_time(start);
        let message = format!("{start} or earlier is expected: the slot has begun then");
        check.violation(ns::ARP, "StartTime", 0, message);
    }
    // Its last slot ends so much later or earlier.
    let ends = |shape: &Shape| begun.placement().end + (shape.duration - begun.planned_seconds());
    let over = request.shapes.iter().any(|shape| ends(shape) <= check.now);
    if over && request.scaling == Scaling::Contract {
        let message = format!(
            "a duration above {} is expected: the slot has begun so long ago",
            counted(
                check.now - (begun.placement().end - begun.planned_seconds()),
                "second"
            )
        );
        check.violation(ns::ARP, "Duration", 0, message);
    }
}
