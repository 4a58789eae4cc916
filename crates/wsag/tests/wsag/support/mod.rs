//! The shared parts of this crate's tests: sample messages, a seeded source of chance, and xmllint as a second opinion.

pub(crate) mod constrained_templates;
pub(crate) mod items;
pub(crate) mod make;
pub(crate) mod provider_documents;
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

/// What xmllint is to judge documents by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judge {
    /// Whether they are well-formed at all.
    Form,
    /// Our own schemas.
    Ours,
    /// The published schemas, with our own terms.
    Published,
    /// The published schemas without a look into elements that may be anything.
    PublishedOutside,
}

/// The published schemas with our own terms beside them, written into a folder; none where they are not at hand. Without `lax`
/// they do not look into elements that may be anything.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment says where the published schemas are"
)]
fn published(folder: &Path, lax: bool) -> Option<PathBuf> {
    let Ok(published) = std::env::var("BESPEAK_OFFICIAL_SCHEMAS") else {
        println!("SKIPPED: BESPEAK_OFFICIAL_SCHEMAS names no folder of the published schemas");
        return None;
    };
    let entries = std::fs::read_dir(&published);
    let entries = entries.unwrap_or_else(|why| panic!("BESPEAK_OFFICIAL_SCHEMAS is {published}: {why}"));
    // They come first: their namespaces are then not read a second time from the files beside ours.
    let ours = format!(
        "<xs:import namespace=\"{}\" schemaLocation=\"{}/../../schemas/bsp.xsd\"/></xs:schema>",
        wsag::ns::BSP,
        env!("CARGO_MANIFEST_DIR")
    );
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        let mut text = std::fs::read_to_string(&path).expect("a schema is text");
        if !lax {
            text = text.replace("processContents=\"lax\"", "processContents=\"skip\"");
        }
        if path.ends_with("all.xsd") {
            text = text.replace("</xs:schema>", &ours);
        }
        let copy = folder.join(path.file_name().unwrap_or_default());
        std::fs::write(copy, text).expect("the temporary folder can be written");
    }
    Some(folder.join("all.xsd"))
}

/// Asserts that documents are valid, against our own schemas and against the published ones.
pub(crate) fn assert_valid(documents: &[Vec<u8>], name: &str) {
    for by in [Judge::Ours, Judge::Published] {
        let said = xmllint(documents, by, name).unwrap_or_default();
        for (document, said) in documents.iter().zip(said) {
            let document = String::from_utf8_lossy(document);
            assert!(said.is_empty(), "{by:?} schemas refuse: {said}\n{document}");
        }
    }
}

/// What xmllint has to say against each document, nothing where it is valid. None, with a sentence, where xmllint or the published schemas are not at hand.
pub(crate) fn xmllint(documents: &[Vec<u8>], by: Judge, name: &str) -> Option<Vec<String>> {
    if Command::new("xmllint").arg("--version").output().is_err() {
        println!("SKIPPED {name}: xmllint is not installed (on Debian and Ubuntu it is in libxml2-utils)");
        return None;
    }
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("xmllint-{name}-{by:?}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be made");
    let schema = match by {
        Judge::Form => None,
        Judge::Ours => Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/all.xsd")),
        Judge::Published => Some(published(&folder, true)?),
        Judge::PublishedOutside => Some(published(&folder, false)?),
    };
    let mut verdicts = Vec::new();
    for (chunk, documents) in documents.chunks(500).enumerate() {
        let mut command = Command::new("xmllint");
        command.args(["--noout", "--nonet"]);
        if let Some(schema) = &schema {
            command.arg("--schema").arg(schema);
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
        assert!(!said.contains("failed to compile"), "{said}");
        verdicts.extend(paths.iter().map(|path| {
            let about = said.lines().filter(|line| {
                line.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with(':') || rest.ends_with("to validate"))
                    // A namespace name that is no URI is its author's business.
                    && !(line.contains("namespace warning") || line.contains("not a valid URI"))
            });
            about.collect::<Vec<_>>().join("\n")
        }));
    }
    std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
    Some(verdicts)
}
