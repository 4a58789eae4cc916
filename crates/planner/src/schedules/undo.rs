//! How the changes of schedules are undone that a trial has made, or a decision of which nothing is kept.
//!
//! A schedule notes its changes itself (`scheduler/src/schedule/journal.rs`); the log has the mark to which each is taken back. Beside its
//! schedule a resource has few things, which are copied. What an operator's order changes in the resources themselves is undone by a copy
//! of all of them.

use std::collections::BTreeSet;

use scheduler::schedule::Mark;

use crate::journal::TakeBack;
use crate::schedules::Schedules;
use crate::schedules::look_queue::LookQueue;
use crate::schedules::resource_plan::{NodesOfPlan, domain_id};

/// How the changes since the outermost trial began are undone, in the order in which they were made.
#[derive(Clone, Default)]
pub(crate) struct UndoLog {
    /// Of each trial that goes on the resources whose schedules have a mark in it.
    marked: Vec<BTreeSet<usize>>,
    /// The resources whose schedules note their changes.
    noting: BTreeSet<usize>,
    /// The numbers of steps before each of these trials that is a decision of which nothing is kept.
    tries: Vec<usize>,
    steps: Vec<Undo>,
}

/// How changes are undone.
#[derive(Clone)]
enum Undo {
    /// The schedule of a resource is taken back to a mark.
    Schedule(usize, Mark),
    /// What a resource has beside its schedule was this.
    Nodes(usize, Box<NodesOfPlan>),
    /// All resources were these.
    All(Box<Schedules>),
}

impl UndoLog {
    /// Whether a decision goes on of which nothing is kept.
    fn is_tried(&self) -> bool {
        !self.tries.is_empty()
    }
}

impl Schedules {
    /// Has the schedule of a resource note its changes, where they may have to be undone.
    pub(super) fn note_schedule(&mut self, at: usize) {
        let Some(marked) = self.undo.marked.last_mut() else {
            return;
        };
        if !marked.insert(at) {
            return;
        }
        self.undo.noting.insert(at);
        let now = self.now;
        let mark = self.domain.change(domain_id(at), |plan| {
            (plan.schedule.note_changes(now), Vec::new())
        });
        let step = mark.map(|mark| Undo::Schedule(at, mark));
        self.undo.steps.extend(step);
    }

    /// Notes what a resource has beside its schedule, where nothing is kept of its changes.
    pub(super) fn note_nodes(&mut self, at: usize) {
        if self.undo.is_tried()
            && let Some(plan) = self.get(at)
        {
            let step = Undo::Nodes(at, Box::new(plan.nodes_of_plan()));
            self.undo.steps.push(step);
        }
    }

    /// Notes all resources, where nothing is kept of their changes. O(n) for all that is planned: only operators change the resources
    /// themselves.
    pub(super) fn note_all(&mut self) {
        let Some(begun) = self.undo.tries.last().copied() else {
            return;
        };
        let mut since = self.undo.steps.iter().skip(begun);
        if !since.any(|step| matches!(step, Undo::All(_))) {
            let undo = std::mem::take(&mut self.undo);
            let all = Box::new(self.clone());
            self.undo = undo;
            self.undo.steps.push(Undo::All(all));
        }
    }
}

/// Opens the log for a trial. Returns the number of changes before it.
pub(crate) fn open_undo_log(schedules: &mut Schedules) -> usize {
    schedules.undo.marked.push(BTreeSet::new());
    schedules.undo.steps.len()
}

/// Closes the log for a trial, and takes back the trial's changes unless they are to stay.
pub(crate) fn close_undo_log(schedules: &mut Schedules, begun: usize, stays: bool) {
    if !stays {
        undo_changes_since(schedules, begun);
    }
    let marked = schedules.undo.marked.pop().unwrap_or_default();
    if let Some(outer) = schedules.undo.marked.last_mut() {
        // Where it has no mark in the outer trial yet, the inner one is that.
        if stays {
            outer.extend(marked);
        }
        return;
    }
    schedules.undo.steps.clear();
    for at in std::mem::take(&mut schedules.undo.noting) {
        schedules.domain.change(domain_id(at), |plan| {
            plan.schedule.forget_changes();
            ((), Vec::new())
        });
    }
}

/// Undoes all changes but the first `begun`, the last one first.
fn undo_changes_since(schedules: &mut Schedules, begun: usize) {
    let mut steps = schedules.undo.steps.split_off(begun);
    // A copy of all takes back what came after it, too.
    if let Some(all) = steps.iter().position(|step| matches!(step, Undo::All(_))) {
        steps.truncate(all + 1);
    }
    for step in steps.into_iter().rev() {
        match step {
            Undo::Schedule(at, mark) => {
                schedules.change_plan(at, |plan| ((), plan.schedule.take_back(mark)));
            }
            Undo::Nodes(at, nodes) => {
                schedules.change_plan(at, |plan| (plan.put_nodes_back(*nodes), Vec::new()));
            }
            Undo::All(all) => {
                let undo = std::mem::take(&mut schedules.undo);
                let impossible = std::mem::take(&mut schedules.impossible);
                *schedules = *all;
                (schedules.undo, schedules.impossible) = (undo, impossible);
            }
        }
    }
}

/// The small parts of the schedules, as they were before a decision of which nothing is kept.
pub(crate) struct SchedulesBefore {
    begun: usize,
    look_queue: LookQueue,
    work_each: u64,
    cut_short: bool,
}

impl TakeBack for Schedules {
    type Before = SchedulesBefore;

    fn begin_try(&mut self) -> SchedulesBefore {
        self.looks.begin_try();
        let begun = open_undo_log(self);
        self.undo.tries.push(begun);
        SchedulesBefore {
            begun,
            look_queue: self.look_queue.clone(),
            work_each: self.work_each,
            cut_short: self.cut_short,
        }
    }

    fn take_back(&mut self, before: SchedulesBefore) {
        close_undo_log(self, before.begun, false);
        self.undo.tries.pop();
        self.looks.take_back(());
        self.look_queue = before.look_queue;
        (self.work_each, self.cut_short) = (before.work_each, before.cut_short);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::resources::{NodeState, ReportedState, Reporter, Resource};
    use scheduler::Time;

    use super::*;
    use crate::tests::harness::{Domain, work};

    #[test]
    fn nodes_that_are_out_of_use_for_a_try_cost_no_copy_of_all_resources() {
        let mut domain = Domain::new(vec![Resource::new("local", "local", 2)]);
        domain.place(work(2, 50, (0, 50))).unwrap();
        domain.place(work(1, 50, (0, 400))).unwrap();
        domain.begin(0);
        let failures = domain.settings.failures;
        let schedules = &mut domain.state.schedules;
        let said = ReportedState {
            state: NodeState::Drained,
            since: 0,
            reason: None,
        };
        schedules.change_bindings(0, |plan| plan.nodes.restore(1, Reporter::Operator, said));
        let steps = |schedules: &Schedules| -> Vec<_> {
            let plan = schedules.get(0).unwrap();
            let steps = plan.schedule.tree().steps_from(Time(0));
            steps
                .chain(
                    plan.nodes
                        .blocks
                        .iter()
                        .map(|(block, nodes)| (block.start, *nodes)),
                )
                .collect()
        };
        let before = steps(schedules);
        let begun = schedules.begin_try();
        assert!(
            schedules
                .put_out_of_use(0, Time(0), &failures, &BTreeMap::new())
                .is_some()
        );
        assert_ne!(steps(schedules), before);
        let is_copy = |step: &Undo| matches!(step, Undo::All(_));
        assert!(!schedules.undo.steps.iter().any(is_copy));
        schedules.take_back(begun);
        assert_eq!(steps(schedules), before);
        domain.check();
        domain.check_rebuilt();
    }
}
