//! Alternatives: slots outside of the asked window, offered after a refusal.

use super::super::setup::Setup;
use super::gains::{Gains, flexible_gains, measure_gains, series_over_phi};
use super::{UTILISATION_COLUMNS, cells_of_loads, phi_name, play_runs};
use crate::figure::{Figure, Series};
use crate::report::{
    Finding, Report, count_holding, grid_rows, join_results, load_name, report_table, spread_cells,
};
use advisor::flexible::{LOADS, PHIS, Takers, WindowRun};
use advisor::statistics::Summary;

/// Figure 5 of paper 000, and figure 6 of paper 001, which offers earlier slots only.
pub(in crate::experiment) fn report_alternatives_gain(setup: &Setup, earlier_only: bool) -> Report {
    let (name, title, which) = if earlier_only {
        let which = "Only slots before the ready time are offered. ";
        ("001-fig6", "Earlier alternatives only", which)
    } else {
        ("000-fig5", "Alternatives instead of flexible intervals", "")
    };
    let of_takers = |name, takers| {
        let run = |load, phi| WindowRun::with_alternatives(load, phi, takers, earlier_only);
        measure_gains(setup, name, false, run)
    };
    let flexible = flexible_gains(setup, false);
    let half = of_takers("alternatives for half", Takers::Half);
    let all = of_takers("alternatives for all", Takers::All);
    let cells = |gains: &Gains| gains.points.concat().into_iter();
    let less = |who: &str, gains: &Gains| {
        let pairs = cells(gains).zip(cells(&flexible));
        let (below, all) = count_holding(pairs.map(|(a, b)| a.mean < b.mean));
        let claim = format!("alternatives gain less than flexible intervals, taken by {who}");
        Finding::new(claim)
            .paper("less")
            .seen(format!("less in {below} of {all} cells: {}", gains.text()))
            .counted(below, all)
    };
    let (positive, cells) = count_holding(cells(&half).map(|gain| gain.is_positive()));
    let seen = format!("surely (95 %) in {positive} of {cells} cells, taken by half of the users");
    let findings = [
        Finding::new("alternatives raise the utilisation")
            .paper("they do")
            .seen(seen)
            .counted(positive, cells),
        less("half of the users, as half are flexible in figure 2", &half),
        less("all users", &all),
    ];
    let figure = |(at, load): (usize, u32)| {
        let bars = |label, gains: &Gains| Series::bars(label, gains.points[at].iter().copied());
        let load_name = load_name(load);
        let series = [
            bars("flexible intervals, half", &flexible),
            bars("alternatives, half", &half),
            bars("alternatives, all", &all),
        ];
        let title = format!("Alternatives against flexible intervals, load {load_name}");
        Figure::new(title)
            .named(format!("{name}-load-{load}"))
            .x("threshold of alternatives, or mean length of intervals")
            .y("utilisation, gain over rigid (points)")
            .bars(PHIS.map(phi_name), series)
    };
    let figures: Vec<Figure> = LOADS.into_iter().enumerate().map(figure).collect();
    let further = half.rows.into_iter().chain(all.rows);
    let rows = (flexible.rows.into_iter()).chain(further.filter(|row| row[2] != "rigid"));
    Report::new(title)
        .about(format!(
            "Rigid requests, order EDF; after a refusal the nearest slot within the threshold φ is offered, and taken. {which}\
             The papers do not say who takes them, so both readings are run."
        ))
        .with(findings, report_table(UTILISATION_COLUMNS, rows), figures)
}

/// Figure 6 of paper 000, and figure 7 of paper 001, which offers earlier slots only.
pub(in crate::experiment) fn report_alternative_deviations(setup: &Setup, earlier_only: bool) -> Report {
    let title = if earlier_only {
        "How far the accepted earlier alternatives are from what was asked"
    } else {
        "How far the accepted alternatives are from what was asked"
    };
    let runs: Vec<WindowRun> = cells_of_loads()
        .map(|(load, phi)| WindowRun::with_alternatives(load, phi, Takers::All, earlier_only))
        .collect();
    let seen: Vec<Vec<Summary>> = (play_runs(setup, &runs).chunks(PHIS.len()))
        .map(|of_load| of_load.iter().map(|column| Summary::of(&column.phi)).collect())
        .collect();
    let text = |seen: &Summary| [spread_cells(seen), vec![seen.count.to_string()]].concat();
    let rows = grid_rows(
        &LOADS.map(load_name),
        &PHIS.map(|phi| phi.to_string()),
        &seen,
        text,
    );
    let near = (seen.iter().flatten().zip(PHIS.into_iter().cycle()))
        .filter(|(seen, phi)| seen.mean + seen.confidence >= f64::from(*phi))
        .count();
    let means = join_results(seen.iter().flatten().map(|phi| format!("{:.0}", phi.mean)));
    let claim = "the mean φ of accepted alternatives is not significantly less than the threshold";
    let finding = Finding::new(claim)
        .paper("not less")
        .seen(format!("means at φ 25 / 50 / 100, load by load: {means}"))
        .counted(near, 9)
        .because("the nearest slot is taken, so deviations spread from 0 to the threshold: about half of it");
    let headings = "load | threshold φ (%) | mean φ (%) | ± 95 % | standard deviation | windows";
    let figure = Figure::new("Deviation of accepted alternatives")
        .x("threshold φ (% of the run time)")
        .y("mean φ of accepted alternatives (%)")
        .lines(series_over_phi(&seen));
    Report::new(title)
        .about("Rigid requests, alternatives taken by all users.")
        .with([finding], report_table(headings, rows), [figure])
}
