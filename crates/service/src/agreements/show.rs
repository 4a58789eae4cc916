//! One agreement: the whole and its parts.

use domain::agreement::{Agreement, AtPeer, Run};
use domain::request::Request;
use execution::slurm::slurm_name_of_run;
use planner::ForeseeReservation;
use store::ledger::{self, MoneyMoved};
use store::{agreements, at_peer};
use uuid::Uuid;
use wsag::agreements::{AgreementProperties, Part};

use crate::agreements::find::{find_agreement, find_why_agreement_was_rejected, view_found_agreement};
use crate::codec::kept_offer::{KeptOffer, kept_offer_of_agreement};
use crate::files::with_files_off_async_threads;
use crate::negotiations::proposals::proposals_about;
use crate::views::agreement::{AgreementStagingView, AtPeerView};
use crate::views::agreement_document::agreement_in_document;
use crate::views::context_and_terms::{view_context, view_terms};
use crate::views::money_and_time::second_as_date_time;
use crate::views::shape_changes::ShapeChangesView;
use crate::{AgreementView, Error, Json, Result, Scope, Service};

/// An agreement as it is shown.
#[derive(Debug)]
pub struct AgreementDetails {
    /// The whole of it, flat.
    pub view: AgreementView,
    /// The part of its window in which it may be moved, where it has a place: where that begins and where it ends.
    pub room: Option<(String, String)>,
    /// The changes of its shape that are still possible; none where it has one shape only, or keeps its own from now on.
    pub may_change: Option<ShapeChangesView>,
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
    let agreement = find_agreement(service, &scope, id).await?;
    let kept = kept_offer_of_agreement(service, id).await?;
    let succession = agreements::succession_of_agreement(&service.store, id).await?;
    let proposals = proposals_about(service, &agreement).await?;
    let at_peers = at_peer::at_peers_of_agreement(&service.store, id).await?;
    let reservation = shown_agreement_reservation(service, &agreement);
    let reservation_from = match &reservation {
        Some(_) => shown_agreement_reservation_due(service, &agreement)
            .await
            .map(second_as_date_time),
        None => None,
    };
    let view = AgreementView {
        proposals,
        staging: shown_agreement_staging(service, &agreement).await?,
        reservation,
        reservation_from,
        rejection: find_why_agreement_was_rejected(service, &agreement).await?,
        supersedes: succession.supersedes,
        superseded_by: succession.superseded_by,
        at_peers: at_peers.iter().map(AtPeerView::of).collect(),
        ..view_found_agreement(service, &agreement)
    };
    let watt_hours = shown_agreement_watt_hours(service, &agreement);
    let may_change = agreement.shape_changes_at(service.clock().now());
    let may_change = may_change.map(ShapeChangesView::of);
    let money = ledger::ledger_money_of_agreement(&service.store, id).await?;
    let shown = service
        .run_document_work(move |_| shown_agreement_details(&agreement, view, kept, (&money, &at_peers)))
        .await?;
    Ok(AgreementDetails {
        may_change,
        watt_hours,
        ..shown
    })
}

fn shown_agreement_watt_hours(service: &Service, agreement: &Agreement) -> Option<i64> {
    let templates = service.templates.now();
    let energy = templates.pricing()?.energy.as_ref()?;
    energy.watt_hours(&agreement.resource, agreement.node_seconds())
}

/// The files that are moved for the job of an agreement, and how far they have come.
async fn shown_agreement_staging(
    service: &Service,
    agreement: &Agreement,
) -> Result<Vec<AgreementStagingView>, Error> {
    let Some(job) = agreement.job.as_ref().filter(|job| !job.staging.is_empty()) else {
        return Ok(Vec::new());
    };
    let folder = service.jobs.place_of_run(Run::first(agreement.execution_id()))?;
    let record = with_files_off_async_threads(move || Ok(folder.staging()?)).await?;
    Ok(AgreementStagingView::of(&job.staging, record.as_ref()))
}

/// The name by which its party's user finds the nodes of an agreement that runs nothing, where it is given them.
fn shown_agreement_reservation(service: &Service, agreement: &Agreement) -> Option<String> {
    let handed = agreement.job.is_none()
        && !agreement.state.is_final()
        && service.planner.executor_of(&agreement.resource).as_deref() == Some("slurm");
    handed.then(|| slurm_name_of_run(&agreement.resource, Run::first(agreement.execution_id())))
}

/// From when on its cluster knows that name; none where it does.
async fn shown_agreement_reservation_due(
    service: &Service,
    agreement: &Agreement,
) -> Option<scheduler::Time> {
    let due = service.send(ForeseeReservation(agreement.id)).await;
    // Where the plan cannot be asked, it is certain only that its begin is late enough.
    due.unwrap_or_else(|_| {
        let waits = agreement.is_placed() && !agreement.has_nodes();
        waits.then(|| agreement.slot().start)
    })
}

fn shown_agreement_details(
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
        may_change: None,
        watt_hours: None,
        context: view_context(&offer.context),
        terms: view_terms(&offer.terms),
        properties: agreement_in_document(agreement, *offer, &view, (context, said), (money, at_peers)),
        view,
    }
}
