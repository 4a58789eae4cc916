//! Calls to the outside: decisions told to those who asked to be told.
//!
//! A call is stored with the decision that it tells, and tried until it succeeds or is given up, over restarts. It may
//! arrive twice, never not at all without a line in the log. The other end is not trusted: only addresses that may be
//! reached are, no redirect is followed, and nothing of an answer but its status is read.

mod address;

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

pub use address::Policy;

use crate::clock::{Clock, MICROS_PER_SECOND, Micros};
use crate::store::{CallBack, Store};

/// How often to look for calls that are due.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a call may take, the name's address included.
const CALL_WAIT: Duration = Duration::from_secs(10);
/// Calls that are made at the same time.
const AT_ONCE_MAX: usize = 32;
/// Those of one party among them.
const OF_EACH_MAX: u32 = 4;
/// The wait before the second try, and the longest; it doubles in between.
const RETRY: (Micros, Micros) = (MICROS_PER_SECOND, 3_600 * MICROS_PER_SECOND);
/// A call that did not succeed for so long is given up: whoever wants to know can still ask.
const GIVEN_UP_AFTER: Micros = 24 * 3_600 * MICROS_PER_SECOND;

/// Makes the calls that are stored.
#[derive(Debug)]
pub struct CallBacks {
    store: Store,
    clock: Clock,
    policy: Policy,
}

impl CallBacks {
    /// Of a store, to addresses that `policy` allows.
    pub fn new(store: Store, clock: Clock, policy: Policy) -> Self {
        Self { store, clock, policy }
    }

    /// Makes calls until it is told to stop. A call that is being made then is made again later.
    pub async fn run(self, stop: CancellationToken) {
        let mut calls: JoinSet<(CallBack, Result<(), Failure>)> = JoinSet::new();
        let mut in_flight: BTreeSet<Uuid> = BTreeSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(ended) = calls.join_next() => {
                    // A call that panicked stays in flight, and is made again after a restart.
                    if let Ok((call, result)) = ended {
                        in_flight.remove(&call.id);
                        self.record(&call, result).await;
                    }
                }
                () = tokio::time::sleep(LOOK_EVERY), if in_flight.len() < AT_ONCE_MAX => {
                    for call in self.due().await {
                        if in_flight.len() < AT_ONCE_MAX && in_flight.insert(call.id) {
                            calls.spawn(made(call, self.policy));
                        }
                    }
                }
            }
        }
    }

    async fn due(&self) -> Vec<CallBack> {
        // More than are made at once, so that those that are in flight hide no others.
        let limit = u32::try_from(2 * AT_ONCE_MAX).unwrap_or(u32::MAX);
        match self
            .store
            .call_backs_due(self.clock.micros(), limit, OF_EACH_MAX)
            .await
        {
            Ok(due) => due,
            Err(why) => {
                warn!(error = %why, "the calls that are due cannot be read");
                Vec::new()
            }
        }
    }

    async fn record(&self, call: &CallBack, result: Result<(), Failure>) {
        let (agreement, attempt) = (call.agreement, call.attempts + 1);
        let now = self.clock.micros();
        let stored = match result {
            Ok(()) => {
                info!(%agreement, attempt, "a decision was told");
                self.store.call_back_done(call.id).await
            }
            Err(Failure::Unwanted) => {
                info!(%agreement, attempt, "nobody wants to be told a decision any more");
                self.store.call_back_done(call.id).await
            }
            Err(Failure::Failed(why)) if now - call.created >= GIVEN_UP_AFTER => {
                warn!(%agreement, attempt, why, "a decision could not be told, and is not tried again");
                self.store.call_back_done(call.id).await
            }
            Err(Failure::Failed(why)) => {
                let wait = wait_after(call.attempts);
                info!(%agreement, attempt, why, "a decision could not be told; it is tried again later");
                self.store.call_back_failed(call.id, now + wait).await
            }
        };
        if let Err(why) = stored {
            warn!(%agreement, error = %why, "what became of a call was not stored; it may be made again");
        }
    }
}

/// How long to wait after so many tries before the last one.
fn wait_after(attempts: u32) -> Micros {
    let doubled = RETRY.0.checked_shl(attempts.min(30)).unwrap_or(RETRY.1);
    doubled.clamp(RETRY.0, RETRY.1)
}

/// Why a call did not succeed.
enum Failure {
    /// Worth another try.
    Failed(String),
    /// The other end says that it is gone for good.
    Unwanted,
}

/// A call and what became of it.
async fn made(call: CallBack, policy: Policy) -> (CallBack, Result<(), Failure>) {
    let result = tokio::time::timeout(CALL_WAIT, attempt(&call, policy)).await;
    let result = result.unwrap_or_else(|_| Err(Failure::Failed("no answer in time".to_owned())));
    (call, result)
}

async fn attempt(call: &CallBack, policy: Policy) -> Result<(), Failure> {
    let failed = |why: String| Failure::Failed(why);
    let target = policy.resolved(&call.address).await.map_err(failed)?;
    // One provider for the process; a second call finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(CALL_WAIT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        // The addresses that were looked at are those that are reached.
        .resolve_to_addrs(&target.host, &target.addresses)
        .build()
        .map_err(|why| failed(why.to_string()))?;
    let request = client
        .post(target.url)
        .header(CONTENT_TYPE, "application/xml; charset=utf-8")
        .body(call.body.clone());
    let answer = request.send().await.map_err(|why| failed(why.to_string()))?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        StatusCode::GONE => Err(Failure::Unwanted),
        status => Err(failed(format!("it answers {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_an_hour() {
        assert_eq!(wait_after(0), MICROS_PER_SECOND);
        assert_eq!(wait_after(5), 32 * MICROS_PER_SECOND);
        assert_eq!(wait_after(12), RETRY.1);
        assert_eq!(wait_after(u32::MAX), RETRY.1);
    }
}
