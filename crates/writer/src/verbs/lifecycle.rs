//! Agreements after they are made: those that wait for their decision, the reports of their jobs and of their peers, and orders to
//! move or end them.

use domain::agreement::{
    Agreement, AtPeer, BroughtFiles, CannotStart, JobEnd, Posting, Run, SeenAtPeer, Slots, Stretch,
};
use domain::change::AcceptanceEndpoint;
use domain::clock::Micros;
use planner::{
    AcceptedOffer, Decider, Error, EvictedAgreement, Eviction, Idempotency, MoveOrder, Pending, Request,
    Result, Settlement, Termination,
};
use uuid::Uuid;

use crate::batches::DecisionRecord;
use crate::command::Command;
use crate::handle::Planner;

impl Planner {
    /// Takes an offer that is decided later; `offer` is the counter offer that it accepts, which stays held until it is decided
    /// or lapses. Once this answers, the agreement is stored as Pending.
    ///
    /// # Errors
    /// [`Error::Repeated`] where its idempotency key has been used, [`Error::Unavailable`] where it could not be stored
    /// or too many wait.
    pub async fn submit_pending(
        &self,
        proposal: Request,
        acceptance: Option<AcceptanceEndpoint>,
        offer: Option<Uuid>,
    ) -> Result<AcceptedOffer> {
        let pending = Pending {
            proposal,
            acceptance,
            offer,
        };
        let scope = pending.proposal.idempotency.as_ref().map(Idempotency::scope);
        let booked_by = self.booked_by.clone();
        self.ask_once(scope, move |decider, _| {
            let stored = decider.store_pending(pending);
            decider.note_booked(booked_by.as_deref(), &stored);
            stored
        })
        .await
    }

    /// Decides a pending agreement: it becomes Observed, with the first of its ways that has a place, or Rejected.
    ///
    /// # Errors
    /// [`Error::NotFound`] and [`Error::Conflict`] where it is not Pending any more, [`Error::Unavailable`] where the
    /// decision could not be stored.
    pub async fn decide_pending(&self, settlement: Settlement) -> Result<Agreement> {
        let about = (settlement.id, settlement);
        let count = |_: &mut Decider<'_>, decided: &mut Result<_>| DecisionRecord::settled(decided);
        self.send(|reply| {
            Command::that_may_wait(
                about,
                None,
                reply,
                |decider, request| decider.decide_pending(request),
                count,
            )
        })
        .await
    }

    /// Records since when files are being brought for an agreement's job: its slot is used from then on.
    ///
    /// # Errors
    /// [`Error::NotFound`] where that job does not run, or not any more, [`Error::Unavailable`] where it could not be stored.
    pub async fn report_staging(&self, run: Run, since: Micros) -> Result<(), Error> {
        self.ask(move |decider| decider.report_staging(run, since)).await
    }

    /// Records when an agreement's process really started.
    ///
    /// # Errors
    /// [`Error::NotFound`] where that job does not run, or not any more, [`Error::Unavailable`] where it could not be stored.
    pub async fn report_started(&self, run: Run, at: Micros) -> Result<()> {
        self.ask(move |decider| decider.report_started(run, at)).await
    }

    /// Records that an agreement's process has started, the files that were brought for it, and since when they were.
    ///
    /// # Errors
    /// Those of [`Planner::report_started`].
    pub async fn report_brought(&self, run: Run, since: Micros, brought: BroughtFiles) -> Result<(), Error> {
        self.ask(move |decider| decider.report_brought(run, since, brought))
            .await
    }

    /// Records how an agreement's work ended: assesses its guarantees, completes it, frees the rest of its slot and
    /// keeps the execution, in one transaction.
    ///
    /// # Errors
    /// [`Error::NotFound`] where that job does not run, or not any more, [`Error::Unavailable`] where it could not be stored.
    pub async fn report_ended(&self, run: Run, end: JobEnd) -> Result<()> {
        self.ask(move |decider| decider.report_ended(run, &end)).await
    }

    /// Whether there is another slot for the job of an agreement. Its slot has begun, and the job has not been started.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn could_start_later(&self, id: Uuid) -> Result<bool> {
        self.ask(move |decider| Ok(decider.could_start_later(id))).await
    }

    /// Ends an agreement with a job that can never be started: it is lost, and there is no restart.
    ///
    /// # Errors
    /// The errors of [`Planner::report_ended`].
    pub async fn report_unable(&self, run: Run, why: CannotStart) -> Result<()> {
        self.ask(move |decider| decider.report_unable(run, why)).await
    }

    /// Notes that nothing is left of the job that an agreement had when its work was lost, which waits to be run again.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn report_stopped(&self, id: Uuid) -> Result<()> {
        self.ask(move |decider| {
            decider.forget_lost_work(id);
            Ok(())
        })
        .await
    }

    /// Takes over how an agreement stands at its peer: its slot here follows, it gets another place where the peer has lost it, and
    /// once it is over there its money is posted.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it could not be stored.
    pub async fn report_at_peer(&self, seen: SeenAtPeer) -> Result<()> {
        self.ask(move |decider| decider.note_at_peer(seen)).await
    }

    /// Makes sure that there is room here for a change of an agreement at its peer, before the peer is asked for that. What is held for
    /// the answer in which the change was offered is free for it.
    ///
    /// # Errors
    /// [`Error::Lost`] where there is none, [`Error::NotFound`] where it is over.
    pub async fn check_may_change_at_peer(&self, id: Uuid, slots: Slots, answer: Option<Uuid>) -> Result<()> {
        self.ask(move |decider| decider.check_may_change(id, &slots, answer))
            .await
    }

    /// Stores an agreement at a peer, or that one is to be made there.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it could not be stored.
    pub async fn put_at_peer(&self, row: AtPeer) -> Result<()> {
        self.ask(move |decider| {
            decider.put_at_peer(row);
            Ok(())
        })
        .await
    }

    /// Has a peer carry out an agreement without a place, in a slot that the peer has agreed to. Where it is over meanwhile, the peer's
    /// is stored only.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it could not be stored.
    pub async fn place_sought(&self, row: AtPeer, slot: Stretch) -> Result<()> {
        self.ask(move |decider| decider.place_sought(row, slot)).await
    }

    /// Ends an agreement without a place that no peer carries out.
    ///
    /// # Errors
    /// [`Error::NotFound`] where it is over already, [`Error::Unavailable`] where it could not be stored.
    pub async fn end_sought(&self, id: Uuid) -> Result<()> {
        self.ask(move |decider| decider.end_sought(id)).await
    }

    /// The postings that would follow at once if an agreement were ended. It is ended on a copy of the plan, in O(n) for all that is
    /// planned.
    ///
    /// # Errors
    /// Those of [`Planner::terminate`].
    pub async fn postings_of_ending(&self, termination: Termination) -> Result<Vec<Posting>> {
        self.dry()
            .ask(|decider| decider.postings_of_ending(termination))
            .await
    }

    /// Ends an agreement at once. Its work is lost, and its job is stopped; its guarantees are judged as after any loss, and pay.
    ///
    /// # Errors
    /// [`Error::NotFound`] also when it has ended already, [`Error::Conflict`] where it is being ended or not decided yet,
    /// [`Error::Changed`] when it is in another version, [`Error::Repeated`] where its idempotency key has been used,
    /// [`Error::Unavailable`] where it could not be stored.
    pub async fn evict(&self, eviction: Eviction) -> Result<EvictedAgreement> {
        let scope = eviction.idempotency.as_ref().map(Idempotency::scope);
        self.ask_once(scope, |decider, decisions| {
            let decided = decider.evict(eviction);
            decisions.push(DecisionRecord::of("termination", &decided));
            decided
        })
        .await
    }

    /// Moves a waiting agreement to another resource or start, inside its window and what else was agreed.
    ///
    /// # Errors
    /// [`Error::NotFound`] also when it has ended, [`Error::Conflict`] where it does not wait, [`Error::Unfit`] where it may not
    /// go there or there is no room, [`Error::Changed`] when it is in another version, [`Error::Repeated`] where its
    /// idempotency key has been used, [`Error::Unavailable`] where it could not be stored.
    pub async fn move_agreement(&self, order: MoveOrder) -> Result<Agreement> {
        let scope = order.idempotency.as_ref().map(Idempotency::scope);
        self.ask_once(scope, |decider, _| decider.move_agreement(order))
            .await
    }
}
