//! The resources, their nodes, and what clusters reserve.

use std::sync::PoisonError;

use domain::resources::{NodeCounts, Repaired, Resource};
use planner::{
    Error, Kwh, NodeOverride, NodeStatus, Reconfiguration, ResourceChanges, ResourceOrder, Result,
};
use scheduler::{Seconds, Time};
use uuid::Uuid;

use crate::handle::Planner;

impl Planner {
    /// Does something with a resource, and answers what follows.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource to retire, restore, freeze or thaw, [`Error::Unfit`] where it cannot be so,
    /// [`Error::Unavailable`] where it could not be stored.
    pub async fn change_resource(&self, order: ResourceOrder) -> Result<ResourceChanges, Error> {
        self.ask(move |decider| decider.change_resource(order)).await
    }

    /// Takes over a configuration: of its resources what has changed since it was last read. Resources that it had and has no more
    /// are retired.
    ///
    /// # Errors
    /// [`Error::Unfit`] where a resource cannot be so, [`Error::Unavailable`] where it could not be stored.
    pub async fn configure(&self, reconfiguration: Reconfiguration) -> Result<ResourceChanges, Error> {
        self.ask(move |decider| decider.configure(reconfiguration)).await
    }

    /// Takes over a tariff of energy. What is planned stays where it is.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn set_tariff(&self, tariff: Vec<Kwh>) -> Result<(), Error> {
        self.ask(move |decider| {
            decider.set_tariff(tariff);
            Ok(())
        })
        .await
    }

    /// Counts a tariff of energy that could not be read.
    pub fn count_unread_tariff(&self) {
        let measured = &self.measured;
        measured
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .unread_tariffs += 1;
    }

    /// Whether nothing new is promised on a resource before it has been checked.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn is_resource_closed(&self, resource: String) -> Result<bool> {
        self.ask(move |decider| Ok(decider.is_resource_closed(&resource)))
            .await
    }

    /// Opens a resource for new promises, where it was configured as closed.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource, [`Error::Unavailable`] when the planner has stopped.
    pub async fn open_resource(&self, resource: String) -> Result<()> {
        self.ask(move |decider| decider.open(&resource).ok_or(Error::NotFound))
            .await
    }

    /// The resources, as [`Planner::resources`] has them, and how many nodes of each stand how at one moment; none where it is
    /// retired and nothing is planned on it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn node_counts(&self) -> Result<Vec<(Resource, Option<NodeCounts>)>> {
        self.ask(|decider| Ok(decider.node_counts())).await
    }

    /// How the nodes of a resource stand, by their numbers; none of a retired resource on which nothing is planned.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource, [`Error::Unavailable`] when the planner has stopped.
    pub async fn nodes(&self, resource: String) -> Result<Vec<NodeStatus>> {
        self.ask(move |decider| decider.nodes(&resource)).await
    }

    /// Takes the word of an operator about nodes and repairs the plan, as [`Planner::set_nodes`] does; nodes that are
    /// not named stand as before. Returns what followed, and how the named ones stand then.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource or node, [`Error::Unavailable`] where it could not be stored.
    pub async fn override_nodes(&self, saying: NodeOverride) -> Result<(Repaired, Vec<NodeStatus>)> {
        self.ask(move |decider| decider.override_nodes(saying)).await
    }

    /// Records which agreements a resource could not reserve nodes for, with the begins of their slots, and from how many seconds
    /// before their begin it reserves slots: slots that begin within that time are promised from now on when their nodes are held.
    ///
    /// # Errors
    /// `Error::Unavailable` when the planner has stopped.
    pub async fn report_reserving(
        &self,
        resource: String,
        refused: Vec<(Uuid, Time)>,
        within: Seconds,
    ) -> Result<()> {
        self.ask(move |decider| {
            decider.note_reserving(&resource, &refused, within);
            Ok(())
        })
        .await
    }

    /// Records from how many seconds before their begin a resource reserves the slots that it hands over to their parties.
    ///
    /// # Errors
    /// `Error::Unavailable` when the planner has stopped.
    pub async fn report_handing_over(&self, resource: String, within: Seconds) -> Result<()> {
        self.ask(move |decider| {
            decider.note_handing_over(resource, within);
            Ok(())
        })
        .await
    }

    /// From when on the cluster of an agreement has a reservation for it, as far as is foreseen; none where the cluster has it, or
    /// where the agreement is over.
    ///
    /// # Errors
    /// `Error::Unavailable` when the planner has stopped.
    pub async fn reservation_due(&self, id: Uuid) -> Result<Option<Time>> {
        self.ask(move |decider| Ok(decider.reservation_due(id))).await
    }
}
