//! The questions of a replica about the jobs of its machine, on their way to the leader.

use std::time::Duration;

use domain::agreement::Agreement;
use execution::lead::{LeaderAnswer, LeaderQuestion, PendingQuestion};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use store::agreements;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Replicas;

/// How long the leader may take for an answer. A question is asked again.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Where the leader takes questions.
pub const QUESTIONS: &str = "/replicas/questions";

/// The leader's answer, as it travels.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// Agreements, by their ids: the store has them.
    Agreements(Vec<Uuid>),
    /// The numbers of nodes.
    Nodes(Vec<u32>),
    /// Yes or no.
    Is(bool),
    /// It is noted.
    Noted,
}

/// Asks the leader the questions of this process, several at a time, until `stop`.
pub async fn answer_questions(
    replicas: Replicas,
    asked: &mut mpsc::Receiver<PendingQuestion>,
    stop: CancellationToken,
) {
    loop {
        let next = tokio::select! {
            () = stop.cancelled() => return,
            next = asked.recv() => next,
        };
        let Some((question, reply)) = next else { return };
        task::note_success();
        let (replicas, stop) = (replicas.clone(), stop.clone());
        task::spawn(async move {
            let mut leader = replicas.leader();
            leader.mark_unchanged();
            // A leader that stands still must not delay the next one, which may be this process.
            let answer = tokio::select! {
                answer = tokio::time::timeout(ANSWER_WAIT, replicas.ask_leader(&question)) => answer.ok(),
                () = stop.cancelled() => None,
                _ = leader.changed() => None,
            };
            // A lane that has given up asks again.
            let _ = reply.send(answer.unwrap_or(Err(planner::Error::Unavailable)));
        });
    }
}

impl Replicas {
    async fn ask_leader(&self, question: &LeaderQuestion) -> Result<LeaderAnswer, planner::Error> {
        let unavailable = |_| planner::Error::Unavailable;
        let leader = self
            .leader()
            .borrow()
            .clone()
            .ok_or(planner::Error::Unavailable)?;
        let request = self.request(Method::POST, &leader.address, QUESTIONS).await;
        let request = request.map_err(|_| planner::Error::Unavailable)?;
        let answer = request.json(question).send().await.map_err(|why| {
            self.note_failure(&leader.address, &why);
            planner::Error::Unavailable
        })?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Err(planner::Error::NotFound),
            _ => return Err(planner::Error::Unavailable),
        }
        Ok(match answer.json().await.map_err(unavailable)? {
            Reply::Nodes(nodes) => LeaderAnswer::Nodes(nodes),
            Reply::Is(so) => LeaderAnswer::Is(so),
            Reply::Noted => LeaderAnswer::Noted,
            Reply::Agreements(ids) => LeaderAnswer::Agreements(self.read_agreements_of_leader(ids).await?),
        })
    }

    /// The agreements that the leader has named.
    async fn read_agreements_of_leader(&self, ids: Vec<Uuid>) -> Result<Vec<Agreement>, planner::Error> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let read = agreements::agreement(&self.0.store, id).await;
            found.extend(read.map_err(|_| planner::Error::Unavailable)?);
        }
        Ok(found)
    }
}
