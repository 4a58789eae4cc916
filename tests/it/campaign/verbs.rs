//! What parties, operators, nodes and time do to agreements.

use domain::agreement::{Agreement, JobEnd, Run, RunOutcome, ServiceState};
use domain::clock::MICROS_PER_SECOND;
use domain::resources::{BusyTime, NodeReport, NodeState, Reporter};
use planner::{
    BeginDue, ChangeResource, CommandOptions, Error, ListRunning, Place, ReportEnded, ReportStarted,
    ResourceChanges, ResourceVerb, ResourceWish, SetNodes, Terminate,
};
use scheduler::{Interval, Rate};
use store::negotiations;
use uuid::Uuid;

use super::{Aim, Campaign, patient};

impl Campaign<'_> {
    pub(super) async fn place(&mut self, party: &str) {
        let request = self.request(party);
        match self.domain.planner.send(Place(request)).await {
            Ok(placed) => {
                let agreement = placed.agreement;
                self.saw(Aim::InPieces, !agreement.slots.pieces().is_empty());
                self.told.accepted.insert(agreement.id, agreement);
            }
            Err(Error::Refused(_)) => {}
            Err(Error::Unavailable) if self.ender.is_some() => {}
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    /// A party ends an agreement, or the provider does; another party cannot.
    pub(super) async fn terminate(&mut self) {
        let ids: Vec<Uuid> = self.told.accepted.keys().copied().collect();
        let Some(id) = self.random.choose(&ids).copied() else {
            return;
        };
        let by_provider = self.random.below(4) == 0;
        let party = self.told.accepted[&id].party.clone();
        let planner = &self.domain.planner;
        let foreign = patient(|| planner.send(Terminate::of(id, Some("chemistry".into())))).await;
        assert!(matches!(foreign, Err(Error::NotFound)), "{foreign:?}");
        let order = || Terminate {
            by_provider,
            ..Terminate::of(id, Some(party.clone()))
        };
        match patient(|| planner.send(order())).await {
            Ok(_) if by_provider => {}
            Ok(_) => drop(self.told.terminated.insert(id)),
            Err(Error::NotFound | Error::Conflict(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// A resource comes, grows, shrinks, is retired or brought back; what is only asked first follows then, too.
    pub(super) async fn change_resource(&mut self) {
        let random = &mut self.random;
        let name = *random.choose(&["local", "fast", "third", "other"]).expect("four");
        let verb = match random.below(6) {
            0 => ResourceVerb::Retire,
            1 | 2 => ResourceVerb::Restore,
            _ => ResourceVerb::Put(ResourceWish {
                capacity: Some(1 + u32::try_from(random.below(6)).expect("small")),
                rate: [None, Rate::from_millionths(2_000_000)][random.below(2)],
                ..ResourceWish::default()
            }),
        };
        let order = || ChangeResource {
            id: Uuid::now_v7(),
            party: "operator".into(),
            name: name.into(),
            verb: verb.clone(),
        };
        let planner = &self.domain.planner;
        let dry = CommandOptions::default().or_dry(true);
        let would = patient(|| planner.send_with(order(), dry.clone())).await;
        let done = patient(|| planner.send(order())).await;
        match (would, done) {
            (Ok(would), Ok(done)) => {
                let words = |changes: &ResourceChanges| -> Vec<_> {
                    changes.resources.iter().map(|(_, words)| words.clone()).collect()
                };
                // Where an answer was lost, it was done before.
                assert!(
                    self.ender.is_some() || words(&would) == words(&done),
                    "{verb:?} of {name}"
                );
            }
            (would, done) => assert_eq!((would, done), (Err(Error::NotFound), Err(Error::NotFound))),
        }
        self.forget_withdrawn().await;
    }

    /// Nodes of one resource fail, are drained or come back, and may be others' for a while.
    pub(super) async fn fail(&mut self) {
        let (now, random) = (self.now(), &mut self.random);
        let resources = self.domain.planner.resources();
        let resource = random.choose(&resources).expect("there are some").clone();
        let by = *random
            .choose(&[Reporter::Executor, Reporter::Operator])
            .expect("two");
        let states = [NodeState::Up, NodeState::Up, NodeState::Drained, NodeState::Down];
        let states = (0..resource.capacity).map(|_| *random.choose(&states).expect("four"));
        let states = states.collect();
        let busy = (0..random.below(3)).map(|_| BusyTime {
            node: u32::try_from(random.below(resource.capacity as usize)).expect("small"),
            interval: Interval::of(now + random.seconds(100), 1 + random.seconds(100)),
        });
        let report = NodeReport {
            busy: busy.collect(),
            states,
            ..NodeReport::default()
        };
        let planner = &self.domain.planner;
        let set = patient(|| {
            planner.send(SetNodes {
                resource: resource.name.clone(),
                by,
                report: report.clone(),
            })
        })
        .await;
        let repaired = match set {
            // It is retired, and nothing is planned on it.
            Err(Error::NotFound) => return,
            repaired => repaired.expect("it answers"),
        };
        self.saw(Aim::Lost, repaired.lost > 0);
        self.saw(Aim::Moved, repaired.moved > 0);
        self.saw(Aim::Broken, repaired.broken > 0);
        self.forget_withdrawn().await;
    }

    /// An offer that is withdrawn because its place is gone does not stand any more; everything else does.
    async fn forget_withdrawn(&mut self) {
        for id in self.told.standing.clone() {
            let stored = negotiations::negotiation_offer(&self.domain.store, id)
                .await
                .expect("it can be read");
            if stored.is_none_or(|(offer, _)| offer.is_withdrawn()) {
                self.told.standing.remove(&id);
            }
        }
    }

    /// Lets time pass, as the dispatcher would: due slots begin at their instant, running work saves itself or is stopped at its
    /// slot's end, and some ends before.
    pub(super) async fn pass(&mut self) {
        let until = self.now() + self.random.seconds(60);
        loop {
            let planner = &self.domain.planner;
            let running = patient(|| planner.send(ListRunning)).await.expect("it answers");
            let over = running.iter().map(|running| running.slot().end).min();
            let due = *planner.subscribe().borrow();
            let next = over.into_iter().chain(due).min().filter(|next| *next <= until);
            let now = next.unwrap_or(until).max(self.now());
            // Somewhere in that second, for nothing happens on the dot.
            let within = self.random.seconds(900_000);
            let at = now.seconds() * MICROS_PER_SECOND + within;
            self.domain.clock.set(at.max(self.domain.clock.micros()));
            if next.is_none() {
                return;
            }
            for one in running {
                let random = &mut self.random;
                let outcome = if one.slot().end <= now {
                    if one.has_more_slots() && random.below(8) > 0 {
                        RunOutcome::Checkpointed
                    } else {
                        RunOutcome::Killed
                    }
                } else if random.below(16) == 0 {
                    *random
                        .choose(&[RunOutcome::Lost, RunOutcome::Completed])
                        .expect("two")
                } else {
                    continue;
                };
                self.end(&one, outcome).await;
            }
            let begun = patient(|| self.domain.planner.send(BeginDue)).await;
            for one in begun.expect("it answers") {
                assert_eq!(one.service, ServiceState::Processing);
                assert!(
                    one.slot().contains(Interval::of(self.now(), 1)),
                    "it begins inside its slot"
                );
                if self.random.below(4) > 0 {
                    let at = self.domain.clock.micros();
                    let started = patient(|| {
                        self.domain.planner.send(ReportStarted {
                            run: Run::from(&one),
                            at,
                        })
                    })
                    .await;
                    started.expect("it runs");
                }
            }
        }
    }

    /// One of the jobs that run ends by itself, or because it was terminated.
    pub(super) async fn end_something(&mut self) {
        let planner = &self.domain.planner;
        let running = patient(|| planner.send(ListRunning)).await.expect("it answers");
        let Some(one) = self.random.choose(&running) else {
            return;
        };
        let outcomes = [
            RunOutcome::Completed,
            RunOutcome::Failed { exit: 1 },
            RunOutcome::Lost,
            RunOutcome::Terminated,
            RunOutcome::Checkpointed,
        ];
        let outcome = *self.random.choose(&outcomes).expect("not empty");
        self.end(one, outcome).await;
        let again = patient(|| {
            planner.send(ReportEnded {
                run: Run::from(one),
                end: self.job_end(one, outcome),
            })
        })
        .await;
        // A piece may wait for its next place.
        let goes_on = !one.slots.pieces().is_empty() && again == Ok(());
        // A plan that was read anew in between looks again for the rest of lost work.
        let is_lost = [Some(outcome), one.outcome].contains(&Some(RunOutcome::Lost));
        let looked_for = self.ender.is_some() && is_lost && again == Ok(());
        assert!(
            goes_on || looked_for || again == Err(Error::NotFound),
            "it has ended with {outcome:?}: {again:?}, {one:?}"
        );
    }

    async fn end(&self, one: &Agreement, outcome: RunOutcome) {
        let mut asked = 0;
        let ended = patient(|| {
            asked += 1;
            let end = self.job_end(one, outcome);
            self.domain.planner.send(ReportEnded {
                run: Run::from(one),
                end,
            })
        })
        .await;
        // Asked again, it may have been answered before.
        assert!(
            ended.is_ok() || asked > 1 && ended == Err(Error::NotFound),
            "it ran: {ended:?}"
        );
    }

    fn job_end(&self, one: &Agreement, outcome: RunOutcome) -> JobEnd {
        JobEnd::new(outcome, one.slot_started(), self.domain.clock.micros())
    }
}
