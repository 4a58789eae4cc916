//! The calendar is told.

use super::{Command, Decision};
use crate::calendar;
use crate::calendar::{Calendar, ShowCalendar};
use crate::decider::{Decider, DecisionStep};

impl Command for ShowCalendar {
    type Answer = Calendar;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        Ok(DecisionStep::Done(calendar::calendar(decider.view(), &self)))
    }
}
