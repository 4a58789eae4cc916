//! The sizes that an offer leaves open: from its range or list of sizes and its law of scaling to each size with its
//! duration.

use domain::agreement::Shape;
use scheduler::Fraction;
use scheduler::moldable::{self, Law, Shapes};
use wsag::job_definition::RangeValue;
use wsag::scheduling::Moldability;

/// Sizes of one offer: each may cost a search among all resources.
const SIZES_MAX: usize = 1_000;

/// The sizes of a range that a provider with at most `capacity` nodes on a resource can think of, from most nodes to fewest.
///
/// # Errors
/// A sentence about the fault of the law or its sizes.
pub(crate) fn sizes_of_range(
    law: &Moldability,
    range: &RangeValue,
    capacity: u32,
) -> Result<Vec<Shape>, String> {
    let (least, greatest) = range.whole_numbers()?;
    // One that is too large even at its least is refused for that, with its least.
    let greatest = greatest.unwrap_or(capacity).min(capacity).max(least);
    let sizes = match range.listed() {
        Some(listed) => moldable::Sizes::List(listed),
        None => moldable::Sizes::Every,
    };
    let bounds = least..=greatest;
    let shapes = Shapes::new(&scheduler_law(law), bounds, &sizes).map_err(|why| why.to_string())?;
    if shapes.len() > SIZES_MAX {
        return Err(format!(
            "at most {SIZES_MAX} sizes are expected, these are {}: list the ones that matter",
            shapes.len()
        ));
    }
    let shape = |(nodes, duration)| Shape { nodes, duration };
    Ok(shapes.iter().map(shape).collect())
}

/// The sizes outside a range that a provider with at most `capacity` nodes on a resource can think of, the nearest first; none
/// for a list, which says which sizes the application can have. Those for which the law has no duration are left out.
pub(crate) fn sizes_beyond_range(law: &Moldability, range: &RangeValue, capacity: u32) -> Vec<Shape> {
    let listed = range.listed().is_some_and(|listed| listed.len() > 1);
    let Some((least, greatest)) = range.whole_numbers().ok().filter(|_| !listed) else {
        return Vec::new();
    };
    let law = scheduler_law(law);
    let shape_of = |nodes| {
        let found = Shapes::new(&law, nodes..=nodes, &moldable::Sizes::Every).ok()?;
        let (nodes, duration) = found.largest();
        Some(Shape { nodes, duration })
    };
    let fewer = (1..least.min(capacity.saturating_add(1))).rev();
    let more = greatest.map_or(0..0, |greatest| {
        greatest.saturating_add(1)..capacity.saturating_add(1)
    });
    let side = SIZES_MAX / 2;
    fewer
        .take(side)
        .chain(more.take(side))
        .filter_map(shape_of)
        .collect()
}

/// The law as the scheduler has it.
fn scheduler_law(law: &Moldability) -> Law {
    match law {
        Moldability::Linear { intercept, slope } => Law::Linear {
            k: *intercept,
            c: *slope,
        },
        Moldability::Table(entries) => Law::Table(
            entries
                .iter()
                .map(|(nodes, seconds)| (*nodes, i64::from(*seconds)))
                .collect(),
        ),
        Moldability::ConstantWork(node_seconds) => Law::ConstantWork {
            node_seconds: whole_node_seconds(*node_seconds),
        },
    }
}

/// Node-seconds as a whole number that covers them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is positive, and beyond the end it is the end"
)]
fn whole_node_seconds(node_seconds: f64) -> u64 {
    node_seconds.ceil() as u64
}

/// A share in millionths, rounded up.
pub(crate) fn millionths(share: f64) -> u32 {
    count((share * 1e6).ceil())
}

/// A ratio of any size in millionths, or the largest there is.
pub(crate) fn size_fraction_of_ratio(ratio: f64) -> Fraction {
    Fraction {
        numerator: count((ratio * 1e6).floor()),
        denominator: 1_000_000,
    }
}

/// A whole number that is not negative, or the largest there is.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is not negative, and beyond the end it is the end"
)]
pub(super) fn count(number: f64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use wsag::job_definition::Exact;

    use super::*;

    fn shapes(law: &Moldability, range: &RangeValue) -> Result<Vec<(u32, i64)>, String> {
        let found = sizes_of_range(law, range, 16)?;
        Ok(found.iter().map(|shape| (shape.nodes, shape.duration)).collect())
    }

    #[test]
    fn each_law_gives_each_size_its_duration() {
        let linear = Moldability::Linear {
            intercept: 100.0,
            slope: 10.0,
        };
        let range = RangeValue::between(2.0, 4.0);
        assert_eq!(shapes(&linear, &range).unwrap(), [(4, 60), (3, 70), (2, 80)]);
        let work = Moldability::ConstantWork(120.5);
        assert_eq!(shapes(&work, &range).unwrap(), [(4, 31), (3, 41), (2, 61)]);
        let table = Moldability::Table(vec![(3, 50), (9, 20), (4, 40)]);
        assert_eq!(shapes(&table, &range).unwrap(), [(4, 40), (3, 50)]);
    }

    #[test]
    fn a_list_allows_its_sizes_and_an_open_range_those_that_there_are() {
        let work = Moldability::ConstantWork(160.0);
        let exact = |value| Exact { value, epsilon: None };
        let list = RangeValue {
            exact: vec![exact(2.0), exact(8.0)],
            ..RangeValue::default()
        };
        assert_eq!(shapes(&work, &list).unwrap(), [(8, 20), (2, 80)]);
        let open = RangeValue {
            lower: RangeValue::between(15.0, 15.0)
                .ranges
                .first()
                .map(|(lower, _)| *lower),
            ..RangeValue::default()
        };
        assert_eq!(shapes(&work, &open).unwrap(), [(16, 10), (15, 11)]);
        assert_eq!(
            shapes(&work, &RangeValue::exactly(20.0)).unwrap(),
            [(20, 8)],
            "too large, which the planner says"
        );
    }

    #[test]
    fn beyond_a_range_are_the_sizes_that_the_law_and_the_provider_have() {
        let nodes = |law: &Moldability, range: &RangeValue, capacity| -> Vec<u32> {
            let found = sizes_beyond_range(law, range, capacity);
            found.iter().map(|shape| shape.nodes).collect()
        };
        let work = Moldability::ConstantWork(160.0);
        let range = RangeValue::between(3.0, 5.0);
        assert_eq!(nodes(&work, &range, 7), [2, 1, 6, 7]);
        assert_eq!(nodes(&work, &range, 4), [2, 1]);
        assert_eq!(nodes(&work, &RangeValue::between(9.0, 9.0), 3), [3, 2, 1]);
        let table = Moldability::Table(vec![(1, 90), (4, 30), (8, 20)]);
        assert_eq!(nodes(&table, &RangeValue::exactly(4.0), 16), [1, 8]);
        let exact = |value| Exact { value, epsilon: None };
        let list = RangeValue {
            exact: vec![exact(2.0), exact(8.0)],
            ..RangeValue::default()
        };
        assert!(nodes(&work, &list, 16).is_empty());
    }

    #[test]
    fn a_law_without_a_duration_is_wrong() {
        let linear = Moldability::Linear {
            intercept: 100.0,
            slope: 50.0,
        };
        let wrong = shapes(&linear, &RangeValue::between(1.0, 3.0)).unwrap_err();
        assert!(wrong.contains("2 nodes") || wrong.contains("3 nodes"), "{wrong}");
        let table = Moldability::Table(vec![(9, 20)]);
        assert!(shapes(&table, &RangeValue::between(1.0, 3.0)).is_err());
    }
}
