//! The connections that are open, and how many of them each address has, so that a client without a key cannot take all of them.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::counted_places::{CountedPlace, PlaceCounts};

/// The origin of a connection, as far as its bounds go: an address, or for IPv6 the network of 64 bits, since the holder of one
/// address has all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin(IpAddr);

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Self {
        let network = |address: Ipv6Addr| Ipv6Addr::from_bits(address.to_bits() >> 64 << 64);
        Self(match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => network(address).into(),
            address => address,
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The open connections. Clones count together.
#[derive(Debug, Clone)]
pub struct Connections {
    /// The most connections that there may be.
    most: usize,
    /// The most connections that one origin may have.
    of_each: usize,
    open: PlaceCounts<Origin>,
    /// The origins of replicas, which pass on requests of many clients.
    replicas: Arc<RwLock<HashSet<Origin>>>,
    /// Since the process was started.
    refused: Arc<AtomicU64>,
}

/// The numbers of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionCounts {
    pub(super) open: usize,
    pub(super) most: usize,
    pub(super) refused: u64,
}

impl Connections {
    /// No connections yet; at most `most`, and `of_each` of one origin.
    pub fn new(most: usize, of_each: usize) -> Self {
        Self {
            most,
            of_each,
            open: Arc::default(),
            replicas: Arc::default(),
            refused: Arc::default(),
        }
    }

    /// How many there may be at the same time.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Counts one more, until it is dropped; none where its origin has as many as it may.
    pub(super) fn take(&self, origin: Origin) -> Option<CountedPlace<Origin>> {
        let is_replica = self
            .replicas
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&origin);
        self.take_up_to(origin, if is_replica { self.most } else { self.of_each })
    }

    /// Takes a place for a connection of a proxy, which has connections for many clients: it is bounded as all are together.
    pub(super) fn take_of_proxy(&self, origin: Origin) -> Option<CountedPlace<Origin>> {
        self.take_up_to(origin, self.most)
    }

    fn take_up_to(&self, origin: Origin, most: usize) -> Option<CountedPlace<Origin>> {
        let taken = CountedPlace::take(&self.open, origin, most);
        if taken.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// Takes note that another replica is at an origin: its connections are bounded as all are together.
    pub(super) fn note_replica(&self, origin: Origin) {
        let mut replicas = self.replicas.write().unwrap_or_else(PoisonError::into_inner);
        replicas.insert(origin);
    }

    pub(super) fn counted(&self) -> ConnectionCounts {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        ConnectionCounts {
            open: open.values().sum(),
            most: self.most,
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(address: &str) -> Origin {
        Origin::from(address.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn an_origin_leaves_connections_to_others_and_gives_back_its_own() {
        let connections = Connections::new(9, 2);
        let mine = [(); 2].map(|()| connections.take(origin("192.0.2.1")));
        assert!(mine.iter().all(Option::is_some));
        assert!(connections.take(origin("192.0.2.1")).is_none());
        let other = connections.take(origin("192.0.2.2"));
        assert!(other.is_some());
        let (open, most, refused) = (3, 9, 1);
        assert_eq!(connections.counted(), ConnectionCounts { open, most, refused });
        drop((mine, other));
        assert!(
            connections.open.lock().unwrap().is_empty(),
            "nothing is left behind"
        );
        assert!(connections.take(origin("192.0.2.1")).is_some());
    }

    #[test]
    fn a_replica_may_have_as_many_connections_as_there_are() {
        let connections = Connections::new(9, 2);
        connections.note_replica(origin("192.0.2.1"));
        let passed = [(); 3].map(|()| connections.take(origin("192.0.2.1")));
        assert!(passed.iter().all(Option::is_some));
    }

    #[test]
    fn of_ipv6_a_network_is_one_origin_and_a_mapped_address_is_that_of_ipv4() {
        assert_eq!(origin("2001:db8:1:2::1"), origin("2001:db8:1:2:ffff::7"));
        assert_ne!(origin("2001:db8:1:2::1"), origin("2001:db8:1:3::1"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
    }
}
