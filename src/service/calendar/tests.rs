use domain::agreement::Currency;
use planner::PicturedSlotOf;
use scheduler::SlotTree;
use uuid::Uuid;

use super::*;

const NOW: i64 = 1_000;

fn slot(party: &str, id: u128, start: i64, end: i64, nodes: u32) -> PicturedSlot {
    PicturedSlot {
        of: PicturedSlotOf::Agreement {
            id: Uuid::from_u128(id),
            has_begun: false,
        },
        party: party.to_owned(),
        interval: Interval::new(Time(start), Time(end)),
        nodes,
        choice: None,
        numbers: Vec::new(),
    }
}

fn picture(capacity: u32, mut slots: Vec<PicturedSlot>) -> Picture {
    let mut tree = SlotTree::new(capacity);
    slots.sort_by_key(|slot| slot.interval.start);
    for slot in &slots {
        tree.reserve(slot.interval, slot.nodes).unwrap();
    }
    let resource = PicturedResource {
        name: "local".to_owned(),
        capacity,
        takes_new: true,
        free: tree.steps_from(Time(NOW)).collect(),
        slots,
        unused: Vec::new(),
        counts: domain::resources::NodeCounts::default(),
        nodes: Vec::new(),
    };
    Picture {
        taken: Time(NOW),
        policies: planner::Settings::new(Vec::new(), 1).policies(),
        horizon: Time(100_000),
        is_published: true,
        step: 1,
        resources: vec![resource],
    }
}

fn query(nodes: u32, cells: &[(i64, i64)]) -> CalendarQuery {
    CalendarQuery {
        party: "ann".to_owned(),
        sees_all: false,
        wanted: (nodes, 100),
        resource: None,
        skip: 0,
        cells: cells.to_vec(),
        parts: 2,
    }
}

#[test]
fn a_cell_has_the_fewest_and_the_most_free_nodes_from_now_on_and_shows_ones_own_slots_alone() {
    let slots = vec![slot("ann", 1, 1_500, 2_500, 3), slot("ben", 2, 2_000, 3_000, 2)];
    let asked = query(
        4,
        &[
            (0, 1_000),
            (0, 2_000),
            (2_000, 3_000),
            (3_000, 4_000),
            (200_000, 300_000),
        ],
    );
    let view = CalendarView::of(&picture(8, slots), None, &asked);
    let resource = &view.resources[0];
    let free: Vec<_> = resource.cells.iter().map(|cell| cell.free).collect();
    assert_eq!(
        free,
        [None, Some((5, 8)), Some((3, 6)), Some((8, 8)), Some((8, 8))]
    );
    let open: Vec<_> = resource.cells.iter().map(|cell| cell.is_open).collect();
    assert_eq!(
        open,
        [false, true, true, true, false],
        "one is over, one beyond the horizon"
    );
    assert_eq!(resource.parts[2..6], [None, Some(5), Some(3), Some(6)]);
    let ids: Vec<_> = resource.slots.iter().map(|slot| slot.id.as_u128()).collect();
    assert_eq!(ids, [1]);
    assert_eq!(
        resource.next_free[0],
        (1_000, 2_000),
        "four are free until three and two are taken"
    );
    let everybody = CalendarQuery {
        sees_all: true,
        ..asked
    };
    let view = CalendarView::of(
        &picture(8, vec![slot("ben", 2, 2_000, 3_000, 2)]),
        None,
        &everybody,
    );
    assert_eq!(view.resources[0].slots[0].party, "ben");
}

#[test]
fn a_provider_that_tells_less_is_obeyed() {
    let slots = vec![slot("ann", 1, 1_500, 2_500, 3), slot("ben", 2, 2_000, 3_000, 2)];
    let mut hidden = picture(8, slots);
    hidden.step = 2_000;
    let asked = query(4, &[(3_500, 3_600), (4_000, 4_100)]);
    let free: Vec<_> = CalendarView::of(&hidden, None, &asked).resources[0]
        .cells
        .iter()
        .map(|cell| cell.free)
        .collect();
    assert_eq!(
        free,
        [Some((3, 8)), Some((8, 8))],
        "a step of 2000 seconds is told as one"
    );
    hidden.is_published = false;
    let view = CalendarView::of(&hidden, None, &query(4, &[(1_000, 2_000)]));
    let resource = &view.resources[0];
    assert_eq!((resource.cells[0].free, resource.cells[0].is_open), (None, true));
    assert_eq!(
        (
            resource.parts.as_slice(),
            resource.next_free.len(),
            resource.slots.len()
        ),
        ([None, None].as_slice(), 0, 1)
    );
}

#[test]
fn what_the_quotas_of_the_viewer_forbid_is_not_free_for_it() {
    let slots = vec![slot("ann", 1, 1_500, 2_500, 3), slot("ben", 2, 2_000, 3_000, 2)];
    let mut bounded = picture(8, slots);
    // Of 3600 node-seconds 600 are left, and 8 nodes for 100 seconds are more.
    bounded.policies.quotas.node_hours = Some(1);
    let cells = [(3_000, 4_000), (4_000, 5_000)];
    let free_for = |asked: &CalendarQuery| {
        let view = CalendarView::of(&bounded, None, asked);
        let resource = &view.resources[0];
        let cells = resource.cells.iter().map(|cell| (cell.free, cell.is_open));
        (cells.collect::<Vec<_>>(), resource.next_free.is_empty())
    };
    let four = free_for(&query(4, &cells));
    assert_eq!(four, (vec![(Some((4, 4)), true); 2], false));
    let eight = free_for(&query(8, &cells));
    assert_eq!(eight, (vec![(Some((4, 4)), false); 2], true));
    let all = free_for(&CalendarQuery {
        sees_all: true,
        ..query(8, &cells)
    });
    assert_eq!(all, (vec![(Some((8, 8)), true); 2], false));
}

#[test]
fn an_hour_costs_more_where_fewer_nodes_are_free() {
    let mut pricing = Pricing::flat(1_000_000, Currency::parse("EUR").unwrap());
    pricing.busy = Fraction::percent(50);
    let busy = picture(8, vec![slot("ben", 2, 3_600, 7_200, 4)]);
    let view = CalendarView::of(
        &busy,
        Some(&pricing),
        &query(1, &[(0, 900), (3_600, 7_200), (7_200, 10_800)]),
    );
    let prices = view.resources[0]
        .cells
        .iter()
        .map(|cell| cell.node_hour.as_ref().map(ToString::to_string));
    let told = [None, Some("1.25 EUR".to_owned()), Some("1 EUR".to_owned())];
    assert_eq!(prices.collect::<Vec<_>>(), told);
}

#[test]
fn cells_are_what_counting_second_by_second_gives() {
    let mut seed = 11_u64;
    let mut draw = move |below: i64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(seed >> 33).unwrap() % below
    };
    for _ in 0..100 {
        let mut slots = Vec::new();
        for id in 0..20 {
            let start = NOW + draw(300);
            slots.push(slot("ben", id, start, start + 1 + draw(60), 1));
        }
        let shown = picture(20, slots.clone());
        let start = NOW - 50 + draw(300);
        let cells = [(start, start + 1 + draw(40)), (start + 50, start + 51 + draw(80))];
        let wanted = u32::try_from(10 + draw(11)).unwrap();
        let view = CalendarView::of(&shown, None, &query(wanted, &cells));
        for cell in &view.resources[0].cells {
            let counted = (cell.start.max(NOW)..cell.end).map(|at| {
                let busy = slots
                    .iter()
                    .filter(|slot| slot.interval.contains(Interval::of(Time(at), 1)));
                20 - u32::try_from(busy.count()).unwrap()
            });
            let counted: Vec<u32> = counted.collect();
            let extremes = counted.iter().min().copied().zip(counted.iter().max().copied());
            assert_eq!(cell.free, extremes);
            assert_eq!(cell.is_open, counted.iter().any(|free| *free >= wanted));
        }
    }
}
