//! Processes that stand by on one Postgres, until the one that leads is gone.
//!
//! The process with the lease leads. Its session asks for the epoch every second, and the server notes of each session when it was
//! last at work. That is the heartbeat: a process that stands by sees whether it goes on, by its own clock. A leader without one is
//! deposed: the server ends its sessions, which frees the lock, and the next epoch fences whatever it still sends. It finds that out
//! when it asks the next time, and cannot store anything before.
//!
//! The names of sessions say what they are: `bespeak NAME` those of the pool of a process, `bespeak NAME decider` the one with the lock
//! (`starting` until the plan is read), `bespeak NAME standby` the one of a process that stands by (`waiting` until it has seen a leader).

use std::time::{Duration, Instant};

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use super::lease::{DECIDER, LOCK_NUMBER, Lease, NAME_SESSION, STARTING};
use crate::engine::connect::DatabasePlace;
use crate::engine::hosts::APPLICATION;
use crate::engine::{Error, Result, silent_database_error};
use crate::store::Store;

/// How long a leader may be silent: it is heard every second.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// How long one may be silent that still reads the plan: it asks for nothing else meanwhile.
pub const START_MAX: Duration = Duration::from_mins(2);
/// A look that comes so much later than the one before says nothing of the time between: this process stood still itself.
const LOOK_LATE: Duration = Duration::from_millis(1_500);
/// How long one look may take.
const LOOK_WAIT: Duration = Duration::from_secs(4);

/// Takes the lock where it is free.
const TRY_LOCK: &str = "SELECT pg_try_advisory_lock($1)";
/// Whether there is a session of one of these names.
const HAS_SESSION: &str = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
    AND application_name = ANY($1))";
/// How long a process that was just started leaves a free lead to those that stand by. They are ready for it, and look three times
/// meanwhile.
const GIVE_WAY: Duration = Duration::from_millis(600);
/// The ends of the names of the sessions of a process that has seen no leader yet, and of one that stands by.
const WAITING: &str = "waiting";
const STANDBY: &str = "standby";
/// Whether there is another session with a name like this.
const HAS_OTHERS: &str = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
    AND pid <> pg_backend_pid() AND application_name LIKE $1)";
/// The session with the lock: its name, and when it was last at work, in words.
const LEADER: &str = "SELECT a.pid, a.application_name, COALESCE(CAST(a.state_change AS TEXT), '') AS beat \
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted \
    AND l.objsubid = 1 AND (CAST(l.classid AS BIGINT) << 32) + CAST(l.objid AS BIGINT) = $1 AND a.datname = current_database()";
/// Ends the session with the lock, and all others of its process where that has a name.
const DEPOSE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
    AND pid <> pg_backend_pid() AND (pid = $1 OR application_name = $2 \
    OR LEFT(application_name, LENGTH($2) + 1) = $2 || ' ')";

/// A process that stands by.
#[derive(Debug)]
pub struct Candidate {
    store: Store,
    session: Option<Box<PgConnection>>,
    /// When it looked first.
    began: Option<Instant>,
    /// Whether it has seen a leader: its session has the name of one that stands by.
    stands_by: bool,
    seen: Option<LeaderState>,
}

/// The leader as it was last seen.
#[derive(Debug)]
struct LeaderState {
    pid: i32,
    session_name: String,
    beat: String,
    /// Since when it has been so.
    since: Instant,
    /// When it was last looked.
    looked: Instant,
}

/// The result of a look at the lead.
#[derive(Debug)]
pub enum LeaderLook {
    /// It is this process's.
    Leads(Lease),
    /// Another process has it: its name, where it has one.
    Follows(Option<String>),
}

/// Whether a process of this name is there: one that stands by, leads, or is about to.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn has_leader_or_candidate(store: &Store, name: &str) -> Result<bool> {
    let DatabasePlace::Server(hosts) = &store.database.place else {
        return Ok(false);
    };
    let mut session = hosts.connect(WAITING).await?;
    let sessions = [DECIDER, STARTING, STANDBY, WAITING].map(|role| format!("{APPLICATION} {name} {role}"));
    let found = sqlx::query_scalar(HAS_SESSION).bind(sessions.to_vec());
    Ok(found.fetch_one(&mut session).await?)
}

impl Candidate {
    /// The process of a store as one that stands by; none on SQLite, where no other process can.
    pub fn of(store: &Store) -> Option<Self> {
        matches!(store.database.place, DatabasePlace::Server(_)).then(|| Self {
            store: store.clone(),
            session: None,
            began: None,
            stands_by: false,
            seen: None,
        })
    }

    /// Takes the lead where no other process has it, and looks at that process otherwise. One that has been silent for too long is
    /// deposed, so that a later look finds the lead free. A process that was just started leaves the lead to those that stand by, for
    /// [`GIVE_WAY`]. Called every now and then, more often than each second.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; a later look may succeed.
    pub async fn look(&mut self) -> Result<LeaderLook> {
        let looked = tokio::time::timeout(LOOK_WAIT, self.look_at_lock()).await;
        let looked = looked.unwrap_or_else(|_| Err(silent_database_error().into()));
        if looked.is_err() {
            // It may hold the lock by now: the server gives that back with the session.
            self.session = None;
            self.seen = None;
        }
        match looked? {
            Some(follows) => Ok(follows),
            None => self.lead().await.map(LeaderLook::Leads),
        }
    }

    /// Looks for the lock; none where it is ours from now on.
    async fn look_at_lock(&mut self) -> Result<Option<LeaderLook>> {
        let DatabasePlace::Server(hosts) = &self.store.database.place else {
            return Err(Error::LeaseHeld("a file has one process".to_owned()));
        };
        let session = match &mut self.session {
            Some(session) => session,
            none => {
                let role = if self.stands_by { STANDBY } else { WAITING };
                none.insert(Box::new(hosts.connect(role).await?))
            }
        };
        let is_new = !self.stands_by && self.began.get_or_insert_with(Instant::now).elapsed() < GIVE_WAY;
        let gives_way = is_new && {
            let others = sqlx::query_scalar(HAS_OTHERS).bind(format!("{APPLICATION} % {STANDBY}"));
            others.fetch_one(&mut **session).await?
        };
        let has_lock = !gives_way && {
            let tried = sqlx::query_scalar(TRY_LOCK).bind(LOCK_NUMBER);
            tried.fetch_one(&mut **session).await?
        };
        if has_lock {
            return Ok(None);
        }
        let leader = sqlx::query(LEADER)
            .bind(LOCK_NUMBER)
            .fetch_optional(&mut **session)
            .await?;
        let Some(leader) = leader else {
            // It has gone since.
            self.seen = None;
            return Ok(Some(LeaderLook::Follows(None)));
        };
        if !self.stands_by {
            let named = sqlx::query(NAME_SESSION).bind(hosts.name_of_session(STANDBY));
            named.execute(&mut **session).await?;
            self.stands_by = true;
        }
        let (pid, session_name, beat) = (leader.try_get(0)?, leader.try_get(1)?, leader.try_get(2)?);
        let seen = note_seen_leader(self.seen.take(), (pid, session_name, beat), Instant::now());
        let process = leader_in_session_name(&seen.session_name);
        let silent = seen.looked.duration_since(seen.since);
        if silent > silence_allowed_to_leader(&seen.session_name) {
            tracing::warn!(
                leader = process,
                silent_s = silent.as_secs(),
                "the leader is not heard of: its sessions are ended"
            );
            sqlx::query(DEPOSE)
                .bind(pid)
                .bind(process.map(|name| format!("{APPLICATION} {name}")))
                .execute(&mut **session)
                .await?;
        }
        let process = process.map(str::to_owned);
        self.seen = Some(seen);
        Ok(Some(LeaderLook::Follows(process)))
    }

    /// Makes a lease of the session that has the lock.
    async fn lead(&mut self) -> Result<Lease> {
        let Some(session) = self.session.take() else {
            return Err(silent_database_error().into());
        };
        self.seen = None;
        self.store.lease_of_session(session).await
    }
}

/// The name of the process with such a session, where it has one.
fn leader_in_session_name(session: &str) -> Option<&str> {
    let process = session
        .strip_suffix(DECIDER)
        .or_else(|| session.strip_suffix(STARTING))?
        .trim_end();
    process.strip_prefix(APPLICATION)?.strip_prefix(' ')
}

fn silence_allowed_to_leader(session: &str) -> Duration {
    if session.ends_with(STARTING) {
        START_MAX
    } else {
        SILENCE_MAX
    }
}

/// A leader as it is seen now, after it was seen `before`.
fn note_seen_leader(
    before: Option<LeaderState>,
    (pid, session_name, beat): (i32, String, String),
    now: Instant,
) -> LeaderState {
    let same = before.filter(|seen| {
        let is_same = seen.pid == pid && seen.beat == beat && seen.session_name == session_name;
        is_same && now.duration_since(seen.looked) < LOOK_LATE
    });
    LeaderState {
        since: same.map_or(now, |seen| seen.since),
        pid,
        session_name,
        beat,
        looked: now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_session_tells_its_process() {
        assert_eq!(leader_in_session_name("bespeak north decider"), Some("north"));
        assert_eq!(leader_in_session_name("bespeak north starting"), Some("north"));
        assert_eq!(leader_in_session_name("bespeak decider"), None);
        assert_eq!(leader_in_session_name("psql"), None);
    }

    #[test]
    fn only_silence_that_was_looked_at_all_the_time_counts() {
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let look = |before, beat: &str, millis| {
            note_seen_leader(before, (7, "bespeak a decider".into(), beat.into()), at(millis))
        };
        let first = look(None, "1", 0);
        let silent = look(Some(look(Some(first), "1", 1_000)), "1", 2_000);
        assert_eq!(silent.since, at(0));
        let late = look(Some(silent), "1", 60_000);
        assert_eq!(late.since, at(60_000), "this process stood still itself");
        let heard = look(Some(look(Some(late), "1", 60_500)), "2", 61_000);
        assert_eq!(heard.since, at(61_000));
        assert!(
            silence_allowed_to_leader("bespeak a starting") > silence_allowed_to_leader("bespeak a decider")
        );
    }
}
