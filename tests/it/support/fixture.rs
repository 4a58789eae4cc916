//! The data that a version leaves behind, as text: the rows of a database and the files of a service.
//!
//! The schema is not in it. The migrations make it; the rows of `schema_migrations` with their checksums are in it, so that a migration
//! that was edited is found.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

/// The text in place of the folder of a service.
const FOLDER: &str = "{FOLDER}";

/// Names a folder for the data that the story of the fixtures leaves behind.
const KEEP: &str = "BESPEAK_TEST_KEEP";

/// A connection to either engine.
enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Connection {
    async fn open(url: &str) -> sqlx::Result<Self> {
        Ok(if url.starts_with("sqlite:") {
            Self::Sqlite(SqliteConnection::connect(&format!("{url}?mode=rwc")).await?)
        } else {
            Self::Postgres(PgConnection::connect(url).await?)
        })
    }

    /// The one column of a query, which is text.
    async fn texts(&mut self, sql: String) -> sqlx::Result<Vec<String>> {
        let query = AssertSqlSafe(sql);
        match self {
            Self::Sqlite(connection) => sqlx::query_scalar(query).fetch_all(connection).await,
            Self::Postgres(connection) => sqlx::query_scalar(query).fetch_all(connection).await,
        }
    }

    async fn script(&mut self, sql: String) -> sqlx::Result<()> {
        let script = sqlx::raw_sql(AssertSqlSafe(sql));
        match self {
            Self::Sqlite(connection) => script.execute(connection).await.map(drop),
            Self::Postgres(connection) => script.execute(connection).await.map(drop),
        }
    }

    async fn tables(&mut self) -> sqlx::Result<Vec<String>> {
        let sql = match self {
            Self::Sqlite(_) => {
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
            }
            Self::Postgres(_) => {
                "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
            }
        };
        self.texts(sql.to_owned()).await
    }

    async fn columns(&mut self, table: &str) -> sqlx::Result<Vec<String>> {
        let sql = match self {
            Self::Sqlite(_) => format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid"),
            Self::Postgres(_) => format!(
                "SELECT column_name::text FROM information_schema.columns \
                 WHERE table_schema = 'public' AND table_name = '{table}' ORDER BY ordinal_position"
            ),
        };
        self.texts(sql).await
    }

    /// An expression for a column's value as SQL writes it.
    fn literal(&self, column: &str) -> String {
        match self {
            Self::Sqlite(_) => format!("quote({column})"),
            Self::Postgres(_) => format!("quote_nullable({column}::text)"),
        }
    }
}

/// The rows of a database as statements, a statement a table.
pub(crate) async fn dump(url: &str) -> sqlx::Result<String> {
    let mut connection = Connection::open(url).await?;
    let mut text = String::new();
    for table in connection.tables().await? {
        let columns = connection.columns(&table).await?;
        let row: Vec<_> = columns.iter().map(|column| connection.literal(column)).collect();
        let order = columns[..columns.len().min(2)].join(", ");
        let row = row.join(" || ', ' || ");
        let rows = connection
            .texts(format!("SELECT {row} FROM {table} ORDER BY {order}"))
            .await?;
        if !rows.is_empty() {
            // Rows that a migration has put there go first.
            let _ = writeln!(
                text,
                "DELETE FROM {table}; INSERT INTO {table} ({}) VALUES",
                columns.join(", ")
            );
            let _ = writeln!(text, "({});", rows.join("),\n("));
        }
    }
    Ok(text)
}

/// Fills an empty database as it was at a version: its schema, and the rows of a dump.
pub(crate) async fn load(url: &str, version: u32, rows: &str) -> sqlx::Result<()> {
    let mut connection = Connection::open(url).await?;
    let sqlite = matches!(connection, Connection::Sqlite(_));
    // As the store makes it before the first migration.
    let mut script =
        "CREATE TABLE schema_migrations (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, \
                      checksum TEXT NOT NULL);\n"
            .to_owned();
    for (number, path) in migrations("migrations") {
        if number > version {
            break;
        }
        script += &fs::read_to_string(&path).expect("a migration can be read");
        let own = Path::new("migrations/postgres").join(path.file_name().expect("a file"));
        if !sqlite && let Ok(own) = fs::read_to_string(in_repository(&own)) {
            script += &own;
        }
    }
    // Rows refer to others that come later.
    let (before, after) = if sqlite {
        ("PRAGMA foreign_keys = OFF; BEGIN;\n", "COMMIT;")
    } else {
        ("BEGIN; SET session_replication_role = replica;\n", "COMMIT;")
    };
    connection.script(script).await?;
    connection.script(format!("{before}{rows}{after}")).await
}

/// The tables of a database.
pub(crate) async fn tables(url: &str) -> sqlx::Result<Vec<String>> {
    Connection::open(url).await?.tables().await
}

/// The values in a column of a table, as text; null is left out. Ids are as they are written.
pub(crate) async fn column(url: &str, table: &str, name: &str) -> sqlx::Result<Vec<String>> {
    let mut connection = Connection::open(url).await?;
    let value = match connection {
        Connection::Sqlite(_) => {
            format!("CASE typeof({name}) WHEN 'blob' THEN lower(hex({name})) ELSE CAST({name} AS TEXT) END")
        }
        Connection::Postgres(_) => format!("CAST({name} AS TEXT)"),
    };
    connection
        .texts(format!("SELECT {value} FROM {table} WHERE {name} IS NOT NULL"))
        .await
}

/// The migrations of a folder of the repository in their order, each with its version.
pub(crate) fn migrations(folder: &str) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(in_repository(Path::new(folder))).expect("migrations can be listed");
    let numbered = |path: PathBuf| {
        let version = path.file_name()?.to_str()?.split_once('_')?.0.parse().ok()?;
        Some((version, path))
    };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| numbered(entry.path()))
        .collect();
    found.sort();
    found
}

/// A path of the repository.
pub(crate) fn in_repository(path: &Path) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The files of a folder as text: of each its kind, permissions, length in bytes and path, and then its content. A file that is
/// no text is left out, as are databases, sockets and the key of an operator, which a service makes itself.
fn pack(folder: &Path) -> String {
    let mut text = String::new();
    pack_into(&mut text, folder, folder);
    text
}

/// A text without the place of a service's folder.
fn portable(text: &str, folder: &Path) -> String {
    text.replace(&folder.display().to_string(), FOLDER)
}

fn pack_into(text: &mut String, top: &Path, folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let Ok(found) = path.symlink_metadata() else {
            continue;
        };
        let mode = found.permissions().mode() & 0o7777;
        let name = path
            .strip_prefix(top)
            .expect("it is in there")
            .display()
            .to_string();
        if found.is_dir() {
            let _ = writeln!(text, "=== folder {mode:o} 0 {name}");
            pack_into(text, top, &path);
        } else if found.is_symlink() {
            let target = fs::read_link(&path).expect("a link leads somewhere");
            let target = portable(&target.display().to_string(), top);
            let _ = writeln!(text, "=== link {mode:o} {} {name}\n{target}", target.len());
        } else if found.is_file() && !is_left_out(&name) {
            let Ok(content) = fs::read_to_string(&path) else {
                continue;
            };
            let content = portable(&content, top);
            let _ = writeln!(text, "=== file {mode:o} {} {name}\n{content}", content.len());
        }
    }
}

fn is_left_out(name: &str) -> bool {
    // The signed heads go with the trail's key, which is no text.
    let left_out = [
        "data/operator.key",
        "data/trail-heads",
        "data/trail-end",
        "data/trail.pub",
        "log",
        "output",
    ];
    left_out.contains(&name) || name.starts_with("data/bespeak.db")
}

/// Makes the files in a folder again.
pub(crate) fn unpack(mut text: &str, folder: &Path) {
    // The permissions of folders come last: some may not be written to.
    let mut folders = Vec::new();
    while let Some(rest) = text.strip_prefix("=== ") {
        let (head, rest) = rest.split_once('\n').expect("a line");
        let mut head = head.splitn(4, ' ');
        let mut next = || head.next().expect("kind, permissions, length and path");
        let (kind, mode, length, path) = (next(), next(), next(), folder.join(next()));
        let mode = Permissions::from_mode(u32::from_str_radix(mode, 8).expect("octal digits"));
        let (content, rest) = rest.split_at(length.parse().expect("a number of bytes"));
        let content = content.replace(FOLDER, &folder.display().to_string());
        match kind {
            "folder" => {
                fs::create_dir_all(&path).expect("a folder can be made");
                folders.push((path, mode));
            }
            "link" => symlink(content, path).expect("a link can be made"),
            _ => {
                fs::write(&path, content).expect("a file can be written");
                fs::set_permissions(path, mode).expect("one's file can be changed");
            }
        }
        text = if kind == "folder" { rest } else { &rest[1..] };
    }
    assert_eq!(text, "", "this is no entry");
    for (path, mode) in folders.into_iter().rev() {
        fs::set_permissions(path, mode).expect("one's folder can be changed");
    }
}

/// Keeps the rows of a database as those of its engine, where that is wanted.
pub(crate) async fn keep_rows(url: &str) -> sqlx::Result<()> {
    if let Some(path) = kept(url, "sql") {
        fs::write(path, dump(url).await?).expect("rows can be kept");
    }
    Ok(())
}

/// Keeps the files of the service on a database, where that is wanted.
pub(crate) fn keep_files(url: &str, folder: &Path) {
    if let Some(path) = kept(url, "files") {
        fs::write(path, pack(folder)).expect("files can be kept");
    }
}

/// Where something is kept.
fn kept(url: &str, what: &str) -> Option<PathBuf> {
    let engine = if url.starts_with("sqlite") {
        "sqlite"
    } else {
        "postgres"
    };
    std::env::var_os(KEEP).map(|folder| Path::new(&folder).join(format!("{engine}.{what}")))
}
