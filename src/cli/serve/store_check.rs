//! The checks of the store: of its open state before this process decides anything, of everything behind, and then of the new lines of
//! the audit trail.

use std::time::Duration;

use domain::clock::Clock;
use scheduler::counted;
use store::open_state::OpenState;
use store::{Finding, Store};
use task::Keeper;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};
use writer::Planner;

use super::HOURLY;
use crate::cli::Failure;

/// How often the new lines of the audit trail are checked: those since then are checked by the next start, before it is ready.
const CHECKED_EVERY: Duration = Duration::from_mins(10);
/// When it is tried again where the store could not be read.
const RETRY: Duration = Duration::from_secs(10);
/// Findings that are logged: `bespeak verify` lists them all.
const LOGGED_MAX: usize = 10;

/// How long a process that has stood by waits before it checks everything: at a takeover all clients come at once.
const AFTER_TAKEOVER: Duration = Duration::from_mins(1);

/// When a process that stands by checks the open state: others often take the lead just when it begins.
const AFTER_START: Duration = Duration::from_secs(1);

/// A check of the open state; an error where something is wrong with it, or where it cannot be read.
pub(super) type CheckTask = JoinHandle<Result<(), Failure>>;

/// Checks the open state for a process that stands by, so that it need not do so when others wait for it to lead.
pub(super) fn check_store_while_standing_by(store: Store, clock: Clock) -> CheckTask {
    task::spawn(async move {
        tokio::time::sleep(AFTER_START).await;
        let found = store_check_finds_nothing(&store, &clock).await;
        if let Err(why) = &found {
            warn!(%why, "checked while standing by; it is checked again before this process leads");
        }
        found
    })
}

/// Makes sure that the open state is consistent, where a check `before` has not found it so, and warns of settings of the database
/// that may lose data. Answers with the open state where it was read for that, while the audit trail is still being checked.
pub(super) async fn check_open_store(
    before: Option<CheckTask>,
    store: Store,
    clock: Clock,
) -> Result<Option<(OpenState, TrailCheck)>, Failure> {
    for words in store.weak_settings().await? {
        warn!("{words}");
    }
    if let Some(before) = before {
        if !before.is_finished() {
            before.abort();
        }
        if matches!(before.await, Ok(Ok(()))) {
            return Ok(None);
        }
    }
    let open = store.read_checked_open_state(clock.now()).await?;
    // Not before: it would take the processors from what the plan waits for.
    let trail = check_new_trail_lines(&store);
    match open {
        Ok(open) => Ok(Some((open, trail))),
        Err(findings) => Err(refuse_with_findings(findings, trail).await),
    }
}

async fn store_check_finds_nothing(store: &Store, clock: &Clock) -> Result<(), Failure> {
    let trail = check_new_trail_lines(store);
    let findings = store.verify_open(clock.now()).await?;
    if findings.is_empty() {
        return trail.end().await;
    }
    Err(refuse_with_findings(findings, trail).await)
}

/// A check of the lines of the audit trail since the last that is remembered, which goes on by itself.
pub(super) struct TrailCheck(AbortOnDropHandle<Result<Vec<Finding>, store::Error>>);

fn check_new_trail_lines(store: &Store) -> TrailCheck {
    let store = store.clone();
    TrailCheck(AbortOnDropHandle::new(task::spawn(async move {
        store.verify_new_lines().await
    })))
}

impl TrailCheck {
    /// Waits for its end; an error where it has found something.
    pub(super) async fn end(self) -> Result<(), Failure> {
        let findings = self.0.await.map_err(Failure::unavailable)??;
        findings
            .first()
            .map_or(Ok(()), |first| Err(refused(first, findings.len())))
    }
}

/// The failure of a start that has found something in the open state, and may find more in the audit trail.
async fn refuse_with_findings(mut findings: Vec<Finding>, trail: TrailCheck) -> Failure {
    if let Ok(Ok(more)) = trail.0.await {
        findings.extend(more);
    }
    refused(&findings[0], findings.len())
}

fn refused(first: &Finding, many: usize) -> Failure {
    Failure::Refused(format!(
        "the stored state is inconsistent: {first} ({}; `bespeak verify` lists them)",
        counted(many, "finding")
    ))
}

/// Begins to check the stored state. A finding stops all decisions.
pub(super) fn start_store_check((store, planner): (&Store, &Planner), has_taken_over: bool, keeper: &Keeper) {
    let (store, planner) = (store.clone(), planner.clone());
    keeper.keep(("state-check", HOURLY), move |stop| {
        check_store_while_serving(store.clone(), planner.clone(), has_taken_over, stop)
    });
}

/// Checks the stored state until it is told to stop. A finding stops all decisions, and so does what others find of the database
/// meanwhile.
async fn check_store_while_serving(
    store: Store,
    planner: Planner,
    has_taken_over: bool,
    stop: CancellationToken,
) {
    let check = async {
        if has_taken_over {
            tokio::time::sleep(AFTER_TAKEOVER).await;
        }
        check_store_until_wrong(&store, &planner).await;
    };
    let watch = stop_decisions_on_damaged_store(&store, &planner);
    let both = Box::pin(async { tokio::join!(check, watch) });
    stop.run_until_cancelled(both).await;
}

/// Stops all decisions where the database is found not to be as it was left: it has gone back, or its files were removed. What the open
/// files of SQLite have is written to a file then.
async fn stop_decisions_on_damaged_store(store: &Store, planner: &Planner) {
    let mut damage = store.damage();
    let found = async { damage.wait_for(Option::is_some).await.ok()?.clone() };
    let Some(what) = found.await else { return };
    planner.distrust(what.clone());
    error!(%what, "the database is not as it was left; nothing is decided any more (docs/reference/operating.md says what to do)");
    loop {
        match store.rescue().await {
            Ok(file) => {
                if let Some(file) = file {
                    error!(file = %file.display(), "all that was stored is in this file");
                }
                return;
            }
            Err(why) => {
                error!(
                    %why,
                    "what was stored could not be written to another file; do not stop the process; trying again in {RETRY:?}"
                );
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn check_store_until_wrong(store: &Store, planner: &Planner) {
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
                task::note_success();
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
