//! The decisions of a batch: what is due, and commands.

use uuid::Uuid;

use crate::commands::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::elsewhere::cluster;
use crate::error::Error;
use crate::life::deadlines;
use crate::limits::refusal_log;
use crate::options::CommandOptions;
use crate::resources::repair;
use crate::table::negotiations;

impl Decider<'_> {
    /// Whether something was found in the plan that must never happen: nothing more may be decided on it.
    pub fn has_found_fault(&self) -> bool {
        self.state.why_impossible().is_some()
    }

    /// Does what is due before anything else is decided: offers lapse, agreements are fixed that have waited for long enough, and nodes
    /// come back that were expected by now.
    pub fn make_due_decisions(&mut self) {
        negotiations::lapse_negotiations(&mut self.bargaining());
        deadlines::fix_at_deadlines(self);
        repair::repair_nodes_in_time(self);
    }

    /// Takes the commands that are to be decided again, by the agreements that they would make. Their slots are kept until then.
    pub fn take_decidable_commands(&mut self) -> Vec<Uuid> {
        self.state.elsewhere.take_decidable(self.now)
    }

    /// Decides a command, with what comes before and after it.
    ///
    /// # Errors
    /// Those that the command names; [`Error::Unavailable`] where it would have to wait for a cluster and may not, as in a dry run, and
    /// where a fault is found in a dry run.
    pub fn make_decision<C: Command>(&mut self, command: C, options: &CommandOptions) -> Decision<C> {
        self.options.clone_from(options);
        if std::mem::take(&mut self.options.is_dry) {
            let options = self.options.clone();
            return match self.try_out(|decider| decider.make_decision(command, &options))?? {
                // No cluster is asked to hold something for it.
                DecisionStep::Wait(_) => Err(Error::Unavailable),
                done @ DecisionStep::Done(_) => Ok(done),
            };
        }
        let (awaited, noted_for) = (command.awaited_agreement(), command.noted_for());
        if let Some(id) = awaited {
            cluster::take_word_of_cluster(self, id);
        }
        let mut decision = command.decide(self);
        if matches!(decision, Ok(DecisionStep::Wait(_)))
            && !awaited.is_some_and(|id| self.state.elsewhere.keep(id))
        {
            decision = Err(Error::Unavailable);
        }
        if let (Err(Error::Refused(refusal)), Some(noted_for)) = (&mut decision, noted_for) {
            let limits = &mut self.state.limits;
            let note = refusal_log::log_refusal(limits, self.now, noted_for, refusal);
            self.batch.extend(note);
        }
        // What it has placed may be due by now: else the moment of the next decision would say when it is.
        deadlines::fix_at_deadlines(self);
        decision
    }
}

#[cfg(test)]
impl Decider<'_> {
    /// The answer to a command, which waits for no cluster.
    pub(super) fn decide<C: Command>(&mut self, command: C) -> crate::error::Result<C::Answer> {
        command.decide(self).map(DecisionStep::done)
    }
}
