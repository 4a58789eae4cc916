//! The rights that the key of a caller gives.

use scheduler::worded;

worded! {
    /// The rights of a caller.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Role {
        /// Makes offers and sees its own agreements.
        Consumer = "consumer",
        /// Sees the data of all parties.
        Operator = "operator",
        /// Reads the metrics and nothing else: for programs that watch over the service.
        Monitor = "monitor",
    }
}
