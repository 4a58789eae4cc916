//! A negotiation with its offers, as it is shown, and one offer.

use domain::request::Request;
use store::negotiations;
use uuid::Uuid;
use wsag::negotiations::{InitiateNegotiationInput, NegotiationProperties};
use wsag::time::DateTime;

use crate::codec::kept_offer::{read_kept, read_kept_offer, read_kept_offer_by_id};
use crate::negotiations::negotiation::{NegotiationView, visible_negotiation};
use crate::negotiations::proposals::penalties_about_proposal;
use crate::views::guarantees::{GuaranteeView, view_guarantees};
use crate::views::offer::{FoundOfferView, OfferView};
use crate::views::worded_offer::{WordedOffer, content_of_offer, documents_of_offers, view_offers};
use crate::{Error, Result, Scope, Service};

/// A negotiation, and its NegotiationProperties.
///
/// # Errors
/// [`Error::NotFound`] when there is none or it is another party's, [`Error::Unavailable`].
pub async fn show_negotiation(
    service: &Service,
    scope: &Scope,
    id: Uuid,
) -> Result<(NegotiationView, String)> {
    let instance = visible_negotiation(service, scope, id).await?;
    let document = negotiations::negotiation_document(&service.store, id).await?;
    let document = document.ok_or(Error::NotFound)?;
    let offers = negotiations::offers_of_negotiation(&service.store, id).await?;
    let penalties = penalties_about_proposal(service, &instance).await?;
    service
        .run_document_work(move |service| {
            let said = offers
                .into_iter()
                .map(|(row, document)| read_kept_offer(row, &document));
            let said = said.collect::<Result<Vec<_>, _>>()?;
            let mut view = NegotiationView::of(&instance, service.clock.now());
            view.penalties = penalties;
            view.offers = view_offers(&said);
            let InitiateNegotiationInput { mut context, .. } = read_kept(&document)?;
            context.expiration_time = Some(DateTime::from_seconds(instance.expires.seconds()));
            let properties = NegotiationProperties {
                context,
                templates: service
                    .templates
                    .now()
                    .all()
                    .map(|template| template.template.clone())
                    .collect(),
                offers: documents_of_offers(&said),
            };
            Ok((view, properties.to_xml()))
        })
        .await?
}

/// An offer by the id that the service gave it.
///
/// # Errors
/// [`Error::NotFound`] when there is none or it is another party's, [`Error::Unavailable`].
pub async fn show_offer_by_id(service: &Service, scope: &Scope, id: Uuid) -> Result<FoundOfferView> {
    let said = read_kept_offer_by_id(service, id).await?;
    Ok(FoundOfferView {
        negotiation: visible_negotiation(service, scope, said.row.negotiation)
            .await?
            .id,
        offer: said.view(),
    })
}

/// An offer with all that a person reads of it.
#[derive(Debug, Clone)]
pub struct ReadOffer {
    /// How it stands.
    pub is: OfferView,
    /// What its words ask for.
    pub request: Request,
    /// The template that it was made from.
    pub template: String,
    /// The guarantees of the agreement that it would become; none of an offer that cannot be accepted.
    pub guarantees: Vec<GuaranteeView>,
}

/// A negotiation, with all that was said in it, the oldest first.
///
/// # Errors
/// `Error::NotFound` when there is none or it is another party's, `Error::Unavailable`.
pub async fn show_negotiation_as_read(
    service: &Service,
    scope: &Scope,
    id: Uuid,
) -> Result<(NegotiationView, Vec<ReadOffer>)> {
    let instance = visible_negotiation(service, scope, id).await?;
    let offers = negotiations::offers_of_negotiation(&service.store, id).await?;
    let mut view = NegotiationView::of(&instance, service.clock.now());
    view.penalties = penalties_about_proposal(service, &instance).await?;
    let said = offers
        .into_iter()
        .map(|(row, kept)| read_kept_offer(row, &kept).map(|offer| show_offer_of_negotiation(&offer)));
    Ok((view, said.collect::<Result<Vec<_>>>()?))
}

fn show_offer_of_negotiation(said: &WordedOffer) -> ReadOffer {
    let words = content_of_offer(&said.words);
    let terms = said.row.terms.as_ref();
    let guarantees = terms.and_then(|terms| {
        let promise = terms.promise.as_ref()?;
        Some(view_guarantees(&promise.guarantees, terms.price))
    });
    ReadOffer {
        is: said.view(),
        guarantees: guarantees.unwrap_or_default(),
        template: words.context.template_name.clone().unwrap_or_default(),
        request: Request::of_offer(&words),
    }
}
