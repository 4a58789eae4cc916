//! Tables of text and numbers, for people and for other programs.

use clap::Args;
use comfy_table::{CellAlignment, ContentArrangement, presets};
use serde_json::{Map, Value, json};

/// Rows of text and numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Headings, with units.
    pub columns: Vec<String>,
    /// Rows, as long as the headings.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these headings.
    pub fn new(columns: &[&str]) -> Self {
        Self {
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// As comma-separated values (RFC 4180).
    pub fn csv(&self) -> String {
        table_rows_as_csv(std::iter::once(&self.columns).chain(&self.rows))
    }

    /// As a Markdown table.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> = self.columns.iter().map(|_| "---".to_owned()).collect();
        line(&self.columns) + &line(&rule) + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }

    /// As columns for people, the first to the left and the others to the right. Headings that are long stand above, by number.
    pub fn text(&self) -> String {
        const HEADING_MAX: usize = 16;
        let mut above = String::new();
        let headings = (self.columns.iter().zip(1..))
            .map(|(heading, number)| {
                if heading.chars().count() <= HEADING_MAX {
                    return heading.clone();
                }
                above += &format!("({number}) {heading}\n");
                format!("({number})")
            })
            .collect();
        let right: Vec<usize> = (1..self.columns.len()).collect();
        above + &align_table_rows(std::iter::once(headings).chain(self.rows.iter().cloned()), &right)
    }

    /// As a list of objects with a member for each column: a number where a cell is one, null where it is "–".
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells = self.columns.iter().zip(row).map(|(column, cell)| {
                let value = cell
                    .parse::<f64>()
                    .map_or_else(|_| json!(cell), |number| json!(number));
                (column.clone(), if cell == "–" { Value::Null } else { value })
            });
            Value::Object(cells.collect::<Map<_, _>>())
        });
        Value::Array(rows.collect())
    }
}

/// Rows of cells as comma-separated values (RFC 4180).
pub fn table_rows_as_csv<R>(rows: impl IntoIterator<Item = R>) -> String
where
    R: IntoIterator<Item: AsRef<[u8]>>,
{
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for row in rows {
        // Writing to memory does not fail.
        let _ = writer.write_record(row);
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Rows of cells in columns as wide as their widest cell, with two spaces between them; those of these indexes are set to the
/// right. A line each, without spaces at its end.
pub fn align_table_rows(rows: impl IntoIterator<Item = Vec<String>>, right: &[usize]) -> String {
    let mut table = comfy_table::Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .add_rows(rows);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// The form of a printed table.
#[derive(Debug, Args)]
pub struct TableForm {
    /// Print as JSON.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print as comma-separated values.
    #[arg(long)]
    csv: bool,
}

impl TableForm {
    /// A table in this form; without options as columns for people.
    pub fn table_text(&self, table: &Table) -> String {
        if self.json {
            format!("{:#}", table.json())
        } else if self.csv {
            table.csv().trim_end().to_owned()
        } else {
            table.text()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Table, align_table_rows};

    fn table() -> Table {
        let mut table = Table::new(&["a", "b, c"]);
        table.rows.push(vec!["1".to_owned(), "say \"x\"".to_owned()]);
        table
    }

    #[test]
    fn tables_quote_what_needs_it() {
        assert_eq!(table().csv(), "a,\"b, c\"\n1,\"say \"\"x\"\"\"\n");
        assert_eq!(
            table().markdown(),
            "| a | b, c |\n| --- | --- |\n| 1 | say \"x\" |\n"
        );
    }

    #[test]
    fn a_cell_is_a_number_text_or_nothing() {
        let mut table = table();
        table.rows.push(vec!["–".to_owned(), "2.50".to_owned()]);
        let expected = json!([{ "a": 1.0, "b, c": "say \"x\"" }, { "a": null, "b, c": 2.5 }]);
        assert_eq!(table.json(), expected);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_long_headings_stand_above() {
        let mut table = Table::new(&["what", "a heading of many words", "s"]);
        table
            .rows
            .push(["größer", "1.5", "–"].map(str::to_owned).to_vec());
        table.rows.push(["x", "10.5", "123"].map(str::to_owned).to_vec());
        assert_eq!(
            table.text(),
            "(2) a heading of many words\nwhat     (2)    s\ngrößer   1.5    –\nx       10.5  123"
        );
        let empty = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(
            align_table_rows([empty(["a", ""]), empty(["bbb", "c"])], &[]),
            "a\nbbb  c"
        );
    }
}
