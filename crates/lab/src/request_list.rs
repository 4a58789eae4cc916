//! A user's own requests as comma-separated values: `id,submit,duration,nodes,ready,deadline`, in whole seconds from any
//! origin, and in a seventh column, if there is one, `revenue`.
//!
//! Only a row that is no request at all is an error. One that no plan can hold (too many nodes, a window too short) is read as it
//! is, for the scheduler to refuse with its reason.

use std::collections::BTreeSet;

use csv::StringRecord;
use scheduler::{Request, Seconds, Time};

/// The columns, as a heading names them.
const COLUMNS: &str = "id,submit,duration,nodes,ready,deadline";

/// The column that may follow.
const REVENUE: &str = ",revenue";

/// The most requests of a list: some hundred bytes of memory each.
pub const REQUESTS_MAX: usize = 1_000_000;

/// The longest duration and the instant farthest from the origin: 1,000 years. A value beyond is a mistake of units, such as
/// milliseconds; and the node-seconds of any resource stay within 64 bits.
const SECONDS_MAX: Seconds = 1_000 * 366 * 86_400;

/// A line that is no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// The fault, and the expected value.
    pub reason: String,
}

/// Reads a list. A first line that does not start with a number is a heading; empty lines are skipped. The requests come
/// in the order of the list, which need not be that of their submission. Ids do not repeat.
///
/// # Errors
/// The first line that is neither a request nor the heading, or the first beyond [`REQUESTS_MAX`].
pub fn parse_request_list(text: &str) -> Result<Vec<Request>, LineError> {
    let mut requests = Vec::new();
    let mut ids = BTreeSet::new();
    for row in numbered_rows_of_list(text) {
        let (line, row) = row?;
        let error = |reason| LineError { line, reason };
        if is_heading(line, &row) {
            check_request_list_heading(&row).map_err(error)?;
            continue;
        }
        let request = read_listed_request(&row).map_err(error)?;
        if !ids.insert(request.id) {
            return Err(error(format!("the id {} is there twice", request.id)));
        }
        if requests.len() == REQUESTS_MAX {
            return Err(error(format!("more than {REQUESTS_MAX} requests")));
        }
        requests.push(request);
    }
    Ok(requests)
}

/// The rows of comma-separated values with the numbers of their lines, from 1. Rows without anything in them are left out, and so is
/// the space around cells.
pub fn numbered_rows_of_list(text: &str) -> impl Iterator<Item = Result<(usize, StringRecord), LineError>> {
    // Spreadsheets put a byte order mark before the first line.
    let text = text.trim_start_matches('\u{feff}');
    let reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let line = |position: Option<&csv::Position>| {
        position.map_or(0, |at| usize::try_from(at.line()).unwrap_or(usize::MAX))
    };
    reader
        .into_records()
        .map(move |row| match row {
            Ok(row) => Ok((line(row.position()), row)),
            Err(error) => Err(LineError {
                line: line(error.position()),
                reason: error.to_string(),
            }),
        })
        .filter(|row| !matches!(row, Ok((_, row)) if row.len() == 1 && row[0].is_empty()))
}

/// Whether a row is a heading: the first of all, and its first cell no number.
pub fn is_heading(line: usize, row: &StringRecord) -> bool {
    line == 1 && !row[0].starts_with(|first: char| first.is_ascii_digit())
}

/// Columns in another order would be taken for each other.
fn check_request_list_heading(row: &StringRecord) -> Result<(), String> {
    let names = row.iter().collect::<Vec<_>>().join(",");
    let columns = names.strip_suffix(REVENUE).unwrap_or(&names);
    if columns == COLUMNS {
        Ok(())
    } else {
        Err(format!(
            "the columns are {names:?}, expected {COLUMNS} and, if wanted, revenue"
        ))
    }
}

fn read_listed_request(row: &StringRecord) -> Result<Request, String> {
    let columns: Vec<&str> = row.iter().collect();
    let (columns, revenue) = match columns[..] {
        [ref columns @ .., revenue] if columns.len() == 6 => (columns, revenue),
        ref columns => (columns, "0"),
    };
    let [id, submit, duration, nodes, ready, deadline] = *columns else {
        return Err(format!("{} columns, expected {COLUMNS}", columns.len()));
    };
    Ok(Request {
        id: whole_number_in_request_list("id", id, 0, u64::MAX)?,
        submitted: Time(whole_number_in_request_list(
            "submit",
            submit,
            -SECONDS_MAX,
            SECONDS_MAX,
        )?),
        duration: whole_number_in_request_list("duration", duration, 1, SECONDS_MAX)?,
        nodes: whole_number_in_request_list("nodes", nodes, 1, u32::MAX)?,
        ready: Time(whole_number_in_request_list(
            "ready",
            ready,
            -SECONDS_MAX,
            SECONDS_MAX,
        )?),
        deadline: Time(whole_number_in_request_list(
            "deadline",
            deadline,
            -SECONDS_MAX,
            SECONDS_MAX,
        )?),
        revenue: whole_number_in_request_list("revenue", revenue, 0, u64::MAX)?,
    })
}

fn whole_number_in_request_list<N>(name: &str, column: &str, least: N, most: N) -> Result<N, String>
where
    N: Copy + std::str::FromStr + PartialOrd + std::fmt::Display,
{
    column
        .parse()
        .ok()
        .filter(|n| (&least..=&most).contains(&n))
        .ok_or_else(|| format!("{name} is {column:?}, expected a whole number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, REQUESTS_MAX, parse_request_list};

    #[test]
    fn a_list_is_read_with_or_without_a_heading() {
        for heading in ["", &format!("{COLUMNS}\n"), &format!("\u{feff}{COLUMNS}\r\n")] {
            let requests =
                parse_request_list(&format!("{heading}0, 5,100,8,10,110\r\n\n7,6,50,1,-3,90\n")).unwrap();
            assert_eq!(requests.len(), 2, "{heading:?}");
            assert_eq!((requests[0].id, requests[0].submitted.0), (0, 5));
            assert_eq!((requests[0].duration, requests[0].nodes), (100, 8));
            assert_eq!((requests[1].ready.0, requests[1].deadline.0), (-3, 90));
        }
    }

    #[test]
    fn a_seventh_column_is_the_revenue() {
        let text =
            "id,submit,duration,nodes,ready,deadline,revenue\n0,5,100,8,10,110,900\n1,5,100,8,10,110\n";
        let revenues: Vec<u64> = parse_request_list(text)
            .unwrap()
            .iter()
            .map(|r| r.revenue)
            .collect();
        assert_eq!(revenues, [900, 0]);
    }

    #[test]
    fn a_request_that_no_plan_can_hold_is_a_request() {
        assert_eq!(
            parse_request_list("1,0,10,1,0,9\n2,0,10,4000000000,0,10")
                .unwrap()
                .len(),
            2
        );
    }

    #[test]
    fn wrong_lines_are_reported_with_their_number() {
        for (line, reason) in [
            (
                "1,2,3",
                "3 columns, expected id,submit,duration,nodes,ready,deadline",
            ),
            (
                "1,2,3,4,5,6,7,8",
                "8 columns, expected id,submit,duration,nodes,ready,deadline",
            ),
            (
                "1,x,9,1,0,9",
                "submit is \"x\", expected a whole number from -31622400000 to 31622400000",
            ),
            (
                "1,0,9,-1,0,9",
                "nodes is \"-1\", expected a whole number from 1 to 4294967295",
            ),
            (
                "1,0,0,1,0,9",
                "duration is \"0\", expected a whole number from 1 to 31622400000",
            ),
            (
                "1,0,9,1,0,1790000000000",
                "deadline is \"1790000000000\", expected a whole number from -31622400000 to 31622400000",
            ),
            (
                "1.5,0,9,1,0,9",
                "id is \"1.5\", expected a whole number from 0 to 18446744073709551615",
            ),
            ("0,0,9,1,0,9", "the id 0 is there twice"),
        ] {
            let error = parse_request_list(&format!("0,5,100,8,10,110\n{line}\n")).unwrap_err();
            assert_eq!((error.line, error.reason.as_str()), (2, reason));
        }
    }

    #[test]
    fn a_heading_with_other_columns_is_refused() {
        let error = parse_request_list("id,submit,nodes,duration,ready,deadline\n").unwrap_err();
        assert_eq!(error.line, 1);
        assert!(
            error
                .reason
                .ends_with("expected id,submit,duration,nodes,ready,deadline and, if wanted, revenue"),
            "{error}"
        );
    }

    #[test]
    fn a_list_has_an_end() {
        let line = |id| format!("{id},0,1,1,0,1\n");
        let text: String = (0..=REQUESTS_MAX).map(line).collect();
        let error = parse_request_list(&text).unwrap_err();
        assert_eq!(error.line, REQUESTS_MAX + 1);
    }
}
