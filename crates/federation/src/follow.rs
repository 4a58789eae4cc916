//! Follows the agreements that peers carry out: looks how each stands, tells the planner, has ended there what is over here, and
//! settles each when both are over.
//!
//! It remembers nothing that matters: what is to be done follows from how both agreements stand. So a restart is no special case.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use domain::agreement::{
    AMOUNT_MAX, Agreement, AgreementState, AtPeer, GuaranteeAtPeer, GuaranteeState, JobEnd, Money,
    OfferTerms, RunOutcome, SeenAtPeer, ServiceState,
};
use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use execution::JobStatus;
use planner::{HolderWord, PutAtPeer, ReportAtPeer};
use scheduler::{Seconds, Time};
use store::{Store, agreements, at_peer, negotiations};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use writer::Planner;
use wsag::time::DateTime;

use super::client::{Peer, PeerError, PeerStatus};
use super::followed_agreements::FollowedAgreement;
use super::make::make_at_peer;
use super::{Federation, FollowedAgreements};

/// The pause between two looks at what is to be done.
const TICK: Duration = Duration::from_millis(500);
/// How often an agreement is looked at that begins soon, runs, or is to end.
const NEAR: Duration = Duration::from_secs(1);
/// The shortest and the longest time between two looks at one that begins later: with many the longer, so that a peer is not asked more
/// than some twenty times a second.
const FAR: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(1));
const FAR_EACH: Duration = Duration::from_millis(50);
/// Looks at the agreements of one peer at a time.
const LOOKS_MAX: usize = 16;
/// Rows read at a time.
const PAGE: u32 = 1_000;
/// The most that is posted of what a peer says that it has charged or paid for an agreement, as a multiple of its price.
const TIMES_PRICE_MAX: i64 = 10;
/// The most guarantees of an agreement at a peer that are kept, and characters of the name of one.
const GUARANTEES_MAX: usize = 32;
const NAME_MAX: usize = 200;
/// Work counts as lost this long after the end of its slot, where its peer cannot be asked.
const LOST_AFTER: Micros = 3_600 * MICROS_PER_SECOND;

/// The task that follows agreements at peers.
pub struct Follower {
    look: AgreementLook,
    /// When each is looked at next.
    next: BTreeMap<Uuid, Instant>,
    /// The agreements that were found to be over here, or to be ended.
    left: BTreeSet<Uuid>,
    /// The looks that go on,
    looks: JoinSet<(String, Uuid, Duration)>,
    /// and at which agreements, by peer.
    at_work: BTreeMap<String, BTreeSet<Uuid>>,
}

impl Follower {
    /// One for the peers of a federation.
    pub fn new(federation: Federation, planner: Planner, store: Store, clock: Clock) -> Self {
        let look = AgreementLook {
            federation,
            planner,
            store,
            clock,
        };
        Self {
            look,
            next: BTreeMap::new(),
            left: BTreeSet::new(),
            looks: JoinSet::new(),
            at_work: BTreeMap::new(),
        }
    }

    /// Runs until it is told to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        while let Err(why) = self.read_rows().await {
            tracing::warn!(error = %why, "what peers carry out cannot be read");
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(NEAR) => {}
            }
        }
        let followed = self.look.federation.followed().clone();
        let mut changes = self.look.planner.subscribe_changes();
        let mut read = Instant::now();
        loop {
            if read.elapsed() >= FAR.1 {
                read = Instant::now();
                if let Err(why) = self.read_open_rows().await {
                    tracing::debug!(error = %why, "what peers carry out cannot be read");
                }
            }
            if changes.has_changed().unwrap_or(false) && !followed.is_empty() {
                changes.borrow_and_update();
                self.look_at_those_left().await;
            }
            self.look_at_due(&followed);
            task::note_success();
            tokio::select! {
                () = stop.cancelled() => return,
                () = followed.changed() => {}
                Some(looked) = self.looks.join_next(), if !self.looks.is_empty() => self.note_looked(looked),
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    /// Reads the agreements that are not settled, and how peers have kept their word.
    async fn read_rows(&self) -> Result<(), store::Error> {
        self.read_open_rows().await?;
        for (peer, kept, broken) in at_peer::promises_of_peers(&self.look.store).await? {
            self.look.federation.recall_kept(&peer, kept, broken);
        }
        Ok(())
    }

    /// Follows all agreements that are not settled.
    async fn read_open_rows(&self) -> Result<(), store::Error> {
        let mut after = Uuid::nil();
        loop {
            let rows = at_peer::open_at_peers(&self.look.store, after, PAGE).await?;
            let Some(last) = rows.last() else { break };
            after = last.id;
            for row in rows {
                // The id of its runs is found at the first look.
                let runs_of = row.agreement;
                self.look.federation.followed().add(row, runs_of);
            }
        }
        Ok(())
    }

    /// Has those be looked at now whose agreement here is over, or elsewhere.
    async fn look_at_those_left(&mut self) {
        match at_peer::unsettled_at_peers(&self.look.store, PAGE).await {
            Ok(left) => {
                for id in left {
                    // One that was looked at lately waits for its peer.
                    if self.left.insert(id) {
                        self.next.remove(&id);
                    }
                }
            }
            Err(why) => tracing::debug!(error = %why, "it is not known what is over here"),
        }
    }

    /// Begins to look at those whose time has come: some of each peer at a time, so that one that is silent holds up nobody else's.
    fn look_at_due(&mut self, followed: &FollowedAgreements) {
        let now = Instant::now();
        let all = followed.all();
        let present: BTreeSet<Uuid> = all.iter().map(|following| following.row.id).collect();
        self.next.retain(|id, _| present.contains(id));
        self.left.retain(|id| present.contains(id));
        for following in all {
            let (id, peer) = (following.row.id, following.row.peer.clone());
            let is_new_end = following.is_to_end && self.left.insert(id);
            let is_due = is_new_end || self.next.get(&id).is_none_or(|at| *at <= now);
            let at_work = self.at_work.entry(peer.clone()).or_default();
            if !is_due || at_work.len() >= LOOKS_MAX || !at_work.insert(id) {
                continue;
            }
            let look = self.look.clone();
            self.looks.spawn(async move {
                // A look that panics is over, too.
                let looked = task::spawn(async move { look.look(following).await }).await;
                (peer, id, looked.unwrap_or(FAR.1))
            });
        }
    }

    /// Takes note that a look is over.
    fn note_looked(&mut self, looked: Result<(String, Uuid, Duration), JoinError>) {
        // It was cut off with the service.
        let Ok((peer, id, wait)) = looked else { return };
        if let Some(at_work) = self.at_work.get_mut(&peer) {
            at_work.remove(&id);
        }
        self.next.insert(id, Instant::now() + wait);
    }
}

/// One look at one agreement.
#[derive(Clone)]
struct AgreementLook {
    federation: Federation,
    planner: Planner,
    store: Store,
    clock: Clock,
}

impl AgreementLook {
    /// Looks at an agreement and does what follows; answers how long there is nothing more to do.
    async fn look(&self, mut following: FollowedAgreement) -> Duration {
        let row = &following.row;
        let Some(peer) = self.federation.peer(&row.peer) else {
            tracing::error!(agreement = %row.agreement, peer = row.peer, "its peer is not configured any more");
            return FAR.1;
        };
        let Ok(Some(ours)) = agreements::agreement(&self.store, row.agreement).await else {
            return NEAR;
        };
        // Its party has asked for that, maybe before this process was started.
        following.is_to_end |= ours.state == AgreementState::ObservedAndTerminating;
        let row = &following.row;
        let Some(address) = &row.address else {
            return self.resolve_intent(&peer, row, &ours).await;
        };
        let is_here = ours.resource == row.peer && !ours.state.is_final();
        if following.is_to_end || !is_here {
            // One that has ended there already cannot be ended; how it stands is looked at anyway.
            if let Err(why) = peer
                .terminate(address, "it is over at the domain that asked for it")
                .await
            {
                tracing::debug!(agreement = %row.agreement, error = %why, "the peer does not end it");
            }
        }
        match peer.status(address).await {
            Ok(status) => self.take_status(&peer, &following, &ours, status).await,
            Err(PeerError::Refused { words, .. }) => self.take_gone(&following, &ours, words).await,
            Err(why) => {
                tracing::debug!(agreement = %row.agreement, error = %why, "its peer does not tell how it stands");
                if is_here && is_over_too_long_to_follow(&ours, self.clock.micros()) {
                    let lost = JobEnd::new(RunOutcome::Lost, None, self.clock.micros());
                    self.federation
                        .followed()
                        .note_job(row.id, ours.execution_id(), JobStatus::Ended(lost));
                }
                NEAR * 4
            }
        }
    }

    /// Finds out whether an agreement was made at a peer that was to be made there, where it is over here meanwhile.
    async fn resolve_intent(&self, peer: &Peer, row: &AtPeer, ours: &Agreement) -> Duration {
        // The service asks for one that still waits here.
        let is_waiting = ours.is_waiting() && !ours.state.is_final();
        if is_waiting || row.intent.is_none() {
            return NEAR;
        }
        let next = match make_at_peer(peer, row.clone(), &self.clock).await {
            HolderWord::Held(row) | HolderWord::Refused((row, _)) => row,
            HolderWord::Silent => return NEAR * 4,
        };
        if self.planner.send(PutAtPeer(next.clone())).await.is_ok() {
            self.federation.followed().replace(next);
        }
        NEAR
    }

    /// Takes over how an agreement stands at its peer.
    async fn take_status(
        &self,
        peer: &Peer,
        following: &FollowedAgreement,
        ours: &Agreement,
        status: PeerStatus,
    ) -> Duration {
        let state = status.state;
        let is_replaced = status.superseded_by.is_some() && !ours.state.is_final();
        if is_replaced && self.is_being_replaced(&following.row).await {
            return NEAR;
        }
        // It may have been replaced here, too, since it was read.
        let again = if is_replaced {
            agreements::agreement(&self.store, ours.id).await
        } else {
            Ok(Some(ours.clone()))
        };
        let Ok(Some(ours)) = &again else { return NEAR };
        let row = AtPeer {
            state: state.word().to_owned(),
            charged: sum_at_followed_peer(&status.charged, following.row.price),
            paid_back: sum_at_followed_peer(&status.paid, following.row.price),
            guarantees: followed_guarantees(&status),
            ..following.row.clone()
        };
        let now = self.clock.micros();
        let mut job = followed_job_status(&status, following.is_to_end, now);
        let is_here = ours.resource == row.peer && !following.row.lost;
        let is_lost = matches!(&job, JobStatus::Ended(end) if end.outcome == RunOutcome::Lost);
        let has_run = status.started.is_some() || state == AgreementState::Complete && !is_lost;
        let is_early = state.is_final() && is_here && ours.is_waiting() && !following.is_to_end;
        let mut lost = (is_early && !(has_run && ours.job.is_some()))
            .then(|| format!("{} does not carry it out any more", peer.name()));
        let has_nodes = is_here && ours.service == ServiceState::Idle && ours.job.is_none();
        let started = followed_handover(&status, ours).filter(|_| has_nodes && ours.never_had_nodes());
        let is_over = ours.slot().end <= self.clock.now();
        if has_nodes && !following.is_to_end {
            let never_came = ours.never_had_nodes() && started.is_none();
            lost = followed_nodes_lost(&status, peer.name(), is_over, never_came);
        }
        if is_here && !state.is_final() && is_over_too_long_to_follow(ours, now) {
            // It says for ever that it is at it.
            let ended = peer.terminate(
                following.row.address.as_deref().unwrap_or_default(),
                "its time is over",
            );
            drop(ended.await);
            job = JobStatus::Ended(JobEnd::new(
                RunOutcome::Lost,
                status.started.map(DateTime::micros_ceil),
                now,
            ));
        }
        let ended = match &job {
            JobStatus::Ended(end) if is_early && lost.is_none() => Some(end.clone()),
            _ => None,
        };
        let seen = SeenAtPeer {
            row,
            slot: status.planned.map(|(start, end)| (start.floor(), end.floor())),
            started,
            lost,
            ended,
        };
        self.report(following, ours, job, seen).await
    }

    /// Whether an offer is being accepted that takes the place of an agreement at its peer. It cannot be lost then.
    async fn is_being_replaced(&self, row: &AtPeer) -> bool {
        let replaces = |terms: &OfferTerms| {
            let held = terms.peer.as_ref().filter(|_| terms.resource == row.peer);
            held.is_some_and(|held| held.replaces.is_some() && held.replaces == row.address)
        };
        match negotiations::negotiation_offers_being_accepted(&self.store).await {
            Ok(offers) => offers.iter().any(|(_, terms)| replaces(terms)),
            Err(_) => true,
        }
    }

    /// Takes note that a peer knows nothing of an agreement any more.
    async fn take_gone(&self, following: &FollowedAgreement, ours: &Agreement, why: String) -> Duration {
        let row = AtPeer {
            state: AgreementState::Terminated.word().to_owned(),
            ..following.row.clone()
        };
        let outcome = if following.is_to_end {
            RunOutcome::Terminated
        } else {
            RunOutcome::Lost
        };
        let ended = JobEnd::new(outcome, None, self.clock.micros());
        let seen = SeenAtPeer {
            slot: None,
            started: None,
            lost: (!following.row.lost).then(|| format!("{} does not know it any more: {why}", row.peer)),
            ended: None,
            row,
        };
        self.report(following, ours, JobStatus::Ended(ended), seen).await
    }

    /// Tells the planner what has changed, and settles what is over here and there.
    async fn report(
        &self,
        following: &FollowedAgreement,
        ours: &Agreement,
        job: JobStatus,
        mut seen: SeenAtPeer,
    ) -> Duration {
        let row = &mut seen.row;
        let is_lost_running = matches!(&job, JobStatus::Ended(end) if end.outcome == RunOutcome::Lost);
        let is_here = ours.resource == row.peer && !ours.state.is_final() && !following.row.lost;
        row.lost |= !following.is_to_end && is_here && (seen.lost.is_some() || is_lost_running);
        // Work of one that is over here may go on under another one.
        if !ours.state.is_final() {
            let followed = self.federation.followed();
            followed.note_job(row.id, ours.execution_id(), job.clone());
        }
        let is_over = AgreementState::from_word(&row.state).is_some_and(AgreementState::is_final);
        // What was lost there waits for another place, maybe on the same resource.
        let has_left =
            ours.state.is_final() || ours.resource != row.peer || following.row.lost && ours.is_waiting();
        if is_over && has_left {
            row.settled = Some(self.clock.micros());
        }
        let own = (ours.slot().start.seconds(), ours.slot().end.seconds());
        seen.slot = seen
            .slot
            .filter(|slot| is_here && ours.is_waiting() && *slot != own);
        let row = seen.row.clone();
        let is_as_before = row == following.row && seen.slot.is_none() && seen.started.is_none();
        if is_as_before && seen.lost.is_none() && seen.ended.is_none() {
            let count = self.federation.followed().count(&row.peer);
            return wait_until_next_look(ours, &job, count, self.clock.now());
        }
        if let Err(why) = self.planner.send(ReportAtPeer(seen)).await {
            tracing::debug!(agreement = %row.agreement, error = %why, "the planner does not take the report");
            return NEAR;
        }
        if row.settled.is_some() {
            self.federation.note_kept(&row.peer, !row.lost);
        }
        self.federation.followed().replace(row);
        NEAR
    }
}

/// Whether the work of an agreement should have ended long ago.
fn is_over_too_long_to_follow(ours: &Agreement, now: Micros) -> bool {
    let end = ours
        .slot()
        .end
        .max(ours.deadline)
        .seconds()
        .saturating_mul(MICROS_PER_SECOND);
    ours.service == ServiceState::Processing && end.saturating_add(LOST_AFTER) < now
}

/// How long there is nothing to see of an agreement.
fn wait_until_next_look(ours: &Agreement, job: &JobStatus, count: usize, now: Time) -> Duration {
    let is_near = !ours.is_waiting() || matches!(job, JobStatus::Running { started: Some(_) });
    let until = ours.slot().start - now;
    if is_near {
        return NEAR;
    }
    let part = Duration::from_secs(u64::try_from(until / 4).unwrap_or(0));
    let far = FAR_EACH * u32::try_from(count).unwrap_or(u32::MAX / 1_000);
    part.clamp(NEAR, far.clamp(FAR.0, FAR.1))
}

/// The sum in the currency of a price, in millionths.
fn sum_at_followed_peer(sums: &[Money], price: Option<Money>) -> i64 {
    let Some(price) = price else { return 0 };
    let own = sums.iter().filter(|sum| sum.currency == price.currency);
    let sum = own.fold(0_i64, |sum, money| sum.saturating_add(money.micros));
    // People settle the rest of what a peer claims.
    let most = price.micros.saturating_mul(TIMES_PRICE_MAX);
    sum.clamp(0, most.clamp(0, AMOUNT_MAX))
}

/// The guarantees of an agreement at its peer: the first ones, with the beginnings of their names.
fn followed_guarantees(status: &PeerStatus) -> Vec<GuaranteeAtPeer> {
    let said = status.guarantees.iter().take(GUARANTEES_MAX);
    let known = |(name, state): &(String, GuaranteeState)| GuaranteeAtPeer {
        name: name.chars().take(NAME_MAX).collect(),
        state: *state,
    };
    said.map(known).collect()
}

/// When the nodes of an agreement were handed over at its peer; none where that has not come. A peer that tells no times hands them
/// over with the slot, unless it says that the service is not ready.
fn followed_handover(status: &PeerStatus, ours: &Agreement) -> Option<Micros> {
    let is_ready = status.service != Some(wsag::states::ServiceState::NotReady);
    let by_plan = status.planned.is_none() && is_ready;
    let slot = || ours.slot().start.seconds() * MICROS_PER_SECOND;
    status
        .started
        .map(DateTime::micros_ceil)
        .or_else(|| by_plan.then(slot))
}

/// The reason why a reservation that has begun here is lost: its peer took the nodes back too early, or never handed them over.
fn followed_nodes_lost(status: &PeerStatus, peer: &str, is_over: bool, never_came: bool) -> Option<String> {
    let has_ended = status.state.is_final();
    let is_ready = matches!(status.service, Some(wsag::states::ServiceState::Ready(_)));
    // It may wait for the word of a peer of its own. The planner bounds for how long.
    let may_come = is_ready && !has_ended;
    if has_ended && !is_over {
        Some(format!("{peer} has taken its nodes back"))
    } else if is_over && never_came && !may_come {
        Some(format!("{peer} has not handed its nodes over"))
    } else {
        None
    }
}

/// By how many seconds the job of an agreement began late in its slot at its peer. Both times are the peer's own. A process may come
/// up late in a slot that began in time: where the peer charges its whole price, it was not late.
fn followed_lateness(status: &PeerStatus) -> Seconds {
    let price = status.price.filter(|price| price.micros > 0);
    if price.is_some_and(|price| sum_at_followed_peer(&status.charged, Some(price)) >= price.micros) {
        return 0;
    }
    let times = status.started.zip(status.planned);
    let late = times.map(|(started, (planned, _))| started.floor() - planned.floor());
    late.unwrap_or(0).max(0)
}

/// How the job of an agreement stands, as its peer says it.
fn followed_job_status(status: &PeerStatus, is_to_end: bool, now: Micros) -> JobStatus {
    let state = status.state;
    let started = status.started.map(DateTime::micros_ceil);
    if !state.is_final() {
        return JobStatus::Running { started };
    }
    let said = status.outcome.as_deref();
    let said = said.and_then(|word| RunOutcome::from_words(word, status.exit_status));
    let outcome = match (said, state) {
        // Another one has its place there, and ours was not changed.
        _ if status.superseded_by.is_some() => RunOutcome::Lost,
        // This domain has not asked for that.
        (Some(RunOutcome::Terminated) | None, AgreementState::Terminated) if !is_to_end => RunOutcome::Lost,
        (Some(outcome), _) => outcome,
        (None, AgreementState::Complete) => RunOutcome::Completed,
        (None, AgreementState::Terminated) => RunOutcome::Terminated,
        (None, _) => RunOutcome::Lost,
    };
    JobStatus::Ended(JobEnd {
        late: followed_lateness(status),
        ..JobEnd::new(outcome, started, status.ended.map_or(now, DateTime::micros_ceil))
    })
}

#[cfg(test)]
mod tests;
