//! Why an offer is refused and which change would have been accepted: `bsp:Refusal`.

use crate::budget::Budget;
use crate::xml::datatypes::{parse_boolean, parse_double, parse_positive_integer};
use crate::xml::ns::BSP;
use crate::xml::{
    DateTime, DocumentCheck, Fragment, Node, Readable, WrittenValue, Xml, element, named_values, read_simple,
};

named_values! {
    /// The closed list of reasons.
    pub enum Reason {
        /// Everything in the window is taken.
        NoCapacityInWindow = "NO_CAPACITY_IN_WINDOW",
        /// More nodes than there are.
        SizeExceedsCapacity = "SIZE_EXCEEDS_CAPACITY",
        /// The window is shorter than the duration, or ends before it starts.
        WindowContradictory = "WINDOW_CONTRADICTORY",
        /// Too late to complete in time, even if started now.
        WindowInThePast = "WINDOW_IN_THE_PAST",
        /// Later than reservations are taken.
        HorizonExceeded = "HORIZON_EXCEEDED",
        /// More than the party may hold.
        QuotaExceeded = "QUOTA_EXCEEDED",
        /// Costs more than was offered.
        BudgetTooLow = "BUDGET_TOO_LOW",
        /// No such application or resource here.
        ResourceNotOffered = "RESOURCE_NOT_OFFERED",
        /// The provider does not want to.
        PolicyDenied = "POLICY_DENIED",
    }
}

/// `bsp:Refusal`.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The obstacle, in words of the request.
    pub binding_constraint: Option<String>,
    /// Whether the search for a place was cut short: a longer one might have found one.
    pub cut_short: bool,
    /// Slots outside the window, or of another shape, that are free.
    pub alternatives: Vec<Alternative>,
    /// The smallest changes of the request that would have been accepted.
    pub relaxations: Vec<Relaxation>,
}

element! {
    /// `bsp:Alternative`: a slot that is possible instead.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Alternative {
        /// Its start.
        pub start: DateTime = "bsp:Start",
        /// Its end.
        pub end: DateTime = "bsp:End",
        /// Its number of nodes, where it differs from the request.
        pub nodes: Option<u32> = "bsp:Nodes" by parse_positive_integer,
        /// φ: how far it lies outside the window, in durations of the request.
        pub deviation: f64 = "bsp:Deviation" by parse_double,
        /// On which side.
        pub direction: Direction = "bsp:Direction",
    }
}

named_values! {
    /// On which side of the window an alternative lies.
    pub enum Direction {
        /// It starts before the window.
        Earlier = "Earlier",
        /// It ends after the window.
        Later = "Later",
    }
}

element! {
    /// `bsp:Relaxation`: changes that together make the request acceptable; one, or two where no single one does.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Relaxation {
        /// The latest earlier start of the window that suffices.
        pub start: Option<DateTime> = "bsp:Start",
        /// The earliest deadline that suffices.
        pub deadline: Option<DateTime> = "bsp:Deadline",
        /// The largest number of nodes that fits.
        pub nodes: Option<u32> = "bsp:Nodes" by parse_positive_integer,
        /// The longest duration that fits, in seconds.
        pub duration: Option<u32> = "bsp:Duration" by parse_positive_integer,
        /// The lowest budget that suffices.
        pub budget: Option<Budget> = "bsp:Budget",
    }
}

impl Refusal {
    /// As a fragment, for a place that takes foreign elements.
    pub fn to_fragment(&self) -> Fragment {
        self.fragment("bsp:Refusal", &["bsp"])
    }
}

impl Readable for Refusal {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Refusal> {
        check.children(node, |children| {
            let reason = children.required(BSP, "Reason", Reason::read);
            Some(Refusal {
                binding_constraint: children.optional(BSP, "BindingConstraint", DocumentCheck::string),
                cut_short: children
                    .optional(BSP, "CutShort", read_simple(parse_boolean))
                    .unwrap_or(false),
                alternatives: children.many(BSP, "Alternative", Alternative::read),
                relaxations: children.many(BSP, "Relaxation", Relaxation::read),
                reason: reason?,
            })
        })
    }
}

impl WrittenValue for Refusal {
    fn write(&self, xml: &mut Xml) {
        xml.add("bsp:Reason", &self.reason);
        xml.add("bsp:BindingConstraint", &self.binding_constraint);
        xml.add("bsp:CutShort", &self.cut_short.then_some(true));
        xml.add("bsp:Alternative", &self.alternatives);
        xml.add("bsp:Relaxation", &self.relaxations);
    }
}
