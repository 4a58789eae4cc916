//! Predictions compared with naive oracles, and with users that were invented for the purpose.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "small counts and made-up run times; what is not there fails the test"
)]

mod estimate;
mod outlook;
mod parts;
mod runs;
mod smoothing;
mod statements;
