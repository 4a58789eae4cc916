//! The effects of an operator's change on resources and agreements, and what these cost.

use scheduler::counted;

use crate::cli::money::sums_of_money_in_words;
use crate::cli::table::{print_table, row};
use service::{MoneyView, PlaceChangeView, ResourceChangesView};

/// Prints what became of resources and of agreements.
pub(super) fn print_effects_on_resources(told: &ResourceChangesView) {
    let would = if told.dry_run { "would be " } else { "" };
    for resource in &told.resources {
        match resource.change.as_str() {
            "" => say!("{}: it is so already", resource.name),
            change => say!("{}: {would}{change}", resource.name),
        }
    }
    if told.resources.is_empty() {
        say!("no resource {would}changed");
    }
    let agreements = told.broken.iter().chain(&told.moved);
    print_effects_on_agreements(agreements, told.unlisted, &told.penalties, would);
    say!(
        "{} {would}moved, {} {would}without a place; {} {would}withdrawn",
        told.moved.len(),
        told.broken.len(),
        counted(told.withdrawn, "held offer")
    );
}

/// Prints what becomes of agreements, and what it costs the provider.
pub(super) fn print_effects_on_agreements<'a>(
    agreements: impl Iterator<Item = &'a PlaceChangeView>,
    unlisted: usize,
    penalties: &[MoneyView],
    would: &str,
) {
    let line = |change: &PlaceChangeView| {
        let name = change.name.as_deref().unwrap_or_default();
        let (to, start) = match &change.to {
            Some(to) => (to.resource.as_str(), to.start.as_str()),
            None => ("no place", ""),
        };
        let from = &change.from;
        row([
            &change.agreement,
            &change.party,
            &name,
            &from.resource,
            &from.start,
            &to,
            &start,
            &sums_of_money_in_words(&change.penalties),
        ])
    };
    let rows: Vec<_> = agreements.map(line).collect();
    if !rows.is_empty() {
        let headings = "AGREEMENT, PARTY, NAME, FROM, START, TO, START, PENALTY";
        print_table(headings, &[], rows);
    }
    if unlisted > 0 {
        say!("{}", counted(unlisted, "more agreement"));
    }
    if !penalties.is_empty() {
        say!("{} {would}paid as penalties", sums_of_money_in_words(penalties));
    }
}
