//! The labels of an offer: its name, and the id that its initiator gives the agreement.

use address::is_hidden;
use wsag::agreements::AgreementOffer;
use wsag::{Document, Violation, ns};

use crate::codec::json_check::TOKEN_MAX;
use crate::error::violation_at_path;

/// The longest name of an agreement, in characters: a line of a list, and no way to fill the store.
const NAME_LENGTH_MAX: usize = 200;

/// The faults of an offer's name and id. A name stands in lists, on pages and on terminals, so it has to be one line of limited
/// length without control characters. The id is in an index of the store, which takes no long value.
pub(crate) fn wrong_labels(document: &Document<'_>, offer: &AgreementOffer) -> Vec<Violation> {
    let expected = |most: usize, each| {
        format!("at most {most} {each} are expected, none of them a control character or an invisible one")
    };
    let mut found = Vec::new();
    let name = offer.name.as_deref().unwrap_or_default();
    if name.chars().count() > NAME_LENGTH_MAX || name.chars().any(is_hidden) {
        let path = document.path_outside_unknown_terms(ns::WSAG, "Name", 0);
        found.push(violation_at_path(path, expected(NAME_LENGTH_MAX, "characters")));
    }
    let id = offer.agreement_id.as_deref().unwrap_or_default();
    if !can_be_agreement_id(id) {
        let path = document.path_outside_unknown_terms(ns::WSAG, "AgreementOffer", 0) + "/@wsag:AgreementId";
        found.push(violation_at_path(path, expected(TOKEN_MAX, "bytes")));
    }
    found
}

/// Whether an agreement may have this id from its initiator.
pub(crate) fn can_be_agreement_id(id: &str) -> bool {
    id.len() <= TOKEN_MAX && !id.chars().any(is_hidden)
}
