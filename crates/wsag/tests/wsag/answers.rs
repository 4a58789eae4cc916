//! What a client gets back is read as it was written, and nothing that a hostile provider says does harm.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

use crate::support::make::DocumentMaker;
use crate::support::{Chance, assert_valid, message, text};
use wsag::agreement_state::AgreementState;
use wsag::agreements::AgreementProperties;
use wsag::answers::{Answer, CounterOffer, read_answer};
use wsag::compare::first_difference;
use wsag::endpoint::EndpointReference;
use wsag::faults::{FaultViolation, violations_fragment};
use wsag::negotiations::{NegotiationOffer, OfferState, negotiate_input, negotiate_output};
use wsag::operations::acceptance_input;
use wsag::states::{Activity, ServiceState};
use wsag::travel::Travel;
use wsag::{Document, Message, Violations, negotiations, operations};

fn answer(text: &str) -> Answer {
    let document = Document::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{why}\n{text}"));
    read_answer(&document).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn wrong(text: &str) -> Violations {
    let document = Document::parse(text.as_bytes()).unwrap();
    read_answer(&document).expect_err(text)
}

/// As it is read again: a substate is told with a placement only.
fn as_told(mut properties: AgreementProperties) -> AgreementProperties {
    for service in &mut properties.services {
        if matches!(service.state, ServiceState::Ready(_)) && service.placement.is_none() {
            service.state = ServiceState::Ready(Activity::Idle);
        }
    }
    properties
}

/// A counter offer with what we say in its context.
fn counter_offer(make: &mut DocumentMaker) -> NegotiationOffer {
    let mut offer = make.negotiation_offer();
    let context = &mut offer.offer_context;
    context.extensions.push(make.quotation().to_fragment());
    context.extensions.push(make.travel().to_fragment());
    if context.state == OfferState::Rejected {
        let refusal = make.fault().refusal;
        context.state_extensions = refusal.iter().map(wsag::refusals::Refusal::to_fragment).collect();
    }
    offer
}

#[test]
fn whatever_a_provider_writes_a_client_reads_back() {
    let mut make = DocumentMaker(Chance(20));
    for _ in 0..200 {
        let properties = make.properties();
        let expected = Answer::AgreementProperties(Box::new(as_told(properties.clone())));
        assert_eq!(answer(&properties.to_xml()), expected);
        let fault = make.fault();
        assert_eq!(answer(&fault.to_xml()), Answer::Fault(Box::new(fault)));
        let at = make.endpoint();
        let moved = [];
        for (written, read) in [
            (
                operations::create_agreement_response(&at, (&moved, 3), &[]),
                Answer::AgreementCreated(at.clone()),
            ),
            (
                operations::create_pending_agreement_response(&at),
                Answer::AgreementPending(at.clone()),
            ),
            (
                negotiations::initiate_negotiation_output(&at),
                Answer::NegotiationOpened(at.clone()),
            ),
        ] {
            assert_eq!(answer(&written), read);
        }
        let offers = make.some(0, counter_offer);
        let Answer::CounterOffers(read) = answer(&negotiate_output(&offers)) else {
            panic!("counter offers are expected");
        };
        let said: Vec<_> = read.into_iter().map(|read| read.offer).collect();
        assert_eq!(said, offers);
    }
}

#[test]
fn our_elements_in_the_context_of_an_offer_are_read_back_and_valid() {
    let mut make = DocumentMaker(Chance(21));
    let mut documents = Vec::new();
    for _ in 0..200 {
        let (travel, quotation, refusal) = (make.travel(), make.quotation(), make.fault().refusal);
        let violations = make.some(1, |make| FaultViolation {
            path: make.text(),
            message: make.text(),
        });
        let mut context = make.offer_context();
        context.extensions.push(quotation.to_fragment());
        context.extensions.push(travel.to_fragment());
        context.state_extensions = refusal.iter().map(wsag::refusals::Refusal::to_fragment).collect();
        documents.extend(context.extensions.iter().map(ToString::to_string));
        assert_eq!(context.travel(), Some(travel));
        assert_eq!(context.quotation(), Ok(Some(quotation)));
        assert_eq!(context.refusal(), Ok(refusal));
        assert_eq!(context.violations(), Ok(Vec::new()));
        context.state_extensions = vec![violations_fragment(&violations)];
        assert_eq!(context.violations(), Ok(violations));
        assert_eq!(context.refusal(), Ok(None));
    }
    documents.retain(|text| text.contains("urn:bespeak:terms:1"));
    let documents: Vec<Vec<u8>> = documents.into_iter().map(String::into_bytes).collect();
    assert_valid(&documents, "in-contexts");
}

#[test]
fn the_published_answers_are_read() {
    let at = |address: &str| EndpointReference::new(address);
    assert_eq!(
        answer(&text("m04-create-agreement-response.xml")),
        Answer::AgreementCreated(at("http://site-a.example/agreements/a-1"))
    );
    assert_eq!(
        answer(&text("m13-initiate-negotiation-output.xml")),
        Answer::NegotiationOpened(at("http://site-a.example/negotiations/n1"))
    );
    let Answer::AgreementProperties(properties) = answer(&text("m09-agreement-properties.xml")) else {
        panic!("properties are expected");
    };
    assert_eq!(properties.state, AgreementState::Complete);
    assert_eq!(properties.guarantees[0].0, "START_ON_TIME");
    assert_eq!(
        properties.services[0].state,
        ServiceState::Ready(Activity::Processing)
    );
    assert_eq!(
        properties.services[0].placement, None,
        "what others say there is passed over"
    );
    let Answer::Fault(fault) = answer(&text("m11-continuing-fault.xml")) else {
        panic!("a fault is expected");
    };
    assert_eq!(fault.error_code, "");
    assert_eq!(
        fault.descriptions[0].text,
        "offer violates creation constraint nodes"
    );
    let offers = published_counter_offers();
    assert_eq!(offers.len(), 3);
    assert_eq!(offers[0].offer.offer_context.quotation(), Ok(None));
}

fn published_counter_offers() -> Vec<CounterOffer> {
    match answer(&text("m15-negotiate-output.xml")) {
        Answer::CounterOffers(offers) => offers,
        other => panic!("counter offers are expected, not {other:?}"),
    }
}

#[test]
fn a_counter_offer_is_accepted_in_its_own_words() {
    let (negotiation, agreement) = (
        EndpointReference::new("http://site-a.example/negotiations/n1"),
        EndpointReference::new("http://site-a.example/agreements/a-1"),
    );
    for offer in published_counter_offers() {
        let id = offer.offer.offer_id.clone().unwrap();
        let source = offer.source.as_str();
        for replaced in [None, Some(&agreement)] {
            let written = acceptance_input(source, &negotiation, replaced).unwrap();
            assert_valid(&[written.clone().into_bytes()], "acceptance");
            let Message::CreateAgreementInput(read) = message(&written) else {
                panic!("an input is expected");
            };
            assert_eq!(
                (&read.offer.context, &read.offer.terms),
                (&offer.offer.context, &offer.offer.terms)
            );
            let context = match (read.negotiation, read.renegotiation, replaced) {
                (Some(offer_part), None, None) => offer_part.context,
                (None, Some(extension), Some(replaced)) => {
                    assert_eq!(extension.responder_agreement, *replaced);
                    extension.context
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(context.counter_offer_to, id);
            let said = (
                Document::written(&written).unwrap(),
                Document::written(source).unwrap(),
            );
            assert_eq!(first_difference(&said.0, &said.1), None);
        }
    }
    for nothing in ["", "<a/>", "<wsag:AgreementOffer/>"] {
        acceptance_input(nothing, &negotiation, None).unwrap_err();
    }
}

/// A message with one offer that has this element in its context.
fn offer_with(element: &str) -> String {
    let mut offer = DocumentMaker(Chance(3)).negotiation_offer();
    offer.offer_context.extensions.clear();
    let written = negotiate_input(&[offer]);
    written.replace(
        "</wsag-neg:NegotiationOfferContext>",
        &format!("{element}</wsag-neg:NegotiationOfferContext>"),
    )
}

fn travel(path: &str, hops: &str, waits: &str) -> String {
    format!(
        "<bsp:Travel xmlns:bsp=\"urn:bespeak:terms:1\"><bsp:Request>018f3c5e-7b1a-7c3d-8e9f-0a1b2c3d4e5f</bsp:Request>{path}\
         <bsp:Hops>{hops}</bsp:Hops><bsp:Waits>{waits}</bsp:Waits></bsp:Travel>"
    )
}

#[test]
fn a_malformed_travel_is_a_violation_of_its_offer_at_its_place() {
    let domain = |name: &str| format!("<bsp:Domain>{name}</bsp:Domain>");
    let good = travel(&domain("north"), "3", "2000");
    let Message::NegotiateInput(offers) = message(&offer_with(&good)) else {
        panic!("offers are expected");
    };
    let expected = Travel {
        request: "018f3c5e-7b1a-7c3d-8e9f-0a1b2c3d4e5f".parse().unwrap(),
        path: vec!["north".to_owned()],
        hops: 3,
        waits: 2_000,
        requester: None,
    };
    assert_eq!(offers[0].offer_context.travel(), Some(expected));
    let many = |count: usize| {
        (0..count)
            .map(|number| domain(&format!("d{number}")))
            .collect::<String>()
    };
    message(&offer_with(&travel(&many(16), "0", "0")));
    for (bad, said) in [
        (travel("", "3", "1"), "bsp:Domain is expected"),
        (travel(&many(17), "3", "1"), "at most 16 domains"),
        (travel(&many(1_500), "3", "1"), "at most 16 domains"),
        (travel(&(many(2) + &domain("d0")), "3", "1"), "d0 stands twice"),
        (travel(&domain("north pole"), "3", "1"), "the name of a domain"),
        (travel(&domain(".."), "3", "1"), "the name of a domain"),
        (travel(&domain(&"x".repeat(65)), "3", "1"), "the name of a domain"),
        (travel(&domain("north"), "17", "1"), "0 to 16"),
        (travel(&domain("north"), "-1", "1"), "0 to 16"),
        (travel(&domain("north"), "1", "60001"), "0 to 60000"),
        (good.replace("018f3c5e-", "018f3c5e"), "a UUID is expected"),
        (
            good.replace("</bsp:Travel>", "<bsp:Requester> </bsp:Requester></bsp:Travel>"),
            "not be empty",
        ),
        (
            good.replace(
                "</bsp:Travel>",
                &format!("<bsp:Requester>{}</bsp:Requester></bsp:Travel>", "x".repeat(129)),
            ),
            "at most 128 bytes",
        ),
        (
            good.replace("</bsp:Travel>", "<bsp:More/></bsp:Travel>"),
            "the end of bsp:Travel",
        ),
        (good.clone() + &good, "only one bsp:Travel"),
    ] {
        let text = offer_with(&bad);
        let document = Document::parse(text.as_bytes()).unwrap();
        let found = wsag::read(&document).expect_err(&bad).0;
        assert!(
            found[0]
                .path
                .contains("/wsag-neg:NegotiationOfferContext/bsp:Travel")
                && found[0].message.contains(said),
            "{said}: {found:?}"
        );
    }
    // Somebody else's element of that name is passed over.
    message(&offer_with(
        "<o:Travel xmlns:o=\"urn:other\"><o:Hops>many</o:Hops></o:Travel>",
    ));
}

#[test]
fn what_is_wrong_with_an_answer_is_told_and_nothing_panics() {
    let offer = "<wsag:AgreementOffer xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\"/>";
    assert!(
        wrong(offer).to_string().contains("no answer of the protocol"),
        "{offer}"
    );
    assert!(wrong("<a/>").to_string().contains("no answer of the protocol"));
    let mut make = DocumentMaker(Chance(77));
    let samples: Vec<String> = (0..60)
        .flat_map(|_| {
            let offers = make.some(1, counter_offer);
            [
                make.properties().to_xml(),
                make.fault().to_xml(),
                negotiate_output(&offers),
                negotiations::initiate_negotiation_output(&make.endpoint()),
            ]
        })
        .collect();
    let mut chance = Chance(78);
    for index in 0..6_000 {
        let mut bytes = samples[index % samples.len()].clone().into_bytes();
        for _ in 0..=chance.below(3) {
            let at = chance.below(bytes.len());
            match chance.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes[at] = b"<>&\"/ 9-xN\xFF"[chance.below(11)],
                _ => drop(bytes.drain(at..(at + chance.below(60)).min(bytes.len()))),
            }
        }
        let Ok(document) = Document::parse(&bytes) else {
            continue;
        };
        match read_answer(&document) {
            Err(found) => assert!(
                found.0.iter().all(|violation| violation.path.starts_with('/')),
                "{found}"
            ),
            Ok(Answer::CounterOffers(offers)) => {
                for offer in offers {
                    let context = &offer.offer.offer_context;
                    let (_, _, _) = (context.quotation(), context.refusal(), context.violations());
                }
            }
            Ok(_) => {}
        }
    }
}
