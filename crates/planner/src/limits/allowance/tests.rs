use super::*;

const ON: (&str, u32) = ("local", 4);
const DAY: i64 = 86_400;

/// The allowance beside slots on the resource.
fn beside(slots: &[(Interval, u32)]) -> Allowance<'static> {
    let mut usage = Usage::default();
    for slot in slots {
        usage.add(*slot);
    }
    Allowance {
        on: BTreeMap::from([("local".to_owned(), Cow::Owned(usage))]),
        ..Allowance::default()
    }
}

fn interval(start: i64, end: i64) -> Interval {
    Interval::new(Time(start), Time(end))
}

#[test]
fn node_hours_and_the_horizon_of_a_party_bind_what_it_may_have() {
    let allowance = Allowance {
        node_seconds: Some(3_600),
        until: Some(Time(DAY)),
        ..beside(&[(interval(0, 3_600), 1)])
    };
    let within = interval(0, 2 * DAY);
    assert_eq!(allowance.times(ON, (1, 3_600), within), [interval(0, DAY)]);
    assert_eq!(allowance.times(ON, (2, 1_800), within), [interval(0, DAY)]);
    assert_eq!(allowance.times(ON, (1, 3_601), within), []);
    assert!(!allowance.is_unbounded());
    assert!(beside(&[]).is_unbounded());
}

#[test]
fn times_that_a_share_forbids_are_not_free() {
    // The half of 30 days of four nodes is used up.
    let used = [(interval(0, 15 * DAY), 4)];
    let within = interval(0, 90 * DAY);
    let share = Allowance {
        share_percent: Some(50),
        ..beside(&used)
    };
    assert_eq!(
        share.times(ON, (4, 3_600), within),
        [interval(30 * DAY, 90 * DAY)],
        "a span of 30 days that begins with what it has has no room"
    );
    assert_eq!(beside(&used).times(ON, (4, 3_600), within), [within]);
    let steps = share.steps(ON, (4, 3_600), within);
    let at = |day: i64| {
        let mut before = steps.iter().rev();
        before
            .find(|(from, _)| *from <= Time(day * DAY))
            .map_or(0, |(_, nodes)| *nodes)
    };
    assert_eq!([20, 35, 50].map(at), [0, 4, 4]);
}

#[test]
fn the_greatest_number_that_fits_is_found() {
    for most in 0..20 {
        let found = greatest_allowance_below(16, |number| number <= most);
        assert_eq!(found, Some(most.min(15)).filter(|found| *found > 0));
    }
    assert_eq!(greatest_allowance_below(1, |_| true), None);
}
