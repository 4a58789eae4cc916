//! The conditions of a job on nodes beyond their number: JSDL's ranges as conditions on the attributes of resources.

use std::collections::BTreeMap;

use scheduler::domain::Attribute;
use scheduler::prediction::whole_as_real;
use wsag::NamedValue;
use wsag::job_definition::{self, Bound, FilterKind, RangeValue, Resources};

use crate::agreement::{Filter, Measure, attribute_of_filter_kind};
use crate::resources::ARCHITECTURE;

/// The filters of a job. A range without parts asks for nothing.
pub fn filters_of_job(resources: &Resources) -> Vec<Filter> {
    let architecture = resources.cpu_architecture.as_ref().map(|name| Filter::Word {
        attribute: ARCHITECTURE.to_owned(),
        is: name.clone(),
    });
    let numbers = resources.filters.iter().map(|filter| {
        let (attribute, measure) = attribute_of_filter_kind(filter.kind);
        Filter::Number {
            attribute: attribute.to_owned(),
            measure,
            within: whole_numbers_of_job_attribute(&filter.range),
        }
    });
    architecture.into_iter().chain(numbers).collect()
}

/// Has a job ask for what each node must have, in place of its own conditions on the same: at least so much of a number, and a
/// word as it is.
pub(super) fn put_job_attributes(attributes: &BTreeMap<String, Attribute>, resources: &mut Resources) {
    for (name, attribute) in attributes {
        match attribute {
            Attribute::Word(word) => resources.cpu_architecture = Some(word.clone()),
            Attribute::Number(least) => {
                let kinds = FilterKind::NAMES.iter().map(|(kind, _)| *kind);
                let of_node =
                    |kind: &FilterKind| attribute_of_filter_kind(*kind) == (name.as_str(), Measure::Node);
                resources
                    .filters
                    .extend(kinds.filter(of_node).map(|kind| job_definition::Filter {
                        kind,
                        range: RangeValue::at_least(whole_as_real(*least)),
                    }));
            }
        }
    }
    // The later one of a kind counts, in the order of JSDL.
    resources.filters.reverse();
    resources.filters.sort_by_key(|filter| filter.kind);
    resources.filters.dedup_by_key(|filter| filter.kind);
}

/// What each node must have by a job, as far as [`put_job_attributes`] can say it.
pub(super) fn attributes_of_job(resources: &Resources) -> BTreeMap<String, Attribute> {
    let mut attributes = BTreeMap::new();
    for filter in filters_of_job(resources) {
        match filter {
            Filter::Word { attribute, is } => {
                attributes.insert(attribute, Attribute::Word(is));
            }
            Filter::Number {
                attribute,
                measure: Measure::Node,
                within,
            } => {
                if let [(least @ 1.., i64::MAX)] = within[..] {
                    attributes.insert(attribute, Attribute::Number(least));
                }
            }
            Filter::Number { .. } => {}
        }
    }
    attributes
}

/// The whole numbers that a range allows: one pair of bounds for each of its parts.
fn whole_numbers_of_job_attribute(range: &RangeValue) -> Vec<(i64, i64)> {
    let least = |bound: &Bound| {
        if bound.exclusive {
            nearest_whole_number(bound.value.floor()).saturating_add(1)
        } else {
            nearest_whole_number(bound.value.ceil())
        }
    };
    let most = |bound: &Bound| {
        if bound.exclusive {
            nearest_whole_number(bound.value.ceil()).saturating_sub(1)
        } else {
            nearest_whole_number(bound.value.floor())
        }
    };
    let upper = range.upper.iter().map(|bound| (i64::MIN, most(bound)));
    let lower = range.lower.iter().map(|bound| (least(bound), i64::MAX));
    let exact = range.exact.iter().map(|exact| {
        let epsilon = exact.epsilon.unwrap_or(0.0);
        (
            nearest_whole_number((exact.value - epsilon).ceil()),
            nearest_whole_number((exact.value + epsilon).floor()),
        )
    });
    let ranges = range
        .ranges
        .iter()
        .map(|(lower, upper)| (least(lower), most(upper)));
    let within: Vec<_> = upper.chain(lower).chain(exact).chain(ranges).collect();
    if within.is_empty() {
        return vec![(i64::MIN, i64::MAX)];
    }
    within
}

/// A whole number, or the nearest that there is.
#[expect(clippy::cast_possible_truncation, reason = "beyond either end it is the end")]
fn nearest_whole_number(value: f64) -> i64 {
    value as i64
}

#[cfg(test)]
mod tests {
    use wsag::job_definition::Exact;

    use super::*;
    use crate::resources::NUMBERS;

    #[test]
    fn a_range_allows_the_whole_numbers_that_it_contains() {
        let bound = |value, exclusive| Bound { value, exclusive };
        let range = RangeValue {
            upper: Some(bound(2.5, false)),
            lower: Some(bound(90.0, true)),
            exact: vec![Exact {
                value: 10.0,
                epsilon: Some(1.5),
            }],
            ranges: vec![(bound(20.0, true), bound(30.0, true))],
        };
        let within = whole_numbers_of_job_attribute(&range);
        assert_eq!(within, [(i64::MIN, 2), (91, i64::MAX), (9, 11), (21, 29)]);
        for number in -5..120 {
            let allowed = within
                .iter()
                .any(|(least, most)| (least..=most).contains(&&number));
            assert_eq!(allowed, range.contains(at_f64(number)), "{number}");
        }
        assert_eq!(
            whole_numbers_of_job_attribute(&RangeValue::default()),
            [(i64::MIN, i64::MAX)]
        );
    }

    #[test]
    fn what_nodes_must_have_is_read_from_a_job_as_it_was_put_there() {
        let all: BTreeMap<String, Attribute> = NUMBERS
            .iter()
            .zip(1..)
            .map(|(number, least)| (number.name.to_owned(), Attribute::Number(least)))
            .chain([(ARCHITECTURE.to_owned(), Attribute::Word("arm".to_owned()))])
            .collect();
        let mut resources = Resources::default();
        for least in [7, 3] {
            let cpus = BTreeMap::from([("cpus".to_owned(), Attribute::Number(least))]);
            put_job_attributes(&cpus, &mut resources);
            assert_eq!(attributes_of_job(&resources), cpus);
        }
        put_job_attributes(&all, &mut resources);
        assert_eq!(attributes_of_job(&resources), all);
        assert!(
            resources.filters.is_sorted_by_key(|filter| filter.kind),
            "{resources:?}"
        );
        // Conditions other than lower bounds of each node stay out.
        let others = [
            (FilterKind::TotalCpuCount, RangeValue::at_least(4.0)),
            (FilterKind::IndividualCpuCount, RangeValue::exactly(4.0)),
        ];
        let resources = Resources {
            filters: others
                .map(|(kind, range)| job_definition::Filter { kind, range })
                .into(),
            ..Resources::default()
        };
        assert_eq!(attributes_of_job(&resources), BTreeMap::new());
    }

    fn at_f64(number: i64) -> f64 {
        f64::from(i32::try_from(number).unwrap())
    }
}
