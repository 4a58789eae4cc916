//! The files that an offer has moved for its job, as a flat value.

use wsag::NamedValue;
use wsag::job::{CreationFlag, DataStaging};

use crate::service::codec::json::{Json, Members};

/// The files of an offer, as the members of a request have them.
pub(in crate::service) fn view_staged_files(stagings: &[DataStaging]) -> Json {
    let file = |file: &DataStaging| {
        let flag = Some(file.creation_flag).filter(|flag| *flag != CreationFlag::Overwrite);
        Members::default()
            .with("file", file.file_name.clone())
            .with_any("source", file.source.clone())
            .with_any("target", file.target.clone())
            .with_any("bytes", file.bytes)
            .with_any("deleteOnTermination", file.delete_on_termination)
            .with_any("creationFlag", flag.map(NamedValue::name))
    };
    stagings.iter().map(file).collect()
}
