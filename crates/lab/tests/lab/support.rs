//! Runs the executable of the laboratory as a user does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the real executable in a folder, with words that have no space in them.
pub(crate) fn lab(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bespeak-lab"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the executable can be run")
}

/// The same; its output, since it succeeds.
pub(crate) fn succeed(folder: &Path, arguments: &str) -> String {
    let output = lab(folder, arguments);
    assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    text(&output.stdout)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes a file into a folder.
pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("a file can be written");
}

/// The windows of a part of the reference schedules: of those that `scripts/reference-schedules` makes, and of those in the folder
/// `BESPEAK_REFERENCE_DATA` where it is set.
pub(crate) fn reference_windows(part: &str) -> Vec<Value> {
    let mut texts = vec![include_str!("../reference-schedules.json").to_owned()];
    if let Some(folder) = std::env::var_os("BESPEAK_REFERENCE_DATA") {
        let path = PathBuf::from(folder).join("scheduler-reference.json");
        texts.push(fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    }
    let of_text = |text: &String| -> Vec<Value> {
        let file: Value = serde_json::from_str(text).expect("schedules are JSON");
        file[part].as_array().expect("windows of requests").clone()
    };
    texts.iter().flat_map(of_text).collect()
}
