//! Beyond the papers: how far the policies are from the best possible, for sure, where requests are few.
//!
//! Two dozen jobs of a window, drawn at random, make the requests of paper 000 to a machine of sixteen nodes. The best plan with
//! full knowledge of all jobs in advance is found exactly. Between it and the orders lies a planner that knows no more than they
//! do but finds every plan that there is: it accepts a request if any arrangement of the waiting ones has room for it. So the
//! loss of an order splits into two parts: the gain from finding more plans, and the rest, which comes from the choice of
//! requests to refuse and of plans for the sake of later requests.

use scheduler::{Interval, Order, Request, Seconds, Time};

use super::setup::Setup;
use crate::figure::{Figure, Series};
use crate::optimum::{Slot, bound, optimum, plan};
use crate::report::{Finding, Report, Verdict, joined, spread};
use advisor::flexible::{Run, asks, draws, play};
use advisor::random::Random;
use advisor::statistics::Summary;
use advisor::table::Table;
use advisor::workload::{Job, Window};

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
type Solved = Option<[f64; NAMES.len()]>;

/// A few jobs of a window on a small machine, submitted so often that they offer `offered` percent of its work.
fn instance(seed: u64, window: &Window, capacity: u32, number: u64, offered: u32) -> Window {
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
        job.submit = whole(now);
    }
    Window {
        // The draws of a request depend on the window's index.
        index: usize::try_from(random.bits() >> 32).unwrap_or_default(),
        jobs,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seconds of a few months")]
fn whole(seconds: f64) -> Seconds {
    seconds as Seconds
}

fn solve(seed: u64, window: &Window) -> Solved {
    let draws = draws(seed, window);
    let requests = |run: &Run| -> Vec<Request> {
        let asks = asks(window, &draws, run);
        asks.iter().map(|ask| ask.request).collect()
    };
    let rigid = requests(&Run::rigid(100));
    let flexible = requests(&Run::flexible(100, PHI, Order::Edf));
    let last = flexible.iter().map(|request| request.deadline).max()?;
    let span = Interval::new(Time(0), last);
    let part = |area: Seconds| 100.0 * area as f64 / (f64::from(NODES) * span.duration() as f64);
    let ran = |run: Run| 100.0 * play(NODES, window, &draws, &run).utilisation(NODES, span);
    let in_order = |order| ran(Run::flexible(100, PHI, order));
    Some([
        ran(Run::rigid(100)),
        part(optimum(NODES, &rigid)?.area),
        in_order(Order::Fifo),
        in_order(Order::Bjf),
        in_order(Order::Shuffle { seed }),
        in_order(Order::Lff),
        in_order(Order::Edf),
        in_order(Order::Mdf),
        part(every_plan(NODES, &flexible)?),
        part(optimum(NODES, &flexible)?.area),
        part(bound(NODES, &flexible, span)),
    ])
}

/// The node-seconds accepted by a planner that refuses a request, in order of submission, only if no plan has room for it beside
/// the requests accepted before; `None` where that could not be found out.
fn every_plan(capacity: u32, requests: &[Request]) -> Option<Seconds> {
    let mut accepted: Vec<(Request, Time)> = Vec::new();
    for request in requests {
        let now = request.submitted;
        let taken: Vec<Slot> = (accepted.iter())
            .filter(|(_, start)| *start <= now)
            .map(|(request, start)| Slot {
                interval: request.slot(*start),
                nodes: request.nodes,
            })
            .collect();
        let mut waiting: Vec<usize> = (0..accepted.len()).filter(|at| accepted[*at].1 > now).collect();
        accepted.push((*request, request.ready));
        waiting.push(accepted.len() - 1);
        let of_now: Vec<Request> = waiting
            .iter()
            .map(|at| Request {
                ready: accepted[*at].0.ready.max(now),
                ..accepted[*at].0
            })
            .collect();
        match plan(capacity, &taken, &of_now)? {
            Some(starts) => {
                for (at, start) in waiting.into_iter().zip(starts) {
                    accepted[at].1 = start;
                }
            }
            None => {
                accepted.pop();
            }
        }
    }
    let areas = accepted.iter();
    Some(
        areas
            .map(|(request, _)| i64::from(request.nodes) * request.duration)
            .sum(),
    )
}

/// The results at one load: a summary of each run over the windows, each window being the mean of its instances.
struct Cell {
    runs: Vec<Summary>,
}

impl Cell {
    /// In percent: the part of the gap from `from` to the optimum that `to` closes.
    fn closed(&self, from: usize, to: usize) -> f64 {
        let mean = |run: usize| self.runs[run].mean;
        100.0 * (mean(to) - mean(from)) / (mean(OPTIMUM) - mean(from)).max(f64::MIN_POSITIVE)
    }

    /// A run in percent of another.
    fn share(&self, run: usize, of: usize) -> f64 {
        100.0 * self.runs[run].mean / self.runs[of].mean.max(f64::MIN_POSITIVE)
    }
}

pub(super) fn distances(setup: &Setup) -> Report {
    let (seed, capacity) = (setup.seed, setup.workload.capacity);
    // By load and window: the instances.
    let solved: Vec<Vec<Vec<Solved>>> = setup.play(|window| {
        let of_load = |offered| {
            let solve = |number| solve(seed, &instance(seed, window, capacity, number, offered));
            (0..INSTANCES).map(solve).collect()
        };
        OFFERED.map(of_load).to_vec()
    });
    let instances: Vec<&Solved> = solved.iter().flatten().flatten().collect();
    let unsolved = instances.iter().filter(|instance| instance.is_none()).count();
    let is_above = |runs: &&[f64; NAMES.len()]| {
        let exceeds = |run: &f64, most: f64| *run > most + 1e-9;
        exceeds(&runs[RIGID], runs[RIGID_OPTIMUM])
            || runs[FIFO..OPTIMUM].iter().any(|run| exceeds(run, runs[OPTIMUM]))
            || exceeds(&runs[OPTIMUM], runs[BOUND])
    };
    let above = instances.iter().filter_map(|of| of.as_ref()).filter(is_above);
    let above = above.count();
    let cell = |windows: &Vec<Vec<Solved>>| {
        let of_window = |window: &Vec<Solved>, run: usize| {
            let values: Vec<f64> = window.iter().flatten().map(|runs| runs[run]).collect();
            Summary::of(&values).mean
        };
        let summary = |run| {
            let means: Vec<f64> = windows.iter().map(|window| of_window(window, run)).collect();
            Summary::of(&means)
        };
        Cell {
            runs: (0..NAMES.len()).map(summary).collect(),
        }
    };
    let cells: Vec<Cell> = solved.iter().map(cell).collect();
    Report::new(
        "How far the policies are from the optimum of small instances",
        format!(
            "{INSTANCES} instances from each window and load: {REQUESTS} of its jobs at random on {NODES} nodes, which they ask \
             for in proportion, submitted so that they offer ρ times the node-seconds that there are meanwhile; deadlines and \
             flexible intervals (half, φ 100 %) as in paper 000. Utilisation of the time to the last deadline. The optimum \
             knows all requests in advance. \"Every plan found\" knows no more than the orders but refuses a request only if \
             an exact search finds no plan for it beside what was accepted."
        ),
        findings(&cells, instances.len(), unsolved, above),
        table(&cells),
        vec![figure(&cells)],
    )
}

fn findings(cells: &[Cell], instances: usize, unsolved: usize, above: usize) -> Vec<Finding> {
    let by_load = |of: &dyn Fn(&Cell) -> f64| joined(cells.iter().map(|cell| format!("{:.0}", of(cell))));
    let halves = cells
        .iter()
        .flat_map(|cell| [MDF, EVERY_PLAN].map(|run| cell.closed(EDF, run)))
        .filter(|closed| *closed >= 50.0)
        .count();
    vec![
        Finding::own(
            "every instance is solved, no policy is above its optimum, and no optimum above the bound",
            format!("{unsolved} of {instances} unsolved, {above} out of order"),
            Verdict::of_own(usize::from(unsolved + above == 0), 1),
        )
        .because("a check of the solver"),
        Finding::own(
            "what FIFO, EDF and MDF have of the optimum, at ρ = 1 / 1.5 / 2",
            [FIFO, EDF, MDF]
                .map(|run| format!("{} %", by_load(&|cell| cell.share(run, OPTIMUM))))
                .join(", "),
            Verdict::Measured,
        ),
        Finding::own(
            "how much of the way from FIFO to the optimum EDF and MDF go",
            [EDF, MDF]
                .map(|run| format!("{} %", by_load(&|cell| cell.closed(FIFO, run))))
                .join(", "),
            Verdict::Measured,
        ),
        Finding::own(
            "half of what EDF leaves is closed, by MDF or by finding every plan",
            format!(
                "MDF closes {} %, finding every plan {} %",
                by_load(&|cell| cell.closed(EDF, MDF)),
                by_load(&|cell| cell.closed(EDF, EVERY_PLAN))
            ),
            Verdict::of_own(halves, 2 * cells.len()),
        )
        .because("what is left is which to refuse, and which plan to choose, for what is still to come"),
        Finding::own(
            "how far the bound is above the optimum",
            format!(
                "by {} % of it",
                by_load(&|cell| cell.share(BOUND, OPTIMUM) - 100.0)
            ),
            Verdict::Measured,
        )
        .because("it accepts parts of requests and cuts them"),
    ]
}

fn table(cells: &[Cell]) -> Table {
    let mut table = Table::new(&[
        "offered load ρ",
        "run",
        "utilisation (%)",
        "± 95 %",
        "standard deviation",
        "part of the optimum (%)",
        "of the way from FIFO to the optimum (%)",
        "of what EDF leaves (%)",
    ]);
    for (offered, cell) in OFFERED.iter().zip(cells) {
        for (run, name) in NAMES.iter().enumerate() {
            let mut row = vec![f64_text(*offered), (*name).to_owned()];
            row.extend(spread(&cell.runs[run]));
            let optimum = if run <= RIGID_OPTIMUM {
                RIGID_OPTIMUM
            } else {
                OPTIMUM
            };
            row.push(format!("{:.1}", cell.share(run, optimum)));
            let way = |from: usize| {
                let on_the_way = (from..BOUND).contains(&run);
                on_the_way.then(|| format!("{:.0}", cell.closed(from, run)))
            };
            row.extend([FIFO, EDF].map(|from| way(from).unwrap_or_default()));
            table.rows.push(row);
        }
    }
    table
}

fn f64_text(percent: u32) -> String {
    format!("{}", f64::from(percent) / 100.0)
}

fn figure(cells: &[Cell]) -> Figure {
    let shown = [FIFO, EDF, MDF, EVERY_PLAN, OPTIMUM, BOUND];
    Figure::bars(
        "optimum",
        format!("Utilisation against the optimum, {REQUESTS} requests on {NODES} nodes"),
        ["offered load ρ", "utilisation (%)"],
        OFFERED.map(f64_text),
        shown.map(|run| {
            let name = NAMES[run].trim_start_matches("flexible, ");
            Series::bars(name, cells.iter().map(|cell| cell.runs[run]))
        }),
    )
}
