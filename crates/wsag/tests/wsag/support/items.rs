//! Templates with one item, and where offers do not meet it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use wsag::Document;
use wsag::constraints::CompiledTemplate;
use wsag::templates::ADVANCE_RESERVATION;

use super::template;

/// A template with one item. Its constraint can be met only where the text says so.
pub(crate) fn item(location: &str, constraint: &str) -> CompiledTemplate {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let start = ADVANCE_RESERVATION
        .find("<wsag:CreationConstraints>")
        .expect("it is there");
    let text = format!(
        "{}<wsag:CreationConstraints><wsag:Item wsag:Name=\"i\"><wsag:Location>{}</wsag:Location><wsag:ItemConstraint>{constraint}\
         </wsag:ItemConstraint></wsag:Item></wsag:CreationConstraints></wsag:Template>",
        &ADVANCE_RESERVATION[..start],
        escape(location)
    );
    CompiledTemplate::compile(&template(&text))
}

/// Where in an offer the item is not met.
pub(crate) fn paths(template: &CompiledTemplate, offer: &str) -> Vec<String> {
    let document = Document::parse(offer.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{offer}"));
    let found = template.check(&document);
    assert!(
        found.iter().all(|violation| violation.message.contains("(item")),
        "{found:?}"
    );
    found.into_iter().map(|violation| violation.path).collect()
}

/// A folder for files that a test gives to xmllint; None, with a sentence, where that is not installed.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    if Command::new("xmllint").arg("--version").output().is_err() {
        println!("SKIPPED {name}: xmllint is not installed (on Debian and Ubuntu it is in libxml2-utils)");
        return None;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("it is there");
    Some(folder)
}

/// What was chosen at a path.
pub(crate) fn choice(path: String) -> wsag::terms::CompositorChoice {
    wsag::terms::CompositorChoice {
        path,
        members: vec![1, 3],
    }
}
