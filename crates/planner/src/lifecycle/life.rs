//! When something is due for agreements, and what runs.

use std::collections::{BTreeMap, HashMap};

use domain::agreement::Agreement;
use scheduler::{Fraction, Time};
use uuid::Uuid;

use crate::lifecycle::deadlines::Agenda;
use crate::lifecycle::overruns::{LastLook, Overruns};
use crate::lifecycle::start_notices::Starts;
use crate::timetable::Timetable;

/// When something is due for agreements, and what runs.
#[derive(Clone)]
pub(crate) struct Life {
    /// When the planner has something to do for an agreement: its slot begins, ends with nothing running in it, or nears
    /// its end with something that may go on.
    pub(crate) due: Timetable<Uuid>,
    /// The fraction of its wait after which every agreement moves no more.
    pub(crate) fix_after: Option<Fraction>,
    /// The times from which waiting agreements move no more.
    pub(crate) fixing: Timetable<Uuid>,
    /// When guarantees are assessed that time alone may decide.
    pub(crate) agenda: Agenda,
    /// When starts are announced.
    pub(crate) starts: Starts,
    /// By how much slots may be made longer.
    pub(crate) overruns: Overruns,
    /// The agreements that end with their slots, even while work runs, or that may still be made longer but not saved
    /// any more.
    pub(crate) ending: BTreeMap<Uuid, LastLook>,
    /// The nodes that each begun agreement has been given.
    pub(crate) bound: HashMap<Uuid, Vec<u32>>,
    /// The agreements with lost work that may still have an old job to stop.
    pub(crate) stopping: BTreeMap<Uuid, Agreement>,
    /// When this plan was made.
    pub(crate) made: Time,
}
