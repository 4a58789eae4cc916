//! How long work will take, learned from past work.
//!
//! Two answers stand side by side. [`estimate`] is the completion estimate of paper 004 (algorithms 1 and 2): a mean of past
//! executions. It is corrected by the free share of the processors as [`smoothing`] foresees it and by the trust in the resource
//! ([`estimate::rt`]), and the transfers before and after are added. Each step of it is kept, so that it can be explained. [`runs`]
//! goes beyond the paper: a *distribution* of the run time, so that a slot can be sized at a stated probability and an offer can
//! say how sure its completion is. [`parts`] adds the paper's corrections to it, each as far as it has proved true ([`LearnedWeight`]),
//! in the combinations of [`Ladder`]. A [`Calibration`] compares statements with outcomes and corrects the next statement;
//! [`Reliability`] compares them and reports.
//!
//! Durations in plans stay whole seconds: an estimate is rounded up once, when it becomes one.

pub mod calibration;
pub mod distribution;
pub mod estimate;
pub mod learner;
pub mod losses;
pub mod outlook;
pub mod parts;
pub mod reliability;
pub mod runs;
pub mod series;
pub mod smoothing;

pub use calibration::Calibration;
pub use distribution::Distribution;
pub use estimate::{Estimate, EstimateStep, Evidence};
pub use learner::{JudgedStatement, LearnedWeight, Learner, RealDuration};
pub use losses::RunLosses;
pub use outlook::Outlook;
pub use parts::{Amounts, Ladder, Part, Parts, Shares};
pub use reliability::Reliability;
pub use runs::{BlendedHistory, Prediction, Runs, Subject};
pub use series::Series;
pub use smoothing::Smoothing;

pub use crate::time::whole_seconds;

/// The probability that a slot holds its work, where no other is given.
pub const SLOT_PROBABILITY: f64 = 0.95;

/// A count or a length of time as a number to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and seconds of histories lie far below 2⁵³"
)]
pub fn whole_as_real(whole: i64) -> f64 {
    whole as f64
}

/// A count of elements in memory as a number to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "memory holds far fewer than 2⁵³ elements"
)]
pub(crate) fn count_as_real(elements: usize) -> f64 {
    elements as f64
}
