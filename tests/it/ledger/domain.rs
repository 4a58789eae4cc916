//! A domain in which prices and penalties are posted.

use super::*;

/// A planner with a price list of a euro a node-hour and a tenth for ending an agreement, on a clock of its own.
pub(super) struct Domain {
    pub(super) planner: Planner,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
    pub(super) task: JoinHandle<()>,
}

impl Domain {
    pub(super) async fn start(url: &str, clock: Clock) -> Self {
        Self::start_with(url, clock, Failures::default()).await
    }

    pub(super) async fn start_with(url: &str, clock: Clock, failures: Failures) -> Self {
        let store = Store::open(url).await.expect("the database is there");
        let lease = store.acquire_lease().await.expect("no other process decides");
        let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 86_400);
        let mut pricing = Pricing::flat(1_000_000, eur(0).currency);
        pricing.cancellation = Fraction::percent(10);
        settings.pricing = Some(pricing);
        settings.failures = failures;
        let stop = CancellationToken::new();
        let (planner, task) = Planner::start(settings, store.clone(), lease, clock.clone(), stop.clone())
            .await
            .expect("the stored data make a plan");
        Self {
            planner,
            store,
            clock,
            stop,
            task,
        }
    }

    pub(super) async fn new(url: &str) -> Self {
        Self::start(url, Clock::standing_at(NOW * MICROS_PER_SECOND)).await
    }

    pub(super) async fn restart(self, url: &str) -> Self {
        self.stop.cancel();
        self.task.await.expect("the planner does not panic");
        self.store.close().await;
        Self::start(url, self.clock).await
    }

    /// Turns the clock to `until`, and has everything done at its instant that is due by then.
    pub(super) async fn pass(&self, until: i64) {
        loop {
            let due = *self.planner.subscribe().borrow();
            let next = due.map(Time::seconds).filter(|due| *due <= NOW + until);
            let at = next.unwrap_or(NOW + until) * MICROS_PER_SECOND;
            self.clock.set(at.max(self.clock.micros()));
            self.planner.begin_due().await.expect("it is stored");
            if next.is_none() {
                return;
            }
        }
    }

    pub(super) async fn place(&self, proposal: Proposal) -> Agreement {
        let accepted = self.planner.place(proposal).await.expect("there is room");
        accepted.agreement
    }

    pub(super) async fn stored(&self, id: Uuid) -> Agreement {
        let found = self.store.agreement(id).await.expect("it can be read");
        found.expect("it is there")
    }

    /// The balance of the party's account, in millionths of a euro, once everything balances.
    pub(super) async fn balance(&self) -> i64 {
        assert_eq!(self.store.verify().await.expect("it can be read"), []);
        let (all, _) = self.store.account(None, None, 1).await.expect("it can be read");
        assert_eq!(all.iter().map(|of| of.amount.micros).sum::<i64>(), 0);
        let party = Account::Party("physics".to_owned());
        let own = all.into_iter().find(|of| of.account == party);
        own.map_or(0, |of| of.amount.micros)
    }
}
