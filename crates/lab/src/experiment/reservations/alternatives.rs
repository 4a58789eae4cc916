//! Alternatives: slots outside of the asked window, offered after a refusal.

use super::super::setup::Setup;
use super::gains::{Gains, flexible_gains, gains, series_over_phi};
use super::{cells_of_loads, columns, phi_name};
use crate::figure::{Figure, Series};
use crate::report::{Finding, Report, Verdict, joined, load_name, spread};
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
pub(in crate::experiment) fn all_sides(setup: &Setup) -> Report {
    compare_alternatives(
        setup,
        false,
        "000-fig5",
        "Alternatives instead of flexible intervals",
    )
}

/// Figure 6 of paper 001.
pub(in crate::experiment) fn earlier_only(setup: &Setup) -> Report {
    compare_alternatives(setup, true, "001-fig6", "Earlier alternatives only")
}

fn compare_alternatives(setup: &Setup, earlier_only: bool, name: &str, title: &'static str) -> Report {
    let flexible = flexible_gains(setup, false);
    let half = alternative_gains(setup, Takers::Half, earlier_only);
    let all = alternative_gains(setup, Takers::All, earlier_only);
    let below = |gains: &Gains| {
        let pairs = gains.points.iter().zip(&flexible.points);
        pairs.filter(|(a, b)| a.mean < b.mean).count()
    };
    let positive = half.points.iter().filter(|gain| gain.is_positive()).count();
    let claim = |who: &str, gains: &Gains| {
        Finding::new(
            format!("alternatives gain less than flexible intervals, taken by {who}"),
            "less",
            format!("less in {} of 9 cells: {}", below(gains), gains.text()),
            Verdict::of(below(gains), 9),
        )
    };
    let findings = vec![
        Finding::new(
            "alternatives raise the utilisation",
            "they do",
            format!("surely (95 %) in {positive} of 9 cells, taken by half of the users"),
            Verdict::of(positive, 9),
        ),
        claim("half of the users, as half are flexible in figure 2", &half),
        claim("all users", &all),
    ];
    let mut table = flexible.table.clone();
    let further = half.table.rows.iter().chain(&all.table.rows);
    table
        .rows
        .extend(further.filter(|row| row[2] != "rigid").cloned());
    let figure = |(at, load): (usize, u32)| {
        let bars = |label: &str, gains: &Gains| {
            let of_load = gains.points.iter().skip(at * PHIS.len()).take(PHIS.len());
            Series::bars(label, of_load.copied())
        };
        Figure::bars(
            format!("{name}-load-{load}"),
            format!(
                "Alternatives against flexible intervals, load {}",
                load_name(load)
            ),
            [
                "threshold of alternatives, or mean length of intervals",
                "utilisation, gain over rigid (points)",
            ],
            PHIS.map(phi_name),
            [
                bars("flexible intervals, half", &flexible),
                bars("alternatives, half", &half),
                bars("alternatives, all", &all),
            ],
        )
    };
    let which = if earlier_only {
        "Only slots before the ready time are offered. "
    } else {
        ""
    };
    Report::new(
        title,
        format!(
            "Rigid requests, order EDF; after a refusal the nearest slot within the threshold φ is offered, and taken. {which}\
             The papers do not say who takes them, so both readings are run."
        ),
        findings,
        table,
        LOADS.into_iter().enumerate().map(figure).collect(),
    )
}

/// Figure 6 of paper 000.
pub(in crate::experiment) fn deviations(setup: &Setup) -> Report {
    deviations_of(
        setup,
        false,
        "000-fig6",
        "How far the accepted alternatives are from what was asked",
    )
}

/// Figure 7 of paper 001.
pub(in crate::experiment) fn earlier_deviations(setup: &Setup) -> Report {
    deviations_of(
        setup,
        true,
        "001-fig7",
        "How far the accepted earlier alternatives are from what was asked",
    )
}

fn deviations_of(setup: &Setup, earlier_only: bool, name: &str, title: &'static str) -> Report {
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
        row.extend(spread(summary));
        row.push(summary.count.to_string());
        table.rows.push(row);
    }
    let near = cells_of_loads()
        .zip(&phis)
        .filter(|((_, phi), seen)| seen.mean + seen.confidence >= f64::from(PHIS[*phi]))
        .count();
    let finding = Finding::new(
        "the mean φ of accepted alternatives is not significantly less than the threshold",
        "not less",
        format!(
            "means at φ 25 / 50 / 100, load by load: {}",
            joined(phis.iter().map(|phi| format!("{:.0}", phi.mean)))
        ),
        Verdict::of(near, 9),
    )
    .because("the nearest slot is taken, so deviations spread from 0 to the threshold: about half of it");
    let labels = [
        "threshold φ (% of the run time)",
        "mean φ of accepted alternatives (%)",
    ];
    let series = series_over_phi(&phis);
    let figure = Figure::lines(name, "Deviation of accepted alternatives", labels, series);
    let about = "Rigid requests, alternatives taken by all users.";
    Report::new(title, about, vec![finding], table, vec![figure])
}
