//! What an experiment found: numbers beside the paper's, a verdict on each, a table and figures.
//!
//! Nothing here depends on the clock or the machine, so that the same seed gives the same bytes; times are kept elsewhere.

use std::fmt;
use std::fmt::Write as _;

use crate::figure::Figure;
use crate::statistics::Summary;

/// What came of a claim of a paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds here too.
    Reproduced,
    /// Part of it does.
    Partly,
    /// It does not.
    NotReproduced,
    /// A claim of our own, which no paper makes, holds.
    Holds,
    /// Part of such a claim does.
    HoldsPartly,
    /// Such a claim does not.
    DoesNotHold,
    /// There is nothing to compare with.
    Measured,
}

impl Verdict {
    /// From how many of so many parts hold.
    pub fn of(holding: usize, parts: usize) -> Self {
        if holding == parts {
            Self::Reproduced
        } else if holding == 0 {
            Self::NotReproduced
        } else {
            Self::Partly
        }
    }

    /// The same of a claim that no paper makes, so that there is nothing to reproduce.
    pub fn of_own(holding: usize, parts: usize) -> Self {
        match Self::of(holding, parts) {
            Self::Reproduced => Self::Holds,
            Self::NotReproduced => Self::DoesNotHold,
            _ => Self::HoldsPartly,
        }
    }

    /// Whether it holds.
    pub fn holds(holds: bool) -> Self {
        Self::of(usize::from(holds), 1)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::Partly => "partly",
            Self::NotReproduced => "not reproduced",
            Self::Holds => "holds",
            Self::HoldsPartly => "holds in part",
            Self::DoesNotHold => "does not hold",
            Self::Measured => "measured",
        })
    }
}

/// A claim and what was seen of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub what: String,
    /// What the paper says.
    pub paper: String,
    /// What was seen.
    pub seen: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, where it does not hold.
    pub why: String,
}

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
        let line = |cells: &[String]| {
            cells
                .iter()
                .map(|cell| quoted(cell))
                .collect::<Vec<_>>()
                .join(",")
                + "\n"
        };
        line(&self.columns) + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }

    /// As a Markdown table.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> = self.columns.iter().map(|_| "---".to_owned()).collect();
        line(&self.columns) + &line(&rule) + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// What an experiment found.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Its name, such as `000-fig2`.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// How it was done and what its numbers mean.
    pub about: String,
    /// Claims and verdicts.
    pub findings: Vec<Finding>,
    /// All numbers.
    pub table: Table,
    /// Figures.
    pub figures: Vec<Figure>,
}

impl Report {
    /// As a section of a Markdown page. Figures are named as files beside it.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}: {}\n\n{}\n\n", self.name, self.title, self.about);
        for figure in &self.figures {
            // Writing to a string does not fail.
            let _ = writeln!(text, "![{}]({}.svg)\n", figure.title, figure.name);
        }
        text += "| claim | paper | seen here | verdict | why |\n| --- | --- | --- | --- | --- |\n";
        for finding in &self.findings {
            let _ = writeln!(
                text,
                "| {} | {} | {} | **{}** | {} |",
                finding.what, finding.paper, finding.seen, finding.verdict, finding.why
            );
        }
        format!("{text}\n{}\n", self.table.markdown())
    }
}

/// The whole page.
pub fn page(preface: &str, reports: &[Report]) -> String {
    let mut text = format!(
        "# Evaluation\n\n{preface}\n## Verdicts\n\n| experiment | claim | verdict |\n| --- | --- | --- |\n"
    );
    for report in reports {
        for finding in &report.findings {
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                report.name, finding.what, finding.verdict
            );
        }
    }
    text += "\n";
    for report in reports {
        text += &report.markdown();
    }
    text
}

/// A mean, its interval and its deviation, for a table.
pub fn cells(summary: &Summary) -> [String; 3] {
    [summary.mean, summary.confidence, summary.deviation].map(|number| format!("{number:.2}"))
}

#[cfg(test)]
mod tests {
    use super::{Table, Verdict};

    #[test]
    fn tables_quote_what_needs_it() {
        let mut table = Table::new(&["a", "b, c"]);
        table.rows.push(vec!["1".to_owned(), "say \"x\"".to_owned()]);
        assert_eq!(table.csv(), "a,\"b, c\"\n1,\"say \"\"x\"\"\"\n");
        assert_eq!(
            table.markdown(),
            "| a | b, c |\n| --- | --- |\n| 1 | say \"x\" |\n"
        );
    }

    #[test]
    fn a_verdict_counts_the_parts_that_hold() {
        assert_eq!(Verdict::of(9, 9), Verdict::Reproduced);
        assert_eq!(Verdict::of(8, 9), Verdict::Partly);
        assert_eq!(Verdict::of(0, 9), Verdict::NotReproduced);
        let own = [9, 8, 0].map(|holding| Verdict::of_own(holding, 9).to_string());
        assert_eq!(own, ["holds", "holds in part", "does not hold"]);
    }
}
