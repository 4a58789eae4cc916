//! A distribution known by weighted observations.

/// Observations with weights, as a distribution function that is linear between neighbouring ones.
///
/// Half the weight of an observation lies below it. Where several are equal, the function jumps from the first to the last of
/// them. So reading a quantile is the inverse of asking for a probability: each confirms the other. A step function would state
/// 90 % and hold 87 % where observations are few.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Ascending values, each with the probability up to and with it. Never empty.
    points: Vec<(f64, f64)>,
}

impl Distribution {
    /// Of values with weights, in any order and of any total. A value or weight that is not finite, or a weight of zero, is left
    /// out; `None` if nothing remains. Takes n log n steps.
    pub fn of(mut weighted: Vec<(f64, f64)>) -> Option<Self> {
        weighted.retain(|(value, weight)| value.is_finite() && weight.is_finite() && *weight > 0.0);
        weighted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        let mut upto = 0.0;
        for (_, weight) in &mut weighted {
            upto += *weight / total;
            *weight = upto.min(1.0);
        }
        if let Some((_, whole)) = weighted.last_mut() {
            *whole = 1.0;
        }
        (!weighted.is_empty() && total.is_finite()).then_some(Self { points: weighted })
    }

    /// Of one value.
    pub(super) fn point(value: f64) -> Self {
        Self {
            points: vec![(value, 1.0)],
        }
    }

    /// The probability of less than the observation at `at`, half its own weight included.
    fn middle(&self, at: usize) -> f64 {
        f64::midpoint(self.before(at), self.points[at].1)
    }

    /// The probability up to the observation at `at`, without it.
    fn before(&self, at: usize) -> f64 {
        at.checked_sub(1).map_or(0.0, |previous| self.points[previous].1)
    }

    /// The probability of a value less than `value`, half of the values equal to it included.
    pub fn probability(&self, value: f64) -> f64 {
        let at = self.points.partition_point(|(known, _)| *known < value);
        let after = self.points.partition_point(|(known, _)| *known <= value);
        if at < after {
            return f64::midpoint(self.before(at), self.before(after));
        }
        if at == 0 || at == self.points.len() {
            return self.before(at);
        }
        let (low, high) = (self.points[at - 1].0, self.points[at].0);
        let below = self.middle(at - 1);
        below + (self.middle(at) - below) * (value - low) / (high - low)
    }

    /// The value below which lies the probability `p`: at 0 and less the smallest observation, at 1 and more the largest.
    pub fn quantile(&self, p: f64) -> f64 {
        let reached = |at: usize| self.middle(at) >= p;
        // The middles ascend with the probabilities up to the observations, so the first that reaches `p` is that of the
        // first observation that does, or of the next.
        let near = self.points.partition_point(|(_, upto)| *upto < p);
        let Some(at) = (near..self.points.len()).find(|at| reached(*at)) else {
            // It is never empty.
            return self.points.last().map_or(f64::NAN, |(largest, _)| *largest);
        };
        let value = self.points[at].0;
        let Some(previous) = at.checked_sub(1) else {
            return value;
        };
        let (low, below) = (self.points[previous].0, self.middle(previous));
        low + (value - low) * (p - below) / (self.middle(at) - below)
    }
}
