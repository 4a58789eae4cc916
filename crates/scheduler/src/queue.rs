//! The orders in which waiting requests are placed (papers 000, section 3.1, and 002).

use crate::request::Request;
use crate::time::Time;

/// The order of requests. Requests that an order leaves equal go by their id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// First in, first out: by id.
    Fifo,
    /// At random, drawn again at every second of decision.
    Shuffle {
        /// The same seed gives the same orders.
        seed: u64,
    },
    /// Biggest job first: by node-seconds, falling.
    Bjf,
    /// Least flexible first: by slack at the time of the decision.
    Lff,
    /// Earliest deadline first.
    Edf,
    /// Missing deadline first: by the time left before it is too late to start. For requests of one shape and one
    /// duration this is deadline less duration; with shapes to choose from see [`crate::moldable`].
    Mdf,
    /// Best revenue first: by expected revenue a node-second, falling (future work in paper 000).
    Brf,
}

/// A place in the queue: the lesser goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    rank: i128,
    id: u64,
}

impl Key {
    /// Before every request.
    pub(crate) const FIRST: Self = Self {
        rank: i128::MIN,
        id: 0,
    };

    /// Behind every request.
    pub(crate) const LAST: Self = Self {
        rank: i128::MAX,
        id: u64::MAX,
    };

    /// The id of the request that has the place.
    pub(crate) fn id(self) -> u64 {
        self.id
    }
}

impl Order {
    /// The place of `request` in a queue sorted at `now`.
    pub fn key(self, request: &Request, now: Time) -> Key {
        let rank = match self {
            Self::Fifo => 0,
            Self::Shuffle { seed } => {
                i128::from(mix_bits(mix_bits(seed ^ now.0.cast_unsigned()) ^ request.id))
            }
            // Both factors are below 2⁶⁴ and one below 2³², so the product is a positive i128.
            Self::Bjf => -request.area().cast_signed(),
            Self::Lff => i128::from(request.slack(now)),
            Self::Edf => i128::from(request.deadline.0),
            // The same `now` would be taken from all.
            Self::Mdf => i128::from((request.deadline - request.duration).0),
            // In units of 2⁻⁶³: below 2¹²⁷.
            Self::Brf => -((u128::from(request.revenue) << 63) / request.area().max(1)).cast_signed(),
        };
        Key { rank, id: request.id }
    }

    /// Whether requests can change places while they wait with windows as they are.
    pub(crate) fn changes_with_time(self) -> bool {
        matches!(self, Self::Shuffle { .. } | Self::Lff)
    }
}

/// Well-mixed bits of a number (the finisher of splitmix64).
pub(crate) fn mix_bits(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::Order;
    use crate::request::Request;
    use crate::time::Time;

    const NOW: Time = Time(100);

    fn request(id: u64, ready: i64, deadline: i64, duration: i64, nodes: u32, revenue: u64) -> Request {
        Request {
            id,
            submitted: Time(0),
            ready: Time(ready),
            deadline: Time(deadline),
            duration,
            nodes,
            revenue,
        }
    }

    fn sorted(order: Order) -> Vec<u64> {
        let mut requests = [
            request(0, 200, 1_000, 100, 2, 500),
            request(1, 50, 400, 200, 1, 500),
            request(2, 300, 500, 150, 8, 900),
            request(3, 200, 1_000, 100, 2, 500),
        ];
        requests.sort_by_key(|r| order.key(r, NOW));
        requests.iter().map(|r| r.id).collect()
    }

    #[test]
    fn each_order_sorts_by_its_rule_and_then_by_id() {
        assert_eq!(sorted(Order::Fifo), [0, 1, 2, 3]);
        assert_eq!(sorted(Order::Bjf), [2, 0, 1, 3], "areas 1200, 200, 200, 200");
        assert_eq!(sorted(Order::Lff), [2, 1, 0, 3], "slacks 50, 100, 700, 700");
        assert_eq!(sorted(Order::Edf), [1, 2, 0, 3]);
        assert_eq!(sorted(Order::Mdf), [1, 2, 0, 3], "too late at 200, 350, 900, 900");
        assert_eq!(
            sorted(Order::Brf),
            [0, 1, 3, 2],
            "2.5, 2.5, 2.5, 0.75 a node-second"
        );
    }

    #[test]
    fn a_shuffle_is_a_matter_of_its_seed() {
        let order = |seed| sorted(Order::Shuffle { seed });
        assert_eq!(order(1), order(1));
        assert!((2..20).any(|seed| order(seed) != order(1)));
    }

    #[test]
    fn the_largest_requests_have_keys() {
        let r = request(0, 0, i64::MAX / 4, i64::MAX / 4, u32::MAX, u64::MAX);
        assert!(Order::Bjf.key(&r, NOW) < Order::Bjf.key(&request(1, 0, 9, 9, 1, 1), NOW));
        assert!(Order::Brf.key(&request(1, 0, 1, 1, 1, u64::MAX), NOW) < Order::Brf.key(&r, NOW));
    }
}
