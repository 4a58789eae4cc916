//! The task that owns the plan. It takes the waiting commands from the queue, decides them, has them stored in one
//! transaction, and only then answers. While one batch is being stored the next one is decided.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use domain::change::{Change, IDEMPOTENCY_KEPT};
use domain::clock::{Clock, second_of};
use planner::{Decider, IMPOSSIBLE, RememberedAnswers, Settings, State};
use scheduler::{Seconds, Time};
use store::{Lease, Store, free_space, idempotency};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};
use uuid::Uuid;

use crate::batches::{DecidedBatch, DeferredAnswer, DoubtfulBatches, StoringBatch};
use crate::command::{CommandStep, QueuedCommand};
use crate::error::StartError;
use crate::signals::Signals;
use crate::stored_plan::read_plan;

/// Commands decided in one transaction: enough to spread one sync to disk over many clients, few enough that the first
/// of them does not wait for long.
const BATCH_MAX: usize = 128;

/// Seconds after which a slice of settled moves and improvements goes between two batches although commands wait: so free time is used
/// under any load.
const SLICE_EVERY: Seconds = 1;
/// Seconds between two times at which old idempotency keys are forgotten.
const FORGET_EVERY: Seconds = 3_600;

/// How long to wait before the store is asked again after a failure, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// For how long commands, and the answers of a batch of which it is not known whether it is stored, wait for the plan to
/// be read anew: a shorter interruption passes unnoticed.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether the lease still holds.
const WATCH_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Writer {
    settings: Settings,
    plan: State,
    store: Store,
    lease: Lease,
    clock: Clock,
    signals: Signals,
    queue: mpsc::Receiver<QueuedCommand>,
    /// The batch on its way to the store, and the batch decided on top of it since.
    storing: Option<StoringBatch>,
    decided: DecidedBatch,
    /// There from when the store fails to take a batch until the plan has been read anew.
    doubt: Option<DoubtfulBatches>,
    /// Commands that have waited for their clusters and are to be decided again.
    again: Vec<QueuedCommand>,
    /// The commands that wait for their clusters, by the agreements that they would make.
    later: BTreeMap<Uuid, QueuedCommand>,
    /// When a slice of improvements was last made.
    improved: Time,
    /// When old idempotency keys were last forgotten.
    forgotten: Time,
}

impl Writer {
    pub(super) fn new(
        settings: Settings,
        plan: State,
        store: Store,
        lease: Lease,
        clock: Clock,
        signals: Signals,
        queue: mpsc::Receiver<QueuedCommand>,
    ) -> Self {
        Self {
            settings,
            plan,
            store,
            lease,
            clock,
            signals,
            queue,
            storing: None,
            decided: DecidedBatch::default(),
            doubt: None,
            again: Vec::new(),
            later: BTreeMap::new(),
            improved: Time::MIN,
            forgotten: Time::MIN,
        }
    }

    /// Runs until `stop` is cancelled and the queue is empty, or until it may decide no longer.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut watch = tokio::time::interval(WATCH_EVERY);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let goes_on = tokio::select! {
                biased;
                _ = watch.tick() => {
                    // A command may have waited for its cluster for too long.
                    self.keep_lease(&stop).await
                        && (!self.plan.has_waiting_commands() || self.decide(Vec::new(), &stop).await)
                }
                stored = StoringBatch::end(&mut self.storing) => self.finish_storing(stored, &stop).await,
                () = std::future::ready(()), if !self.again.is_empty() && self.decided.commands < BATCH_MAX => {
                    let commands = std::mem::take(&mut self.again);
                    self.decide(commands, &stop).await
                }
                () = std::future::ready(()), if self.must_improve() => self.decide(Vec::new(), &stop).await,
                command = self.queue.recv(), if self.decided.commands < BATCH_MAX => match command {
                    Some(first) => {
                        let commands = self.commands_of_next_batch(first);
                        self.decide(commands, &stop).await
                    }
                    None => break,
                },
                () = stop.cancelled(), if !self.queue.is_closed() => {
                    self.queue.close();
                    true
                }
                // The tasks that were answered run first. Without this the runtime keeps them behind this task, until no slice is left.
                () = tokio::task::yield_now(), if self.storing.is_none() && self.may_improve() => {
                    self.decide(Vec::new(), &stop).await
                }
            };
            if !goes_on {
                return self.give_way(&stop);
            }
        }
        if !self.settle(&stop).await {
            self.give_way(&stop);
        }
    }

    /// Stops everything: another process decides, or the service stops anyway.
    fn give_way(&self, stop: &CancellationToken) {
        self.signals.ready.send_replace(false);
        if !stop.is_cancelled() {
            error!("this process may not decide any more; another one holds the lease");
        }
        stop.cancel();
    }

    /// Looks whether the lease still holds, and takes it again where its session has ended. False when another process
    /// has taken over, or the service stops meanwhile.
    async fn keep_lease(&mut self, stop: &CancellationToken) -> bool {
        match self.store.check_lease(&mut self.lease).await {
            Ok(()) => true,
            Err(store::Error::LeaseLost) => false,
            Err(why) => {
                error!(error = %why, "the lease cannot be confirmed; taking it again");
                // A plan that is read while a batch is on its way may lack it.
                if !self.settle(stop).await {
                    return false;
                }
                let is_taken = self.reload(stop).await.is_some();
                self.signals.publish_next_due(&self.plan);
                is_taken
            }
        }
    }

    /// A command and the ones behind it in the queue, up to the size of a batch.
    fn commands_of_next_batch(&mut self, first: QueuedCommand) -> Vec<QueuedCommand> {
        let mut commands = vec![first];
        while self.decided.commands + commands.len() < BATCH_MAX
            && let Ok(next) = self.queue.try_recv()
        {
            commands.push(next);
        }
        commands
    }

    /// Decides commands; without any it settles some of the recorded moves, and makes a slice of improvements. Once the stored data have
    /// a fault only questions are queued, and nothing is decided beside commands. False when the lease is lost.
    async fn decide(&mut self, commands: Vec<QueuedCommand>, stop: &CancellationToken) -> bool {
        let Ok(remembered) = self.remembered_requests(&commands).await else {
            // Their answers are dropped with them, which says that nothing was decided.
            self.plan.forget_dropped_reservations(self.clock.now());
            return true;
        };
        let now = self.clock.micros();
        self.plan.advance(second_of(now));
        let is_trusted = self.is_trusted();
        let DecidedBatch {
            batch,
            answers,
            decisions,
            ..
        } = &mut self.decided;
        let mut decider = Decider::new(
            &self.settings,
            &mut self.plan,
            now,
            Uuid::now_v7,
            batch,
            remembered,
        );
        if is_trusted {
            decider.make_due_decisions();
        }
        let many = commands.len();
        if is_trusted && commands.is_empty() {
            self.improved = second_of(now);
            decider.settle_some_moves();
            decider.move_some_up();
        }
        let mut times = Vec::with_capacity(many);
        for command in commands {
            // Nothing more is decided on a plan that cannot be right.
            if decider.has_found_fault() {
                break;
            }
            let (since, begun) = (command.waits_since, std::time::Instant::now());
            match command.decide(&mut decider, decisions) {
                CommandStep::Decided(answer) => answers.push(answer),
                CommandStep::Waits(id, command) => {
                    self.later.insert(id, command);
                }
            }
            let waited = begun.duration_since(since);
            times.push((waited.as_secs_f64(), begun.elapsed().as_secs_f64()));
        }
        self.signals.measure(|signal| signal.took(&times));
        let decidable = decider.take_decidable_commands().into_iter();
        let decidable = decidable.filter_map(|id| self.later.remove(&id));
        self.again.extend(decidable.map(QueuedCommand::waiting_from_now));
        let (remembered, reconfigured) = decider.finish();
        self.decided.remembered.extend(remembered);
        if let Some(settings) = reconfigured {
            let before = std::mem::replace(&mut self.settings, settings);
            self.decided.settings_before.get_or_insert(before);
        }
        self.decided.commands += many;
        self.decided.suggested.extend(self.plan.take_suggestions());
        if self.plan.take_waiting_changed() {
            self.signals.stored.send_modify(|count| *count += 1);
        }
        if let Some(what) = self.plan.why_impossible().map(str::to_owned) {
            self.drop_decided();
            // It is rare, and reads a whole plan: without the box every decision would be as large.
            return Box::pin(async { self.settle(stop).await && self.give_up(&what, stop).await }).await;
        }
        if self.storing.is_none() {
            self.send_batch();
        }
        true
    }

    /// Sends the decided batch to the store. Where nothing is to be stored, it is answered at once.
    fn send_batch(&mut self) {
        let decided = std::mem::take(&mut self.decided);
        if decided.batch.is_empty() {
            self.answer(decided, &[], None);
        } else {
            self.storing = Some(StoringBatch::begin(&self.store, self.lease.epoch, decided));
        }
    }

    /// Answers the stored batch, and sends the batch that was decided meanwhile. False when the lease is lost.
    async fn finish_storing(&mut self, stored: Result<(), store::Error>, stop: &CancellationToken) -> bool {
        let Some(storing) = self.storing.take() else {
            return true;
        };
        let (mut decided, batch) = (storing.decided, storing.batch);
        match stored {
            Ok(()) => self.answer(decided, &batch, Some(storing.begun.elapsed().as_secs_f64())),
            Err(store::Error::LeaseLost) => return false,
            // A commit that fails takes the plan with it, and may turn out to have succeeded.
            Err(why) => match self.recover_plan(&why, &mut decided, stop).await {
                Some((true, answers)) => {
                    decided.answers = answers;
                    self.answer(decided, &batch, None);
                }
                Some((false, answers)) => {
                    self.signals
                        .measure(|signal| signal.batch(decided.commands, None));
                    for answer in answers {
                        answer(false);
                    }
                    self.signals.publish_next_due(&self.plan);
                }
                None => return false,
            },
        }
        if self.decided.commands > 0 || !self.decided.batch.is_empty() {
            self.send_batch();
        } else if self.queue.is_empty() {
            self.forget_idempotency_keys();
        }
        true
    }

    /// Waits until everything that is decided is stored and answered. False when the lease is lost.
    async fn settle(&mut self, stop: &CancellationToken) -> bool {
        while self.storing.is_some() {
            let stored = StoringBatch::end(&mut self.storing).await;
            if !self.finish_storing(stored, stop).await {
                return false;
            }
        }
        true
    }

    /// Reports the decisions of a stored batch, with the seconds that storing took where there was something to store.
    fn answer(&mut self, decided: DecidedBatch, batch: &[Change], seconds: Option<f64>) {
        self.signals.measure(|signal| {
            signal.batch(decided.commands, seconds);
            signal.decided(&decided.decisions, batch);
        });
        if batch
            .iter()
            .any(|change| matches!(change, Change::PutResource(_)))
        {
            self.signals.publish_resources(&self.plan);
        }
        self.signals.publish_foresight(&self.plan);
        for answer in decided.answers {
            answer(true);
        }
        for suggestion in decided.suggested {
            // There may be no listener.
            let _ = self.signals.suggested.send(suggestion);
        }
        if !batch.is_empty() {
            self.signals.stored.send_modify(|count| *count += 1);
        }
        self.signals.publish_next_due(&self.plan);
    }

    /// Drops what is decided and not sent, with its settings. The answers are dropped with it, which says that nothing was decided.
    fn drop_decided(&mut self) {
        if let Some(before) = std::mem::take(&mut self.decided).settings_before {
            self.settings = before;
        }
    }

    /// Gives up a batch that has found a fault in the plan, and reads the plan anew. False when the lease is lost, or the
    /// service stops meanwhile.
    async fn give_up(&mut self, what: &str, stop: &CancellationToken) -> bool {
        error!(what, "{}", IMPOSSIBLE);
        self.signals.measure(|signal| signal.given_up += 1);
        let read = self.reload(stop).await.is_some();
        self.signals.publish_next_due(&self.plan);
        read
    }

    /// Reads the plan anew after a batch that could not be stored, or of which that is not known. Answers whether it is
    /// stored after all, with the answers that have not been given meanwhile. `None` when another process has taken
    /// over, or the service stops meanwhile.
    async fn recover_plan(
        &mut self,
        why: &store::Error,
        decided: &mut DecidedBatch,
        stop: &CancellationToken,
    ) -> Option<(bool, Vec<DeferredAnswer>)> {
        error!(error = %why, "decisions were not stored; reading the plan anew");
        let mut answers = std::mem::take(&mut decided.answers);
        self.signals.measure(|signal| signal.failed += 1);
        // Before any answer: a refused caller must not find the service ready.
        self.signals.ready.send_replace(false);
        // The decisions on top of it are given up with it.
        self.drop_decided();
        let batch = match why {
            store::Error::Unknown { batch, .. } => Some(*batch),
            _ => None,
        };
        let doubt = DoubtfulBatches {
            batch,
            is_stored: None,
            settings_before: decided.settings_before.take(),
        };
        self.doubt = Some(doubt);
        let refuse = |answers: &mut Vec<DeferredAnswer>| answers.drain(..).for_each(|answer| answer(false));
        if batch.is_none() {
            refuse(&mut answers);
        }
        let mut reloaded = tokio::time::timeout(PATIENCE, self.reload(stop)).await;
        if reloaded.is_err() {
            refuse(&mut answers);
            reloaded = Ok(self.reload(stop).await);
        }
        Some((reloaded.ok()??, answers))
    }

    /// Lets go of idempotency keys that are over. That it fails now and then does no harm; that it fails always fills the store.
    fn forget_idempotency_keys(&mut self) {
        let now = self.clock.now();
        if now.seconds() < self.forgotten.seconds().saturating_add(FORGET_EVERY) {
            return;
        }
        self.forgotten = now;
        let (store, now) = (self.store.clone(), self.clock.micros());
        // There may be many, and decisions do not wait for that.
        task::spawn(async move {
            if let Err(why) = idempotency::forget_idempotent_requests(&store, now).await {
                warn!(error = %why, "old idempotency keys were not forgotten");
            }
        });
    }

    /// Whether no fault was found in the stored data.
    fn is_trusted(&self) -> bool {
        self.signals.distrusted.get().is_none()
    }

    /// Whether a slice has something to do: recorded moves are to be settled, or a waiting agreement may be able to move up.
    fn may_improve(&self) -> bool {
        self.is_trusted() && (self.plan.has_unsettled_moves() || self.plan.may_move_up(self.clock.now()))
    }

    /// Whether that has been put off for long enough.
    fn must_improve(&self) -> bool {
        self.may_improve() && self.clock.now() - self.improved >= SLICE_EVERY
    }

    /// The earlier answers to the idempotency keys of these commands.
    async fn remembered_requests(
        &mut self,
        commands: &[QueuedCommand],
    ) -> Result<RememberedAnswers, store::Error> {
        let mut remembered = RememberedAnswers::new();
        let mut unknown = Vec::new();
        let storing = self.storing.as_ref().map(|storing| &storing.decided);
        let decided = [Some(&self.decided), storing];
        for scope in commands.iter().filter_map(|command| command.scope.clone()) {
            let known = decided
                .into_iter()
                .flatten()
                .find_map(|decided| decided.remembered.get(&scope));
            match known.cloned() {
                Some(known) => {
                    remembered.insert(scope, known);
                }
                None => unknown.push(scope),
            }
        }
        let now = self.clock.micros();
        for (party, key) in unknown {
            let Some(earlier) = idempotency::idempotent_request(&self.store, &party, &key).await? else {
                continue;
            };
            if earlier.created > now - IDEMPOTENCY_KEPT {
                remembered.insert((party, key), earlier);
            } else {
                idempotency::forget_idempotent_requests(&self.store, now).await?;
            }
        }
        Ok(remembered)
    }

    /// Reads the plan anew until that succeeds: nothing is decided on a plan that may differ from the store. Commands
    /// that wait for longer than [`PATIENCE`] are refused. Answers whether the batch in doubt is stored, where there is one.
    /// `None` when another process has taken over, or the service stops meanwhile.
    async fn reload(&mut self, stop: &CancellationToken) -> Option<bool> {
        self.signals.ready.send_replace(false);
        let patient_until = Instant::now() + PATIENCE;
        let mut wait = RETRY.0;
        loop {
            let read = reread_plan_for_writer(
                &self.settings,
                &self.store,
                &mut self.lease,
                &self.clock,
                self.doubt.as_mut(),
            );
            match refuse_commands_during(&mut self.queue, patient_until, read).await {
                Ok(mut plan) => {
                    plan.recall_reports(&self.plan, self.clock.now());
                    self.plan = plan;
                    // The plan knows nothing of their slots any more: they are not decided, and their callers are told.
                    self.later.clear();
                    self.signals.publish_resources(&self.plan);
                    self.signals.publish_foresight(&self.plan);
                    self.signals.ready.send_replace(true);
                    let doubt = self.doubt.take().unwrap_or_default();
                    let is_stored = doubt.is_stored.unwrap_or(false);
                    if let Some(before) = doubt.settings_before.filter(|_| !is_stored) {
                        self.settings = before;
                    }
                    return Some(is_stored);
                }
                Err(StartError::Store(store::Error::LeaseLost)) => return None,
                Err(why) => warn!(error = %why, "the store cannot be used; trying again in {wait:?}"),
            }
            let stopped = tokio::time::timeout(wait, stop.cancelled());
            if refuse_commands_during(&mut self.queue, patient_until, stopped)
                .await
                .is_ok()
            {
                return None;
            }
            wait = (wait * 2).min(RETRY.1);
        }
    }
}

/// Does some work, and refuses the commands that wait or come after an instant until it is done. The answer of a command
/// is dropped with it, which says that nothing was decided.
async fn refuse_commands_during<T>(
    queue: &mut mpsc::Receiver<QueuedCommand>,
    from: Instant,
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep_until(from) => {}
    }
    loop {
        tokio::select! {
            done = &mut work => return done,
            Some(_) = queue.recv() => {}
        }
    }
}

/// The plan as it is stored, for the holder of the lease, which is taken again where it has to be. Where the store is
/// doubted, that it takes batches is shown first.
async fn reread_plan_for_writer(
    settings: &Settings,
    store: &Store,
    lease: &mut Lease,
    clock: &Clock,
    doubt: Option<&mut DoubtfulBatches>,
) -> Result<State, StartError> {
    // After this the batch that failed is not on its way any more.
    let last = store.retake_lease(lease).await?;
    let mut settings = settings;
    if let Some(doubt) = doubt {
        let is_stored = doubt.batch.is_some() && doubt.batch == last;
        let is_stored = *doubt.is_stored.get_or_insert(is_stored);
        let before = doubt.settings_before.as_ref().filter(|_| !is_stored);
        settings = before.unwrap_or(settings);
        free_space::prove_free_space(store, lease.epoch).await?;
    }
    // Standbys must hear meanwhile that this process is there.
    let beats = async {
        loop {
            tokio::time::sleep(WATCH_EVERY).await;
            if let Err(why) = store.check_lease(lease).await {
                return why;
            }
        }
    };
    tokio::select! {
        plan = Box::pin(read_plan(settings, store, clock, None)) => plan,
        why = beats => Err(why.into()),
    }
}
