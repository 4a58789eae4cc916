//! The files of a flat request that are to be moved, read into the elements of JSDL that say them.

use wsag::NamedValue;
use wsag::job::{CreationFlag, DataStaging};

use super::{Json, JsonCheck, LocatedValue, whole_number};

/// Reads the list of files.
pub(super) fn read_staged_files(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Vec<DataStaging> {
    let files = check.list(at);
    files
        .iter()
        .filter_map(|at| read_staged_file(check, at))
        .collect()
}

fn read_staged_file(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<DataStaging> {
    let known = [
        "file",
        "source",
        "target",
        "bytes",
        "deleteOnTermination",
        "creationFlag",
    ];
    let object = check.object(at, &known)?;
    let file_name = object.read_required(check, "file", JsonCheck::text);
    let flag = object.read(check, "creationFlag", |check, at| {
        let word = check.text(at)?;
        let expected = || {
            let words: Vec<_> = CreationFlag::NAMES.iter().map(|(_, word)| *word).collect();
            format!("one of {} is expected", words.join(", "))
        };
        CreationFlag::parse(&word).or_else(|| check.wrong(at, expected()))
    });
    Some(DataStaging {
        source: object.read(check, "source", JsonCheck::token_of_any_length),
        target: object.read(check, "target", JsonCheck::token_of_any_length),
        bytes: object.read(check, "bytes", read_byte_count),
        delete_on_termination: object.read(check, "deleteOnTermination", JsonCheck::boolean),
        creation_flag: flag.unwrap_or(CreationFlag::Overwrite),
        file_name: file_name?,
    })
}

fn read_byte_count(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<u64> {
    let expected = "a whole number from 0 on";
    let Json::Number(number) = at.value else {
        return check.expected(at, expected);
    };
    let message = || format!("{expected} is expected, not {number}");
    whole_number(number).or_else(|| check.wrong(at, message()))
}
