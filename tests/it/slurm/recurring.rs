//! Reservations of the site that come again, or move along with time.

use std::collections::BTreeMap;

use execution::slurm::{SlurmExecutor, SlurmSettings};
use execution::{Executor, PlannedSlot};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use scheduler::{Interval, Time};

use super::service::serve;
use super::{PATIENCE, Site, settings, slot};
use crate::support::offers::{Offer, date_time, now};
use crate::support::poll_until;
use crate::support::run;
use crate::support::slurm::{Cluster, NODES};

/// Seconds that a reservation of others takes its nodes before it begins, and after it ends.
const BEFORE: i64 = 60;
const AFTER: i64 = 5;

/// Makes a reservation of others, from an instant on.
fn reserve(cluster: &Cluster, name: &str, nodes: &str, interval: Interval, flags: &str) {
    let at = |at: Time| date_time(at.seconds()).trim_end_matches('Z').to_owned();
    let made = [
        "create".to_owned(),
        "reservation".to_owned(),
        format!("ReservationName={name}"),
        format!("StartTime={}", at(interval.start)),
        format!("EndTime={}", at(interval.end)),
        format!("Nodes={nodes}"),
        "Users=root".to_owned(),
        format!("Flags={flags}"),
    ];
    cluster.run("scontrol", &made.each_ref().map(String::as_str));
}

/// The interval of a reservation, as Slurm shows it in UTC.
fn shown(texts: &BTreeMap<String, String>) -> Interval {
    let instant = |key: &str| {
        let at: DateTime = texts[key].parse().unwrap();
        Time(at.to_zoned(TimeZone::UTC).unwrap().timestamp().as_second())
    };
    Interval::new(instant("StartTime"), instant("EndTime"))
}

/// A time zone, as POSIX writes it, whose clocks go forward in half a day, from UTC.
fn zone_that_changes_soon() -> String {
    let change = (Timestamp::now() + 12.hours()).to_zoned(TimeZone::UTC);
    let day = change.day_of_year() - 1;
    let back = (day + 182) % 365;
    format!("WIN0SUM-1,{day}/{},{back}/12:00:00", change.strftime("%H:%M:%S"))
}

#[test]
fn what_comes_again_takes_its_nodes_as_slurm_moves_it_over_a_change_of_the_clocks() {
    let mut site = Site::start();
    let zone = zone_that_changes_soon();
    site.cluster.kill_controller();
    site.cluster.start_controller_in(&zone);
    let are_idle = || {
        let states = site.cluster.try_run("sinfo", &["-h", "-N", "-o", "%T"]).stdout;
        let states = String::from_utf8_lossy(&states).into_owned();
        states.lines().filter(|state| *state == "idle").count() == NODES.len()
    };
    assert!(poll_until(PATIENCE, are_idle));
    site.executor = SlurmExecutor::new(
        SlurmSettings {
            time_zone: TimeZone::posix(&zone).unwrap(),
            ..settings(&site.cluster)
        },
        site.data.path(),
    )
    .unwrap();
    let present = Interval::of(Time(now() + 2), 10);
    reserve(&site.cluster, "daily", "n1", present, "DAILY");
    reserve(&site.cluster, "hourly", "n2", present, "HOURLY");
    let busy = |node: u32| -> Vec<Interval> {
        let report = site.executor.node_states().unwrap();
        let busy = report.busy.into_iter().filter(|busy| busy.node == node);
        busy.map(|busy| busy.interval).collect()
    };
    // Slurm may have moved them already: their later times are the same.
    let (daily, hourly) = (busy(0), busy(1));
    let later = |hours: i64| {
        let (start, end) = (present.start + hours * 3_600, present.end + hours * 3_600);
        Interval::new(start - BEFORE, end + AFTER)
    };
    assert!(
        daily.contains(&later(23)) && daily.contains(&later(47)),
        "{daily:?}"
    );
    assert!(
        hourly.contains(&later(1)) && hourly.contains(&later(2)),
        "{hourly:?}"
    );
    // A slot there gets other nodes, and where there are too few Slurm is not asked.
    let at_that_time = |nodes: u32| PlannedSlot {
        interval: Interval::of(present.start + 23 * 3_600, 600),
        ..slot(nodes, 600, 600)
    };
    let (fits, too_many) = (at_that_time(2), at_that_time(3));
    site.executor.prepare(std::slice::from_ref(&fits)).unwrap();
    assert_eq!(site.reservation(&fits).unwrap()["Nodes"], "n[3-4]");
    let refused = site.executor.prepare(&[too_many]).unwrap_err().to_string();
    assert!(refused.contains("too few nodes"), "{refused}");
    // Slurm moves both when they are over, to the times that were foreseen.
    let mut moved = [present; 2];
    poll_until(PATIENCE, || {
        moved = ["daily", "hourly"].map(|name| shown(&site.cluster.reservation(name).unwrap()));
        moved.iter().all(|interval| *interval != present)
    });
    let taken = moved.map(|moved| Interval::new(moved.start - BEFORE, moved.end + AFTER));
    assert_eq!(taken, [later(23), later(1)]);
    assert_eq!((busy(0)[0], busy(1)[0]), (later(23), later(1)));
}

#[test]
fn nothing_is_promised_in_later_times_of_a_reservation_nor_behind_the_begin_of_one_that_floats() {
    run(async {
        let cluster = Cluster::with_longest_job("30");
        let from = now();
        let hourly = Interval::of(Time(from + 600), 120);
        reserve(&cluster, "hourly", "n[1-2]", hourly, "HOURLY");
        reserve(
            &cluster,
            "floating",
            "n3",
            Interval::of(Time(from + 1_800), 600),
            "TIME_FLOAT",
        );
        let server = serve(&cluster);
        let client = server.client();
        let place = async |nodes: u32, start: i64, seconds: i64| {
            let offer = Offer::reserve(nodes, seconds).within(start, start + seconds);
            client.post("/agreements", offer.xml()).await.status.is_success()
        };
        // In the third hour: two nodes are the site's, and one lies behind the begin of what floats.
        let third = hourly.start.seconds() + 2 * 3_600;
        assert!(!place(2, third, 60).await, "others have n1, n2 and n3 then");
        assert!(place(1, third, 60).await);
        // Between two times.
        assert!(!place(4, third + 1_000, 600).await, "n3 is not to be had");
        assert!(place(3, third + 1_000, 600).await);
        // In front of what floats.
        assert!(place(1, from + 900, 300).await && place(2, from + 900, 300).await);
        let floating = shown(&cluster.reservation("floating").unwrap());
        assert!(floating.start > Time(from + 1_800), "{floating}");
        server.assert_verified();
    });
}

#[test]
fn a_reservation_with_any_flag_of_a_site_is_read_and_takes_its_nodes() {
    let site = Site::start();
    let later = Interval::of(Time(now() + 3_600), 600);
    // With the nodes that each takes.
    for (flags, more, nodes) in [
        ("MAINT,IGNORE_JOBS", "Nodes=n2", 1),
        ("OVERLAP", "Nodes=n2", 1),
        ("FLEX", "Nodes=n2", 1),
        ("MAGNETIC", "Nodes=n2", 1),
        ("PART_NODES", "Nodes=ALL PartitionName=batch", 4),
        ("REPLACE", "NodeCnt=2", 2),
        ("REPLACE_DOWN", "NodeCnt=2", 2),
        ("PURGE_COMP", "Nodes=n2", 1),
        ("PURGE_COMP=00:01:00,WEEKDAY", "Nodes=n2", 1),
        ("STATIC_ALLOC", "Nodes=n2", 1),
        ("NO_HOLD_JOBS_AFTER_END", "Nodes=n2", 1),
        ("", "Nodes=n2 TRES=cpu=2", 1),
        ("", "NodeCnt=2 CoreCnt=2", 2),
    ] {
        let start = date_time(later.start.seconds());
        let start = format!("StartTime={}", start.trim_end_matches('Z'));
        let flags = format!("Flags={flags}");
        let made = [
            "create",
            "reservation",
            "ReservationName=site",
            &start,
            "Duration=10",
            "Users=root",
        ];
        let mut made = made.to_vec();
        made.extend(more.split(' '));
        if flags != "Flags=" {
            made.push(&flags);
        }
        site.cluster.run("scontrol", &made);
        let report = site.executor.node_states().unwrap();
        let taken = report
            .busy
            .iter()
            .filter(|busy| busy.interval.start == later.start - BEFORE);
        assert_eq!(taken.count(), nodes, "{flags} {more}: {:?}", report.busy);
        site.cluster.run("scontrol", &["delete", "ReservationName=site"]);
    }
    // One without an end.
    let endless = [
        "create",
        "reservation",
        "ReservationName=endless",
        "StartTime=now",
        "Duration=UNLIMITED",
    ];
    site.cluster
        .run("scontrol", &[&endless[..], &["Nodes=n4", "Users=root"]].concat());
    let report = site.executor.node_states().unwrap();
    let ends: Vec<_> = report
        .busy
        .iter()
        .map(|busy| (busy.node, busy.interval.end))
        .collect();
    assert_eq!(ends, [(3, Time::MAX)]);
}
