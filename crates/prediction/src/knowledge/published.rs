//! Paper 004's estimate as it is printed, from what is known of executions: for people, and where it decides.

use scheduler::prediction::estimate::rt;
use scheduler::prediction::{BlendedHistory, Estimate, Evidence};
use scheduler::{Interval, Rate, Seconds};

use super::{GivenDurations, Knowledge};
use crate::machines::{MachineCondition, MachineConditions};
use crate::work::{Work, WorkLength};

impl Knowledge {
    /// Paper 004's estimate for work in a gap.
    pub(crate) fn estimate(
        &self,
        work: &Work,
        gap: Interval,
        given: GivenDurations,
        conditions: Option<&MachineConditions>,
    ) -> Estimate {
        let executions = self.executions(work);
        let outcomes = work.resource.and_then(|resource| self.estimated.get(resource));
        let [input_bytes, output_bytes] = self.bytes(work);
        let smoothing = |function: fn(&MachineConditions) -> Option<&MachineCondition>| {
            Some(&conditions.and_then(function)?.smoothing)
        };
        Estimate::over(
            gap,
            &Evidence {
                requested: given.requested,
                default: given.default,
                free_cpu: smoothing(|each| each.free_cpu.as_ref()),
                input_bytes,
                output_bytes,
                bandwidth_in: smoothing(|each| each.bandwidth_in.as_ref()),
                bandwidth_out: smoothing(|each| each.bandwidth_out.as_ref()),
                outcomes: outcomes.map_or(&[][..], Vec::as_slice),
                ..executions.evidence(self.rate(work.resource))
            },
        )
    }

    /// The executions of an application on the resource of its work; those elsewhere only where there is none: they are looked at for
    /// each of many executions.
    fn executions(&self, work: &Work) -> Executions {
        let lengths = self.lengths.get(work.application).map_or(&[][..], Vec::as_slice);
        let own = lengths
            .iter()
            .filter(|(resource, _)| work.resource == Some(resource));
        let (here, stopped_here) = part_stopped_executions(own.map(|(_, length)| (*length, length.seconds)));
        let known_here = !(here.is_empty() && stopped_here.is_empty());
        let others = if known_here { &[][..] } else { lengths };
        let rated = others
            .iter()
            .map(|(resource, length)| (*length, (length.seconds, self.rate(Some(resource)))));
        let (anywhere, stopped_anywhere) = part_stopped_executions(rated);
        Executions {
            here,
            stopped_here,
            anywhere,
            stopped_anywhere,
        }
    }

    /// The mean of algorithm 1 for work on its resource, before load, transfers and trust; none without any execution of the
    /// application.
    pub(super) fn published_mean(&self, work: &Work) -> Option<BlendedHistory> {
        let executions = self.executions(work);
        let runs = [
            executions.here.len() + executions.stopped_here.len(),
            executions.anywhere.len() + executions.stopped_anywhere.len(),
        ];
        let (_, seconds) = executions.evidence(self.rate(work.resource)).executed()?;
        Some(BlendedHistory::of_mean(seconds, runs.into_iter().max()?))
    }

    /// Paper 004's estimate for work in a gap on its resource, as it is made now; none without any execution of its application.
    pub fn published_estimate(&self, work: &Work, gap: Interval) -> Option<Seconds> {
        self.lengths.get(work.application)?;
        let conditions = work.resource.and_then(|name| self.conditions.get(name));
        let estimate = self.estimate(work, gap, GivenDurations::default(), conditions);
        Some(estimate.completion)
    }

    /// RT of a resource by the paper's estimates as they were made (equation 1), in seconds; none without any.
    pub(super) fn published_rt(&self, resource: &str) -> Option<f64> {
        rt(self.estimated.get(resource)?)
    }
}

/// Executions of an application, in seconds: on a resource, or else anywhere with the rates of their resources.
struct Executions {
    here: Vec<Seconds>,
    stopped_here: Vec<Seconds>,
    anywhere: Vec<(Seconds, Rate)>,
    stopped_anywhere: Vec<(Seconds, Rate)>,
}

impl Executions {
    /// They alone, for a resource of this rate.
    fn evidence(&self, rate: Rate) -> Evidence<'_> {
        Evidence {
            here: &self.here,
            stopped_here: &self.stopped_here,
            anywhere: &self.anywhere,
            stopped_anywhere: &self.stopped_anywhere,
            rate,
            ..Evidence::default()
        }
    }
}

/// The lengths of executions, and apart from them those of the stopped ones.
fn part_stopped_executions<T>(lengths: impl Iterator<Item = (WorkLength, T)>) -> (Vec<T>, Vec<T>) {
    let (mut whole, mut stopped) = (Vec::new(), Vec::new());
    for (length, what) in lengths {
        if length.stopped {
            stopped.push(what);
        } else {
            whole.push(what);
        }
    }
    (whole, stopped)
}
