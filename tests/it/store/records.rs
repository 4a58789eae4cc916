//! Records come back as they went in, and a batch is stored whole or not at all.

use std::collections::BTreeMap;

use access::{Access, Role};
use domain::agreement::{
    Agreement, AgreementState, EventKind, Execution, Limit, Note, NoteKind, RunOutcome, ServiceState, Slots,
};
use domain::change::Change;
use domain::clock::Clock;
use domain::resources::Binding;
use scheduler::{Interval, Time};
use store::agreements::{self, AgreementFilter};
use store::{Error, Invariant, Store, bindings, executions, trail_lines};
use uuid::Uuid;

use super::{RESOURCE, agreement, all_agreements, create, decide, event, update};
use crate::support::random::Random;
use crate::support::stores::on_both_engines;

on_both_engines!(
    what_is_stored_comes_back_as_it_went_in,
    a_change_from_a_stale_version_stores_nothing_of_its_batch,
    a_node_has_one_owner_at_a_time,
    released_nodes_can_be_bound_anew,
    pages_go_from_the_newest_back_and_show_one_party,
    what_is_final_is_no_longer_live,
    an_agreement_on_an_unknown_resource_is_a_conflict,
    random_batches_leave_what_a_model_has,
    changes_of_one_row_in_a_batch_leave_the_last,
    a_batch_goes_on_where_another_process_left_the_trail,
    settled_moves_hide_no_other_change_of_the_plan,
);

async fn what_is_stored_comes_back_as_it_went_in(url: String) {
    let (store, lease) = decide(&url).await;
    let stored = async |id| agreements::agreement(&store, id).await.expect("an answer");
    let document = async |id| {
        agreements::agreement_document(&store, id)
            .await
            .expect("an answer")
    };
    let mut one = agreement("a");
    let bare = Agreement {
        name: None,
        job: None,
        guarantees: vec![],
        ..agreement("b")
    };
    store
        .commit(lease.epoch, &[create(&one), create(&bare)])
        .await
        .expect("they can be stored");
    assert_eq!(stored(one.id).await, Some(one.clone()));
    assert_eq!(stored(bare.id).await, Some(bare.clone()));
    assert_eq!(
        agreements::live_agreements(&store).await.expect("they are live"),
        [one.clone(), bare.clone()]
    );
    assert_eq!(
        document(one.id).await,
        Some(format!("<offer>{}</offer>", one.id).as_str().into())
    );
    assert_eq!(stored(Uuid::nil()).await, None);
    assert_eq!(document(Uuid::nil()).await, None);

    let outcomes = [
        RunOutcome::Completed,
        RunOutcome::Failed { exit: 137 },
        RunOutcome::Failed { exit: -1 },
        RunOutcome::Killed,
        RunOutcome::Terminated,
        RunOutcome::Exceeded { limit: Limit::Memory },
        RunOutcome::Exceeded { limit: Limit::Files },
        RunOutcome::Unstaged,
        RunOutcome::Lost,
    ];
    let mut kept = vec![];
    for (at, outcome) in (1..).zip(outcomes) {
        one.version += 1;
        one.slots[0].placement = Interval::new(Time(100 + at), Time(160 + at));
        one.service = ServiceState::Completed;
        one.note_started(Some(at));
        (one.ended, one.slots[0].ended) = (Some(at + 1), Some(at + 1));
        one.outcome = Some(outcome);
        one.guarantees[0].evidence = Some("run time".into());
        let execution = Execution {
            agreement: one.id,
            application: "sleep".into(),
            version: Some("1".into()),
            arguments: vec!["60".into()],
            input_bytes: 1,
            output_bytes: i64::MAX,
            resource: RESOURCE.into(),
            nodes: 2,
            planned: one.placement(),
            estimate: 60,
            queue_time: -5,
            run_time: 2,
            transfer_in: 3,
            transfer_out: 4,
            moved_in: 5,
            moved_out: 6,
            outcome,
            ended: at,
        };
        let change = Change::UpdateAgreement {
            agreement: Box::new(one.clone()),
            events: vec![event(EventKind::Begun), event(EventKind::Ended)],
        };
        let batch = [change, Change::RecordExecution(Box::new(execution.clone()))];
        store.commit(lease.epoch, &batch).await.expect("it can be stored");
        kept.push(execution);
        assert_eq!(stored(one.id).await, Some(one.clone()));
    }
    assert_eq!(
        executions::executions_of_agreement(&store, one.id)
            .await
            .expect("they are there"),
        kept
    );
    let events = agreements::events_of_agreement(&store, one.id)
        .await
        .expect("they are there");
    assert_eq!(events.len(), 1 + 2 * outcomes.len());
    assert_eq!(events[0], event(EventKind::Accepted));
    assert_eq!(events[12], event(EventKind::Ended));
    assert_eq!(
        agreements::events_of_agreement(&store, bare.id)
            .await
            .expect("they are there")
            .len(),
        1
    );
}

async fn a_change_from_a_stale_version_stores_nothing_of_its_batch(url: String) {
    let (store, lease) = decide(&url).await;
    let first = agreement("a");
    store
        .commit(lease.epoch, &[create(&first)])
        .await
        .expect("it can be stored");
    let bystander = agreement("a");
    for version in [1, 3] {
        let stale = Agreement {
            version,
            state: AgreementState::Complete,
            ..first.clone()
        };
        let refused = store
            .commit(lease.epoch, &[create(&bystander), update(&stale)])
            .await;
        assert!(
            matches!(refused, Err(Error::Conflict(_))),
            "version {version}: {refused:?}"
        );
    }
    let unknown = Agreement {
        version: 2,
        ..agreement("a")
    };
    let refused = store
        .commit(lease.epoch, &[create(&bystander), update(&unknown)])
        .await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let twice = store
        .commit(lease.epoch, &[create(&bystander), create(&first)])
        .await;
    assert!(matches!(twice, Err(Error::Conflict(_))), "{twice:?}");
    assert_eq!(
        agreements::live_agreements(&store).await.expect("an answer"),
        [first]
    );
    assert!(
        agreements::events_of_agreement(&store, bystander.id)
            .await
            .expect("an answer")
            .is_empty()
    );
}

async fn changes_of_one_row_in_a_batch_leave_the_last(url: String) {
    let (store, lease) = decide(&url).await;
    let first = agreement("a");
    let versions: Vec<_> = (1..=3)
        .map(|version| Agreement {
            version,
            slots: Slots::one((
                Interval::new(Time(100 + version), Time(160 + version)),
                first.nodes(),
            )),
            ..first.clone()
        })
        .collect();
    let changed = |one: &Agreement| Change::UpdateAgreement {
        agreement: Box::new(one.clone()),
        events: vec![event(EventKind::Moved)],
    };
    let other = agreement("b");
    let batch = [
        create(&versions[0]),
        create(&other),
        changed(&versions[1]),
        bind(&first, &[0, 1], 100, 160),
        Change::ReleaseNodes {
            agreement: first.id,
            end: Time(130),
        },
        bind(&other, &[0], 130, 160),
        changed(&versions[2]),
    ];
    store
        .commit(lease.epoch, &batch)
        .await
        .expect("they fit each other");
    let stored = agreements::agreement(&store, first.id).await.expect("an answer");
    assert_eq!(stored, versions.last().cloned());
    let events = agreements::events_of_agreement(&store, first.id)
        .await
        .expect("they are there");
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Moved, EventKind::Moved]);
    let bound = bindings::live_bindings(&store, Time::MAX)
        .await
        .expect("they are there");
    let bound: Vec<_> = bound
        .iter()
        .map(|binding| (binding.node, binding.interval.end.seconds(), binding.agreement))
        .collect();
    assert_eq!(
        bound,
        [(0, 130, first.id), (0, 160, other.id), (1, 130, first.id)]
    );
    for unfit in [
        vec![changed(&versions[2])],
        vec![bind(&other, &[4], 10, 20), bind(&first, &[4], 15, 30)],
    ] {
        let refused = store.commit(lease.epoch, &unfit).await;
        assert!(
            matches!(refused, Err(Error::Conflict(_))),
            "{unfit:?}: {refused:?}"
        );
    }
    let whole = store.verify().await.expect("it can be read");
    assert!(
        whole.iter().all(|finding| finding.invariant != Invariant::I10),
        "{whole:?}"
    );
}

async fn a_batch_goes_on_where_another_process_left_the_trail(url: String) {
    let (store, lease) = decide(&url).await;
    let other = Access::new(
        Store::open(&url).await.expect("it is there"),
        Clock::standing_at(1_000_000),
    );
    for _ in 0..3 {
        store
            .commit(lease.epoch, &[create(&agreement("a"))])
            .await
            .expect("it can be stored");
        other
            .add_key(crate::access::wish("a", Role::Consumer, None, None), None)
            .await
            .expect("a key");
    }
    let lines = trail_lines::trail_lines_after(&store, 0, 100)
        .await
        .expect("it can be read");
    let numbers: Vec<_> = lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let whole = store.verify().await.expect("it can be read");
    assert!(
        whole.iter().all(|finding| finding.invariant != Invariant::I10),
        "{whole:?}"
    );
}

async fn settled_moves_hide_no_other_change_of_the_plan(url: String) {
    let (store, lease) = decide(&url).await;
    let mut one = agreement("a");
    let recorded = Note::new(1, NoteKind::MovesRecorded, (one.id, None), "2 moved".to_owned());
    let batch = [create(&one), Change::Note(recorded)];
    store.commit(lease.epoch, &batch).await.expect("it can be stored");
    let kinds = [EventKind::Broken, EventKind::Fixed].into_iter();
    for kind in kinds.chain([EventKind::Moved; 12]) {
        one.version += 1;
        let change = Change::UpdateAgreement {
            agreement: Box::new(one.clone()),
            events: vec![event(kind)],
        };
        store
            .commit(lease.epoch, &[change])
            .await
            .expect("it can be stored");
    }
    let told = async |after, limit| {
        let changes = trail_lines::plan_changes_after(&store, after, 10, limit).await;
        let changes = changes.expect("they can be read").into_iter();
        changes.map(|line| (line.number, line.kind)).collect::<Vec<_>>()
    };
    let moves = (7..=16).rev().map(|number| (number, "moved".to_owned()));
    let others = [(3, "broken".to_owned()), (2, "moves-recorded".to_owned())];
    let all: Vec<_> = moves.chain(others).collect();
    assert_eq!(told(0, 20).await, all);
    assert_eq!(told(2, 20).await, all[..11]);
    assert_eq!(told(0, 5).await, all[..5]);
}

fn bind(owner: &Agreement, nodes: &[u32], start: i64, end: i64) -> Change {
    Change::BindNodes {
        agreement: owner.id,
        resource: RESOURCE.into(),
        nodes: nodes.to_vec(),
        interval: Interval::new(Time(start), Time(end)),
    }
}

async fn a_node_has_one_owner_at_a_time(url: String) {
    let (store, lease) = decide(&url).await;
    let (one, two) = (agreement("a"), agreement("b"));
    let batch = [create(&one), create(&two), bind(&one, &[0, 1], 100, 160)];
    store
        .commit(lease.epoch, &batch)
        .await
        .expect("the nodes are free");
    for (start, end) in [(100, 160), (0, 101), (159, 200), (0, 300), (120, 130)] {
        let refused = store
            .commit(lease.epoch, &[bind(&two, &[2, 1], start, end)])
            .await;
        assert!(
            matches!(refused, Err(Error::Conflict(_))),
            "[{start}, {end}): {refused:?}"
        );
    }
    let batch = [
        bind(&two, &[0, 1], 40, 100),
        bind(&two, &[0, 1], 160, 200),
        bind(&two, &[2], 100, 160),
    ];
    store
        .commit(lease.epoch, &batch)
        .await
        .expect("before, after and beside are free");
    let owners: Vec<_> = bindings::live_bindings(&store, Time::MAX)
        .await
        .expect("they are there")
        .into_iter()
        .map(
            |Binding {
                 node,
                 interval,
                 agreement,
                 ..
             }| (node, interval.start.seconds(), agreement),
        )
        .collect();
    let expected = [
        (0, 40, two.id),
        (0, 100, one.id),
        (0, 160, two.id),
        (1, 40, two.id),
        (1, 100, one.id),
        (1, 160, two.id),
        (2, 100, two.id),
    ];
    assert_eq!(owners, expected);
}

async fn released_nodes_can_be_bound_anew(url: String) {
    let (store, lease) = decide(&url).await;
    let (one, two) = (agreement("a"), agreement("b"));
    let batch = [
        create(&one),
        create(&two),
        bind(&one, &[0], 100, 160),
        bind(&one, &[1], 130, 160),
    ];
    store
        .commit(lease.epoch, &batch)
        .await
        .expect("the nodes are free");
    let batch = [
        Change::ReleaseNodes {
            agreement: one.id,
            end: Time(130),
        },
        bind(&two, &[0, 1], 130, 160),
    ];
    store
        .commit(lease.epoch, &batch)
        .await
        .expect("the rest is free again");
    let left: Vec<_> = bindings::live_bindings(&store, Time::MAX)
        .await
        .expect("they are there");
    assert_eq!(left.len(), 3, "{left:?}");
    assert_eq!(
        (left[0].agreement, left[0].interval),
        (one.id, Interval::new(Time(100), Time(130)))
    );
}

async fn pages_go_from_the_newest_back_and_show_one_party(url: String) {
    let (store, lease) = decide(&url).await;
    let all: Vec<_> = (0..7)
        .map(|n| agreement(if n % 2 == 0 { "a" } else { "b" }))
        .collect();
    store
        .commit(lease.epoch, &all.iter().map(create).collect::<Vec<_>>())
        .await
        .expect("they can be stored");
    let page = async |party: Option<&str>, after, limit| {
        let filter = AgreementFilter {
            party: party.map(ToOwned::to_owned),
            ..AgreementFilter::default()
        };
        let page = agreements::agreements_page(&store, &filter, after, limit);
        let (page, _) = page.await.expect("a page");
        page.into_iter().map(|(one, _)| one.id).collect::<Vec<_>>()
    };
    let newest_first: Vec<_> = all.iter().rev().map(|one| one.id).collect();
    let first = page(None, None, 4).await;
    assert_eq!(first, newest_first[..4]);
    assert_eq!(page(None, first.last().copied(), 4).await, newest_first[4..]);
    let of_b = page(Some("b"), None, 100).await;
    assert_eq!(of_b, [all[5].id, all[3].id, all[1].id]);
    assert_eq!(page(Some("b"), Some(all[3].id), 100).await, [all[1].id]);
    assert!(page(Some("c"), None, 100).await.is_empty());
}

async fn what_is_final_is_no_longer_live(url: String) {
    let (store, lease) = decide(&url).await;
    for state in AgreementState::ALL {
        let stored = Agreement {
            state,
            ..agreement("a")
        };
        let batch = [create(&stored), bind(&stored, &[0], 100, 160)];
        store.commit(lease.epoch, &batch).await.expect("it can be stored");
        let live = agreements::live_agreements(&store).await.expect("an answer");
        assert_eq!(live.contains(&stored), !state.is_final(), "{state}");
        let bindings = bindings::live_bindings(&store, Time::MAX)
            .await
            .expect("an answer");
        assert_eq!(bindings.len(), usize::from(!state.is_final()), "{state}");
        let done = Agreement {
            state: AgreementState::Complete,
            version: 2,
            ..stored.clone()
        };
        let batch = [
            update(&done),
            Change::ReleaseNodes {
                agreement: done.id,
                end: Time(0),
            },
        ];
        store.commit(lease.epoch, &batch).await.expect("it can be stored");
    }
    assert!(
        agreements::live_agreements(&store)
            .await
            .expect("an answer")
            .is_empty()
    );
}

async fn an_agreement_on_an_unknown_resource_is_a_conflict(url: String) {
    let (store, lease) = decide(&url).await;
    let lost = Agreement {
        resource: "nowhere".into(),
        ..agreement("a")
    };
    let refused = store.commit(lease.epoch, &[create(&lost)]).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
}

/// Batches of random changes, some of which do not fit. The model applies a batch to a copy and keeps it only if every
/// change fits; the store must take and refuse the same batches and hold the same in the end.
async fn random_batches_leave_what_a_model_has(url: String) {
    let (store, lease) = decide(&url).await;
    let mut random = Random::new(2);
    let mut model = Model::default();
    let mut outcomes = [0, 0];
    for round in 0..150 {
        let mut next = model.clone();
        let mut batch = vec![];
        let mut fits = true;
        for _ in 0..=random.below(4) {
            let (change, fit) = next.random_change(&mut random);
            batch.push(change);
            fits &= fit;
        }
        let written = store.commit(lease.epoch, &batch).await;
        match written {
            Ok(()) => assert!(fits, "round {round}: {batch:?} was taken"),
            Err(Error::Conflict(_)) => assert!(!fits, "round {round}: {batch:?} was refused"),
            Err(error) => panic!("round {round}: {error:?}"),
        }
        outcomes[usize::from(fits)] += 1;
        if fits {
            model = next;
        }
    }
    assert!(
        outcomes[0] > 10 && outcomes[1] > 10,
        "both kinds must occur: {outcomes:?}"
    );
    let stored = all_agreements(&store).await;
    assert_eq!(stored, model.agreements.into_values().collect::<Vec<_>>());
    let bound: Vec<_> = bindings::live_bindings(&store, Time::MAX)
        .await
        .expect("they are there")
        .into_iter()
        .map(|one| (one.node, one.interval.start, one.interval.end, one.agreement))
        .collect();
    model.bindings.sort_unstable();
    assert_eq!(bound, model.bindings);
}

#[derive(Default, Clone)]
struct Model {
    agreements: BTreeMap<Uuid, Agreement>,
    bindings: Vec<(u32, Time, Time, Uuid)>,
}

impl Model {
    /// A change, applied where it fits, and whether it does.
    fn random_change(&mut self, random: &mut Random) -> (Change, bool) {
        let known = self.agreements.len();
        let Some(chosen) = self.agreements.values().nth(random.below(known.max(1))).cloned() else {
            return self.new_agreement();
        };
        match random.below(10) {
            0..=2 => self.new_agreement(),
            3..=5 => {
                let stale = i64::from(random.below(8) == 0);
                let mut changed = Agreement {
                    version: chosen.version + 1 - stale,
                    ..chosen
                };
                changed.slots[0].placement.end = changed.slots[0].placement.end + 1;
                let change = update(&changed);
                if stale == 0 {
                    self.agreements.insert(changed.id, changed);
                }
                (change, stale == 0)
            }
            6..=8 => {
                let node = u32::try_from(random.below(4)).expect("small");
                let start = Time(random.seconds(400));
                let end = start + 1 + random.seconds(30);
                let fits = !self
                    .bindings
                    .iter()
                    .any(|(n, s, e, _)| *n == node && *s < end && start < *e);
                if fits {
                    self.bindings.push((node, start, end, chosen.id));
                }
                (bind(&chosen, &[node], start.seconds(), end.seconds()), fits)
            }
            _ => {
                let end = Time(random.seconds(400));
                self.bindings
                    .retain(|(_, start, _, owner)| *owner != chosen.id || *start < end);
                for (_, _, until, owner) in &mut self.bindings {
                    if *owner == chosen.id {
                        *until = (*until).min(end);
                    }
                }
                (
                    Change::ReleaseNodes {
                        agreement: chosen.id,
                        end,
                    },
                    true,
                )
            }
        }
    }

    fn new_agreement(&mut self) -> (Change, bool) {
        let new = agreement("a");
        self.agreements.insert(new.id, new.clone());
        (create(&new), true)
    }
}
