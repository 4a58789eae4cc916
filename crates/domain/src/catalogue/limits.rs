//! The limits of one job: values that an application, a resource or the provider sets, the nearer before the farther.

use serde::{Deserialize, Serialize};

use super::CatalogueError;

/// Mebibytes beyond this are a slip of the pen.
const MIB_MAX: u64 = 1 << 30;
/// More processes or files than a system knows are a slip of the pen.
const COUNT_MAX: u64 = 1 << 22;
/// A program needs a few files to begin with.
const OPEN_FILES_MIN: u64 = 16;

/// The limits of one job. A limit that is `None` is not set here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobLimits {
    /// Bytes of memory of all its processes together.
    pub memory: Option<u64>,
    /// Processes at a time, each thread counted.
    pub processes: Option<u64>,
    /// Bytes on the disk that its files may take in its folder.
    pub files: Option<u64>,
    /// Files that each of its processes may have open.
    pub open_files: Option<u64>,
    /// Bytes kept of each of its two outputs.
    pub output: Option<u64>,
}

impl JobLimits {
    /// These where they say something, else the others.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            memory: self.memory.or(others.memory),
            processes: self.processes.or(others.processes),
            files: self.files.or(others.files),
            open_files: self.open_files.or(others.open_files),
            output: self.output.or(others.output),
        }
    }
}

/// A table of limits as it is written in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitKeys {
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files_mib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_mib: Option<u64>,
}

impl TryFrom<LimitKeys> for JobLimits {
    type Error = CatalogueError;

    fn try_from(keys: LimitKeys) -> Result<Self, CatalogueError> {
        for (key, value, min, max) in [
            ("memory_mib", keys.memory_mib, 1, MIB_MAX),
            ("processes", keys.processes, 1, COUNT_MAX),
            ("files_mib", keys.files_mib, 1, MIB_MAX),
            ("open_files", keys.open_files, OPEN_FILES_MIN, COUNT_MAX),
            ("output_mib", keys.output_mib, 1, MIB_MAX),
        ] {
            if let Some(value) = value.filter(|value| !(min..=max).contains(value)) {
                return Err(CatalogueError(format!(
                    "limits.{key}: expected {min} to {max}, found {value}"
                )));
            }
        }
        let bytes = |mib: Option<u64>| mib.map(|mib| mib << 20);
        Ok(Self {
            memory: bytes(keys.memory_mib),
            processes: keys.processes,
            files: bytes(keys.files_mib),
            open_files: keys.open_files,
            output: bytes(keys.output_mib),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_limit_counts_and_what_it_does_not_say_comes_from_the_farther() {
        let limits = |memory, processes| JobLimits {
            memory,
            processes,
            ..JobLimits::default()
        };
        assert_eq!(
            limits(Some(1), None).or(limits(Some(2), Some(3))),
            limits(Some(1), Some(3))
        );
    }

    #[test]
    fn a_limit_out_of_bounds_is_refused_with_its_key() {
        let keys = LimitKeys {
            files_mib: Some(0),
            ..LimitKeys::default()
        };
        let error = JobLimits::try_from(keys).unwrap_err().to_string();
        assert_eq!(error, "limits.files_mib: expected 1 to 1073741824, found 0");
    }
}
