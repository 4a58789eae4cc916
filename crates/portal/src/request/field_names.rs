//! The names of the fields of the offer form, and of what every form brings back. Addresses that fill in the form have them, too.

pub(crate) const NAME: &str = "name";
pub(crate) const APPLICATION: &str = "application";
pub(crate) const NODES: &str = "nodes";
/// The greatest number, where any between is right.
pub(crate) const NODES_MAX: &str = "nodes-max";
pub(crate) const BUDGET: &str = "budget";
pub(crate) const HOURS: &str = "hours";
pub(crate) const MINUTES: &str = "minutes";
pub(crate) const SECONDS: &str = "seconds";
/// Whether the duration is to be predicted; its fields are not read then.
pub(crate) const PREDICT: &str = "predict";
pub(crate) const START: (&str, &str) = ("start-date", "start-time");
pub(crate) const DEADLINE: (&str, &str) = ("deadline-date", "deadline-time");
/// Whether the request is for exactly then: the deadline is its duration after its start, and the fields of the deadline are not read.
pub(crate) const EXACT: &str = "exact";
/// The time zone of these; UTC where it is not said.
pub(crate) const ZONE: &str = "zone";
/// The one resource that it is to lie on.
pub(crate) const RESOURCE: &str = "resource";
/// The architecture of the processors of each node. The fields of numbers are in [`NUMBERS`](domain::resources::NUMBERS).
pub(crate) const ARCHITECTURE: &str = "architecture";
/// How far outside the window offers may lie, in durations.
pub(crate) const FLEXIBILITY: &str = "flexibility";
/// The part of its wait after which the reservation moves no more.
pub(crate) const FIX: &str = "fix";
/// The most slots that its work may be cut into.
pub(crate) const PIECES: &str = "pieces";
/// The most offers.
pub(crate) const CHOICES: &str = "choices";
/// One for every form that was shown, so that one that is sent twice is taken once.
pub(crate) const ONCE: &str = "once";
pub(crate) const CSRF: &str = "csrf";
/// The name of a file that was uploaded just now.
pub(crate) const UPLOADED: &str = "uploaded";
/// The negotiation whose offers are released when this form asks for others.
pub(crate) const INSTEAD: &str = "instead";
/// The offer that another one answers.
pub(crate) const OFFER: &str = "offer";
