//! The configuration is read again, on SIGHUP and when an operator asks for it, and taken over where that is possible while the
//! service serves. A file with a fault changes nothing. The prices of energy over time are taken over here, too, so that neither is
//! between the other's steps.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::catalogue::Catalogue;
use planner::Configure;
use rustls::ServerConfig;
use task::Keeper;
use tokio::signal::unix::Signal;
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use uuid::Uuid;

use super::Options;
use super::manager::Manager;
use super::prices::Prices;
use super::read_config::ReadConfig;
use crate::cli::config::Config;
use service::{ReloadOrder, ReloadedView, Service};

/// Reads the configuration again.
pub(super) struct Reloader {
    /// Where it stands; none where the service has started without one.
    file: Option<PathBuf>,
    /// As it was at the start of the process, where it was read again before that began to lead.
    opened: Option<Config>,
    /// As it was when it began to lead.
    led: Config,
    /// The prices of energy over time.
    pub(super) prices: Prices,
    service: Service,
    /// The manager that is told of a reload; none at first.
    pub(super) manager: Manager,
    catalogue: watch::Sender<Arc<Catalogue>>,
    orders: mpsc::Receiver<ReloadOrder>,
    /// The certificate of new connections; none where the service has started without.
    tls: Option<watch::Sender<Arc<ServerConfig>>>,
    /// SIGHUP.
    hangup: Signal,
}

impl Reloader {
    /// Reads the file of `options` again, and hands what it says to `service` and to `catalogue` and `tls`.
    pub(super) fn new(
        options: &Options,
        (opened, led): (Option<Config>, Config),
        service: Service,
        (prices, orders, hangup): (Prices, mpsc::Receiver<ReloadOrder>, Signal),
        (catalogue, tls): (
            watch::Sender<Arc<Catalogue>>,
            Option<watch::Sender<Arc<ServerConfig>>>,
        ),
    ) -> Self {
        Self {
            file: options.store.config.clone(),
            opened,
            led,
            prices,
            service,
            manager: Manager::default(),
            catalogue,
            orders,
            tls,
            hangup,
        }
    }

    /// Begins to read the configuration again where that is asked for, and prices where they may have changed.
    pub(super) fn start(self, keeper: &Keeper) {
        let this = Arc::new(Mutex::new(self));
        // Nobody may ask.
        keeper.keep(("reloads", Duration::MAX), move |stop| {
            let this = Arc::clone(&this);
            async move { this.lock().await.run(stop).await }
        });
    }

    async fn run(&mut self, stop: CancellationToken) {
        loop {
            task::note_success();
            tokio::select! {
                () = stop.cancelled() => return,
                read = self.prices.next() => self.prices.take_over(read).await,
                Some(()) = self.hangup.recv() => {
                    match self.reload(None, false).await {
                        Ok(told) => log_reload(&told),
                        Err(why) => error!(%why, "SIGHUP: nothing is changed"),
                    }
                }
                Some(ReloadOrder { party, is_dry, reply }) = self.orders.recv() => {
                    let told = self.reload(Some(party), is_dry).await;
                    if let Ok(told) = &told && !is_dry {
                        log_reload(told);
                    }
                    // The caller may be gone.
                    let _ = reply.send(told);
                }
            }
        }
    }

    async fn reload(&mut self, party: Option<String>, is_dry: bool) -> Result<ReloadedView, service::Error> {
        if is_dry {
            return self.take_over(party, is_dry).await;
        }
        self.manager.reloading();
        let told = self.take_over(party, is_dry).await;
        self.manager.reloaded(told.as_ref().err());
        told
    }

    async fn take_over(
        &mut self,
        party: Option<String>,
        is_dry: bool,
    ) -> Result<ReloadedView, service::Error> {
        let Some(file) = self.file.clone() else {
            let why = "the service was started without a configuration file: --config names one";
            return Err(service::Error::Conflict(why.to_owned()));
        };
        let read = ReadConfig::from(Some(file), self.prices.series()).await;
        let read = read.and_then(|read| {
            read.check_expiry(self.service.clock())?;
            Ok(read)
        });
        let read = read.map_err(|why| service::Error::Conflict(why.to_string()))?;
        let opened = self.opened.as_ref().unwrap_or(&self.led);
        let left = read.config.left_for_a_start(opened, &self.led);
        let reconfiguration = Configure {
            id: Uuid::now_v7(),
            party,
            settings: read.settings,
            is_start: false,
        };
        let changes =
            service::apply_configuration(&self.service, reconfiguration, &read.templates, is_dry).await?;
        if !is_dry {
            self.catalogue.send_replace(Arc::new(read.catalogue));
            self.prices.go_on_with(read.config.series());
            if let (Some(now), Some(read)) = (&self.tls, read.tls) {
                now.send_replace(read);
            }
        }
        Ok(ReloadedView::of(&changes, left, is_dry))
    }
}

/// Logs the parts of the configuration that were taken over, and the ones that were not.
fn log_reload(told: &ReloadedView) {
    info!(
        resources = told.changes.resources.len(),
        moved = told.changes.moved.len(),
        broken = told.changes.broken.len(),
        withdrawn = told.changes.withdrawn,
        "the configuration was read again"
    );
    if !told.needs_restart.is_empty() {
        let what = told.needs_restart.join(", ");
        warn!(
            what,
            "these have changed in the configuration and are taken over by a restart only"
        );
    }
}
