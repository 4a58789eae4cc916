//! Templates with constraints of a test's own.

use wsag::constraints::CompiledTemplate;
use wsag::templates::ADVANCE_RESERVATION;
use wsag::{Document, Violation};

use super::items::item;
use super::{template, text};

/// A template with these creation constraints and no others.
pub(crate) fn with(constraints: &str) -> CompiledTemplate {
    let start = ADVANCE_RESERVATION
        .find("<wsag:CreationConstraints>")
        .expect("it has some");
    let head = &ADVANCE_RESERVATION[..start];
    let text =
        format!("{head}<wsag:CreationConstraints>{constraints}</wsag:CreationConstraints></wsag:Template>");
    CompiledTemplate::compile(&template(&text))
}

/// The violations of an offer.
pub(crate) fn check(template: &CompiledTemplate, offer: &str) -> Vec<Violation> {
    template.check(&Document::parse(offer.as_bytes()).expect("a document"))
}

/// Whether an offer with an application of this name meets a constraint on the name.
pub(crate) fn name_meets(constraint: &str, name: &str) -> bool {
    let template = item("//jsdl:ApplicationName", constraint);
    assert!(
        template.problems().is_empty(),
        "{constraint}: {:?}",
        template.problems()
    );
    let offer = text("o01-offer-sleep.xml").replace(">sleep<", &format!(">{name}<"));
    check(&template, &offer).is_empty()
}
