//! What operators and the configuration say of resources, and what became of it.

use std::collections::BTreeMap;

use domain::resources::{AddedMaintenance, Repaired, Resource};
use scheduler::Rate;
use scheduler::domain::Attribute;
use serde_json::Value;
use uuid::Uuid;

/// The most resources that are planned on; decisions among this number were measured.
pub const RESOURCES_MAX: usize = 10_000;

/// How a resource is to be from now on. What is left out stays as it is, and of a new resource it is as usual.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceWish {
    /// Its executor; of a new one, this machine.
    pub kind: Option<String>,
    /// How many nodes it has; of a new one it must be said.
    pub capacity: Option<u32>,
    /// How fast its nodes work.
    pub rate: Option<Rate>,
    /// All of its attributes.
    pub attributes: Option<BTreeMap<String, Attribute>>,
    /// What its executor needs.
    pub executor: Option<Value>,
}

/// What is to be done with a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceVerb {
    /// It is added, or changed.
    Put(ResourceWish),
    /// Nothing new is placed on it, and what waits there goes elsewhere. What runs goes on until it ends.
    Retire,
    /// It is in service again.
    Restore,
    /// Nothing new is placed on it. What is agreed stays there, runs, and may move on it.
    Freeze,
    /// It takes new work again.
    Thaw,
    /// It is without nodes for a planned time.
    AddMaintenance(AddedMaintenance),
    /// It has the nodes that it was to be without.
    RemoveMaintenance(Uuid),
}

/// What became of resources, and of agreements for that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceChanges {
    /// The resources that are others than before, as they are now, each with the difference in words.
    pub resources: Vec<(Resource, String)>,
    /// What followed for agreements and offers.
    pub effects: Repaired,
}
