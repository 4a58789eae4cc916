//! What is written is valid, and what a provider reads too is read back as what it was.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

use crate::support::make::DocumentMaker;
use crate::support::{Chance, assert_valid, message, names_read, text};
use wsag::endpoint::EndpointReference;
use wsag::negotiations::{self, InitiateNegotiationInput, NegotiationProperties};
use wsag::{Document, Fragment, Message, operations};

#[test]
fn whatever_is_written_is_valid_and_read_back_as_it_was() {
    let mut make = DocumentMaker(Chance(2026));
    let (mut written, mut only_written) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let offer = make.offer();
        written.push((offer.to_xml(), Message::AgreementOffer(Box::new(offer))));
        let input = make.create(false);
        written.push((
            input.to_xml(false),
            Message::CreateAgreementInput(Box::new(input)),
        ));
        let input = make.create(true);
        written.push((
            input.to_xml(true),
            Message::CreatePendingAgreementInput(Box::new(input)),
        ));
        let created = make.endpoint();
        let choice = wsag::terms::CompositorChoice {
            path: "/wsag:Terms/wsag:All/wsag:ExactlyOne".to_owned(),
            members: vec![1, 2],
        };
        only_written.extend([
            make.properties().to_xml(),
            make.fault().to_xml(),
            operations::create_agreement_response(&created, (&[], 0), &[choice]),
            operations::create_pending_agreement_response(&created),
            negotiations::initiate_negotiation_output(&created),
        ]);
    }
    written.extend(negotiation_messages(&mut make, &mut only_written));
    let reason = operations::reason_fragment("no <slot>");
    written.push((
        operations::terminate_input(&reason),
        Message::TerminateInput(reason.clone()),
    ));
    let agreement = EndpointReference::new("https://bespeak.example.org/agreements/1");
    only_written.extend([
        operations::terminate_response(),
        operations::accept_agreement_input(None, &agreement),
        operations::reject_agreement_input(None, &agreement, &[reason]),
        negotiations::terminate_negotiation_response(),
        negotiations::advertise_output(),
    ]);
    for (xml, expected) in &written {
        assert_eq!(message(xml), *expected, "{xml}");
    }
    let all = written.into_iter().map(|(xml, _)| xml).chain(only_written);
    let documents: Vec<Vec<u8>> = all.map(String::into_bytes).collect();
    assert_valid(&documents, "written");
}

/// Messages of negotiations with the values that reading must give back, and messages that the service only writes.
fn negotiation_messages(make: &mut DocumentMaker, only_written: &mut Vec<String>) -> Vec<(String, Message)> {
    let mut written = Vec::new();
    for _ in 0..100 {
        let offers = make.some(1, DocumentMaker::negotiation_offer);
        written.push((
            negotiations::negotiate_input(&offers),
            Message::NegotiateInput(offers.clone()),
        ));
        written.push((
            negotiations::advertise_input(&offers),
            Message::AdvertiseInput(offers),
        ));
        let offers = make.some(0, DocumentMaker::negotiation_offer);
        written.push((
            negotiations::negotiate_output(&offers),
            Message::NegotiateOutput(offers.clone()),
        ));
        let template = crate::support::template(wsag::templates::ADVANCE_RESERVATION);
        let properties = NegotiationProperties {
            context: make.negotiation_context(),
            templates: vec![template],
            offers,
        };
        only_written.push(properties.to_xml());
        let input = InitiateNegotiationInput {
            context: make.negotiation_context(),
            initiator: make.maybe(DocumentMaker::endpoint),
            noncritical: Vec::new(),
        };
        written.push((input.to_xml(), Message::InitiateNegotiationInput(Box::new(input))));
    }
    let reasons = vec![operations::reason_fragment("enough")];
    written.push((
        negotiations::terminate_negotiation_input(&reasons),
        Message::TerminateNegotiationInput(reasons),
    ));
    written
}

#[test]
fn the_parts_of_an_agreement_are_valid_documents() {
    use wsag::agreements::Part;
    let mut make = DocumentMaker(Chance(7));
    let mut documents = Vec::new();
    for _ in 0..50 {
        let properties = make.properties();
        for part in [
            Part::Context,
            Part::Terms,
            Part::State,
            Part::Guarantees,
            Part::Services,
        ] {
            documents.push(properties.part_xml(part).into_bytes());
        }
        message(&properties.offer_xml());
    }
    assert_valid(&documents, "parts");
}

#[test]
fn the_samples_are_read_back_as_they_were() {
    for name in names_read() {
        let again = match message_or_skip(&text(&name)) {
            Some(Message::AgreementOffer(offer)) => offer.to_xml(),
            Some(Message::CreateAgreementInput(input)) => input.to_xml(false),
            Some(Message::CreatePendingAgreementInput(input)) => input.to_xml(true),
            Some(Message::Template(template)) => template.to_xml(),
            Some(Message::NegotiateInput(offers)) => negotiations::negotiate_input(&offers),
            Some(Message::NegotiateOutput(offers)) => negotiations::negotiate_output(&offers),
            Some(Message::AdvertiseInput(offers)) => negotiations::advertise_input(&offers),
            Some(Message::InitiateNegotiationInput(input)) => input.to_xml(),
            _ => continue,
        };
        assert_eq!(message(&again), message(&text(&name)), "{name}");
    }
}

fn message_or_skip(text: &str) -> Option<Message> {
    let document = Document::parse(text.as_bytes()).unwrap();
    wsag::read(&document).ok()
}

#[test]
fn an_agreement_shows_context_and_terms_exactly_as_the_offer_had_them() {
    let offer = text("m03-create-agreement-input.xml");
    let document = Document::parse(offer.as_bytes()).unwrap();
    let (context, terms) = document.offer_fragments().unwrap();
    let slice = |fragment: &Fragment, name: &str| {
        let start = offer.find(&format!("<wsag:{name}>")).unwrap() + name.len() + 6;
        let end = offer.find(&format!("</wsag:{name}>")).unwrap();
        assert!(fragment.as_str().contains(&offer[start..end]), "{fragment}");
    };
    slice(&context, "Context");
    slice(&terms, "Terms");
    let alone = document.offer_xml().unwrap();
    assert!(
        matches!(message(&alone), Message::AgreementOffer(offer) if offer.agreement_id.as_deref() == Some("urn:uuid:a-1"))
    );
}
