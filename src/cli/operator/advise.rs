//! `bespeak advise`: which order, fixing and alternatives earn, use or serve most, on a workload and by the provider's own
//! price list, and which differences are no more than chance.

use std::path::PathBuf;

use advisor::advise_options::{self, Provider};
use advisor::policy::{Alternatives, Policy};
use advisor::replay_prices::ReplayPrices;
use clap::Args;

use crate::cli::Failure;
use crate::cli::config::Config;

const EXAMPLES: &str = "\
If the settings of the configuration differ from these, they are compared, too.

The price list is [pricing] of the configuration, with its general price of a node and hour. Its profiles belong to parties,
which a trace does not know. Use --profile instead: it says which part of the requests pays which part of the price.
Without a price list the prices are those of a published evaluation: one a node and hour, 60 % off at the deadline,
and every fifth request pays threefold.

Examples:
  bespeak advise --config bespeak.toml --trace SDSC-SP2-1998-4.2-cln.swf.gz
  bespeak advise --config bespeak.toml --profile 20:300 --load 150 --goal serve
  bespeak advise --config bespeak.toml --out policies.csv --json";

/// Options of `advise`.
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{EXAMPLES}", advise_options::HELP))]
pub(in crate::cli) struct Options {
    /// Configuration with the price list and the present settings. [default: built-in settings, published prices]
    #[arg(long, env = "BESPEAK_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    advise: advise_options::AdviseOptions,
}

pub(in crate::cli) fn advise_policy(options: &Options) -> Result<(), Failure> {
    let config = Config::load(options.config.as_deref())?;
    let settings = config.planner();
    let provider = Provider {
        prices: settings
            .pricing
            .as_ref()
            .map_or_else(ReplayPrices::published, advised_prices),
        present: policy_before_advice(&settings),
        resources: config.rated_nodes(),
    };
    let answer =
        (options.advise.advise(Some(provider))).map_err(|fault| Failure::Usage(fault.to_string()))?;
    say!("{answer}");
    Ok(())
}

/// The price list, without its profiles.
fn advised_prices(pricing: &planner::Pricing) -> ReplayPrices {
    ReplayPrices {
        currency: pricing.currency.code().to_owned(),
        node_hour_micros: pricing.node_hour_micros,
        late: pricing.late,
        is_published: false,
        busy: pricing.busy,
        flexible: pricing.flexible,
        preemptive: pricing.preemptive,
        shapes: pricing.shapes,
        profiles: Vec::new(),
    }
}

/// The behaviour of the service as it is configured.
fn policy_before_advice(settings: &planner::Settings) -> Policy {
    let phi_max = settings.refusals.alternatives_phi;
    Policy {
        order: settings.order,
        decision: settings.decision,
        portfolio: false,
        fixing: settings.fix_after,
        alternatives: (phi_max.numerator > 0).then_some(Alternatives {
            phi_max,
            earlier_only: false,
        }),
    }
}
