//! What parties use and hold: nodes in use over time by party and resource, and when more of them may be used so that no span of time has
//! too many node-seconds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use domain::agreement::{Agreement, Slot, Stretch};
use scheduler::{Interval, Seconds, Starts, Time};
use uuid::Uuid;

use crate::context::View;
use crate::limits::part_of_usage::{PART, PartOfUsage, parts_of_stretch};

/// The time of which a share is taken: 30 days.
pub(crate) const SHARE_SPAN: Seconds = 30 * 86_400;
/// The same in parts of time.
const PARTS_OF_SPAN: i64 = SHARE_SPAN / PART;
const _: () = assert!(PARTS_OF_SPAN * PART == SHARE_SPAN);

/// How many nodes are in use at each time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    node_seconds: u128,
    /// The parts of time with something, by their numbers. A copy shares those that it does not change.
    parts: BTreeMap<i64, Arc<PartOfUsage>>,
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
    /// Adds a stretch. O(p log n) for p parts of time that it meets.
    pub(crate) fn add(&mut self, one_stretch: Stretch) {
        self.change(one_stretch, 1);
        self.node_seconds += area(one_stretch);
    }

    /// Takes out what was added before.
    pub(crate) fn remove(&mut self, one_stretch: Stretch) {
        self.change(one_stretch, -1);
        self.node_seconds = self.node_seconds.saturating_sub(area(one_stretch));
    }

    fn change(&mut self, one_stretch: Stretch, sign: i64) {
        for number in parts_of_stretch(one_stretch) {
            let part = Arc::make_mut(self.parts.entry(number).or_default());
            part.change(number, one_stretch, sign);
            if part.is_empty() {
                self.parts.remove(&number);
            }
            if let Some(ending) = self.parts.get_mut(&(number + PARTS_OF_SPAN)) {
                Arc::make_mut(ending).forget_gain();
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The node-seconds of all.
    pub(crate) fn node_seconds(&self) -> u128 {
        self.node_seconds
    }

    /// The most node-seconds in any [`SHARE_SPAN`]. O(p + k) for p parts of time with something, and k changes in those that have changed
    /// since it was asked for.
    pub(crate) fn most_in_span(&self) -> u128 {
        let (mut sum, mut most) = (0, 0);
        let mut leaving = self.parts.iter().peekable();
        // A span that has the most ends in a part with something, or where such a part ends.
        for (number, entering) in &self.parts {
            let first = number - PARTS_OF_SPAN;
            while let Some((_, gone)) = leaving.next_if(|(gone, _)| **gone < first) {
                sum -= gone.node_seconds;
            }
            let left = leaving.peek().filter(|(left, _)| **left == first);
            most = most.max(sum + entering.gain(left.map(|(_, left)| &***left)));
            sum += entering.node_seconds;
        }
        most
    }

    /// Whether so many node-seconds more are not too much for any [`SHARE_SPAN`], wherever they lie.
    pub(crate) fn leaves(&self, most: u128, more: u128) -> bool {
        self.node_seconds + more <= most || self.most_in_span() + more <= most
    }

    /// By how many the number of nodes changes, in order of time.
    fn changes(&self) -> impl Iterator<Item = (Time, i64)> {
        let changes = self.parts.values().flat_map(|part| &part.changes);
        changes.map(|(at, change)| (*at, *change))
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
            .changes()
            .map(move |(at, change)| (at - span, change))
            .peekable();
        let mut leaving = self.changes().map(|(at, change)| (at, -change)).peekable();
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
    pub(crate) starts: BTreeMap<String, Starts<Uuid>>,
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
            starts.insert(slot.placement.start, agreement.id);
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
                starts.remove(slot.placement.start, agreement.id);
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
    (most, more): (u128, u128),
) -> bool {
    let agreed = view
        .limits
        .holdings_of(party)
        .and_then(|each| each.on.get(resource));
    let open = beside.get(resource).into_iter().flatten();
    let open: u128 = open.map(|stretch| area(*stretch)).sum();
    open + more <= most && agreed.is_none_or(|usage| usage.leaves(most, open + more))
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

    /// Stretches that meet many parts of time, some of them from border to border, and others a few seconds.
    fn long_stretch() -> impl Strategy<Value = Stretch> {
        let length = prop_oneof![1..100_i64, 1..3 * PART, 1..SHARE_SPAN * 3 / 2];
        (-SHARE_SPAN..2 * SHARE_SPAN, length, 1..5_u32, any::<bool>()).prop_map(
            |(start, length, nodes, is_whole)| {
                let whole = |at: i64| if is_whole { at.div_euclid(PART) * PART } else { at };
                let slot = Interval::new(Time(whole(start)), Time(whole(start + length)));
                (slot, nodes)
            },
        )
    }

    /// The most node-seconds in a span: one begins or ends where a stretch begins or ends.
    fn most_of_plain_walk(stretches: &[Stretch]) -> u128 {
        let ends = stretches.iter().flat_map(|(slot, _)| [slot.start, slot.end]);
        let spans = ends
            .flat_map(|at| [at, at - SHARE_SPAN])
            .map(|start| Interval::of(start, SHARE_SPAN));
        let most = spans.map(|span| sum(stretches, span)).max();
        most.unwrap_or(0).unsigned_abs().into()
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
        fn the_most_in_a_span_is_that_of_the_plain_walk(stretches in prop::collection::vec(long_stretch(), 1..12), copied in 0..12_usize) {
            let mut usage = Usage::default();
            let mut copies = Vec::new();
            for (number, stretch) in stretches.iter().enumerate() {
                usage.add(*stretch);
                let added = &stretches[..=number];
                prop_assert_eq!(usage.most_in_span(), most_of_plain_walk(added));
                if number == copied {
                    copies.push((usage.clone(), added));
                }
            }
            for (number, stretch) in stretches.iter().enumerate() {
                usage.remove(*stretch);
                let left = &stretches[number + 1..];
                prop_assert_eq!(usage.most_in_span(), most_of_plain_walk(left));
                prop_assert_eq!(usage.node_seconds(), left.iter().map(|left| area(*left)).sum::<u128>());
            }
            prop_assert!(usage.is_empty());
            for (copy, added) in copies {
                prop_assert_eq!(copy.most_in_span(), most_of_plain_walk(added), "a copy stays as it was");
            }
        }
    }

    #[test]
    fn only_what_changes_is_looked_at_again() {
        let mut usage = Usage::default();
        let stretch = |number: i64| {
            (
                Interval::of(Time(600 * number), 900),
                1 + u32::from(number % 3 == 0),
            )
        };
        for number in 0..10_000 {
            usage.add(stretch(number));
        }
        let unknown = |usage: &Usage| usage.parts.values().filter(|part| !part.knows_gain()).count();
        assert!(usage.parts.len() > 2 * 120);
        assert_eq!(unknown(&usage), usage.parts.len());
        let most = usage.most_in_span();
        assert_eq!(unknown(&usage), 0);
        let mut copy = usage.clone();
        copy.add(stretch(5_000));
        usage.remove(stretch(5_001));
        for changed in [&usage, &copy] {
            // It meets one part of time or two, and spans that begin there end in as many.
            assert!((2..=4).contains(&unknown(changed)));
        }
        assert!(copy.most_in_span() > most);
        usage.add(stretch(5_001));
        assert_eq!(usage.most_in_span(), most);
    }
}
