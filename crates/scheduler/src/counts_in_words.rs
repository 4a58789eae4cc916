//! Numbers of things in words.

use std::fmt::Display;

/// A number of things in words: "1 node", "2 nodes".
pub fn counted(count: impl Display, thing: &str) -> String {
    let number = count.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_of_a_thing_is_told_as_one() {
        assert_eq!(counted(1, "node"), "1 node");
        assert_eq!(counted(0, "node"), "0 nodes");
        assert_eq!(counted(11, "second"), "11 seconds");
    }
}
