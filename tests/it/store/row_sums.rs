//! A row that is changed past the service is found, in whichever column that decides rights or money.

use std::sync::Arc;

use domain::agreement::{
    Account, Agreement, AgreementState, Currency, EventKind, Execution, Money, MoveRecord, Posting,
    PostingKind, RecordedMove, RunOutcome,
};
use domain::change::Change;
use scheduler::Time;
use store::past_executions::LearnedExecutions;
use store::pruning::{self, KeptExecutions};
use store::{Store, archive, trail_lines};
use uuid::Uuid;

use super::verify::{begun, bind, change, over, second};
use super::{RESOURCE, agreement, create, decide, tamper};
use crate::support::fixture::column;
use crate::support::stores::on_both_engines;

on_both_engines!(
    each_column_that_decides_rights_or_money_is_covered_by_the_trail,
    a_row_that_is_added_or_deleted_past_the_service_is_found,
    nodes_that_are_given_back_and_executions_that_are_summed_leave_the_sums_right,
    an_execution_that_was_changed_past_the_service_is_found_after_it_was_summed,
);

/// The tables, and the row of each that is changed.
const TABLES: [(&str, &str); 7] = [
    ("agreements", "party = 'one'"),
    ("node_bindings", "node = 0"),
    ("executions", "nodes = 2"),
    ("ledger", "account = 'provider'"),
    ("spendings", "micros = 100"),
    ("successions", "old IS NOT NULL"),
    ("moves", "number = 1"),
];

/// A history with a row in each of the tables: an agreement that is over and paid, and another that it has taken the place of.
async fn history(store: &Store, epoch: i64) -> Agreement {
    let eur = |micros| Money::new(micros, Currency::parse("EUR").expect("a currency"));
    let mut one = agreement("one");
    one.price = Some(eur(100));
    let other = agreement("other");
    let first = [
        create(&one),
        create(&other),
        Change::Spend {
            agreement: one.id,
            key: Uuid::now_v7(),
            micros: 100,
        },
        Change::Supersede {
            old: other.id,
            new: one.id,
        },
        // Its row has this move already.
        Change::RecordMoves(Arc::new(MoveRecord {
            number: 1,
            at: second(1),
            cause: Some(one.id),
            why: "to let another agreement in".into(),
            moves: vec![RecordedMove::of(&other)],
        })),
    ];
    let running = begun(&one);
    let second_batch = [change(&running, &[EventKind::Begun]), bind(&running, &[0, 1])];
    let complete = over(&running, AgreementState::Complete, second(160));
    let third = [
        change(&complete, &[EventKind::Ended, EventKind::Closed]),
        Change::ReleaseNodes {
            agreement: one.id,
            end: Time(160),
        },
        Change::Post(Box::new(Posting {
            id: Uuid::now_v7(),
            at: second(160),
            agreement: one.id,
            kind: PostingKind::Price,
            from: Account::Party("one".into()),
            to: Account::Provider,
            amount: eur(100),
            detail: "its price".into(),
        })),
        execution(&one, second(160)),
    ];
    for batch in [&first[..], &second_batch[..], &third[..]] {
        store.commit(epoch, batch).await.expect("it is right");
    }
    one
}

/// An execution of an agreement that ended at an instant.
fn execution(one_agreement: &Agreement, ended: i64) -> Change {
    Change::RecordExecution(Box::new(Execution {
        agreement: one_agreement.id,
        application: "sleep".into(),
        version: None,
        arguments: vec!["60".into()],
        input_bytes: 1,
        output_bytes: 2,
        resource: RESOURCE.into(),
        nodes: 2,
        planned: one_agreement.placement(),
        estimate: 60,
        queue_time: 3,
        run_time: 4,
        transfer_in: 0,
        transfer_out: 0,
        moved_in: 0,
        moved_out: 0,
        outcome: RunOutcome::Completed,
        ended,
    }))
}

/// Another content of a column, as SQL.
fn another(table: &str, name: &str) -> String {
    let ids = ["origin", "agreement", "old", "new", "cause"];
    match name {
        "fixed" => "1 - fixed".to_owned(),
        // Node 1 is taken.
        "node" => "node + 4".to_owned(),
        "resource" => "'elsewhere'".to_owned(),
        _ if ids.contains(&name) => "(SELECT id FROM agreements WHERE party = 'third')".to_owned(),
        "posting" | "api_key" => format!("(SELECT agreement FROM {table} LIMIT 1)"),
        _ if ["_s", "_us", "_bytes", "micros"]
            .iter()
            .any(|end| name.ends_with(end))
            || ["nodes", "version", "exit_status", "number"].contains(&name)
                && (table, name) != ("executions", "version") =>
        {
            format!("COALESCE({name}, 0) + 1")
        }
        // It reads as the same where it is JSON.
        _ => format!("COALESCE({name}, '') || ' '"),
    }
}

async fn columns(url: &str, table: &str) -> Vec<String> {
    let (from, name) = if url.starts_with("sqlite:") {
        (format!("pragma_table_info('{table}')"), "name")
    } else {
        let changed_row = format!(
            "(SELECT column_name FROM information_schema.columns WHERE table_name = '{table}' AND table_schema = 'public') AS listed"
        );
        (changed_row, "column_name")
    };
    column(url, &from, name).await.expect("they can be listed")
}

async fn findings(store: &Store) -> Vec<String> {
    let found = store.verify().await.expect("it can be read");
    found.iter().map(ToString::to_string).collect()
}

async fn each_column_that_decides_rights_or_money_is_covered_by_the_trail(url: String) {
    let (store, lease) = decide(&url).await;
    history(&store, lease.epoch).await;
    let third = create(&agreement("third"));
    store.commit(lease.epoch, &[third]).await.expect("it is right");
    tamper(
        &url,
        "INSERT INTO resources (name, kind, capacity, position, rate, details) \
         VALUES ('elsewhere', 'local', 8, 1, 1000000, '{}'); \
         INSERT INTO capacities (resource, since_us, capacity) VALUES ('elsewhere', 0, 8)",
    )
    .await;
    assert_eq!(findings(&store).await, [""; 0]);
    let mut unseen = Vec::new();
    for (table, row) in TABLES {
        tamper(
            &url,
            &format!("CREATE TABLE right_{table} AS SELECT * FROM {table}"),
        )
        .await;
        let columns = columns(&url, table).await;
        assert!(columns.len() > 1, "{table} has columns");
        for name in columns.iter().filter(|name| *name != "id") {
            let other = another(table, name);
            tamper(&url, &format!("UPDATE {table} SET {name} = {other} WHERE {row}")).await;
            if findings(&store).await.is_empty() {
                unseen.push(format!("{table}.{name}"));
            }
            let undo = if table == "agreements" {
                format!(
                    "UPDATE agreements SET {name} = (SELECT r.{name} FROM right_agreements r WHERE r.id = agreements.id)"
                )
            } else {
                format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM right_{table}")
            };
            tamper(&url, &undo).await;
        }
        assert_eq!(findings(&store).await, [""; 0], "all of {table} was undone");
    }
    assert!(unseen.is_empty(), "changed unseen: {unseen:?}");
}

async fn a_row_that_is_added_or_deleted_past_the_service_is_found(url: String) {
    let (store, lease) = decide(&url).await;
    history(&store, lease.epoch).await;
    for (table, _) in &TABLES[1..] {
        let keep = format!("CREATE TABLE right_{table} AS SELECT * FROM {table}; DELETE FROM {table}");
        tamper(&url, &keep).await;
        let found = findings(&store).await;
        let said = format!("the rows of {table} are not");
        assert!(
            found.iter().any(|found| found.contains(&said)),
            "{table}: {found:#?}"
        );
        tamper(&url, &format!("INSERT INTO {table} SELECT * FROM right_{table}")).await;
        assert_eq!(findings(&store).await, [""; 0]);
    }
    // A whole posting that balances, with its day.
    tamper(
        &url,
        "CREATE TABLE more AS SELECT * FROM ledger; UPDATE more SET posting = agreement, kind = 'cancellation'; \
         INSERT INTO ledger SELECT * FROM more; \
         UPDATE ledger_days SET credits_micros = 2 * credits_micros, charges_micros = 2 * charges_micros",
    )
    .await;
    let found = findings(&store).await;
    assert!(
        found.iter().any(|found| found.contains("the rows of ledger")),
        "{found:#?}"
    );
}

async fn nodes_that_are_given_back_and_executions_that_are_summed_leave_the_sums_right(url: String) {
    let (store, lease) = decide(&url).await;
    let one = history(&store, lease.epoch).await;
    // No line tells of this one.
    let earlier = [execution(&one, second(150))];
    store.commit(lease.epoch, &earlier).await.expect("it is right");
    let trail = trail_lines::trail_lines_after(&store, 0, 100)
        .await
        .expect("it can be read");
    assert_eq!(trail.last().map(|line| line.at), Some(second(150)));
    assert_eq!(findings(&store).await, [""; 0]);
    sum_up_all_but_the_last(&store).await;
    assert_eq!(findings(&store).await, [""; 0]);
    // The next batch goes on from there.
    let next = create(&agreement("next"));
    store.commit(lease.epoch, &[next]).await.expect("it is right");
    archive::archive_agreements(&store, i64::MAX, 100)
        .await
        .expect("there is room");
    assert_eq!(findings(&store).await, [""; 0]);
}

/// Makes sums of the executions but the last; there are two.
async fn sum_up_all_but_the_last(store: &Store) {
    let learned = LearnedExecutions { newest: 1, each: 1 };
    let kept = KeptExecutions {
        since: i64::MAX,
        each: 1,
        learned,
    };
    let summed = pruning::prune_executions(store, &kept, 10).await.expect("it can");
    assert_eq!(summed, 1);
}

async fn an_execution_that_was_changed_past_the_service_is_found_after_it_was_summed(url: String) {
    let (store, lease) = decide(&url).await;
    let one = history(&store, lease.epoch).await;
    let earlier = [execution(&one, second(150))];
    store.commit(lease.epoch, &earlier).await.expect("it is right");
    // It reads as the same.
    let changed = second(150);
    let sql = format!("UPDATE executions SET arguments = '[\"60\" ]' WHERE ended_us = {changed}");
    tamper(&url, &sql).await;
    sum_up_all_but_the_last(&store).await;
    let found = findings(&store).await;
    assert!(
        found.iter().any(|found| found.contains("the rows of executions")),
        "{found:#?}"
    );
}
