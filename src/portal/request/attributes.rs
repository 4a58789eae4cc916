//! What each node must have, as the form asks for it: attributes of resources, in units for people.

use std::collections::BTreeMap;

use wsag::job::ARCHITECTURES;

use crate::negotiation::{Attribute, OfferedResourceView};
use crate::portal::request::field;

/// A number of which each node must have something at least.
pub(in crate::portal) struct NodeNumber {
    pub(in crate::portal) field: &'static str,
    /// The name that resources and requests have for it.
    pub(in crate::portal) attribute: &'static str,
    pub(in crate::portal) label: &'static str,
    /// What 1 in the form stands for, in the unit of the attribute.
    unit: f64,
}

/// The names of the attributes that are numbers, in the order of the form.
pub(in crate::portal) const NODE_NUMBERS: [NodeNumber; 6] = [
    node_number(field::CPUS, "cpus", "Processors", 1.0),
    node_number(field::MEMORY, "memory_bytes", "Memory (GB)", GIGA),
    node_number(field::DISK, "disk_bytes", "Disk (GB)", GIGA),
    node_number(
        field::VIRTUAL_MEMORY,
        "virtual_memory_bytes",
        "Virtual memory (GB)",
        GIGA,
    ),
    node_number(field::CPU_SPEED, "cpu_speed_hz", "Speed (GHz)", GIGA),
    node_number(
        field::NETWORK,
        "network_bits_per_second",
        "Network (Gbit/s)",
        GIGA,
    ),
];

/// The name of the attribute that is a word.
pub(in crate::portal) const ARCHITECTURE: &str = "cpu_architecture";

const GIGA: f64 = 1e9;
/// The most of an attribute that the form can say: whole numbers up to there are exact.
const AMOUNT_MAX: f64 = 1e15;

const fn node_number(
    field: &'static str,
    attribute: &'static str,
    label: &'static str,
    unit: f64,
) -> NodeNumber {
    NodeNumber {
        field,
        attribute,
        label,
        unit,
    }
}

impl NodeNumber {
    /// The least amount that a text asks for, in the unit of the attribute; none where it is no number above 0, or a part of
    /// something that has none.
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and within bounds")]
    pub(in crate::portal) fn read(&self, text: &str) -> Option<i64> {
        let number: f64 = text.parse().ok()?;
        let amount = (number * self.unit).round();
        let has_parts = self.unit > 1.0 || number.fract() == 0.0;
        (has_parts && (1.0..=AMOUNT_MAX).contains(&amount)).then_some(amount as i64)
    }

    /// The text that asks for an amount.
    #[expect(clippy::cast_precision_loss, reason = "what nodes have lies far below 2⁵³")]
    pub(in crate::portal) fn text(&self, amount: i64) -> String {
        (amount as f64 / self.unit).to_string()
    }

    /// The least and the greatest of it that nodes of these resources have; none where no resource says it.
    fn found(&self, resources: &[OfferedResourceView]) -> Option<(i64, i64)> {
        let values = resources
            .iter()
            .filter_map(|resource| resource.attributes.get(self.attribute)?.as_i64());
        Some((values.clone().min()?, values.max()?))
    }

    /// The least and the greatest of it that nodes of these resources have, in words.
    pub(in crate::portal) fn found_in_words(&self, resources: &[OfferedResourceView]) -> Option<String> {
        let (least, most) = self.found(resources)?;
        let (least, most) = (self.text(least), self.text(most));
        Some(if least == most {
            format!("{}: {least}", self.label)
        } else {
            format!("{}: {least} to {most}", self.label)
        })
    }
}

/// Whether a request can ask for an architecture of this name.
pub(in crate::portal) fn is_architecture(name: &str) -> bool {
    ARCHITECTURES.contains(&name)
}

/// The architectures of resources that a request can ask for, each once.
pub(in crate::portal) fn architectures_of(resources: &[OfferedResourceView]) -> Vec<String> {
    let named = resources
        .iter()
        .filter_map(|resource| resource.attributes.get(ARCHITECTURE)?.as_str())
        .filter(|name| is_architecture(name));
    let named: std::collections::BTreeSet<_> = named.map(ToOwned::to_owned).collect();
    named.into_iter().collect()
}

/// What each node must have, in words.
pub(in crate::portal) fn attributes_in_words(attributes: &BTreeMap<String, Attribute>) -> Vec<String> {
    let attribute_in_words = |(name, attribute): (&String, &Attribute)| match attribute {
        Attribute::Word(word) => Some(format!("architecture: {word}")),
        Attribute::Number(least) => {
            let number = NODE_NUMBERS.iter().find(|number| number.attribute == name)?;
            Some(format!("{}: {} or more", number.label, number.text(*least)))
        }
    };
    attributes.iter().filter_map(attribute_in_words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_as_it_is_written() {
        let [cpus, memory, ..] = NODE_NUMBERS;
        for amount in [1, 8, 64] {
            assert_eq!(cpus.read(&cpus.text(amount)), Some(amount));
        }
        for amount in [1, 500_000_000, 17_179_869_184, 999_999_999_999_999] {
            assert_eq!(memory.read(&memory.text(amount)), Some(amount), "{amount}");
        }
        assert_eq!(memory.text(16_000_000_000), "16");
        for text in ["0", "-1", "NaN", "inf", "1e99", "much", "1.5"] {
            assert_eq!(cpus.read(text), None, "{text}");
        }
    }
}
