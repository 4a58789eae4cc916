//! The sessions in the README and on the pages for operators and about negotiation print the output that they show: each command is
//! run, and its output compared.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tempfile::TempDir;

use crate::support::offers::{file, now};
use crate::support::poll_until;
use crate::support::server::Server;

/// How long a reader waits at most until a command prints the output of its page.
const DEADLINE: Duration = Duration::from_mins(1);

/// A command of a session and its output.
#[derive(Debug, Default)]
struct SessionStep {
    command: String,
    output: String,
}

/// The pages whose sessions need nothing but a service as it comes.
const PAGES: [&str; 2] = ["README.md", "docs/tutorials/negotiation.md"];

#[test]
fn the_readme_is_short_and_its_links_lead_to_files() {
    let readme = file("README.md");
    assert!(readme.len() <= 8_000, "it has {} bytes", readme.len());
    let links = readme.split("](").skip(1);
    for link in links.filter_map(|rest| rest.split([')', '#']).next()) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(link);
        assert!(
            link.starts_with("https://") || path.exists(),
            "{link} leads nowhere"
        );
    }
}

#[test]
fn the_readme_has_no_command_that_is_not_tried() {
    let readme = file("README.md");
    // Every other part stands between fences.
    let blocks = readme.split("```").skip(1).step_by(2);
    let commands: Vec<_> = blocks
        .filter(|block| !block.starts_with("console\n"))
        .flat_map(str::lines)
        .filter_map(|line| line.split('#').next())
        .map(str::trim)
        .filter(|command| !command.is_empty())
        .collect();
    // The service of the sessions is started as by the first one, and the second one runs this test.
    assert_eq!(commands, ["cargo run --release -- serve", "./scripts/test"]);
}

#[test]
fn the_sessions_of_the_readme_print_what_they_say() {
    assert_sessions();
}

#[test]
fn they_print_it_on_a_machine_of_one_core_too() {
    // Of this thread, and so of each process that it starts.
    let mine = sched_getaffinity(None).expect("the system says where it may run");
    let first = (0..CpuSet::MAX_CPU).find(|core| mine.is_set(*core));
    let mut one = CpuSet::new();
    one.set(first.expect("it runs somewhere"));
    sched_setaffinity(None, &one).expect("it may run on less than it does");
    assert_sessions();
}

/// Goes through all sessions of the pages, each with a service of its own.
fn assert_sessions() {
    wait_past_midnight();
    for page in PAGES {
        // No configuration: the README starts the service as it comes.
        let server = Server::configured(None, "");
        let folder = place(&server);
        let address = format!("http://{}", server.address());
        go_through(&file(page), Shell::start(&folder, &server), |command| {
            command.replace("http://127.0.0.1:8080", &address)
        });
        server.assert_verified();
    }
}

#[test]
fn every_document_of_a_negotiation_has_its_place_in_the_session() {
    let page = file("docs/tutorials/negotiation.md");
    let documents = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/negotiation"));
    for document in documents.expect("the documents of a negotiation").flatten() {
        let name = document.file_name();
        let name = name.to_str().expect("a name of ours");
        assert!(page.contains(name), "the page does without {name}");
    }
}

#[test]
fn the_sessions_of_the_page_for_operators_print_what_they_say() {
    let server = Server::local();
    let folder = place(&server);
    for name in ["bespeak", "prometheus"] {
        fs::create_dir_all(folder.path().join("etc").join(name)).expect("a folder can be made");
    }
    fs::copy(
        folder.path().join("bespeak-data/../bespeak.toml"),
        folder.path().join("etc/bespeak/bespeak.toml"),
    )
    .expect("the service has a configuration");
    let (address, etc) = (
        server.address().to_string(),
        folder.path().join("etc/").display().to_string(),
    );
    let mut shell = Shell::start(&folder, &server);
    // Where the service listens is not told to its clients.
    shell.run(&format!(
        "export BESPEAK_LISTEN={address} BESPEAK_DATA_DIR=$PWD/bespeak-data"
    ));
    let here = |command: &str| command.replace("127.0.0.1:8080", &address).replace("/etc/", &etc);
    go_through(&file("docs/reference/operating.md"), shell, here);
    server.assert_verified();
}

/// Runs the sessions of a page, whose commands are for another place than `here`.
fn go_through(page: &str, mut shell: Shell, here: impl Fn(&str) -> String) {
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    for step in steps(page) {
        let mut command = here(&step.command);
        for (theirs, ours) in &ids {
            command = command.replace(theirs, ours);
        }
        // A command that only looks may look again: the reader takes a moment, too.
        let looks = ["/agreements/", "bespeak show", "bespeak output"]
            .iter()
            .any(|part| command.contains(part))
            && !command.contains("terminate");
        let mut printed = String::new();
        let as_written = poll_until(if looks { DEADLINE } else { Duration::ZERO }, || {
            printed = shell.run(&command);
            is_as_written(&printed, &step.output)
        });
        assert!(
            as_written,
            "$ {}\nprints\n{printed}\nand the page says\n{}",
            step.command, step.output
        );
        ids.extend(uuids(&step.output).into_iter().zip(uuids(&printed)));
    }
}

/// Waits for the next day where this one is nearly over: the pages say tomorrow twice, and mean one day.
fn wait_past_midnight() {
    const DAY: i64 = 24 * 3_600;
    const SESSIONS: i64 = 2 * 60;
    let early = poll_until(Duration::from_mins(1), || now().rem_euclid(DAY) < DAY - SESSIONS);
    assert!(early, "no day takes so long to end");
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
    // No progress meter: the output is read by no person.
    std::fs::write(folder.path().join(".curlrc"), "silent\nshow-error\n").expect("a file can be written");
    folder
}

/// The reader's shell, which remembers variables that were set in it.
struct Shell {
    process: Child,
    commands: ChildStdin,
    lines: Receiver<String>,
}

impl Shell {
    fn start(folder: &TempDir, server: &Server) -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut process = Command::new("bash")
            .current_dir(folder)
            .env("HOME", folder.path())
            .env(
                "PATH",
                format!("{}:{path}", folder.path().join("target/release").display()),
            )
            .env("BESPEAK_SERVER", format!("http://{}", server.address()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash can be run");
        let mut commands = process.stdin.take().expect("it was given a pipe");
        // Both outputs as they come.
        writeln!(commands, "exec 2>&1").expect("bash reads");
        let output = process.stdout.take().expect("it was given a pipe");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            process,
            commands,
            lines,
        }
    }

    /// The output of a command.
    fn run(&mut self, command: &str) -> String {
        const END: &str = "--- the command has ended";
        writeln!(self.commands, "{{\n{command}\n}} </dev/null; echo; echo '{END}'").expect("bash reads");
        let mut printed = String::new();
        loop {
            let line = self.lines.recv_timeout(DEADLINE);
            let line = line.unwrap_or_else(|why| panic!("$ {command}\n{printed}\nand then {why}"));
            if line == END {
                return printed;
            }
            printed += &line;
            printed.push('\n');
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // It may have ended with a command of its own.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The commands of all `console` blocks; one that goes on is indented.
fn steps(page: &str) -> Vec<SessionStep> {
    let mut steps: Vec<SessionStep> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let mut goes_on = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(SessionStep {
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

/// Whether an output is the one on the page, where `…` stands for anything.
fn is_as_written(printed: &str, written: &str) -> bool {
    let (printed, written) = (shape(printed), shape(written));
    let mut parts = written.split('…');
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        let found = if parts.peek().is_none() {
            return rest.ends_with(part);
        } else {
            rest.find(part)
        };
        let Some(at) = found else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

#[test]
fn an_ellipsis_stands_for_anything_and_everything_else_for_itself() {
    for (printed, written, is) in [
        ("a 12 b", "a 7 b", true),
        ("a b", "a c", false),
        ("a b c", "a…c", true),
        ("a b c d", "a…c", false),
        ("b c", "a…c", false),
        ("a b c d e", "a…c…e", true),
        ("a e", "a…c…e", false),
        ("a", "…", true),
        (
            "date: Sun, 29 Feb 2032 23:59:59 GMT",
            "date: Sat, 21 Nov 2026 04:29:09 GMT",
            true,
        ),
        ("date: tomorrow", "date: Sat, 21 Nov 2026 04:29:09 GMT", false),
    ] {
        assert_eq!(is_as_written(printed, written), is, "{printed:?}, {written:?}");
    }
}

/// An output without the parts that are different every time: ids, dates, times, numbers.
fn shape(output: &str) -> String {
    let mut shape: String = output.lines().map(without_date).collect();
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

/// A line of an output. In the header that has a date, days and months have names.
fn without_date(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let is_date = |text: &&str| jiff::fmt::rfc2822::parse(text).is_ok();
    match line.strip_prefix("date: ").filter(is_date) {
        Some(_) => "date: DATE\n".to_owned(),
        None => format!("{line}\n"),
    }
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
