//! The states of a service term and the moves between them (WS-Agreement 1.0, section 7), as total functions.

use scheduler::worded;

worded! {
    /// State of a service term.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ServiceState {
        /// Its slot has not begun.
        NotReady = "NotReady",
        /// Its slot has begun and it runs nothing.
        Idle = "Idle",
        /// Its job runs.
        Processing = "Processing",
        /// Over.
        Completed = "Completed",
    }
}

impl ServiceState {
    /// Whether the slot has begun and is not over.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Idle | Self::Processing)
    }

    /// Whether the specification has a move from here to `next`.
    pub fn allows(self, next: Self) -> bool {
        match self {
            Self::NotReady => next != Self::NotReady,
            Self::Idle | Self::Processing => !matches!(next, Self::NotReady) && next != self,
            Self::Completed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_their_states() {
        for state in ServiceState::ALL {
            assert_eq!(ServiceState::from_word(state.word()), Some(state));
        }
    }
}
