//! Alternatives: slots outside of the asked window, offered after a refusal.

use super::super::Setup;
use super::gains::{Gains, flexible_gains, gains, series_over_phi};
use super::{cells_of_loads, columns, joined, load_name, phi_name, point, report};
use crate::figure::{Figure, Plot, Series};
use crate::report::{Finding, Report, Verdict, cells};
use advisor::flexible::{LOADS, PHIS, Run, Takers};
use advisor::statistics::Summary;
use advisor::table::Table;

fn alternative_gains(setup: &Setup, takers: Takers, earlier_only: bool) -> Gains {
    let name = match takers {
        Takers::All => "alternatives for all",
        _ => "alternatives for half",
    };
    gains(
        setup,
        name,
        |run| run,
        |load, phi| Run::with_alternatives(load, phi, takers, earlier_only),
    )
}

/// Figure 5 of paper 000.
pub(super) fn all_sides(setup: &Setup) -> Report {
    compare_alternatives(setup, false, "000-fig5")
}

/// Figure 6 of paper 001.
pub(super) fn earlier_only(setup: &Setup) -> Report {
    compare_alternatives(setup, true, "001-fig6")
}

fn compare_alternatives(setup: &Setup, earlier_only: bool, name: &str) -> Report {
    let flexible = flexible_gains(setup, false);
    let half = alternative_gains(setup, Takers::Half, earlier_only);
    let all = alternative_gains(setup, Takers::All, earlier_only);
    let below = |gains: &Gains| {
        let pairs = gains.points.iter().zip(&flexible.points);
        pairs.filter(|(a, b)| a.mean < b.mean).count()
    };
    let positive = half.points.iter().filter(|gain| gain.is_positive()).count();
    let claim = |who: &str, gains: &Gains| Finding {
        what: format!("alternatives gain less than flexible intervals, taken by {who}"),
        paper: "less".to_owned(),
        seen: format!("less in {} of 9 cells: {}", below(gains), gains.text()),
        verdict: Verdict::of(below(gains), 9),
        why: String::new(),
    };
    let findings = vec![
        Finding {
            what: "alternatives raise the utilisation".to_owned(),
            paper: "they do".to_owned(),
            seen: format!("surely (95 %) in {positive} of 9 cells, taken by half of the users"),
            verdict: Verdict::of(positive, 9),
            why: String::new(),
        },
        claim("half of the users, as half are flexible in figure 2", &half),
        claim("all users", &all),
    ];
    let mut table = flexible.table.clone();
    let further = half.table.rows.iter().chain(&all.table.rows);
    table
        .rows
        .extend(further.filter(|row| row[2] != "rigid").cloned());
    let figures = LOADS
        .iter()
        .enumerate()
        .map(|(at, load)| Figure {
            name: format!("{name}-load-{load}"),
            title: format!(
                "Alternatives against flexible intervals, load {}",
                load_name(*load)
            ),
            x_label: "threshold of alternatives, or mean length of intervals".to_owned(),
            y_label: "utilisation, gain over rigid (points)".to_owned(),
            plot: Plot::Bars {
                groups: (0..PHIS.len()).map(phi_name).collect(),
            },
            series: [
                ("flexible intervals, half", &flexible),
                ("alternatives, half", &half),
                ("alternatives, all", &all),
            ]
            .map(|(label, gains)| Series {
                label: label.to_owned(),
                points: (0..PHIS.len())
                    .map(|phi| point(phi as f64, &gains.points[at * PHIS.len() + phi]))
                    .collect(),
            })
            .to_vec(),
        })
        .collect();
    let which = if earlier_only {
        "Only slots before the ready time are offered. "
    } else {
        ""
    };
    report(
        &format!(
            "Rigid requests, order EDF; after a refusal the nearest slot within the threshold φ is offered, and taken. {which}\
             The papers do not say who takes them, so both readings are run."
        ),
        findings,
        table,
        figures,
    )
}

/// Figure 6 of paper 000.
pub(super) fn deviations(setup: &Setup) -> Report {
    deviations_of(setup, false, "000-fig6")
}

/// Figure 7 of paper 001.
pub(super) fn earlier_deviations(setup: &Setup) -> Report {
    deviations_of(setup, true, "001-fig7")
}

fn deviations_of(setup: &Setup, earlier_only: bool, name: &str) -> Report {
    let runs: Vec<Run> = cells_of_loads()
        .map(|(load, phi)| Run::with_alternatives(load, phi, Takers::All, earlier_only))
        .collect();
    let columns = columns(setup, &runs);
    let mut table = Table::new(&[
        "load",
        "threshold φ (%)",
        "mean φ (%)",
        "± 95 %",
        "standard deviation",
        "windows",
    ]);
    let phis: Vec<Summary> = columns.iter().map(|column| Summary::of(&column.phi)).collect();
    for ((load, phi), summary) in cells_of_loads().zip(&phis) {
        let mut row = vec![load_name(load), PHIS[phi].to_string()];
        row.extend(cells(summary));
        row.push(summary.count.to_string());
        table.rows.push(row);
    }
    let near = cells_of_loads()
        .zip(&phis)
        .filter(|((_, phi), seen)| seen.mean + seen.confidence >= f64::from(PHIS[*phi]))
        .count();
    let findings = vec![Finding {
        what: "the mean φ of accepted alternatives is not significantly less than the threshold".to_owned(),
        paper: "not less".to_owned(),
        seen: format!(
            "means at φ 25 / 50 / 100, load by load: {}",
            joined(phis.iter().map(|phi| format!("{:.0}", phi.mean)))
        ),
        verdict: Verdict::of(near, 9),
        why: "the nearest slot is taken, so deviations spread from 0 to the threshold: about half of it"
            .to_owned(),
    }];
    let figure = Figure {
        name: name.to_owned(),
        title: "Deviation of accepted alternatives".to_owned(),
        x_label: "threshold φ (% of the run time)".to_owned(),
        y_label: "mean φ of accepted alternatives (%)".to_owned(),
        plot: Plot::Lines,
        series: series_over_phi(&phis),
    };
    report(
        "Rigid requests, alternatives taken by all users.",
        findings,
        table,
        vec![figure],
    )
}
