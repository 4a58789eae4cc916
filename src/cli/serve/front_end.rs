//! The front end of a process: what its requests share, whether it leads or stands by.

use std::sync::Arc;
use std::time::Duration;

use task::KeptTasks;
use tokio_util::sync::CancellationToken;

use crate::cli::config::Config;
use access::Access;
use api::{Api, Connections, RequestLimits, WrongKeys};
use service::Service;

/// What is the same for the requests of a process, whether it leads or stands by.
pub(super) struct FrontEnd {
    pub(super) access: Access,
    pub(super) measured: api::RequestMetrics,
    pub(super) connections: Connections,
    pub(super) tasks: KeptTasks,
    pub(super) scheme: &'static str,
}

impl FrontEnd {
    /// The way of requests to the use cases, with places of its own.
    pub(super) fn api(&self, service: Service, config: &Config, stop: &CancellationToken) -> Api {
        Api {
            service: Arc::new(service),
            access: self.access.clone(),
            body_timeout: Duration::from_secs(config.limits.body_seconds),
            places: RequestLimits::new(config.limits.requests, config.limits.party_requests),
            wrong_keys: WrongKeys::default(),
            measured: self.measured.clone(),
            connections: self.connections.clone(),
            tasks: self.tasks.clone(),
            scheme: self.scheme,
            public_address: config.public_address.as_deref().map(Arc::from),
            stopping: stop.clone(),
        }
    }
}
