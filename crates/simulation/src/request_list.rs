//! A user's own requests as comma-separated values: `id,submit,duration,nodes,ready,deadline`, in whole seconds from any
//! origin. A first line that does not start with a number is a heading.

use std::fmt::Write as _;

use scheduler::{Request, Time};

/// Columns of a line.
const COLUMNS: [&str; 6] = ["id", "submit", "duration", "nodes", "ready", "deadline"];

/// A line that is no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads a list. Empty lines are skipped. The requests come in the order of the list, which need not be that of their
/// submission; ids must not repeat.
///
/// # Errors
/// The first line that is no request.
pub fn parse(text: &str) -> Result<Vec<Request>, LineError> {
    let mut requests = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let heading = index == 0 && !line.starts_with(|first: char| first.is_ascii_digit());
        if line.is_empty() || heading {
            continue;
        }
        let error = |reason| LineError {
            line: index + 1,
            reason,
        };
        let request = request(line).map_err(error)?;
        if !ids.insert(request.id) {
            return Err(error(format!("id {} is there twice", request.id)));
        }
        requests.push(request);
    }
    Ok(requests)
}

fn request(line: &str) -> Result<Request, String> {
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    let [id, submit, duration, nodes, ready, deadline] = columns[..] else {
        return Err(format!(
            "{} columns, not {}: {}",
            columns.len(),
            COLUMNS.len(),
            COLUMNS.join(",")
        ));
    };
    let seconds = |name: &str, column: &str| {
        column
            .parse::<i64>()
            .ok()
            .filter(|seconds| (Time::MIN.0..=Time::MAX.0).contains(seconds))
            .ok_or_else(|| format!("{name} is {column:?}, not whole seconds"))
    };
    let id = id
        .parse()
        .map_err(|_| format!("id is {id:?}, not a whole number"))?;
    let nodes = nodes
        .parse()
        .map_err(|_| format!("nodes is {nodes:?}, not a whole number"))?;
    let request = Request {
        id,
        submitted: Time(seconds("submit", submit)?),
        duration: seconds("duration", duration)?,
        nodes,
        ready: Time(seconds("ready", ready)?),
        deadline: Time(seconds("deadline", deadline)?),
        revenue: 0,
    };
    if request.duration < 1 || request.nodes < 1 {
        return Err("duration and nodes must be at least 1".to_owned());
    }
    if request.deadline - request.ready < request.duration {
        return Err("the duration is longer than the time from ready to deadline".to_owned());
    }
    Ok(request)
}

/// Writes a list that [`parse`] reads.
pub fn format<'a>(requests: impl IntoIterator<Item = &'a Request>) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for r in requests {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{}",
            r.id, r.submitted, r.duration, r.nodes, r.ready, r.deadline
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{format, parse};

    #[test]
    fn a_list_is_read_and_written_back_as_it_was() {
        let text = "id,submit,duration,nodes,ready,deadline\n0,5,100,8,10,110\n7,6,50,1,-3,90\n";
        let requests = parse(text).unwrap();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1].ready.0, -3);
        assert_eq!(format(&requests), text);
    }

    #[test]
    fn a_heading_is_not_needed() {
        assert_eq!(parse("0, 5, 100, 8, 10, 110\n\n").unwrap().len(), 1);
    }

    #[test]
    fn wrong_lines_are_reported_with_their_number() {
        for (line, reason) in [
            (
                "1,2,3",
                "3 columns, not 6: id,submit,duration,nodes,ready,deadline",
            ),
            ("1,x,9,1,0,9", "submit is \"x\", not whole seconds"),
            ("1,0,9,-1,0,9", "nodes is \"-1\", not a whole number"),
            ("1,0,0,1,0,9", "duration and nodes must be at least 1"),
            (
                "1,0,10,1,0,9",
                "the duration is longer than the time from ready to deadline",
            ),
            ("0,0,9,1,0,9", "id 0 is there twice"),
        ] {
            let error = parse(&format!("0,5,100,8,10,110\n{line}\n")).unwrap_err();
            assert_eq!((error.line, error.reason.as_str()), (2, reason));
        }
    }
}
