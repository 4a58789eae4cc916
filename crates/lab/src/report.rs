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

impl Verdict {
    /// From how many parts of all hold.
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

    /// The same of a claim that has a number: one that holds is reproduced only if the number seen lies within a quarter of the
    /// paper's.
    #[must_use]
    pub fn of_number(self, seen: f64, paper: f64) -> Self {
        let is_near = (seen - paper).abs() <= NEAR * paper.abs();
        match self {
            Self::Reproduced if !is_near => Self::Direction,
            verdict => verdict,
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
    /// A claim of a paper beside our result.
    pub fn new(
        what: impl Into<String>,
        paper: impl Into<String>,
        seen: impl Into<String>,
        verdict: Verdict,
    ) -> Self {
        Self {
            what: what.into(),
            paper: paper.into(),
            seen: seen.into(),
            verdict,
            why: String::new(),
        }
    }

    /// One that no paper has: a measurement, or a claim of our own.
    pub fn own(what: impl Into<String>, seen: impl Into<String>, verdict: Verdict) -> Self {
        Self::new(what, "–", seen, verdict)
    }

    /// With the reason for the verdict.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }
}

/// The results of an experiment.
#[derive(Debug, Clone, PartialEq)]
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
    pub fn new(
        title: &'static str,
        about: impl Into<String>,
        findings: Vec<Finding>,
        table: Table,
        figures: Vec<Figure>,
    ) -> Self {
        Self {
            name: "",
            title,
            about: about.into(),
            findings,
            table,
            figures,
        }
    }

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

/// Numbers for a table.
pub fn cells<const N: usize>(numbers: [f64; N]) -> [String; N] {
    numbers.map(|number| format!("{number:.2}"))
}

/// A mean, its interval and its deviation, for a table.
pub fn spread(summary: &Summary) -> [String; 3] {
    cells([summary.mean, summary.confidence, summary.deviation])
}

/// A mean and its interval, for a table.
pub fn mean(summary: &Summary) -> [String; 2] {
    cells([summary.mean, summary.confidence])
}

/// Results side by side, in a claim.
pub fn joined(values: impl IntoIterator<Item = String>) -> String {
    values.into_iter().collect::<Vec<_>>().join(" / ")
}

/// A load in percent as a factor: submissions come faster by it.
pub fn load_name(load: u32) -> String {
    format!("×{}", f64::from(load) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn a_verdict_counts_the_parts_that_hold() {
        assert_eq!(Verdict::of(9, 9), Verdict::Reproduced);
        assert_eq!(Verdict::of(8, 9), Verdict::Partly);
        assert_eq!(Verdict::of(0, 9), Verdict::NotReproduced);
        let own = [9, 8, 0].map(|holding| Verdict::of_own(holding, 9).to_string());
        assert_eq!(own, ["holds", "holds in part", "does not hold"]);
    }

    #[test]
    fn a_claim_with_a_number_is_reproduced_near_that_number_only() {
        for (seen, paper, verdict) in [
            (15.0, 20.0, Verdict::Reproduced),
            (25.0, 20.0, Verdict::Reproduced),
            (14.9, 20.0, Verdict::Direction),
            (25.1, 20.0, Verdict::Direction),
            (f64::NAN, 20.0, Verdict::Direction),
        ] {
            assert_eq!(Verdict::Reproduced.of_number(seen, paper), verdict, "{seen}");
        }
        for other in [Verdict::Partly, Verdict::NotReproduced] {
            assert_eq!(other.of_number(20.0, 20.0), other);
        }
    }
}
