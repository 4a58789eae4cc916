//! The picture of the plan that pages are drawn from.

use domain::resources::{AddedMaintenance, NodeReport, NodeState, Reporter, WhyUnused};

use super::*;

/// A slot on a picture: its purpose, whether it has begun, its time, and its nodes.
type SeenSlot = (Uuid, bool, (i64, i64), u32, Vec<u32>);

fn seen(picture: &Picture) -> Vec<SeenSlot> {
    let slots = picture.shown.iter().flat_map(|shown| &shown.slots);
    slots
        .map(|slot| {
            let has_begun = matches!(slot.of, PicturedSlotOf::Agreement { has_begun: true, .. });
            let interval = (
                slot.interval.start.seconds() - NOW,
                slot.interval.end.seconds() - NOW,
            );
            (
                slot.of.id(),
                has_begun,
                interval,
                slot.nodes,
                slot.numbers.clone(),
            )
        })
        .collect()
}

/// The whole plan.
async fn whole_picture(domain: &Domain) -> Picture {
    let whole = TakePicture {
        resource: None,
        period: Interval::new(Time(NOW), Time(NOW + 86_400)),
        slots_max: 100,
    };
    domain.planner.send(whole).await.unwrap()
}

#[tokio::test]
async fn it_has_what_is_planned_and_held_with_the_nodes_that_are_known() {
    let domain = Domain::start().await;
    let first = domain.place(proposal(2, 100, 0..100)).await.unwrap().id;
    let later = domain.place(proposal(3, 100, 200..300)).await.unwrap().id;
    let over = domain.place(proposal(1, 50, 0..50)).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    let negotiation = domain.open(None).await;
    domain.hold(negotiation, &proposal(1, 100, 150..250)).await;
    let picture = whole_picture(&domain).await;
    let expected: Vec<SeenSlot> = vec![
        (first, true, (0, 100), 2, vec![0, 1]),
        (over, true, (0, 50), 1, vec![2]),
        (negotiation, false, (150, 250), 1, vec![]),
        (later, false, (200, 300), 3, vec![]),
    ];
    assert_eq!(seen(&picture), expected);
    let times = [(0, 10), (0, 120), (150, 300), (290, 310)];
    let cells = times.map(|(start, end)| Interval::new(Time(NOW + start), Time(NOW + end)));
    let calendar = ShowCalendar {
        party: Some("physics".to_owned()),
        wanted: (3, 1),
        resource: None,
        skip: 0,
        resources_max: 1,
        cells: cells.to_vec(),
        parts: 1,
        slots_max: 100,
        free_max: 2,
    };
    let calendar = domain.planner.send(calendar).await.unwrap();
    let of = &calendar.resources[0];
    let free: Vec<_> = of.cells.iter().map(|cell| cell.free.unwrap()).collect();
    assert_eq!(free, [(1, 1), (1, 4), (0, 3), (1, 4)]);
    assert_eq!(of.cells[1].taken, 3 * 50 + 2 * 50);
    let gaps = of
        .next_free
        .iter()
        .map(|gap| (gap.start.seconds() - NOW, gap.end.seconds() - NOW));
    assert_eq!(gaps.collect::<Vec<_>>(), [(100, 200), (300, 86_400)]);
    assert_eq!((of.slots.len(), of.more_slots), (4, 0), "all are of the viewer");

    domain.turn(60);
    domain.planner.send(BeginDue).await.unwrap();
    let picture = whole_picture(&domain).await;
    let ids: Vec<Uuid> = seen(&picture).into_iter().map(|slot| slot.0).collect();
    assert_eq!(ids, [first, negotiation, later], "what is over is not on it");
}

#[tokio::test]
async fn it_has_the_nodes_that_are_not_used_and_why() {
    let mut resource = Resource::new("local", "local", 4);
    resource.added_maintenance.push(AddedMaintenance {
        id: Uuid::now_v7(),
        start: NOW + 500,
        end: NOW + 600,
        nodes: Some(1),
        reason: None,
        party: "operator".to_owned(),
    });
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let settings = Settings::new(vec![resource], 86_400);
    let domain = Domain::start_with(tempfile::tempdir().unwrap(), clock, settings).await;
    let down = NodeReport {
        states: vec![
            NodeState::Down,
            NodeState::Down,
            NodeState::Up,
            NodeState::Drained,
        ],
        ..NodeReport::default()
    };
    domain
        .planner
        .send(SetNodes {
            resource: "local".into(),
            by: Reporter::Operator,
            report: down,
        })
        .await
        .unwrap();
    let picture = whole_picture(&domain).await;
    let shown = picture.shown.unwrap();
    let unused = shown.unused.iter().map(|nodes| (nodes.nodes.clone(), nodes.why));
    let expected = [
        (0..2, WhyUnused::State(NodeState::Down)),
        (3..4, WhyUnused::State(NodeState::Drained)),
        (3..4, WhyUnused::Maintenance),
    ];
    assert_eq!(unused.collect::<Vec<_>>(), expected);
    let one_resource = &domain.planner.send(ShowStandings).await.unwrap()[0];
    let states = [NodeState::Up, NodeState::Drained, NodeState::Down];
    let counts = states.map(|state| one_resource.counts.count(state));
    assert_eq!(counts, [1, 1, 2]);
    let states: Vec<_> = one_resource.nodes.iter().map(|node| node.state).collect();
    assert_eq!(
        states,
        [
            NodeState::Down,
            NodeState::Down,
            NodeState::Up,
            NodeState::Drained
        ]
    );
}
