//! XML as others see it: validated by xmllint, which shares no code with the service.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The schema of everything that the service answers.
const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/all.xsd");
/// The schema of our own terms, which the published schemas are completed by.
const BSP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/bsp.xsd");

/// The schemas of the languages of others that tests have terms in: the published schemas ask for a declaration of each element.
const LANGUAGES: [(&str, &str); 2] = [
    (
        "http://schemas.wsag4j.org/2009/07/wsag4j-scheduling-extensions",
        "time.xsd",
    ),
    ("urn:example:colours", "colours.xsd"),
];

/// Most documents that one run of xmllint is given: the length of a command line has its limit.
const DOCUMENTS_MAX: usize = 500;

/// The published schemas with our own terms beside them, written into a folder; none where they are not at hand.
///
/// # Panics
/// Where `BESPEAK_OFFICIAL_SCHEMAS` names no folder of schemas.
fn published(folder: &Path) -> Option<PathBuf> {
    let published = std::env::var("BESPEAK_OFFICIAL_SCHEMAS").ok()?;
    let all = fs::read_to_string(Path::new(&published).join("all.xsd"))
        .unwrap_or_else(|why| panic!("BESPEAK_OFFICIAL_SCHEMAS is {published}: {why}"));
    // They come first: their namespaces are then not read a second time from the files beside ours.
    let import = |namespace: &str, file: &str| {
        format!("<xs:import namespace=\"{namespace}\" schemaLocation=\"{file}\"/>")
    };
    let folder_of_languages = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/languages");
    let languages = LANGUAGES
        .iter()
        .map(|(namespace, file)| import(namespace, &format!("{folder_of_languages}/{file}")));
    let ours = import(wsag::ns::BSP, BSP) + &languages.collect::<String>() + "</xs:schema>";
    let all = all
        .replace("schemaLocation=\"", &format!("schemaLocation=\"{published}/"))
        .replace("</xs:schema>", &ours);
    let path = folder.join("published.xsd");
    fs::write(&path, all).expect("a schema can be written");
    Some(path)
}

/// Asserts that a document is valid against the project's schemas, and against the published ones where they are at hand.
pub(crate) fn assert_valid(document: &str) {
    assert_all_valid([document]);
}

/// Asserts that every document is valid; one run of xmllint for many of them.
pub(crate) fn assert_all_valid<'a>(documents: impl IntoIterator<Item = &'a str>) {
    let documents: Vec<&str> = documents.into_iter().collect();
    for chunk in documents.chunks(DOCUMENTS_MAX) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let names: Vec<String> = (0..chunk.len()).map(|index| format!("{index}.xml")).collect();
        for (name, document) in names.iter().zip(chunk) {
            fs::write(folder.path().join(name), document).expect("a document can be written");
        }
        let schemas = std::iter::once(SCHEMA.into()).chain(published(folder.path()));
        for schema in schemas {
            let output = xmllint(folder.path(), &schema, &names);
            if !output.0 {
                let wrong = names
                    .iter()
                    .position(|name| output.1.contains(&format!("{name}:")))
                    .unwrap_or(0);
                panic!(
                    "not valid against {}:\n{}\nthe first of them:\n{}",
                    schema.display(),
                    output.1,
                    chunk[wrong]
                );
            }
        }
    }
}

/// Runs xmllint; answers whether all are valid, and its messages.
fn xmllint(folder: &Path, schema: &Path, names: &[String]) -> (bool, String) {
    let output = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(schema)
        .args(names)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|why| match why.kind() {
            ErrorKind::NotFound => {
                panic!("These tests need xmllint (of libxml2): install it as scripts/test does.")
            }
            _ => panic!("xmllint cannot be run: {why}"),
        });
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// The texts of the elements of a local name that hold nothing but text, in document order.
pub(crate) fn texts<'a>(document: &'a str, local_name: &str) -> Vec<&'a str> {
    let pieces = document.split('<').filter_map(|piece| piece.split_once('>'));
    pieces
        .filter(|(tag, _)| {
            let name = tag.split_whitespace().next().unwrap_or_default();
            let local = name.rsplit(':').next().unwrap_or_default();
            local == local_name && !tag.starts_with('/') && !tag.ends_with('/')
        })
        .map(|(_, text)| text.trim())
        .collect()
}

#[test]
fn a_document_against_the_schemas_is_found_among_valid_ones() {
    let message = |name: &str| super::offers::file(&format!("tests/messages/{name}.xml"));
    let (valid, invalid) = (
        message("m11-continuing-fault"),
        message("negative/bad-context-order"),
    );
    assert_all_valid([valid.as_str(), valid.as_str()]);
    let found = std::panic::catch_unwind(|| assert_all_valid([valid.as_str(), invalid.as_str()]));
    assert!(found.is_err(), "an invalid document is taken for valid");
}

/// The terms of an agreement, in any writing.
pub(crate) fn terms_of(properties: &str) -> wsag::terms::Terms {
    let element = |name: &str| {
        let (start, end) = (format!("<wsag:{name}"), format!("</wsag:{name}>"));
        let start = properties.find(&start).expect("its start");
        let end = properties.rfind(&end).expect("its end") + end.len();
        &properties[start..end]
    };
    let offer = format!(
        "<wsag:AgreementOffer xmlns:wsag=\"{}\">{}{}</wsag:AgreementOffer>",
        wsag::ns::WSAG,
        element("Context"),
        element("Terms"),
    );
    let document = wsag::Document::parse(offer.as_bytes()).expect("a document");
    match wsag::read(&document).expect("a message") {
        wsag::Message::AgreementOffer(offer) => offer.terms,
        other => panic!("no offer: {other:?}"),
    }
}
