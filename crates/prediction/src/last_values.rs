//! The last values of something, as a distribution.

use std::collections::VecDeque;

use scheduler::prediction::Distribution;

/// Values that are remembered: a change of habits is learned within as many executions.
pub(super) const VALUES_MAX: usize = 200;

/// The last values.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LastValues {
    values: VecDeque<f64>,
    distribution: Option<Distribution>,
}

impl LastValues {
    /// Remembers one more.
    pub(super) fn push(&mut self, value: f64) {
        self.values.push_back(value);
        if self.values.len() > VALUES_MAX {
            self.values.pop_front();
        }
        self.distribution = Distribution::of(self.values.iter().map(|value| (*value, 1.0)).collect());
    }

    /// Their distribution; none without any.
    pub(super) fn distribution(&self) -> Option<&Distribution> {
        self.distribution.as_ref()
    }

    /// Their mean; none without any.
    #[expect(clippy::cast_precision_loss, reason = "a few hundred values")]
    pub(super) fn mean(&self) -> Option<f64> {
        let count = self.values.len();
        (count > 0).then(|| self.values.iter().sum::<f64>() / count as f64)
    }
}
