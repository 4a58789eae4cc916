//! Debts: prices, fees, penalties and rewards are posted by themselves, once, and the ledger balances.

use domain::agreement::{
    Account, Compensation, CompensationValue, Currency, Guarantee, GuaranteeState, JobEnd, Limit, Money,
    Obligated, Posting, PostingKind, Run, RunOutcome, Values,
};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use domain::resources::Resource;
use planner::{Failures, Pricing, ReportEnded, ReportStarted, Request, Settings, SubmitPending, Terminate};
use scheduler::Fraction;
use serde_json::json;
use store::{Finding, Invariant, agreements, ledger};
use uuid::Uuid;

use crate::configuration::serve;
use crate::store::{agreement, create, decide, tamper};
use crate::support::harness::{self, Domain, NOW, guarantee};
use crate::support::offers::{Offer, file, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, poll_until};

on_both_engines!(
    a_forged_ledger_is_found,
    accounts_show_what_was_posted_to_those_whose_it_is,
    balances_and_entries_are_of_one_state;
    a_release_on_postgres:
    a_late_start_is_violated_when_its_time_comes_and_pays_by_the_minute,
    what_ends_before_its_slot_pays_a_fee_and_what_was_lost_pays_nothing,
    what_the_provider_takes_back_costs_nothing_and_pays_unless_that_is_excused,
    who_is_over_his_quota_of_files_pays_for_his_slot_and_is_owed_nothing,
    each_side_pays_for_what_it_owes,
    a_guarantee_is_given_once_however_often_an_offer_lists_it,
    what_the_requester_owes_cannot_be_left_out,
);

fn eur(micros: i64) -> Money {
    Money::new(micros, Currency::parse("EUR").expect("three capital letters"))
}

/// A price list of a euro a node-hour and a tenth for ending an agreement.
fn settings(failures: Failures) -> Settings {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 86_400);
    let mut pricing = Pricing::flat(1_000_000, eur(0).currency);
    pricing.cancellation = Fraction::percent(10);
    (settings.pricing, settings.failures) = (Some(pricing), failures);
    settings
}

/// A planner with this price list.
async fn start(url: &str) -> Domain {
    Domain::start(url, settings(Failures::default())).await
}

/// The balance of the party's account, in millionths of a euro, once everything balances.
async fn balance(domain: &Domain) -> i64 {
    domain.assert_verified().await;
    let (all, _) = ledger::ledger_of_account(&domain.store, None, None, 1)
        .await
        .expect("it can be read");
    assert_eq!(all.iter().map(|each| each.amount.micros).sum::<i64>(), 0);
    let party = Account::Party("physics".to_owned());
    let own = all.into_iter().find(|each| each.account == party);
    own.map_or(0, |each| each.amount.micros)
}

/// A node for ten minutes, in a window from 100 to 1000 seconds from the start of the test.
fn proposal(guarantees: Vec<Guarantee>) -> Request {
    Request {
        guarantees,
        ..harness::proposal(1, 600, 100..1_000)
    }
}

/// The price of such a proposal, in millionths of a euro.
const PRICE: i64 = 166_667;

fn penalty(worth: CompensationValue, every: Option<i64>) -> Values {
    Values {
        penalties: vec![Compensation {
            worth,
            every,
            paid: 0,
        }],
        ..Values::default()
    }
}

/// The end of a job; one that is lost had begun.
fn ended(outcome: RunOutcome, at: i64) -> JobEnd {
    JobEnd::new(
        outcome,
        (outcome == RunOutcome::Lost).then_some((NOW + at - 1) * MICROS_PER_SECOND),
        (NOW + at) * MICROS_PER_SECOND,
    )
}

async fn a_late_start_is_violated_when_its_time_comes_and_pays_by_the_minute(url: String) {
    let mut domain = start(&url).await;
    let start = penalty(CompensationValue::Amount(eur(1_000)), Some(60));
    let completion = penalty(CompensationValue::PricePart(50_000_000), None);
    let id = domain
        .place(proposal(vec![
            guarantee("START", "started ge ready and started le latest_start", start),
            guarantee("COMPLETION", "completed le deadline", completion),
        ]))
        .await
        .id;
    domain.pass(104).await;
    assert_eq!(
        balance(&domain).await,
        0,
        "a start so shortly after the planned one is in time"
    );
    domain.restart(settings(Failures::default()), 0).await;
    domain.pass(130).await;
    let late = domain.stored(id).await;
    assert_eq!(late.guarantees[0].state, GuaranteeState::Violated);
    assert_eq!(late.guarantees[1].state, GuaranteeState::NotDetermined);
    let since = late.guarantees[0].values.determined.expect("it was found") / MICROS_PER_SECOND - NOW;
    assert!((105..=120).contains(&since), "found at {since}");
    assert_eq!(balance(&domain).await, 1_000);
    domain.pass(since + 59).await;
    assert_eq!(balance(&domain).await, 1_000);
    domain.pass(since + 121).await;
    assert_eq!(balance(&domain).await, 3_000, "once, and for each of two minutes");
    // Postings that were due while the service was down are made later.
    domain.restart(settings(Failures::default()), 0).await;
    domain.clock.set((NOW + since + 241) * MICROS_PER_SECOND);
    domain.pass(since + 241).await;
    assert_eq!(balance(&domain).await, 5_000);
    domain.clock.set((NOW + 700) * MICROS_PER_SECOND);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: ended(RunOutcome::Killed, 700),
        })
        .await
        .expect("it is stored");
    let paid = 1_000 * (1 + (700 - since) / 60);
    // The price is owed for the slot, and half of it is paid back, rounded to the nearest millionth.
    assert_eq!(balance(&domain).await, paid - PRICE + 83_334);
    domain.pass(5_000).await;
    assert_eq!(
        balance(&domain).await,
        paid - PRICE + 83_334,
        "an agreement that is over pays no more"
    );
    let told = agreements::events_of_agreement(&domain.store, id)
        .await
        .expect("they can be read");
    let told: Vec<&str> = told.iter().map(|event| event.kind.word()).collect();
    // The minutes until its end are paid with it.
    let ending = ["ended", "penalty", "assessed", "penalty", "charged", "closed"];
    assert!(told.ends_with(&ending), "{told:?}");
}

async fn what_ends_before_its_slot_pays_a_fee_and_what_was_lost_pays_nothing(url: String) {
    let domain = start(&url).await;
    let early = domain.place(proposal(Vec::new())).await;
    assert_eq!(early.price, Some(eur(PRICE)));
    let order = || Terminate::of(early.id, None);
    domain.planner.send(order()).await.expect("it is stored");
    assert_eq!(balance(&domain).await, -16_667, "a tenth of the price");
    let half = penalty(CompensationValue::PricePart(50_000_000), None);
    let lost = domain
        .place(proposal(vec![guarantee(
            "COMPLETION",
            "completed le deadline",
            half,
        )]))
        .await;
    domain.pass(100).await;
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(lost.id),
            end: ended(RunOutcome::Lost, 100),
        })
        .await
        .expect("it is stored");
    assert_eq!(
        balance(&domain).await,
        83_334 - 16_667,
        "no price, and the penalty"
    );
}

async fn what_the_provider_takes_back_costs_nothing_and_pays_unless_that_is_excused(url: String) {
    let mut domain = start(&url).await;
    for (taken_back_pays, penalties) in [(true, 2 * 83_334), (false, 0)] {
        let failures = Failures {
            taken_back_pays,
            ..Failures::default()
        };
        domain.restart(settings(failures), 0).await;
        let before = balance(&domain).await;
        let half = || penalty(CompensationValue::PricePart(50_000_000), None);
        let asked = || proposal(vec![guarantee("COMPLETION", "completed le deadline", half())]);
        let (waits, runs) = (domain.place(asked()).await.id, domain.place(asked()).await.id);
        let take_back = |id| Terminate {
            by_provider: true,
            ..Terminate::of(id, None)
        };
        let taken = domain.planner.send(take_back(waits)).await;
        assert_eq!(taken.expect("it is stored").outcome, Some(RunOutcome::Lost));
        domain.pass(100).await;
        let taken = domain.planner.send(take_back(runs)).await.expect("it is stored");
        assert_eq!(taken.guarantees[0].state, GuaranteeState::Violated);
        assert_eq!(balance(&domain).await - before, penalties);
        let told = agreements::events_of_agreement(&domain.store, runs)
            .await
            .expect("they can be read");
        assert!(
            told.iter()
                .any(|event| event.detail.contains("has taken its time back")),
            "{told:?}"
        );
        // One that is not decided yet is ended as its party would end it.
        let pending = proposal(Vec::new());
        let pended = domain
            .planner
            .send(SubmitPending {
                proposal: pending.clone(),
                acceptance: None,
                offer: None,
            })
            .await;
        pended.expect("it is stored");
        let ended = domain.planner.send(take_back(pending.id)).await;
        assert_ne!(ended.expect("it is stored").outcome, Some(RunOutcome::Lost));
    }
}

async fn who_is_over_his_quota_of_files_pays_for_his_slot_and_is_owed_nothing(url: String) {
    let domain = start(&url).await;
    let half = || penalty(CompensationValue::PricePart(50_000_000), None);
    let reward = Values {
        rewards: half().penalties,
        ..half()
    };
    let id = domain
        .place(proposal(vec![
            guarantee("START", "started ge ready and started le latest_start", half()),
            guarantee("COMPLETION", "completed le deadline", reward),
        ]))
        .await
        .id;
    domain.pass(100).await;
    let turned_away = ended(RunOutcome::Exceeded { limit: Limit::Files }, 100);
    let told = domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: turned_away,
        })
        .await;
    told.expect("it is stored");
    assert_eq!(
        balance(&domain).await,
        -PRICE,
        "the slot was kept for it, and nothing it had was broken"
    );
    domain.pass(5_000).await;
    assert_eq!(balance(&domain).await, -PRICE);
    for guarantee in domain.stored(id).await.guarantees {
        assert_eq!(guarantee.state, GuaranteeState::NotDetermined, "{guarantee:?}");
    }
}

async fn each_side_pays_for_what_it_owes(url: String) {
    let domain = start(&url).await;
    let modest = Values {
        obligated: Obligated::Consumer,
        ..penalty(CompensationValue::Amount(eur(700)), None)
    };
    let prompt = Values {
        rewards: vec![Compensation {
            worth: CompensationValue::Amount(eur(50)),
            every: None,
            paid: 0,
        }],
        ..penalty(CompensationValue::Amount(eur(1)), None)
    };
    let mut unmeant = guarantee(
        "NEVER",
        "nodes gt 9",
        penalty(CompensationValue::Amount(eur(9)), None),
    );
    unmeant.qualifying_condition = Some("nodes gt 9".into());
    let id = domain
        .place(proposal(vec![
            guarantee("MODEST", "nodes lt 1", modest),
            guarantee("PROMPT", "started le latest_start", prompt),
            unmeant,
        ]))
        .await
        .id;
    domain.pass(100).await;
    let at = (NOW + 101) * MICROS_PER_SECOND;
    domain
        .planner
        .send(ReportStarted {
            run: Run::first(id),
            at,
        })
        .await
        .expect("it is stored");
    assert_eq!(balance(&domain).await, -700 - 50);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: ended(RunOutcome::Completed, 110),
        })
        .await
        .expect("it is stored");
    assert_eq!(balance(&domain).await, -750 - PRICE);
}

async fn a_forged_ledger_is_found(url: String) {
    let damage = [
        (
            "UPDATE ledger SET amount_micros = amount_micros + 1 WHERE account = 'provider'",
            "does not balance",
        ),
        (
            "DELETE FROM ledger WHERE account = 'provider'",
            "does not balance",
        ),
        (
            "UPDATE ledger SET amount_micros = 2 * amount_micros",
            "was charged",
        ),
        ("DELETE FROM ledger", "was charged"),
        (
            "UPDATE agreements SET price_micros = 1",
            "its price is 0.000001 EUR",
        ),
        ("UPDATE ledger SET kind = 'penalty'", "paid in penalty"),
        (
            "UPDATE ledger SET account = 'party:chemistry' WHERE account <> 'provider'",
            "party:chemistry",
        ),
        (
            "UPDATE ledger_days SET credits_micros = credits_micros + 1",
            "are not those of its entries",
        ),
    ];
    let domain = start(&url).await;
    let id = domain.place(proposal(Vec::new())).await.id;
    domain.pass(100).await;
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: ended(RunOutcome::Completed, 110),
        })
        .await
        .expect("it is stored");
    assert_eq!(balance(&domain).await, -PRICE);
    let whole = "CREATE TABLE kept AS SELECT * FROM ledger; CREATE TABLE kept_days AS SELECT * FROM ledger_days; CREATE TABLE agreed AS SELECT id, price_micros FROM agreements";
    tamper(&url, whole).await;
    for (sql, said) in damage {
        tamper(&url, sql).await;
        let found: Vec<Finding> = domain.store.verify().await.expect("it can be read");
        let names = |finding: &Finding| finding.invariant == Invariant::I9 && finding.what.contains(said);
        assert!(found.iter().any(names), "{sql}: {found:?}");
        let mended = "DELETE FROM ledger; INSERT INTO ledger SELECT * FROM kept; \
            DELETE FROM ledger_days; INSERT INTO ledger_days SELECT * FROM kept_days; \
            UPDATE agreements SET price_micros = (SELECT a.price_micros FROM agreed a WHERE a.id = agreements.id)";
        tamper(&url, mended).await;
        assert_eq!(balance(&domain).await, -PRICE);
    }
}

/// Four nodes at a hundred euros an hour.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"100\"\n";

async fn accounts_show_what_was_posted_to_those_whose_it_is(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let (physics, chemistry) = (
        server.client_with(&server.key_for("physics", "consumer")),
        server.client_with(&server.key_for("chemistry", "consumer")),
    );
    let start = now() + 1;
    let offer = Offer::reserve(2, 1).within(start, start + 100).guaranteed_xml();
    let id = physics.post("/agreements", offer).await.created();
    let view = physics.get_json(&format!("/agreements/{id}")).await;
    // Two nodes for a second, to the nearest millionth.
    assert_eq!(view["price"]["amount"], "0.055556");
    assert_eq!(
        view["guarantees"][1]["values"],
        json!([{ "kind": "penalty", "amount": { "amount": "0.027778", "currency": "EUR" }, "paid": 0 }])
    );
    let deadline = std::time::Duration::from_secs(30);
    let flat = eventually("the price", deadline, async || {
        let flat = physics.get_json("/accounts").await;
        // Balances and entries are read in turn.
        let posted = ["accounts", "entries"]
            .iter()
            .all(|part| flat[part].as_array().is_some_and(|all| !all.is_empty()));
        posted.then_some(flat)
    })
    .await;
    let owed = json!({ "amount": "-0.055556", "currency": "EUR" });
    assert_eq!(
        flat["accounts"],
        json!([{ "account": "party:physics", "balance": owed }])
    );
    assert_eq!(
        (&flat["entries"][0]["kind"], &flat["entries"][0]["amount"]),
        (&json!("price"), &owed)
    );
    assert_eq!(flat["entries"][0]["agreement"], json!(id));
    assert_eq!(chemistry.get_json("/accounts").await["accounts"], json!([]));
    let all = server.client().get_json("/accounts").await;
    assert_eq!(
        all["accounts"].as_array().map(Vec::len),
        Some(2),
        "the provider's and the party's"
    );
    assert_eq!(all["entries"].as_array().map(Vec::len), Some(1));
    let listed = server.run(&["ledger"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for said in ["provider", "0.055556 EUR", "-0.055556 EUR", &id.to_string()] {
        assert!(listed.contains(said), "{said}: {listed}");
    }
    assert!(poll_until(deadline, || server.run(&["verify"]).status.success()));
    let wrong = physics.get("/accounts?after=nothing").await;
    assert_eq!(wrong.status.as_u16(), 400, "{wrong:?}");
}

async fn a_guarantee_is_given_once_however_often_an_offer_lists_it(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let client = server.client();
    let offer = Offer::reserve(1, 60).guaranteed_xml();
    let term = "<wsag:GuaranteeTerm wsag:Name=\"COMPLETION\"";
    let from = offer.find(term).expect("the template has it");
    let until = offer.rfind("</wsag:GuaranteeTerm>").expect("it ends") + "</wsag:GuaranteeTerm>".len();
    let copies = offer[from..until].repeat(3);
    let mut greedy = offer.clone();
    greedy.replace_range(from..until, &format!("<wsag:OneOrMore>{copies}</wsag:OneOrMore>"));
    let answer = client.post("/agreements", greedy).await;
    if answer.status.is_success() {
        let id = answer.created();
        let view = client.get_json(&format!("/agreements/{id}")).await;
        let of_that_name = view["guarantees"].as_array().into_iter().flatten();
        let count = of_that_name.filter(|each| each["name"] == "COMPLETION").count();
        assert_eq!(count, 1, "{view}");
    } else {
        assert_eq!(answer.status.as_u16(), 422, "{}", answer.body);
        assert!(answer.body.contains("is given once"), "{}", answer.body);
    }
}

#[test]
fn a_value_for_a_count_of_more_than_one_is_refused() {
    let template = file("templates/agreements/guaranteed-reservation.xml");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let template = template.replace("<wsag:Count>1<", "<wsag:Count>2<");
    std::fs::write(folder.path().join("template.xml"), template).expect("a file can be written");
    let configuration = format!("{PRICED}\n[[template]]\nfile = \"template.xml\"\n");
    std::fs::write(folder.path().join("bespeak.toml"), configuration).expect("a file can be written");
    let (code, errors) = serve(&folder, &["--config", "bespeak.toml"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("a Count of 1 is expected, not 2"), "{errors}");
}

/// An offer's document without one of its guarantees.
fn without(offer: &str, name: &str) -> String {
    let term = format!("<wsag:GuaranteeTerm wsag:Name=\"{name}\"");
    let end = "</wsag:GuaranteeTerm>";
    let from = offer.find(&term).expect("the offer has it");
    let until = from + offer[from..].find(end).expect("it ends") + end.len();
    format!("{}{}", &offer[..from], &offer[until..])
}

async fn what_the_requester_owes_cannot_be_left_out(url: String) {
    let owed = |text: &str| {
        text.replace(
            "wsag:Name=\"START\" wsag:Obligated=\"ServiceProvider\"",
            "wsag:Name=\"START\" wsag:Obligated=\"ServiceConsumer\"",
        )
    };
    let template = owed(&file("templates/agreements/guaranteed-reservation.xml")).replace(
        "<xs:enumeration value=\"ServiceProvider\"/>",
        "<xs:enumeration value=\"ServiceProvider\"/><xs:enumeration value=\"ServiceConsumer\"/>",
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("template.xml");
    std::fs::write(&path, template).expect("a file can be written");
    let configuration = format!("{PRICED}\n[[template]]\nfile = \"{}\"\n", path.display());
    let server = Server::configured(Some(&url), &configuration);
    let client = server.client();
    let offer = owed(&Offer::reserve(1, 60).guaranteed_xml());
    let whole = client.post("/agreements", offer.clone()).await;
    assert_eq!(whole.status.as_u16(), 201, "{}", whole.body);
    let waived = client.post("/agreements", without(&offer, "COMPLETION")).await;
    assert_eq!(waived.status.as_u16(), 201, "{}", waived.body);
    let shirked = client.post("/agreements", without(&offer, "START")).await;
    assert_eq!(shirked.status.as_u16(), 422, "{}", shirked.body);
    for said in ["/wsag:AgreementOffer/wsag:Terms", "START", "is expected"] {
        assert!(shirked.body.contains(said), "{said}: {}", shirked.body);
    }
    let choice = offer.replace(
        "<wsag:GuaranteeTerm wsag:Name=\"START\"",
        "<wsag:ExactlyOne><wsag:GuaranteeTerm wsag:Name=\"START\"",
    );
    let choice = choice.replacen(
        "</wsag:GuaranteeTerm>",
        "</wsag:GuaranteeTerm><wsag:All/></wsag:ExactlyOne>",
        1,
    );
    let avoided = client.post("/agreements", choice).await;
    if avoided.status.is_success() {
        let view = client
            .get_json(&format!("/agreements/{}", avoided.created()))
            .await;
        let mut names = view["guarantees"].as_array().into_iter().flatten();
        assert!(names.any(|name| name["name"] == "START"), "{view}");
    } else {
        assert_eq!(avoided.status.as_u16(), 422, "{}", avoided.body);
    }
}

/// Postings that are made one by one while the account is read.
const POSTINGS: usize = 150;

async fn balances_and_entries_are_of_one_state(url: String) {
    let (store, lease) = decide(&url).await;
    let one = agreement("physics");
    store
        .commit(lease.epoch, &[create(&one)])
        .await
        .expect("it is stored");
    let party = Account::Party("physics".to_owned());
    let posting = || {
        Change::Post(Box::new(Posting {
            id: Uuid::now_v7(),
            at: 1,
            agreement: one.id,
            kind: PostingKind::Price,
            from: party.clone(),
            to: Account::Provider,
            amount: eur(7),
            detail: String::new(),
        }))
    };
    let writing = async {
        for _ in 0..POSTINGS {
            let batch = [posting()];
            store.commit(lease.epoch, &batch).await.expect("it is stored");
        }
    };
    let reading = async {
        for account in [Some(&party), None].into_iter().cycle() {
            let read = ledger::ledger_of_account(&store, account, None, 1_000).await;
            let (balances, entries) = read.expect("it can be read");
            let own = balances.iter().find(|balance| balance.account == party);
            let sum: i64 = entries.iter().map(|entry| entry.amount.micros).sum();
            assert_eq!(own.map_or(0, |own| own.amount.micros), sum);
            if entries.len() == POSTINGS {
                return;
            }
        }
    };
    tokio::join!(writing, reading);
}
