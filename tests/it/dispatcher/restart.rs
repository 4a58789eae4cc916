//! Work that is lost and run again from its start: the job of before is gone before the next one starts, and each runs once.

use domain::resources::{NodeReport, NodeState, Reporter};
use planner::{Place, SetNodes};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use store::{agreements, executions};

use super::*;

/// A job that writes down when it runs, and whether another one runs then, and goes on until it may end. It holds a lock that
/// is free when nothing of it is left.
const LOGGED: &str = "exec 9> $LOG.held; flock -n 9 || echo twice >> $LOG; echo run >> $LOG; \
    while [ ! -e $LOG.over ]; do sleep 0.05; done; echo done >> $LOG";

/// Where the log of a job is, apart from the folder that each of its times has of its own.
fn log(folder: &JobsFolder) -> PathBuf {
    folder.path().join("log")
}

/// Whether the lock of a job is held.
fn is_held(folder: &JobsFolder) -> bool {
    let file = fs::File::open(folder.path().join("log.held")).unwrap();
    matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock))
}

/// Work on one node that is run again when it is lost, with room in its window for that.
fn work(folder: &JobsFolder) -> Request {
    let text = LOGGED.replace("$LOG", &log(folder).display().to_string());
    let proposal = Service::proposal(1, &text, 0, 300);
    Request {
        template: RESTARTING.into(),
        deadline: proposal.deadline.map(|deadline| deadline + 600),
        ..proposal
    }
}

/// The lines of a log, once there are `count` of them.
async fn lines(folder: &JobsFolder, count: usize) -> Vec<String> {
    let asked = Instant::now();
    loop {
        let text = fs::read_to_string(log(folder)).unwrap_or_default();
        let lines: Vec<_> = text.lines().map(ToOwned::to_owned).collect();
        if lines.len() >= count {
            return lines;
        }
        assert!(asked.elapsed() < deadline_here(PATIENCE), "{lines:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn fail(service: &Service, node: usize) {
    let mut states = vec![NodeState::Up; CAPACITY as usize];
    states[node] = NodeState::Down;
    let report = NodeReport {
        states,
        ..NodeReport::default()
    };
    let repaired = service
        .planner
        .send(SetNodes {
            resource: "local".into(),
            by: Reporter::Operator,
            report,
        })
        .await
        .unwrap();
    assert_eq!((repaired.lost, repaired.moved), (0, 1));
}

/// Lets the work end, and checks the remains of both of its times.
async fn over(service: &Service, folder: &JobsFolder, id: Uuid) {
    fs::write(folder.path().join("log.over"), "").unwrap();
    let over = service.over(id).await;
    assert_eq!(over.outcome, Some(RunOutcome::Completed));
    assert_eq!(over.job.unwrap().restarts, 1);
    let executions = executions::executions_of_agreement(&service.store, id)
        .await
        .unwrap();
    let outcomes: Vec<_> = executions.iter().map(|execution| execution.outcome).collect();
    assert_eq!(outcomes, [RunOutcome::Lost, RunOutcome::Completed]);
    let events = agreements::events_of_agreement(&service.store, id).await.unwrap();
    assert!(
        events
            .iter()
            .any(|event| event.detail.contains("it is run again from its start")),
        "{events:?}"
    );
    let aside = folder.path().join("jobs").join(format!("{id}.0"));
    assert!(aside.join("spec.json").exists(), "its first time is kept apart");
    let findings = service.store.verify().await.unwrap();
    assert!(findings.is_empty(), "{findings:#?}");
    let folders = JobFolders::new(folder.path(), None).unwrap();
    assert_eq!(folders.sweep(&service.store, i64::MAX).await.unwrap(), 2);
}

/// A service and the agreement with the work that it has begun.
async fn at_work(folder: &Arc<JobsFolder>) -> (Service, Agreement) {
    let service = Service::start(folder).await;
    let one = service.planner.send(Place(work(folder))).await.unwrap().agreement;
    service.started(one.id).await;
    lines(folder, 1).await;
    (service, one)
}

#[test]
fn work_whose_node_is_lost_is_stopped_and_run_again_on_another() {
    block_on(async {
        let folder = folder();
        let (service, one) = at_work(&folder).await;
        assert!(is_held(&folder), "it runs");
        fail(&service, 0).await;
        assert_eq!(lines(&folder, 2).await, ["run", "run"]);
        over(&service, &folder, one.id).await;
        assert_eq!(lines(&folder, 3).await, ["run", "run", "done"]);
        service.stop().await;
    });
}

#[test]
fn a_service_that_is_stopped_after_the_loss_stops_the_job_when_it_is_back_and_starts_the_next_once() {
    block_on(async {
        let folder = folder();
        let (service, one) = at_work(&folder).await;
        service.stop().await;
        // One that decides and does nothing, as if it were killed right then.
        let service = Service::start_planner(&folder, &["local"]).await;
        fail(&service, 0).await;
        service.stop().await;
        assert_eq!(lines(&folder, 1).await, ["run"]);
        assert!(is_held(&folder), "it was not stopped yet");
        let service = Service::start(&folder).await;
        assert_eq!(lines(&folder, 2).await, ["run", "run"]);
        over(&service, &folder, one.id).await;
        assert_eq!(lines(&folder, 3).await, ["run", "run", "done"]);
        service.stop().await;
    });
}

#[test]
fn work_that_is_gone_without_a_trace_is_run_again() {
    block_on(async {
        let folder = folder();
        let (service, one) = at_work(&folder).await;
        let records = folder.path().join("jobs").join(one.id.to_string());
        let pid = |name: &str, path: &[&str]| {
            let text = fs::read(records.join(name)).unwrap();
            let mut value: serde_json::Value = serde_json::from_slice(&text).unwrap();
            for key in path {
                value = value[*key].take();
            }
            Pid::from_raw(value.as_i64().unwrap().try_into().unwrap()).unwrap()
        };
        // As when the machine stops: its end is not seen.
        kill_process(pid("lock", &["pid"]), Signal::KILL).unwrap();
        kill_process_group(pid("claim.json", &["process", "pid"]), Signal::KILL).unwrap();
        assert_eq!(lines(&folder, 2).await, ["run", "run"]);
        over(&service, &folder, one.id).await;
        service.stop().await;
    });
}

#[test]
fn a_job_of_an_application_that_is_no_longer_offered_is_lost_and_not_tried_again() {
    block_on(async {
        let service = Service::start_with(&folder(), Catalogue::default()).await;
        let proposal = Service::proposal(1, "touch ran", 0, 300);
        let proposal = Request {
            template: RESTARTING.into(),
            deadline: proposal.deadline.map(|deadline| deadline + 3_600),
            ..proposal
        };
        let agreement = service.planner.send(Place(proposal)).await.unwrap().agreement;
        let over = service.over(agreement.id).await;
        assert_eq!((over.outcome, over.restarts()), (Some(RunOutcome::Lost), 0));
        let events = agreements::events_of_agreement(&service.store, agreement.id)
            .await
            .unwrap();
        let why = "its work cannot go on: its application is no longer offered";
        assert!(events.iter().any(|event| event.detail == why), "{events:?}");
        service.stop().await;
    });
}
