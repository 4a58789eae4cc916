//! `bespeak-lab advise`: which order, fixing and alternatives earn, use or serve most on a workload, at the prices of a
//! published evaluation.

use advisor::advise_options;
use advisor::fault::Fault;
use clap::Args;

const EXAMPLES: &str = "\
Prices are those of a published evaluation: one a node and hour, 60 % off at the deadline, every fifth request pays
threefold. `bespeak advise --config bespeak.toml` does the same with a price list of your own, and compares with your
present settings.

Examples:
  bespeak-lab advise --trace SDSC-SP2-1998-4.2-cln.swf.gz
  bespeak-lab advise --profile 20:300 --load 150 --goal serve
  bespeak-lab advise --out policies.csv --json";

/// Options of `advise`.
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{EXAMPLES}", advise_options::HELP))]
pub(super) struct LaboratoryAdvice {
    #[command(flatten)]
    advise: advise_options::AdviseOptions,
}

pub(super) fn run_advise(options: &LaboratoryAdvice) -> Result<(), Fault> {
    say!("{}", options.advise.advise(None)?);
    Ok(())
}
