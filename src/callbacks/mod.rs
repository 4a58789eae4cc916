//! Calls to the outside: they report decisions to the clients that asked for that.
//!
//! A call is stored with the decision that it reports, and tried until it succeeds or is given up, over restarts. It may arrive
//! twice. A call that never arrives has a line in the log. The other end is not trusted: only addresses that may be reached are,
//! no redirect is followed, and nothing of an answer but its status is read.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use crate::address::Policy;
use crate::clock::{Clock, MICROS_PER_SECOND, Micros};
use crate::store::{self, CallBack, Store};

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
/// How long to wait before the outcome of a call is stored again after a failure, at first and at most; it doubles in between.
const RECORD_AGAIN: (Duration, Duration) = (LOOK_EVERY, Duration::from_secs(8));
/// A call that did not succeed for this long is given up: the client can still ask.
const GIVEN_UP_AFTER: Micros = 24 * 3_600 * MICROS_PER_SECOND;

/// Makes the calls that are stored.
#[derive(Debug, Clone)]
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

    /// Makes calls until `stop`. A call that is being made then is made again later.
    pub async fn run(self, stop: CancellationToken) {
        let mut calls: JoinSet<Uuid> = JoinSet::new();
        let mut in_flight: BTreeSet<Uuid> = BTreeSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(ended) = calls.join_next() => {
                    // A call that panicked stays in flight, and is made again after a restart.
                    if let Ok(id) = ended {
                        in_flight.remove(&id);
                    }
                }
                () = tokio::time::sleep(LOOK_EVERY), if in_flight.len() < AT_ONCE_MAX => {
                    for call in self.due().await {
                        if in_flight.len() < AT_ONCE_MAX && in_flight.insert(call.id) {
                            calls.spawn(self.clone().tell(call));
                        }
                    }
                }
            }
        }
    }

    async fn due(&self) -> Vec<CallBack> {
        // More than are made at once, so that calls in flight hide no others.
        let limit = u32::try_from(2 * AT_ONCE_MAX).unwrap_or(u32::MAX);
        let due = self.store.call_backs_due(self.clock.micros(), limit, OF_EACH_MAX);
        due.await.unwrap_or_else(|why| {
            warn!(error = %why, "the calls that are due cannot be read");
            Vec::new()
        })
    }

    /// Makes a call and stores its outcome; answers the call's id. Where the outcome cannot be stored, it tries again until it
    /// can. Otherwise the call would stay due, and be made again and again.
    async fn tell(self, call: CallBack) -> Uuid {
        let result = tokio::time::timeout(CALL_WAIT, make_call(&call, self.policy)).await;
        let result = result.unwrap_or_else(|_| Err(Failure::Failed("no answer in time".to_owned())));
        let agreement = call.agreement;
        let mut wait = RECORD_AGAIN.0;
        while let Err(why) = self.record(&call, &result).await {
            warn!(%agreement, error = %why, "the result of a call is not stored yet");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RECORD_AGAIN.1);
        }
        let attempt = call.attempts + 1;
        match result {
            Ok(()) => info!(%agreement, attempt, "a decision was told"),
            Err(Failure::Unwanted) => {
                info!(%agreement, attempt, "the address does not want the decision any more");
            }
            Err(Failure::Failed(why)) if self.is_given_up(&call) => {
                warn!(%agreement, attempt, why, "a decision could not be told, and is not tried again");
            }
            Err(Failure::Failed(why)) => {
                info!(%agreement, attempt, why, "a decision could not be told; it is tried again later");
            }
        }
        call.id
    }

    async fn record(&self, call: &CallBack, result: &Result<(), Failure>) -> Result<(), store::Error> {
        match result {
            Err(Failure::Failed(_)) if !self.is_given_up(call) => {
                let due = self.clock.micros() + wait_after(call.attempts);
                self.store.call_back_failed(call.id, due).await
            }
            _ => self.store.call_back_done(call.id).await,
        }
    }

    fn is_given_up(&self, call: &CallBack) -> bool {
        self.clock.micros() - call.created >= GIVEN_UP_AFTER
    }
}

/// How long to wait after this many tries before the last one.
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

/// Makes a call, and answers its outcome.
async fn make_call(call: &CallBack, policy: Policy) -> Result<(), Failure> {
    let target = policy.resolved(&call.address).await.map_err(Failure::Failed)?;
    let client = target.client(|client| client.timeout(CALL_WAIT));
    let client = client.map_err(Failure::Failed)?;
    let request = client
        .post(target.url)
        .header(CONTENT_TYPE, "application/xml; charset=utf-8")
        .body(call.body.clone());
    let answer = request.send().await;
    let answer = answer.map_err(|why| Failure::Failed(why.to_string()))?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        StatusCode::GONE => Err(Failure::Unwanted),
        status => Err(Failure::Failed(format!("it answers {status}"))),
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
