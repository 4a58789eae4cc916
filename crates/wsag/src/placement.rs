//! Where and when an agreement is planned and was run: `bsp:Placement`, in the state of the service term.

use crate::budget::Budget;
use crate::scheduling::ShapeChanges;
use crate::xml::datatypes::{parse_boolean, parse_double, parse_int, parse_positive_integer};
use crate::xml::{DateTime, element, written};

element! {
    /// The current placement of an agreement, and the real events so far.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Placement {
        /// Name of the resource.
        pub resource: Option<String> = "bsp:Resource",
        /// Planned start.
        pub planned_start: DateTime = "bsp:PlannedStart",
        /// Planned end.
        pub planned_end: DateTime = "bsp:PlannedEnd",
        /// Granted number of nodes.
        pub nodes: u32 = "bsp:Nodes" by parse_positive_integer,
        /// Probability that it completes in time, 0 to 1, where it is known.
        pub confidence: Option<f64> = "bsp:Confidence" by parse_double,
        /// Whether start and end will not move any more.
        pub fixed: bool = "bsp:Fixed" by parse_boolean,
        /// The changes of its shape that are agreed for the time until it begins or is fixed; none where it has one shape only.
        pub may_change: Option<ShapeChanges> = "bsp:MayChange",
        /// Its price, where it is priced.
        pub price: Option<Budget> = "bsp:Price",
        /// The pieces in which its work is done, in order of time; none where it is done in one.
        pub pieces: Vec<Piece> = "bsp:Piece",
        /// Names of the nodes, once they are bound.
        pub node_names: Vec<String> = "bsp:Node",
        /// Real start.
        pub started: Option<DateTime> = "bsp:Started",
        /// Real end.
        pub ended: Option<DateTime> = "bsp:Ended",
        /// Exit status of the job.
        pub exit_status: Option<i32> = "bsp:ExitStatus" by parse_int,
        /// How it ended, in a word: `completed`, `failed`, `killed`, `lost`, …
        pub outcome: Option<String> = "bsp:Outcome",
        /// What is being done, in words.
        pub status: Option<String> = "bsp:Status",
    }
}

element! {
    /// A piece of an agreement's work: `bsp:Piece`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Piece {
        /// Planned start.
        pub planned_start: DateTime = "bsp:PlannedStart",
        /// Planned end.
        pub planned_end: DateTime = "bsp:PlannedEnd",
        /// Number of nodes.
        pub nodes: u32 = "bsp:Nodes" by parse_positive_integer,
        /// Real start.
        pub started: Option<DateTime> = "bsp:Started",
        /// Real end.
        pub ended: Option<DateTime> = "bsp:Ended",
    }
}

written! {
    /// An agreement of the same party that moved inside its window: `bsp:Moved`, in the answer to the offer that it moved for.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Moved {
        /// Which agreement.
        pub agreement_id: String = "bsp:AgreementId",
        /// Its planned start from now on.
        pub planned_start: DateTime = "bsp:PlannedStart",
        /// Its planned end from now on.
        pub planned_end: DateTime = "bsp:PlannedEnd",
    }
}
