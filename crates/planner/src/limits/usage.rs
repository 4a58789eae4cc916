//! What parties use and hold: nodes in use over time by party and resource, and when more of them may be used so that no span of time has
//! too many node-seconds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::agreement::{Agreement, Slot, Stretch};
use scheduler::{Interval, Seconds, Time};
use uuid::Uuid;

use crate::context::View;

/// The length of the parts of time for which node-seconds are summed up, in seconds: six hours.
const PART: Seconds = 21_600;

/// How many nodes are in use at each time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// By how many the number changes.
    changes: BTreeMap<Time, i64>,
    node_seconds: u128,
    /// The node-seconds in each part of time, by its number.
    parts: BTreeMap<i64, u128>,
}

/// A bound on the node-seconds in any span of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    /// The length of the span, in seconds.
    pub(crate) span: Seconds,
    /// The most node-seconds in it.
    pub(crate) most: u128,
}

impl Usage {
    pub(crate) fn add(&mut self, one_stretch: Stretch) {
        self.change(one_stretch, 1);
        self.node_seconds += area(one_stretch);
        for (part, more) in parts_of_stretch(one_stretch) {
            *self.parts.entry(part).or_default() += more;
        }
    }

    /// Takes out what was added before.
    pub(crate) fn remove(&mut self, one_stretch: Stretch) {
        self.change(one_stretch, -1);
        self.node_seconds = self.node_seconds.saturating_sub(area(one_stretch));
        for (part, less) in parts_of_stretch(one_stretch) {
            if let Some(sum) = self.parts.get_mut(&part) {
                *sum = sum.saturating_sub(less);
                if *sum == 0 {
                    self.parts.remove(&part);
                }
            }
        }
    }

    fn change(&mut self, (slot, nodes): Stretch, sign: i64) {
        if slot.is_empty() {
            return;
        }
        let nodes = sign * i64::from(nodes);
        for (at, change) in [(slot.start, nodes), (slot.end, -nodes)] {
            let there = self.changes.entry(at).or_default();
            *there += change;
            if *there == 0 {
                self.changes.remove(&at);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The node-seconds of all.
    pub(crate) fn node_seconds(&self) -> u128 {
        self.node_seconds
    }

    /// The most node-seconds in any interval of a length. O(n) of the changes.
    pub(crate) fn most_within(&self, span: Seconds) -> u128 {
        let sums = self.sums(span).map(|(_, sum)| sum);
        sums.max().map_or(0, |most| most.max(0).unsigned_abs())
    }

    /// A bound on the node-seconds in any interval of a length: not less than [`Usage::most_within`], and at most by two parts of time
    /// more. O(p) for p parts of time with something, however many stretches lie in them.
    pub(crate) fn at_most_within(&self, span: Seconds) -> u128 {
        // An interval of this length meets so many parts at most.
        let reach = span.div_euclid(PART) + 2;
        let (mut sum, mut most) = (0, 0);
        let mut first = self.parts.iter().peekable();
        for (part, more) in &self.parts {
            sum += more;
            while let Some((_, less)) = first.next_if(|(gone, _)| **gone <= part - reach) {
                sum -= less;
            }
            most = most.max(sum);
        }
        most
    }

    /// The longest of [`Usage::starts`].
    pub(crate) fn starts_within(
        &self,
        bound: Bound,
        size: (u32, Seconds),
        window: Interval,
    ) -> Option<Interval> {
        // Of equal ones the first.
        let starts = self.starts(bound, size, window).into_iter();
        starts.reduce(|longest, next| {
            if longest.duration() < next.duration() {
                next
            } else {
                longest
            }
        })
    }

    /// The starts in a window at which nodes may be used for a duration so that no span with a part of them has more than the
    /// bound, as intervals in order, their ends included. O(n + k log k) of the changes, of which k are too much with it.
    pub(crate) fn starts(
        &self,
        bound: Bound,
        (nodes, duration): (u32, Seconds),
        window: Interval,
    ) -> Vec<Interval> {
        let wanted = WantedUsage {
            span: bound.span,
            most: i128::try_from(bound.most).unwrap_or(i128::MAX),
            nodes: i128::from(nodes.max(1)),
            duration,
        };
        let last = window.end - duration;
        if last < window.start || !wanted.fits_alone() {
            return Vec::new();
        }
        let (from, to) = (self.sums(bound.span), self.sums(bound.span).skip(1));
        let pieces = from
            .zip(to)
            .filter(|((_, from), (_, to))| wanted.is_too_much_beside(*from.max(to)))
            .filter_map(|(from, to)| wanted.kept_out_of_usage(from, to));
        let mut kept_out_of_usage: Vec<(Time, Time)> = pieces.collect();
        kept_out_of_usage.sort_unstable();
        let (mut from, mut starts) = (window.start, Vec::new());
        let after_all = (last + 1, last + 1);
        for (first, until) in kept_out_of_usage.into_iter().chain([after_all]) {
            let to = (first - 1).min(last);
            if from <= to {
                starts.push(Interval::new(from, to));
            }
            from = from.max(until + 1);
        }
        starts
    }

    /// The node-seconds of the spans of a length, by their starts: those between which the sum changes evenly. It is 0 before and after.
    fn sums(&self, span: Seconds) -> impl Iterator<Item = (Time, i128)> {
        let mut entering = self
            .changes
            .iter()
            .map(move |(at, change)| (*at - span, *change))
            .peekable();
        let mut leaving = self.changes.iter().map(|(at, change)| (*at, -change)).peekable();
        let (mut sum, mut slope, mut before) = (0, 0, Time::MIN);
        std::iter::from_fn(move || {
            let next = [entering.peek(), leaving.peek()].into_iter().flatten();
            let at = next.map(|(at, _)| *at).min()?;
            if slope != 0 {
                sum += i128::from(slope) * i128::from(at - before);
            }
            before = at;
            slope += entering
                .next_if(|(next, _)| *next == at)
                .map_or(0, |(_, change)| change);
            slope += leaving
                .next_if(|(next, _)| *next == at)
                .map_or(0, |(_, change)| change);
            Some((at, sum))
        })
    }
}

/// Nodes that are wanted for a duration, in seconds, under a bound.
struct WantedUsage {
    span: Seconds,
    most: i128,
    nodes: i128,
    duration: Seconds,
}

impl WantedUsage {
    /// The most seconds of the duration in one span.
    fn overlap(&self) -> Seconds {
        self.duration.min(self.span)
    }

    fn fits_alone(&self) -> bool {
        !self.is_too_much_beside(0)
    }

    /// Whether it is too much in a span that has so many node-seconds and all of it.
    fn is_too_much_beside(&self, sum: i128) -> bool {
        sum + self.nodes * i128::from(self.overlap()) > self.most
    }

    /// The first and the last start that is too much for a span which starts between two instants, where the sums of the spans
    /// change evenly from the one to the other; none where there is none.
    fn kept_out_of_usage(
        &self,
        (from, at_from): (Time, i128),
        (to, at_to): (Time, i128),
    ) -> Option<(Time, Time)> {
        let length = i128::from(to - from).max(1);
        let slope = (at_to - at_from) / length;
        // The instants where nothing is left, or less than is wanted, and the last ones before.
        let levels = [self.most, self.most - self.nodes * i128::from(self.overlap())];
        let crossed = levels.into_iter().filter(|_| slope != 0).flat_map(|level| {
            let near = ((level - at_from).div_euclid(slope)).clamp(0, length);
            (-1..=1).map(move |by| (near + by).clamp(0, length))
        });
        let instants = crossed.chain([0, length]);
        let each = instants.filter_map(|after| {
            let seconds = i64::try_from(after).ok()?;
            self.kept_out_by_usage(from + seconds, at_from + slope * after)
        });
        each.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// The first and the last start that the span keeps out which starts at an instant and has a sum already.
    fn kept_out_by_usage(&self, start: Time, sum: i128) -> Option<(Time, Time)> {
        // Seconds that it may overlap the span.
        let left = (self.most - sum).max(0) / self.nodes;
        let left = i64::try_from(left).unwrap_or(i64::MAX).min(self.overlap());
        let first = start + (left - self.duration + 1);
        let last = start + (self.span - left - 1);
        (left < self.overlap() && first <= last).then_some((first, last))
    }
}

/// The node-seconds of a stretch in each part of time that it meets.
fn parts_of_stretch((slot, nodes): Stretch) -> impl Iterator<Item = (i64, u128)> {
    let parts = slot.start.seconds().div_euclid(PART)..=(slot.end.seconds() - 1).div_euclid(PART);
    parts.filter(move |_| !slot.is_empty()).map(move |part| {
        let (start, end) = (part * PART, (part + 1) * PART);
        let within = slot.end.seconds().min(end) - slot.start.seconds().max(start);
        (part, u128::from(nodes) * u128::from(within.max(0).unsigned_abs()))
    })
}

/// The node-seconds of a stretch.
pub(crate) fn area((slot, nodes): Stretch) -> u128 {
    u128::from(nodes) * u128::from(slot.duration().max(0).unsigned_abs())
}

/// The slots of agreements that have a place, by party.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgreedUsage {
    of_parties: HashMap<String, AgreedUsageOfParty>,
}

/// The slots of one party.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgreedUsageOfParty {
    pub(crate) agreements: usize,
    /// By resource.
    pub(crate) on: BTreeMap<String, Usage>,
    /// The starts of its slots, by resource.
    pub(crate) starts: BTreeMap<String, BTreeSet<(Time, Uuid)>>,
}

/// The slots of an agreement that are not over.
fn unended_slots(agreement: &Agreement) -> impl Iterator<Item = &Slot> {
    agreement.slots.iter().filter(|slot| slot.ended.is_none())
}

impl AgreedUsage {
    /// Takes in an agreement that has got a place.
    pub(crate) fn add(&mut self, agreement: &Agreement) {
        let party = self.of_parties.entry(agreement.party.clone()).or_default();
        party.agreements += 1;
        let on = party.on.entry(agreement.resource.clone()).or_default();
        let starts = party.starts.entry(agreement.resource.clone()).or_default();
        for slot in unended_slots(agreement) {
            on.add(slot.stretch());
            starts.insert((slot.placement.start, agreement.id));
        }
    }

    /// Lets go of an agreement as it was taken in.
    pub(crate) fn remove(&mut self, agreement: &Agreement) {
        let Some(party) = self.of_parties.get_mut(&agreement.party) else {
            return;
        };
        party.agreements = party.agreements.saturating_sub(1);
        if let Some(on) = party.on.get_mut(&agreement.resource) {
            for slot in unended_slots(agreement) {
                on.remove(slot.stretch());
            }
            if on.is_empty() {
                party.on.remove(&agreement.resource);
            }
        }
        if let Some(starts) = party.starts.get_mut(&agreement.resource) {
            for slot in unended_slots(agreement) {
                starts.remove(&(slot.placement.start, agreement.id));
            }
            if starts.is_empty() {
                party.starts.remove(&agreement.resource);
            }
        }
        if party.agreements == 0 {
            self.of_parties.remove(&agreement.party);
        }
    }

    /// What a party has; none where it has nothing.
    pub(crate) fn of(&self, party: &str) -> Option<&AgreedUsageOfParty> {
        self.of_parties.get(party)
    }

    /// The parties that have something, in no order.
    pub(crate) fn parties(&self) -> impl Iterator<Item = &str> {
        self.of_parties.keys().map(String::as_str)
    }

    /// Whether any other party has something.
    pub(crate) fn has_others(&self, party: &str) -> bool {
        let own = usize::from(self.of_parties.contains_key(party));
        self.of_parties.len() > own
    }
}

/// What a party is offered or waits for, by resource.
pub(super) type OpenStretches = BTreeMap<String, Vec<Stretch>>;

/// What is held for offers to a party, of each choice the largest stretch on a resource, and what its waiting commands would
/// get; without what is held for one choice.
pub(crate) fn usage_beside(view: View<'_>, party: &str, but: Option<Uuid>) -> OpenStretches {
    let mut beside = OpenStretches::new();
    let choices = view.table.choices_held(party).into_iter();
    for choice in choices.filter(|choice| Some(*choice) != but) {
        let mut largest: BTreeMap<&str, Stretch> = BTreeMap::new();
        for (resource, stretch) in view.table.stretches_on_hold(choice) {
            let largest_stretch = largest.entry(resource).or_insert(stretch);
            if area(stretch) > area(*largest_stretch) {
                *largest_stretch = stretch;
            }
        }
        for (resource, stretch) in largest {
            beside.entry(resource.to_owned()).or_default().push(stretch);
        }
    }
    // The offers count for acceptances, and a command that is decided again has given its slots back.
    for agreement in view.elsewhere.placed_for(party) {
        let on = beside.entry(agreement.resource.clone()).or_default();
        on.extend(agreement.slots.iter().map(Slot::stretch));
    }
    beside
}

/// What a party has on each resource, without an agreement that would be replaced.
pub(super) fn usage_by_resource<'a>(
    view: View<'a>,
    party: &str,
    replaced: Option<&Agreement>,
) -> BTreeMap<String, Cow<'a, Usage>> {
    let beside = usage_beside(view, party, replaced.map(|replaced| replaced.id));
    let agreed = view.limits.holdings_of(party).into_iter();
    let agreed = agreed.flat_map(|agreed| agreed.on.keys());
    let used: BTreeSet<&String> = agreed.chain(beside.keys()).collect();
    let used = used.into_iter().map(|resource| {
        let usage = usage_on(view, party, resource, (&beside, replaced));
        (resource.clone(), usage)
    });
    used.collect()
}

/// What a party has on a resource in agreements, with what is `beside`, and without an agreement that would be replaced.
pub(super) fn usage_on<'a>(
    view: View<'a>,
    party: &str,
    resource: &str,
    (beside, replaced): (&OpenStretches, Option<&Agreement>),
) -> Cow<'a, Usage> {
    let agreed = view
        .limits
        .holdings_of(party)
        .and_then(|each| each.on.get(resource));
    let mut usage = agreed.map_or_else(|| Cow::Owned(Usage::default()), Cow::Borrowed);
    for stretch in beside.get(resource).into_iter().flatten() {
        usage.to_mut().add(*stretch);
    }
    if let Some(old) = replaced.filter(|old| old.resource == resource && agreed.is_some()) {
        for slot in old.slots.iter().filter(|slot| slot.ended.is_none()) {
            usage.to_mut().remove(slot.stretch());
        }
    }
    usage
}

/// Whether a party may have this many node-seconds more of a resource for certain, whenever that is, with what is `beside`: an answer
/// without a look at each of its slots.
pub(super) fn has_much_left(
    view: View<'_>,
    party: &str,
    resource: &str,
    beside: &OpenStretches,
    (bound, more): (Bound, u128),
) -> bool {
    let agreed = view
        .limits
        .holdings_of(party)
        .and_then(|each| each.on.get(resource));
    let open = beside.get(resource).into_iter().flatten();
    let open: u128 = open.map(|stretch| area(*stretch)).sum();
    let most = bound.most.saturating_sub(open + more);
    open + more <= bound.most
        && agreed.is_none_or(|usage| usage.node_seconds() <= most || usage.at_most_within(bound.span) <= most)
}

/// The node-seconds that a party has, without an agreement that would be replaced and what is held for that.
pub(super) fn used_node_seconds(view: View<'_>, party: &str, replaced: Option<&Agreement>) -> u128 {
    // Of all that is offered in its place one can be taken.
    let replaced = replaced.map_or(0, |agreement| {
        agreement.node_seconds() + view.table.held_node_seconds_about(agreement.id)
    });
    let waiting = view.elsewhere.node_seconds(party);
    (view.limits.node_seconds(party) + view.table.node_seconds(party) + waiting).saturating_sub(replaced)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The node-seconds of stretches in a span.
    fn sum(stretches: &[Stretch], span: Interval) -> i64 {
        let within = stretches.iter().map(|(slot, nodes)| {
            let (start, end) = (slot.start.max(span.start), slot.end.min(span.end));
            (end - start).max(0) * i64::from(*nodes)
        });
        within.sum()
    }

    /// Whether one more stretch is too much for no span with a part of it.
    fn may_start(stretches: &[Stretch], more: Stretch, bound: Bound) -> bool {
        (-40..120).all(|start| {
            let span = Interval::of(Time(start), bound.span);
            let most = i64::try_from(bound.most).unwrap();
            !span.meets(more.0) || sum(stretches, span) + sum(&[more], span) <= most
        })
    }

    fn stretch() -> impl Strategy<Value = Stretch> {
        (0..60_i64, 1..15_i64, 1..5_u32)
            .prop_map(|(start, duration, nodes)| (Interval::of(Time(start), duration), nodes))
    }

    proptest! {
        #[test]
        fn starts_are_the_longest_that_every_span_allows(
            stretches in prop::collection::vec(stretch(), 0..8),
            (span, most) in (1..20_i64, 0..60_u128),
            (nodes, duration) in (1..5_u32, 1..25_i64),
            window in (0..60_i64, 1..40_i64).prop_map(|(start, length)| Interval::of(Time(start), length)),
        ) {
            let mut usage = Usage::default();
            for stretch in &stretches {
                usage.add(*stretch);
            }
            let bound = Bound { span, most };
            let may = |start: i64| may_start(&stretches, (Interval::of(Time(start), duration), nodes), bound);
            let last = (window.end - duration).seconds();
            let (mut longest, mut run) = (0, 0);
            for start in window.start.seconds()..=last {
                run = if may(start) { run + 1 } else { 0 };
                longest = longest.max(run);
            }
            let found = usage.starts_within(bound, (nodes, duration), window);
            let count = found.map_or(0, |found| found.duration() + 1);
            prop_assert_eq!(count, longest);
            for start in found.into_iter().flat_map(|found| found.start.seconds()..=found.end.seconds()) {
                prop_assert!(may(start));
            }
        }

        #[test]
        fn what_is_taken_out_again_leaves_nothing(stretches in prop::collection::vec(stretch(), 1..8), span in 1..20_i64) {
            let mut usage = Usage::default();
            for stretch in &stretches {
                usage.add(*stretch);
            }
            prop_assert!(usage.at_most_within(span) >= usage.most_within(span));
            let most = (-40..120).map(|start| sum(&stretches, Interval::of(Time(start), span))).max();
            prop_assert_eq!(usage.most_within(span), most.unwrap_or(0).unsigned_abs().into());
            for stretch in &stretches {
                usage.remove(*stretch);
            }
            prop_assert_eq!(usage, Usage::default());
        }
    }
}
