//! What predictions are learned from: past executions with their parties, and the observed conditions of resources.

use scheduler::Time;

use crate::agreement::Execution;
use crate::clock::Micros;

/// A finished piece of work, its party, and the time of its agreement.
#[derive(Debug, Clone, PartialEq)]
pub struct PastExecution {
    /// The execution.
    pub execution: Execution,
    /// Its party.
    pub party: String,
    /// When it was agreed. No estimate of its run time was asked for before that.
    pub agreed: Micros,
}

/// The condition of a resource; each part is none where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Condition {
    /// The share of its processors that was free, in millionths.
    pub free_cpu: Option<i64>,
    /// Bytes a second that its lines could still take in.
    pub bandwidth_in: Option<i64>,
    /// Bytes a second that its lines could still send.
    pub bandwidth_out: Option<i64>,
    /// Nodes that were up.
    pub nodes_up: Option<i64>,
    /// Bytes a second that files of jobs have had on their way there.
    pub transfer_in: Option<i64>,
    /// Bytes a second that they have had on their way from there.
    pub transfer_out: Option<i64>,
}

/// The condition of a resource at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Which.
    pub resource: String,
    /// When.
    pub at: Micros,
    /// Its condition.
    pub condition: Condition,
}

/// The condition of a resource over an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceHour {
    /// Which.
    pub resource: String,
    /// Its first second.
    pub start: Time,
    /// Samples that it is the mean of.
    pub samples: i64,
    /// The means.
    pub condition: Condition,
}
