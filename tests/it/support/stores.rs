//! A database of either engine for a test, and the same facts asserted on both.

use std::fs;
use std::future::Future;
use std::sync::OnceLock;

use store::Store;

use super::{block_on, postgres, run};

/// A database that goes with this value.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    url: String,
    _kept: StoreGuard,
}

#[derive(Debug)]
enum StoreGuard {
    Folder(#[expect(dead_code, reason = "removes the folder when it is dropped")] tempfile::TempDir),
    Server(#[expect(dead_code, reason = "drops the database when it is dropped")] postgres::Database),
}

impl TestDatabase {
    /// A SQLite file with our schema and nothing in it, in a folder of its own: a copy of one that is migrated once in a
    /// test run.
    pub(crate) fn sqlite() -> Self {
        static MIGRATED: OnceLock<Vec<u8>> = OnceLock::new();
        let migrated = MIGRATED.get_or_init(|| {
            let database = Self::empty_sqlite();
            let url = database.url.clone();
            block_on(async move {
                let store = Store::open(&url).await.expect("a new database can be opened");
                store.close().await;
            });
            fs::read(database.path()).expect("the file is there")
        });
        let database = Self::empty_sqlite();
        fs::write(database.path(), migrated).expect("a file can be written");
        database
    }

    /// A SQLite file that does not exist yet, in a folder of its own.
    pub(crate) fn empty_sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let url = format!("sqlite:{}", folder.path().join("bespeak.db").display());
        Self {
            url,
            _kept: StoreGuard::Folder(folder),
        }
    }

    /// A database of the test run's Postgres, with our schema and nothing in it.
    pub(crate) fn postgres() -> Self {
        Self::of(postgres::Database::create())
    }

    /// An empty database of the test run's Postgres.
    pub(crate) fn empty_postgres() -> Self {
        Self::of(postgres::Database::empty())
    }

    fn of(database: postgres::Database) -> Self {
        Self {
            url: database.url().to_owned(),
            _kept: StoreGuard::Server(database),
        }
    }

    /// The file of a SQLite database.
    fn path(&self) -> &str {
        self.url.strip_prefix("sqlite:").expect("a SQLite file")
    }

    /// The value for `--database-url`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Runs a test on a database.
pub(crate) fn with<F, R>(database: &TestDatabase, fact: F)
where
    F: FnOnce(String) -> R,
    R: Future<Output = ()>,
{
    run(fact(database.url().to_owned()));
}

/// Makes two tests of each function: it is given the address of a database with our schema and
/// nothing in it, of SQLite and of Postgres.
///
/// Nothing in the tests behind `a_release_on_postgres:` depends on the engine: a release runs them on Postgres.
macro_rules! on_both_engines {
    (a_release_on_postgres: $($release:ident),+ $(,)?) => {
        $crate::support::stores::on_both_engines!(; a_release_on_postgres: $($release),+);
    };
    ($($(#[$mark:meta])* $fact:ident),* $(,)? $(; a_release_on_postgres: $($release:ident),+ $(,)?)?) => {
        mod sqlite {
            $(#[test]
            $(#[$mark])*
            fn $fact() {
                crate::support::stores::with(&crate::support::stores::TestDatabase::sqlite(), super::$fact);
            })*
            $($(#[test]
            fn $release() {
                crate::support::stores::with(&crate::support::stores::TestDatabase::sqlite(), super::$release);
            })+)?
        }
        mod postgres {
            $(#[test]
            $(#[$mark])*
            fn $fact() {
                crate::support::stores::with(&crate::support::stores::TestDatabase::postgres(), super::$fact);
            })*
            $($(#[test]
            #[ignore = "nothing in it depends on the engine: a release runs it"]
            fn $release() {
                crate::support::stores::with(&crate::support::stores::TestDatabase::postgres(), super::$release);
            })+)?
        }
    };
}
pub(crate) use on_both_engines;
