//! What each node must have, as the form asks for it: attributes of resources, in units for people.

use std::collections::BTreeMap;

use domain::resources::{NUMBERS, NodeNumber};
use wsag::job_definition::ARCHITECTURES;

use service::{Attribute, OfferedResourceView};

/// The name of the attribute that is a word.
pub(crate) const ARCHITECTURE: &str = "cpu_architecture";

/// The most of an attribute that the form can say: whole numbers up to there are exact.
const AMOUNT_MAX: f64 = 1e15;

/// The least amount of a number that a text in a form asks for, in the unit of the attribute; none where it is no number above 0, or a
/// part of something that has none.
#[expect(clippy::cast_possible_truncation, reason = "it is whole and within bounds")]
pub(crate) fn read_attribute_amount(number: &NodeNumber, text: &str) -> Option<i64> {
    let said: f64 = text.parse().ok()?;
    let amount = (said * number.unit).round();
    let has_parts = number.unit > 1.0 || said.fract() == 0.0;
    (has_parts && (1.0..=AMOUNT_MAX).contains(&amount)).then_some(amount as i64)
}

/// The text that asks for an amount of a number in a form.
#[expect(clippy::cast_precision_loss, reason = "what nodes have lies far below 2⁵³")]
pub(crate) fn amount_as_text(number: &NodeNumber, amount: i64) -> String {
    (amount as f64 / number.unit).to_string()
}

/// The least and the greatest of a number that nodes of these resources have, in words; none where no resource says it.
pub(crate) fn attribute_amounts_in_words(
    number: &NodeNumber,
    resources: &[OfferedResourceView],
) -> Option<String> {
    let values = resources
        .iter()
        .filter_map(|resource| resource.attributes.get(number.name)?.as_i64());
    let (least, most) = (values.clone().min()?, values.max()?);
    let (least, most) = (amount_as_text(number, least), amount_as_text(number, most));
    Some(if least == most {
        format!("{}: {least}", number.label)
    } else {
        format!("{}: {least} to {most}", number.label)
    })
}

/// Whether a request can ask for an architecture of this name.
pub(crate) fn is_architecture(name: &str) -> bool {
    ARCHITECTURES.contains(&name)
}

/// The architectures of resources that a request can ask for, each once.
pub(crate) fn architectures_in_attributes(resources: &[OfferedResourceView]) -> Vec<String> {
    let named = resources
        .iter()
        .filter_map(|resource| resource.attributes.get(ARCHITECTURE)?.as_str())
        .filter(|name| is_architecture(name));
    let named: std::collections::BTreeSet<_> = named.map(ToOwned::to_owned).collect();
    named.into_iter().collect()
}

/// What each node must have, in words.
pub(crate) fn attributes_in_words(attributes: &BTreeMap<String, Attribute>) -> Vec<String> {
    let attribute_in_words = |(name, attribute): (&String, &Attribute)| match attribute {
        Attribute::Word(word) => Some(format!("architecture: {word}")),
        Attribute::Number(least) => {
            let number = NUMBERS.iter().find(|number| number.name == name)?;
            Some(format!(
                "{}: {} or more",
                number.label,
                amount_as_text(number, *least)
            ))
        }
    };
    attributes.iter().filter_map(attribute_in_words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_as_it_is_written() {
        let named = |name: &str| {
            NUMBERS
                .iter()
                .find(|number| number.name == name)
                .expect("it is there")
        };
        let (cpus, memory) = (named("cpus"), named("memory_bytes"));
        for amount in [1, 8, 64] {
            assert_eq!(
                read_attribute_amount(cpus, &amount_as_text(cpus, amount)),
                Some(amount)
            );
        }
        for amount in [1, 500_000_000, 17_179_869_184, 999_999_999_999_999] {
            assert_eq!(
                read_attribute_amount(memory, &amount_as_text(memory, amount)),
                Some(amount),
                "{amount}"
            );
        }
        assert_eq!(amount_as_text(memory, 16_000_000_000), "16");
        for text in ["0", "-1", "NaN", "inf", "1e99", "much", "1.5"] {
            assert_eq!(read_attribute_amount(cpus, text), None, "{text}");
        }
    }
}
