//! The attributes of a resource, and the resources that have them.

use super::{Resource, bits};
use std::collections::BTreeMap;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attribute {
    /// A word, which is equal or not.
    Word(String),
    /// A number in the unit of the attribute.
    Number(i64),
}

/// The requirement of a task on an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// The named attribute has this value.
    Is(String, Attribute),
    /// The named attribute is a number within one of these bounds, each from the first to the second.
    Within(String, Vec<(i64, i64)>),
}

impl Requirement {
    /// Whether a resource with these attributes will do.
    pub fn holds(&self, attributes: &BTreeMap<String, Attribute>) -> bool {
        match self {
            Self::Is(name, value) => attributes.get(name) == Some(value),
            Self::Within(name, bounds) => match attributes.get(name) {
                Some(Attribute::Number(number)) => bounds
                    .iter()
                    .any(|(least, most)| (least..=most).contains(&number)),
                _ => false,
            },
        }
    }
}

/// For each value of each attribute, the resources that have it.
#[derive(Debug, Clone)]
pub(super) struct AttributeCatalogue {
    resources: usize,
    having: BTreeMap<String, BTreeMap<Attribute, Vec<u64>>>,
}

impl AttributeCatalogue {
    pub(super) fn new(resources: &[Resource]) -> Self {
        let mut having: BTreeMap<String, BTreeMap<Attribute, Vec<u64>>> = BTreeMap::new();
        for (number, resource) in resources.iter().enumerate() {
            for (name, value) in &resource.attributes {
                let values = having.entry(name.clone()).or_default();
                let set = values
                    .entry(value.clone())
                    .or_insert_with(|| vec![0; bits::bit_words(resources.len())]);
                bits::put_bit(set, number, true);
            }
        }
        Self {
            resources: resources.len(),
            having,
        }
    }

    /// The resources that meet all of `requires`.
    pub(super) fn matching(&self, requires: &[Requirement]) -> Vec<u64> {
        let mut matching = vec![u64::MAX; bits::bit_words(self.resources)];
        if let (Some(last), tail @ 1..) = (matching.last_mut(), self.resources % 64) {
            *last = (1 << tail) - 1;
        }
        for requirement in requires {
            let mut meeting = vec![0; matching.len()];
            let mut add = |set: &Vec<u64>| meeting.iter_mut().zip(set).for_each(|(m, s)| *m |= s);
            match requirement {
                Requirement::Is(name, value) => {
                    let values = self.having.get(name);
                    if let Some(set) = values.and_then(|values| values.get(value)) {
                        add(set);
                    }
                }
                Requirement::Within(name, bounds) => {
                    for (least, most) in bounds.iter().filter(|(least, most)| least <= most) {
                        let numbers = Attribute::Number(*least)..=Attribute::Number(*most);
                        let values = self.having.get(name).into_iter();
                        let sets = values.flat_map(|values| values.range(numbers.clone()));
                        sets.for_each(|(_, set)| add(set));
                    }
                }
            }
            matching.iter_mut().zip(&meeting).for_each(|(m, s)| *m &= s);
        }
        matching
    }
}
