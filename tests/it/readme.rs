//! The sessions in the README print what they say: each command is run, and its output compared.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::offers::file;
use crate::support::server::Server;
use crate::support::{output_of, poll_until};

/// What a reader waits for at most until a command prints what the README says.
const DEADLINE: Duration = Duration::from_secs(30);

/// A command of a session and what it prints.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) output: String,
}

#[test]
fn the_sessions_of_the_readme_print_what_they_say() {
    // No configuration: the README starts the service as it comes.
    let server = Server::configured(None, "");
    let folder = place(&server);
    let steps = steps(&file("README.md"));
    assert!(!steps.is_empty(), "the README has no session");
    let mut variables = String::new();
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    for step in steps {
        let mut command = step
            .command
            .replace("http://127.0.0.1:8080", &format!("http://{}", server.address()));
        for (theirs, ours) in &ids {
            command = command.replace(theirs, ours);
        }
        if command.starts_with("KEY=") {
            variables += &format!("{command}\n");
            continue;
        }
        // A command that only looks may look again: the README's reader takes a moment, too.
        let looks = ["/agreements/", "bespeak show", "bespeak output"]
            .iter()
            .any(|part| command.contains(part));
        let mut printed = String::new();
        let as_written = poll_until(if looks { DEADLINE } else { Duration::ZERO }, || {
            printed = shell(&folder, &server, &format!("{variables}{command}"));
            shape(&printed) == shape(&step.output)
        });
        assert!(
            as_written,
            "$ {}\nprints\n{printed}\nand the README says\n{}",
            step.command, step.output
        );
        ids.extend(uuids(&step.output).into_iter().zip(uuids(&printed)));
    }
}

/// A folder that looks to the commands as the repository does after `cargo build --release`.
fn place(server: &Server) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let link = |from: &Path, to: &str| symlink(from, folder.path().join(to)).expect("a link can be made");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    link(&repository.join("examples"), "examples");
    link(&repository.join("LICENSE"), "LICENSE");
    link(&server.data_dir(), "bespeak-data");
    std::fs::create_dir_all(folder.path().join("target/release")).expect("a folder can be made");
    link(Path::new(env!("CARGO_BIN_EXE_bespeak")), "target/release/bespeak");
    // No progress meter: nobody watches.
    std::fs::write(folder.path().join(".curlrc"), "silent\nshow-error\n").expect("a file can be written");
    folder
}

/// What a command prints, both outputs as they come.
fn shell(folder: &TempDir, server: &Server, script: &str) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("exec 2>&1\n{script}")])
        .current_dir(folder)
        .env("HOME", folder.path())
        .env(
            "PATH",
            format!("{}:{path}", folder.path().join("target/release").display()),
        )
        .env("BESPEAK_SERVER", format!("http://{}", server.address()));
    String::from_utf8_lossy(&output_of(&mut command, DEADLINE).stdout).into_owned()
}

/// The commands of all `console` blocks; one that goes on is indented.
pub(crate) fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let mut goes_on = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step {
                    command: command.to_owned(),
                    output: String::new(),
                });
                goes_on = command.trim_end().ends_with(['|', '\\']);
            } else if let Some(step) = steps.last_mut() {
                let part = if goes_on {
                    &mut step.command
                } else {
                    &mut step.output
                };
                *part += "\n";
                *part += line;
                goes_on = goes_on && line.trim_end().ends_with(['|', '\\']);
            }
        }
    }
    steps
}

/// An output without what is different every time: ids, times, numbers.
fn shape(output: &str) -> String {
    let mut shape = output.replace('\r', "");
    for id in uuids(output) {
        shape = shape.replace(&id, "ID");
    }
    let mut without_numbers = String::new();
    for c in shape.trim().chars() {
        match c {
            '0'..='9' if without_numbers.ends_with('0') => {}
            '0'..='9' => without_numbers.push('0'),
            _ => without_numbers.push(c),
        }
    }
    without_numbers
}

/// The ids of agreements that stand in an output, in their order, each once.
fn uuids(output: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in output.split(|c: char| !(c.is_ascii_hexdigit() || c == '-')) {
        if uuid::Uuid::try_parse(word).is_ok() && word.len() == 36 && !found.iter().any(|known| known == word)
        {
            found.push(word.to_owned());
        }
    }
    found
}
