//! A configuration that was read with the files that it names, and found right.

use std::path::PathBuf;
use std::sync::Arc;

use domain::catalogue::{Application, Catalogue};
use domain::clock::Clock;
use planner::Settings;
use rustls::ServerConfig;

use crate::cli::Failure;
use crate::cli::config::Config;
use crate::cli::config::energy::EnergySeries;
use crate::cli::config::tls::Tls;
use federation::settings::FederationSettings;
use service::Templates;

/// A configuration that has been read, and found right.
pub(in crate::cli) struct ReadConfig {
    pub(in crate::cli) config: Config,
    pub(in crate::cli) settings: Settings,
    pub(in crate::cli) catalogue: Catalogue,
    pub(in crate::cli) templates: Templates,
    pub(in crate::cli) tls: Option<Arc<ServerConfig>>,
}

impl ReadConfig {
    /// Reads a file, or takes the defaults where none is named; and the file of the prices of energy, if it names one. If it names their
    /// address, the `last` ones from there hold until it answers.
    ///
    /// # Errors
    /// The fault that was found.
    pub(in crate::cli) async fn from(
        file: Option<PathBuf>,
        last: Option<&EnergySeries>,
    ) -> Result<Self, Failure> {
        let load = move || Config::load(file.as_deref());
        let mut config = read_config_in_background(load).await?;
        config.read_energy_series_file(last).await?;
        read_config_in_background(move || Self::of(config)).await
    }

    /// Refuses templates with a time of their own that is over. A process that has started goes on with them.
    ///
    /// # Errors
    /// Which, and why.
    pub(in crate::cli) fn check_expiry(&self, clock: &Clock) -> Result<(), Failure> {
        match self.templates.why_expired(clock.now()) {
            Some(why) => Err(Failure::Usage(format!("configuration: {why}"))),
            None => Ok(()),
        }
    }

    fn of(config: Config) -> Result<Self, Failure> {
        let mut settings = config.planner();
        let catalogue = config.catalogue()?;
        let templates = Templates::load(&config.templates()?, &settings)
            .map_err(|why| Failure::Usage(format!("configuration: {why}")))?;
        note_rules_of_read_config(&mut settings, &templates, &catalogue);
        let tls = config.tls.as_ref().map(Tls::load).transpose()?;
        check_peers_of_read_config(config.domain.as_ref(), &templates)?;
        Ok(Self {
            config,
            settings,
            catalogue,
            templates,
            tls,
        })
    }
}

/// Gives the planner the rules of templates and the abilities of applications.
fn note_rules_of_read_config(settings: &mut Settings, templates: &Templates, catalogue: &Catalogue) {
    settings.overruns.templates = templates.overruns();
    let grace = |application: &Application| {
        let grace = application.checkpoint.as_ref()?.grace;
        Some((
            (application.name.clone(), application.version.clone()),
            grace.into(),
        ))
    };
    settings.overruns.saving = catalogue.applications().iter().filter_map(grace).collect();
    settings.restarting = templates.restarting();
}

/// Refuses to say something of templates that are not offered here.
fn check_peers_of_read_config(
    federation: Option<&FederationSettings>,
    templates: &Templates,
) -> Result<(), Failure> {
    let ids = templates.ids();
    let home = federation.map(|federation| &federation.home_templates);
    if let Some(unknown) = home.into_iter().flatten().find(|id| !ids.contains(&id.as_str())) {
        return Err(Failure::Usage(format!(
            "configuration: federation.home_templates: expected ids of {}, found {unknown:?}",
            ids.join(", ")
        )));
    }
    let peers = federation.map_or(&[][..], |federation| &federation.peers);
    for (index, peer) in peers.iter().enumerate() {
        if let Some(unknown) = peer.templates.keys().find(|id| !ids.contains(&id.as_str())) {
            return Err(Failure::Usage(format!(
                "configuration: peer[{index}].templates: expected ids of {}, found {unknown:?}",
                ids.join(", ")
            )));
        }
    }
    Ok(())
}

/// Does something that reads files, off the threads that serve.
async fn read_config_in_background<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = task::spawn_blocking(what).await;
    done.map_err(Failure::unavailable)?
}
