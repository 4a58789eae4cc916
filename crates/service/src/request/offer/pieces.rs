//! How an offer lets its work be cut: `bsp:Preemption` as the planner has it, where its application can be stopped and go on.

use domain::agreement::{Job, Shape};
use domain::catalogue::Catalogue;
use planner::Request;
use scheduler::counted;
use scheduler::moldable::WHOLE_PPM;
use scheduler::preemptive::{PARTS_MAX, Preemption};
use wsag::ns;
use wsag::scheduling::Scheduling;

use super::OfferCheck;
use crate::request::sizes::count;

/// Searches of one resource's plan for the pieces of one offer; all commands wait meanwhile.
const SEARCHES_MAX: u64 = 10_000;

impl OfferCheck<'_> {
    /// How its work may be cut, where it may.
    pub(super) fn preemption_in_pieces(
        &mut self,
        job: Option<&Job>,
        request: Option<&Request>,
    ) -> Option<Preemption> {
        let (scheduling, request) = self.scheduling.zip(request)?;
        let found = preemption_of_work(scheduling, job, &request.shapes, &self.service.catalogue());
        found.unwrap_or_else(|message| {
            self.violation(ns::BSP, "Preemption", 0, message);
            None
        })
    }
}

/// How work may be cut that takes so long on each of its sizes; `None` where it may not.
///
/// # Errors
/// A sentence that says why it cannot be cut as it is asked for.
fn preemption_of_work(
    scheduling: &Scheduling,
    job: Option<&Job>,
    shapes: &[Shape],
    catalogue: &Catalogue,
) -> Result<Option<Preemption>, String> {
    let Some(asked) = scheduling.preemption.filter(|asked| asked.pieces > 1) else {
        return Ok(None);
    };
    let Some(job) = job else {
        return Err("an application is expected: nodes alone have no work that can be cut".to_owned());
    };
    let application = catalogue.find(&job.application, job.version.as_deref());
    let Some(checkpoint) = application.and_then(|application| application.checkpoint.as_ref()) else {
        let able: Vec<_> = catalogue
            .applications()
            .iter()
            .filter(|application| application.checkpoint.is_some())
            .map(|application| application.name.as_str())
            .collect();
        let others = match able.as_slice() {
            [] => "none of the catalogue does".to_owned(),
            able => format!("these do: {}", able.join(", ")),
        };
        return Err(format!(
            "the application {} does not save its work to go on later, so that it cannot be cut; {others}",
            job.application
        ));
    };
    let interval = millionths(asked.interval);
    let preemption = Preemption::new(asked.pieces, interval, asked.independent)
        .ok_or_else(|| format!("an interval of 1/{PARTS_MAX} to 1 is expected"))?
        .whole_for(shapes.len());
    if preemption.searches_max(1) > SEARCHES_MAX {
        return Err(format!(
            "{} at any of {} can be chosen in too many ways: fewer pieces or a longer interval are expected",
            counted(asked.pieces, "piece"),
            counted(preemption.parts() - 1, "cut")
        ));
    }
    let shortest = shapes.iter().map(|shape| shape.duration).min().unwrap_or(0);
    let part = shortest.saturating_mul(interval.into()) / i64::from(WHOLE_PPM);
    let least = i64::from(checkpoint.grace) + 1;
    if part < least {
        return Err(format!(
            "a part of the work takes {} and {} needs {} to save it: parts of at least {least} are expected",
            counted(part, "second"),
            job.application,
            checkpoint.grace
        ));
    }
    Ok(Some(preemption))
}

/// A share in millionths, rounded up, except for the error of floating point.
fn millionths(share: f64) -> u32 {
    count((share * 1e6 - 1e-6).ceil().max(1.0))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use domain::catalogue::{Application, Checkpoint, CheckpointSignal};
    use scheduler::Seconds;

    use super::*;

    fn application(name: &str, grace: Option<u32>) -> Application {
        Application {
            name: name.into(),
            version: None,
            description: String::new(),
            program: PathBuf::from("/bin/true"),
            arguments: Vec::new(),
            limits: domain::catalogue::JobLimits::default(),
            checkpoint: grace.map(|grace| Checkpoint {
                signal: CheckpointSignal::Term,
                grace,
                resume: Vec::new(),
            }),
            isolation: None,
        }
    }

    fn asked(pieces: u32, interval: f64) -> Scheduling {
        Scheduling {
            preemption: Some(wsag::scheduling::Preemption {
                pieces,
                interval,
                independent: false,
            }),
            ..Scheduling::default()
        }
    }

    fn found(scheduling: &Scheduling, name: Option<&str>, duration: Seconds) -> Result<Option<u32>, String> {
        let catalogue = Catalogue::new(vec![application("count", Some(5)), application("sleep", None)]);
        let job = name.map(|name| Job {
            application: name.into(),
            arguments: Vec::new(),
            ..Job::default()
        });
        let shapes = [(1, 2 * duration), (2, duration)].map(|(nodes, duration)| Shape { nodes, duration });
        let found = preemption_of_work(scheduling, job.as_ref(), &shapes, &catalogue.unwrap());
        found.map(|preemption| preemption.map(|preemption| preemption.parts()))
    }

    #[test]
    fn work_is_cut_where_its_application_says_how_it_saves_it() {
        assert_eq!(found(&asked(3, 0.25), Some("count"), 60), Ok(Some(4)));
        assert_eq!(found(&asked(3, 1.0 / 3.0), Some("count"), 60), Ok(Some(3)));
        assert_eq!(found(&asked(1, 0.25), Some("sleep"), 60), Ok(None), "not at all");
        assert_eq!(found(&Scheduling::default(), None, 60), Ok(None));
    }

    #[test]
    fn why_it_cannot_be_cut_is_said() {
        for (scheduling, name, duration, said) in [
            (asked(3, 0.25), Some("sleep"), 60, "these do: count"),
            (asked(3, 0.25), None, 60, "an application is expected"),
            (asked(3, 0.25), Some("count"), 23, "parts of at least 6"),
            (asked(3, 0.001), Some("count"), 60, "1/100 to 1"),
            (asked(50, 0.01), Some("count"), 6_000, "too many ways"),
        ] {
            let message = found(&scheduling, name, duration).unwrap_err();
            assert!(message.contains(said), "{message}");
        }
    }
}
