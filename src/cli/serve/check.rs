//! The checks of the store while the service runs: everything once, and then the new lines of the audit trail.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::planner::Planner;
use crate::store::Store;

/// How often the new lines of the audit trail are checked: those since then are checked by the next start, before it is ready.
const CHECKED_EVERY: Duration = Duration::from_mins(10);
/// When it is tried again where the store could not be read.
const RETRY: Duration = Duration::from_secs(10);
/// Findings that are logged: `bespeak verify` lists them all.
const LOGGED_MAX: usize = 10;

/// How long a process that has stood by waits before it checks everything: at a takeover all clients come at once.
const AFTER_TAKEOVER: Duration = Duration::from_mins(1);

/// Checks the stored state until it is told to stop. A finding stops all decisions.
pub(super) async fn check_while_serving(
    store: Store,
    planner: Planner,
    has_taken_over: bool,
    stop: CancellationToken,
) {
    let check = async {
        if has_taken_over {
            tokio::time::sleep(AFTER_TAKEOVER).await;
        }
        check_until_wrong(&store, &planner).await;
    };
    stop.run_until_cancelled(check).await;
}

async fn check_until_wrong(store: &Store, planner: &Planner) {
    let mut is_all_checked = false;
    loop {
        let checked = if is_all_checked {
            store.verify_new_lines().await
        } else {
            store.verify_and_remember().await
        };
        let wait = match checked {
            Ok(findings) => {
                if let Some(first) = findings.first() {
                    for finding in findings.iter().take(LOGGED_MAX) {
                        error!(%finding, "the stored state is inconsistent");
                    }
                    error!(
                        findings = findings.len(),
                        "nothing is decided any more; `bespeak verify` lists the findings"
                    );
                    return planner.distrust(first.to_string());
                }
                if !is_all_checked {
                    info!("the whole stored state has been checked");
                }
                is_all_checked = true;
                CHECKED_EVERY
            }
            Err(why) => {
                warn!(error = %why, "the stored state could not be checked; trying again in {RETRY:?}");
                RETRY
            }
        };
        tokio::time::sleep(wait).await;
    }
}
