//! The planner as the lanes of local resources need it: of this process, or of another one that leads. A process that stands by runs
//! the jobs of its machine, asks the leader which these are, and reports to it how they stand.

use std::sync::Arc;

use domain::agreement::{Agreement, BroughtFiles, CannotStart, JobEnd, Run, StagingEnd};
use domain::clock::Micros;
use planner::{
    CheckLaterStart, ListBoundNodes, ListRunning, ReportBrought, ReportEnded, ReportStaging, ReportStarted,
    ReportStopped, ReportUnable,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;
use writer::Planner;

/// Questions to the leader that may wait: more than the calls of all local resources at a time.
const WAITING_MAX: usize = 256;

/// How a job stands, as its lane reports it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind", content = "of")]
pub enum Report {
    /// Its files are being brought since then.
    Staging(Micros),
    /// Its process has started then.
    Started(Micros),
    /// Its process has started with these files, which were brought since then.
    Brought(Micros, BroughtFiles),
    /// It has ended; and what became of its files, which the end does not carry.
    Ended(Box<JobEnd>, Option<Box<StagingEnd>>),
    /// It can never be started.
    Unable(CannotStart),
}

/// A question to the leader.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeaderQuestion {
    /// The agreements with a job that should run on the local resources of the replica of this name.
    Running(String),
    /// Whether there is another slot for the job of an agreement.
    CouldStartLater(Uuid),
    /// The numbers of the nodes that an agreement has been given for its slot.
    Nodes(Uuid),
    /// Takes note of how a job stands.
    Report(Run, Report),
    /// Takes note that nothing is left of the lost job of an agreement.
    Stopped(Uuid),
}

/// The answer of the leader.
#[derive(Debug, Clone)]
pub enum LeaderAnswer {
    /// These agreements.
    Agreements(Vec<Agreement>),
    /// These nodes.
    Nodes(Vec<u32>),
    /// Yes or no.
    Is(bool),
    /// It is noted.
    Noted,
}

/// A question that waits for its answer.
pub type PendingQuestion = (
    LeaderQuestion,
    oneshot::Sender<Result<LeaderAnswer, planner::Error>>,
);

/// The planner of this process, or the way to the leader's.
#[derive(Clone)]
pub enum Lead {
    /// This process leads.
    Here(Planner),
    /// Another process leads: questions to it, and the name of this one.
    Elsewhere(mpsc::Sender<PendingQuestion>, Arc<str>),
}

impl Lead {
    /// The way to the leader for the replica of a name, and the questions that it is to be asked.
    pub fn elsewhere(own: &str) -> (Self, mpsc::Receiver<PendingQuestion>) {
        let (sender, asked) = mpsc::channel(WAITING_MAX);
        (Self::Elsewhere(sender, own.into()), asked)
    }

    /// The agreements with a job that should run on the local resources of this process, where another one leads.
    pub(super) async fn running_here(&self) -> Result<Option<Vec<Agreement>>, planner::Error> {
        let Self::Elsewhere(_, own) = self else {
            return Ok(None);
        };
        match self.ask_lead(LeaderQuestion::Running(own.to_string())).await? {
            LeaderAnswer::Agreements(running) => Ok(Some(running)),
            LeaderAnswer::Nodes(_) | LeaderAnswer::Is(_) | LeaderAnswer::Noted => {
                Err(planner::Error::Unavailable)
            }
        }
    }

    /// The answer to [`CheckLaterStart`].
    pub(super) async fn could_start_later(&self, id: Uuid) -> Result<bool, planner::Error> {
        let answer = self.ask_lead(LeaderQuestion::CouldStartLater(id)).await?;
        Ok(matches!(answer, LeaderAnswer::Is(true)))
    }

    /// The answer to [`ListBoundNodes`]. A leader of the version before does not answer.
    pub(super) async fn nodes_of(&self, id: Uuid) -> Result<Vec<u32>, planner::Error> {
        match self.ask_lead(LeaderQuestion::Nodes(id)).await? {
            LeaderAnswer::Nodes(nodes) => Ok(nodes),
            LeaderAnswer::Agreements(_) | LeaderAnswer::Is(_) | LeaderAnswer::Noted => {
                Err(planner::Error::Unavailable)
            }
        }
    }

    /// Takes note of how a job stands; [`planner::Error::NotFound`] where it does not run any more.
    pub(super) async fn report(&self, run: Run, report: Report) -> Result<(), planner::Error> {
        self.ask_lead(LeaderQuestion::Report(run, report)).await.map(drop)
    }

    /// As [`ReportStopped`].
    pub(super) async fn report_stopped(&self, id: Uuid) -> Result<(), planner::Error> {
        self.ask_lead(LeaderQuestion::Stopped(id)).await.map(drop)
    }

    async fn ask_lead(&self, question: LeaderQuestion) -> Result<LeaderAnswer, planner::Error> {
        match self {
            Self::Here(planner) => question.ask(planner).await,
            Self::Elsewhere(leader, _) => {
                let (reply, answer) = oneshot::channel();
                let gone = |_| planner::Error::Unavailable;
                leader
                    .send((question, reply))
                    .await
                    .map_err(|_| planner::Error::Unavailable)?;
                answer.await.map_err(gone)?
            }
        }
    }
}

impl LeaderQuestion {
    /// Asks the planner of this process. Of the agreements with a job all are named, on whichever resource.
    ///
    /// # Errors
    /// The errors of the planner's verbs.
    pub async fn ask(self, planner: &Planner) -> Result<LeaderAnswer, planner::Error> {
        let noted = match self {
            Self::Running(_) => return planner.send(ListRunning).await.map(LeaderAnswer::Agreements),
            Self::CouldStartLater(id) => {
                return planner.send(CheckLaterStart(id)).await.map(LeaderAnswer::Is);
            }
            Self::Nodes(id) => return planner.send(ListBoundNodes(id)).await.map(LeaderAnswer::Nodes),
            Self::Stopped(id) => planner.send(ReportStopped(id)).await,
            Self::Report(run, report) => match report {
                Report::Staging(since) => planner.send(ReportStaging { run, since }).await,
                Report::Started(at) => planner.send(ReportStarted { run, at }).await,
                Report::Brought(since, brought) => planner.send(ReportBrought { run, since, brought }).await,
                Report::Ended(end, staging) => {
                    planner
                        .send(ReportEnded {
                            run,
                            end: JobEnd { staging, ..*end },
                        })
                        .await
                }
                Report::Unable(why) => planner.send(ReportUnable { run, why }).await,
            },
        };
        noted.map(|()| LeaderAnswer::Noted)
    }
}
