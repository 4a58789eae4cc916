//! The cost of taking in an offer, as a multiple of one bare quick-xml pass over the same bytes in the same run.

#![expect(
    clippy::disallowed_types,
    reason = "a measurement needs a clock; the crate itself does not"
)]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;
use std::time::Instant;

use wsag::constraints::CompiledTemplate;
use wsag::endpoint::EndpointReference;
use wsag::templates::ADVANCE_RESERVATION;
use wsag::{Document, Message, guard, operations, read, rules};

/// Seconds of one call: the least mean of several rounds.
fn seconds(mut call: impl FnMut()) -> f64 {
    let round = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..500 {
            call();
        }
        start.elapsed().as_secs_f64() / 500.0
    };
    round(&mut call);
    (0..30).map(|_| round(&mut call)).fold(f64::MAX, f64::min)
}

fn bare_pass(text: &str) {
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => return,
            event => drop(black_box(event)),
        }
    }
}

fn template() -> CompiledTemplate {
    let document = Document::parse(ADVANCE_RESERVATION.as_bytes()).unwrap();
    match read(&document).unwrap() {
        Message::Template(template) => CompiledTemplate::compile(&template.with_nodes_max(64)),
        other => panic!("a template is expected, not {other:?}"),
    }
}

fn main() {
    let template = template();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/messages/");
    let offer = std::fs::read_to_string(format!("{folder}o01-offer-sleep.xml")).unwrap();
    let wrapped = format!(
        "<wsag:CreateAgreementInput xmlns:wsag=\"{}\">{}</wsag:CreateAgreementInput>",
        wsag::ns::WSAG,
        &offer[offer.find("<wsag:AgreementOffer").unwrap()..]
    );
    for (name, text) in [("bare offer", offer), ("offer in CreateAgreementInput", wrapped)] {
        let base = seconds(|| bare_pass(black_box(&text)));
        println!(
            "{name}, {} bytes; bare quick-xml pass {:.2} us",
            text.len(),
            base * 1e6
        );
        let report =
            |step: &str, time: f64| println!("  {step:34} {:7.2} us {:6.2} x", time * 1e6, time / base);
        report(
            "guard",
            seconds(|| {
                assert!(
                    !guard::guard_document(black_box(text.as_bytes()))
                        .unwrap()
                        .is_empty()
                );
            }),
        );
        report(
            "guard and tree",
            seconds(|| drop(Document::parse(black_box(text.as_bytes())).unwrap())),
        );
        let document = Document::parse(text.as_bytes()).unwrap();
        report(
            "typed reading",
            seconds(|| drop(black_box(read(&document).unwrap()))),
        );
        report(
            "rules",
            seconds(|| assert!(black_box(rules::check_rules(&document)).is_empty())),
        );
        report(
            "template",
            seconds(|| assert!(black_box(template.check(&document)).is_empty())),
        );
        let answer = EndpointReference::new("http://127.0.0.1:8080/agreements/0199-a");
        report(
            "answer",
            seconds(|| {
                drop(black_box(operations::create_agreement_response(
                    &answer,
                    (&[], 0),
                    &[],
                )));
            }),
        );
        let whole = seconds(|| {
            let document = Document::parse(black_box(text.as_bytes())).unwrap();
            let message = read(&document).unwrap();
            assert!(rules::check_rules(&document).is_empty() && template.check(&document).is_empty());
            black_box((
                message,
                operations::create_agreement_response(&answer, (&[], 0), &[]),
            ));
        });
        report("all of it", whole);
    }
}
