//! Whether the statements about run times were true, in words and numbers for people.

use scheduler::prediction::Reliability;

use crate::negotiation::Negotiation;

/// The comparison of statements with outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReliabilityView {
    /// Executions of which something had been stated.
    pub outcomes: usize,
    /// The intervals, the widest first, then the quantiles.
    pub statements: Vec<StatementView>,
    /// The mean pinball loss, in seconds: least for statements that are true and sharp.
    pub mean_loss: String,
}

/// A statement about run times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementView {
    /// The stated value.
    pub statement: String,
    /// In how many of a hundred cases it was so.
    pub held: String,
    /// Its mean pinball loss in seconds; none of an interval.
    pub loss: Option<String>,
}

impl ReliabilityView {
    /// The view of the kept statements.
    pub fn of(kept: &Reliability) -> Self {
        let percent = |part: f64| format!("{:.1}", 100.0 * part);
        let intervals = kept.intervals().map(|(stated, held, _)| StatementView {
            statement: format!("{:.0} % interval", 100.0 * stated),
            held: percent(held),
            loss: None,
        });
        let quantiles = kept.levels().map(|(stated, held, loss)| StatementView {
            statement: format!("{:.0} % quantile", 100.0 * stated),
            held: percent(held),
            loss: Some(format!("{loss:.1}")),
        });
        Self {
            outcomes: kept.outcomes(),
            statements: intervals.into_iter().chain(quantiles).collect(),
            mean_loss: format!("{:.1}", kept.mean_loss()),
        }
    }
}

impl Negotiation {
    /// How reliable the service's own statements have been; none before the first outcome.
    pub fn reliability(&self) -> Option<ReliabilityView> {
        let known = self.predictions.as_ref()?.now();
        let kept = known.reliability();
        (kept.outcomes() > 0).then(|| ReliabilityView::of(kept))
    }
}
