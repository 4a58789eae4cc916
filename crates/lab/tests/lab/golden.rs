//! Golden traces: the decisions of replayed lists, as digests. A change that is meant to change no decision leaves them as they
//! are; one that changes some says which, and why that is better.
//!
//! `BESPEAK_TEST_TRACES=FOLDER` keeps the traces themselves, so that those of two versions can be compared line by line.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::replay::decisions_of;

/// Requests of a replayed list, and the nodes that they are for.
const REQUESTS: i64 = 400;
const CAPACITY: usize = 16;

/// The options of `replay` with decisions that are kept.
const OPTIONS: [&str; 7] = [
    "--order fifo",
    "--order edf --fix 0",
    "--order edf --alternatives 2",
    "--order mdf --fix 0.5",
    "--order bjf --alternatives 1 --portfolio",
    "--order lff",
    "--order shuffle --seed 7",
];

/// Asserts that a trace is the golden one of that name.
fn assert_golden(name: &str, trace: &str) {
    if let Some(folder) = std::env::var_os("BESPEAK_TEST_TRACES") {
        let folder = Path::new(&folder);
        fs::create_dir_all(folder).expect("a folder can be made");
        fs::write(folder.join(name), trace).expect("a trace can be kept");
    }
    let digest = Sha256::digest(trace)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
    let found = format!("{name}: {} lines {digest}", trace.lines().count());
    assert!(
        include_str!("../golden.txt").lines().any(|line| line == found),
        "other decisions than before: compare the traces (BESPEAK_TEST_TRACES) with those of the version before, or write into \
         crates/lab/tests/golden.txt\n{found}"
    );
}

/// Marsaglia's xorshift: numbers that only look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number from 0 to `bound - 1`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % bound as u64).expect("below a usize")
    }

    fn seconds(&mut self, bound: usize) -> i64 {
        i64::try_from(self.below(bound)).expect("a bound that a test writes down")
    }
}

/// A list of requests that does not fit: rigid and flexible ones, wide and narrow, in bursts.
fn list(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut submit = 0;
    let mut rows = String::new();
    for id in 1..=REQUESTS {
        if random.below(4) > 0 {
            submit += random.seconds(60);
        }
        let longest = if random.below(8) == 0 { 2_000 } else { 200 };
        let duration = 10 + random.seconds(longest);
        let widest = if random.below(6) == 0 { CAPACITY } else { 5 };
        let nodes = 1 + random.below(widest);
        let ready = submit + random.seconds(400);
        let slack = if random.below(3) == 0 {
            0
        } else {
            random.seconds(900)
        };
        let deadline = ready + duration + slack;
        let _ = writeln!(rows, "{id},{submit},{duration},{nodes},{ready},{deadline}");
    }
    rows
}

#[test]
fn replayed_lists_are_decided_as_before() {
    for seed in 1..=2 {
        for options in OPTIONS {
            let name = format!("replay {seed} {options}");
            assert_golden(&name, &decisions_of(&list(seed), CAPACITY, options).join("\n"));
        }
    }
}
