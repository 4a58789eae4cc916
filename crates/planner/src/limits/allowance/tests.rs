use super::*;

const ON: (&str, u32) = ("local", 4);
const DAY: i64 = 86_400;

fn slot(start: i64, end: i64, nodes: u32) -> (&'static str, Option<Uuid>, Stretch) {
    let interval = Interval::new(Time(start), Time(end));
    ("local", None, (interval, nodes))
}

fn interval(start: i64, end: i64) -> Interval {
    Interval::new(Time(start), Time(end))
}

#[test]
fn node_hours_and_the_horizon_of_a_party_bind_what_it_may_have() {
    let quotas = Quotas {
        node_hours: Some(4),
        horizon: Some(DAY),
        ..Quotas::default()
    };
    let held = |start, nodes| {
        let (resource, _, stretch) = slot(start, start + 3_600, nodes);
        (resource, Some(Uuid::nil()), stretch)
    };
    // Of two offers of one answer the larger counts.
    let slots = [slot(0, 3_600, 1), held(0, 2), held(7_200, 1)];
    let allowance = Allowance::beside(&quotas, (Time(0), false), slots.into_iter());
    let within = interval(0, 2 * DAY);
    assert_eq!(allowance.times(ON, (1, 3_600), within), [interval(0, DAY)]);
    assert_eq!(allowance.times(ON, (2, 1_800), within), [interval(0, DAY)]);
    assert_eq!(allowance.times(ON, (1, 3_601), within), []);
    assert!(!allowance.is_unbounded());
    let none = Allowance::beside(&Quotas::default(), (Time(0), true), slots.into_iter());
    assert!(none.is_unbounded());
}

#[test]
fn times_that_a_share_forbids_are_not_free() {
    let quotas = Quotas {
        share_percent: Some(50),
        ..Quotas::default()
    };
    // The half of 30 days of four nodes is used up.
    let slots = [slot(0, 15 * DAY, 4)];
    let within = interval(0, 90 * DAY);
    let share = Allowance::beside(&quotas, (Time(0), true), slots.into_iter());
    assert_eq!(
        share.times(ON, (4, 3_600), within),
        [interval(30 * DAY, 90 * DAY)],
        "a span of 30 days that begins with what it has has no room"
    );
    let alone = Allowance::beside(&quotas, (Time(0), false), slots.into_iter());
    assert_eq!(alone.times(ON, (4, 3_600), within), [within]);
    let free = [(Time(0), 0), (Time(15 * DAY), 4), (Time(40 * DAY), 3)];
    let limited = share.limit_free(&free, ON, (4, 3_600), within);
    let at = |day: i64| {
        limited
            .iter()
            .rev()
            .find(|(at, _)| *at <= Time(day * DAY))
            .unwrap()
            .1
    };
    assert_eq!([20, 35, 50].map(at), [0, 4, 3]);
}

#[test]
fn the_greatest_number_that_fits_is_found() {
    for most in 0..20 {
        let found = greatest_allowance_below(16, |number| number <= most);
        assert_eq!(found, Some(most.min(15)).filter(|found| *found > 0));
    }
    assert_eq!(greatest_allowance_below(1, |_| true), None);
}
