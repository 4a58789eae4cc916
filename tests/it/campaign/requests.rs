//! What parties ask for at random, and the price list of their provider.

use domain::agreement::{Compensation, CompensationValue, Currency, Money, Shape, Values};
use domain::resources::Scaling;
use planner::{Pricing, Request};
use scheduler::Fraction;
use scheduler::preemptive::{Preemption, Rounding};
use scheduler::pricing::Discount;

use super::{Aim, Campaign, RESTARTING};
use crate::support::harness::{guarantee, proposal};
use crate::support::random::Random;

/// Most nodes that are asked for.
const NODES_MAX: usize = 4;

/// A price list with every rule.
pub(super) fn pricing() -> Pricing {
    let mut pricing = Pricing::flat(700_000, euro());
    pricing.busy = Fraction::percent(80);
    pricing.flexible = Discount {
        most: Fraction::percent(40),
        half: 50,
    };
    pricing.cancellation = Fraction::percent(10);
    pricing
}

fn euro() -> Currency {
    Currency::parse("EUR").expect("three capital letters")
}

/// Paid to the party: half of the price, and something for each minute.
fn penalties() -> Values {
    let amount = CompensationValue::Amount(Money::new(1_234, euro()));
    let penalty = |worth, every| Compensation {
        worth,
        every,
        paid: 0,
    };
    Values {
        penalties: vec![
            penalty(CompensationValue::PricePart(50_000_000), None),
            penalty(amount, Some(60)),
        ],
        ..Values::default()
    }
}

/// How work may be cut, where it scales each piece maybe to a size of its own.
fn cuts(random: &mut Random, scales: bool) -> Preemption {
    let mut some = || 2 + u32::try_from(random.below(4)).expect("small");
    let (pieces, parts) = (some(), some());
    let independent = scales && random.below(2) == 0;
    let preemption = Preemption::new(pieces, 1_000_000 / parts, independent).expect("a few parts");
    preemption.rounded(if independent { Rounding::Up } else { Rounding::Cuts })
}

impl Campaign<'_> {
    /// A request of a party, which may be one for work in pieces, of several sizes, or to be run again when it is lost.
    pub(super) fn request(&mut self, party: &str) -> Request {
        let (aim, now, random) = (self.aim, self.now(), &mut self.random);
        let again = aim == Aim::Restarted || random.below(3) == 0;
        let runs = aim == Aim::Restarted || aim == Aim::InPieces || random.below(2) == 0;
        let cut = runs && (aim == Aim::InPieces || random.below(2) == 0);
        // A request that may be cut is so long and comes so soon that it often is.
        let (duration, ready) = if cut {
            (30 + random.seconds(100), now)
        } else {
            (1 + random.seconds(60), now + random.seconds(200))
        };
        let nodes = 1 + u32::try_from(random.below(NODES_MAX)).expect("small");
        let scales = random.below(3) == 0;
        let fewest = if scales { 1 } else { nodes };
        let sizes = (fewest..=nodes).rev().map(|each| Shape {
            nodes: each,
            duration: duration * i64::from(nodes) / i64::from(each),
        });
        let asked = proposal(1, 1, 0..1);
        // Often longer than it takes to find another place.
        let room = random.seconds(100) + random.seconds(2) * (20 + random.seconds(300));
        Request {
            party: party.into(),
            template: if again { RESTARTING } else { "advance-reservation" }.into(),
            shapes: sizes.collect(),
            scaling: if scales || random.below(3) == 0 {
                Scaling::ReferenceRate
            } else {
                Scaling::Contract
            },
            preemption: cut.then(|| cuts(random, fewest < nodes)),
            fix_at_ppm: (random.below(5) == 0).then_some(300_000),
            ready: Some(ready),
            deadline: Some(ready + duration + room),
            job: asked.job.filter(|_| runs),
            guarantees: vec![
                guarantee("START", "started le latest_start", penalties()),
                guarantee("COMPLETION", "completed le deadline", penalties()),
            ],
            ..asked
        }
    }

    /// The same in a negotiation, where an offer and the words that accept it are of one template.
    pub(super) fn negotiable(&mut self) -> Request {
        Request {
            template: "advance-reservation".into(),
            fix_at_ppm: None,
            ..self.request("physics")
        }
    }
}
