//! Paths of requests with their queries.

/// The path of a list with its filters.
pub(in crate::cli) struct Query(pub(in crate::cli) String);

impl Query {
    pub(in crate::cli) fn new(path: &str) -> Self {
        Self(format!("{path}?"))
    }

    /// With a filter, where it is given.
    pub(in crate::cli) fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.0 += &format!("{name}={}&", escape_path_part(&value.to_string()));
        }
        self
    }
}

/// A text as one part of a path.
pub(in crate::cli) fn escape_path_part(text: &str) -> String {
    let text: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    text.replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_names_what_it_did() {
        assert_eq!(escape_path_part("n[1-3],big_1"), "n%5B1-3%5D%2Cbig_1");
        assert_eq!(escape_path_part("a/b?c%é"), "a%2Fb%3Fc%25%C3%A9");
    }
}
