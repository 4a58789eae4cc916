//! The body of a request, before it is read.

/// A body of a request, in one of the two representations.
#[derive(Debug, Clone)]
pub enum Input {
    /// A document of WS-Agreement.
    Xml(Vec<u8>),
    /// A flat value.
    Json(Vec<u8>),
}

impl Input {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Xml(bytes) | Self::Json(bytes) => bytes,
        }
    }
}
