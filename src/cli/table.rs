//! Tables of what commands print: rows of cells in columns.

use std::fmt::Display;

/// Prints rows of cells in columns; the columns with these indexes are set to the right.
pub(super) fn print_rows(rows: Vec<Vec<String>>, right: &[usize]) {
    if !rows.is_empty() {
        say!("{}", advisor::table::align_table_rows(rows, right));
    }
}

/// Prints a table below its headings, which are given with commas between them.
pub(super) fn print_table(headings: &str, right: &[usize], rows: impl IntoIterator<Item = Vec<String>>) {
    let headings = headings.split(", ").map(ToOwned::to_owned).collect();
    print_rows(std::iter::once(headings).chain(rows).collect(), right);
}

/// The cells of a row.
pub(super) fn row<const N: usize>(cells: [&dyn Display; N]) -> Vec<String> {
    cells.map(ToString::to_string).to_vec()
}
