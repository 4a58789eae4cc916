//! `bespeak replay`: a list of the user's own requests, played on one resource under a policy.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use scheduler::slot_tree::MAX_CAPACITY;
use scheduler::{Fraction, Order, Request};
use simulation::replay::{Alternatives, Ask, Outcome, Policy, replay};
use simulation::request_list;

use super::Failure;

/// Options of `replay`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// CSV: `id,submit,duration,nodes,ready,deadline`, times in whole seconds from any origin.
    #[arg(value_name = "FILE")]
    requests: PathBuf,
    /// Nodes of the resource.
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CAPACITY)))]
    capacity: u32,
    /// Order in which waiting requests are placed.
    #[arg(long, value_enum, default_value_t = Sorting::Edf)]
    order: Sorting,
    /// Seed of the order `shuffle`.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Fix a request to its slot after this part of its wait. [default: never]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    fix_after: Option<u32>,
    /// After a refusal take the nearest slot up to this part of the duration outside of the window. [default: none]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    alternatives: Option<u32>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sorting {
    /// First in, first out.
    Fifo,
    /// At random.
    Shuffle,
    /// Biggest job first.
    Bjf,
    /// Least flexible first.
    Lff,
    /// Earliest deadline first.
    Edf,
    /// Missing deadline first.
    Mdf,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let path = options.requests.display();
    let text = std::fs::read_to_string(&options.requests)
        .map_err(|error| Failure::Usage(format!("{path}: {error}")))?;
    let mut requests =
        request_list::parse(&text).map_err(|error| Failure::Usage(format!("{path}: {error}")))?;
    requests.sort_by_key(|request| request.submitted);
    // The scheduler takes a request's id for the number of its submission.
    let asks: Vec<Ask> = (0..)
        .zip(&requests)
        .map(|(id, request)| Ask {
            takes_alternatives: true,
            ..Ask::plain(Request { id, ..*request })
        })
        .collect();
    let policy = Policy {
        order: order(options),
        fixing: options.fix_after.map(Fraction::percent),
        alternatives: options.alternatives.map(|percent| Alternatives {
            phi_max: Fraction::percent(percent),
            earlier_only: false,
        }),
    };
    say!(
        "{}",
        answers(&requests, &replay(options.capacity, policy, &asks)).trim_end()
    );
    Ok(())
}

fn order(options: &Options) -> Order {
    match options.order {
        Sorting::Fifo => Order::Fifo,
        Sorting::Shuffle => Order::Shuffle { seed: options.seed },
        Sorting::Bjf => Order::Bjf,
        Sorting::Lff => Order::Lff,
        Sorting::Edf => Order::Edf,
        Sorting::Mdf => Order::Mdf,
    }
}

/// A line for each request, in order of submission.
fn answers(requests: &[Request], outcome: &Outcome) -> String {
    let mut text = String::from("id,decision,start,phi_percent\n");
    for (number, request) in (0..).zip(requests) {
        let id = request.id;
        // Writing to a string does not fail.
        let _ = match (outcome.ran.get(&number), outcome.taken.get(&number)) {
            (Some((slot, _)), Some(taken)) => {
                writeln!(text, "{id},alternative,{},{:.2}", slot.start, taken.phi_percent())
            }
            (Some((slot, _)), None) => writeln!(text, "{id},accepted,{},", slot.start),
            (None, _) => writeln!(text, "{id},refused,,"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::answers;
    use simulation::replay::{Ask, Policy, replay};
    use simulation::request_list;

    #[test]
    fn each_request_is_answered_under_its_own_id() {
        let requests = request_list::parse("9,0,10,2,0,10\n4,1,10,2,5,15\n7,2,10,2,10,30\n").unwrap();
        let asks: Vec<Ask> = (0..)
            .zip(&requests)
            .map(|(id, request)| Ask::plain(scheduler::Request { id, ..*request }))
            .collect();
        let outcome = replay(2, Policy::of(scheduler::Order::Edf), &asks);
        let expected = "id,decision,start,phi_percent\n9,accepted,0,\n4,refused,,\n7,accepted,10,\n";
        assert_eq!(answers(&requests, &outcome), expected);
    }
}
