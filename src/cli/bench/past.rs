//! `bespeak bench past`: fills an empty database with agreements that are over, to measure the start of a service, `bespeak verify`
//! and lists on a long history.

use std::time::Instant;

use advisor::progress::ProgressLine;
use clap::Args;
use scheduler::{Interval, Seconds};
use serde_json::json;
use uuid::Uuid;

use crate::agreement::{
    Agreement, AgreementState, Event, EventKind, Execution, Job, Leeway, Outcome, ServiceState, Slots,
};
use crate::cli::{Failure, StoreOptions};
use crate::clock::{Clock, MICROS_PER_SECOND};
use crate::store::{Change, ResourceRow, Store};

/// The name of the one resource.
const RESOURCE: &str = "local";
/// How long each agreement had its node.
const DURATION: Seconds = 60;
/// Agreements that are stored in one transaction: their rows stay below what a statement may have.
const BATCH: u64 = 500;

/// Options of `bench past`.
#[derive(Debug, Args)]
pub(super) struct PastOptions {
    #[command(flatten)]
    store: StoreOptions,
    /// Agreements that are over: each ran for a minute on one node, with a document, five lines in the audit trail, a bound node
    /// and an execution.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    agreements: u64,
    /// Nodes of the resource "local" that they ran on. The service has to be configured with as many.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: u32,
}

/// Stores a past without gaps that ends an hour ago. Prints a line of JSON.
pub(super) async fn past(options: PastOptions) -> Result<(), Failure> {
    let store = Store::open(&options.store.database_url()).await?;
    let lease = store.acquire_lease().await?;
    if !store.all_agreements(None, 1).await?.is_empty() {
        return Err(Failure::Usage(
            "the database has agreements; a past is written into an empty one".into(),
        ));
    }
    let nodes = u64::from(options.nodes);
    let rounds = options.agreements.div_ceil(nodes);
    let seconds = i64::try_from(rounds).unwrap_or(i64::MAX).saturating_mul(DURATION);
    let first = Clock::system().now() - seconds.saturating_add(3_600);
    let resource = ResourceRow {
        name: RESOURCE.into(),
        kind: "local".into(),
        capacity: options.nodes,
    };
    store
        .put_resources(&[resource], first.0 * MICROS_PER_SECOND)
        .await?;
    let begun = Instant::now();
    let line = ProgressLine::default();
    line.starts("agreements");
    let count = |of: u64| usize::try_from(of).unwrap_or(usize::MAX);
    let mut batch = Vec::new();
    for number in 0..options.agreements {
        let round = i64::try_from(number / nodes).unwrap_or(i64::MAX);
        let node = u32::try_from(number % nodes).unwrap_or(u32::MAX);
        let slot = Interval::of(first + round * DURATION, DURATION);
        batch.extend(lived(slot, node));
        if (number + 1) % BATCH == 0 || number + 1 == options.agreements {
            store.commit(lease.epoch, &std::mem::take(&mut batch)).await?;
            line.show(count(number + 1), count(options.agreements));
        }
    }
    ProgressLine::clear();
    // As a service does every ten minutes.
    store.verify_new_lines().await?;
    let seconds = begun.elapsed().as_secs();
    println!(
        "{}",
        json!({ "agreements": options.agreements, "seconds": seconds })
    );
    Ok(())
}

/// An agreement about a job that runs in a slot, as it is accepted.
fn accepted(slot: Interval) -> Agreement {
    Agreement {
        id: Uuid::now_v7(),
        party: "past".into(),
        name: None,
        template: "advance-reservation".into(),
        resource: RESOURCE.into(),
        duration: DURATION,
        ready: slot.start,
        deadline: slot.end + 3_600,
        slots: Slots::one((slot, 1)),
        fixed: false,
        price: None,
        leeway: Leeway::default(),
        job: Some(Job {
            application: "sleep".into(),
            version: None,
            arguments: vec![DURATION.to_string()],
            restarts: 0,
            missed: 0,
        }),
        guarantees: Vec::new(),
        state: AgreementState::Observed,
        service: ServiceState::NotReady,
        started: None,
        ended: None,
        outcome: None,
        created: slot.start.0 * MICROS_PER_SECOND,
        version: 1,
        origin: None,
    }
}

/// The life of an agreement whose job ran in a slot on a node, as the service would have stored it.
fn lived(slot: Interval, node: u32) -> [Change; 6] {
    let (start, end) = (slot.start.0 * MICROS_PER_SECOND, slot.end.0 * MICROS_PER_SECOND);
    let event = |at, kind, detail: &str| Event {
        at,
        kind,
        detail: detail.to_owned(),
    };
    let accepted = accepted(slot);
    let id = accepted.id;
    let running = Agreement {
        service: ServiceState::Processing,
        started: Some(start),
        version: 2,
        ..accepted.clone()
    };
    let over = Agreement {
        state: AgreementState::Complete,
        service: ServiceState::Completed,
        ended: Some(end),
        outcome: Some(Outcome::Completed),
        version: 3,
        ..running.clone()
    };
    [
        Change::CreateAgreement {
            agreement: Box::new(accepted),
            document: format!(
                "<Offer xmlns=\"http://example.org/as-long-as-an-offer\">{:2000}</Offer>",
                ' '
            )
            .into(),
            events: vec![event(start, EventKind::Accepted, "1 node of local for a minute")],
        },
        Change::UpdateAgreement {
            agreement: Box::new(running),
            events: vec![event(start, EventKind::Begun, "its slot has begun")],
        },
        Change::BindNodes {
            agreement: id,
            resource: RESOURCE.into(),
            nodes: vec![node],
            interval: slot,
        },
        Change::UpdateAgreement {
            agreement: Box::new(over),
            events: vec![
                event(start, EventKind::Running, "its process runs"),
                event(end, EventKind::Ended, "completed, with exit status 0"),
                event(end, EventKind::Closed, "Complete"),
            ],
        },
        Change::ReleaseNodes {
            agreement: id,
            end: slot.end,
        },
        Change::RecordExecution(Box::new(Execution {
            agreement: id,
            application: "sleep".into(),
            version: None,
            arguments: vec![DURATION.to_string()],
            input_bytes: 0,
            output_bytes: 0,
            resource: RESOURCE.into(),
            nodes: 1,
            planned: slot,
            estimate: DURATION,
            queue_time: 0,
            run_time: DURATION * MICROS_PER_SECOND,
            transfer_in: 0,
            transfer_out: 0,
            outcome: Outcome::Completed,
            ended: end,
        })),
    ]
}
