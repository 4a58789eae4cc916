//! The configuration file: resources, applications, templates, limits. A fault in it is refused at start, with the key
//! and the expected value.

pub(super) mod energy;
pub(super) mod execution;
mod failures;
mod federation;
pub(super) mod history;
pub(super) mod keys;
pub(super) mod limits;
mod negotiation;
mod peer;
mod prediction;
pub(super) mod pricing;
mod proxy;
mod quotas;
mod ranges;
pub(super) mod resources;
pub(super) mod scheduling;
pub(super) mod slurm;
pub(super) mod staging;
pub(super) mod tls;
pub(super) mod trail;

use std::path::{Path, PathBuf};

use ::execution::programs::find_program;
use address::Policy;
use domain::catalogue::{Application, Catalogue};
use scheduler::Fraction;
use scheduler::domain::Objective;
use scheduler::prediction::SLOT_PROBABILITY;
use serde::Deserialize;

use super::Failure;
use crate::cli::config::execution::Execution;
use crate::cli::config::failures::Failures;
use crate::cli::config::federation::Federating;
use crate::cli::config::history::History;
use crate::cli::config::keys::Keys;
use crate::cli::config::limits::ConfigLimits;
use crate::cli::config::negotiation::Negotiating;
use crate::cli::config::peer::Peer;
use crate::cli::config::prediction::Prediction;
use crate::cli::config::pricing::PriceList;
use crate::cli::config::proxy::Proxy;
use crate::cli::config::quotas::{PartyQuotas, QuotasSection};
use crate::cli::config::ranges::{check_range, table};
use crate::cli::config::scheduling::{OVERRUN_PERCENT_MAX, Scheduling};
use crate::cli::config::staging::Staging;
use crate::cli::config::tls::Tls;
use crate::cli::config::trail::Trail;
use ::federation::settings::{FederationSettings, PeerSettings};
use resources::ResourceSection;

use service::{OnLoss, TemplateText};

/// Plans further ahead than this are a slip of the pen.
const HORIZON_DAYS_MAX: u32 = 36_500;

/// The configuration as read.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Config {
    /// How many days ahead the provider plans.
    horizon_days: Option<u32>,
    /// The address by which clients know the service.
    pub(super) public_address: Option<String>,
    /// Its certificate and key for TLS; plain HTTP without it.
    pub(super) tls: Option<Tls>,
    scheduling: Scheduling,
    /// The price list; placements cost nothing without it.
    pricing: Option<PriceList>,
    prediction: Prediction,
    negotiation: Negotiating,
    callbacks: CallBacks,
    failures: Failures,
    pub(super) execution: Execution,
    pub(super) history: History,
    pub(super) staging: Staging,
    /// The signed heads of the audit trail.
    pub(super) trail: Trail,
    federation: Federating,
    #[serde(rename = "peer")]
    peers: Vec<Peer>,
    quotas: QuotasSection,
    #[serde(rename = "quota")]
    quotas_of_parties: Vec<PartyQuotas>,
    pub(super) limits: ConfigLimits,
    /// How long keys last.
    pub(super) keys: Keys,
    /// The proxies that say which client speaks.
    pub(super) proxy: Proxy,
    #[serde(rename = "resource")]
    resources: Vec<ResourceSection>,
    #[serde(rename = "application")]
    applications: Vec<Application>,
    #[serde(rename = "template")]
    templates: Vec<Template>,
    /// The folder that relative paths are meant from.
    #[serde(skip)]
    folder: PathBuf,
    /// This domain among others, with its peers; none where it has no name there.
    #[serde(skip)]
    pub(super) domain: Option<FederationSettings>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Template {
    file: PathBuf,
    /// The probability in percent that a slot is long enough for its work, where an offer names no duration.
    slot_percent: Option<u32>,
    /// By how much its slots are made longer for work that is not over, in percent.
    overrun_percent: Option<u32>,
    /// The handling of lost work.
    #[serde(default)]
    on_loss: OnLoss,
}

table! {
    "callbacks"
    /// The rules for call-backs.
    struct CallBacks {
        /// Whether addresses may be called that are not public.
        private_addresses: bool = false;
        /// Seconds before the start of a slot at which its party is told of it; 0 for never.
        start_notice_seconds: u32 = 600, 0..=604_800;
    }
}

impl Config {
    /// Reads a file, or gives the defaults where none is named.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the file, the key and the expected value.
    pub(super) fn load(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = file else {
            return Ok(Self::default());
        };
        let wrong = |why: String| Failure::Usage(format!("configuration {}: {why}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|why| wrong(why.to_string()))?;
        let mut config: Self = toml::from_str(&text).map_err(|why| wrong(why.to_string()))?;
        file.parent()
            .unwrap_or(Path::new(""))
            .clone_into(&mut config.folder);
        config.check().map_err(wrong)?;
        let domain = config.federation.federation(&config.peers, &config.folder);
        config.domain = domain.map_err(wrong)?;
        Ok(config)
    }

    /// The host of the address that users know, where one is configured.
    pub(super) fn public_host(&self) -> Option<String> {
        let address = reqwest::Url::parse(self.public_address.as_deref()?).ok()?;
        address.host_str().map(str::to_owned)
    }

    /// The replicas that local resources are stated to belong to, by the names of the resources.
    pub(super) fn hosts_of_resources(&self) -> impl Iterator<Item = (String, String)> {
        let stated = self.resources.iter();
        stated.filter_map(|resource| Some((resource.name.clone(), resource.replica.clone()?)))
    }

    fn check(&self) -> Result<(), String> {
        check_range("horizon_days", self.horizon_days, 1..=HORIZON_DAYS_MAX)?;
        if let Some(address) = &self.public_address
            && !(address.starts_with("http://") || address.starts_with("https://"))
        {
            return Err(format!(
                "public_address: expected http://… or https://…, found {address:?}"
            ));
        }
        self.scheduling.check()?;
        self.negotiation.check_ranges()?;
        self.callbacks.check_ranges()?;
        self.quotas.check("quotas")?;
        self.check_quotas_of_parties()?;
        self.limits.check_ranges()?;
        self.proxy.proxies()?;
        self.keys.check_ranges()?;
        self.execution.check()?;
        self.history.check_ranges()?;
        self.staging.check()?;
        self.trail.check_ranges()?;
        resources::check_resources(&self.resources)?;
        self.federation.check(&self.peers, &self.resource_names())?;
        for (index, template) in self.templates.iter().enumerate() {
            if template
                .slot_percent
                .is_some_and(|percent| !(1..=99).contains(&percent))
            {
                return Err(format!("template[{index}].slot_percent: expected 1 to 99"));
            }
            let key = format!("template[{index}].overrun_percent");
            check_range(&key, template.overrun_percent, 0..=OVERRUN_PERCENT_MAX)?;
        }
        self.failures.check_ranges()?;
        self.prediction.check_ranges()?;
        self.pricing()?;
        Catalogue::new(self.applications.clone())
            .map(drop)
            .map_err(|why| why.to_string())
    }

    /// The names of the parts that are not taken over by a reload, and differ from those of the configuration with which the process was
    /// opened, or of the one with which it began to lead.
    pub(super) fn left_for_a_start(&self, opened: &Self, led: &Self) -> Vec<String> {
        let parts = [
            ("horizon_days", self.horizon_days == led.horizon_days),
            ("public_address", self.public_address == led.public_address),
            ("[tls]", self.tls.is_some() == opened.tls.is_some()),
            ("[scheduling]", self.scheduling == led.scheduling),
            ("[negotiation]", self.negotiation == led.negotiation),
            ("[callbacks]", self.callbacks == led.callbacks),
            ("[execution]", self.execution == opened.execution),
            ("[staging]", self.staging == led.staging),
            ("[trail]", self.trail == led.trail),
            ("[prediction]", self.prediction == led.prediction),
            ("[history]", self.history == led.history),
            ("[federation] and [[peer]]", self.domain == opened.domain),
            ("[limits]", self.limits == opened.limits),
            ("[proxy]", self.proxy == opened.proxy),
            ("[keys]", self.keys == opened.keys),
        ];
        let differ = parts.into_iter().filter(|(_, is_same)| !is_same);
        differ.map(|(name, _)| name.to_owned()).collect()
    }

    /// The price list, for the resources that there are.
    fn pricing(&self) -> Result<Option<planner::Pricing>, String> {
        let names = self.resource_names();
        self.pricing.as_ref().map(|list| list.pricing(&names)).transpose()
    }

    fn resource_names(&self) -> Vec<&str> {
        // The one that there is where none is named.
        let unnamed = self.resources.is_empty().then_some("local");
        let names = self.resources.iter().map(|resource| resource.name.as_str());
        names.chain(unnamed).collect()
    }

    /// The allowed receivers of call-backs.
    pub(super) fn call_backs(&self) -> Policy {
        Policy {
            private_addresses: self.callbacks.private_addresses,
        }
    }

    /// The own resources, and the peers behind them.
    fn planned_resources(&self) -> Vec<domain::resources::Resource> {
        let mut all = resources::planned_resources(&self.resources);
        let peers = self.domain.iter().flat_map(|domain| &domain.peers);
        all.extend(peers.map(PeerSettings::resource));
        all
    }

    /// The rates and the nodes of the own resources.
    pub(super) fn rated_nodes(&self) -> Vec<(scheduler::Rate, u32)> {
        let own = resources::planned_resources(&self.resources).into_iter();
        own.map(|resource| (resource.rate, resource.capacity)).collect()
    }

    /// Whether the own resources differ in rate.
    fn has_several_rates(&self) -> bool {
        let rated = self.rated_nodes();
        rated.windows(2).any(|pair| pair[0].0 != pair[1].0)
    }

    /// The objective that is set; else the least work lost where resources differ in rate, since it refuses less work there, and the
    /// earliest completion where they do not.
    fn objective(&self) -> Objective {
        self.scheduling.objective.unwrap_or(if self.has_several_rates() {
            Objective::LeastWorkLost
        } else {
            Objective::EarliestCompletion
        })
    }

    /// Whether another objective is set though resources differ in rate.
    pub(super) fn forgoes_least_work_lost(&self) -> bool {
        let set = self.scheduling.objective;
        self.has_several_rates() && set.is_some_and(|set| set != Objective::LeastWorkLost)
    }

    /// The settings of the planner.
    pub(super) fn planner(&self) -> planner::Settings {
        let days = self.horizon_days.unwrap_or(365);
        let objective = self.objective();
        planner::Settings {
            objective,
            order: self.scheduling.order,
            decision: self.scheduling.decision,
            decision_work: self.scheduling.decision_work,
            fix_after: self.scheduling.fix_after_percent.map(Fraction::percent),
            refusals: self.scheduling.refusals(),
            improving: self.scheduling.improving(objective),
            failures: self.failures.planner(),
            overruns: planner::Overruns {
                percent: self.scheduling.overrun_percent,
                ..planner::Overruns::default()
            },
            pricing: self.pricing().ok().flatten(),
            announce: i64::from(self.callbacks.start_notice_seconds),
            negotiation: self.negotiation.planner(),
            proposals: self.negotiation.proposals(),
            quotas: self.quotas.planner(),
            quotas_of_parties: self.quotas_of_parties(),
            // Restarts are known once the templates have been read, and predictions once the store is open.
            ..planner::Settings::new(self.planned_resources(), i64::from(days) * 86_400)
        }
    }

    /// How predictions know the resources, and the parts of an estimate that decide.
    pub(super) fn predictions(&self) -> learning::Setup {
        (planner::machines_of_rows, self.prediction.ladder())
    }

    /// The clusters that Slurm runs, as their executors have them.
    pub(super) fn clusters(&self) -> Vec<::execution::slurm::SlurmSettings> {
        resources::cluster_settings_of_resources(&self.resources)
    }

    /// The applications of the file, or the built-in ones where it has none.
    ///
    /// # Errors
    /// [`Failure::Usage`] naming the key.
    pub(super) fn catalogue(&self) -> Result<Catalogue, Failure> {
        let catalogue = self.named_catalogue()?;
        let is_known = |name: &str| {
            catalogue
                .applications()
                .iter()
                .any(|application| application.name == name)
        };
        match resources::cluster_applications_of_resources(&self.resources).find(|(_, name)| !is_known(name))
        {
            Some((resource, name)) => Err(Failure::Usage(format!(
                "configuration: resource `{resource}`: slurm.application: expected the name of an application, found {name:?}"
            ))),
            None => Ok(catalogue),
        }
    }

    fn named_catalogue(&self) -> Result<Catalogue, Failure> {
        if self.applications.is_empty() {
            return Ok(Catalogue::built_in(find_program));
        }
        if let Some(missing) = self
            .applications
            .iter()
            .find(|application| !application.program.is_file())
        {
            return Err(Failure::Usage(format!(
                "configuration: application `{}`: program: expected a program of this machine, and {} is no file",
                missing.name,
                missing.program.display()
            )));
        }
        Catalogue::new(self.applications.clone())
            .map_err(|why| Failure::Usage(format!("configuration: {why}")))
    }

    /// The texts of the templates of the file, or none where it has none and the built-in one is meant.
    ///
    /// # Errors
    /// [`Failure::Usage`] naming the file that cannot be read.
    pub(super) fn templates(&self) -> Result<Vec<TemplateText>, Failure> {
        self.templates
            .iter()
            .enumerate()
            .map(|(index, template)| {
                let path = self.folder.join(&template.file);
                let text = std::fs::read(&path).map_err(|why| {
                    Failure::Usage(format!(
                        "configuration: template[{index}].file: cannot read {}: {why}",
                        path.display()
                    ))
                })?;
                Ok(TemplateText {
                    what: format!("template[{index}].file {}", path.display()),
                    text,
                    on_loss: template.on_loss,
                    slot_probability: template
                        .slot_percent
                        .map_or(SLOT_PROBABILITY, |percent| f64::from(percent) / 100.0),
                    overrun_percent: template.overrun_percent,
                })
            })
            .collect()
    }
}
