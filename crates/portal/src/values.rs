//! The values that a form sends: texts by the names of their fields.

use std::collections::BTreeMap;

use super::request::field_names;

/// The fields of a form or of a query. A field that comes twice counts once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values(BTreeMap<String, String>);

impl Values {
    /// Reads `application/x-www-form-urlencoded`; bytes that are no UTF-8 become replacement characters.
    pub(super) fn read(encoded: &[u8]) -> Self {
        let mut values = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(encoded) {
            values.entry(name.into_owned()).or_insert(value.into_owned());
        }
        Self(values)
    }

    /// The text of a field; empty where it was not sent.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The text of a field in which spaces around it mean nothing.
    pub(super) fn trimmed(&self, name: &str) -> &str {
        self.get(name).trim()
    }

    /// Whether a field was sent at all.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The values with another text in a field.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// The values without a field.
    #[must_use]
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// All fields, in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// As a query that fills in a form: without what belongs to one form alone, and without what is empty. An application is
    /// named even so, since no name stands for none.
    pub(super) fn query(&self) -> String {
        let own = [field_names::CSRF, field_names::ONCE];
        let fills = |(name, value): &(&String, &String)| {
            !own.contains(&name.as_str()) && (!value.is_empty() || *name == field_names::APPLICATION)
        };
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.0.iter().filter(fills));
        query.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_the_first_of_a_name_counts() {
        let values = Values::read("a=1&a=2&b=+x%26y+&%C3%A9=%E2%82%AC&c=%FF".as_bytes());
        assert_eq!(values.get("a"), "1");
        assert_eq!((values.get("b"), values.trimmed("b")), (" x&y ", "x&y"));
        assert_eq!(values.get("é"), "€");
        assert_eq!(values.get("c"), "\u{fffd}");
        assert_eq!(values.get("d"), "");
        assert!(values.has("a") && !values.has("d"));
    }

    #[test]
    fn setting_a_field_replaces_its_text() {
        let values = Values::read(b"a=1&b=2").with("a", "3");
        assert_eq!(values.query(), "a=3&b=2");
    }

    #[test]
    fn a_query_has_all_that_fills_a_form_and_nothing_that_is_its_own() {
        let values = Values::read(b"application=&csrf=secret&once=1&name=a%26b&nodes=");
        assert_eq!(values.query(), "application=&name=a%26b");
    }
}
