//! A new shape of an accepted agreement that waits.

use domain::agreement::Agreement;

/// An agreement that has got another size or other pieces on its resource.
#[derive(Debug, Clone)]
pub(crate) struct NewShape {
    /// The agreement as it is now.
    pub(crate) placed: Agreement,
    /// The numbers by which its schedule knows its slots, in their order.
    pub(crate) numbers: Vec<u64>,
}
