//! The steps of the used nodes, in sums.

/// Sums over the steps of the used nodes: Σ Δ and Σ t·Δ, where Δ is the change at second t. The node-seconds used before
/// t are t·ΣΔ − Σt·Δ over the steps before t. In wrapping arithmetic: only differences that fit are ever read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) height: i64,
    pub(super) moment: i64,
}

impl Steps {
    pub(super) fn at(time: i64, used: i64) -> Self {
        Self {
            height: used,
            moment: time.wrapping_mul(used),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            height: self.height.wrapping_add(other.height),
            moment: self.moment.wrapping_add(other.moment),
        }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            height: self.height.wrapping_sub(other.height),
            moment: self.moment.wrapping_sub(other.moment),
        }
    }
}
