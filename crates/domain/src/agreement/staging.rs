//! Files that are moved for a job as part of its slot: brought before its process starts, sent after it has completed.

use scheduler::counted;
use serde::{Deserialize, Serialize};

use crate::clock::{MICROS_PER_SECOND, Micros};

/// Bytes of a transfer that tells a rate, however short it was.
const TELLS_BYTES: u64 = 1 << 20;
/// Microseconds of a transfer that tells a rate, however little it moved.
const TELLS_MICROS: Micros = MICROS_PER_SECOND / 10;

/// A file of a job's folder that comes from somewhere or goes somewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFile {
    /// Its name in the job's working folder.
    pub name: String,
    /// Where it comes from before the job starts; none where the job makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The address to which it is sent once the job has completed; none where it is only kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Bytes that it has by the word of its party: an estimate, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether it is removed when the work is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// Where a file comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A file that the party has uploaded, or one of the provider's, by its name.
    Upload(String),
    /// An address.
    Address(String),
}

/// The files that were moved in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedFiles {
    /// How many.
    pub files: u32,
    /// Bytes of them.
    pub bytes: u64,
    /// For how long data were on their way, pauses between tries left out.
    pub took: Micros,
}

/// The files that were brought for a job whose process has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BroughtFiles {
    /// Which, together.
    #[serde(flatten)]
    pub moved: MovedFiles,
    /// From when the first of them was asked for until the process started.
    pub before: Micros,
}

/// The part of a job's end that is about its files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagingEnd {
    /// The files that were brought; none where none were to be, or the process has not started.
    pub brought: Option<BroughtFiles>,
    /// The files that were sent, where some were.
    pub sent: Option<MovedFiles>,
    /// From the end of the process until they were.
    pub after: Micros,
    /// Why its files could not be moved, in words for its party.
    pub failure: Option<String>,
}

impl MovedFiles {
    /// In words for a party, after a verb such as "brought".
    pub fn words(&self, verb: &str) -> String {
        let tenths = self.took / (MICROS_PER_SECOND / 10);
        format!(
            "{verb} {} with {} in {}.{} seconds",
            counted(self.files, "file"),
            counted(self.bytes, "byte"),
            tenths / 10,
            tenths % 10
        )
    }
}

/// Bytes a second of a transfer that was long enough to tell a rate: of 1 MiB, or for a tenth of a second. None for another.
pub fn staging_transfer_rate(bytes: i64, took: Micros) -> Option<i64> {
    let tells = bytes > 0 && took > 0 && (bytes.unsigned_abs() >= TELLS_BYTES || took >= TELLS_MICROS);
    let rate = i128::from(bytes) * i128::from(MICROS_PER_SECOND) / i128::from(took.max(1));
    tells.then(|| i64::try_from(rate).unwrap_or(i64::MAX))
}

/// The bytes of files that have an address, as far as they are declared; none where no file has them declared.
pub(super) fn declared_staging_bytes<'a>(
    files: impl Iterator<Item = (&'a StagedFile, &'a str)>,
) -> Option<u64> {
    files
        .filter_map(|(file, _)| file.bytes)
        .reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::super::Job;
    use super::*;

    #[test]
    fn a_transfer_tells_a_rate_where_it_was_long_enough_to_mean_something() {
        assert_eq!(staging_transfer_rate(1 << 20, 1_000), Some((1 << 20) * 1_000));
        assert_eq!(staging_transfer_rate((1 << 20) - 1, TELLS_MICROS - 1), None);
        assert_eq!(staging_transfer_rate(10, TELLS_MICROS), Some(100));
        assert_eq!(staging_transfer_rate(0, 10 * TELLS_MICROS), None);
        assert_eq!(staging_transfer_rate(1 << 30, 0), None);
        assert_eq!(staging_transfer_rate(i64::MAX, 1), Some(i64::MAX), "it saturates");
    }

    #[test]
    fn declared_bytes_are_those_of_addresses_as_far_as_they_are_known() {
        let file = |source, target: Option<&str>, bytes| StagedFile {
            name: "f".into(),
            source,
            target: target.map(str::to_owned),
            bytes,
            removed: false,
        };
        let address = || Some(Source::Address("http://a/".into()));
        let job_with = |staging| Job {
            staging,
            ..Job::default()
        };
        let job = job_with(vec![
            file(address(), None, Some(5)),
            file(address(), Some("http://b/"), None),
            file(Some(Source::Upload("u".into())), None, Some(7)),
            file(None, None, Some(9)),
        ]);
        assert_eq!((job.input_bytes(), job.output_bytes()), (Some(5), None));
        let both = job_with(vec![file(address(), Some("http://b/"), Some(u64::MAX)); 2]);
        assert_eq!(
            (both.input_bytes(), both.output_bytes()),
            (Some(u64::MAX), Some(u64::MAX))
        );
    }
}
