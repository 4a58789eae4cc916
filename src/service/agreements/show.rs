//! One agreement: the whole and its parts.

use domain::agreement::{Agreement, AgreementState, AtPeer, Money, Run, RunOutcome, ServiceState};
use domain::request::Request;
use execution::slurm::slurm_name_of_run;
use planner::ForeseeReservation;
use store::agreements::succession_of_agreement;
use store::at_peer;
use store::ledger::{self, MoneyMoved};
use uuid::Uuid;
use wsag::Fragment;
use wsag::agreements::{self, AgreementOffer, AgreementProperties, Details, Part};
use wsag::placement::Placement;
use wsag::states::{self, Activity, ServiceTermState};

use crate::service::agreements::files::with_files_off_async_threads;
use crate::service::agreements::find::{rejection_of, stored_agreement, view_agreement};
use crate::service::codec::kept::{KeptOffer, words_of_agreement};
use crate::service::negotiations::proposals::proposals_about;
use crate::service::views::agreement::{AtPeerView, StagedView};
use crate::service::views::documents::{
    date_time_in_document, instant_in_document, piece_in_document, sum_in_document,
};
use crate::service::views::terms;
use crate::service::views::values::second_as_date_time;
use crate::service::{AgreementView, Error, Json, Result, Scope, Service};

/// An agreement as it is shown.
#[derive(Debug)]
pub struct AgreementDetails {
    /// The whole of it, flat.
    pub view: AgreementView,
    /// The part of its window in which it may be moved, where it has a place: where that begins and where it ends.
    pub room: Option<(String, String)>,
    /// What the offer asks for.
    pub request: Request,
    /// Watt-hours that its nodes take in its slots, where their power is known.
    pub watt_hours: Option<i64>,
    /// The context of the offer, flat.
    pub context: Json,
    /// The terms of the offer, flat.
    pub terms: Json,
    properties: AgreementProperties,
}

impl AgreementDetails {
    /// The document of a part, or of the whole.
    pub fn document(&self, part: Option<Part>) -> String {
        part.map_or_else(|| self.properties.to_xml(), |part| self.properties.part_xml(part))
    }
}

/// An agreement with the offer that it was made from.
///
/// # Errors
/// [`Error::NotFound`] when there is none or it is another party's, [`Error::Unavailable`].
pub async fn show_agreement(service: &Service, scope: Scope, id: Uuid) -> Result<AgreementDetails> {
    let agreement = stored_agreement(service, &scope, id).await?;
    let kept = words_of_agreement(service, id).await?;
    let succession = succession_of_agreement(&service.store, id).await?;
    let proposals = proposals_about(service, &agreement).await?;
    let at_peers = at_peer::at_peers_of_agreement(&service.store, id).await?;
    let reservation = reservation_of(service, &agreement);
    let reservation_from = match &reservation {
        Some(_) => reservation_due(service, &agreement)
            .await
            .map(second_as_date_time),
        None => None,
    };
    let view = AgreementView {
        proposals,
        staging: staging_of(service, &agreement).await?,
        reservation,
        reservation_from,
        rejection: rejection_of(service, &agreement).await?,
        supersedes: succession.supersedes,
        superseded_by: succession.superseded_by,
        at_peers: at_peers.iter().map(AtPeerView::of).collect(),
        ..view_agreement(service, &agreement)
    };
    let watt_hours = watt_hours_of(service, &agreement);
    let money = ledger::ledger_money_of_agreement(&service.store, id).await?;
    let shown = service
        .run_document_work(move |_| details_of_agreement(&agreement, view, kept, (&money, &at_peers)))
        .await?;
    Ok(AgreementDetails { watt_hours, ..shown })
}

fn watt_hours_of(service: &Service, agreement: &Agreement) -> Option<i64> {
    let templates = service.templates.now();
    let energy = templates.pricing()?.energy.as_ref()?;
    energy.watt_hours(&agreement.resource, agreement.node_seconds())
}

/// The files that are moved for the job of an agreement, and how far they have come.
async fn staging_of(service: &Service, agreement: &Agreement) -> Result<Vec<StagedView>, Error> {
    let Some(job) = agreement.job.as_ref().filter(|job| !job.staging.is_empty()) else {
        return Ok(Vec::new());
    };
    let folder = service.jobs.of_run(Run::first(agreement.execution_id()))?;
    let record = with_files_off_async_threads(move || Ok(folder.staging()?)).await?;
    Ok(StagedView::of(&job.staging, record.as_ref()))
}

/// The name by which its party's user finds the nodes of an agreement that runs nothing, where it is given them.
fn reservation_of(service: &Service, agreement: &Agreement) -> Option<String> {
    let handed = agreement.job.is_none()
        && !agreement.state.is_final()
        && service.planner.executor_of(&agreement.resource).as_deref() == Some("slurm");
    handed.then(|| slurm_name_of_run(&agreement.resource, Run::first(agreement.execution_id())))
}

/// From when on its cluster knows that name; none where it does.
async fn reservation_due(service: &Service, agreement: &Agreement) -> Option<scheduler::Time> {
    let due = service.send(ForeseeReservation(agreement.id)).await;
    // Where the plan cannot be asked, it is certain only that its begin is late enough.
    due.unwrap_or_else(|_| {
        let waits = agreement.is_placed() && !agreement.has_nodes();
        waits.then(|| agreement.slot().start)
    })
}

fn details_of_agreement(
    agreement: &Agreement,
    view: AgreementView,
    kept: KeptOffer,
    (money, at_peers): (&[MoneyMoved], &[AtPeer]),
) -> AgreementDetails {
    let (offer, context, said) = kept.parts();
    let room = agreement.is_placed().then(|| agreement.room());
    AgreementDetails {
        room: room.map(|room| (second_as_date_time(room.start), second_as_date_time(room.end))),
        request: Request::of_offer(&offer),
        watt_hours: None,
        context: terms::view_context(&offer.context),
        terms: terms::view_terms(&offer.terms),
        properties: agreement_properties(agreement, *offer, &view, (context, said), (money, at_peers)),
        view,
    }
}

fn agreement_properties(
    agreement: &Agreement,
    offer: AgreementOffer,
    view: &AgreementView,
    (context, terms): (Fragment, Fragment),
    (money, at_peers): (&[MoneyMoved], &[AtPeer]),
) -> AgreementProperties {
    let sums = |which: fn(&MoneyMoved) -> Money| {
        let sums = money.iter().map(which).filter(|sum| sum.micros > 0);
        sums.map(sum_in_document).collect()
    };
    let (state, status) = service_state(agreement, view.reservation.as_deref());
    let services = offer
        .terms
        .descriptions()
        .map(|term| ServiceTermState {
            term_name: term.name.clone(),
            state: state.clone(),
            placement: agreement.is_placed().then(|| Placement {
                confidence: view.confidence,
                status: status.clone(),
                ..agreement_placement(agreement)
            }),
        })
        .collect();
    AgreementProperties {
        name: offer.name,
        agreement_id: offer.agreement_id.unwrap_or_else(|| agreement.id.to_string()),
        context,
        terms,
        state: agreement.state,
        details: Details {
            reason: view.rejection.clone(),
            choices: agreement.choices.clone(),
            supersedes: view.supersedes.map(|id| id.to_string()),
            superseded_by: view.superseded_by.map(|id| id.to_string()),
            charged: sums(|each| each.charged),
            paid: sums(|each| each.paid),
            at_peers: at_peers.iter().filter_map(at_peer_in_document).collect(),
        },
        guarantees: agreement
            .guarantees
            .iter()
            .map(|guarantee| (guarantee.name.clone(), guarantee.state))
            .collect(),
        services,
    }
}

/// Another domain's agreement; none where it was not made.
fn at_peer_in_document(row: &AtPeer) -> Option<agreements::AtPeer> {
    let sum = |micros: i64| Some(sum_in_document(Money::new(micros, row.price?.currency)));
    let guarantees = row
        .guarantees
        .iter()
        .map(|guarantee| agreements::GuaranteeAtPeer {
            name: guarantee.name.clone(),
            state: guarantee.state,
        });
    Some(agreements::AtPeer {
        peer: row.peer.clone(),
        state: AgreementState::from_word(&row.state)?,
        charged: sum(row.charged),
        paid: sum(row.paid_back),
        guarantees: guarantees.collect(),
    })
}

fn agreement_placement(agreement: &Agreement) -> Placement {
    Placement {
        resource: Some(agreement.resource.clone()),
        planned_start: date_time_in_document(agreement.placement().start),
        planned_end: date_time_in_document(agreement.placement().end),
        nodes: agreement.nodes(),
        confidence: None,
        fixed: agreement.fixed || !agreement.has_more_to_begin() || agreement.fills_its_window(),
        price: agreement.price.map(sum_in_document),
        pieces: agreement.slots.pieces().iter().map(piece_in_document).collect(),
        node_names: Vec::new(),
        started: agreement.started.map(instant_in_document),
        ended: agreement.ended.map(instant_in_document),
        exit_status: agreement.outcome.and_then(RunOutcome::exit),
        outcome: agreement.outcome.map(|outcome| outcome.word().to_owned()),
        status: None,
    }
}

/// The state of its service, and what is being done in it.
fn service_state(agreement: &Agreement, reservation: Option<&str>) -> (states::ServiceState, Option<String>) {
    let (activity, status) = match agreement.service {
        ServiceState::NotReady => return (states::ServiceState::NotReady, None),
        ServiceState::Completed => return (states::ServiceState::Completed, None),
        ServiceState::Idle if agreement.is_between_slots() => {
            (Activity::Idle, "waiting for its next piece".to_owned())
        }
        ServiceState::Idle => (
            Activity::Idle,
            reservation.map_or("reserved".to_owned(), |name| format!("reserved as {name}")),
        ),
        ServiceState::Processing if agreement.is_being_brought() => {
            (Activity::Processing, "bringing files".to_owned())
        }
        ServiceState::Processing if agreement.slot_started().is_some() => {
            (Activity::Processing, "running".to_owned())
        }
        ServiceState::Processing => (Activity::Processing, "starting".to_owned()),
    };
    (states::ServiceState::Ready(activity), Some(status))
}
