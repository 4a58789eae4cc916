//! What was seen, for people, and the rows with the bars.

use std::collections::BTreeMap;

use scheduler::measure::{Bar, measurement_against_bar};

use super::Options;
use super::filling::Stretch;
use super::mix::{Format, Mix};
use super::requests::{FRONT, Level, MIDDLE, NEAR, REQUESTS, URGENT};
use super::site::Seen;

/// The least CPU of a request, in milliseconds, of which growth counts.
const SMALL: f64 = 1.5;

/// The offers that were accepted and refused, and the agreements that moved meanwhile, where that is counted.
type Total = (usize, usize, Option<f64>);

/// Prints everything.
pub(super) fn print_report(
    options: &Options,
    stretches: &BTreeMap<usize, Stretch>,
    levels: &BTreeMap<usize, Level>,
    (accepted, refused, moves): Total,
) {
    let engine = if options.database.is_some() {
        "postgres"
    } else {
        "sqlite"
    };
    let format = match options.format {
        Format::Json => "JSON",
        Format::Xml => "XML",
    };
    let mix = match options.mix {
        Mix::Spread => "spread",
        Mix::Deadlines => "deadlines",
    };
    println!("\n{mix}, {engine}, {format}: {accepted} offers accepted, {refused} refused");
    #[expect(clippy::cast_precision_loss, reason = "a count of offers")]
    let each = moves.map(|moves| moves / accepted as f64);
    println!(
        "moves for each agreement: {}",
        each.map_or("not counted".to_owned(), |each| format!("{each:.2}"))
    );
    println!(
        "{:>9} {:>9} {:>9} {:>9} {:>9}",
        "waiting", "offers/s", "p50 ms", "p99 ms", "worst ms"
    );
    for (
        mark,
        Stretch {
            per_second,
            latencies: [p50, p99, worst],
        },
    ) in stretches
    {
        println!("{mark:>9} {per_second:>9.0} {p50:>9.2} {p99:>9.2} {worst:>9.2}");
    }
    for (at, level) in levels {
        print_level(*at, level);
    }
    let what = format!("waiting, {mix}, {engine}, {format}");
    print_filling_bars(options, &what, stretches, each);
    if let Some((last, level)) = levels.last_key_value() {
        let first = levels.first_key_value().filter(|(first, _)| *first < last);
        print_level_bars(
            &format!("{what}, {last} waiting"),
            level,
            first.map(|(_, first)| first),
        );
    }
}

fn print_level(at: usize, level: &Level) {
    println!(
        "\n{at} waiting: {:.1} ms of CPU in a second of a pause, start {:.2} s",
        level.idle, level.start
    );
    println!(
        "{:<46} {:>5} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9}",
        "each", "times", "CPU ms", "of the DB", "p50 ms", "p99 ms", "worst ms", "moves", "bystander"
    );
    let table = REQUESTS
        .iter()
        .filter_map(|name| Some((*name, level.seen.get(name)?)));
    let looks = level.looks.iter().map(|(name, seen)| (name.as_str(), seen));
    for (name, seen) in table.chain(looks) {
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.1}"));
        print!(
            "{name:<46} {:>5} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>8} {:>9}",
            seen.done,
            seen.work.total(),
            seen.work.database,
            seen.latency(50),
            seen.latency(99),
            seen.latency(100),
            number(seen.moves),
            number(seen.bystander),
        );
        if seen.unexpected.0 > 0 {
            print!("  {} unexpected answers", seen.unexpected.0);
        }
        println!("{}", if seen.is_restless { "  still at work" } else { "" });
    }
    for (name, status) in &level.left_out {
        println!("left out, {status}: {name}");
    }
}

fn print_bar(what: &str, bar: Bar, seen: f64) {
    println!("{}", measurement_against_bar(what, bar, seen));
}

fn print_filling_bars(
    options: &Options,
    what: &str,
    stretches: &BTreeMap<usize, Stretch>,
    moves: Option<f64>,
) {
    let (Some((first, at_first)), Some((last, at_last))) =
        (stretches.first_key_value(), stretches.last_key_value())
    else {
        return;
    };
    println!();
    match options.mix {
        Mix::Spread => print_bar(
            &format!("{what}: offers a second at {last}, × at {first}"),
            Bar::AtLeast(0.8),
            at_last.per_second / at_first.per_second,
        ),
        Mix::Deadlines => {
            print_bar(
                &format!("{what}: offers a second at {last}"),
                Bar::AtLeast(500.0),
                at_last.per_second,
            );
            if let Some(moves) = moves {
                print_bar(
                    &format!("{what}: moves for each agreement"),
                    Bar::AtMost(10.0),
                    moves,
                );
            }
        }
    }
}

/// Prints the worst of all requests beside each bar, with its name.
fn print_level_bars(what: &str, level: &Level, first: Option<&Level>) {
    let of = |level: &Level| -> BTreeMap<String, Seen> {
        let table = level
            .seen
            .iter()
            .map(|(name, seen)| ((*name).to_owned(), seen.clone()));
        table.chain(level.looks.clone()).collect()
    };
    let (seen, first) = (of(level), first.map(of));
    let worst = |told: &str, bar: f64, value: &dyn Fn(&str, &Seen) -> Option<f64>| {
        let values = seen
            .iter()
            .filter_map(|(name, seen)| Some((value(name, seen)?, name)));
        if let Some((value, name)) = values.max_by(|one, other| one.0.total_cmp(&other.0)) {
            print_bar(&format!("{what}: {told} ({name})"), Bar::AtMost(bar), value);
        }
    };
    // What follows from an end grows with what gains by it.
    let ends = [MIDDLE, NEAR, FRONT];
    let is_urgent = |name: &str| name == URGENT;
    let is_usual = |name: &str| !ends.contains(&name) && !is_urgent(name);
    worst("CPU of a request (ms)", 10.0, &|name, seen| {
        is_usual(name).then(|| seen.work.total())
    });
    worst("CPU of a request (ms)", 50.0, &|name, seen| {
        is_urgent(name).then(|| seen.work.total())
    });
    worst("p99 of a request (ms)", 20.0, &|name, seen| {
        is_usual(name).then(|| seen.latency(99))
    });
    worst("wait of a bystander (ms)", 50.0, &|_, seen| seen.bystander);
    if let Some(first) = first {
        worst(
            "CPU of a request, × with the fewest waiting",
            1.5,
            &|name, seen| {
                let before = first.get(name).filter(|_| !ends.contains(&name))?;
                Some(seen.work.total().max(SMALL) / before.work.total().max(SMALL))
            },
        );
    }
    print_bar(&format!("{what}: start (s)"), Bar::AtMost(2.0), level.start);
}
