//! `[limits]` of the configuration: the limits on input from the network.

use std::time::Duration;

use super::ranges::table;
use api::{Connections, ListenerBounds, Proxies};

table! {
    "limits"
    /// The limits on input from the network. Each has a default that suits a service on the open network.
    pub(in crate::cli) struct ConfigLimits {
        /// Connections served at the same time; where it does not say, as many as are usual and the system allows.
        pub(in crate::cli) connections: Option<usize> = None, 1..=1_000_000;
        /// Connections of one address; where it does not say, a part of all.
        pub(in crate::cli) connections_per_address: Option<usize> = None, 1..=1_000_000;
        /// Requests worked on at the same time; more are answered 503.
        pub(in crate::cli) requests: usize = 512, 1..=100_000;
        /// Requests of one party; more are answered 429.
        pub(in crate::cli) party_requests: usize = 128, 1..=100_000;
        /// Seconds that a client may take for the head of a request.
        pub(in crate::cli) header_seconds: u64 = 10, 1..=3_600;
        /// Seconds that a client may take for the body of a request.
        pub(in crate::cli) body_seconds: u64 = 20, 1..=3_600;
        /// Seconds that a client may let a part of an answer wait.
        pub(in crate::cli) write_seconds: u64 = 30, 1..=3_600;
        /// Seconds that running requests have to end after a signal to stop.
        pub(in crate::cli) shutdown_seconds: u64 = 10, 1..=3_600;
        /// Seconds after which a replica that is not heard of counts as gone, with the local resources of its machine.
        pub(in crate::cli) silent_replica_seconds: u64 = 60, 5..=86_400;
        /// Mebibytes that the files which a party uploads may have together.
        pub(in crate::cli) party_files_mib: u64 = 1_024, 1..=1 << 30;
    }
}

impl ConfigLimits {
    pub(in crate::cli) fn bounds(&self, connections: Connections) -> ListenerBounds {
        ListenerBounds {
            connections,
            proxies: Proxies::default(),
            header_timeout: Duration::from_secs(self.header_seconds),
            write_timeout: Duration::from_secs(self.write_seconds),
            shutdown_timeout: self.shutdown_timeout(),
        }
    }

    pub(in crate::cli) fn shutdown_timeout(&self) -> Duration {
        Duration::from_secs(self.shutdown_seconds)
    }
}
