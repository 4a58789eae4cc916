//! WS-Agreement documents.
