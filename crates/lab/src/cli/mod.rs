//! The command line of the laboratory: one file a verb.

/// Writes a line to standard output, and ends the command when its reader is gone.
macro_rules! say {
    ($($words:tt)*) => { advisor::output_line::say_output_line("bespeak-lab", 2, format_args!($($words)*)) };
}

mod advise;
mod bench;
mod calibrate;
mod replay;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  bespeak-lab simulate all --trace SDSC-SP2-1998-4.2-cln.swf.gz --out sdsc
  bespeak-lab replay --requests list.csv --capacity 128 --out decisions.csv

The verbs for a service of your own are in its executable: `bespeak advise --config` (your price list and settings) and
`bespeak calibrate` (your stored executions).

Exit status:
  0  done
  2  wrong usage, or a file that cannot be read or written";

/// The laboratory of Bespeak: experiments on the scheduler core, without a service.
#[derive(Debug, Parser)]
#[command(name = "bespeak-lab", version, about, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the experiments of the papers on a trace or a generated workload, and report.
    Simulate(simulate::SimulateOptions),
    /// Decide about a list of your own requests as the scheduler would, and print each decision.
    Replay(replay::ReplayOptions),
    /// Find the order, the fixing and the alternatives that earn, use or serve most on a workload.
    Advise(advise::LaboratoryAdvice),
    /// Report how well run-time predictions would be calibrated on a trace.
    Calibrate(calibrate::CalibrateOptions),
    /// Measure the planner by itself.
    #[command(subcommand)]
    Bench(bench::BenchOptions),
}

/// Reads the command line and carries it out.
pub(crate) fn run_lab() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Simulate(options) => simulate::run_simulate(&options),
        Command::Replay(options) => replay::run_replay(&options),
        Command::Advise(options) => advise::run_advise(&options),
        Command::Calibrate(options) => calibrate::run_calibrate(&options),
        Command::Bench(options) => bench::run_bench(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bespeak-lab: {failure}");
            ExitCode::from(2)
        }
    }
}
