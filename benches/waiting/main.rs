//! What a user waits for, and what a request costs, where many agreements wait:
//! `cargo bench -p bespeak --bench waiting -- --executable target/release/bespeak --folder EMPTY`.
//! Fills a service through HTTP, sends each kind of request one by one at several sizes, and prints what was seen and the bars.

mod client;
mod filling;
mod mix;
mod report;
mod requests;
mod service;
mod site;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use clap::Parser;

use filling::{Filling, Stretch};
use mix::{Format, Mix};
use requests::measure_requests;
use site::Site;

/// Why nothing could be measured.
type Failure = Box<dyn Error + Send + Sync>;

/// Measures an executable on an empty database.
#[derive(Debug, Parser)]
struct Options {
    /// The executable.
    #[arg(long, value_name = "FILE", default_value = "target/release/bespeak")]
    executable: PathBuf,
    /// An empty folder for the configuration, the data and the log of the service.
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
    /// An empty database of PostgreSQL on this machine; without it the service stores into its folder.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// The form of the offers.
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
    /// What is asked for.
    #[arg(long, value_enum, default_value = "spread")]
    mix: Mix,
    /// Numbers of waiting agreements at which the requests are sent one by one; the last one ends the filling.
    #[arg(long, value_delimiter = ',', default_value = "1000,16000,100000")]
    at: Vec<usize>,
    /// How often each request is sent.
    #[arg(long, default_value_t = 200, value_name = "TIMES")]
    each: usize,
    /// The seconds after which one kind of request is sent no more.
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    row_seconds: u64,
    /// Clients that fill the resource.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Leaves out what is not in the table of docs/reference/performance.md.
    #[arg(long)]
    only_table: bool,
    /// Only fills.
    #[arg(long)]
    only_filling: bool,
    /// Seed of the offers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Numbers of waiting agreements at which the offers a second are told, beside the last one.
const MARKS: [usize; 9] = [100, 1_000, 2_000, 3_000, 5_000, 10_000, 16_000, 50_000, 100_000];

/// How many offers are looked at from a number of waiting ones on.
fn offers_of_mark(mark: usize) -> usize {
    (mark / 10).clamp(500, 5_000)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    // Cargo says that it is a benchmark.
    let mut options = Options::parse_from(std::env::args().filter(|argument| argument != "--bench"));
    options.at.sort_unstable();
    let last = options.at.last().copied().unwrap_or(0);
    let (mut site, mut fronts) = Site::open(&options, options.at.len()).await?;
    let marks = MARKS.into_iter().filter(|mark| *mark < last).chain([last]);
    let marks: Vec<_> = marks.collect();
    let (mut stretches, mut levels) = (BTreeMap::<usize, Stretch>::new(), BTreeMap::new());
    let (mut accepted, mut refused, mut moves) = (0, 0, None);
    for at in options.at.clone() {
        let number = (at + offers_of_mark(at)).saturating_sub(accepted);
        let filling = Filling::run(&mut site, options.format, options.clients, accepted, number).await?;
        for mark in &marks {
            let stretch = filling.stretch(*mark, offers_of_mark(*mark));
            stretches.extend(stretch.map(|stretch| (*mark, stretch)));
        }
        accepted += filling.number();
        refused += filling.refused;
        moves = filling.moves.map(|more| moves.unwrap_or(0.0) + more);
        let front = fronts.pop();
        if !options.only_filling {
            let level = measure_requests(&mut site, &options, front, fronts.len() + 1).await?;
            levels.insert(at, level);
        }
    }
    report::print_report(&options, &stretches, &levels, (accepted, refused, moves));
    site.service.stop_and_verify().await
}
