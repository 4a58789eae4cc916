//! The names of the fields of the offer form, and of what every form brings back. Addresses that fill in the form have them, too.

pub(in crate::portal) const NAME: &str = "name";
pub(in crate::portal) const APPLICATION: &str = "application";
pub(in crate::portal) const NODES: &str = "nodes";
/// The greatest number, where any between is right.
pub(in crate::portal) const NODES_MAX: &str = "nodes-max";
pub(in crate::portal) const BUDGET: &str = "budget";
pub(in crate::portal) const HOURS: &str = "hours";
pub(in crate::portal) const MINUTES: &str = "minutes";
pub(in crate::portal) const SECONDS: &str = "seconds";
/// Whether the duration is to be predicted; its fields are not read then.
pub(in crate::portal) const PREDICT: &str = "predict";
pub(in crate::portal) const START: (&str, &str) = ("start-date", "start-time");
pub(in crate::portal) const DEADLINE: (&str, &str) = ("deadline-date", "deadline-time");
/// Whether the request is for exactly then: the deadline is its duration after its start, and the fields of the deadline are not read.
pub(in crate::portal) const EXACT: &str = "exact";
/// The time zone of these; UTC where it is not said.
pub(in crate::portal) const ZONE: &str = "zone";
/// The one resource that it is to lie on.
pub(in crate::portal) const RESOURCE: &str = "resource";
/// The architecture of the processors of each node. The fields of numbers are in [`NUMBERS`](domain::resources::NUMBERS).
pub(in crate::portal) const ARCHITECTURE: &str = "architecture";
/// How far outside the window offers may lie, in durations.
pub(in crate::portal) const FLEXIBILITY: &str = "flexibility";
/// The part of its wait after which the reservation moves no more.
pub(in crate::portal) const FIX: &str = "fix";
/// The most slots that its work may be cut into.
pub(in crate::portal) const PIECES: &str = "pieces";
/// The most offers.
pub(in crate::portal) const CHOICES: &str = "choices";
/// One for every form that was shown, so that one that is sent twice is taken once.
pub(in crate::portal) const ONCE: &str = "once";
pub(in crate::portal) const CSRF: &str = "csrf";
/// The name of a file that was uploaded just now.
pub(in crate::portal) const UPLOADED: &str = "uploaded";
/// The negotiation whose offers are released when this form asks for others.
pub(in crate::portal) const INSTEAD: &str = "instead";
/// The offer that another one answers.
pub(in crate::portal) const OFFER: &str = "offer";
