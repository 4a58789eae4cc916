//! The names of the fields of the offer form, and of what every form brings back. Addresses that fill in the form have them, too.

pub(super) const NAME: &str = "name";
pub(super) const APPLICATION: &str = "application";
pub(super) const NODES: &str = "nodes";
/// The greatest number, where any between is right.
pub(super) const NODES_MAX: &str = "nodes-max";
pub(super) const BUDGET: &str = "budget";
pub(super) const HOURS: &str = "hours";
pub(super) const MINUTES: &str = "minutes";
pub(super) const SECONDS: &str = "seconds";
/// Whether the duration is to be predicted, whatever stands in its fields.
pub(super) const PREDICT: &str = "predict";
pub(super) const START: (&str, &str) = ("start-date", "start-time");
pub(super) const DEADLINE: (&str, &str) = ("deadline-date", "deadline-time");
/// The time zone of these; UTC where it is not said.
pub(super) const ZONE: &str = "zone";
/// The one resource that it is to lie on.
pub(super) const RESOURCE: &str = "resource";
/// How far outside the window offers may lie, in durations.
pub(super) const FLEXIBILITY: &str = "flexibility";
/// The part of its wait after which the reservation moves no more.
pub(super) const FIX: &str = "fix";
/// The most slots that its work may be cut into.
pub(super) const PIECES: &str = "pieces";
/// The most offers.
pub(super) const CHOICES: &str = "choices";
/// One for every form that was shown, so that one that is sent twice is taken once.
pub(super) const ONCE: &str = "once";
pub(super) const CSRF: &str = "csrf";
/// The name of a file that was uploaded just now.
pub(super) const UPLOADED: &str = "uploaded";
/// The offer that another one answers.
pub(super) const OFFER: &str = "offer";
