//! The files that are moved for a job as flat values.

use serde::{Deserialize, Serialize};
use wsag::Named;
use wsag::job::{CreationFlag, DataStaging};

use crate::agreement::{Source, StagedFile};
use crate::execution::job::staging::{Direction, StagingRecord};
use crate::negotiation::request::json::{Json, Members};

/// A file that is moved for the job of an agreement, and how far it has come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StagedView {
    /// Its name in the job's folder.
    pub file: String,
    /// Where it comes from: an address, or the name of an uploaded file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The address to which it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Bytes that it has by the word of its party.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether it is removed when the work is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_on_termination: bool,
    /// Bytes of it that have been brought from its address so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in: Option<u64>,
    /// Bytes of it that have been sent to its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_out: Option<u64>,
}

impl StagedView {
    /// The files of a job, with what is known of how far they have come.
    pub(in crate::negotiation) fn of(files: &[StagedFile], record: Option<&StagingRecord>) -> Vec<Self> {
        let moved = |way: fn(&StagingRecord) -> &Direction, name: &str| {
            let mut files = record.map(way)?.files.iter();
            files.find(|file| file.name == name).map(|file| file.bytes)
        };
        let view = |file: &StagedFile| Self {
            file: file.name.clone(),
            source: file.source.as_ref().map(|source| match source {
                Source::Upload(name) | Source::Address(name) => name.clone(),
            }),
            target: file.target.clone(),
            bytes: file.bytes,
            delete_on_termination: file.removed,
            bytes_in: moved(|record| &record.brought, &file.name),
            bytes_out: moved(|record| &record.sent, &file.name),
        };
        files.iter().map(view).collect()
    }
}

/// The files of an offer, as the members of a request have them.
pub(in crate::negotiation) fn files(of: &[DataStaging]) -> Json {
    let file = |file: &DataStaging| {
        let flag = Some(file.creation_flag).filter(|flag| *flag != CreationFlag::Overwrite);
        Members::default()
            .with("file", file.file_name.clone())
            .with_any("source", file.source.clone())
            .with_any("target", file.target.clone())
            .with_any("bytes", file.bytes)
            .with_any("deleteOnTermination", file.delete_on_termination)
            .with_any("creationFlag", flag.map(Named::name))
    };
    of.iter().map(file).collect()
}
