use super::*;

const NOW: i64 = 1_000;

fn interval(start: i64, end: i64) -> Interval {
    Interval::new(Time(start), Time(end))
}

/// Draws numbers from a seed.
fn draws(mut seed: u64) -> impl FnMut(i64) -> i64 {
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(seed >> 33).unwrap() % below
    }
}

#[test]
fn what_is_free_is_what_counting_second_by_second_gives() {
    let mut draw = draws(11);
    for round in 0..200 {
        let mut tree = SlotTree::new(20);
        let mut slots = Vec::new();
        for _ in 0..20 {
            let start = NOW + draw(300);
            slots.push(interval(start, start + 1 + draw(60)));
            tree.reserve(slots[slots.len() - 1], 1).unwrap();
        }
        let mut steps: Vec<(Time, u32)> = (0..4)
            .map(|_| (Time(NOW - 20 + draw(400)), u32::try_from(draw(21)).unwrap()))
            .collect();
        steps.sort_unstable();
        steps.dedup_by_key(|(from, _)| *from);
        let allowed = (round % 2 == 0).then_some(steps);
        let free_at = |at: i64| {
            let busy = slots
                .iter()
                .filter(|slot| slot.contains(interval(at, at + 1)))
                .count();
            let level = allowed.as_ref().map(|steps| {
                let mut before = steps.iter().rev();
                before
                    .find(|(from, _)| *from <= Time(at))
                    .map_or(0, |(_, level)| *level)
            });
            (20 - u32::try_from(busy).unwrap()).min(level.unwrap_or(20))
        };
        let free = FreeNodes {
            tree: &tree,
            allowed: allowed.clone(),
            now: Time(NOW),
            step: 1 + draw(3),
        };
        let start = NOW - 50 + draw(400);
        let within = free.in_steps(interval(start, start + 1 + draw(60)));
        let counted = || (within.start.seconds()..within.end.seconds()).map(&free_at);
        assert_eq!(free.within(within), counted().min().zip(counted().max()));

        let (nodes, seconds) = (u32::try_from(10 + draw(11)).unwrap(), 1 + draw(40));
        let ahead = interval(NOW + draw(100), NOW + 400);
        let mut gaps: Vec<Interval> = Vec::new();
        for at in ahead.start.seconds()..ahead.end.seconds() {
            match gaps.last_mut() {
                _ if free_at(at) < nodes => {}
                Some(last) if last.end == Time(at) => last.end = Time(at + 1),
                _ => gaps.push(interval(at, at + 1)),
            }
        }
        let told = gaps.iter().map(|gap| free_time_in_whole_steps(*gap, free.step));
        let long: Vec<Interval> = told.filter(|gap| gap.duration() >= seconds).take(3).collect();
        assert_eq!(free.next_free(ahead, (nodes, seconds), 3), long);
    }
}

#[test]
fn a_time_that_is_over_has_no_steps_and_others_begin_now() {
    let tree = SlotTree::new(4);
    let free = FreeNodes {
        tree: &tree,
        allowed: None,
        now: Time(NOW),
        step: 300,
    };
    assert!(free.in_steps(interval(0, NOW)).is_empty());
    assert_eq!(free.in_steps(interval(0, 1_300)), interval(NOW, 1_500));
    assert_eq!(free.in_steps(interval(1_600, 1_700)), interval(1_500, 1_800));
    assert_eq!(free.within(interval(NOW, NOW)), None);
}
