//! `bespeak terminate ID`.

use std::io::{IsTerminal as _, Write as _};

use clap::Args;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use uuid::Uuid;
use wsag::budget::parse_amount;

use crate::cli::Failure;
use crate::cli::client::{AgreementOptions, DryRun, Server, print_agreement, read_answer};
use service::{AgreementView, EndingPaymentView, EndingView, terminate_agreement_input};

const EXAMPLES: &str = "\
Examples:
  bespeak terminate 01a1fc5d835f --dry-run     how it would end, and what that would cost now
  bespeak terminate nightly
  bespeak terminate nightly --yes              for scripts: also if it costs something

It says what the end costs, and asks before it ends an agreement if that is more than nothing.";

/// Options of `terminate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    one: AgreementOptions,
    /// Do not ask, also if the end costs something.
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(in crate::cli) async fn terminate_agreement(options: Options, server: &Server) -> Result<(), Failure> {
    let id = server.id_of(&options.one.id).await?;
    if !options.dry_run.dry_run {
        let answer = terminate_for_shown_costs(server, id, options.yes).await?;
        return server.print_answer(answer, print_agreement);
    }
    let path = format!("/agreements/{id}/terminate{}", options.dry_run.query());
    let answer = server
        .post(&path, terminate_agreement_input().into_bytes())
        .await?;
    server.print_answer(answer, print_agreement)?;
    if !server.json {
        print_cost_to_terminate(&cost_of_ending(server, id).await?);
    }
    Ok(())
}

async fn cost_of_ending(server: &Server, id: Uuid) -> Result<EndingView, Failure> {
    read_answer(server.get(&format!("/agreements/{id}/ending")).await?)
}

/// Ends an agreement in the version whose costs were read. Where these are more than was shown, they are shown and asked about; with
/// `is_agreed` nothing is asked.
async fn terminate_for_shown_costs(server: &Server, id: Uuid, is_agreed: bool) -> Result<Value, Failure> {
    let path = format!("/agreements/{id}/terminate");
    let mut shown = 0;
    loop {
        // Before the costs: where it changes in between, it is not ended.
        let seen: AgreementView = read_answer(server.agreement(id).await?)?;
        let ending = cost_of_ending(server, id).await?;
        let costs = sum_to_pay_for_termination(&ending.charges);
        if costs > shown {
            if !server.json {
                print_cost_to_terminate(&ending);
            }
            shown = costs;
            if !is_agreed {
                ask_to_pay_for_termination(&ending.charges)?;
                // The answer may have taken long.
                continue;
            }
        }
        let request = server
            .request(Method::POST, &path)?
            .header("content-type", "application/xml")
            .header("if-match", format!("\"{}\"", seen.version))
            .body(terminate_agreement_input());
        let ended = server.receive_unless(StatusCode::PRECONDITION_FAILED, request);
        if let Some(answer) = ended.await? {
            return Ok(answer);
        }
    }
}

/// The sum of payments in millionths. One that cannot be read counts as more than every other.
fn sum_to_pay_for_termination(payments: &[EndingPaymentView]) -> i64 {
    let amounts = payments.iter();
    let amounts = amounts.map(|payment| parse_amount(&payment.amount.amount).unwrap_or(i64::MAX));
    amounts.fold(0, i64::saturating_add)
}

/// Asks whether to pay for the end of an agreement. A script cannot answer: it has to have said so.
fn ask_to_pay_for_termination(charges: &[EndingPaymentView]) -> Result<(), Failure> {
    let amounts: Vec<String> = charges.iter().map(|charge| charge.amount.to_string()).collect();
    let costs = amounts.join(" and ");
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Refused(format!(
            "nothing is ended: the end costs {costs}, and there is no terminal to ask at. To end it for that, give --yes"
        )));
    }
    let asked = write!(std::io::stderr(), "End it for {costs}? [y/N] ");
    let mut said = String::new();
    let read = asked.and_then(|()| std::io::stdin().read_line(&mut said));
    read.map_err(|why| Failure::Usage(why.to_string()))?;
    match said.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Refused("nothing is ended".to_owned())),
    }
}

fn print_cost_to_terminate(ending: &EndingView) {
    for payment in &ending.charges {
        say!("{:<10} {}", "costs", payment_to_terminate_in_words(payment));
    }
    for payment in &ending.credits {
        say!("{:<10} {}", "pays back", payment_to_terminate_in_words(payment));
    }
    if ending.charges.is_empty() && ending.credits.is_empty() {
        say!("{:<10} nothing", "costs");
    }
    if let Some(at_peer) = &ending.at_peer {
        let charge = at_peer.charge.as_ref();
        let charge = charge.map_or("it does not say what".to_owned(), ToString::to_string);
        say!("{:<10} {charge}, charged by {}", "of that", at_peer.peer);
    }
}

fn payment_to_terminate_in_words(payment: &EndingPaymentView) -> String {
    let why = payment.reason.as_ref();
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("{} ({}{why})", payment.amount, payment.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payments_are_summed_and_what_cannot_be_read_is_asked_about() {
        let payment = |amount: &str| -> EndingPaymentView {
            let amount = serde_json::json!({ "amount": amount, "currency": "EUR" });
            let payment = serde_json::json!({ "kind": "cancellation", "amount": amount });
            serde_json::from_value(payment).unwrap()
        };
        assert_eq!(sum_to_pay_for_termination(&[]), 0);
        assert_eq!(
            sum_to_pay_for_termination(&[payment("0.25"), payment("1")]),
            1_250_000
        );
        assert_eq!(
            sum_to_pay_for_termination(&[payment("much"), payment("1")]),
            i64::MAX
        );
    }
}
