//! How nodes stand, as operators see it and say it.

use std::collections::BTreeSet;

use super::decide::Decider;
use super::nodes::{NodeState, Reporter, Said};
use super::{Command, Error, Planner, Repaired, Resource};

/// How one node stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its number in the resource, from 0.
    pub node: u32,
    /// What it is called; its number where it has no name.
    pub name: String,
    /// The worst that is said of it.
    pub state: NodeState,
    /// Who says that it is not up.
    pub said: Vec<(Reporter, Said)>,
}

/// What an operator says of nodes of a resource from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saying {
    /// Name of the resource.
    pub resource: String,
    /// Numbers of the nodes.
    pub nodes: BTreeSet<u32>,
    /// How they stand. Up takes back what an operator has said before; what the executor says stands on.
    pub state: NodeState,
    /// Why, where that is said; forgotten with the state.
    pub reason: Option<String>,
}

impl Planner {
    /// The resources of the domain.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// How the nodes of a resource stand, by their numbers.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource, [`Error::Unavailable`] when the planner has stopped.
    pub async fn nodes(&self, resource: String) -> Result<Vec<Standing>, Error> {
        self.ask(|reply| Command::Nodes(resource, reply)).await
    }

    /// Takes what an operator says of nodes and puts the plan right, as [`Planner::set_nodes`] does; nodes that are not
    /// named stand as before.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource or node, [`Error::Unavailable`] where it could not be stored.
    pub async fn say_nodes(&self, saying: Saying) -> Result<Repaired, Error> {
        self.ask(|reply| Command::SayNodes(saying, reply)).await
    }
}

impl Decider<'_> {
    /// Takes what an operator says of some nodes.
    pub(super) fn say_nodes(&mut self, saying: &Saying) -> Result<Repaired, Error> {
        let at = self.plan.resources.place(&saying.resource);
        let of = at
            .and_then(|at| self.plan.resources.get(at))
            .ok_or(Error::NotFound)?;
        let capacity = of.resource.capacity;
        if saying.nodes.last().is_none_or(|last| *last >= capacity) {
            return Err(Error::NotFound);
        }
        let report = of
            .nodes
            .with(capacity, &saying.nodes, saying.state, saying.reason.as_deref());
        self.set_nodes(&saying.resource, Reporter::Operator, &report)
    }

    /// How the nodes of a resource stand.
    pub(super) fn nodes(&self, resource: &str) -> Result<Vec<Standing>, Error> {
        let at = self.plan.resources.place(resource).ok_or(Error::NotFound)?;
        let of = self.plan.resources.get(at).ok_or(Error::NotFound)?;
        let said = |node| {
            [Reporter::Executor, Reporter::Operator]
                .into_iter()
                .filter_map(move |by| Some((by, of.nodes.said(node, by)?.clone())))
        };
        let standing = |node| Standing {
            node,
            name: of.resource.names_of(&[node]),
            state: of.nodes.state(node),
            said: said(node).collect(),
        };
        Ok((0..of.resource.capacity).map(standing).collect())
    }
}
