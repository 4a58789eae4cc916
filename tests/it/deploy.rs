//! The files in `deploy/`, as the programs that read them understand them, and the health check. Where a program is not installed, the test says so
//! and shows nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::offers::file;
use crate::support::run;
use crate::support::server::Server;

fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

/// What a program does with an input, where it is installed.
fn output_of(program: &str, arguments: &[&str], input: &str) -> Option<Output> {
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut process) = started else {
        // Not by the macro: its output is shown of failed tests only.
        let line =
            format!("\nNOT TESTED: this machine has no {program}, which would read files of deploy/.\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    };
    let mut to = process.stdin.take().expect("it was given a pipe");
    // It may have ended without reading.
    let _ = to.write_all(input.as_bytes());
    drop(to);
    Some(process.wait_with_output().expect("it can be waited for"))
}

fn assert_done(output: Option<Output>) {
    if let Some(output) = output {
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert!(output.status.success(), "{}", said.concat());
    }
}

#[test]
fn the_units_are_exposed_no_more_than_they_have_to_be() {
    let folder = with_drop_in();
    // In tenths, of at most 100.
    for (unit, most) in [
        (deployed("bespeak.service"), 20),
        (deployed("bespeak-helper.service"), 40),
        (folder.path().join("bespeak.service"), 45),
    ] {
        let path = unit.to_str().expect("a path in UTF-8");
        let threshold = format!("--threshold={most}");
        assert_done(output_of(
            "systemd-analyze",
            &["security", "--offline=true", "--no-pager", &threshold, path],
            "",
        ));
    }
}

/// The service's unit with the drop-in for jobs of this machine.
fn with_drop_in() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let below = folder.path().join("bespeak.service.d");
    fs::create_dir(&below).expect("a folder can be made");
    // The program is not installed here, and the helper of no matter.
    let unit = file("deploy/bespeak.service").replace("/usr/local/bin/bespeak", "/bin/true");
    let unit = unit.replace(" bespeak-helper.socket", "");
    fs::write(folder.path().join("bespeak.service"), unit).expect("it can be written");
    fs::copy(deployed("local-jobs.conf"), below.join("local-jobs.conf")).expect("it can be copied");
    folder
}

#[test]
fn the_drop_in_for_jobs_of_this_machine_is_understood() {
    let folder = with_drop_in();
    let path = folder.path().join("bespeak.service");
    let path = path.to_str().expect("a path in UTF-8");
    if let Some(verified) = output_of("systemd-analyze", &["verify", path], "") {
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(
            !said.contains("bespeak.service") && !said.contains("local-jobs.conf"),
            "{said}"
        );
    }
}

#[test]
fn the_unit_bounds_the_processes_of_the_service_with_its_jobs() {
    let unit = file("deploy/bespeak.service");
    let bound = unit.lines().find_map(|line| line.strip_prefix("TasksMax="));
    let bound: u64 = bound
        .and_then(|bound| bound.parse().ok())
        .expect("a number of tasks");
    // Several jobs of as many as one may have by default.
    let default = execution::job::limits::default_limits().processes;
    assert!(default.is_some_and(|most| bound >= 4 * most), "{bound}");
}

#[test]
fn the_balancer_understands_its_configuration_which_names_the_replicas() {
    let path = deployed("haproxy.cfg");
    let path = path.to_str().expect("a path in UTF-8");
    assert_done(output_of("haproxy", &["-c", "-f", path], ""));
    let (composed, balanced) = (file("docker-compose.yml"), file("deploy/haproxy.cfg"));
    for replica in ["bespeak-1", "bespeak-2"] {
        assert!(
            composed.contains(&format!("\n  {replica}:\n    <<: *replica\n")),
            "{replica}"
        );
        assert!(
            balanced.contains(&format!(" {replica}:8080 send-proxy-v2\n")),
            "{replica}"
        );
    }
    // The replicas believe the address that the balancer has.
    let address = composed
        .split_once("ipv4_address: ")
        .and_then(|(_, rest)| rest.lines().next())
        .expect("an address of the balancer");
    let trusted = format!("trusted = [\"{address}\"]");
    assert!(file("deploy/compose.toml").contains(&trusted), "{trusted}");
}

#[test]
fn a_primary_of_the_database_can_renew_its_lease_in_time_and_is_replaced_in_time() {
    let member = file("deploy/patroni.yml");
    let seconds = |name: &str| -> u32 {
        let value = member.lines().find_map(|line| line.trim().strip_prefix(name));
        let value = value.and_then(|value| value.strip_prefix(": "));
        value
            .and_then(|value| value.parse().ok())
            .expect("a number of seconds")
    };
    let ttl = seconds("ttl");
    assert!(seconds("loop_wait") + 2 * seconds("retry_timeout") <= ttl);
    // Patroni takes no less, and decisions are to go on within 25 seconds.
    assert_eq!(ttl, 20);
    assert!(member.contains("\n    synchronous_mode: true\n"));
}

#[test]
fn alerts_fire_when_they_should() {
    for (verb, name) in [("check", "alerts.yml"), ("test", "alerts.test.yml")] {
        let path = deployed(name);
        let path = path.to_str().expect("a path in UTF-8");
        assert_done(output_of("promtool", &[verb, "rules", path], ""));
    }
}

#[test]
fn prometheus_takes_the_metrics_and_alerts_name_only_those() {
    let server = Server::local();
    let text = run(async { server.client().get("/metrics").await.body });
    assert_done(output_of("promtool", &["check", "metrics"], &text));
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let families: BTreeSet<&str> = families.filter_map(|line| line.split(' ').next()).collect();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let alerts = file("deploy/alerts.yml");
    let words: BTreeSet<&str> = alerts.split(|c| !is_part(c)).collect();
    let named = words
        .iter()
        .filter(|word| word.starts_with("bespeak_") || word.starts_with("process_"));
    let mut many = 0;
    for name in named {
        let parts = ["_bucket", "_count", ""];
        let stem = parts
            .iter()
            .find_map(|part| name.strip_suffix(part))
            .unwrap_or(name);
        // Only a domain with peers has that one.
        assert!(
            families.contains(stem) || stem == "bespeak_peer_not_asked",
            "{name}"
        );
        many += 1;
    }
    assert!(many > 15, "{many}");
}

#[test]
fn a_service_is_healthy_while_it_is_ready() {
    let mut server = Server::local();
    let address = server.address().to_string();
    let asked = server.run(&["health", "--listen", &address]);
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    let said = String::from_utf8_lossy(&asked.stdout);
    assert!(said.starts_with("ready\nrole: leader\n"), "{said}");
    // By another address of this machine than it listens on.
    let everywhere = format!("0.0.0.0:{}", server.address().port());
    assert_eq!(
        server.run(&["health", "--listen", &everywhere]).status.code(),
        Some(0)
    );
    server.stop();
    let asked = server.run(&["health", "--listen", &address]);
    assert_eq!(asked.status.code(), Some(1), "{asked:?}");
    assert!(
        String::from_utf8_lossy(&asked.stderr).contains("does not answer"),
        "{asked:?}"
    );
}
