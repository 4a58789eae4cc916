//! The agreements that a caller may see.

/// The agreements that a caller may see: a party's own, or all for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One party's.
    Party(String),
    /// Every party's.
    All,
}

impl Scope {
    /// The party that it is restricted to.
    pub fn party(&self) -> Option<&str> {
        match self {
            Self::Party(party) => Some(party),
            Self::All => None,
        }
    }
}
