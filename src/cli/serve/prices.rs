//! The prices of energy over time, which others may write: they are read beside everything else, again and again. Their address may
//! be silent, and nothing waits for it but the start, a little.

use std::future::pending;
use std::time::Duration;

use planner::{Kwh, SetTariff};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use writer::Planner;

use crate::cli::config::energy::EnergySeries;

/// How long a start waits for the prices of an address, so that its first decisions know them. One that answers does so in less.
const FIRST_PRICES: Duration = Duration::from_secs(2);

/// The lines of a series, or why they cannot be read.
type Lines = Result<Vec<Kwh>, String>;

/// Reads the prices of energy.
pub(super) struct Prices {
    planner: Planner,
    /// Where they stand, with the lines that were taken over last.
    series: Option<EnergySeries>,
    /// As long as they are being read.
    reading: Option<AbortOnDropHandle<Lines>>,
    /// Then they are read again.
    due: Instant,
}

impl Prices {
    /// The prices of a configuration that was taken over. A file has been read with it. An address begins to be read now.
    pub(super) fn new(planner: Planner, series: Option<EnergySeries>) -> Self {
        let address = series.as_ref().filter(|series| !series.is_file());
        let every = series.as_ref().map(|series| series.wait(true));
        Self {
            planner,
            reading: address.map(begin_reading_prices),
            due: Instant::now() + every.unwrap_or_default(),
            series,
        }
    }

    /// Goes on with those of another configuration that was taken over. An address that is being read goes on being read.
    pub(super) fn go_on_with(&mut self, series: Option<EnergySeries>) {
        let (before, planner) = (self.series.take(), self.planner.clone());
        let is_same = before
            .zip(series.as_ref())
            .is_some_and(|(one, other)| one.is_same(other));
        let reading = self.reading.take().filter(|_| is_same);
        *self = Self::new(planner, series);
        if self.reading.is_some() && reading.is_some() {
            self.reading = reading;
        }
    }

    /// Where they stand, with the lines that were taken over last; none where no configuration says it.
    pub(super) fn series(&self) -> Option<&EnergySeries> {
        self.series.as_ref()
    }

    /// Waits a little for the first prices of an address.
    pub(super) async fn await_first(&mut self) {
        if self.reading.is_some()
            && let Ok(lines) = timeout(FIRST_PRICES, self.next()).await
        {
            self.take_over(lines).await;
        }
    }

    /// What is read next. Where this is not waited for any more, the reading goes on.
    pub(super) async fn next(&mut self) -> Lines {
        let Some(series) = &self.series else {
            return pending().await;
        };
        if self.reading.is_none() {
            sleep_until(self.due).await;
        }
        let read = self
            .reading
            .get_or_insert_with(|| begin_reading_prices(series))
            .await;
        self.reading = None;
        read.unwrap_or_else(|why| Err(why.to_string()))
    }

    /// Takes over what was read, if it has changed. Where there is nothing, the last lines hold.
    pub(super) async fn take_over(&mut self, read: Lines) {
        let Some(series) = &mut self.series else { return };
        let is_taken = match read {
            Ok(lines) if lines == series.lines => true,
            Ok(lines) => match self.planner.send(SetTariff(lines.clone())).await {
                Ok(()) => {
                    info!(lines = lines.len(), "the prices of energy were taken over");
                    series.lines = lines;
                    true
                }
                Err(why) => {
                    // It is tried again.
                    warn!(%why, "the prices of energy were not taken over");
                    false
                }
            },
            Err(why) => {
                warn!(%why, "the prices of energy were not read; the last ones hold, or kwh of the configuration, or none");
                self.planner.count_unread_tariff();
                false
            }
        };
        self.due = Instant::now() + series.wait(is_taken);
    }
}

/// Reads a series in a task of its own, which ends with its handle.
fn begin_reading_prices(series: &EnergySeries) -> AbortOnDropHandle<Lines> {
    let series = series.clone();
    AbortOnDropHandle::new(task::spawn(async move { series.read().await }))
}
