//! Plans as pictures: the calendar, the plan on nodes and the picture of a reservation are drawn here, on one axis of time and from one
//! kind of boxes and slots. The pages choose what is shown.

pub(super) mod band;
mod grid;
pub(super) mod node_picture;
pub(super) mod slots;
pub(super) mod span_picture;

/// The way from a picture to those of other times.
pub(super) struct Paging {
    /// The time that is shown, in words.
    pub(super) title: String,
    pub(super) previous: String,
    /// Where the present is shown, and the word for it.
    pub(super) present: (&'static str, String),
    pub(super) next: Option<String>,
    /// Other lengths of time.
    pub(super) lengths: Vec<Link>,
}

/// A link to the picture of another length of time.
pub(super) struct Link {
    pub(super) word: String,
    pub(super) address: String,
    pub(super) is_here: bool,
}
