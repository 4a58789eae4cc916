//! This domain among others: what it says of itself, and how its peers do.

use crate::federation::client::Peer;
use crate::federation::discovery::{Domain, DomainPolicy, DomainResource};
use crate::service::Service;
use crate::service::discovery::list_offered_resources;
use crate::service::views::peers::{PeerView, PeersView};

/// What this domain says of itself to everybody: nothing where the configuration gives it no name among others.
pub fn show_domain(service: &Service) -> Domain {
    let Some(neighbours) = &service.neighbours else {
        return Domain::default();
    };
    let settings = neighbours.federation().settings();
    let templates = service.templates.now();
    let resources = list_offered_resources(service).resources.into_iter();
    let applications = service.catalogue();
    Domain {
        domain: Some(settings.name.clone()),
        templates: templates.ids().into_iter().map(str::to_owned).collect(),
        resources: resources
            .map(|resource| DomainResource {
                name: resource.name,
                nodes: resource.nodes,
                attributes: resource.attributes,
            })
            .collect(),
        applications: applications
            .applications()
            .iter()
            .map(|application| application.name.clone())
            .collect(),
        policy: DomainPolicy {
            forwards: settings.hops > 0 && !settings.peers.is_empty(),
            hops: settings.hops,
            hold_seconds: service.planner.negotiating().hold,
        },
        peers: neighbours.named_peers(),
    }
}

/// The peers, and how they do. For operators.
pub fn list_peers(service: &Service) -> PeersView {
    let Some(neighbours) = &service.neighbours else {
        return PeersView {
            domain: None,
            peers: Vec::new(),
        };
    };
    let federation = neighbours.federation();
    let view = |peer: &Peer| PeerView::of(peer, neighbours.found(peer.name()), federation);
    PeersView {
        domain: Some(federation.settings().name.clone()),
        peers: federation.peers().iter().map(view).collect(),
    }
}
