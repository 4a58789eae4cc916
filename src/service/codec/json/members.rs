//! Objects of JSON that are made member by member.

use serde_json::Value;

use super::Json;

/// The members of an object that is being made, in their order.
#[derive(Debug, Default)]
pub(in crate::service) struct Members(Vec<(String, Json)>);

impl Members {
    /// With a value of one piece, or a list of such.
    pub(in crate::service) fn with(self, name: &str, value: impl Into<Value>) -> Self {
        self.holding(name, value.into())
    }

    /// The same, where there is one.
    pub(in crate::service) fn with_any(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        self.holding_any(name, value.map(Into::into))
    }

    /// With texts, where there are any.
    pub(in crate::service) fn with_texts(self, name: &str, texts: &[String]) -> Self {
        self.with_any(name, (!texts.is_empty()).then(|| texts.to_vec()))
    }

    /// With a value that has members itself.
    pub(in crate::service) fn holding(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// The same, where there is one.
    pub(in crate::service) fn holding_any(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.holding(name, value),
            None => self,
        }
    }

    /// With all of other members.
    pub(in crate::service) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

impl From<Members> for Json {
    fn from(Members(members): Members) -> Self {
        Self::Object(members)
    }
}
