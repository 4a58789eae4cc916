//! Against the reference schedules, and against the trace in the folder `BESPEAK_REFERENCE_DATA`; that is skipped, saying so,
//! without it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use advisor::flexible::flexible_utilisation_percent;
use advisor::policy::{Alternatives, Policy};
use advisor::replay::{ReplayAsk, replay_asks};
use advisor::swf::SwfTrace;
use advisor::workload::{Window, Workload, WorkloadFilter};
use scheduler::{Fraction, Interval, Order, Request, Time};
use serde_json::Value;

use crate::support::{reference_windows, root, text};

const CAPACITY: u32 = 128;

/// A file of the folder, if there is one.
fn reference(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("BESPEAK_REFERENCE_DATA") else {
        println!("SKIPPED: BESPEAK_REFERENCE_DATA names no folder with {name}");
        return None;
    };
    Some(PathBuf::from(folder).join(name))
}

fn workload() -> Option<Workload> {
    let path = reference("SDSC-SP2-1998-4.2-cln.swf.gz")?;
    let trace = SwfTrace::open(&path).expect("the trace can be read");
    assert_eq!(trace.malformed, []);
    assert_eq!(trace.records.len(), 59_715, "as its header says");
    Some(Workload::from_trace("SDSC-SP2", &trace))
}

fn schedules() -> Option<Value> {
    let text =
        std::fs::read_to_string(reference("scheduler-reference.json")?).expect("the schedules can be read");
    Some(serde_json::from_str(&text).expect("they are JSON"))
}

fn whole(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("{value} is no whole number"))
}

fn load_percent(part: &Value) -> u32 {
    match part["load"].as_f64().expect("a load") {
        load if load < 1.1 => 100,
        load if load < 1.3 => 125,
        _ => 150,
    }
}

/// Windows, by number, with the filter that the reference was made with.
fn windows(workload: &Workload) -> BTreeMap<usize, Window> {
    let windows = workload.windows(WorkloadFilter::F1h, 48);
    windows.into_iter().map(|window| (window.index, window)).collect()
}

#[test]
fn the_trace_has_as_many_jobs_as_the_papers_conjectured_filter_leaves() {
    let Some(workload) = workload() else { return };
    assert_eq!(workload.capacity, 128);
    assert!(
        workload
            .notice
            .iter()
            .any(|line| line.contains("Victor Hazlewood"))
    );
    let windows = windows(&workload);
    assert_eq!(windows.len(), 48);
    assert_eq!(
        windows.values().map(|window| window.jobs.len()).sum::<usize>(),
        11_781
    );
}

#[test]
fn windows_give_the_jobs_of_the_reference() {
    let (Some(workload), Some(schedules)) = (workload(), schedules()) else {
        return;
    };
    let windows = windows(&workload);
    let mut compared = 0;
    for part in schedules["p000"].as_array().unwrap() {
        let window = &windows[&usize::try_from(whole(&part["window"])).unwrap()];
        let load = i64::from(load_percent(part));
        let expected = part["jobs_rigid"].as_array().unwrap();
        assert_eq!(window.jobs.len(), expected.len());
        for (index, (job, row)) in window.jobs.iter().zip(expected).enumerate() {
            let seen = [
                i64::try_from(index).unwrap(),
                job.submit * 100 / load,
                job.run,
                i64::from(job.nodes),
            ];
            assert_eq!(seen, [0, 1, 2, 3].map(|column| whole(&row[column])));
            compared += 1;
        }
    }
    for part in schedules["p002"].as_array().unwrap() {
        let window = &windows[&usize::try_from(whole(&part["window"])).unwrap()];
        let expected = part["requests"].as_array().unwrap();
        assert_eq!(window.jobs.len(), expected.len());
        for (job, row) in window.jobs.iter().zip(expected) {
            let seen = [job.submit, job.run, i64::from(job.nodes)];
            assert_eq!(seen, [1, 2, 4].map(|column| whole(&row[column])));
            compared += 1;
        }
    }
    assert_eq!(compared, 142 + 254 + 254);
}

#[test]
fn the_schedules_of_the_repository_are_those_that_their_script_makes() {
    let script = root().join("scripts/reference-schedules");
    match Command::new("python3").arg(script).arg("--check").output() {
        Ok(output) => assert!(output.status.success(), "{}", text(&output.stderr)),
        Err(why) => println!("NOT TESTED: python3: {why}"),
    }
}

#[test]
fn replays_give_the_starts_alternatives_and_utilisation_of_the_reference() {
    let fixed = |order, percent| Policy {
        fixing: Some(Fraction::percent(percent)),
        ..Policy::of(order)
    };
    let modes = [
        ("rigid_fifo", Policy::of(Order::Fifo)),
        ("rigid_edf", Policy::of(Order::Edf)),
        ("flex_fifo", Policy::of(Order::Fifo)),
        ("flex_edf", Policy::of(Order::Edf)),
        ("flex_lff", Policy::of(Order::Lff)),
        ("flex_bjf", Policy::of(Order::Bjf)),
        ("flex_edf_fix0", fixed(Order::Edf, 0)),
        ("flex_edf_fix50", fixed(Order::Edf, 50)),
        (
            "rigid_edf_alt100_all",
            Policy {
                alternatives: Some(Alternatives {
                    phi_max: Fraction::percent(100),
                    earlier_only: false,
                }),
                ..Policy::of(Order::Edf)
            },
        ),
    ];
    for part in reference_windows("p000") {
        assert_eq!(
            part["expected"].as_object().map(serde_json::Map::len),
            Some(modes.len())
        );
        for (mode, policy) in modes {
            let jobs = if mode.starts_with("rigid") {
                "jobs_rigid"
            } else {
                "jobs_flexible"
            };
            let asks: Vec<ReplayAsk> = part[jobs].as_array().unwrap().iter().map(ask).collect();
            let outcome = replay_asks(CAPACITY, policy, &asks);
            let expected = &part["expected"][mode];
            let starts: BTreeMap<u64, i64> = expected["starts"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(id, start)| (id.parse().unwrap(), whole(start)))
                .collect();
            let seen: BTreeMap<u64, i64> = outcome
                .ran
                .iter()
                .map(|(id, (slot, _))| (*id, slot.start.0))
                .collect();
            assert_eq!(seen, starts, "{mode} in window {}", part["window"]);
            assert_eq!(
                i64::try_from(outcome.refused.len()).unwrap(),
                whole(&expected["rejected"]),
                "{mode}"
            );
            let utilisation = flexible_utilisation_percent(CAPACITY, &outcome, load_percent(&part)) / 100.0;
            let clipped = expected["clip_window"].as_f64().unwrap();
            assert!(
                (utilisation - clipped).abs() < 1e-6,
                "{mode}: {utilisation} against {clipped}"
            );
            if let Some(phis) = expected["phi_of_alternatives"].as_array() {
                let seen: Vec<f64> = outcome
                    .taken
                    .values()
                    .map(advisor::replay::TakenAlternative::phi)
                    .collect();
                assert_eq!(seen.len(), phis.len());
                for (seen, expected) in seen.iter().zip(phis) {
                    assert!(
                        (seen - expected.as_f64().unwrap()).abs() < 1e-6,
                        "{seen} against {expected}"
                    );
                }
            }
        }
    }
}

fn ask(row: &Value) -> ReplayAsk {
    let request = Request {
        id: whole(&row[0]).unsigned_abs(),
        submitted: Time(whole(&row[1])),
        duration: whole(&row[2]),
        nodes: u32::try_from(whole(&row[3])).expect("nodes"),
        ready: Time(whole(&row[4])),
        deadline: Time(whole(&row[5])),
        revenue: 0,
    };
    assert!(
        request
            .window()
            .contains(Interval::of(request.ready, request.duration))
    );
    ReplayAsk {
        takes_alternatives: true,
        ..ReplayAsk::plain(request)
    }
}
