//! Slurm's short way to write node names: `n[1-3,7],gpu[01-02]` is n1, n2, n3, n7, gpu01 and gpu02.

/// Names that one text may stand for: the largest clusters have about a tenth.
const NAMES_MAX: usize = 1_000_000;

/// The names that a text of Slurm's stands for, in its order: `n[1-2],gpu` is n1, n2 and gpu. `None` where it is no such
/// text, or stands for more than a million.
pub fn expand_hostlist(text: &str) -> Option<Vec<String>> {
    let (mut names, mut inside) = (Vec::new(), false);
    // Each ends at a comma that is in no brackets.
    let is_end = |c: char| {
        inside = c == '[' || inside && c != ']';
        c == ',' && !inside
    };
    for one in text.split(is_end).filter(|_| !text.is_empty()) {
        expand_hostlist_entry(one, String::new(), &mut names)?;
    }
    Some(names)
}

/// Adds the names that a text without commas outside of brackets stands for, each behind `before`.
fn expand_hostlist_entry(text: &str, before: String, names: &mut Vec<String>) -> Option<()> {
    let is_plain = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let Some((plain, rest)) = text.split_once('[') else {
        let name = before + text;
        if name.is_empty() || !is_plain(text) || names.len() >= NAMES_MAX {
            return None;
        }
        names.push(name);
        return Some(());
    };
    let (ranges, after) = rest.split_once(']')?;
    if !is_plain(plain) {
        return None;
    }
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let is_number =
            |text: &str| !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(first) || !is_number(last) {
            return None;
        }
        for number in first.parse::<u32>().ok()?..=last.parse().ok()? {
            let width = first.len();
            expand_hostlist_entry(after, format!("{before}{plain}{number:0width$}"), names)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lists_padding_and_several_brackets_are_expanded_in_order() {
        let names = |text: &str| expand_hostlist(text).map(|names| names.join(" "));
        assert_eq!(
            names("n[1-3,7],gpu[09-10]").as_deref(),
            Some("n1 n2 n3 n7 gpu09 gpu10")
        );
        assert_eq!(names("a[1-2]b[3-4]").as_deref(), Some("a1b3 a1b4 a2b3 a2b4"));
        assert_eq!(names("login.example-1").as_deref(), Some("login.example-1"));
        assert_eq!(names("").as_deref(), Some(""));
        for wrong in [
            "n[",
            "n]",
            "n[1-",
            "n[a]",
            "n[1-2",
            "a,,b",
            "a,",
            "n[]",
            "n 1",
            "n[1-999999999]",
            "(null)",
        ] {
            assert_eq!(expand_hostlist(wrong), None, "{wrong}");
        }
    }
}
