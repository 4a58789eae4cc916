//! A database of either engine for a test, and the same facts asserted on both.

use std::future::Future;

use super::{postgres, run};

/// An empty database that goes with this value.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    url: String,
    _kept: Kept,
}

#[derive(Debug)]
enum Kept {
    Folder(#[expect(dead_code, reason = "removes the folder when it is dropped")] tempfile::TempDir),
    Server(#[expect(dead_code, reason = "drops the database when it is dropped")] postgres::Database),
}

impl TestDatabase {
    /// A SQLite file that does not exist yet, in a folder of its own.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let url = format!("sqlite:{}", folder.path().join("bespeak.db").display());
        Self {
            url,
            _kept: Kept::Folder(folder),
        }
    }

    /// An empty database of the test run's Postgres.
    pub(crate) fn postgres() -> Self {
        let database = postgres::Database::create();
        Self {
            url: database.url().to_owned(),
            _kept: Kept::Server(database),
        }
    }

    /// What `--database-url` takes.
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

/// Makes two tests of each function: it is given the address of an empty database, of SQLite and of Postgres.
macro_rules! on_both_engines {
    ($($fact:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $fact() {
                crate::support::stores::with(&crate::support::stores::TestDatabase::sqlite(), super::$fact);
            })+
        }
        mod postgres {
            $(#[test]
            fn $fact() {
                crate::support::stores::with(&crate::support::stores::TestDatabase::postgres(), super::$fact);
            })+
        }
    };
}
pub(crate) use on_both_engines;
