//! The shared parts of this crate's tests: sample messages, a seeded source of chance, and xmllint as a second opinion.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod items;
pub(crate) mod make;
pub(crate) mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use wsag::templates::Template;
use wsag::{Document, Message, read};

/// The folder of the sample messages.
pub(crate) fn messages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/messages")
}

/// One sample message.
pub(crate) fn text(name: &str) -> String {
    let path = messages().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of the sample messages in a folder below [`messages`], sorted.
pub(crate) fn names(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(messages().join(folder)).expect("the folder is there");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("the folder can be read")
                .file_name()
                .into_string()
                .expect("names are plain")
        })
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "xml")
        })
        .collect();
    names.sort();
    names
}

/// The sample messages that a provider writes and does not read.
pub(crate) const WRITTEN: [&str; 8] = [
    "m04-create-agreement-response.xml",
    "m06-accept-agreement-input.xml",
    "m07-reject-agreement-input.xml",
    "m09-agreement-properties.xml",
    "m10-agreement-factory-properties.xml",
    "m11-continuing-fault.xml",
    "m13-initiate-negotiation-output.xml",
    "m20-negotiation-properties.xml",
];

/// Names of the sample messages that a provider reads, sorted.
pub(crate) fn names_read() -> Vec<String> {
    let mut names = names("");
    names.retain(|name| !WRITTEN.contains(&name.as_str()));
    names
}

/// Reads a message that must be valid.
pub(crate) fn message(text: &str) -> Message {
    let document = Document::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    read(&document).unwrap_or_else(|violations| panic!("{violations}\n{text}"))
}

/// Reads a template that must be valid.
pub(crate) fn template(text: &str) -> Template {
    match message(text) {
        Message::Template(template) => *template,
        other => panic!("a template is expected, not {other:?}"),
    }
}

/// Chance that can be repeated: splitmix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).expect("it fits")).expect("it fits")
    }

    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}

/// xmllint's judgement of each document: well-formed at all, and valid by our schemas where `schema` is set. None, with a
/// sentence, where xmllint is not installed.
pub(crate) fn xmllint(documents: &[Vec<u8>], schema: bool, name: &str) -> Option<Vec<bool>> {
    if Command::new("xmllint").arg("--version").output().is_err() {
        println!("SKIPPED {name}: xmllint is not installed (on Debian and Ubuntu it is in libxml2-utils)");
        return None;
    }
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("xmllint-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be made");
    let mut verdicts = Vec::new();
    for (chunk, documents) in documents.chunks(500).enumerate() {
        let mut command = Command::new("xmllint");
        command.args(["--noout", "--nonet"]);
        if schema {
            command
                .arg("--schema")
                .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/all.xsd"));
        }
        let mut paths = Vec::new();
        for (index, document) in documents.iter().enumerate() {
            let path = folder.join(format!("{chunk}-{index}.xml"));
            std::fs::write(&path, document).expect("the temporary folder can be written");
            command.arg(&path);
            paths.push(path.display().to_string());
        }
        let output = command.output().expect("xmllint runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let mentioned: std::collections::HashSet<&str> = if schema {
            said.lines()
                .filter_map(|line| line.strip_suffix(" validates"))
                .collect()
        } else {
            // A namespace name that is no URI is its author's business.
            let serious = said
                .lines()
                .filter(|line| !line.contains("namespace warning") && !line.contains("not a valid URI"));
            serious.filter_map(|line| line.split(':').next()).collect()
        };
        // With a schema the valid ones are named, without one the broken ones.
        verdicts.extend(
            paths
                .iter()
                .map(|path| mentioned.contains(path.as_str()) == schema),
        );
    }
    std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
    Some(verdicts)
}
