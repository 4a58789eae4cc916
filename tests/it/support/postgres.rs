//! A real PostgreSQL for the whole test run, and a database of its own for each test.
//!
//! The server is started at the first test that wants it, on a free port of the loopback interface, as an unprivileged user where
//! the tests run as root. A shell is its parent and waits for the end of its standard input, which the test process alone holds
//! open. When that process ends, panics or is killed, the shell stops the server and removes its folder.
//! `BESPEAK_TEST_DATABASE_URL` names a server to use instead; databases are then made and dropped there. A test that stops its
//! server, or fills the disk below it, has a server of its own: [`OwnServer`].

use std::fs::{self, File};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sqlx::migrate::MigrateDatabase;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, Postgres};
use store::Store;

use super::{block_on, poll_until};

/// Starts the server and outlives the test process by just so long as it takes to clear up.
///
/// The first argument is the server's folder, the rest its command. A line on standard input stops the server at once, if it
/// still runs, and starts it again. An immediate shutdown is right for data that is not needed any more.
const GUARD: &str = r#"
folder=$1; shift
"$@" & server=$!
while read -r _; do
    kill -QUIT $server 2>/dev/null; wait $server
    "$@" & server=$!
done
kill -QUIT $server 2>/dev/null; wait $server
cd /; rm -rf "$folder"
"#;

/// How often another free port is tried when another program took the first one in between.
const PORT_ATTEMPTS: u32 = 5;

/// How long a server may take to start.
const START_DEADLINE: Duration = Duration::from_mins(1);

/// A database that is dropped with this value.
#[derive(Debug)]
pub(crate) struct Database {
    url: String,
}

impl Database {
    /// Makes a database with our schema and nothing in it.
    ///
    /// On a server of our own it is a copy of one that is migrated once in a test run: the copy takes a tenth of the time. On
    /// another server each is migrated by itself, as the one to copy from would be left behind there.
    ///
    /// # Panics
    /// With one sentence when there is no PostgreSQL.
    pub(crate) fn create() -> Self {
        static MIGRATED: OnceLock<String> = OnceLock::new();
        if server().lifeline.is_none() {
            let database = Self::empty();
            migrate(&database.url);
            return database;
        }
        let template = MIGRATED.get_or_init(|| {
            // It lives as long as the server.
            let template = ManuallyDrop::new(Self::empty());
            migrate(&template.url);
            name_in(&template.url).to_owned()
        });
        Self::copy_of(template)
    }

    /// Makes an empty database.
    ///
    /// # Panics
    /// With one sentence when there is no PostgreSQL.
    pub(crate) fn empty() -> Self {
        Self::copy_of("template0")
    }

    /// Makes a database as a copy of another one, which may have no connection.
    fn copy_of(template: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "bespeak_test_{}_{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let server = &server().url;
        let options = PgConnectOptions::from_str(server).expect("the server's URL is one of PostgreSQL");
        let url = options.clone().database(&name).to_url_lossy().to_string();
        // Names of ours: no quotes in them.
        let statement = format!("CREATE DATABASE {name} TEMPLATE {template}");
        let make = || {
            let (options, statement) = (options.clone(), sqlx::AssertSqlSafe(statement.clone()));
            block_on(async move {
                let mut connection = PgConnection::connect_with(&options).await?;
                connection.execute(statement).await?;
                connection.close().await
            })
        };
        let mut made = make();
        // For the server, a connection to the template may end a moment later than for us.
        poll_until(START_DEADLINE, || {
            let in_use = made.as_ref().err().is_some_and(is_in_use);
            if in_use {
                made = make();
            }
            !in_use
        });
        made.unwrap_or_else(|error| panic!("no database could be made on {server}: {error}"));
        Self { url }
    }

    /// Where it is, for `--database-url`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let url = self.url.clone();
        if let Err(error) = block_on(async move { Postgres::force_drop_database(&url).await }) {
            eprintln!("{} is left behind: {error}", self.url);
        }
    }
}

/// Brings a database's schema up to date, as a service does that starts on it.
fn migrate(url: &str) {
    let url = url.to_owned();
    block_on(async move {
        let store = Store::open(&url).await.expect("an empty database can be opened");
        store.close().await;
    });
}

/// Whether a database could not be copied because it has a connection.
fn is_in_use(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| code == "55006")
}

/// The name of the database in an address of ours.
fn name_in(url: &str) -> &str {
    let path = url.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

/// The server of this test run: the one that the environment names, or one that is started now.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| match std::env::var("BESPEAK_TEST_DATABASE_URL") {
        Ok(url) => Server { url, lifeline: None },
        Err(_) => Server::start(),
    })
}

/// A server of one test's own, which may stop and start it, with its data on a disk that the test chooses. It is reached
/// by a socket in its folder: no other program can take that from it while it is stopped.
#[derive(Debug)]
pub(crate) struct OwnServer(Server);

impl OwnServer {
    /// Starts it with its data below a folder, or in its own.
    pub(crate) fn start(data: Option<&Path>) -> Self {
        Self::of(Server::launch(None, data, &needed_programs(), None))
    }

    /// Starts a standby of this server.
    pub(crate) fn standby(&self) -> Self {
        Self::of(Server::launch(
            None,
            None,
            &needed_programs(),
            Some(self.folder()),
        ))
    }

    fn of(started: Result<Server, String>) -> Self {
        match started {
            Ok(server) => Self(server),
            Err(log) => panic!("PostgreSQL did not start. It says:\n{log}"),
        }
    }

    /// The folder with its socket.
    pub(crate) fn folder(&self) -> &str {
        let (_, folder) = self
            .0
            .url
            .split_once("?host=")
            .expect("it is reached by a socket");
        folder
    }

    /// Where its first database is, for `--database-url`.
    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }

    /// Ends it as a crash would, if it has not ended by itself, and starts it again; does not wait until it answers.
    pub(crate) fn restart(&mut self) {
        let lifeline = self.0.lifeline.as_mut().expect("a server of our own has one");
        lifeline.write_all(b"again\n").expect("its guard reads");
    }
}

/// A running server; where it is ours, it runs for as long as the lifeline is open.
#[derive(Debug)]
struct Server {
    url: String,
    lifeline: Option<ChildStdin>,
}

impl Server {
    fn start() -> Self {
        let programs = needed_programs();
        for _ in 0..PORT_ATTEMPTS {
            match Self::launch(Some(free_port()), None, &programs, None) {
                Ok(server) => return server,
                Err(log) if log.contains(PORT_TAKEN) => {}
                Err(log) => panic!("PostgreSQL did not start. It says:\n{log}"),
            }
        }
        panic!("PostgreSQL found no free port in {PORT_ATTEMPTS} attempts.");
    }

    /// Starts a server on a port, or with a socket in its folder only; its log when it does not come up.
    ///
    /// That it is ready is read from its log, not asked at the port: another server might answer there.
    #[expect(
        clippy::zombie_processes,
        reason = "the guard outlives this process by design"
    )]
    fn launch(
        port: Option<u16>,
        data: Option<&Path>,
        programs: &Path,
        primary: Option<&str>,
    ) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("bespeak-postgres-")
            .tempdir()
            .expect("a temporary folder can be made")
            .keep();
        let user = Unprivileged::needed();
        let command = |program: &Path| {
            let mut command = Command::new(program);
            // English messages wherever the tests run; a folder that the unprivileged user may enter.
            command.env("LC_ALL", "C").current_dir(&folder);
            if let Some(user) = &user {
                command.uid(user.uid).gid(user.gid);
            }
            command
        };
        if let Some(user) = &user {
            for folder in [Some(folder.as_path()), data].into_iter().flatten() {
                chown(folder, Some(user.uid), Some(user.gid)).expect("root may give its folder away");
            }
        }
        let data = data.unwrap_or(&folder).join("data");
        let mut make = match primary {
            None => {
                let mut make = command(&programs.join("initdb"));
                make.args(["--username=postgres", "--auth=trust", "--encoding=UTF8"])
                    // The log of a small disk is in small pieces.
                    .args(port.is_none().then_some("--wal-segsize=1"));
                make
            }
            Some(primary) => {
                // The search path may have only links to the programs that every server needs.
                let server = programs.join("postgres").canonicalize().expect("it is there");
                let mut make = command(&server.with_file_name("pg_basebackup"));
                make.args([
                    "--username=postgres",
                    "--checkpoint=fast",
                    "--write-recovery-conf",
                    "--host",
                ])
                .arg(primary);
                make
            }
        };
        let made = make.args(["--no-sync", "--pgdata"]).arg(&data).output();
        let made = made.expect("the program can be run");
        assert!(
            made.status.success(),
            "no data were made:\n{}",
            String::from_utf8_lossy(&made.stderr)
        );

        let (reached, url) = match port {
            Some(port) => (
                [
                    format!("port={port}"),
                    "listen_addresses=127.0.0.1".into(),
                    "unix_socket_directories=".into(),
                ],
                format!("postgres://postgres@127.0.0.1:{port}/postgres"),
            ),
            None => (
                [
                    "listen_addresses=".into(),
                    format!("unix_socket_directories={}", folder.display()),
                    // A small disk has no room for much log to be kept.
                    "max_wal_size=8MB".into(),
                ],
                format!("postgres://postgres@localhost/postgres?host={}", folder.display()),
            ),
        };
        let log = folder.join("log");
        let output = File::create(&log).expect("a log in the server's folder");
        let mut guard = command(Path::new("/bin/sh"))
            .args(["-c", GUARD, "postgres-guard"])
            .arg(&folder)
            .arg(programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(reached.iter().flat_map(|setting| ["-c", setting]))
            .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
            // A group of its own, so that an interrupt from the terminal leaves the guard to do its work.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output.try_clone().expect("a second handle of the log"))
            .stderr(output)
            .spawn()
            .expect("a shell can be run");
        let lifeline = guard.stdin.take().expect("the guard was given a pipe");

        let said = |what: &str| fs::read_to_string(&log).is_ok_and(|log| log.contains(what));
        let done = poll_until(START_DEADLINE, || said(READY) || said("FATAL"));
        if done && said(READY) {
            Ok(Self {
                url,
                lifeline: Some(lifeline),
            })
        } else {
            Err(fs::read_to_string(&log).unwrap_or_default())
        }
    }
}

/// The beginning of the log line when the server takes connections, or those that only read.
const READY: &str = "database system is ready to accept";

/// The log line when another program took the port first.
const PORT_TAKEN: &str = "could not create any TCP/IP sockets";

/// The server's settings. The data on disk need not survive a power cut, only the death of processes.
const SETTINGS: [&str; 2] = ["max_connections=300", "fsync=off"];

/// The folder with `initdb` and `postgres`.
///
/// # Panics
/// With one sentence when there is none.
fn needed_programs() -> PathBuf {
    programs().unwrap_or_else(|| {
        panic!(
            "These tests need PostgreSQL: install its server (initdb and postgres) as scripts/test does, \
             or set BESPEAK_TEST_DATABASE_URL."
        )
    })
}

/// The folder with `initdb` and `postgres`: one of the search path, or the newest of the folders that Debian keeps apart.
fn programs() -> Option<PathBuf> {
    let has_both = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut debian: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    debian.sort_unstable_by_key(|(version, _)| std::cmp::Reverse(*version));
    std::env::split_paths(&path)
        .chain(debian.into_iter().map(|(_, folder)| folder))
        .find(has_both)
}

/// A port of the loopback interface that is free at this moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback interface");
    listener
        .local_addr()
        .expect("a bound listener has an address")
        .port()
}

/// A user to run the server as: it refuses to run as root.
struct Unprivileged {
    uid: u32,
    gid: u32,
}

impl Unprivileged {
    /// The user to change to; `None` where the tests do not run as root.
    fn needed() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").expect("root can read the list of users");
        let user = ["postgres", "nobody"].into_iter().find_map(|name| {
            let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut ids = line.split(':').skip(2).map(str::parse);
            Some(Self {
                uid: ids.next()?.ok()?,
                gid: ids.next()?.ok()?,
            })
        });
        Some(user.expect("a user postgres or nobody, as PostgreSQL refuses to run as root"))
    }
}

#[test]
fn a_test_database_is_empty_its_own_and_gone_afterwards() {
    let (one, two) = (Database::empty(), Database::empty());
    let tables = |url: &str, statement: &'static str| {
        let url = url.to_owned();
        block_on(async move {
            let mut connection = PgConnection::connect(&url).await?;
            connection.execute(statement).await?;
            sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'")
                .fetch_one(&mut connection)
                .await
        })
    };
    assert_eq!(
        tables(one.url(), "CREATE TABLE only_in_one (id BIGINT)").expect("one answers"),
        1
    );
    assert_eq!(tables(two.url(), "SELECT 1").expect("two answers"), 0);
    let url = two.url().to_owned();
    drop(two);
    assert!(tables(&url, "SELECT 1").is_err(), "{url} still answers");
}

#[test]
fn a_copy_of_the_migrated_database_has_the_schema_and_is_its_own() {
    let (one, two) = (Database::create(), Database::create());
    let count = |url: &str, statement: &'static str| {
        let url = url.to_owned();
        block_on(async move {
            let mut connection = PgConnection::connect(&url).await?;
            connection.execute(statement).await?;
            sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM template_versions")
                .fetch_one(&mut connection)
                .await
        })
    };
    let add = "INSERT INTO template_versions VALUES ('00000000-0000-0000-0000-000000000001', 'only in one')";
    assert_eq!(count(one.url(), add).expect("one answers"), 1);
    assert_eq!(count(two.url(), "SELECT 1").expect("two answers"), 0);
}
