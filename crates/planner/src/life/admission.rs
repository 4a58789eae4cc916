//! A request becomes an agreement.

use std::borrow::Cow;

use domain::agreement::{Agreement, AgreementState, Event, EventKind, Note, ServiceState, Spender};
use domain::change::Change;
use scheduler::{Interval, Reason, counted};
use uuid::Uuid;

use crate::context::{Search, View};
use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::life::deadlines;
use crate::limits::share::{keep_within_share, refusal_within_share};
use crate::limits::{allowance, spending, window};
use crate::placement::places::Placement;
use crate::placement::{anew, choice, refuse, reserved_starts};
use crate::prices::placement_prices;
use crate::refusal::Refusal;
use crate::request::{AcceptedOffer, Request};
use crate::schedules::need::Need;
use crate::settings::Quotas;
use crate::table::suggest_move;

/// Refuses an offer with an id that its initiator has given before, to another agreement than `but`: the one that it replaces,
/// and the one that has been pending for it. Agreements that are over are looked for in the store, before the offer comes here.
pub(crate) fn check_id_to_admit(view: View<'_>, request: &Request, but: &[Option<Uuid>]) -> Result<()> {
    let Some(id) = &request.initiator_id else {
        return Ok(());
    };
    let has_it = |agreement: &Agreement| {
        agreement.party == request.party && agreement.initiator_id.as_ref() == Some(id)
    };
    let own = but
        .iter()
        .flatten()
        .filter(|but| view.agreements.get(**but).is_some_and(has_it))
        .count();
    let mut waiting = view.elsewhere.agreements();
    if view.agreements.with_initiator_id(&request.party, id) > own
        || waiting.any(|waiting| waiting.id != request.id && has_it(waiting))
    {
        return Err(Error::IdTaken(id.clone()));
    }
    Ok(())
}

/// Admits a proposal; `refused` says why it is not admitted.
pub(crate) fn admit_proposal_or(
    decider: &mut Decider<'_>,
    request: &Request,
    refused: impl FnOnce(&mut Search<'_>, &Need<'_>, Reason) -> Refusal,
) -> Result<(Agreement, Placement, u64), Refusal> {
    let now = decider.present_second();
    let mut limited = None;
    let mut is_capped = false;
    if decider.settings.quotas_of(&request.party) != Quotas::default() || request.spender.is_some() {
        let limited = limited.insert(request.clone());
        allowance::allow_within_quotas(decider.view(), limited, None)?;
        is_capped = spending::limit_to_spending_cap(decider.view(), limited);
    }
    let proposal = limited.as_ref().unwrap_or(request);
    let window = window::window_within_limits(decider.view(), proposal)?;
    // What its share leaves binds where it is placed, not what is agreed: a failure may send it elsewhere.
    let mut shared = Cow::Borrowed(proposal);
    allowance::allow_within_share(decider.view(), &mut shared, None)?;
    let room = window::window_within_limits(decider.view(), &shared)?;
    deadlines::fix_at_deadlines(decider);
    let number = decider.state.placement.next_number();
    let mut need = Need::of(&shared, number, room, now);
    let cut = proposal.preemption.as_ref();
    decider.state.schedules.begin_search();
    let begins = reserved_starts::window_after_reserving(decider.view(), &need);
    // Better a begin that is late than none.
    let may_be_late = begins != room && decider.state.elsewhere.not_before().is_none();
    let windows = &[begins, room][..=usize::from(may_be_late)];
    let admitted = anew::admit_by_rule(&mut decider.search(), &mut need, windows, cut);
    let admitted = admitted.map_err(|reason| {
        if let Some(suggestion) = suggest_move::suggest_a_move(&mut decider.search(), &need, reason) {
            decider.state.table.note_suggestion(suggestion);
        }
        let why = refused(&mut decider.search(), &need, reason);
        let why = refusal_within_share(why, room, window);
        refuse::refuse_under_cap(decider.view(), proposal.spender.filter(|_| is_capped), &need, why)
    })?;
    let is_split = admitted.slots.is_split();
    let agreed = if is_split { room } else { window };
    let mut agreement = make_admitted_agreement(&mut decider.search(), proposal, agreed, &admitted);
    choice::settle_room_of_choice(decider.view(), &mut agreement);
    choice::keep_shape_elsewhere(decider.view(), &mut agreement);
    decider.state.schedules.note_estimate(&mut agreement);
    if room != agreed {
        keep_within_share(&mut agreement, room);
    }
    Ok((agreement, admitted, number))
}

/// The line of the timeline for an acceptance, which is counted against the cap of its key.
pub(crate) fn admission_event(
    decider: &mut Decider<'_>,
    agreement: &Agreement,
    admitted: &Placement,
    spender: Option<Spender>,
) -> Event {
    let mut detail = admission_in_words(agreement, admitted);
    for choice in &agreement.choices {
        let members: Vec<_> = choice.members.iter().map(ToString::to_string).collect();
        detail += &format!("; chosen: {} of {}", members.join(", "), choice.path);
    }
    if let Some(price) = placement_prices::placement_price_in_words(decider.view(), agreement) {
        detail += &format!("; {price}");
    }
    let spent = spending::note_spending(&mut decider.state.limits, spender, agreement);
    decider.batch.extend(spent);
    decider.event(EventKind::Accepted, detail)
}

/// Notes that an operator has made an agreement for another party, where the command says so.
pub(crate) fn note_admitted_booking(
    decider: &mut Decider<'_>,
    AcceptedOffer { agreement, .. }: &AcceptedOffer,
) {
    if let Some(by) = &decider.options.booked_by {
        let detail = format!("booked {} for {}", agreement.id, agreement.party);
        let note = Note::of_operator(decider.now, by, agreement.id, detail);
        decider.batch.push(Change::Note(note));
    }
}

/// The agreement that an offer becomes.
pub(crate) fn make_admitted_agreement(
    search: &mut Search<'_>,
    proposal: &Request,
    window: Interval,
    admitted: &Placement,
) -> Agreement {
    Agreement {
        id: proposal.id,
        party: proposal.party.clone(),
        name: proposal.name.clone(),
        initiator_id: proposal.initiator_id.clone(),
        template: proposal.template.clone(),
        resource: search.schedules.name(admitted.resource),
        duration: admitted.slots.seconds(),
        ready: window.start,
        deadline: window.end,
        slots: admitted.slots.clone(),
        fixed: false,
        price: admitted.price,
        constraints: proposal.constraints(admitted.slots.is_split()),
        job: proposal.job.clone(),
        guarantees: proposal.guarantees.clone(),
        choices: proposal.choices.clone(),
        state: AgreementState::Observed,
        service: ServiceState::NotReady,
        started: None,
        ended: None,
        outcome: None,
        created: search.now,
        version: 1,
        origin: None,
    }
}

/// How an agreement came to its place, in words for its party.
pub(crate) fn admission_in_words(agreement: &Agreement, found: &Placement) -> String {
    let resource = &agreement.resource;
    let mut detail = match found.moved.len() {
        0 => format!("placed on {resource} as the first fit in its window"),
        1 => format!("placed on {resource}; 1 other moved inside its window"),
        count => format!("placed on {resource}; {count} others moved inside their windows"),
    };
    if !agreement.constraints.shapes.is_empty() {
        detail += &format!(
            "; {} for {} of {}",
            counted(agreement.nodes(), "node"),
            counted(agreement.duration, "second"),
            counted(agreement.constraints.shapes.len(), "size")
        );
    }
    if found.slots.is_split() {
        let (count, end) = (found.slots.len(), found.slots.placement().duration());
        detail += &format!(
            "; in {count} pieces, the last of which ends {} after the start of the first",
            counted(end, "second")
        );
    }
    match found.new_shapes.len() {
        0 => {}
        count => {
            let others = counted(count, "other");
            detail += &format!("; {others} got another size or other pieces");
        }
    }
    match found.transferred.len() {
        0 => {}
        count => detail += &format!("; {} went to another resource", counted(count, "other")),
    }
    detail
}
