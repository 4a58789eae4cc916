//! Values are kept as JSON, and are read from that as what they were.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wsag::job_definition::{Bound, Exact, RangeValue};
use wsag::negotiations::InitiateNegotiationInput;
use wsag::{Document, Message};

use crate::support::make::DocumentMaker;
use crate::support::{Chance, names_read, text};

#[track_caller]
fn assert_kept<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let kept = serde_json::to_string(value).expect("it is JSON");
    let again: T = serde_json::from_str(&kept).unwrap_or_else(|why| panic!("{why}: {kept}"));
    assert_eq!(again, *value, "{kept}");
}

#[test]
fn whatever_is_made_is_kept_as_it_was() {
    let mut make = DocumentMaker(Chance(16));
    for _ in 0..300 {
        assert_kept(&make.offer());
        assert_kept(&make.negotiation_offer());
        assert_kept(&InitiateNegotiationInput {
            context: make.negotiation_context(),
            initiator: make.maybe(DocumentMaker::endpoint),
            noncritical: Vec::new(),
        });
    }
}

#[test]
fn the_samples_are_kept_as_they_were() {
    for name in names_read() {
        let sample = text(&name);
        let document = Document::parse(sample.as_bytes()).expect("a document");
        match wsag::read(&document) {
            Ok(Message::AgreementOffer(offer)) => assert_kept(&offer),
            Ok(Message::CreateAgreementInput(input) | Message::CreatePendingAgreementInput(input)) => {
                assert_kept(&input.offer);
            }
            Ok(Message::Template(template)) => assert_kept(&template),
            Ok(
                Message::NegotiateInput(offers)
                | Message::NegotiateOutput(offers)
                | Message::AdvertiseInput(offers),
            ) => assert_kept(&offers),
            Ok(Message::InitiateNegotiationInput(input)) => assert_kept(&input),
            _ => {}
        }
    }
}

#[test]
fn numbers_without_an_end_are_kept() {
    for value in [f64::INFINITY, f64::NEG_INFINITY, 5e-324, 0.1 + 0.2, f64::MAX] {
        let bound = Bound {
            value,
            exclusive: true,
        };
        assert_kept(&RangeValue {
            upper: Some(bound),
            exact: vec![Exact {
                value,
                epsilon: Some(value),
            }],
            ranges: vec![(bound, bound)],
            ..RangeValue::default()
        });
    }
}
