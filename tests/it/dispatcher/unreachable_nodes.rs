//! A cluster with nodes that look down while they, or the way to them, are only out of sight.

use domain::agreement::{JobEnd, Run};
use domain::resources::{NodeReport, NodeState};
use store::nodes;

use super::*;
use crate::support::{eventually, run};

/// Nodes of this machine, reported as a cluster would report them in an outage.
struct Cluster {
    local: LocalExecutor,
    sight: Arc<Sight>,
}

#[derive(Default)]
struct Sight {
    /// How a job stands is not known.
    no_jobs: AtomicBool,
    /// How nodes stand is not known.
    no_nodes: AtomicBool,
    /// All nodes look down.
    all_down: AtomicBool,
    /// How often it was asked for the states of nodes, without an answer.
    asked_in_vain: AtomicUsize,
}

fn unknown() -> ExecutionError {
    ExecutionError::System {
        doing: "ask",
        path: "controller".into(),
        source: std::io::Error::other("it does not answer"),
    }
}

impl Executor for Cluster {
    fn start(&self, job: &JobSpec) -> Result<(), ExecutionError> {
        self.local.start(job)
    }

    fn poll(&self, job: Run) -> Result<JobStatus, ExecutionError> {
        if self.sight.no_jobs.load(Ordering::SeqCst) {
            return Err(unknown());
        }
        self.local.poll(job)
    }

    fn recorded_job_end(&self, job: Run) -> Result<Option<JobEnd>, ExecutionError> {
        match self.local.poll(job)? {
            JobStatus::Ended(end) => Ok(Some(end)),
            JobStatus::NotStarted | JobStatus::Running { .. } => Ok(None),
        }
    }

    fn stop(&self, job: Run) -> Result<(), ExecutionError> {
        self.local.stop(job)
    }

    fn node_states(&self) -> Result<NodeReport, ExecutionError> {
        if self.sight.no_nodes.load(Ordering::SeqCst) {
            self.sight.asked_in_vain.fetch_add(1, Ordering::SeqCst);
            return Err(unknown());
        }
        let all_down = self.sight.all_down.load(Ordering::SeqCst);
        let state = if all_down { NodeState::Down } else { NodeState::Up };
        Ok(NodeReport {
            states: vec![state; CAPACITY as usize],
            ..NodeReport::default()
        })
    }

    fn is_cluster(&self) -> bool {
        true
    }
}

/// A service with such a cluster, and an agreement with a job that runs there until [`over`] exists.
async fn at_work(folder: &Arc<JobsFolder>) -> (Service, Arc<Sight>, Agreement) {
    let sight = Arc::new(Sight::default());
    let cluster = Cluster {
        local: executor(folder.path()),
        sight: sight.clone(),
    };
    let executors = vec![("local".to_owned(), SharedExecutor::new(cluster))];
    let service = Service::start_on(folder, catalogue(folder.path()).unwrap(), executors).await;
    let text = format!("while [ ! -e {} ]; do sleep 0.05; done", over(folder).display());
    let one = service.place(&text, 0, 3_600).await;
    service.started(one.id).await;
    (service, sight, one)
}

/// The file that ends the job.
fn over(folder: &JobsFolder) -> PathBuf {
    folder.path().join("over")
}

#[test]
fn a_job_that_has_recorded_its_end_is_not_lost_with_its_node() {
    run(async {
        let folder = folder();
        let (service, sight, one) = at_work(&folder).await;
        sight.no_jobs.store(true, Ordering::SeqCst);
        fs::write(over(&folder), "").unwrap();
        let job = executor(folder.path());
        eventually("the record of the end", PATIENCE, async || {
            matches!(job.poll(Run::first(one.id)), Ok(JobStatus::Ended(_))).then_some(())
        })
        .await;
        sight.all_down.store(true, Ordering::SeqCst);
        let ended = service.over(one.id).await;
        assert_eq!(ended.outcome, Some(RunOutcome::Completed), "{ended:?}");
        service.stop().await;
    });
}

#[test]
fn a_node_that_is_down_after_an_outage_keeps_its_job_for_a_while() {
    run(async {
        let folder = folder();
        let (service, sight, one) = at_work(&folder).await;
        sight.no_nodes.store(true, Ordering::SeqCst);
        service
            .until(one.id, "out of sight", |_| {
                sight.asked_in_vain.load(Ordering::SeqCst) > 0
            })
            .await;
        sight.all_down.store(true, Ordering::SeqCst);
        sight.no_nodes.store(false, Ordering::SeqCst);
        let states = eventually("a word about the nodes", PATIENCE, async || {
            let states = nodes::node_states(&service.store).await.unwrap();
            (!states.is_empty()).then_some(states)
        })
        .await;
        assert!(states.iter().all(|state| state.state == "drained"), "{states:?}");
        fs::write(over(&folder), "").unwrap();
        let ended = service.over(one.id).await;
        assert_eq!(ended.outcome, Some(RunOutcome::Completed), "{ended:?}");
        service.stop().await;
    });
}
