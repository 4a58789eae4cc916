//! The resources, as they are planned on.

use domain::clock::Micros;
use scheduler::Rate;

use crate::database::Store;
use crate::engine::{Record, Result, record, statements};

/// A set of identical nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRow {
    /// Its name, which agreements refer to.
    pub name: String,
    /// Which executor it has.
    pub kind: String,
    /// Its nodes.
    pub capacity: u32,
    /// Its place among the others: ties go to the lower one.
    pub position: u32,
    /// How fast its nodes work, in millionths of the reference.
    pub rate: u32,
    /// All else that is planned with, as JSON.
    pub details: String,
    /// The resource as the configuration file last had it, as JSON; none where it did not have it.
    pub configured: Option<String>,
    /// Since when nothing new is placed on it.
    pub retired: Option<Micros>,
    /// Since when nothing new is placed on it, and what is agreed stays there.
    pub frozen: Option<Micros>,
}

impl ResourceRow {
    /// Nodes of which nothing particular is known, and which no configuration file has.
    pub fn new(name: &str, kind: &str, capacity: u32) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            capacity,
            position: 0,
            rate: Rate::REFERENCE.millionths(),
            details: "{}".to_owned(),
            configured: None,
            retired: None,
            frozen: None,
        }
    }
}

impl Store {
    /// The resources, in the order in which ties are broken.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn resources(&self) -> Result<Vec<ResourceRow>> {
        self.read(statements::RESOURCES, &[], ResourceRow::of).await
    }
}

record! { ResourceRow: name, kind, capacity, position, rate, details, configured, retired "retired_us",
frozen "frozen_us" }
