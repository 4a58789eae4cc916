//! The record of the files that are moved for a job: how far each has come, so that a service that starts again goes on there.

use domain::agreement::{MovedFiles, Run};
use domain::clock::Micros;
use serde::{Deserialize, Serialize};

/// The files that are moved for the runs of an agreement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagingRecord {
    /// Its party.
    pub party: String,
    /// The files that are brought before the first slot's process starts.
    #[serde(rename = "in", default)]
    pub brought: DirectionRecord,
    /// The files that are sent after the last slot's process has completed.
    #[serde(rename = "out", default)]
    pub sent: DirectionRecord,
}

/// Which way files go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StagingDirection {
    /// To the job's folder.
    In,
    /// From there.
    Out,
}

/// The files that go one way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionRecord {
    /// The run that they are moved for; none before the first is.
    pub run: Option<Run>,
    /// When the first was asked for in this run.
    #[serde(default)]
    pub began: Micros,
    /// Each, in the order of the request.
    #[serde(default)]
    pub files: Vec<FileProgress>,
    /// For how long data were on their way.
    #[serde(default)]
    pub took: Micros,
    /// Whether something of this service has held them up in this run: it was not there, or its disk was full.
    #[serde(default)]
    pub held_up: bool,
    /// What became of them in this run; none while they are on their way.
    pub verdict: Option<Verdict>,
}

/// How far a file has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProgress {
    /// Its name in the job's folder.
    pub name: String,
    /// Bytes of it that have arrived for good.
    #[serde(default)]
    pub bytes: u64,
    /// Bytes that it has in all, where the other end has said so.
    pub of: Option<u64>,
    /// The other end's mark of this version of it, by which it can be gone on with.
    pub mark: Option<String>,
    /// Whether the whole of it has arrived.
    #[serde(default)]
    pub done: bool,
}

/// What became of the files that go one way, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// When that was found.
    pub at: Micros,
    /// What became of them.
    #[serde(flatten)]
    pub fate: Fate,
}

/// What became of the files that go one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Fate {
    /// All have arrived.
    Arrived,
    /// One cannot be moved, for a reason of its party's.
    Failed {
        /// In words.
        why: String,
    },
    /// The files of its party's jobs take more room than they may.
    NoRoom,
    /// The slot was over before they had arrived, because something of this service had held them up.
    Late,
}

impl StagingRecord {
    /// The record of a party's job of which nothing has been moved.
    pub(crate) fn of(party: &str) -> Self {
        Self {
            party: party.to_owned(),
            brought: DirectionRecord::default(),
            sent: DirectionRecord::default(),
        }
    }

    /// The files that go that way.
    pub(crate) fn way(&self, way: StagingDirection) -> &DirectionRecord {
        match way {
            StagingDirection::In => &self.brought,
            StagingDirection::Out => &self.sent,
        }
    }

    /// The files that go that way, to be changed.
    pub(crate) fn way_mut(&mut self, way: StagingDirection) -> &mut DirectionRecord {
        match way {
            StagingDirection::In => &mut self.brought,
            StagingDirection::Out => &mut self.sent,
        }
    }

    /// The last instant that it has.
    pub(crate) fn last(&self) -> Micros {
        let end_of = |way: &DirectionRecord| way.verdict.as_ref().map_or(way.began, |verdict| verdict.at);
        end_of(&self.brought).max(end_of(&self.sent))
    }
}

impl DirectionRecord {
    /// The files as they have arrived so far.
    pub(crate) fn moved(&self) -> MovedFiles {
        MovedFiles {
            files: u32::try_from(self.files.len()).unwrap_or(u32::MAX),
            bytes: self.bytes(),
            took: self.took,
        }
    }

    /// Bytes that have arrived.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Has it be about the files of this run: as it is, where it is already; else what has arrived stays, and nothing is decided.
    pub(crate) fn begin(&mut self, run: Run, names: &[&str], now: Micros) {
        if self.run == Some(run) {
            // Whoever was at it before is not there any more.
            self.held_up = true;
            return;
        }
        let same = self
            .files
            .iter()
            .map(|file| file.name.as_str())
            .eq(names.iter().copied());
        if !same {
            self.took = 0;
            let file = |name: &&str| FileProgress {
                name: (*name).to_owned(),
                ..FileProgress::default()
            };
            self.files = names.iter().map(file).collect();
        }
        self.run = Some(run);
        self.began = now;
        self.held_up = false;
        self.verdict = None;
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn another_run_goes_on_with_what_has_arrived_and_the_same_one_knows_that_it_was_held_up() {
        let run = Run::first(Uuid::nil());
        let mut way = DirectionRecord::default();
        way.begin(run, &["a", "b"], 5);
        assert!(!way.held_up && way.began == 5);
        way.files[0].bytes = 7;
        way.took = 3;
        way.begin(run, &["a", "b"], 6);
        assert!(way.held_up && way.began == 5, "the service has started again");
        way.verdict = Some(Verdict {
            at: 9,
            fate: Fate::Late,
        });
        way.begin(Run { attempt: 1, ..run }, &["a", "b"], 20);
        assert_eq!((way.held_up, way.began, way.verdict.clone()), (false, 20, None));
        assert_eq!((way.bytes(), way.took), (7, 3), "what has arrived stays");
        way.begin(Run { attempt: 2, ..run }, &["a", "c"], 30);
        assert_eq!((way.bytes(), way.took), (0, 0), "of other files nothing has");
    }
}
