//! The schedules of the evaluation of adaptive requests, computed by an independent implementation of the same rules:
//! every piece to the second and the profit to every digit given.

use advisor::adaptive_plan::{AdaptiveDecision, AdaptivePlan, AdaptiveRequest, Policy};
use scheduler::moldable::{Shapes, Sizes};
use scheduler::preemptive::{Piece, Preemption};
use scheduler::pricing::{Price, Tariff};
use scheduler::{Fraction, Interval, Time};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::support::reference_windows;

const NODES: u32 = 128;
const HOUR: i64 = 3_600;

/// A row of the file: a request of the workload.
struct Row {
    id: u64,
    submitted: Time,
    fastest: i64,
    sizes: std::ops::RangeInclusive<u32>,
    profile: u32,
    deadline: i64,
    preemptive: bool,
}

/// Which requests may choose their size and be cut.
#[derive(Clone, Copy)]
struct Mode {
    policy: Policy,
    moldable: bool,
    preemptive: bool,
}

impl Mode {
    fn named(name: &str) -> Self {
        let (policy, kind) = name.split_once('_').expect("policy_kind");
        Self {
            policy: match policy {
                "fifo" => Policy::Fifo,
                "mdf" => Policy::MissingDeadlineFirst,
                _ => panic!("unknown policy {policy}"),
            },
            moldable: ["mold", "both"].contains(&kind),
            preemptive: ["pre", "both"].contains(&kind),
        }
    }

    fn request(self, row: &Row) -> AdaptiveRequest {
        let most = *row.sizes.end();
        let shapes = if self.moldable {
            Shapes::scaled(row.fastest, row.sizes.clone(), &Sizes::Every)
        } else {
            Shapes::rigid(most, row.fastest)
        };
        let preemption = if self.preemptive && row.preemptive && row.fastest >= HOUR {
            Preemption::new(10, 100_000, true).expect("ten parts")
        } else {
            Preemption::NONE
        };
        let window = Interval::of(row.submitted, row.deadline);
        AdaptiveRequest::new(row.id, window, shapes.expect("a row has shapes"), preemption)
            .expect("few sizes")
    }
}

struct PlanOutcome {
    pieces: BTreeMap<u64, Vec<Piece>>,
    refused: usize,
}

fn run(rows: &[Row], mode: Mode) -> PlanOutcome {
    let mut plan = AdaptivePlan::new(NODES, mode.policy);
    let (mut pieces, mut refused) = (BTreeMap::new(), 0);
    for row in rows {
        match plan.submit(row.submitted, mode.request(row)) {
            AdaptiveDecision::Accepted { pieces: own, moved } => {
                pieces.insert(row.id, own);
                // A piece that is not reported as moved must not have moved: the final pieces are kept from these reports.
                for id in moved {
                    pieces.insert(id, plan.pieces(id).to_vec());
                }
            }
            AdaptiveDecision::Refused { .. } => refused += 1,
        }
    }
    PlanOutcome { pieces, refused }
}

fn check(rows: &[Row], name: &str, expected: &Value) {
    let mode = Mode::named(name);
    let outcome = run(rows, mode);
    let listed: BTreeMap<String, Vec<[i64; 3]>> = outcome
        .pieces
        .iter()
        .map(|(id, pieces)| (id.to_string(), pieces.iter().map(listed).collect()))
        .collect();
    let wanted: BTreeMap<String, Vec<[i64; 3]>> = expected["pieces"]
        .as_object()
        .expect("pieces by id")
        .iter()
        .map(|(id, pieces)| (id.clone(), numbers(pieces)))
        .collect();
    for (id, pieces) in &wanted {
        assert_eq!(listed.get(id), Some(pieces), "{name}, request {id}");
    }
    assert_eq!(
        listed.len(),
        wanted.len(),
        "{name}: accepted but not in the reference"
    );
    assert_eq!(expected["accepted"], listed.len(), "{name}");
    assert_eq!(expected["rejected"], outcome.refused, "{name}");

    let mut profit = Price::default();
    let mut completions = 0;
    for row in rows {
        let Some(pieces) = outcome.pieces.get(&row.id) else {
            continue;
        };
        let usage = mode.request(row).usage(row.submitted, pieces);
        let tariff = Tariff {
            profile: Fraction::percent(100 * row.profile),
            ..Tariff::PUBLISHED
        };
        let price = tariff.price(&usage).expect("an amount");
        profit = Price::from_units(profit.units() + price.units());
        completions += usage.completion;
    }
    let micros = (expected["profit"].as_f64().expect("a profit") * 1e6).round();
    assert!(
        (micros - to_float(profit.micros())).abs() < 0.5,
        "{name}: profit {micros}, found {profit:?}"
    );
    // The mean in thousandths of a second, to the nearest.
    let accepted = i64::try_from(listed.len()).expect("few requests");
    let millis = (expected["mean_completion_s"].as_f64().expect("a mean") * 1e3).round();
    let mean = to_float(i128::from(completions)) * 1e3 / to_float(i128::from(accepted));
    assert!(
        (millis - mean).abs() <= 0.5 + 1e-6,
        "{name}: mean {millis}, found {mean}"
    );
    println!(
        "{name}: {accepted} accepted, {} refused, profit {} millionths, mean {mean:.0} ms, {} requests to the second",
        outcome.refused,
        profit.micros(),
        wanted.len()
    );
}

#[expect(clippy::cast_precision_loss, reason = "amounts far below 2⁵³")]
fn to_float(number: i128) -> f64 {
    number as f64
}

fn listed(piece: &Piece) -> [i64; 3] {
    let start = piece.interval.start.seconds();
    [start, piece.interval.duration(), piece.nodes.into()]
}

fn numbers(pieces: &Value) -> Vec<[i64; 3]> {
    let piece = |piece: &Value| [0, 1, 2].map(|k: usize| piece[k].as_i64().expect("a number"));
    pieces
        .as_array()
        .expect("a list of pieces")
        .iter()
        .map(piece)
        .collect()
}

fn rows(window: &Value) -> Vec<Row> {
    let columns = [
        "id",
        "submit",
        "tmin",
        "rmin",
        "rmax",
        "price_profile",
        "D_relative",
        "preemptive_candidate",
    ];
    let names: Vec<&str> = window["cols"]
        .as_array()
        .expect("columns")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(names, columns);
    let requests = window["requests"].as_array().expect("requests");
    let small = |number: i64| u32::try_from(number).expect("a small number");
    let row = |row: &Value| {
        let [id, submit, fastest, least, most, profile, deadline, cut] =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|k: usize| row[k].as_i64().expect("a number"));
        Row {
            id: id.cast_unsigned(),
            submitted: Time(submit),
            fastest,
            sizes: small(least)..=small(most),
            profile: small(profile),
            deadline,
            preemptive: cut == 1,
        }
    };
    requests.iter().map(row).collect()
}

#[test]
fn all_modes_of_adaptive_requests_match_the_reference() {
    for window in reference_windows("p002") {
        let rows = rows(&window);
        let modes = window["expected"].as_object().expect("modes");
        assert_eq!(modes.len(), 8, "two policies, four kinds of request");
        for (name, expected) in modes {
            check(&rows, name, expected);
        }
    }
}
