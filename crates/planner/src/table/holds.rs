//! The nodes that are kept for offers that can still be accepted. The offers of one answer are alternatives, and so are all
//! offers for a change of one agreement: they are one choice. So together they keep the pointwise maximum; in the schedule of
//! their resource that stands as requests for fixed slots.

use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::{NegotiationOffer, OfferTerms, Stretch, held_stretches, stretches_held_beyond};
use domain::change::Change;
use domain::clock::{MICROS_PER_SECOND, second_after};
use scheduler::{Interval, Move, Request, Time, counted};
use uuid::Uuid;

use crate::agreements::Agreements;
use crate::context::{Bargaining, Search};
use crate::journal::{Journal, TakeBack};
use crate::placement::places::Places;
use crate::schedules::Schedules;
use crate::table::Table;
use crate::table::replace::{pin_replaced, unpin_replaced};

/// Schedules know holds by numbers from here on, and agreements by smaller ones.
const HOLDS: u64 = 1 << 63;

/// A stretch that is kept, and the number by which the schedule of its resource knows it.
#[derive(Debug, Clone)]
pub(crate) struct HeldStretch {
    pub(crate) resource: String,
    pub(crate) number: u64,
    pub(crate) stretch: Stretch,
}

impl HeldStretch {
    /// As the schedule of its resource sees it.
    pub(crate) fn request(&self, submitted: Time) -> Request {
        let (interval, nodes) = self.stretch;
        Request {
            id: self.number,
            submitted,
            ready: interval.start,
            deadline: interval.end,
            duration: interval.duration(),
            nodes,
            revenue: 0,
        }
    }
}

/// Stretches of one resource by start and number, each with its end and the choice that it is kept for.
pub(crate) type ByStart = BTreeMap<(Time, u64), (Time, Uuid)>;

/// The nodes kept for the offers of one choice, by choice and by resource.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    pub(crate) by_choice: BTreeMap<Uuid, Vec<HeldStretch>>,
    pub(crate) by_resource: BTreeMap<String, ByStart>,
    /// What was kept for choices before.
    journal: Journal<(Uuid, Vec<HeldStretch>)>,
}

impl Holds {
    pub(crate) fn insert(&mut self, choice: Uuid, held: HeldStretch) {
        let before = self.by_choice.get(&choice);
        self.journal
            .note(|| (choice, before.cloned().unwrap_or_default()));
        self.put(choice, held);
    }

    /// Lets go of the hold of a choice.
    pub(crate) fn remove(&mut self, choice: Uuid) -> Vec<HeldStretch> {
        let all = self.take(choice);
        self.journal.note(|| (choice, all.clone()));
        all
    }

    fn put(&mut self, choice: Uuid, held: HeldStretch) {
        let (slot, _) = held.stretch;
        let here = self.by_resource.entry(held.resource.clone()).or_default();
        here.insert((slot.start, held.number), (slot.end, choice));
        self.by_choice.entry(choice).or_default().push(held);
    }

    fn take(&mut self, choice: Uuid) -> Vec<HeldStretch> {
        let all = self.by_choice.remove(&choice).unwrap_or_default();
        for held in &all {
            if let Some(here) = self.by_resource.get_mut(&held.resource) {
                here.remove(&(held.stretch.0.start, held.number));
                if here.is_empty() {
                    self.by_resource.remove(&held.resource);
                }
            }
        }
        all
    }

    /// The hold of a choice.
    pub(crate) fn of(&self, choice: Uuid) -> &[HeldStretch] {
        self.by_choice.get(&choice).map_or(&[], Vec::as_slice)
    }

    /// The stretch on a resource with a start and a number, and the choice that it is kept for.
    pub(crate) fn numbered(&self, resource: &str, start: Time, number: u64) -> Option<(Uuid, Stretch)> {
        let (_, choice) = self.by_resource.get(resource)?.get(&(start, number))?;
        let held = self.of(*choice).iter().find(|held| held.number == number)?;
        Some((*choice, held.stretch))
    }

    /// The stretches kept on a resource that start in a time, by start and number.
    pub(crate) fn starting_in(&self, resource: &str, time: Interval) -> impl Iterator<Item = (Time, u64)> {
        let here = self.by_resource.get(resource).into_iter();
        let within = (time.start, 0)..(time.end.max(time.start), 0);
        here.flat_map(move |here| here.range(within.clone()).map(|(held, _)| *held))
    }

    /// Starts and numbers of the stretches kept on a resource, with their ends and choices.
    pub(crate) fn on(&self, resource: &str) -> impl Iterator<Item = (&(Time, u64), &(Time, Uuid))> {
        self.by_resource.get(resource).into_iter().flatten()
    }
}

impl TakeBack for Holds {
    type Before = ();

    fn begin_try(&mut self) {
        self.journal.begin();
    }

    fn take_back(&mut self, (): ()) {
        for (choice, before) in self.journal.end() {
            self.take(choice);
            for held in before {
                self.put(choice, held);
            }
        }
    }
}

/// Keeps the nodes that an offer needs beyond the hold of the other offers of its choice. Returns the moves of others;
/// none where there is no place.
pub(crate) fn hold_beside_others(
    search: &mut Search<'_>,
    (negotiation, answer): (Uuid, Uuid),
    terms: &OfferTerms,
    (is_new, numbers): (bool, &mut std::ops::RangeFrom<u64>),
) -> Option<(Vec<HeldStretch>, Vec<Move>)> {
    let now = search.present_second();
    let base = search
        .table
        .replaced_stretches(search.agreements, negotiation, &terms.resource);
    if !base.is_empty() {
        pin_replaced(search, negotiation);
    }
    let choice = search.table.choice_of(negotiation, answer);
    let mut offers = search.table.stretches_to_hold(negotiation, choice);
    let mut offers = offers.remove(&terms.resource).unwrap_or_default();
    let less = held_stretches(&offers, &base);
    offers.extend(terms.kept());
    let at = search.schedules.place_of(&terms.resource)?;
    let end = terms.slots.placement().end;
    let old = search
        .table
        .renegotiated(search.agreements, negotiation)
        .filter(|_| !base.is_empty());
    if old.is_some_and(|old| !search.life.may_keep_held_nodes_until(search.schedules, old, end)) {
        return None;
    }
    let resource = &search.schedules.get(at)?.resource;
    let filters = terms
        .promise
        .iter()
        .flat_map(|promise| &promise.constraints.filters);
    let mut required = filters.map(|filter| filter.requirement(terms.nodes()));
    let is_refused = resource.is_retired()
        || is_new && resource.is_frozen()
        || !required.all(|asked| resource.meets(&asked));
    let (mut added, mut moves) = (Vec::new(), Vec::new());
    for (interval, nodes) in stretches_held_beyond(&held_stretches(&offers, &base), &less) {
        // Its past part needs no hold.
        let stretch = (Interval::new(interval.start.max(now), interval.end), nodes);
        if stretch.0.is_empty() {
            continue;
        }
        if is_refused {
            return None;
        }
        let held = HeldStretch {
            resource: terms.resource.clone(),
            number: numbers.next()?,
            stretch,
        };
        let window = Interval::new(terms.ready, terms.deadline);
        moves.extend(make_place_for_hold(search, at, &held.request(now), window)?);
        added.push(held);
    }
    Some((added, moves))
}

/// Puts a stretch that is to be kept in its place. Returns the moves of others. Where the place is free, no moves are needed
/// and nothing is searched. A request quoted in a window may get its place only with this window: an order by deadlines
/// places others before a request that has all of the window, and refuses a request that has no other place.
fn make_place_for_hold(
    search: &mut Search<'_>,
    at: usize,
    request: &Request,
    window: Interval,
) -> Option<Vec<Move>> {
    let now = search.present_second();
    let resources = &mut *search.schedules;
    if resources.put(at, now, request, request.ready) {
        return Some(Vec::new());
    }
    if let Some((_, moved)) = resources.submit(at, now, request) {
        return Some(moved);
    }
    // A request with a budget was quoted from the time on at which it can pay.
    let since = Some(request.ready).filter(|ready| *ready != window.start);
    let mut quoted = [window.start].into_iter().chain(since).map(|ready| Request {
        ready,
        deadline: window.end,
        ..*request
    });
    let quoted = quoted.find(|quoted| resources.would_start(at, now, quoted) == Some(request.ready))?;
    // With less work left, or more remembered, it may get another place than it was told a moment ago.
    let placed = resources.submit(at, now, &quoted);
    let (_, moved) = placed.filter(|(placement, _)| placement.slot.start == request.ready)?;
    resources.vacate(at, now, request.id);
    resources.put_back(at, now, request, request.ready);
    Some(moved)
}

/// Lets go of the holds of offers, as of an instant, and records it in the store. Others move up into the free
/// nodes.
pub(crate) fn release_holds_of_offers(bargaining: &mut Bargaining<'_>, offers: Vec<NegotiationOffer>) {
    let mut choices = BTreeSet::new();
    for mut offer in offers {
        if offer.is_held() {
            let lapsed = offer
                .expires
                .map_or(bargaining.now, |at| at.seconds() * MICROS_PER_SECOND);
            // A clock that was set back does not make it end before it began.
            offer.released = Some(lapsed.min(bargaining.now).max(offer.held.unwrap_or(lapsed)));
            choices.extend(offer.parent.map(|answer| {
                let choice = bargaining.table.choice_of(offer.negotiation, answer);
                (choice, offer.negotiation)
            }));
        }
        bargaining
            .batch
            .push(Change::UpdateOffer(Box::new(offer.clone())));
        bargaining.table.put(offer);
    }
    for (choice, negotiation) in choices {
        shrink_hold(bargaining, negotiation, choice);
    }
}

/// Keeps for a choice only as much as its held offers still need.
fn shrink_hold(bargaining: &mut Bargaining<'_>, negotiation: Uuid, choice: Uuid) {
    let now = bargaining.present_second();
    let kept_so_far = bargaining.table.let_go(choice);
    let needed = bargaining
        .table
        .nodes_to_hold(bargaining.agreements, negotiation, choice);
    if needed.is_empty() {
        let end = second_after(bargaining.now);
        for held in kept_so_far {
            if let Some(at) = bargaining.schedules.required_place_of(&held.resource) {
                bargaining.schedules.free(at, end, held.number);
            }
        }
        unpin_replaced(bargaining, negotiation);
        return;
    }
    for held in kept_so_far {
        bargaining.schedules.vacate_on(&held.resource, now, held.number);
    }
    if let Err(why) = bargaining
        .table
        .hold_again(bargaining.schedules, choice, needed, now)
    {
        bargaining
            .schedules
            .note_impossible(|| format!("the hold of {choice} was given up for a moment: {why}"));
    }
}

/// Takes the hold of a choice out of the plan, for the agreement that takes it over.
pub(crate) fn take_hold_out(bargaining: &mut Bargaining<'_>, choice: Uuid) {
    for held in bargaining.table.let_go(choice) {
        bargaining
            .schedules
            .vacate_on(&held.resource, bargaining.present_second(), held.number);
    }
}

/// Takes the hold of a choice out of the schedules, in a trial that does not stay: it is still known.
pub(crate) fn vacate_hold(search: &mut Search<'_>, choice: Uuid) {
    for held in search.table.holds().of(choice).to_vec() {
        let at = search.schedules.place_of(&held.resource);
        if at.is_some_and(|at| search.schedules.has_request(at, held.number)) {
            search
                .schedules
                .vacate_on(&held.resource, search.present_second(), held.number);
        }
    }
}

/// Frees the nodes of all that is held for offers to a party.
pub(crate) fn vacate_holds_of(search: &mut Search<'_>, party: &str) {
    for choice in search.table.choices_held(party) {
        vacate_hold(search, choice);
    }
}

/// Takes the holds on a resource in a time out of the plan, with all other holds of the same choices. Returns these
/// choices.
pub(crate) fn take_holds_out_in(
    bargaining: &mut Bargaining<'_>,
    resource: &str,
    time: Interval,
) -> Vec<Uuid> {
    let here = bargaining.table.holds().on(resource);
    let here = here.take_while(|((start, _), _)| *start < time.end);
    let here = here.filter(|((start, _), (end, _))| Interval::new(*start, *end).meets(time));
    let choices: BTreeSet<Uuid> = here.map(|(_, (_, choice))| *choice).collect();
    for choice in &choices {
        take_hold_out(bargaining, *choice);
    }
    choices.into_iter().collect()
}

impl Table {
    /// The choices of which a party has something held, each once, those left out that the provider has opened.
    pub(crate) fn choices_held(&self, party: &str) -> BTreeSet<Uuid> {
        self.most_held_of_choices(party).into_keys().collect()
    }

    /// The choices of which a party has something held, and the most node-seconds that it can take of each.
    pub(crate) fn most_held_of_choices(&self, party: &str) -> BTreeMap<Uuid, u128> {
        let mut choices = BTreeMap::new();
        for (answer, held) in self.parties.get(party).into_iter().flat_map(|own| &own.held) {
            let negotiation = self.offers.get(answer).copied();
            let choice = negotiation.map_or(*answer, |negotiation| self.choice_of(negotiation, *answer));
            let most: &mut u128 = choices.entry(choice).or_default();
            *most = (*held).max(*most);
        }
        choices
    }

    /// The most node-seconds that can be accepted from the hold of an answer; none where nothing is held.
    pub(crate) fn most_held(&self, negotiation: Uuid, answer: Uuid) -> Option<u128> {
        self.get(negotiation)?.held.get(&answer).copied()
    }

    /// The stretches that are kept for a choice, each with its resource.
    pub(crate) fn stretches_on_hold(&self, choice: Uuid) -> impl Iterator<Item = (&str, Stretch)> {
        let kept = self.holds.of(choice).iter();
        kept.map(|held| (held.resource.as_str(), held.stretch))
    }

    /// The most node-seconds that a party can take of what it has held for changes of an agreement.
    pub(crate) fn held_node_seconds_about(&self, agreement: Uuid) -> u128 {
        let talks = self.negotiations_about(agreement);
        let own = talks.filter(|talks| talks.instance.proposed.is_none());
        let held = own.flat_map(|talks| talks.held.values().copied());
        held.max().unwrap_or(0)
    }

    /// The numbers for what is kept next.
    pub(crate) fn hold_numbers(&self) -> std::ops::RangeFrom<u64> {
        HOLDS + self.held + 1..
    }

    /// Takes note of the numbers that are left.
    pub(crate) fn note_hold_numbers(&mut self, left: &std::ops::RangeFrom<u64>) {
        self.held = left.start - HOLDS - 1;
    }

    /// A number for something that is kept.
    pub(crate) fn next_hold_number(&mut self) -> u64 {
        self.held += 1;
        HOLDS + self.held
    }

    /// How many answers a party has held.
    pub(crate) fn held_answers(&self, party: &str) -> usize {
        self.parties.get(party).map_or(0, |party| party.held.len())
    }

    /// The node-seconds that a party has held: of each choice the most that it can take of it. O(h log h) for h answers held.
    pub(crate) fn node_seconds(&self, party: &str) -> u128 {
        self.most_held_of_choices(party).into_values().sum()
    }

    /// The offers to replace an agreement that are held.
    pub(super) fn held_offers_about(&self, agreement: Uuid) -> impl Iterator<Item = &NegotiationOffer> {
        let talks = self.negotiations_about(agreement);
        talks.flat_map(|talks| talks.offers.values().filter(|offer| offer.is_held()))
    }

    /// The choice of the held offers to replace an agreement, where there are some.
    pub(crate) fn held_choice_about(&self, agreement: Uuid) -> Option<Uuid> {
        let offer = self.held_offers_about(agreement).next()?;
        Some(self.choice_of(offer.negotiation, offer.parent?))
    }

    /// The offers of a choice that are held, those of each answer from the best on.
    pub(crate) fn held_offers_of(&self, choice: Uuid) -> impl Iterator<Item = &NegotiationOffer> {
        let of_answer = self.of_offer(choice).into_iter();
        let of_answer = of_answer.flat_map(|talks| talks.offers.values());
        let of_answer = of_answer.filter(move |offer| offer.parent == Some(choice) && offer.is_held());
        self.held_offers_about(choice).chain(of_answer)
    }

    /// The numbers of the holds on a resource, each with its choice.
    pub(crate) fn held_on(&self, resource: &str) -> BTreeMap<u64, Uuid> {
        let here = self.holds.on(resource);
        here.map(|((_, number), (_, choice))| (*number, *choice))
            .collect()
    }

    /// What the held offers of a choice need, by resource: of each all.
    fn stretches_to_hold(&self, negotiation: Uuid, choice: Uuid) -> BTreeMap<String, Vec<Stretch>> {
        let mut offers: BTreeMap<String, Vec<Stretch>> = BTreeMap::new();
        let mut add = |terms: &OfferTerms| {
            let check = offers.entry(terms.resource.clone()).or_default();
            check.extend(terms.kept());
        };
        let about = self.held_offers_about(choice);
        about.filter_map(|offer| offer.terms.as_ref()).for_each(&mut add);
        if let Some(talks) = self.get(negotiation) {
            // None where the choice is about an agreement.
            talks.held_offers(choice).for_each(add);
        }
        offers
    }

    /// The nodes that a choice has to keep, by resource.
    fn nodes_to_hold(
        &self,
        agreements: &Agreements,
        negotiation: Uuid,
        choice: Uuid,
    ) -> BTreeMap<String, Vec<Stretch>> {
        self.stretches_to_hold(negotiation, choice)
            .into_iter()
            .map(|(resource, offers)| {
                let base = self.replaced_stretches(agreements, negotiation, &resource);
                (resource, held_stretches(&offers, &base))
            })
            .collect()
    }

    /// Keeps stretches that are free.
    ///
    /// # Errors
    /// In words, where one of them is not; it is not kept then.
    fn hold_again(
        &mut self,
        schedules: &mut Schedules,
        choice: Uuid,
        needed: BTreeMap<String, Vec<Stretch>>,
        now: Time,
    ) -> Result<(), String> {
        for (resource, stretches) in needed {
            for stretch in stretches.into_iter().filter(|(stretch, _)| stretch.end > now) {
                let held = HeldStretch {
                    resource: resource.clone(),
                    number: self.next_hold_number(),
                    stretch,
                };
                let at = schedules
                    .place_of(&resource)
                    .ok_or_else(|| format!("there is no resource \"{resource}\""))?;
                let (interval, nodes) = stretch;
                if !schedules.put(at, now, &held.request(now), interval.start) {
                    return Err(format!(
                        "of \"{resource}\", {} in {interval}: not free",
                        counted(nodes, "node")
                    ));
                }
                self.holds.insert(choice, held);
            }
        }
        Ok(())
    }

    /// Takes back the holds of the open negotiations. An offer that has lapsed by `now` is not kept; the next decision
    /// lets it go.
    ///
    /// # Errors
    /// In words, where that is not free.
    pub(crate) fn restore_holds(
        &mut self,
        schedules: &mut Schedules,
        (placement, agreements): (&Places, &Agreements),
        now: Time,
    ) -> Result<(), String> {
        let mut choices = BTreeMap::new();
        for talks in self.iter() {
            let negotiation = talks.instance.id;
            let held = talks.offers.values().filter(|offer| offer.is_held());
            let lasting = held.filter(|offer| !offer.is_expired(now) && talks.instance.expires > now);
            choices.extend(lasting.filter_map(|offer| {
                let choice = self.choice_of(negotiation, offer.parent?);
                Some((choice, negotiation))
            }));
        }
        for (choice, negotiation) in choices {
            if let Some(agreement) = self.renegotiated(agreements, negotiation) {
                placement.fix(schedules, agreement);
            }
            let needed = self.nodes_to_hold(agreements, negotiation, choice);
            self.hold_again(schedules, choice, needed, now)
                .map_err(|why| format!("offer {choice}: {why}"))?;
        }
        Ok(())
    }

    /// Keeps a stretch for a choice.
    pub(crate) fn keep(&mut self, choice: Uuid, held: HeldStretch) {
        self.holds.insert(choice, held);
    }

    /// Lets go of what is kept for a choice.
    fn let_go(&mut self, choice: Uuid) -> Vec<HeldStretch> {
        self.holds.remove(choice)
    }
}

/// Lets go of those offers of a negotiation that are held.
pub(super) fn release_all_holds(
    bargaining: &mut Bargaining<'_>,
    id: Uuid,
    predicate: impl Fn(&NegotiationOffer) -> bool,
) {
    let Some(talks) = bargaining.table.get(id) else {
        return;
    };
    let held = talks
        .offers
        .values()
        .filter(|offer| offer.is_held() && predicate(offer));
    let held: Vec<NegotiationOffer> = held.cloned().collect();
    release_holds_of_offers(bargaining, held);
}

/// Lets go of the holds that rely on the place of an agreement that has begun or is over.
pub(crate) fn release_holds_about(bargaining: &mut Bargaining<'_>, agreement: Uuid) {
    let held: Vec<NegotiationOffer> = bargaining.table.held_offers_about(agreement).cloned().collect();
    release_holds_of_offers(bargaining, held);
}
