//! Beyond the papers: how far the policies are from the best possible, for sure, where requests are few.
//!
//! Two dozen jobs of a window, drawn at random, make the requests of paper 000 to a machine of sixteen nodes. The best plan with
//! full knowledge of all jobs in advance is found exactly. Between it and the orders lies a planner that knows no more than they
//! do but finds every plan that there is: it accepts a request if any arrangement of the waiting ones has room for it. So the
//! loss of an order splits into two parts: the gain from finding more plans, and the rest, which comes from the choice of
//! requests to refuse and of plans for the sake of later requests.
//!
//! Where requests are many there is only a bound. No plan, not even one that knows all submissions in advance, may cut requests,
//! and may accept parts of them, can use more node-seconds than flow from requests through the stretches of time that their windows
//! hold. The true optimum lies somewhere between the policies and this bound; the exact search finds it where requests are few.

use scheduler::{Interval, Order, Request, Seconds, Time};

use super::setup::Setup;
use crate::figure::{Figure, Series};
use crate::optimum::{
    Slot, area_of_optimum_request, bound_optimum, find_optimum, find_optimum_starts, optimum_slot_at,
};
use crate::report::{
    Finding, Report, count_reported_cases, join_results, load_name, report_table, rows_of_report_grid,
    spread_cells, summary_of_values,
};
use crate::whole_seconds;
use advisor::flexible::{
    FlexibleRun, LOADS, draw_flexible_jobs, flexible_asks, flexible_utilisation_percent, play_flexible_run,
};
use advisor::random::Random;
use advisor::statistics::Summary;
use advisor::workload::{Job, WINDOW_SECONDS, Window};

/// Nodes and requests of an instance: as many as are always solved in far less than the solver's limit.
const NODES: u32 = 16;
const REQUESTS: u64 = 24;
/// Instances drawn from each window, at each load.
const INSTANCES: u64 = 4;
/// Offered node-seconds in percent of the machine's while requests come.
const OFFERED: [u32; 3] = [100, 150, 200];
/// The index of φ 100 %.
const PHI: usize = 2;
/// The stream of draws of this experiment.
const STREAM: u64 = 0x0B57;

const NAMES: [&str; 11] = [
    "rigid, every order",
    "rigid, optimum",
    "flexible, FIFO",
    "flexible, BJF",
    "flexible, shuffle",
    "flexible, LFF",
    "flexible, EDF",
    "flexible, MDF",
    "flexible, every plan found",
    "flexible, optimum",
    "flexible, bound",
];
const RIGID: usize = 0;
const RIGID_OPTIMUM: usize = 1;
const FIFO: usize = 2;
const EDF: usize = 6;
const MDF: usize = 7;
const EVERY_PLAN: usize = 8;
const OPTIMUM: usize = 9;
const BOUND: usize = 10;

/// Utilisation in percent by run, [`NAMES`], of one instance; `None` where the solver gave up.
type SolvedInstance = Option<[f64; NAMES.len()]>;

/// A few jobs of a window on a small machine, submitted so often that they offer `offered` percent of its work.
fn optimum_instance(seed: u64, window: &Window, capacity: u32, number: u64, offered: u32) -> Window {
    let mut random = Random::new(seed, &[STREAM, window.index as u64, number]);
    let mut jobs: Vec<Job> = (0..REQUESTS)
        .map(|_| {
            let job = window.jobs[random.below(window.jobs.len())];
            let nodes = (u64::from(job.nodes) * u64::from(NODES)).div_ceil(u64::from(capacity));
            Job {
                // Not above NODES, as no job is larger than the machine.
                nodes: u32::try_from(nodes).unwrap_or(NODES),
                ..job
            }
        })
        .collect();
    let work: f64 = jobs.iter().map(|job| f64::from(job.nodes) * job.run as f64).sum();
    let gap = work * 100.0 / (f64::from(offered) * f64::from(NODES) * REQUESTS as f64);
    let mut now = 0.0;
    for job in &mut jobs {
        now += random.exponential(gap);
        job.submit = whole_seconds(now);
    }
    Window {
        // The draws of a request depend on the window's index.
        index: usize::try_from(random.bits() >> 32).unwrap_or_default(),
        jobs,
    }
}

fn solve_optimum_of_window(seed: u64, window: &Window) -> SolvedInstance {
    let draws = draw_flexible_jobs(seed, window);
    let requests = |run: &FlexibleRun| -> Vec<Request> {
        let asks = flexible_asks(window, &draws, run);
        asks.iter().map(|ask| ask.request).collect()
    };
    let rigid = requests(&FlexibleRun::rigid(100));
    let flexible = requests(&FlexibleRun::flexible(100, PHI, Order::Edf));
    let last = flexible.iter().map(|request| request.deadline).max()?;
    let span = Interval::new(Time(0), last);
    let part = |area: Seconds| 100.0 * area as f64 / (f64::from(NODES) * span.duration() as f64);
    let ran =
        |run: FlexibleRun| 100.0 * play_flexible_run(NODES, window, &draws, &run).utilisation(NODES, span);
    let in_order = |order| ran(FlexibleRun::flexible(100, PHI, order));
    Some([
        ran(FlexibleRun::rigid(100)),
        part(find_optimum(NODES, &rigid)?.area),
        in_order(Order::Fifo),
        in_order(Order::Bjf),
        in_order(Order::Shuffle { seed }),
        in_order(Order::Lff),
        in_order(Order::Edf),
        in_order(Order::Mdf),
        part(optimum_over_every_plan(NODES, &flexible)?),
        part(find_optimum(NODES, &flexible)?.area),
        part(bound_optimum(NODES, &flexible, span)),
    ])
}

/// The node-seconds accepted by a planner that refuses a request, in order of submission, only if no plan has room for it beside
/// the requests accepted before; `None` where that could not be found out.
fn optimum_over_every_plan(capacity: u32, requests: &[Request]) -> Option<Seconds> {
    let mut used = 0;
    let mut taken: Vec<Slot> = Vec::new();
    let mut waiting: Vec<(Request, Time)> = Vec::new();
    for request in requests {
        let now = request.submitted;
        let started = waiting.extract_if(.., |(_, start)| *start <= now);
        taken.extend(started.map(|(request, start)| optimum_slot_at(&request, start)));
        let known = waiting.iter().map(|(request, _)| request).chain([request]);
        let of_now: Vec<Request> = known
            .map(|request| Request {
                ready: request.ready.max(now),
                ..*request
            })
            .collect();
        if let Some(starts) = find_optimum_starts(capacity, &taken, &of_now)? {
            used += area_of_optimum_request(request);
            waiting = of_now.into_iter().zip(starts).collect();
        }
    }
    Some(used)
}

/// The results at one load: a summary of each run over the windows, each window being the mean of its instances.
struct OptimumCell {
    runs: Vec<Summary>,
}

impl OptimumCell {
    /// In percent: the part of the gap from `from` to the optimum that `to` closes.
    fn closed(&self, from: usize, to: usize) -> f64 {
        let mean = |run: usize| self.runs[run].mean;
        100.0 * (mean(to) - mean(from)) / (mean(OPTIMUM) - mean(from)).max(f64::MIN_POSITIVE)
    }

    /// A run in percent of another.
    fn share(&self, run: usize, one_number: usize) -> f64 {
        100.0 * self.runs[run].mean / self.runs[one_number].mean.max(f64::MIN_POSITIVE)
    }

    /// A row of the table.
    fn row(&self, offered: u32, run: usize) -> Vec<String> {
        let optimum = if run <= RIGID_OPTIMUM {
            RIGID_OPTIMUM
        } else {
            OPTIMUM
        };
        let share = format!("{:.1}", self.share(run, optimum));
        let way = |from: usize| {
            let is_on_it = (from..BOUND).contains(&run);
            is_on_it.then(|| format!("{:.0}", self.closed(from, run)))
        };
        let [from_fifo, from_edf] = [FIFO, EDF].map(|from| way(from).unwrap_or_default());
        let names = vec![rho_name(offered), NAMES[run].to_owned()];
        [
            names,
            spread_cells(&self.runs[run]),
            vec![share, from_fifo, from_edf],
        ]
        .concat()
    }
}

pub(super) fn report_optimum_distances(setup: &Setup) -> Report {
    let (seed, capacity) = (setup.seed, setup.workload.capacity);
    // By load and window: the instances.
    let solved: Vec<Vec<Vec<SolvedInstance>>> = setup.play(|window| {
        let of_load = |offered| {
            let solve = |number| {
                solve_optimum_of_window(seed, &optimum_instance(seed, window, capacity, number, offered))
            };
            (0..INSTANCES).map(solve).collect()
        };
        OFFERED.map(of_load).to_vec()
    });
    let instances: Vec<&SolvedInstance> = solved.iter().flatten().flatten().collect();
    let unsolved = instances.iter().filter(|instance| instance.is_none()).count();
    let is_above = |runs: &&[f64; NAMES.len()]| {
        let exceeds = |run: &f64, most: f64| *run > most + 1e-9;
        exceeds(&runs[RIGID], runs[RIGID_OPTIMUM])
            || runs[FIFO..OPTIMUM].iter().any(|run| exceeds(run, runs[OPTIMUM]))
            || exceeds(&runs[OPTIMUM], runs[BOUND])
    };
    let above = instances
        .iter()
        .filter_map(|instance| instance.as_ref())
        .filter(is_above);
    let checked = (instances.len(), unsolved, above.count());
    let of_window = |window: &Vec<SolvedInstance>, run: usize| {
        summary_of_values(window.iter().flatten().map(|runs| runs[run])).mean
    };
    let summary = |windows: &[Vec<SolvedInstance>], run| {
        summary_of_values(windows.iter().map(|window| of_window(window, run)))
    };
    let cell = |windows: &Vec<Vec<SolvedInstance>>| OptimumCell {
        runs: (0..NAMES.len()).map(|run| summary(windows, run)).collect(),
    };
    let cells: Vec<OptimumCell> = solved.iter().map(cell).collect();
    let shown = [FIFO, EDF, MDF, EVERY_PLAN, OPTIMUM, BOUND];
    let figure = Figure::new(format!(
        "Utilisation against the optimum, {REQUESTS} requests on {NODES} nodes"
    ))
    .x("offered load ρ")
    .y("utilisation (%)")
    .bars(
        OFFERED.map(rho_name),
        shown.map(|run| {
            let name = NAMES[run].trim_start_matches("flexible, ");
            Series::bars(name, cells.iter().map(|cell| cell.runs[run]))
        }),
    );
    let headings = "offered load ρ | run | utilisation (%) | ± 95 % | standard deviation | part of the optimum (%) | \
        of the way from FIFO to the optimum (%) | of what EDF leaves (%)";
    let rows = (OFFERED.iter().zip(&cells))
        .flat_map(|(offered, cell)| (0..NAMES.len()).map(move |run| cell.row(*offered, run)));
    Report::new("How far the policies are from the optimum of small instances")
        .about(format!(
            "{INSTANCES} instances from each window and load: {REQUESTS} of its jobs at random on {NODES} nodes, which they ask \
             for in proportion, submitted so that they offer ρ times the node-seconds that there are meanwhile; deadlines and \
             flexible intervals (half, φ 100 %) as in paper 000. Utilisation of the time to the last deadline. The optimum \
             knows all requests in advance. \"Every plan found\" knows no more than the orders but refuses a request only if \
             an exact search finds no plan for it beside what was accepted."
        ))
        .with(optimum_findings(&cells, checked), report_table(headings, rows), [figure])
}

/// `instances` of which some are `unsolved` and others have a policy `above` what is possible.
fn optimum_findings(
    cells: &[OptimumCell],
    (instances, unsolved, above): (usize, usize, usize),
) -> Vec<Finding> {
    let by_load = |function: &dyn Fn(&OptimumCell) -> f64| {
        let texts = cells.iter().map(|cell| format!("{:.0}", function(cell)));
        format!("{} %", join_results(texts))
    };
    let share = |run| by_load(&|cell| cell.share(run, OPTIMUM));
    let closed = |from, to| by_load(&|cell| cell.closed(from, to));
    let half = |cell: &OptimumCell| [MDF, EVERY_PLAN].map(|run| cell.closed(EDF, run) >= 50.0);
    let (halves, cases) = count_reported_cases(cells.iter().flat_map(half));
    let (by_mdf, by_every_plan) = (closed(EDF, MDF), closed(EDF, EVERY_PLAN));
    let above_optimum = by_load(&|cell| cell.share(BOUND, OPTIMUM) - 100.0);
    let checked = format!("{unsolved} of {instances} unsolved, {above} out of order");
    vec![
        Finding::new(
            "every instance is solved, no policy is above its optimum, and no optimum above the bound",
        )
        .seen(checked)
        .holds(unsolved + above == 0)
        .because("a check of the solver"),
        Finding::new("what FIFO, EDF and MDF have of the optimum, at ρ = 1 / 1.5 / 2")
            .seen([FIFO, EDF, MDF].map(share).join(", ")),
        Finding::new("how much of the way from FIFO to the optimum EDF and MDF go")
            .seen([EDF, MDF].map(|run| closed(FIFO, run)).join(", ")),
        Finding::new("half of what EDF leaves is closed, by MDF or by finding every plan")
            .seen(format!("MDF closes {by_mdf}, finding every plan {by_every_plan}"))
            .counted(halves, cases)
            .because("what is left is which to refuse, and which plan to choose, for what is still to come"),
        Finding::new("how far the bound is above the optimum")
            .seen(format!("by {above_optimum} of it"))
            .because("it accepts parts of requests and cuts them"),
    ]
}

fn rho_name(percent: u32) -> String {
    (f64::from(percent) / 100.0).to_string()
}

/// The runs beside the bound on many requests.
const BOUND_NAMES: [&str; 4] = ["FIFO", "EDF", "MDF", "bound"];

pub(super) fn report_bound(setup: &Setup) -> Report {
    let capacity = setup.workload.capacity;
    let played = setup.play(|window| {
        let draws = draw_flexible_jobs(setup.seed, window);
        let of_load = |load| {
            let utilisation_of = |order| {
                let outcome =
                    play_flexible_run(capacity, window, &draws, &FlexibleRun::flexible(load, PHI, order));
                flexible_utilisation_percent(capacity, &outcome, load)
            };
            let span = Interval::new(Time(0), Time(WINDOW_SECONDS * 100 / i64::from(load)));
            let asks = flexible_asks(window, &draws, &FlexibleRun::flexible(load, PHI, Order::Edf));
            let requests: Vec<Request> = asks.iter().map(|ask| ask.request).collect();
            let used = bound_optimum(capacity, &requests, span) as f64;
            let most = 100.0 * used / (f64::from(capacity) * span.duration() as f64);
            [
                utilisation_of(Order::Fifo),
                utilisation_of(Order::Edf),
                utilisation_of(Order::Mdf),
                most,
            ]
        };
        LOADS.map(of_load).concat()
    });
    let by_load = played.chunks(BOUND_NAMES.len());
    let gains: Vec<Summary> = (by_load.clone())
        .map(|each| Summary::of_differences(&each[2], &each[1]))
        .collect();
    let seen: Vec<Vec<Summary>> = by_load
        .map(|each| each.iter().map(|values| Summary::of(values)).collect())
        .collect();
    let texts: Vec<String> = (LOADS.iter().zip(&seen))
        .map(|(load, seen)| {
            let [fifo, edf, mdf, most] = [0, 1, 2, 3].map(|policy: usize| seen[policy].mean);
            let part = |value: f64| 100.0 * value / most;
            let closed = |value: f64| 100.0 * (value - fifo) / (most - fifo).max(f64::MIN_POSITIVE);
            let [(edf, edf_closed), (mdf, mdf_closed)] = [edf, mdf].map(|each| (part(each), closed(each)));
            let load = load_name(*load);
            format!("{edf:.0} / {mdf:.0} % and {edf_closed:.0} / {mdf_closed:.0} % ({load})")
        })
        .collect();
    let by = join_results(gains.iter().map(ToString::to_string));
    let (surely, loads) = count_reported_cases(gains.iter().map(Summary::is_positive));
    let more = format!("surely (95 %) at {surely} of {loads} loads, by {by} points");
    let findings = [
        Finding::new("what EDF / MDF have of the bound, and of the way from FIFO to it")
            .seen(texts.join(", "))
            .because("the experiment `optimum` says how far such a bound is from what is possible"),
        Finding::new("MDF uses more than EDF")
            .seen(more)
            .counted(surely, loads)
            .because("paper 000 compares EDF with other orders than MDF"),
    ];
    let rows = rows_of_report_grid(&LOADS.map(load_name), &BOUND_NAMES, &seen, spread_cells);
    let figure = Figure::new("Utilisation against a bound on the best possible")
        .x("load")
        .y("utilisation (%)")
        .bars(LOADS.map(load_name), Series::over(0.., BOUND_NAMES, &seen));
    Report::new("How far the policies are from a bound on the best possible")
        .about(
            "Half of the requests flexible, φ 100 %. The bound is a maximum flow: it knows all submissions in advance, may cut \
             requests anywhere and accept parts of them, so no policy reaches it.",
        )
        .with(
            findings,
            report_table("load | policy | utilisation (%) | ± 95 % | standard deviation", rows),
            [figure],
        )
}
