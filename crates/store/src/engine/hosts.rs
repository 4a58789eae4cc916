//! The servers of a PostgreSQL database, and which of them is the primary.
//!
//! An address may name several servers that replicate each other. One of them is the primary and writes, the others are standbys.
//! When the primary dies, another engine makes a standby the primary; this file only finds it. Every session goes to the server
//! that was last found. Where that one does not take sessions, all servers are asked at the same time. Of several that say that
//! they are the primary, the one with the latest timeline is: each promotion begins a new one, so the others have been replaced and
//! do not know it yet. A server of an earlier timeline than was seen before is never taken.
//!
//! A server becomes a standby only by a restart, which ends its sessions, so that a session which was opened with a primary is
//! never with a standby.
//!
//! With one host nothing of this happens, except that a new session asks whether its server is a standby.

use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection as _, Row};

use super::error::silent_database_error;

/// The beginning of the names of our sessions.
pub(crate) const APPLICATION: &str = "bespeak";
/// How long one of several servers may take to open a session, before it counts as gone. All are asked at the same time.
const HOST_WAIT: Duration = Duration::from_secs(1);
/// After how long without a session, or without an answer, it is looked whether the primary is another one now.
const DOUBT_AFTER: Duration = Duration::from_millis(500);
/// How long to wait between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The kind of the error that there is no primary, which may pass.
pub(super) const NO_PRIMARY: ErrorKind = ErrorKind::NotConnected;

/// Asked in each new session: whether the server is a standby. Acknowledged means durable, also on a server with another default; a
/// stricter default is kept.
const BEGIN_SESSION: &str = "SELECT pg_is_in_recovery() AS standby, \
    CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END";
/// Asked in each new session with one of several servers: whether the server is a standby, and the timeline of a primary.
const BEGIN_SESSION_OF_SEVERAL: &str = "SELECT pg_is_in_recovery() AS standby, \
    CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END, \
    CASE WHEN pg_is_in_recovery() THEN 0 \
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END AS timeline";

/// The servers of one database.
pub(crate) struct Hosts {
    /// At least one, in the order of the address.
    all: Vec<PgConnectOptions>,
    known: Mutex<KnownPrimary>,
    /// When the last search ended; one goes on at a time.
    searched: tokio::sync::Mutex<Option<Instant>>,
}

/// The primary as it was last seen.
#[derive(Debug, Clone, Copy, Default)]
struct KnownPrimary {
    /// Its place among the hosts.
    primary: usize,
    timeline: i64,
}

impl Hosts {
    /// The first one counts as the primary until another one is found.
    pub(super) fn new(all: Vec<PgConnectOptions>) -> Self {
        Self {
            all,
            known: Mutex::default(),
            searched: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn has_several(&self) -> bool {
        self.all.len() > 1
    }

    fn known(&self) -> KnownPrimary {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of the primary among the hosts, as far as is known.
    pub(super) fn primary(&self) -> usize {
        self.known().primary
    }

    /// The options of the host at a place.
    pub(super) fn options(&self, at: usize) -> Option<&PgConnectOptions> {
        self.all.get(at)
    }

    /// The name of a session that is more than one of the pool: it ends with its role.
    pub(crate) fn name_of_session(&self, role: &str) -> String {
        format!("{} {role}", self.name_of_sessions())
    }

    /// The name of the sessions of this process.
    fn name_of_sessions(&self) -> &str {
        let first = self.all.first();
        first
            .and_then(PgConnectOptions::get_application_name)
            .unwrap_or(APPLICATION)
    }

    /// Opens a session with the primary that no pool has, in this role.
    ///
    /// # Errors
    /// The errors of the only host; of several, a text that says of each why it is not the primary.
    pub(crate) async fn connect(&self, role: &str) -> sqlx::Result<PgConnection> {
        let name = &self.name_of_session(role);
        if self.has_several() {
            if let Ok((session, _)) = self.open(self.primary(), name).await {
                return Ok(session);
            }
            self.look_for_primary().await?;
        }
        Ok(self.open(self.primary(), name).await?.0)
    }

    /// The options of the primary, for a session in this role that something else opens.
    ///
    /// # Errors
    /// The errors of [`Self::connect`].
    pub(crate) async fn options_of_primary(&self, role: &str) -> sqlx::Result<PgConnectOptions> {
        if self.has_several() {
            self.connect(role).await?.close().await?;
        }
        let options = self.options(self.primary()).ok_or_else(silent_database_error)?;
        Ok(options.clone().application_name(&self.name_of_session(role)))
    }

    /// Returns when another host than this is the primary: looks again and again. With one host that never happens.
    pub(super) async fn wait_for_other_primary(&self, primary: usize) {
        if !self.has_several() {
            std::future::pending::<()>().await;
        }
        let mut wait = DOUBT_AFTER;
        while self.primary() == primary {
            tokio::time::sleep(wait).await;
            // That there is no primary now is no news.
            let _ = self.look_for_primary().await;
            wait = LOOK_EVERY;
        }
    }

    /// Asks all servers which of them is the primary, and takes note of it.
    ///
    /// # Errors
    /// The error of the only host; of several, a text that says of each why it is not the primary.
    pub(super) async fn look_for_primary(&self) -> sqlx::Result<()> {
        let asked = Instant::now();
        let mut searched = self.searched.lock().await;
        if searched.is_some_and(|ended| ended > asked) {
            // Another caller has just looked.
            return Ok(());
        }
        let before = self.known().timeline;
        let ask = |at| async move { (at, self.open(at, self.name_of_sessions()).await) };
        let mut answers: FuturesUnordered<_> = (0..self.all.len()).map(ask).collect();
        let (mut found, mut reasons) = (None, Vec::new());
        while let Some((at, seen)) = answers.next().await {
            match seen {
                Ok((_, timeline)) => {
                    if found.is_none_or(|(_, latest)| timeline > latest) {
                        found = Some((at, timeline));
                    }
                    // Promoted since: one that stands still need not be waited for.
                    if before > 0 && timeline > before {
                        break;
                    }
                }
                Err(why) => reasons.push((at, why)),
            }
        }
        *searched = Some(Instant::now());
        if let Some((primary, timeline)) = found {
            self.note(primary, timeline);
            return Ok(());
        }
        if !self.has_several() {
            return Err(reasons.pop().map_or_else(silent_database_error, |(_, why)| why));
        }
        reasons.sort_unstable_by_key(|(at, _)| *at);
        let reasons = reasons.iter().map(|(at, why)| match why {
            sqlx::Error::Io(why) => format!("{}: {why}", self.name(*at)),
            why => format!("{}: {why}", self.name(*at)),
        });
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        let why = format!("none of its servers is the primary now ({reasons})");
        Err(sqlx::Error::Io(std::io::Error::new(NO_PRIMARY, why)))
    }

    fn note(&self, primary: usize, timeline: i64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.timeline = known.timeline.max(timeline);
        if known.primary != primary {
            tracing::warn!(
                before = self.name(known.primary),
                now = self.name(primary),
                timeline,
                "another server of the database is the primary now"
            );
            known.primary = primary;
        }
    }

    /// Opens a session with a host, if it is the primary. Answers with its timeline.
    async fn open(&self, at: usize, name: &str) -> sqlx::Result<(PgConnection, i64)> {
        let options = self.options(at).ok_or_else(silent_database_error)?;
        let opened = async {
            let mut session = options.clone().application_name(name).connect().await?;
            let timeline = self.begin_session(&mut session).await?;
            Ok((session, timeline))
        };
        if !self.has_several() {
            return opened.await;
        }
        tokio::time::timeout(HOST_WAIT, opened)
            .await
            .unwrap_or_else(|_| Err(silent_database_error()))
    }

    /// Makes a new session durable, and refuses it where its server is a standby, or has been replaced. Answers with the timeline.
    pub(super) async fn begin_session(&self, session: &mut PgConnection) -> sqlx::Result<i64> {
        let statement = if self.has_several() {
            BEGIN_SESSION_OF_SEVERAL
        } else {
            BEGIN_SESSION
        };
        let row = sqlx::raw_sql(statement).fetch_one(session).await?;
        if row.try_get("standby")? {
            return Err(refused(if self.has_several() {
                "it is a standby".into()
            } else {
                "this server is a standby, which writes nothing: name the primary, or all servers, in the address \
                 (postgres://user@one:5432,two:5432/database?target_session_attrs=read-write)"
                    .into()
            }));
        }
        if !self.has_several() {
            return Ok(0);
        }
        let timeline = row.try_get("timeline")?;
        if timeline < self.known().timeline {
            return Err(refused(
                "another server has taken its place as the primary".into(),
            ));
        }
        Ok(timeline)
    }

    /// The place of a host, as operators know it.
    fn name(&self, at: usize) -> String {
        let name = |connect: &PgConnectOptions| match connect.get_socket() {
            Some(folder) => folder.display().to_string(),
            None => format!("{}:{}", connect.get_host(), connect.get_port()),
        };
        self.all.get(at).map(name).unwrap_or_default()
    }
}

impl std::fmt::Debug for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Their options have passwords.
        let names = (0..self.all.len()).map(|at| self.name(at));
        f.debug_list().entries(names).finish()
    }
}

/// A server that answers and cannot be used.
fn refused(why: String) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::other(why))
}
