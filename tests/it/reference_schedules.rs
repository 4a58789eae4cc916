//! The starts, counts and profits of an independent implementation of the scheduler, met to the second.
//!
//! The file is read where `BESPEAK_REFERENCE_DATA` says and is no part of the repository; without the variable these tests
//! say that they were skipped.

use std::collections::BTreeMap;
use std::path::PathBuf;

use scheduler::alternatives::AlternativeLimits;
use scheduler::{Decision, Fraction, Order, Request, Schedule, Time};
use serde_json::Value;

/// The reference file, or `None` where the environment names none.
fn reference() -> Option<Value> {
    let Some(folder) = std::env::var_os("BESPEAK_REFERENCE_DATA") else {
        eprintln!("SKIPPED: BESPEAK_REFERENCE_DATA is not set, so no reference schedule was compared");
        return None;
    };
    let path = PathBuf::from(folder).join("scheduler-reference.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(serde_json::from_str(&text).expect("the reference file is JSON"))
}

/// A mode of section p000: its requests, their order, when they are fixed, and the largest deviation of alternatives.
struct Mode {
    name: &'static str,
    requests: &'static str,
    order: Order,
    fixing: Option<Fraction>,
    alternatives: bool,
}

const fn mode(name: &'static str, requests: &'static str, order: Order) -> Mode {
    Mode {
        name,
        requests,
        order,
        fixing: None,
        alternatives: false,
    }
}

const MODES: &[Mode] = &[
    mode("rigid_fifo", "jobs_rigid", Order::Fifo),
    mode("rigid_edf", "jobs_rigid", Order::Edf),
    mode("flex_fifo", "jobs_flexible", Order::Fifo),
    mode("flex_edf", "jobs_flexible", Order::Edf),
    mode("flex_lff", "jobs_flexible", Order::Lff),
    mode("flex_bjf", "jobs_flexible", Order::Bjf),
    Mode {
        fixing: Some(Fraction::percent(0)),
        ..mode("flex_edf_fix0", "jobs_flexible", Order::Edf)
    },
    Mode {
        fixing: Some(Fraction::percent(50)),
        ..mode("flex_edf_fix50", "jobs_flexible", Order::Edf)
    },
    Mode {
        alternatives: true,
        ..mode("rigid_edf_alt100_all", "jobs_rigid", Order::Edf)
    },
];

fn requests(rows: &Value) -> Vec<Request> {
    let rows: Vec<(u64, i64, i64, u32, i64, i64)> =
        serde_json::from_value(rows.clone()).expect("rows of id, submit, duration, nodes, ready, deadline");
    let mut requests: Vec<Request> = rows
        .into_iter()
        .map(|(id, submitted, duration, nodes, ready, deadline)| Request {
            id,
            submitted: Time(submitted),
            ready: Time(ready),
            deadline: Time(deadline),
            duration,
            nodes,
            revenue: 0,
        })
        .collect();
    requests.sort_by_key(|r| (r.submitted, r.id));
    requests
}

/// The start that finally held of every accepted request.
fn starts(mode: &Mode, requests: &[Request], phi_percent: u32) -> BTreeMap<u64, i64> {
    let mut schedule = Schedule::new(128, mode.order).fixing(mode.fixing);
    let mut starts = BTreeMap::new();
    let mut note = |decision: &Decision| {
        if let Decision::Accepted { placement, moved } = decision {
            starts.insert(placement.id, placement.slot.start.0);
            starts.extend(moved.iter().map(|m| (m.id, m.to.0)));
        }
    };
    for request in requests {
        let now = request.submitted;
        let decision = schedule.submit(now, request);
        note(&decision);
        if mode.alternatives && matches!(decision, Decision::Refused { .. }) {
            let limits = AlternativeLimits {
                phi_max: Fraction::percent(phi_percent),
                count_max: 1,
            };
            if let Some(first) = schedule.alternatives(now, request, limits).first() {
                note(&schedule.submit(now, &request.fixed_to(first.start)));
            }
        }
    }
    starts
}

#[test]
fn every_start_of_the_admission_modes_is_met() {
    let Some(reference) = reference() else { return };
    let windows = reference["p000"].as_array().expect("windows of requests");
    for window in windows {
        let phi_percent = window["phi"]
            .as_u64()
            .and_then(|phi| u32::try_from(phi).ok())
            .expect("a percentage");
        let expected = window["expected"].as_object().expect("results by mode");
        assert_eq!(expected.len(), MODES.len(), "a mode is not compared");
        for mode in MODES {
            let requests = requests(&window[mode.requests]);
            let expected = &expected[mode.name];
            let expected_starts: BTreeMap<u64, i64> =
                serde_json::from_value(expected["starts"].clone()).expect("starts by id");
            let starts = starts(mode, &requests, phi_percent);
            let differing: Vec<_> = expected_starts
                .iter()
                .filter(|(id, s)| starts.get(id) != Some(s))
                .collect();
            assert!(
                differing.is_empty(),
                "window {}, {}: {differing:?}",
                window["window"],
                mode.name
            );
            assert_eq!(
                Some(starts.len() as u64),
                expected["accepted"].as_u64(),
                "{}",
                mode.name
            );
        }
    }
}
