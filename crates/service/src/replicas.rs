//! Other replicas of this service: their questions about the jobs of their machines, and the files of jobs that they have run.

use execution::lead::{LeaderAnswer, LeaderQuestion};

use crate::error::{Error, Result};
use crate::handle::Service;
use replicas::{Replicas, Reply};

/// Whether a request comes from the replica of this name; false also where that cannot be found out now.
pub async fn is_replica(service: &Service, name: &str, secret: &str) -> bool {
    match &service.replicas {
        Some(replicas) => replicas.knows(name, secret).await.unwrap_or(false),
        None => false,
    }
}

/// The answer to a question of the replica of this name.
///
/// # Errors
/// [`Error::NotFound`] about a job that does not run any more, [`Error::Unavailable`].
pub async fn answer_replica(service: &Service, name: &str, question: LeaderQuestion) -> Result<Reply> {
    let replicas = service.replicas.as_ref().ok_or(Error::Unavailable)?;
    replicas.note_heard(name);
    let answer = question.ask(&service.planner).await;
    let answer = answer.map_err(|why| match why {
        planner::Error::NotFound => Error::NotFound,
        _ => Error::Unavailable,
    })?;
    Ok(match answer {
        LeaderAnswer::Nodes(nodes) => Reply::Nodes(nodes),
        LeaderAnswer::Is(so) => Reply::Is(so),
        LeaderAnswer::Noted => Reply::Noted,
        LeaderAnswer::Agreements(running) => {
            let own = replicas.hosts().of(name);
            let there = running.iter().filter(|running| own.contains(&running.resource));
            Reply::Agreements(there.map(|each| each.id).collect())
        }
    })
}

/// The other replica that runs the jobs of a resource, where one does.
pub(super) fn replica_behind<'a>(service: &'a Service, resource: &str) -> Option<(&'a Replicas, String)> {
    let replicas = service.replicas.as_ref()?;
    Some((replicas, replicas.hosts().elsewhere(resource)?))
}
