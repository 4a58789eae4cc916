//! Bespeak.
