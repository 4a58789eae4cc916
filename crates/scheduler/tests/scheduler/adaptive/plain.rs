//! The plan as a list of free nodes per second, searched by looking.

/// Seconds of the small plans.
pub(crate) const HORIZON: i64 = 48;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plain {
    free: Vec<u32>,
}

impl Plain {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            free: vec![capacity; seconds(HORIZON)],
        }
    }

    pub(crate) fn fits(&self, start: i64, duration: i64, nodes: u32) -> bool {
        let range = seconds(start)..seconds(start + duration);
        self.free
            .get(range)
            .is_some_and(|free| free.iter().all(|f| *f >= nodes))
    }

    pub(crate) fn take(&mut self, start: i64, duration: i64, nodes: u32) {
        for free in &mut self.free[seconds(start)..seconds(start + duration)] {
            *free -= nodes;
        }
    }
}

fn seconds(time: i64) -> usize {
    usize::try_from(time).expect("the small plans begin at 0")
}
