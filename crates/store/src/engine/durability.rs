//! What the settings of a PostgreSQL server mean for what is acknowledged.

use super::connection::{Connection, Engine};
use super::error::{Error, Result};

/// The usual value of `synchronous_commit` is the one before a session of ours raises it.
const SETTINGS: &str = "SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages, \
    (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit') AS usual, \
    current_setting('synchronous_standby_names') AS standbys, \
    (SELECT COUNT(*) FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup') AS replicas";

/// The settings by which something that was acknowledged may be lost, each in words that say what to do.
pub(crate) async fn weak_durability_settings(connection: &mut Connection) -> Result<Vec<&'static str>> {
    if connection.engine() == Engine::Sqlite {
        return Ok(Vec::new());
    }
    let read = connection.read(SETTINGS, &[], |row| {
        let is_off = |name| Ok::<_, Error>(row.text(name)? == "off");
        let (usual, has_standbys) = (row.text("usual")?, !row.text("standbys")?.is_empty());
        let has_replicas = row.integer("replicas")? > 0;
        Ok([
            (is_off("fsync")?, "the database has fsync = off: a power cut may destroy it; switch it on"),
            (
                is_off("pages")?,
                "the database has full_page_writes = off: a power cut may destroy it; switch it on",
            ),
            (
                usual == "off",
                "the database has synchronous_commit = off, and each session of this service raises it to on; nothing is to be done",
            ),
            (
                usual == "local" && has_standbys,
                "the database has synchronous_commit = local: an acknowledged agreement may be lost at a failover, as no commit \
                 waits for a standby; set it to on",
            ),
            (
                has_replicas && !has_standbys,
                "the database has replicas and synchronous_standby_names is empty: an acknowledged agreement may be lost at a \
                 failover; set it, or synchronous_mode of Patroni",
            ),
        ])
    });
    let found = read.await?.into_iter().flatten();
    Ok(found
        .filter(|(is_weak, _)| *is_weak)
        .map(|(_, words)| words)
        .collect())
}
