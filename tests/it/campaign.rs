//! The campaign: random domains under random verbs, from a seed. The clock is virtual. Parties ask, negotiate, accept and give up. Work
//! ends in every way. Nodes fail and come back, and resources come, grow, shrink and are retired. The provider proposes, and the
//! service is stopped and started. [`invariants`] says what holds at every moment. The same seed gives the same run.
//!
//! `BESPEAK_TEST_SEEDS` says how many seeds there are, and `BESPEAK_TEST_SEED` which is the first: with both a run is repeated.

mod http;
mod invariants;
mod negotiations;
mod requests;
mod states;
mod templates;
mod verbs;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::Range;
use std::time::{Duration, Instant};

use domain::agreement::{Agreement, NegotiationInstance, NegotiationOffer};
use domain::resources::Resource;
use planner::{BeginDue, Error, Settings, Suggestion};
use scheduler::{Rate, Time};
use tokio::sync::broadcast::Receiver;
use uuid::Uuid;

use crate::golden::{assert_golden, digests_in, trail_of};
use crate::support::harness::Domain;
use crate::support::random::Random;
use crate::support::sessions::SessionEnder;
use crate::support::stores::TestDatabase;
use crate::support::{deadline_here, run, size};

/// Seeds on SQLite, one for each aim.
const SEEDS: usize = AIMS.len();
/// Seeds with decisions that are compared with the golden ones. Their planners move nothing up between commands: that depends on how
/// long these take.
const GOLDEN: Range<u64> = 1..6;
/// Verbs of one run, where its aim is met in them.
const VERBS: usize = 90;
/// Verbs within which that is so at the latest.
const VERBS_MAX: usize = 20 * VERBS;
/// After how many verbs everything that is stored is checked, which takes longer than the verbs.
const CHECKED_EVERY: usize = 10;
/// The template of work that is run again when it is lost.
const RESTARTING: &str = "restarting";

/// The seeds of a part of the campaign: one for each `share` of all.
fn seeds(share: usize) -> Range<u64> {
    let number = |number: usize| u64::try_from(number).expect("not that many");
    let first = number(size("BESPEAK_TEST_SEED", 1));
    first..first + number(size("BESPEAK_TEST_SEEDS", SEEDS).div_ceil(share))
}

#[test]
fn random_verbs_break_no_invariant_on_sqlite() {
    let mut seen = BTreeSet::new();
    for seed in seeds(1) {
        let database = TestDatabase::sqlite();
        seen.extend(run(Campaign::live(database.url(), seed, None)));
    }
    let aims = BTreeSet::from(AIMS);
    assert!(
        seen.is_superset(&aims) || seeds(1).count() < SEEDS,
        "only {seen:?}"
    );
}

#[test]
fn random_verbs_break_no_invariant_on_postgres() {
    for seed in seeds(SEEDS) {
        let database = TestDatabase::postgres();
        run(Campaign::live(database.url(), seed, None));
    }
}

#[test]
fn random_verbs_break_no_invariant_while_the_sessions_of_the_service_are_being_ended() {
    for seed in seeds(SEEDS) {
        let database = TestDatabase::postgres();
        run(async {
            // The decider's session, which holds its lease, among them.
            let ender = SessionEnder::start(database.url(), "bespeak%", seed);
            Campaign::live(database.url(), seed, Some(&ender)).await;
            let ended = ender.finish().await;
            assert!(ended > 0, "seed {seed}: no session was ended");
        });
    }
}

/// Events that have to happen, so that a run without events is not taken for one in which all goes well. The seeds take turns in them;
/// random choices lean to the place where the event happens, and the run goes on until it has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Aim {
    /// Work is lost with its nodes.
    Lost,
    /// An agreement gets another place because its nodes failed.
    Moved,
    /// There is no other place.
    Broken,
    /// Work is planned in pieces.
    InPieces,
    /// Lost work is to be run again.
    Restarted,
    /// Work goes on on nodes that leave their resource.
    Leaving,
    /// Work goes on on a resource that is retired.
    Retiring,
    /// Work that was not over is saved at the end of its slot, and goes on in another one.
    Saved,
    /// The provider has proposed something.
    Proposed,
    /// An offer has become an agreement.
    Accepted,
    /// An offer has become an agreement in place of an earlier one.
    Changed,
}

const AIMS: [Aim; 11] = [
    Aim::Lost,
    Aim::Moved,
    Aim::Broken,
    Aim::InPieces,
    Aim::Restarted,
    Aim::Leaving,
    Aim::Retiring,
    Aim::Saved,
    Aim::Proposed,
    Aim::Accepted,
    Aim::Changed,
];

/// How long the service may take to answer where its sessions are being ended.
const RECOVERY: Duration = Duration::from_mins(1);
/// Between two tries of a client, after the answer that the service cannot answer.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until the service can answer: where nothing is broken, at once.
async fn patient<T, A: Future<Output = Result<T, Error>>>(mut ask: impl FnMut() -> A) -> Result<T, Error> {
    let asked = Instant::now();
    loop {
        match ask().await {
            Err(Error::Unavailable) if asked.elapsed() < deadline_here(RECOVERY) => {
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}

/// The resources of a seed: one, so that requests meet each other, or several.
fn resources(seed: u64) -> Vec<Resource> {
    if seed.is_multiple_of(2) {
        return vec![Resource::new("local", "local", 4)];
    }
    let fast = Resource {
        rate: Rate::from_millionths(1_500_000).expect("not zero"),
        ..Resource::new("fast", "local", 3)
    };
    vec![
        Resource::new("local", "local", 4),
        fast,
        Resource::new("third", "local", 2),
    ]
}

fn settings(seed: u64) -> Settings {
    let mut settings = Settings::new(resources(seed), 5_000);
    if GOLDEN.contains(&seed) {
        settings.improving.least_gain.seconds = 1_000_000;
    }
    settings.pricing = Some(requests::pricing());
    settings.proposals.moves_max = 3;
    // Short enough that there is a place after that and before the horizon.
    settings.negotiation.hold = 40;
    settings.failures.repair = 2 * invariants::AHEAD;
    settings.failures.settle = 20;
    settings.restarting = [RESTARTING.to_owned()].into();
    settings.overruns.percent = 60;
    settings.overruns.saving = [(("sleep".to_owned(), None), 2)].into();
    settings
}

/// The answers that clients got.
#[derive(Default)]
struct ClientAnswers {
    /// The agreements as they were made.
    accepted: BTreeMap<Uuid, Agreement>,
    terminated: BTreeSet<Uuid>,
    negotiations: Vec<NegotiationInstance>,
    offers: Vec<NegotiationOffer>,
    /// The offers that must be there to be accepted until they expire.
    standing: BTreeSet<Uuid>,
    /// The agreements made of offers.
    made: BTreeMap<Uuid, Uuid>,
}

/// A run from one seed.
struct Campaign<'a> {
    seed: u64,
    aim: Aim,
    random: Random,
    domain: Domain,
    suggestions: Receiver<Suggestion>,
    told: ClientAnswers,
    seen: BTreeSet<Aim>,
    ender: Option<&'a SessionEnder>,
}

impl Drop for Campaign<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("BESPEAK_TEST_SEED={} BESPEAK_TEST_SEEDS=1 repeats it", self.seed);
        }
    }
}

impl<'a> Campaign<'a> {
    /// Lives through the verbs of a seed; what has happened.
    async fn live(url: &'a str, seed: u64, ender: Option<&'a SessionEnder>) -> BTreeSet<Aim> {
        let domain = Domain::start(url, settings(seed)).await;
        let mut campaign = Self {
            seed,
            aim: AIMS[usize::try_from(seed).expect("few") % AIMS.len()],
            random: Random::new(seed),
            suggestions: domain.planner.subscribe_suggestions(),
            domain,
            told: ClientAnswers::default(),
            seen: BTreeSet::new(),
            ender,
        };
        for verb in 0..VERBS_MAX {
            if verb >= VERBS && campaign.is_met() {
                break;
            }
            campaign.step().await;
            let when = format!("seed {seed}, after verb {verb}");
            campaign.check(verb, &when).await;
        }
        // Among very many seeds there are some in which it cannot happen any more.
        let is_met = campaign.is_met() || seed > SEEDS as u64;
        assert!(
            is_met,
            "seed {seed}: {:?} does not happen in {VERBS_MAX} verbs",
            campaign.aim
        );
        let when = format!("seed {seed}, at the end");
        campaign.check_all(&when).await;
        campaign.check_told(&when).await;
        campaign.check_is_in_step().await;
        if GOLDEN.contains(&seed) && url.starts_with("sqlite:") {
            let trail = trail_of(&campaign.domain.store).await;
            assert_golden(
                &digests_in("golden.txt"),
                &BTreeMap::from([(format!("campaign {seed}"), trail)]),
            );
        }
        campaign.domain.end().await;
        std::mem::take(&mut campaign.seen)
    }

    /// Whether enough has happened.
    fn is_met(&self) -> bool {
        self.seen.contains(&self.aim) || self.ender.is_some() && !self.told.accepted.is_empty()
    }

    fn saw(&mut self, aim: Aim, happened: bool) {
        if happened {
            self.seen.insert(aim);
        }
    }

    fn now(&self) -> Time {
        self.domain.clock.now()
    }

    /// One verb. Where sessions are being ended, those of a negotiation, which are not said twice, are left out.
    async fn step(&mut self) {
        if let Some(ender) = self.ender
            && self.random.below(2) == 0
        {
            ender.end();
        }
        let verbs = if self.ender.is_some() { 15 } else { 33 };
        match self.random.below(verbs) {
            0..=3 => self.place("physics").await,
            4 => self.terminate().await,
            5..=7 => self.pass().await,
            8 => self.end_something().await,
            9 => self.restart().await,
            10 | 11 => self.change_resource().await,
            12..=14 => self.fail().await,
            15 | 16 => self.initiate().await,
            17..=22 => self.bargain().await,
            23..=26 => self.accept().await,
            27 => self.reject().await,
            28 => self.end_negotiation().await,
            // A party in its way may be asked to go elsewhere.
            _ => self.place("biology").await,
        }
        match self.ender {
            Some(ender) => ender.calm().await,
            None => self.propose().await,
        }
    }

    /// The service may be down for a while; running work goes on meanwhile.
    async fn restart(&mut self) {
        if let Some(ender) = self.ender {
            ender.calm().await;
        }
        let down = self.random.seconds(3) * 40;
        self.domain.restart(settings(self.seed), down).await;
        self.suggestions = self.domain.planner.subscribe_suggestions();
        // The first step of a dispatcher.
        patient(|| self.domain.planner.send(BeginDue))
            .await
            .expect("it answers");
    }
}
