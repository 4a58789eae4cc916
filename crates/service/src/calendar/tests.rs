use domain::agreement::Currency;
use planner::PicturedSlotOf;
use uuid::Uuid;

use super::*;

const NOW: i64 = 1_000;

fn slot(id: u128, start: i64, end: i64, numbers: &[u32]) -> PicturedSlot {
    PicturedSlot {
        of: PicturedSlotOf::HeldOffers(Uuid::from_u128(id)),
        party: "ann".to_owned(),
        interval: Interval::new(Time(start), Time(end)),
        nodes: 2,
        numbers: numbers.to_vec(),
    }
}

/// A cell from an instant until another, with the fewest and the most free nodes and the node-seconds in use.
fn cell((start, end): (i64, i64), free: Option<(u32, u32)>, taken: u64) -> CalendarCell {
    CalendarCell {
        interval: Interval::new(Time(start), Time(end)),
        within: Interval::new(Time(start.max(NOW)), Time(end.max(NOW))),
        free,
        taken,
    }
}

fn calendar(cells: Vec<CalendarCell>) -> Calendar {
    let resource = CalendarResource {
        name: "local".to_owned(),
        capacity: 8,
        takes_new: true,
        parts: vec![None; cells.len()],
        cells,
        slots: vec![slot(1, 1_500, 2_500, &[4, 5]), slot(2, 2_000, 3_000, &[])],
        more_slots: 7,
        next_free: vec![Interval::new(Time(1_100), Time(1_200))],
    };
    Calendar {
        taken: Time(NOW),
        horizon: Time(100_000),
        is_published: true,
        names: vec!["local".to_owned()],
        resources: vec![resource],
        next: None,
    }
}

fn query(nodes: u32) -> CalendarQuery {
    CalendarQuery {
        party: "ann".to_owned(),
        sees_all: false,
        wanted: (nodes, 100),
        resource: None,
        skip: 0,
        cells: vec![(0, 1_000), (1_000, 2_000)],
        parts: 2,
    }
}

#[test]
fn a_cell_is_open_where_the_wanted_nodes_may_be_had() {
    let cells = || {
        calendar(vec![
            cell((0, 1_000), None, 0),
            cell((0, 2_000), Some((5, 8)), 0),
            cell((2_000, 3_000), Some((2, 3)), 0),
            cell((3_000, 4_000), None, 0),
            cell((200_000, 300_000), Some((8, 8)), 0),
        ])
    };
    let open = |calendar, nodes| {
        let view = CalendarView::of(calendar, None, &query(nodes));
        let cells = view.resources[0].cells.iter().map(|cell| cell.is_open);
        cells.collect::<Vec<_>>()
    };
    assert_eq!(
        open(cells(), 4),
        [false, true, false, true, false],
        "one is over, one full, one not told, one beyond the horizon"
    );
    assert_eq!(open(cells(), 9), [false; 5], "there are eight nodes");
    let mut frozen = cells();
    frozen.resources[0].takes_new = false;
    assert_eq!(open(frozen, 4), [false; 5]);
}

#[test]
fn slots_are_drawn_on_the_lowest_rows_whichever_nodes_they_have() {
    let view = CalendarView::of(calendar(Vec::new()), None, &query(1));
    let of = &view.resources[0];
    let rows: Vec<_> = of.slots.iter().flat_map(|slot| slot.rows.clone()).collect();
    assert_eq!(rows, [0..2, 2..4]);
    assert_eq!((of.more_slots, &of.next_free[..]), (7, &[(1_100, 1_200)][..]));
}

#[test]
fn an_hour_costs_more_where_fewer_nodes_are_free() {
    let mut pricing = Pricing::flat(1_000_000, Currency::parse("EUR").unwrap());
    pricing.busy = Fraction::percent(50);
    let cells = || {
        calendar(vec![
            cell((0, 900), None, 0),
            cell((3_600, 7_200), Some((4, 4)), 4 * 3_600),
            cell((7_200, 10_800), Some((8, 8)), 0),
        ])
    };
    let told = |calendar| {
        let view = CalendarView::of(calendar, Some(&pricing), &query(1));
        let cells = view.resources[0].cells.iter();
        cells
            .map(|cell| cell.node_hour.as_ref().map(ToString::to_string))
            .collect::<Vec<_>>()
    };
    let [cheap, dear] = ["1 EUR", "1.25 EUR"].map(|price| Some(price.to_owned()));
    assert_eq!(told(cells()), [None, dear, cheap.clone()]);
    let mut hidden = cells();
    hidden.is_published = false;
    assert_eq!(
        told(hidden),
        [None, cheap.clone(), cheap],
        "the price tells nothing, either"
    );
}

#[test]
fn the_planner_is_asked_for_the_viewer() {
    let asked = query(3).to_planner();
    assert_eq!((asked.party.as_deref(), asked.wanted), (Some("ann"), (3, 100)));
    let ends = asked.cells.iter().map(|cell| (cell.start, cell.end));
    assert_eq!(
        ends.collect::<Vec<_>>(),
        [(Time(0), Time(1_000)), (Time(1_000), Time(2_000))]
    );
    let all = CalendarQuery {
        sees_all: true,
        ..query(3)
    };
    assert_eq!(
        all.to_planner().party,
        None,
        "nothing bounds what an operator sees"
    );
}
