//! `[[resource]]` of the configuration: the resources of a provider, and their attributes for requests.

use std::collections::BTreeMap;

use domain::catalogue::{JobLimits, LimitKeys};
use domain::resources::{ARCHITECTURE, ARCHITECTURE_LENGTH_MAX, CAPACITY_MAX, RATES, is_resource_name};
use execution::slurm::SlurmSettings;
use planner::RESOURCES_MAX;
use scheduler::domain::Attribute;
use scheduler::{Interval, Time};
use serde::Deserialize;
use serde_json::{Value, json};
use wsag::time::DateTime;

use super::ranges::check_range;
use super::slurm::Slurm;
use replicas::is_replica_name;

/// Defines the section with a key for each number among the attributes of nodes.
macro_rules! resource_section {
    ($($number:ident)*) => {
        /// One resource as written.
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields, expecting = "struct Resource")]
        pub(in crate::cli) struct ResourceSection {
            pub(in crate::cli) name: String,
            pub(in crate::cli) kind: String,
            /// The number of cores of this machine where it is not said.
            nodes: Option<u32>,
            /// Work per second of a node, beside the reference.
            rate: Option<f64>,
            // Of each node.
            cpu_architecture: Option<String>,
            $($number: Option<i64>,)*
            /// The cluster of one of the kind "slurm".
            slurm: Option<Slurm>,
            /// Planned times without nodes.
            #[serde(default)]
            maintenance: Vec<Maintenance>,
            /// The limits of each job, for the kind "local".
            limits: Option<LimitKeys>,
            /// The replica that runs its jobs, for the kind "local".
            pub(in crate::cli) replica: Option<String>,
        }

        impl ResourceSection {
            /// The attributes that are numbers, by the names by which filters know them.
            fn numbers(&self) -> impl Iterator<Item = (&'static str, Option<i64>)> {
                [$((stringify!($number), self.$number)),*].into_iter()
            }
        }
    };
}

domain::with_node_numbers!(resource_section);

/// A planned time without nodes, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Maintenance {
    start: String,
    end: String,
    /// How many; all where it is not said.
    nodes: Option<u32>,
}

impl Maintenance {
    /// When, in whole seconds that hold all of it.
    fn resource_maintenance_interval(&self) -> Result<Interval, String> {
        let instant = |key: &str, text: &str| {
            let parsed: Result<DateTime, _> = text.parse();
            parsed.map_err(|_| {
                format!("{key}: expected an instant such as 2027-01-31T08:00:00Z, found {text:?}")
            })
        };
        let start = Time(instant("start", &self.start)?.floor());
        let end = Time(instant("end", &self.end)?.ceil());
        if end <= start {
            return Err("end: expected to lie after start".to_owned());
        }
        Ok(Interval::new(start, end))
    }
}

impl ResourceSection {
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if !is_resource_name(name) {
            return Err(format!(
                "name: expected letters, digits, '-', '_' or '.', found {name:?}"
            ));
        }
        match (self.kind.as_str(), &self.slurm) {
            ("local", None) => {}
            ("local", Some(_)) => return Err("slurm: expected only with kind = \"slurm\"".to_owned()),
            ("slurm", None) => return Err("slurm: expected a table [resource.slurm]".to_owned()),
            ("slurm", Some(_)) if self.nodes.is_some() => {
                return Err("nodes: expected in slurm.node_list, by their names".to_owned());
            }
            ("slurm", Some(slurm)) => slurm.check().map_err(|why| format!("slurm.{why}"))?,
            (kind, _) => return Err(format!("kind: expected \"local\" or \"slurm\", found {kind:?}")),
        }
        let counted = if self.slurm.is_some() {
            "slurm.node_list"
        } else {
            "nodes"
        };
        check_range(counted, self.capacity(), 1..=CAPACITY_MAX)?;
        check_range("rate", self.rate, RATES)?;
        if let Some(architecture) = &self.cpu_architecture
            && !(1..=ARCHITECTURE_LENGTH_MAX).contains(&architecture.len())
        {
            return Err(format!(
                "cpu_architecture: expected 1 to {ARCHITECTURE_LENGTH_MAX} characters"
            ));
        }
        for (nth, maintenance) in self.maintenance.iter().enumerate() {
            maintenance
                .resource_maintenance_interval()
                .map_err(|why| format!("maintenance[{nth}].{why}"))?;
        }
        if let Some(name) = &self.replica {
            if self.kind != "local" {
                return Err("replica: expected only with kind = \"local\"".to_owned());
            }
            if !is_replica_name(name) {
                return Err("replica: expected the name that `bespeak serve --replica` has".to_owned());
            }
        }
        if let Some(limits) = self.limits {
            if self.slurm.is_some() {
                return Err("limits: expected only with kind = \"local\"; Slurm has its own".to_owned());
            }
            JobLimits::try_from(limits).map_err(|why| why.to_string())?;
        }
        for (key, value) in self.numbers() {
            if value.is_some_and(|value| value < 1) {
                return Err(format!("{key}: expected a whole number from 1 on"));
            }
        }
        Ok(())
    }

    /// What each of its nodes has.
    fn attributes(&self) -> BTreeMap<String, Attribute> {
        let mut attributes: BTreeMap<String, Attribute> = self
            .numbers()
            .filter_map(|(name, value)| Some((name.to_owned(), Attribute::Number(value?))))
            .collect();
        if let Some(architecture) = &self.cpu_architecture {
            attributes.insert(ARCHITECTURE.to_owned(), Attribute::Word(architecture.clone()));
        }
        attributes
    }

    fn planned(&self) -> domain::resources::Resource {
        let capacity = self.capacity();
        let maintenance = self.maintenance.iter().filter_map(|maintenance| {
            Some((
                maintenance.resource_maintenance_interval().ok()?,
                maintenance.nodes.unwrap_or(capacity),
            ))
        });
        domain::resources::Resource {
            maintenance: maintenance.collect(),
            rate: self
                .rate
                .and_then(domain::resources::resource_rate_of_multiple)
                .unwrap_or_default(),
            attributes: self.attributes(),
            node_names: self.slurm.as_ref().map_or_else(Vec::new, Slurm::nodes),
            executor: match (&self.slurm, &self.limits) {
                (Some(slurm), _) => json!({ "slurm": slurm }),
                (None, Some(limits)) => json!({ "limits": limits }),
                (None, None) => Value::Null,
            },
            // Until it has been checked.
            closed: self.slurm.is_some(),
            ..domain::resources::Resource::new(&self.name, &self.kind, capacity)
        }
    }

    fn capacity(&self) -> u32 {
        let slurm = self.slurm.as_ref().map(Slurm::capacity);
        slurm.or(self.nodes).unwrap_or_else(machine_cores)
    }
}

/// Checks the resources. Returns the wrong key and the expected value, if there is one.
pub(in crate::cli) fn check_resources(resources: &[ResourceSection]) -> Result<(), String> {
    if resources.len() > RESOURCES_MAX {
        return Err(format!("resource: expected at most {RESOURCES_MAX} of them"));
    }
    let mut names = std::collections::BTreeSet::new();
    for (index, resource) in resources.iter().enumerate() {
        resource
            .check()
            .map_err(|why| format!("resource[{index}].{why}"))?;
        if !names.insert(&resource.name) {
            let name = &resource.name;
            return Err(format!(
                "resource[{index}].name: {name:?} is the name of another resource"
            ));
        }
    }
    Ok(())
}

/// The resources as the planner has them; this machine where there are none.
pub(in crate::cli) fn planned_resources(resources: &[ResourceSection]) -> Vec<domain::resources::Resource> {
    if resources.is_empty() {
        return vec![domain::resources::Resource::new(
            "local",
            "local",
            machine_cores(),
        )];
    }
    resources.iter().map(ResourceSection::planned).collect()
}

/// The applications that clusters say something of, each with the name of the resource.
pub(in crate::cli) fn cluster_applications_of_resources(
    resources: &[ResourceSection],
) -> impl Iterator<Item = (&str, &str)> {
    let clusters = resources
        .iter()
        .filter_map(|resource| Some((resource.name.as_str(), resource.slurm.as_ref()?)));
    clusters.flat_map(|(name, slurm)| slurm.applications().map(move |application| (name, application)))
}

/// The clusters that Slurm runs, as their executors have them.
pub(in crate::cli) fn cluster_settings_of_resources(resources: &[ResourceSection]) -> Vec<SlurmSettings> {
    let settings = |resource: &ResourceSection| {
        Some(SlurmSettings {
            attributes: resource.attributes(),
            ..resource.slurm.as_ref()?.settings(&resource.name)
        })
    };
    resources.iter().filter_map(settings).collect()
}

/// The number of cores of this machine.
fn machine_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1))
}
