//! The name of a reservation that a party's user may submit jobs into, and from when on Slurm knows it.

use domain::agreement::Run;
use execution::slurm::{SlurmExecutor, SlurmSettings, slurm_name_of_run};
use execution::{Executor, PlannedSlot};
use scheduler::Interval;
use uuid::Uuid;

use super::service::{SOON, reserved, script, serve, serve_keys};
use super::{Site, settings, slot};
use crate::support::offers::{Offer, date_time, now};
use crate::support::server::Server;
use crate::support::slurm::Cluster;
use crate::support::{eventually, run};

/// Minutes that the longest job lasts, and seconds before its begin from which on a slot is reserved then.
const LONGEST: &str = "30";
const LEAD: i64 = 30 * 60 + 120;

/// What the command line shows of the use of an agreement.
fn use_of(server: &Server, id: Uuid) -> String {
    let shown = server.run(&["show", &id.to_string()]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let line = shown.lines().find(|line| line.contains("sbatch"));
    line.unwrap_or_else(|| panic!("{shown}")).to_owned()
}

#[test]
fn a_name_that_slurm_does_not_know_yet_is_told_with_the_time_from_which_it_does() {
    run(async {
        let cluster = Cluster::with_longest_job(LONGEST);
        let server = serve(&cluster);
        let client = server.client();
        let start = now() + 7_200;
        let far = Offer::reserve(1, 600).within(start, start + 600);
        let far = client.post("/agreements", far.xml()).await.created();
        let (from, name) = (
            date_time(start - LEAD),
            slurm_name_of_run("cluster", Run::first(far)),
        );
        let shown = client.get_json(&format!("/agreements/{far}")).await;
        assert_eq!(
            (&shown["reservation"], &shown["reservationFrom"]),
            (&name.clone().into(), &from.clone().into()),
            "{shown}"
        );
        assert!(cluster.reservation(&name).is_none());
        let told = use_of(&server, far);
        assert!(
            told.contains(&format!("sbatch --reservation={name} … from {from} on")),
            "{told}"
        );
        // One that Slurm holds has no such time.
        let near = client
            .post("/agreements", Offer::reserve(1, 600).xml())
            .await
            .created();
        reserved(&cluster, near, 1).await;
        let shown = client.get_json(&format!("/agreements/{near}")).await;
        assert!(
            shown["reservation"].is_string() && shown["reservationFrom"].is_null(),
            "{shown}"
        );
        assert!(
            use_of(&server, near).trim_end().ends_with('…'),
            "{}",
            use_of(&server, near)
        );
        server.assert_verified();
    });
}

#[test]
fn a_site_that_allows_it_has_a_reservation_without_a_job_made_at_once() {
    run(async {
        let cluster = Cluster::with_longest_job(LONGEST);
        let server = serve_keys(&cluster, 4, "reserve_at_once = true\n", "");
        let client = server.client();
        let start = now() + 7_200;
        let far = Offer::reserve(1, 600).within(start, start + 600);
        let far = client.post("/agreements", far.xml()).await.created();
        reserved(&cluster, far, 1).await;
        eventually("a name that works", SOON, async || {
            let shown = client.get_json(&format!("/agreements/{far}")).await;
            shown["reservationFrom"].is_null().then_some(())
        })
        .await;
        assert!(
            use_of(&server, far).trim_end().ends_with('…'),
            "{}",
            use_of(&server, far)
        );
        // Its user can submit by now.
        let batch = script(&cluster, "true");
        let reservation = format!("--reservation={}", slurm_name_of_run("cluster", Run::first(far)));
        let user = format!("--uid={}", Cluster::user());
        let mut arguments = vec!["-o/dev/null", "--chdir=/", &reservation, &batch];
        if rustix::process::geteuid().is_root() {
            arguments.insert(0, &user);
        }
        cluster.run("sbatch", &arguments);
        server.assert_verified();
    });
}

#[test]
fn at_once_only_slots_without_a_job_are_reserved() {
    let site = Site::on(Cluster::with_longest_job(LONGEST));
    let settings = SlurmSettings {
        reserve_at_once: true,
        ..settings(&site.cluster)
    };
    let executor = SlurmExecutor::new(settings, site.data.path()).unwrap();
    let (own, ours) = (slot(1, 7_200, 600), slot(1, 7_200, 600));
    let own = PlannedSlot {
        has_job: false,
        ..own
    };
    executor.prepare(&[own.clone(), ours.clone()]).unwrap();
    assert!(site.reservation(&own).is_some());
    assert_eq!(site.reservation(&ours), None, "no job reaches so far");
    // It moves with the plan, and goes with it.
    let moved = PlannedSlot {
        interval: Interval::of(own.interval.start + 900, 600),
        ..own
    };
    executor.prepare(std::slice::from_ref(&moved)).unwrap();
    let start = date_time(moved.interval.start.seconds());
    assert_eq!(
        site.reservation(&moved).unwrap()["StartTime"],
        start.trim_end_matches('Z')
    );
    executor.prepare(&[]).unwrap();
    assert_eq!(site.reservation(&moved), None);
}
