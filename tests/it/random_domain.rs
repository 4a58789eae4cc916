//! A whole domain in virtual time: random verbs in random states, with restarts in between, and afterwards the check
//! of everything that must always hold. The same seed gives the same run.

mod negotiations;

use std::collections::BTreeSet;
use std::future::Future;
use std::time::{Duration, Instant};

use bespeak::agreement::{
    Agreement, Compensation, Currency, Guarantee, GuaranteeState, Job, JobEnd, Money, Run, RunOutcome,
    ServiceState, Shape, Values, Worth,
};
use bespeak::clock::{Clock, MICROS_PER_SECOND, Micros};
use bespeak::planner::{
    Error, Planner, Pricing, Proposal, Resource, ResourceOrder, ResourceVerb, ResourceWish, Scaling,
    Settings, Termination,
};
use bespeak::store::{self, Finding, Store};
use scheduler::preemptive::{Preemption, Rounding};
use scheduler::pricing::Discount;
use scheduler::{Fraction, Interval, Time};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::golden::{assert_golden, trail_of};
use crate::support::random::Random;
use crate::support::sessions::SessionEnder;
use crate::support::stores::TestDatabase;
use crate::support::{assert_nothing_impossible, eventually, run, size};

/// Seeds on SQLite; Postgres, which takes longer to set up, runs a fifth of them. `BESPEAK_TEST_SEEDS` asks for more.
const SEEDS: usize = 15;
/// Seeds with decisions that are compared with the golden ones, on SQLite. Their planners move nothing up between commands: that
/// depends on how long these take.
const GOLDEN: u64 = 5;
/// Verbs of one run, where enough offers are accepted in it.
const VERBS: usize = 60;
/// Verbs within which that is so at the latest, and how many offers are enough.
const VERBS_MAX: usize = 20 * VERBS;
const ACCEPTED_MIN: usize = 6;
const NOW: i64 = 1_800_000_000;
/// After how many verbs everything that is stored is checked, which takes longer than the verbs.
const CHECKED_EVERY: usize = 5;
const CAPACITY: u32 = 4;

fn seeds() -> u64 {
    u64::try_from(size("BESPEAK_TEST_SEEDS", SEEDS)).expect("not that many")
}

#[test]
fn random_verbs_break_no_invariant_on_sqlite() {
    let mut saved = 0;
    for seed in 1..=seeds() {
        let database = TestDatabase::sqlite();
        saved += run(live(database.url(), seed, None, seed <= GOLDEN));
    }
    assert!(saved > 0, "no work has been saved at the end of its slot");
}

#[test]
fn random_verbs_break_no_invariant_on_postgres() {
    for seed in 1..=seeds().div_ceil(5) {
        let database = TestDatabase::postgres();
        run(live(database.url(), seed, None, false));
    }
}

#[test]
fn random_verbs_break_no_invariant_while_the_sessions_of_the_service_are_being_ended() {
    for seed in 1..=seeds().div_ceil(5) {
        let database = TestDatabase::postgres();
        run(async {
            // The decider's session, which holds its lease, among them.
            let ender = SessionEnder::start(database.url(), "bespeak%", seed);
            live(database.url(), seed, Some(&ender), false).await;
            let ended = ender.finish().await;
            assert!(ended > 0, "seed {seed}: no session was ended");
        });
    }
}

/// How long the service may take to answer where its sessions are being ended.
const RECOVERY: Duration = Duration::from_mins(1);
/// Between two tries of a client, after the answer that the service cannot answer.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until the service can answer: where nothing is broken, at once.
async fn patient<T, A: Future<Output = Result<T, Error>>>(mut ask: impl FnMut() -> A) -> Result<T, Error> {
    let asked = Instant::now();
    loop {
        match ask().await {
            Err(Error::Unavailable) if asked.elapsed() < RECOVERY => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

/// Waits until a planner is in step with its store: it may just be taking its lease again.
async fn in_step(planner: &Planner, seed: u64) {
    let what = format!("a planner that is in step, seed {seed}");
    eventually(&what, RECOVERY, async || planner.is_ready().then_some(())).await;
}

/// A service without its doors.
struct Domain {
    store: Store,
    planner: Planner,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Domain {
    async fn start(url: &str, clock: &Clock, is_golden: bool) -> Self {
        let store = Store::open(url).await.expect("the database is there");
        let lease = store.acquire_lease().await.expect("no other process decides");
        let mut settings = Settings::new(vec![Resource::new("local", "local", CAPACITY)], 5_000);
        if is_golden {
            settings.improving.least_gain.seconds = 1_000_000;
        }
        settings.pricing = Some(pricing());
        settings.proposals.moves_max = 3;
        // Short enough that there is a place after that and before the horizon.
        settings.negotiation.hold = 40;
        settings.failures.repair = 300;
        settings.overruns.percent = 60;
        settings.overruns.saving = [(("sleep".to_owned(), None), 2)].into();
        let stop = CancellationToken::new();
        let (planner, task) = Planner::start(settings, store.clone(), lease, clock.clone(), stop.clone())
            .await
            .expect("the stored data make a plan");
        Self {
            store,
            planner,
            stop,
            task,
        }
    }

    async fn stop(self) {
        assert_nothing_impossible(&self.planner).await;
        self.stop.cancel();
        self.task.await.expect("the planner does not panic");
        self.store.close().await;
    }
}

/// The answers that clients got.
#[derive(Default)]
struct Told {
    accepted: Vec<Agreement>,
    terminated: BTreeSet<Uuid>,
}

/// Answers with how much work was saved at the end of its slot.
async fn live(url: &str, seed: u64, ender: Option<&SessionEnder>, is_golden: bool) -> usize {
    let mut random = Random::new(seed);
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let mut domain = Domain::start(url, &clock, is_golden).await;
    let mut told = Told::default();
    for verb in 0..VERBS_MAX {
        if verb >= VERBS && told.accepted.len() >= ACCEPTED_MIN {
            break;
        }
        if let Some(ender) = ender
            && random.below(2) == 0
        {
            ender.end();
        }
        // The golden ones have had no more verbs.
        match random.below(if is_golden { 10 } else { 12 }) {
            0..=3 => match domain.planner.place(proposal(&mut random, clock.now())).await {
                Ok(accepted) => told.accepted.push(accepted.agreement),
                Err(Error::Refused(_)) => {}
                Err(Error::Unavailable) if ender.is_some() => {}
                Err(error) => panic!("seed {seed}, verb {verb}: {error}"),
            },
            4 => terminate(&domain.planner, &mut told, &mut random).await,
            5..=7 => pass(&domain.planner, &clock, &mut random).await,
            8 => end_something(&domain.planner, &clock, &mut random, ender.is_some()).await,
            10 | 11 => change_something(&domain.planner, &mut random).await,
            _ => {
                domain.stop().await;
                if let Some(ender) = ender {
                    ender.calm().await;
                }
                // The service may be down for a while; running work goes on meanwhile.
                let down = random.seconds(3) * 40 * MICROS_PER_SECOND;
                clock.set(clock.micros() + down);
                domain = Domain::start(url, &clock, is_golden).await;
            }
        }
        if let Some(ender) = ender {
            ender.calm().await;
        }
        if verb % CHECKED_EVERY == 0 {
            check(&domain.store, &format!("seed {seed}, after verb {verb}")).await;
        }
    }
    check(&domain.store, &format!("seed {seed}, at the end")).await;
    let saved = check_told(&domain.store, &told, seed).await;
    in_step(&domain.planner, seed).await;
    if is_golden {
        assert_golden(&format!("domain {seed}"), &trail_of(&domain.store).await);
    }
    domain.stop().await;
    saved
}

/// Asserts that the stored data has no fault.
async fn check(store: &Store, when: &str) {
    let findings = verify(store).await;
    assert!(
        findings.is_empty(),
        "{when}:\n{findings:#?}\n{}",
        trail_of(store).await
    );
}

/// The findings; a session may have been ended in the moment before.
async fn verify(store: &Store) -> Vec<Finding> {
    for _ in 0..10 {
        match store.verify().await {
            Ok(findings) => return findings,
            Err(store::Error::Unavailable(_)) => {}
            Err(error) => panic!("it can be read: {error}"),
        }
    }
    panic!("the store does not recover");
}

async fn terminate(planner: &Planner, told: &mut Told, random: &mut Random) {
    let Some(one) = random.choose(&told.accepted) else {
        return;
    };
    let foreign = patient(|| planner.terminate(Termination::of(one.id, Some("chemistry".into())))).await;
    assert!(matches!(foreign, Err(Error::NotFound)), "{foreign:?}");
    match patient(|| planner.terminate(Termination::of(one.id, Some("physics".into())))).await {
        Ok(_) => drop(told.terminated.insert(one.id)),
        Err(Error::NotFound | Error::Conflict(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// A resource comes, grows, shrinks, is retired or brought back.
async fn change_something(planner: &Planner, random: &mut Random) {
    let name = *random.choose(&["local", "local", "other"]).expect("three");
    let verb = match random.below(6) {
        0 => ResourceVerb::Retire,
        1 | 2 => ResourceVerb::Restore,
        _ => ResourceVerb::Put(ResourceWish {
            capacity: Some(1 + u32::try_from(random.below(6)).expect("small")),
            ..ResourceWish::default()
        }),
    };
    let order = || ResourceOrder {
        id: Uuid::now_v7(),
        party: "operator".into(),
        name: name.into(),
        verb: verb.clone(),
        is_dry: false,
    };
    let changed = patient(|| planner.change_resource(order())).await;
    // Where its answer was lost it was done before.
    assert!(
        changed.is_ok() || name == "other" && changed == Err(Error::NotFound),
        "{verb:?} of {name}: {changed:?}"
    );
}

/// An acknowledged agreement is there with the window, size and duration that it was given; only additions of the provider lie
/// beyond. Answers with how many have had a piece more than was agreed.
async fn check_told(store: &Store, told: &Told, seed: u64) -> usize {
    let mut saved = 0;
    let accepted = told.accepted.len();
    assert!(accepted >= ACCEPTED_MIN, "seed {seed}: only {accepted} accepted");
    for one in &told.accepted {
        let stored = store.agreement(one.id).await.expect("it can be read");
        let stored = stored.unwrap_or_else(|| panic!("seed {seed}: {} is gone", one.id));
        let deadline = match stored.overrun() {
            0 => stored.deadline,
            _ => stored.deadline.min(one.deadline),
        };
        assert_eq!(
            (stored.ready, deadline, &stored.party),
            (one.ready, one.deadline, &one.party),
            "seed {seed}"
        );
        // Work that has lost its place may have got another of its sizes.
        let keeps = |of: &Agreement| !of.leeway.pieces_differ && of.leeway.shapes.is_empty();
        let size = |of: &Agreement| keeps(of).then_some((of.nodes(), of.duration));
        assert_eq!(size(&stored), size(one), "seed {seed}");
        if told.terminated.contains(&one.id) {
            let events = store.events(one.id).await.expect("they can be read");
            let asked = events
                .iter()
                .filter(|event| event.kind.word() == "terminating")
                .count();
            assert_eq!(asked, 1, "seed {seed}: {events:?}");
        }
        let more = stored.slots.pieces().len() > one.slots.pieces().len();
        assert!(
            stored.slots.pieces().len() == one.slots.pieces().len() || more && stored.overrun() > 0,
            "seed {seed}: {stored:?}"
        );
        saved += usize::from(more);
    }
    saved
}

/// A price list with every rule.
fn pricing() -> Pricing {
    let mut pricing = Pricing::flat(700_000, euro());
    pricing.busy = Fraction::percent(80);
    pricing.flexible = Discount {
        most: Fraction::percent(40),
        half: 50,
    };
    pricing.cancellation = Fraction::percent(10);
    pricing
}

fn euro() -> Currency {
    Currency::parse("EUR").expect("three capital letters")
}

/// Paid to the party: half of the price, and something for each minute.
fn penalties() -> Values {
    let amount = Worth::Amount(Money::new(1_234, euro()));
    let penalty = |worth, every| Compensation {
        worth,
        every,
        paid: 0,
    };
    Values {
        penalties: vec![
            penalty(Worth::PricePart(50_000_000), None),
            penalty(amount, Some(60)),
        ],
        ..Values::default()
    }
}

fn proposal(random: &mut Random, now: Time) -> Proposal {
    let runs = random.below(2) == 0;
    let cut = runs && random.below(2) == 0;
    // A request that may be cut is so long and comes so soon that it often is.
    let (duration, ready) = if cut {
        (30 + random.seconds(100), now)
    } else {
        (1 + random.seconds(60), now + random.seconds(200))
    };
    let nodes = 1 + u32::try_from(random.below(CAPACITY as usize)).expect("small");
    let scales = random.below(3) == 0;
    let fewest = if scales { 1 } else { nodes };
    let sizes = (fewest..=nodes).rev().map(|of| Shape {
        nodes: of,
        duration: duration * i64::from(nodes) / i64::from(of),
    });
    Proposal {
        expires: None,
        id: Uuid::now_v7(),
        party: "physics".into(),
        name: None,
        template: "advance-reservation".into(),
        shapes: sizes.collect(),
        scaling: if scales {
            Scaling::ReferenceRate
        } else {
            Scaling::Contract
        },
        preemption: cut.then(|| cuts(random, fewest < nodes)),
        filters: Vec::new(),
        barred: Vec::new(),
        fix_at_ppm: None,
        deviation_max: None,
        ready: Some(ready),
        deadline: Some(ready + duration + random.seconds(100)),
        job: runs.then(|| Job {
            application: "sleep".into(),
            arguments: vec!["1".into()],
            ..Job::default()
        }),
        guarantees: [
            ("START", "started le latest_start"),
            ("COMPLETION", "completed le deadline"),
        ]
        .map(|(name, objective)| Guarantee {
            name: name.into(),
            objective: objective.into(),
            qualifying_condition: None,
            state: GuaranteeState::NotDetermined,
            evidence: None,
            values: penalties(),
        })
        .to_vec(),
        choices: Vec::new(),
        initiator_id: None,
        document: "<offer/>".into(),
        idempotency: None,
        budget: None,
        spender: None,
    }
}

/// How work may be cut, where it scales each piece maybe to a size of its own.
fn cuts(random: &mut Random, scales: bool) -> Preemption {
    let mut some = || 2 + u32::try_from(random.below(4)).expect("small");
    let (pieces, parts) = (some(), some());
    let independent = scales && random.below(2) == 0;
    let preemption = Preemption::new(pieces, 1_000_000 / parts, independent).expect("a few parts");
    preemption.rounded(if independent { Rounding::Up } else { Rounding::Cuts })
}

/// Lets time pass, as the dispatcher would: due slots begin at their instant, running work saves itself or is stopped at its
/// slot's end.
async fn pass(planner: &Planner, clock: &Clock, random: &mut Random) {
    let until = clock.now() + random.seconds(60);
    loop {
        let running = patient(|| planner.running()).await.expect("it answers");
        let over = running.iter().map(|of| of.slot().end).min();
        let due = *planner.subscribe().borrow();
        let next = over.into_iter().chain(due).min().filter(|next| *next <= until);
        let now = next.unwrap_or(until).max(clock.now());
        // Somewhere in that second, for nothing happens on the dot.
        let within = random.seconds(900_000);
        clock.set((now.seconds() * MICROS_PER_SECOND + within).max(clock.micros()));
        if next.is_none() {
            return;
        }
        for one in running.into_iter().filter(|of| of.slot().end <= now) {
            let outcome = if one.has_more_slots() && random.below(8) > 0 {
                RunOutcome::Checkpointed
            } else {
                RunOutcome::Killed
            };
            end(planner, &one, outcome, clock.micros()).await;
        }
        for one in patient(|| planner.begin_due()).await.expect("it answers") {
            assert_eq!(one.service, ServiceState::Processing);
            assert!(
                one.slot().contains(Interval::of(clock.now(), 1)),
                "it begins inside its slot"
            );
            if random.below(4) > 0 {
                patient(|| planner.report_started(Run::from(&one), clock.micros()))
                    .await
                    .expect("it runs");
            }
        }
    }
}

/// One of the jobs that run ends by itself, or because it was terminated. The plan may be `read_anew` at any time.
async fn end_something(planner: &Planner, clock: &Clock, random: &mut Random, read_anew: bool) {
    let running = patient(|| planner.running()).await.expect("it answers");
    let Some(one) = random.choose(&running) else {
        return;
    };
    let outcomes = [
        RunOutcome::Completed,
        RunOutcome::Failed { exit: 1 },
        RunOutcome::Lost,
        RunOutcome::Terminated,
        RunOutcome::Checkpointed,
    ];
    let outcome = *random.choose(&outcomes).expect("not empty");
    end(planner, one, outcome, clock.micros()).await;
    let again = patient(|| planner.report_ended(Run::from(one), job_end(one, outcome, clock.micros()))).await;
    // A piece may wait for its next place.
    let goes_on = !one.slots.pieces().is_empty() && again == Ok(());
    // A plan that was read anew in between looks again for the rest of lost work.
    let is_lost = [Some(outcome), one.outcome].contains(&Some(RunOutcome::Lost));
    let looked_for = read_anew && is_lost && again == Ok(());
    assert!(
        goes_on || looked_for || again == Err(Error::NotFound),
        "it has ended with {outcome:?}: {again:?}, {one:?}"
    );
}

async fn end(planner: &Planner, one: &Agreement, outcome: RunOutcome, at: Micros) {
    let mut asked = 0;
    let ended = patient(|| {
        asked += 1;
        planner.report_ended(Run::from(one), job_end(one, outcome, at))
    })
    .await;
    // Asked again, it may have been answered before.
    assert!(
        ended.is_ok() || asked > 1 && ended == Err(Error::NotFound),
        "it ran: {ended:?}"
    );
}

fn job_end(one: &Agreement, outcome: RunOutcome, ended: Micros) -> JobEnd {
    JobEnd::new(outcome, one.slot_started(), ended)
}
