//! Whether the statements about run times were true, in words and numbers for people.

use prediction::Knowledge;
use scheduler::prediction::reliability::{INTERVALS, LEVELS};
use scheduler::prediction::{Part, Reliability};

use crate::Service;

/// A cell of something that is not known.
const NOTHING: &str = "–";

/// A part of all cases that a person would call much.
const MUCH: f64 = 0.05;

/// The comparison of statements with outcomes, for each combination of the parts of an estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReliabilityView {
    /// Executions of which something had been stated.
    pub outcomes: usize,
    /// How often the widest interval held, in a plain sentence.
    pub summary: String,
    /// The parts that decide, in words; none where estimates decide nothing.
    pub decides: Option<String>,
    /// The combinations of parts.
    pub ladders: Vec<String>,
    /// The intervals, the widest first, then the quantiles.
    pub statements: Vec<StatementView>,
    /// The mean pinball loss of each combination, in seconds: least for statements that are true and sharp.
    pub mean_losses: Vec<String>,
    /// How much each part counts, by resource.
    pub weights: Vec<WeightsView>,
}

/// A statement about run times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementView {
    /// The stated value.
    pub statement: String,
    /// What it says of run times, in plain words.
    pub meaning: String,
    /// In how many of a hundred cases it was so, by each combination of parts.
    pub held: Vec<String>,
    /// Their mean pinball losses in seconds; none of an interval.
    pub losses: Vec<String>,
}

/// The weights of the parts of an estimate on a resource, from 0 to 1, and what the trust in it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsView {
    /// Which.
    pub resource: String,
    /// In the order of [`Part::ALL`]; "–" of a part that no outcome has told anything about.
    pub weights: Vec<String>,
    /// RT in seconds.
    pub trust: String,
    /// The share of its last runs that it lost, in percent.
    pub lost: String,
}

impl ReliabilityView {
    /// The names of the parts, in the order in which their weights stand.
    pub fn parts() -> [&'static str; Part::ALL.len()] {
        Part::ALL.map(Part::word)
    }

    /// The same in words for people.
    pub fn plain_parts() -> [&'static str; Part::ALL.len()] {
        Part::ALL.map(|part| match part {
            Part::Load => "Load of the processors",
            Part::Trust => "How far estimates were off",
            Part::Transfers => "Transfers of files",
            Part::Queue => "Wait for the start",
        })
    }

    /// The view of the kept statements; none before the first outcome.
    pub fn of(known: &Knowledge) -> Option<Self> {
        let (ladders, kept): (Vec<_>, Vec<_>) = known.reliabilities().unzip();
        let outcomes = known.reliability().outcomes();
        if outcomes == 0 {
            return None;
        }
        let percent = |part: f64| format!("{:.1}", 100.0 * part);
        let intervals = (0..INTERVALS).map(|at| {
            let held = |reliability: &&Reliability| percent(reliability.intervals()[at].1);
            let stated = LEVELS[LEVELS.len() - 1 - at] - LEVELS[at];
            StatementView {
                statement: format!("{:.0} % interval", 100.0 * stated),
                meaning: format!("{:.0} % of the runs take a time in this range", 100.0 * stated),
                held: kept.iter().map(held).collect(),
                losses: vec![NOTHING.to_owned(); kept.len()],
            }
        });
        let quantiles = LEVELS.iter().enumerate().map(|(at, p)| StatementView {
            statement: format!("{:.0} % quantile", 100.0 * p),
            meaning: format!("{:.0} % of the runs take no longer than this", 100.0 * p),
            held: kept.iter().map(|kept| percent(kept.levels()[at].1)).collect(),
            losses: kept
                .iter()
                .map(|kept| format!("{:.1}", kept.levels()[at].2))
                .collect(),
        });
        let weights = known.weights().map(|weights| WeightsView {
            resource: weights.resource.to_owned(),
            weights: weights
                .weights
                .iter()
                .map(|weight| match weight.outcomes() {
                    0 => NOTHING.to_owned(),
                    _ => format!("{:.2}", weight.value()),
                })
                .collect(),
            trust: weights
                .rt
                .map_or_else(|| NOTHING.to_owned(), |rt| format!("{rt:.1}")),
            lost: percent(1.0 - weights.kept),
        });
        let widest = kept.last().map_or(0.0, |kept| kept.intervals()[0].1);
        Some(Self {
            outcomes,
            summary: reliability_in_words(LEVELS[LEVELS.len() - 1] - LEVELS[0], widest),
            decides: known.deciding_ladder().map(|ladder| ladder.word().to_owned()),
            ladders: ladders.iter().map(|ladder| ladder.word().to_owned()).collect(),
            statements: intervals.chain(quantiles).collect(),
            mean_losses: kept
                .iter()
                .map(|kept| format!("{:.1}", kept.mean_loss()))
                .collect(),
            weights: weights.collect(),
        })
    }
}

/// How often an interval held, beside how often it should, in a plain sentence.
fn reliability_in_words(stated: f64, held: f64) -> String {
    let judged = match held - stated {
        less if less < -MUCH => "fewer than it should",
        more if more > MUCH => "more than it should",
        _ => "about as many as it should",
    };
    let (stated, held) = (100.0 * stated, 100.0 * held);
    format!(
        "The range of times that should hold {stated:.0} % of the runs has held {held:.1} % of them: {judged}."
    )
}

/// How reliable the service's own statements have been; none before the first outcome.
pub fn show_reliability(service: &Service) -> Option<ReliabilityView> {
    ReliabilityView::of(&service.predictions.as_ref()?.now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_whether_the_range_is_right() {
        for (held, judged) in [
            (0.8, "80.0 % of them: fewer than it should."),
            (0.88, "88.0 % of them: about as many as it should."),
            (1.0, "100.0 % of them: more than it should."),
        ] {
            let summary = reliability_in_words(0.9, held);
            assert!(
                summary.contains("should hold 90 %") && summary.ends_with(judged),
                "{summary}"
            );
        }
    }
}
