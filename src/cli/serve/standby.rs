//! A process that stands by: it answers what the store knows, passes on all else, runs the jobs of its machine for the leader, and waits
//! until it may lead itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::resources::Resource;
use execution::dispatcher::Dispatcher;
use execution::files::inputs::InputFiles;
use execution::lead::Lead;
use learning::LearningPace;
use store::leader::{Candidate, LeaderLook};
use store::trail_end::follow_trail_end;
use store::{Lease, Store, resources};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use writer::Planner;

use super::announcement::announce_service;
use super::folders::start_keeping_folders;
use super::process::Process;
use super::read_config::ReadConfig;
use super::tasks::start_learning_task;
use super::{SOON, executors, store_check};
use crate::cli::Failure;
use api::{LeaderProxy, Stage};
use replicas::{Replicas, answer_questions};
use service::Service;

/// How often it is looked whether the lead is free.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a process that was just started waits for a leader to be seen before it stands by: it may be about to lead itself.
const LEADER_SEEN: Duration = Duration::from_secs(1);
/// How long it counts as led by the same process while the lead cannot be looked at.
const BLIND_MAX: Duration = Duration::from_secs(3);
/// How often the resources are read anew.
const RESOURCES_EVERY: Duration = Duration::from_secs(1);

/// The work of a process that stands by.
struct StandbyTasks {
    stop: CancellationToken,
    dispatched: JoinHandle<()>,
}

impl Process {
    /// The lease, once it is free for this process, which stands by until then; none where it is told to stop before.
    pub(super) async fn await_lead_on_standby(&mut self) -> Result<Option<Lease>, Failure> {
        let (Some(replicas), Some(mut candidate)) = (self.replicas.clone(), Candidate::of(&self.store))
        else {
            return Ok(Some(self.store.acquire_lease().await?));
        };
        let mut standing = None;
        let mut first_look: Option<Instant> = None;
        // Several looks a second fail in the same way: the log has the first one.
        let mut blind_since: Option<Instant> = None;
        let told = self.told.clone();
        let waited = async {
            loop {
                match candidate.look().await {
                    Ok(LeaderLook::Leads(lease)) => return Ok(lease),
                    Ok(LeaderLook::Follows(leader)) => {
                        if blind_since.take().is_some() {
                            info!(leader, "the lead can be looked at again");
                        }
                        if let Err(why) = replicas.note_leader(leader.as_deref()).await {
                            warn!(%why, "the leader's address cannot be read now");
                        }
                        let is_new = first_look.get_or_insert_with(Instant::now).elapsed() < LEADER_SEEN;
                        let may_lead_soon = is_new && leader.is_none();
                        if standing.is_none() && !may_lead_soon {
                            standing = Some(self.begin_standby(&replicas).await?);
                            let checked = store_check::check_store_while_standing_by(
                                self.store.clone(),
                                self.clock.clone(),
                            );
                            self.checked = Some(checked);
                            info!(leader, "another process leads: this one stands by");
                            announce_service(self.front.scheme, self.address, &self.key, &self.options.store);
                            self.manager.ready();
                        }
                    }
                    // No later look finds anything else.
                    Err(why @ (store::Error::Damaged(_) | store::Error::Corrupt(_))) => {
                        return Err(why.into());
                    }
                    Err(why) => {
                        if blind_since.is_none() {
                            warn!(%why, "the lead cannot be looked at now; trying on");
                        }
                        // The leader may have its session still.
                        if blind_since.get_or_insert_with(Instant::now).elapsed() > BLIND_MAX {
                            let _ = replicas.note_leader(None).await;
                        }
                    }
                }
                self.manager.alive();
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    Some(()) = self.hangup.recv() => self.read_again_on_standby().await,
                }
            }
        };
        let lease: Option<Result<Lease, Failure>> = tokio::select! {
            lease = waited => Some(lease),
            () = told.cancelled() => None,
        };
        if let Some(StandbyTasks { stop, dispatched }) = standing {
            if let Some(Ok(_)) = lease {
                // Requests wait for this process from now on.
                let _ = replicas.note_leader(None).await;
            }
            // Its lanes and those of a leader would be at the same jobs.
            stop.cancel();
            let _ = dispatched.await;
            self.has_stood_by = true;
            if let Some(Ok(_)) = lease {
                info!("this process leads from now on");
                self.read_again_on_standby().await;
            }
        }
        lease.transpose()
    }

    /// Reads the configuration again: it may have changed since this process was started.
    async fn read_again_on_standby(&mut self) {
        match ReadConfig::from(self.options.store.config.clone(), None).await {
            Ok(mut read) => {
                if let (Some(now), Some(tls)) = (&self.tls, read.tls.take()) {
                    now.send_replace(tls);
                }
                let before = std::mem::replace(&mut self.read, read);
                self.opened.get_or_insert(before.config);
            }
            Err(why) => warn!(%why, "the configuration is as it was when this process was started"),
        }
    }

    /// Answers requests, and runs the jobs of this machine, as one that does not lead.
    async fn begin_standby(&self, replicas: &Replicas) -> Result<StandbyTasks, Failure> {
        let (store, clock, stop) = (self.store.clone(), self.clock.clone(), self.stop.child_token());
        let ReadConfig {
            config,
            settings,
            catalogue,
            templates,
            ..
        } = ReadConfig::from(self.options.store.config.clone(), None).await?;
        let (sender, resources) = watch::channel(resources_for_standby(&store).await?);
        let planner = Planner::of_other_process(settings.negotiation, resources);
        let followed = (replicas.clone(), self.files.clone());
        let (keeper, of_resources) = (self.keeper.until(&stop), store.clone());
        keeper.keep(("resources", SOON), move |stop| {
            follow_resources_on_standby(sender.clone(), followed.clone(), of_resources.clone(), stop)
        });
        let (lead, asked) = Lead::elsewhere(replicas.name());
        let (asks, asked) = (replicas.clone(), Arc::new(Mutex::new(asked)));
        // There may be nothing to ask.
        keeper.keep(("questions", Duration::MAX), move |stop| {
            let (replicas, asked) = (asks.clone(), Arc::clone(&asked));
            async move { answer_questions(replicas, &mut *asked.lock().await, stop).await }
        });
        start_learning_task(
            self.predictions.clone(),
            &config,
            (&store, &clock),
            LearningPace::STANDING_BY,
            &keeper,
        );

        let (catalogue_sender, catalogue) = watch::channel(Arc::new(catalogue));
        let dispatcher = Dispatcher::new(
            planner.clone(),
            self.executors.clone(),
            catalogue.clone(),
            self.files.clone(),
            self.stager.clone(),
            clock.clone(),
        );
        let tasks = keeper.tasks().clone();
        let dispatcher = dispatcher.among(replicas.hosts().clone(), Some(lead), tasks.clone());
        let dispatched = dispatcher.run(stop.clone());
        let dispatched = task::spawn(async move {
            tasks.watch(("dispatcher", SOON), dispatched).await;
            drop(catalogue_sender);
        });
        let hosts = replicas.hosts();
        executors::start_sampling_executors((&planner, hosts), &self.executors, &store, &clock, &keeper);
        let folders = self.folders.clone().of_this_process();
        start_keeping_folders(
            folders,
            (&store, &clock),
            config.execution.folders_kept(),
            &keeper,
        );

        let (files, folders) = (self.files.clone(), self.folders.clone());
        let mut service = Service::new(planner, store, templates, catalogue, clock, files, folders);
        service.predictions = Some(self.predictions.clone());
        service.replicas = Some(replicas.clone());
        service.federation.clone_from(&self.federation);
        let api = self.front.api(service, &config, &self.stop);
        let way = LeaderProxy {
            replicas: replicas.clone(),
            own: self.stage.subscribe(),
        };
        let router = api::router_standing_by(api, portal::portal_pages(), way);
        self.stage.send_replace(Stage::StandingBy(router));
        Ok(StandbyTasks { stop, dispatched })
    }
}

/// The stored resources. All count as in service: jobs of one that is retired may run still.
async fn resources_for_standby(store: &Store) -> Result<Arc<[Resource]>, store::Error> {
    let rows = resources::all_resources(store).await?.into_iter();
    let resources = rows.map(|row| {
        let resource_of_row = Resource::of_row(row)?;
        Ok(Resource {
            closed: false,
            retired: None,
            ..resource_of_row
        })
    });
    resources
        .filter(|resource| resource.as_ref().is_ok_and(is_local))
        .collect()
}

fn is_local(resource: &Resource) -> bool {
    resource.kind == "local"
}

/// Keeps up with the resources, their replicas, and the files of parties, until `stop`.
async fn follow_resources_on_standby(
    sender: watch::Sender<Arc<[Resource]>>,
    (replicas, files): (Replicas, InputFiles),
    store: Store,
    stop: CancellationToken,
) {
    let follow = async {
        loop {
            tokio::time::sleep(RESOURCES_EVERY).await;
            if let Err(why) = files.catch_up().await {
                warn!(%why, "the files of parties cannot be brought now");
            }
            // What was stored meanwhile has to be there when this process leads.
            if let Err(why) = follow_trail_end(&store).await {
                warn!(%why, "the end of the audit trail cannot be followed now");
            }
            let read = async {
                replicas.read_hosts().await?;
                resources_for_standby(&store).await
            };
            match read.await {
                Ok(now) => {
                    task::note_success();
                    sender.send_if_modified(|before| {
                        let changes = **before != *now;
                        if changes {
                            *before = now;
                        }
                        changes
                    });
                }
                Err(why) => warn!(%why, "the resources cannot be read now"),
            }
        }
    };
    stop.run_until_cancelled(follow).await;
}
