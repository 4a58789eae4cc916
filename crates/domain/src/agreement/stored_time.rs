//! Times as they are stored: whole seconds since the Unix epoch.

use scheduler::{Interval, Time};
use serde::{Deserialize, Serialize};

/// An instant.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Time")]
pub(super) struct StoredTime(i64);

/// An interval, by its start and its end.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Interval")]
pub(super) struct StartEnd {
    #[serde(with = "StoredTime")]
    start: Time,
    #[serde(with = "StoredTime")]
    end: Time,
}

/// An instant that there may be.
pub(super) mod seconds_if_any {
    use scheduler::Time;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the shape that serde asks for")]
    pub(in crate::agreement) fn serialize<S: Serializer>(
        time: &Option<Time>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Time::seconds).serialize(to)
    }

    pub(in crate::agreement) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Time>, D::Error> {
        Ok(Option::deserialize(from)?.map(Time))
    }
}
