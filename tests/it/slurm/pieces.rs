//! Work that is done in pieces on a cluster: its own job sends the signal to save itself, and another job goes on with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use domain::agreement::{Run, RunOutcome};
use domain::catalogue::CheckpointSignal;
use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use execution::files::job_folders::JobFolders;
use execution::slurm::slurm_name_of_run;
use execution::{Executor, JobSpec, PieceSpec, PlannedSlot, SaveWork};
use scheduler::Interval;
use serde_json::Value;
use uuid::Uuid;

use super::service::{SOON, serve_with, until};
use super::{PATIENCE, Site};
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, now};
use crate::support::poll_until;
use crate::support::run;
use crate::support::server::Server;
use crate::support::slurm::{Cluster, NODES};

/// Steps of the work that counts.
const STEPS: usize = 40;
/// Seconds of each of its two pieces, and of these the last ones in which it saves itself. A busy machine may stand still for most
/// of those before and of those after the signal.
const PIECE: i64 = 40;
const GRACE: i64 = 10;

/// Seconds of a piece of which the end is not waited for.
pub(super) const LONG: i64 = 600;

/// A piece that may last `seconds` seconds from now on, and gets the signal to save its work after `told` seconds.
pub(super) fn piece(
    site: &Site,
    one_job: Option<&JobSpec>,
    script: &str,
    signal: CheckpointSignal,
    (told, seconds): (i64, i64),
) -> JobSpec {
    let job = site.job(script, seconds);
    let number = one_job.map_or(1, |each| each.run().slot + 1);
    let save = SaveWork {
        signal,
        grace: (seconds - told) * MICROS_PER_SECOND,
    };
    let job = JobSpec {
        agreement: one_job.map_or(job.agreement, |each| each.agreement),
        output_limit: 1_000,
        piece: Some(PieceSpec {
            number,
            of: 3,
            save: (number < 3).then_some(save),
        }),
        ..job
    };
    prepare(site, &job);
    job
}

/// Has the reservation of a job made, and of no other.
pub(super) fn prepare(site: &Site, job: &JobSpec) {
    let slot = PlannedSlot {
        run: job.run(),
        party: job.party.clone(),
        nodes: job.nodes,
        interval: Interval::new(
            Clock::system().now(),
            scheduler::Time(job.slot_end / MICROS_PER_SECOND),
        ),
        given: Vec::new(),
        begun: true,
        is_awaited: false,
        replaces: None,
        has_job: true,
        application: job.application.clone(),
    };
    let prepared = || site.executor.prepare(std::slice::from_ref(&slot)).is_ok();
    assert!(poll_until(PATIENCE, prepared));
}

/// The outcome and the end of a job.
pub(super) fn end_of(site: &Site, job: &JobSpec) -> (RunOutcome, Micros) {
    let mut end = None;
    poll_until(PATIENCE, || {
        end = match site.executor.poll(job.run()) {
            Ok(execution::JobStatus::Ended(ended)) => Some(ended),
            _ => None,
        };
        end.is_some()
    });
    let end = end.unwrap_or_else(|| panic!("not over; Slurm has {:?}", site.cluster.jobs()));
    (end.outcome, end.ended)
}

#[test]
fn each_piece_is_told_to_save_its_work_by_its_own_job_and_goes_on_in_the_same_folder() {
    let mut site = Site::start();
    let saves = "trap 'echo saved $BESPEAK_PIECE of $BESPEAK_PIECES; echo $BESPEAK_PIECE >state; exit 0' INT\n\
                 cat state; while :; do sleep 0.1; done";
    let first = piece(&site, None, saves, CheckpointSignal::Int, (27, LONG));
    site.executor.start(&first).unwrap();
    // It gets the signal while neither service nor controller is there. The controller has written the job down.
    let running = || site.cluster.jobs().iter().any(|[_, _, state]| state == "RUNNING");
    assert!(poll_until(PATIENCE, running));
    let own = slurm_name_of_run("cluster", Run::first(first.agreement));
    let written = || {
        let state = fs::read(site.cluster.folder().join("state/job_state")).unwrap_or_default();
        state.windows(own.len()).any(|bytes| bytes == own.as_bytes())
    };
    assert!(poll_until(PATIENCE, written));
    site.cluster.kill_controller();
    let told_at = first.slot_end - (LONG - 27) * MICROS_PER_SECOND;
    let state = site.shared_folder(first.agreement).join("work/state");
    assert!(poll_until(PATIENCE, || state.exists()), "it is told");
    assert!(Clock::system().micros() >= told_at, "no earlier than that");
    site.cluster.start_controller();
    site.restart();
    let (outcome, ended) = end_of(&site, &first);
    assert_eq!(outcome, RunOutcome::Checkpointed);
    assert!((told_at..first.slot_end).contains(&ended), "{ended} of {first:?}");

    let second = piece(&site, Some(&first), saves, CheckpointSignal::Int, (20, LONG));
    site.executor.start(&second).unwrap();
    assert_eq!(end_of(&site, &second).0, RunOutcome::Checkpointed);
    let last = piece(
        &site,
        Some(&second),
        "cat state; echo done",
        CheckpointSignal::Int,
        (LONG - GRACE, LONG),
    );
    site.executor.start(&last).unwrap();
    site.executor.start(&last).unwrap();
    assert_eq!(end_of(&site, &last).0, RunOutcome::Completed);
    assert_eq!(
        site.output(first.agreement, "stdout"),
        "saved 1 of 3\n1\nsaved 2 of 3\n2\ndone\n",
        "of all pieces, in the order in which they ran"
    );
    let mut names: Vec<String> = site.cluster.jobs().into_iter().map(|[_, name, _]| name).collect();
    names.sort();
    assert_eq!(
        names,
        [own.clone(), format!("{own}.2"), format!("{own}.3")],
        "one job each"
    );
    assert!(
        site.executor.can_resume(&last).unwrap(),
        "what was saved is there"
    );
    // Removed with the service's own.
    let shared = site.cluster.folder().join("work");
    let left = || fs::read_dir(&shared).unwrap().count();
    assert_eq!(left(), 3);
    JobFolders::new(site.data.path(), None)
        .unwrap()
        .remove(first.agreement)
        .unwrap();
    assert_eq!(left(), 0);
    let away = site.executor.can_resume(&last).unwrap_err().to_string();
    assert!(away.contains("is its disk there?"), "{away}");
    fs::create_dir(shared.join("of-another-job")).unwrap();
    assert!(!site.executor.can_resume(&last).unwrap());
    assert!(
        site.executor.can_resume(&first).unwrap(),
        "it begins with nothing"
    );
}

#[test]
fn a_piece_that_saves_nothing_is_killed_failed_or_over() {
    let site = Site::start();
    let deaf = piece(
        &site,
        None,
        "trap '' TERM; while :; do sleep 0.1; done",
        CheckpointSignal::Term,
        (13, 20),
    );
    site.executor.start(&deaf).unwrap();
    let (outcome, ended) = end_of(&site, &deaf);
    assert_eq!(outcome, RunOutcome::Killed);
    assert!(ended >= deaf.slot_end, "it had all of its time");
    let fails = "trap 'exit 7' HUP; while :; do sleep 0.1; done";
    let fails = piece(&site, None, fails, CheckpointSignal::Hup, (20, LONG));
    site.executor.start(&fails).unwrap();
    assert_eq!(end_of(&site, &fails).0, RunOutcome::Failed { exit: 7 });
    let quick = piece(
        &site,
        None,
        "exit 0",
        CheckpointSignal::Usr1,
        (LONG - GRACE, LONG),
    );
    site.executor.start(&quick).unwrap();
    assert_eq!(
        end_of(&site, &quick).0,
        RunOutcome::Completed,
        "it had done all of its work"
    );
    let stopped = "trap 'exit 0' USR2; while :; do sleep 0.1; done";
    let stopped = piece(&site, None, stopped, CheckpointSignal::Usr2, (LONG - GRACE, LONG));
    site.executor.start(&stopped).unwrap();
    site.until_started(stopped.agreement);
    site.executor.stop(stopped.run()).unwrap();
    assert_eq!(end_of(&site, &stopped).0, RunOutcome::Terminated);
}

#[test]
fn a_service_that_is_killed_in_a_piece_and_between_two_has_every_step_done_once() {
    run(async {
        let cluster = Cluster::start();
        let mut server = counting_service(&cluster, "");
        let id = cut_in_two(&server.client(), 20).await;
        let planned = show(&server.client(), id).await;
        assert_eq!(planned["pieces"].as_array().map(Vec::len), Some(2), "{planned}");
        eventually("the first steps", SOON, async || {
            (steps(&cluster).len() > 2).then_some(())
        })
        .await;
        server.kill9();
        // It gets the signal while there is no service.
        let saved = cluster.folder().join(format!("work/{id}/work/saved"));
        eventually("it to save its work", SOON, async || saved.exists().then_some(())).await;
        server.restart();
        between(&server.client(), id).await;
        server.kill9();
        server.assert_verified();
        let name = slurm_name_of_run("cluster", Run::first(id));
        assert!(cluster.reservation(&format!("{name}.2")).is_some());
        server.restart();
        let over = until(&server.client(), &cluster, id, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        assert_every_step_once(&cluster);
        let mut names: Vec<String> = cluster.jobs().into_iter().map(|[_, name, _]| name).collect();
        names.sort();
        assert_eq!(names, [name.clone(), format!("{name}.2")], "one job each");
        let client = server.client();
        let output = client.get(&format!("/agreements/{id}/files/stdout")).await.body;
        let lines: Vec<&str> = output.lines().collect();
        assert!(lines.len() == 2 && lines[0] == "piece 1 of 2 from 0", "{output}");
        assert!(lines[1].starts_with("piece 2 of 2 from "), "{output}");
        server.assert_verified();
    });
}

#[test]
fn nodes_are_given_back_between_two_pieces_and_a_node_that_fails_before_the_second_is_not_among_its() {
    run(async {
        let mut cluster = Cluster::start();
        let server = counting_service(&cluster, "");
        let client = server.client();
        let id = cut_in_two(&client, 40).await;
        between(&client, id).await;
        let name = slurm_name_of_run("cluster", Run::first(id));
        eventually("the first piece's nodes to be free", SOON, async || {
            cluster.reservation(&name).is_none().then_some(())
        })
        .await;
        let second = format!("{name}.2");
        let node = cluster.reservation(&second).expect("it is held ahead")["Nodes"].clone();
        let node = NODES.into_iter().find(|each| *each == node).expect("a node");
        cluster.cut_power(node);
        let nodename = format!("nodename={node}");
        cluster.run("scontrol", &["update", &nodename, "state=down", "reason=test"]);
        eventually("another node", SOON, async || {
            let held = cluster.reservation(&second)?;
            (held["Nodes"] != node).then_some(())
        })
        .await;
        let over = until(&client, &cluster, id, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        assert_every_step_once(&cluster);
        server.assert_verified();
    });
}

#[test]
fn work_that_is_not_over_is_told_late_to_save_itself_and_its_rest_goes_on_in_another_slot() {
    run(async {
        let cluster = Cluster::start();
        let server = counting_service(&cluster, "[scheduling]\noverrun_percent = 100\n");
        let client = server.client();
        let start = now() + 3;
        let work = Offer {
            run: Some(("count", vec![STEPS.to_string()])),
            ..Offer::reserve(1, 60)
        };
        let work = work.within(start, start + 300).xml();
        let id = client.post("/agreements", work).await.created();
        let end = show(&client, id).await["plannedEnd"].clone();
        let end: jiff::Timestamp = end.as_str().expect("an instant").parse().expect("an instant");
        let end = end.as_second();
        let others = Offer::reserve(4, 15).within(end, end + 15).xml();
        client.post("/agreements", others).await.created();
        between(&client, id).await;
        let saved = cluster.folder().join(format!("work/{id}/work/saved"));
        assert!(saved.exists());
        let over = until(&client, &cluster, id, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        assert_every_step_once(&cluster);
        let name = slurm_name_of_run("cluster", Run::first(id));
        let mut names: Vec<String> = cluster.jobs().into_iter().map(|[_, name, _]| name).collect();
        names.sort();
        assert_eq!(names, [name.clone(), format!("{name}.2")], "one job each");
        server.assert_verified();
    });
}

/// A service on a cluster with an application that counts: in its first slot as far as to the half of its steps.
fn counting_service(cluster: &Cluster, more: &str) -> Server {
    let folder = cluster.folder().join("programs");
    fs::create_dir(&folder).expect("a folder can be made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("it can be opened");
    let count = program(
        &folder,
        &format!(
            "done=0; [ \"$2\" = --resume ] && done=$(cat saved)\n\
             echo \"piece $BESPEAK_PIECE of $BESPEAK_PIECES from $done\"\n\
             trap 'stop=1' USR1\n\
             while [ \"$done\" -lt \"$1\" ]; do\n\
             if [ -n \"$stop\" ]; then echo \"$done\" >saved; exit 0; fi\n\
             if [ \"$2\" = --resume ] || [ \"$done\" -lt $(($1 / 2)) ]; then\n\
             done=$((done + 1)); echo \"$done\" >>'{}/steps'\n\
             fi\n\
             sleep 0.05\ndone\n",
            folder.display()
        ),
    );
    serve_with(
        cluster,
        &format!(
            "[[application]]\nname = \"count\"\nprogram = \"{count}\"\n\
             [[application.argument]]\nname = \"steps\"\ntype = \"integer\"\nmin = 1\nmax = 1000\n\
             [application.checkpoint]\nsignal = \"USR1\"\ngrace_seconds = {GRACE}\nresume = [\"--resume\"]\n{more}"
        ),
    )
}

/// A script for the users of the cluster.
fn program(folder: &Path, script: &str) -> String {
    let path = folder.join("count");
    fs::write(&path, format!("#!/bin/sh\n{script}")).expect("a script can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
    path.display().to_string()
}

/// Has work on one node planned around a time in which all are taken.
async fn cut_in_two(client: &Client, taken: i64) -> Uuid {
    let start = now() + 3;
    let (from, to) = (start + PIECE, start + PIECE + taken);
    let others = Offer::reserve(4, taken).within(from, to).xml();
    client.post("/agreements", others).await.created();
    let work = Offer {
        run: Some(("count", vec![STEPS.to_string()])),
        ..Offer::reserve(1, 2 * PIECE)
    };
    let scheduling = "<wsag:ServiceDescriptionTerm wsag:Name=\"SCHEDULING\" wsag:ServiceName=\"COMPUTE\">\
         <bsp:Scheduling xmlns:bsp=\"urn:bespeak:terms:1\"><bsp:Preemption><bsp:Pieces>2</bsp:Pieces>\
         <bsp:Interval>0.25</bsp:Interval><bsp:Independent>false</bsp:Independent></bsp:Preemption>\
         </bsp:Scheduling></wsag:ServiceDescriptionTerm><wsag:GuaranteeTerm";
    let work = work.within(start, start + 180).xml();
    let work = work.replacen("<wsag:GuaranteeTerm", scheduling, 1);
    client.post("/agreements", work).await.created()
}

async fn show(client: &Client, id: Uuid) -> Value {
    client.get_json(&format!("/agreements/{id}")).await
}

/// Waits until the first piece is over.
async fn between(client: &Client, id: Uuid) {
    eventually("the first piece to be over", SOON, async || {
        (show(client, id).await["serviceState"] == "Idle").then_some(())
    })
    .await;
}

/// The steps counted so far.
fn steps(cluster: &Cluster) -> Vec<String> {
    let steps = fs::read_to_string(cluster.folder().join("programs/steps")).unwrap_or_default();
    steps.lines().map(str::to_owned).collect()
}

fn assert_every_step_once(cluster: &Cluster) {
    let expected: Vec<String> = (1..=STEPS).map(|step| step.to_string()).collect();
    assert_eq!(steps(cluster), expected);
}
