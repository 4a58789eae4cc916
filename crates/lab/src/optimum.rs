//! The best possible: exactly for a few requests, and a bound for many.
//!
//! Both know all submissions in advance. [`find_optimum`] chooses the requests to accept by branch and bound, and decides for sure
//! whether they have a plan. Any plan can be moved up until it is the one that first fit makes of its requests in order of their
//! starts. So it suffices to try such orders ([`find_optimum_starts`]). The bound cuts branches off, and is used in place of the optimum where
//! there are too many requests.

use scheduler::{Interval, Request, Seconds, Time};

use crate::flow::FlowNetwork;

/// Steps after which an exact search is given up.
const STEPS_MAX: u64 = 20_000_000;

/// Nodes that are taken for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// When.
    pub(crate) interval: Interval,
    /// How many.
    pub(crate) nodes: u32,
}

/// The best that can be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Optimum {
    /// Node-seconds accepted.
    pub(crate) area: Seconds,
    /// The accepted requests, as places in the list given, and their starts.
    pub(crate) starts: Vec<(usize, Time)>,
}

/// The requests to accept, and when, so that the most node-seconds are used. `None` if that takes more than [`STEPS_MAX`] steps:
/// exponentially many in the requests at worst.
pub(crate) fn find_optimum(capacity: u32, requests: &[Request]) -> Option<Optimum> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    // The biggest first: their refusal changes the bound most.
    order.sort_by_key(|at| (-area_of_optimum_request(&requests[*at]), *at));
    let mut search = OptimumSearch {
        capacity,
        requests,
        order,
        best: Optimum::default(),
        steps: 0,
    };
    let all = bound_optimum(capacity, requests, span_of_optimum(requests));
    search.branch(0, &Optimum::default(), &mut vec![false; requests.len()], all)?;
    search.best.starts.sort_unstable();
    Some(search.best)
}

/// Starts for all the requests, beside slots that are taken, if there is a plan; `None` if that takes more than [`STEPS_MAX`]
/// steps.
#[expect(clippy::option_option, reason = "no answer, or the answer that there is none")]
pub(crate) fn find_optimum_starts(
    capacity: u32,
    taken: &[Slot],
    requests: &[Request],
) -> Option<Option<Vec<Time>>> {
    let members: Vec<usize> = (0..requests.len()).collect();
    let found = arrange_for_optimum(capacity, taken, requests, &members, &mut 0)?;
    Some(found.map(|mut starts| {
        starts.sort_unstable();
        starts.into_iter().map(|(_, start)| start).collect()
    }))
}

/// The most node-seconds inside `span` that any plan on `capacity` nodes can use for these requests, even a plan that cuts them
/// anywhere and accepts parts of them. It is a maximum flow from the requests through the stretches of time that their windows
/// hold.
pub(crate) fn bound_optimum(capacity: u32, requests: &[Request], span: Interval) -> Seconds {
    let inside = |request: &Request| {
        let window = request.window();
        Interval::new(window.start.max(span.start), window.end.min(span.end))
    };
    let windows = requests.iter().map(inside).filter(|window| !window.is_empty());
    let mut times: Vec<Time> = windows.flat_map(|window| [window.start, window.end]).collect();
    times.sort_unstable();
    times.dedup();
    let (source, sink) = (0, 1);
    let of_stretch = |stretch: usize| 2 + requests.len() + stretch;
    let mut network = FlowNetwork::new(of_stretch(times.len()));
    for (at, pair) in times.windows(2).enumerate() {
        network.connect(of_stretch(at), sink, i64::from(capacity) * (pair[1] - pair[0]));
    }
    for (number, request) in requests.iter().enumerate() {
        network.connect(source, 2 + number, area_of_optimum_request(request));
        let window = inside(request);
        let first = times.partition_point(|time| *time < window.start);
        for at in first..times.len().saturating_sub(1) {
            if times[at] >= window.end {
                break;
            }
            let length = times[at + 1] - times[at];
            network.connect(2 + number, of_stretch(at), i64::from(request.nodes) * length);
        }
    }
    network.maximum(source, sink)
}

pub(crate) fn area_of_optimum_request(request: &Request) -> Seconds {
    i64::from(request.nodes) * request.duration
}

fn span_of_optimum(requests: &[Request]) -> Interval {
    Interval::new(
        requests.iter().map(|r| r.ready).min().unwrap_or(Time(0)),
        requests.iter().map(|r| r.deadline).max().unwrap_or(Time(0)),
    )
}

/// Which requests to accept.
struct OptimumSearch<'a> {
    capacity: u32,
    requests: &'a [Request],
    /// The order in which they are decided about.
    order: Vec<usize>,
    best: Optimum,
    steps: u64,
}

impl OptimumSearch<'_> {
    /// Decides about the requests from place `at` of the order on. `accepted` has a plan for those accepted so far, and no plan
    /// for the requests that are not `refused` uses more than `most`. `None` after too many steps.
    fn branch(&mut self, at: usize, accepted: &Optimum, refused: &mut [bool], most: Seconds) -> Option<()> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return None;
        }
        if accepted.area > self.best.area {
            self.best = accepted.clone();
        }
        let Some(&next) = self.order.get(at) else {
            return Some(());
        };
        if most <= self.best.area {
            return Some(());
        }
        if let Some(starts) = self.with(accepted, next)? {
            let area = accepted.area + area_of_optimum_request(&self.requests[next]);
            self.branch(at + 1, &Optimum { area, starts }, refused, most)?;
        }
        refused[next] = true;
        let rest: Vec<Request> = (self.requests.iter().zip(&*refused))
            .filter(|(_, refused)| !**refused)
            .map(|(request, _)| *request)
            .collect();
        let most = bound_optimum(self.capacity, &rest, span_of_optimum(&rest));
        let done = self.branch(at + 1, accepted, refused, most);
        refused[next] = false;
        done
    }

    /// A plan of the accepted requests and one more, if there is one.
    #[expect(clippy::option_option, reason = "no answer, or the answer that there is none")]
    fn with(&mut self, accepted: &Optimum, more: usize) -> Option<Option<Vec<(usize, Time)>>> {
        // The plan that there is may have room.
        let placed = accepted.starts.iter();
        let slots = placed.map(|(at, start)| optimum_slot_at(&self.requests[*at], *start));
        let slots: Vec<Slot> = slots.collect();
        if let Some(start) = first_fit_for_optimum(self.capacity, &slots, &self.requests[more], Time::MIN) {
            let mut starts = accepted.starts.clone();
            starts.push((more, start));
            return Some(Some(starts));
        }
        let mut members: Vec<usize> = accepted.starts.iter().map(|(at, _)| *at).collect();
        members.push(more);
        arrange_for_optimum(self.capacity, &[], self.requests, &members, &mut self.steps)
    }
}

pub(crate) fn optimum_slot_at(request: &Request, start: Time) -> Slot {
    Slot {
        interval: request.slot(start),
        nodes: request.nodes,
    }
}

/// Starts for the `members` of the requests, in any order, if there is a plan; `None` after too many steps.
#[expect(clippy::option_option, reason = "no answer, or the answer that there is none")]
fn arrange_for_optimum(
    capacity: u32,
    taken: &[Slot],
    requests: &[Request],
    members: &[usize],
    steps: &mut u64,
) -> Option<Option<Vec<(usize, Time)>>> {
    let mut arrangement = Arrangement {
        capacity,
        requests,
        taken: taken.to_vec(),
        starts: Vec::new(),
    };
    let (rigid, mut flexible): (Vec<usize>, Vec<usize>) =
        members.iter().partition(|at| requests[**at].is_rigid());
    for at in rigid {
        // With one possible start each, they are where they are in any plan.
        match first_fit_for_optimum(capacity, &arrangement.taken, &requests[at], Time::MIN) {
            Some(start) => arrangement.place(at, start),
            None => return Some(None),
        }
    }
    // The request that must start first goes first: of the orders, the one that finds a plan most often.
    flexible.sort_by_key(|at| (latest_start(&requests[*at]), *at));
    if !arrangement.search(&flexible, (Time::MIN, 0), steps)? {
        return Some(None);
    }
    Some(Some(arrangement.starts))
}

/// Requests placed so far, in order of their starts except for the rigid ones.
struct Arrangement<'a> {
    capacity: u32,
    requests: &'a [Request],
    taken: Vec<Slot>,
    starts: Vec<(usize, Time)>,
}

impl Arrangement<'_> {
    fn place(&mut self, at: usize, start: Time) {
        self.taken.push(optimum_slot_at(&self.requests[at], start));
        self.starts.push((at, start));
    }

    /// Whether `rest` can be placed too, none of it before the `last` one placed; `None` after too many steps.
    fn search(&mut self, rest: &[usize], last: (Time, usize), steps: &mut u64) -> Option<bool> {
        if rest.is_empty() {
            return Some(true);
        }
        *steps += 1;
        if *steps > STEPS_MAX {
            return None;
        }
        let mut fits = Vec::with_capacity(rest.len());
        for at in rest {
            // Later placements will not make room for it.
            match first_fit_for_optimum(self.capacity, &self.taken, &self.requests[*at], last.0) {
                Some(start) => fits.push((*at, start)),
                None => return Some(false),
            }
        }
        for &(at, start) in &fits {
            // A request that starts later than another could have completed leaves a hole for it: moved up, the plan is another
            // one.
            let ends_before =
                |(other, fit): &(usize, Time)| *other != at && *fit + self.requests[*other].duration <= start;
            let is_late = |other: &usize| latest_start(&self.requests[*other]) < start;
            if (start, at) <= last || fits.iter().any(ends_before) || rest.iter().any(is_late) {
                continue;
            }
            self.place(at, start);
            let others: Vec<usize> = rest.iter().copied().filter(|other| *other != at).collect();
            if self.search(&others, (start, at), steps)? {
                return Some(true);
            }
            self.taken.pop();
            self.starts.pop();
        }
        Some(false)
    }
}

fn latest_start(request: &Request) -> Time {
    request.deadline - request.duration
}

/// The first start in its window, not before `earliest`, at which a request fits beside the taken slots. O(n³) at worst.
fn first_fit_for_optimum(capacity: u32, taken: &[Slot], request: &Request, earliest: Time) -> Option<Time> {
    if request.nodes > capacity {
        return None;
    }
    let mut start = request.ready.max(earliest);
    while start <= latest_start(request) {
        match obstacle_to_optimum(capacity - request.nodes, taken, request.slot(start)) {
            None => return Some(start),
            // The obstacle stays in the way until the first of its slots ends.
            Some(end) => start = end,
        }
    }
    None
}

/// If more than `free` nodes are taken somewhere in `interval`: when the first of the slots there ends.
fn obstacle_to_optimum(free: u32, taken: &[Slot], interval: Interval) -> Option<Time> {
    let begins = taken.iter().map(|slot| slot.interval.start);
    std::iter::once(interval.start)
        .chain(begins.filter(|begin| interval.start < *begin && *begin < interval.end))
        .find_map(|time| {
            let there = || {
                let running = |slot: &&Slot| slot.interval.start <= time && time < slot.interval.end;
                taken.iter().filter(running)
            };
            let nodes: u64 = there().map(|slot| u64::from(slot.nodes)).sum();
            (nodes > u64::from(free)).then(|| there().map(|slot| slot.interval.end).min())?
        })
}

#[cfg(test)]
mod tests {
    use super::{
        Optimum, Slot, area_of_optimum_request, bound_optimum, find_optimum, find_optimum_starts,
        optimum_slot_at, span_of_optimum,
    };
    use advisor::policy::Policy;
    use advisor::random::Random;
    use advisor::replay::{ReplayAsk, replay_asks};
    use scheduler::{Interval, Order, Request, Time};

    fn request(id: u64, ready: i64, deadline: i64, duration: i64, nodes: u32) -> Request {
        Request {
            id,
            submitted: Time(0),
            ready: Time(ready),
            deadline: Time(deadline),
            duration,
            nodes,
            revenue: 0,
        }
    }

    /// Crowded, with windows from none to several durations long.
    fn crowd(random: &mut Random, count: u64, capacity: u32, span: f64) -> Vec<Request> {
        let draw = |random: &mut Random, below: f64| i64::from(random.poisson(below));
        (0..count)
            .map(|id| {
                let ready = draw(random, span);
                let duration = 1 + draw(random, 2.0);
                let slack = if random.chance(0.3) { 0 } else { draw(random, 3.0) };
                let nodes = 1 + u32::try_from(draw(random, f64::from(capacity) / 3.0)).unwrap();
                request(id, ready, ready + duration + slack, duration, nodes.min(capacity))
            })
            .collect()
    }

    /// Whether no second has more nodes than there are.
    fn holds(capacity: u32, slots: &[Slot]) -> bool {
        slots.iter().all(|a| {
            let there = slots
                .iter()
                .filter(|b| b.interval.start <= a.interval.start && a.interval.start < b.interval.end);
            there.map(|b| b.nodes).sum::<u32>() <= capacity
        })
    }

    /// The most node-seconds, by trying every start of every request, and its refusal.
    fn by_brute_force(capacity: u32, requests: &[Request], slots: &mut Vec<Slot>) -> i64 {
        let Some((first, rest)) = requests.split_first() else {
            return 0;
        };
        let mut best = by_brute_force(capacity, rest, slots);
        for start in first.ready.0..=first.deadline.0 - first.duration {
            slots.push(optimum_slot_at(first, Time(start)));
            if holds(capacity, slots) {
                best = best.max(area_of_optimum_request(first) + by_brute_force(capacity, rest, slots));
            }
            slots.pop();
        }
        best
    }

    /// That a best plan is a plan, of the area that it says.
    fn check(capacity: u32, requests: &[Request], best: &Optimum) {
        let slots: Vec<Slot> = (best.starts.iter())
            .map(|(at, start)| optimum_slot_at(&requests[*at], *start))
            .collect();
        assert!(holds(capacity, &slots), "{requests:?} {best:?}");
        let inside =
            |(at, start): &(usize, Time)| requests[*at].window().contains(requests[*at].slot(*start));
        assert!(best.starts.iter().all(inside), "{requests:?} {best:?}");
        let accepted: i64 = best
            .starts
            .iter()
            .map(|(at, _)| area_of_optimum_request(&requests[*at]))
            .sum();
        assert_eq!(accepted, best.area);
    }

    #[test]
    fn the_optimum_is_that_of_trying_everything() {
        let (mut refusals, mut whole) = (0, 0);
        for seed in 0..3_000 {
            let mut random = Random::new(seed, &[2]);
            let capacity = 1 + u32::try_from(seed % 5).unwrap();
            let requests = crowd(&mut random, 1 + seed % 6, capacity, 4.0);
            let best = find_optimum(capacity, &requests).expect("a few requests are solved");
            check(capacity, &requests, &best);
            let expected = by_brute_force(capacity, &requests, &mut Vec::new());
            assert_eq!(best.area, expected, "seed {seed}: {requests:?}");
            refusals += usize::from(best.starts.len() < requests.len());
            whole += usize::from(best.starts.len() == requests.len());
        }
        assert!(refusals > 500 && whole > 500, "{refusals} {whole}");
    }

    #[test]
    fn a_plan_is_found_if_and_only_if_trying_everything_finds_one() {
        let (mut found, mut missing) = (0, 0);
        for seed in 0..3_000 {
            let mut random = Random::new(seed, &[3]);
            let capacity = 2 + u32::try_from(seed % 4).unwrap();
            let requests = crowd(&mut random, 2 + seed % 4, capacity, 3.0);
            let taken = Slot {
                interval: Interval::new(Time(2), Time(4)),
                nodes: 1,
            };
            let possible = by_brute_force(capacity, &requests, &mut vec![taken])
                == requests.iter().map(area_of_optimum_request).sum::<i64>();
            let starts = find_optimum_starts(capacity, &[taken], &requests).expect("so few are soon tried");
            assert_eq!(starts.is_some(), possible, "seed {seed}: {requests:?}");
            if let Some(starts) = starts {
                let mut slots: Vec<Slot> = requests
                    .iter()
                    .zip(starts)
                    .map(|(r, start)| optimum_slot_at(r, start))
                    .collect();
                slots.push(taken);
                assert!(holds(capacity, &slots), "seed {seed}");
                found += 1;
            } else {
                missing += 1;
            }
        }
        assert!(found > 500 && missing > 500, "{found} {missing}");
    }

    #[test]
    fn no_policy_exceeds_the_optimum_and_it_does_not_exceed_the_bound() {
        for seed in 0..150 {
            let mut random = Random::new(seed, &[4]);
            let requests = crowd(&mut random, 12, 8, 10.0);
            let best = find_optimum(8, &requests).expect("a dozen requests are solved");
            check(8, &requests, &best);
            assert!(
                best.area <= bound_optimum(8, &requests, span_of_optimum(&requests)),
                "seed {seed}"
            );
            let asks: Vec<ReplayAsk> = requests.iter().copied().map(ReplayAsk::plain).collect();
            for order in [Order::Fifo, Order::Edf, Order::Bjf] {
                let ran = replay_asks(8, Policy::of(order), &asks).ran;
                let used: i64 = ran
                    .values()
                    .map(|(slot, nodes)| i64::from(*nodes) * slot.duration())
                    .sum();
                assert!(used <= best.area, "seed {seed}, {order:?}: {used} above {best:?}");
            }
        }
    }

    #[test]
    fn two_requests_for_the_same_time_share_what_there_is() {
        let span = Interval::new(Time(0), Time(100));
        let pair = |deadline| [request(0, 0, 10, 10, 4), request(1, 0, deadline, 10, 4)];
        assert_eq!(bound_optimum(4, &pair(10), span), 40);
        assert_eq!(bound_optimum(4, &pair(20), span), 80);
        assert_eq!(find_optimum(4, &pair(10)).unwrap().area, 40);
        assert_eq!(
            find_optimum(4, &pair(20)).unwrap().starts,
            [(0, Time(0)), (1, Time(10))]
        );
        let outside = [request(0, 90, 120, 30, 2)];
        assert_eq!(
            bound_optimum(4, &outside, span),
            20,
            "only the part inside counts"
        );
    }

    #[test]
    fn no_policy_exceeds_the_bound_on_a_part_of_the_time() {
        let span = Interval::new(Time(0), Time(300));
        for seed in 0..200 {
            let mut random = Random::new(seed, &[1]);
            let mut draw = |below: f64| i64::from(random.poisson(below));
            let requests: Vec<Request> = (0..20)
                .map(|id| {
                    let (ready, duration) = (draw(90.0) + draw(60.0), draw(20.0) + 1);
                    let nodes = 1 + u32::try_from(draw(2.0)).unwrap().min(7);
                    request(id, ready, ready + duration + draw(15.0), duration, nodes)
                })
                .collect();
            let most = bound_optimum(8, &requests, span) as f64 / (8.0 * 300.0);
            let asks: Vec<ReplayAsk> = requests.iter().copied().map(ReplayAsk::plain).collect();
            for order in [Order::Fifo, Order::Edf, Order::Bjf] {
                let used = replay_asks(8, Policy::of(order), &asks).utilisation(8, span);
                assert!(used <= most + 1e-9, "seed {seed}, {order:?}: {used} above {most}");
            }
        }
    }
}
