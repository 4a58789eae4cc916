//! Ends sessions of a Postgres database from outside, as a restart or an administrator would.

use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::random::Random;

/// For how long the server may take to end sessions.
const GONE_WITHIN: Duration = Duration::from_mins(1);

/// Ends sessions on command, a little later each time in a different measure, and counts them.
pub(crate) struct SessionEnder {
    orders: mpsc::UnboundedSender<Order>,
    task: JoinHandle<usize>,
}

enum Order {
    End,
    Say(oneshot::Sender<()>),
}

impl SessionEnder {
    /// For the sessions of a database with an application name that is like a pattern of SQL.
    pub(crate) fn start(url: &str, like: &'static str, seed: u64) -> Self {
        let (orders, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(obey(url.to_owned(), like, seed, received));
        Self { orders, task }
    }

    /// Has the sessions ended soon.
    pub(crate) fn end(&self) {
        self.orders.send(Order::End).expect("it listens");
    }

    /// Waits until everything that was asked for has been done.
    pub(crate) async fn calm(&self) {
        let (say, done) = oneshot::channel();
        self.orders.send(Order::Say(say)).expect("it listens");
        done.await.expect("it answers");
    }

    /// How many sessions were ended.
    pub(crate) async fn finish(self) -> usize {
        drop(self.orders);
        self.task.await.expect("it does not panic")
    }
}

async fn obey(
    url: String,
    like: &'static str,
    seed: u64,
    mut orders: mpsc::UnboundedReceiver<Order>,
) -> usize {
    let mut administrator = PgConnection::connect(&url).await.expect("the server is there");
    let mut random = Random::new(seed);
    let (mut ended, mut told) = (0, Vec::new());
    while let Some(order) = orders.recv().await {
        if let Order::Say(done) = order {
            gone(&mut administrator, std::mem::take(&mut told)).await;
            done.send(()).expect("it waits");
            continue;
        }
        // Each answer from the server gives a batch time for another step or two.
        for _ in 0..random.below(12) {
            sqlx::query("SELECT 1")
                .execute(&mut administrator)
                .await
                .expect("it answers");
        }
        // In the list of columns: as a condition it might be asked of the sessions of other databases.
        let now: Vec<(i32, bool)> = sqlx::query_as(
            "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name LIKE $1",
        )
        .bind(like)
        .fetch_all(&mut administrator)
        .await
        .expect("a superuser may");
        ended += now.len();
        told.extend(now.into_iter().map(|(pid, _)| pid));
    }
    ended
}

/// Waits until the sessions are gone: the server ends one a little after it is told to.
async fn gone(administrator: &mut PgConnection, told: Vec<i32>) {
    let asked = Instant::now();
    while asked.elapsed() < GONE_WITHIN {
        let left: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid = ANY($1)",
        )
        .bind(told.clone())
        .fetch_one(&mut *administrator)
        .await
        .expect("it answers");
        if left == 0 {
            return;
        }
    }
    panic!("sessions are there {GONE_WITHIN:?} after they were ended");
}
