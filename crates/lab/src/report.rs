//! The results of an experiment: numbers beside the paper's, a verdict on each, a table and figures.
//!
//! Nothing here depends on the clock or the machine, so that the same seed gives the same bytes; times are kept elsewhere.

use std::fmt;
use std::fmt::Write as _;

use advisor::table::Table;

use crate::figure::Figure;
use advisor::statistics::Summary;

/// A number is reproduced that differs from the paper's by at most this part of it.
const NEAR: f64 = 0.25;

/// The paper's result in a claim that no paper makes.
const NO_PAPER: &str = "–";

/// The verdict on a claim of a paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds here too.
    Reproduced,
    /// Our result has the direction that the paper says, but a much larger or smaller magnitude.
    Direction,
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

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::Direction => "direction reproduced, magnitude not",
            Self::Partly => "partly",
            Self::NotReproduced => "not reproduced",
            Self::Holds => "holds",
            Self::HoldsPartly => "holds in part",
            Self::DoesNotHold => "does not hold",
            Self::Measured => "measured",
        })
    }
}

/// A claim and our result.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its subject.
    pub what: String,
    /// The paper's result.
    pub paper: String,
    /// Our result.
    pub seen: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, where it does not hold.
    pub why: String,
}

impl Finding {
    /// A claim of our own that is no more than measured, until a paper or a verdict is named.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            paper: NO_PAPER.to_owned(),
            seen: String::new(),
            verdict: Verdict::Measured,
            why: String::new(),
        }
    }

    /// With the result of the paper that makes the claim.
    pub(crate) fn paper(mut self, result: impl Into<String>) -> Self {
        self.paper = result.into();
        self
    }

    /// With our result.
    pub(crate) fn seen(mut self, result: impl Into<String>) -> Self {
        self.seen = result.into();
        self
    }

    /// Judged by how many parts of all hold. A claim that no paper makes is not reproduced but holds.
    pub(crate) fn counted(mut self, holding: usize, parts: usize) -> Self {
        let [all, none, some] = if self.paper == NO_PAPER {
            [Verdict::Holds, Verdict::DoesNotHold, Verdict::HoldsPartly]
        } else {
            [Verdict::Reproduced, Verdict::NotReproduced, Verdict::Partly]
        };
        self.verdict = match holding {
            holding if holding == parts => all,
            0 => none,
            _ => some,
        };
        self
    }

    /// Judged by how many cases of all it holds in, which is our result.
    pub(crate) fn cases(self, (holding, all): (usize, usize)) -> Self {
        let seen = format!("in {holding} of {all} cases");
        self.seen(seen).counted(holding, all)
    }

    /// Judged by whether it holds.
    pub(crate) fn holds(self, holds: bool) -> Self {
        self.counted(usize::from(holds), 1)
    }

    /// Judged by its number too: a claim that holds is reproduced only if the number seen lies within a quarter of the paper's.
    pub(crate) fn near(mut self, seen: f64, paper: f64) -> Self {
        let is_near = (seen - paper).abs() <= NEAR * paper.abs();
        if self.verdict == Verdict::Reproduced && !is_near {
            self.verdict = Verdict::Direction;
        }
        self
    }

    /// With the reason for the verdict.
    pub(crate) fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }
}

/// The results of an experiment.
#[must_use]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// Its name, such as `000-fig2`.
    pub name: &'static str,
    /// Its subject.
    pub title: &'static str,
    /// Its method and the meaning of its numbers.
    pub about: String,
    /// Claims and verdicts.
    pub findings: Vec<Finding>,
    /// All numbers.
    pub table: Table,
    /// Figures.
    pub figures: Vec<Figure>,
}

impl Report {
    /// Without its name, which it gets from its experiment.
    pub(crate) fn new(title: &'static str) -> Self {
        Self {
            title,
            ..Self::default()
        }
    }

    /// With its method.
    pub(crate) fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// With its results.
    pub(crate) fn with(
        self,
        findings: impl Into<Vec<Finding>>,
        table: Table,
        figures: impl Into<Vec<Figure>>,
    ) -> Self {
        Self {
            findings: findings.into(),
            table,
            figures: figures.into(),
            ..self
        }
    }

    /// As a section of a Markdown page. Figures are named as files beside it.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}: {}\n\n{}\n\n", self.name, self.title, self.about);
        for figure in &self.figures {
            // Writing to a string does not fail.
            let _ = writeln!(text, "![{}]({}.svg)\n", figure.title, figure.name);
        }
        let claim = |finding: &Finding| {
            let verdict = format!("**{}**", finding.verdict);
            vec![
                finding.what.clone(),
                finding.paper.clone(),
                finding.seen.clone(),
                verdict,
                finding.why.clone(),
            ]
        };
        let claims = report_table(
            "claim | paper | seen here | verdict | why",
            self.findings.iter().map(claim),
        );
        text + &claims.markdown() + "\n" + &self.table.markdown() + "\n"
    }
}

/// The whole page.
pub(crate) fn report_page(preface: &str, reports: &[Report]) -> String {
    let verdict = |report: &Report, finding: &Finding| {
        vec![
            report.name.to_owned(),
            finding.what.clone(),
            finding.verdict.to_string(),
        ]
    };
    let rows = (reports.iter()).flat_map(|report| {
        report
            .findings
            .iter()
            .map(move |finding| verdict(report, finding))
    });
    let verdicts = report_table("experiment | claim | verdict", rows);
    let sections: String = reports.iter().map(Report::markdown).collect();
    format!(
        "# Evaluation\n\n{preface}\n## Verdicts\n\n{}\n{sections}",
        verdicts.markdown()
    )
}

/// Rows under headings, which are written as in a Markdown table: `load | policy`.
pub(crate) fn report_table(headings: &str, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    Table {
        rows: rows.into_iter().collect(),
        ..Table::new(&headings.split(" | ").collect::<Vec<_>>())
    }
}

/// A row for each cell of a grid, which begins with the names of both its sides.
pub(crate) fn rows_of_report_grid<C>(
    outer: &[String],
    inner: &[impl AsRef<str>],
    cells: &[Vec<C>],
    text: impl Fn(&C) -> Vec<String>,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (outer, cells) in outer.iter().zip(cells) {
        for (inner, cell) in inner.iter().zip(cells) {
            rows.push([vec![outer.clone(), inner.as_ref().to_owned()], text(cell)].concat());
        }
    }
    rows
}

/// Numbers for a table.
pub(crate) fn number_cells<const N: usize>(numbers: [f64; N]) -> Vec<String> {
    numbers.map(|number| format!("{number:.2}")).to_vec()
}

/// A mean, its interval and its deviation, for a table.
pub(crate) fn spread_cells(summary: &Summary) -> Vec<String> {
    number_cells([summary.mean, summary.confidence, summary.deviation])
}

/// A mean and its interval, for a table.
pub(crate) fn mean_cells(summary: &Summary) -> Vec<String> {
    number_cells([summary.mean, summary.confidence])
}

/// How many of these hold, and how many there are.
pub(crate) fn count_reported_cases(parts: impl IntoIterator<Item = bool>) -> (usize, usize) {
    let count = |(holding, all), holds| (holding + usize::from(holds), all + 1);
    parts.into_iter().fold((0, 0), count)
}

/// The mean of these, with its spread.
pub(crate) fn summary_of_values(values: impl IntoIterator<Item = f64>) -> Summary {
    Summary::of(&values.into_iter().collect::<Vec<_>>())
}

/// Results side by side, in a claim.
pub(crate) fn join_results(values: impl IntoIterator<Item = String>) -> String {
    values.into_iter().collect::<Vec<_>>().join(" / ")
}

/// A load in percent as a factor: submissions come faster by it.
pub(crate) fn load_name(load: u32) -> String {
    format!("×{}", f64::from(load) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::{Finding, Verdict};

    #[test]
    fn a_verdict_counts_the_parts_that_hold() {
        let own = [9, 8, 0].map(|holding| Finding::new("").counted(holding, 9).verdict.to_string());
        assert_eq!(own, ["holds", "holds in part", "does not hold"]);
        let of_paper = [9, 8, 0].map(|holding| Finding::new("").paper("").counted(holding, 9).verdict);
        assert_eq!(
            of_paper,
            [Verdict::Reproduced, Verdict::Partly, Verdict::NotReproduced]
        );
    }

    #[test]
    fn a_claim_with_a_number_is_reproduced_near_that_number_only() {
        let verdict = |holding, seen, paper| {
            let claim = Finding::new("").paper("").counted(holding, 2);
            claim.near(seen, paper).verdict
        };
        for (seen, paper, expected) in [
            (15.0, 20.0, Verdict::Reproduced),
            (25.0, 20.0, Verdict::Reproduced),
            (14.9, 20.0, Verdict::Direction),
            (25.1, 20.0, Verdict::Direction),
            (f64::NAN, 20.0, Verdict::Direction),
        ] {
            assert_eq!(verdict(2, seen, paper), expected, "{seen}");
        }
        let others = [1, 0].map(|holding| verdict(holding, 20.0, 20.0));
        assert_eq!(others, [Verdict::Partly, Verdict::NotReproduced]);
    }
}
