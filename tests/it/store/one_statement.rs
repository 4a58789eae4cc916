//! On PostgreSQL a batch of independent statements is written by one statement: it leaves what one statement after the other leaves, and
//! nothing where the lease is lost.

use domain::agreement::{
    Account, Agreement, Currency, EventKind, Money, NegotiationInstance, NegotiationOffer, NegotiationRole,
    OfferState, Posting, PostingKind,
};
use domain::change::{Change, Idempotent};
use scheduler::{Interval, Time};
use sqlx::{Connection, PgConnection};
use store::{Error, Invariant, Store};
use uuid::Uuid;

use super::{RESOURCE, agreement, create, decide, event, tamper};
use crate::support::block_on;
use crate::support::fixture::dump;
use crate::support::random::Random;
use crate::support::stores::TestDatabase;

/// Has the next batch be written statement by statement, as after a batch of which it was found out what had become of it.
pub(super) async fn unsettle(url: &str) {
    tamper(url, "UPDATE lease SET settled = settled + 1").await;
}

/// What is stored, but for the last batch and how often it was asked for.
async fn rows(url: &str) -> String {
    tamper(url, "UPDATE lease SET batch = NULL, settled = 0").await;
    dump(url).await.expect("the rows can be read")
}

/// The number of a row's statement in its transaction.
async fn number_of_statement(connection: &mut PgConnection, one: &Agreement) -> i64 {
    let number =
        sqlx::query_scalar("SELECT cmin::text::bigint FROM agreement_documents WHERE agreement = $1");
    number
        .bind(one.id)
        .fetch_one(connection)
        .await
        .expect("the row is there")
}

#[test]
fn a_batch_that_is_one_statement_leaves_what_its_statements_leave() {
    let databases = [TestDatabase::postgres(), TestDatabase::postgres()];
    let [at_once, in_turn] = databases.each_ref().map(|database| database.url().to_owned());
    block_on(async move {
        let (one, one_lease) = decide(&at_once).await;
        let (other, other_lease) = decide(&in_turn).await;
        let (mut random, mut story) = (Random::new(3), Story::default());
        let mut outcomes = [0, 0];
        for round in 0..120 {
            let mut next = story.clone();
            let batch: Vec<_> = (0..=random.below(5))
                .map(|_| next.random_change(&mut random))
                .collect();
            let written = one.commit(one_lease.epoch, &batch).await;
            unsettle(&in_turn).await;
            let same = other.commit(other_lease.epoch, &batch).await;
            let words = |told: &Result<(), Error>| told.as_ref().err().map(ToString::to_string);
            assert_eq!(words(&written), words(&same), "round {round}: {batch:?}");
            outcomes[usize::from(written.is_ok())] += 1;
            if written.is_ok() {
                story = next;
            }
        }
        assert!(
            outcomes[0] > 10 && outcomes[1] > 60,
            "both kinds must occur: {outcomes:?}"
        );
        assert_eq!(rows(&at_once).await, rows(&in_turn).await);
    });
}

#[test]
fn a_batch_is_one_statement_unless_its_statements_depend_on_each_other() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (store, lease) = decide(&url).await;
        let mut connection = PgConnection::connect(&url).await.expect("the server is there");
        let (one, two, three) = (agreement("a"), agreement("a"), agreement("a"));
        let batch = [create(&one)];
        store.commit(lease.epoch, &batch).await.expect("it is right");
        let before = number_of_statement(&mut connection, &one).await;
        let batch = [create(&two), moved(&one)];
        store.commit(lease.epoch, &batch).await.expect("it is right");
        let at_once = number_of_statement(&mut connection, &two).await;
        assert_eq!(before, at_once);
        let batch = [create(&three), moved(&three)];
        store.commit(lease.epoch, &batch).await.expect("it is right");
        let in_turn = number_of_statement(&mut connection, &three).await;
        assert!(in_turn > at_once, "{in_turn} and {at_once}");
    });
}

#[test]
fn a_batch_of_a_lost_lease_writes_nothing_and_one_behind_another_line_goes_on_from_it() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (store, lease) = decide(&url).await;
        let first = create(&agreement("a"));
        store.commit(lease.epoch, &[first]).await.expect("it is right");
        // Another process that decides has appended to the trail.
        let other = Store::open(&url).await.expect("the server is there");
        let second = create(&agreement("a"));
        other.commit(lease.epoch, &[second]).await.expect("it is right");
        let third = create(&agreement("a"));
        store.commit(lease.epoch, &[third]).await.expect("it goes on");
        let findings = store.verify().await.expect("it can be read");
        assert!(
            findings.iter().all(|one| one.invariant != Invariant::I10),
            "{findings:?}"
        );
        let before = rows(&url).await;
        let late = store.commit(lease.epoch - 1, &[create(&agreement("a"))]).await;
        assert!(matches!(late, Err(Error::LeaseLost)), "{late:?}");
        assert_eq!(rows(&url).await, before);
        // The line that it knows to be the last is gone.
        tamper(
            &url,
            "UPDATE lease SET trail_number = 2, trail_hash = (SELECT hash FROM events WHERE number = 2)",
        )
        .await;
        let before = rows(&url).await;
        let gone_back = store.commit(lease.epoch, &[create(&agreement("a"))]).await;
        assert!(matches!(gone_back, Err(Error::Damaged(_))), "{gone_back:?}");
        assert_eq!(rows(&url).await, before);
    });
}

/// The change that has an agreement end a second later.
fn moved(one: &Agreement) -> Change {
    let mut changed = Agreement {
        version: one.version + 1,
        ..one.clone()
    };
    changed.slots[0].placement.end = changed.slots[0].placement.end + 1;
    Change::UpdateAgreement {
        agreement: Box::new(changed),
        events: vec![event(EventKind::Moved)],
    }
}

/// What random batches have made so far.
#[derive(Default, Clone)]
struct Story {
    agreements: Vec<Agreement>,
    negotiations: Vec<NegotiationInstance>,
    offers: Vec<NegotiationOffer>,
    bound: i64,
    asked: usize,
}

impl Story {
    /// A change of any of the kinds that offers, negotiations, acceptances and starts are made of; a few do not fit.
    fn random_change(&mut self, random: &mut Random) -> Change {
        let agreement_at = random.below(self.agreements.len().max(1));
        let one = self.agreements.get(agreement_at).cloned();
        match (random.below(12), one) {
            (0..=2, _) | (_, None) => {
                let made = agreement("a");
                self.agreements.push(made.clone());
                create(&made)
            }
            (3..=4, Some(one)) => {
                let change = moved(&one);
                if let Change::UpdateAgreement { agreement, .. } = &change {
                    // Now and then the version stays one that is stale.
                    if random.below(8) > 0 {
                        self.agreements[agreement_at] = (**agreement).clone();
                    }
                }
                change
            }
            (5, Some(_)) => {
                let negotiation = NegotiationInstance {
                    id: Uuid::now_v7(),
                    party: "a".into(),
                    agreement: None,
                    created: 1_000_000,
                    expires: Time(9_000),
                    ended: None,
                    proposed: None,
                };
                self.negotiations.push(negotiation.clone());
                Change::CreateNegotiation {
                    negotiation,
                    document: "<opening/>".into(),
                }
            }
            (6, Some(one)) => match random.choose(&self.negotiations) {
                Some(negotiation) => {
                    let offer = counter_offer(negotiation.id);
                    self.offers.push(offer.clone());
                    Change::CreateOffer {
                        offer: Box::new(offer),
                        document: "<offer/>".into(),
                    }
                }
                None => Change::DecideAgreement(one.id),
            },
            (7, Some(one)) => match random.choose(&self.offers) {
                Some(offer) => Change::UpdateOffer(Box::new(NegotiationOffer {
                    state: OfferState::Acceptable,
                    released: offer.held.map(|held| held + 1),
                    ..offer.clone()
                })),
                None => Change::AwaitDecision {
                    agreement: one.id,
                    acceptance: None,
                    offer: None,
                    spender: None,
                },
            },
            (8, Some(_)) => {
                self.asked += 1;
                // Now and then a key that is taken.
                let key = self.asked - usize::from(random.below(6) == 0);
                Change::RememberRequest(Idempotent {
                    party: "a".into(),
                    key: key.to_string(),
                    request_hash: "digest".into(),
                    answer: "answer".into(),
                    created: 1_000_000,
                })
            }
            (9, Some(one)) => Change::Post(Box::new(Posting {
                id: Uuid::now_v7(),
                at: 1_000_000,
                agreement: one.id,
                kind: PostingKind::Price,
                from: Account::Party("a".into()),
                to: Account::Provider,
                amount: Money::new(7, Currency::parse("EUR").expect("a currency")),
                detail: "its price".into(),
            })),
            (10, Some(one)) => {
                // Now and then where the last one is.
                self.bound += random.seconds(4);
                let start = Time(10 * self.bound);
                Change::BindNodes {
                    agreement: one.id,
                    resource: RESOURCE.into(),
                    nodes: vec![0, 1],
                    interval: Interval::new(start, start + 10),
                }
            }
            (_, Some(one)) => Change::ReleaseNodes {
                agreement: one.id,
                end: Time(10 * self.bound),
            },
        }
    }
}

/// A counter offer for which nodes are held.
fn counter_offer(negotiation: Uuid) -> NegotiationOffer {
    let id = Uuid::now_v7();
    NegotiationOffer {
        id,
        negotiation,
        name: id.to_string(),
        parent: None,
        creator: NegotiationRole::Responder,
        state: OfferState::Acceptable,
        created: 1_000_000,
        expires: None,
        terms: None,
        refusal: None,
        held: Some(1_000_000),
        released: None,
        agreement: None,
    }
}
