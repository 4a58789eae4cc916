//! A service without any rights on its cluster, beside a helper that has them and carries out only the commands that it knows.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::geteuid;
use serde_json::{Value, json};
use uuid::{NoContext, Timestamp, Uuid};

use super::helper::GAMES;
use crate::support::offers::file;
use crate::support::slurm::Cluster;
use crate::support::{output_of, poll_until};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_bespeak");
/// How long an answer of the helper may take.
const DEADLINE: Duration = Duration::from_mins(3);

/// Says that a test is about users that only root can be.
pub(super) fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        eprintln!("not tested: only root can act for another user");
    }
    is_root
}

/// A helper on a cluster, with no more rights than its unit file leaves it. It ends with this value.
pub(super) struct Helper {
    process: Child,
    pub(super) socket: PathBuf,
    pub(super) configuration: PathBuf,
}

impl Helper {
    /// Starts one with this configuration.
    pub(super) fn start(cluster: &Cluster, text: &str) -> Self {
        let folder = cluster.folder().join("helper");
        fs::create_dir(&folder).unwrap();
        fs::create_dir(cluster.folder().join("work")).unwrap();
        let configuration = folder.join("bespeak.toml");
        fs::write(&configuration, text).unwrap();
        fs::set_permissions(&configuration, fs::Permissions::from_mode(0o644)).unwrap();
        let socket = folder.join("sock");
        let process = Self::command(&configuration)
            .arg("--listen")
            .arg(&socket)
            .spawn()
            .unwrap();
        let answers = || UnixStream::connect(&socket).is_ok();
        assert!(poll_until(DEADLINE, answers), "the helper does not listen");
        Self {
            process,
            socket,
            configuration,
        }
    }

    fn command(configuration: &Path) -> Command {
        let unit = file("deploy/bespeak-helper.service");
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
        let kept = line.expect("the unit bounds its capabilities").split(' ');
        let kept = kept.map(|name| format!(",+{}", name.trim_start_matches("CAP_").to_lowercase()));
        let mut command = Command::new("setpriv");
        command
            .arg(format!("--bounding-set=-all{}", kept.collect::<String>()))
            .args([EXECUTABLE, "cluster", "helper", "--user", "games", "--config"])
            .arg(configuration)
            // Its files there go with the cluster.
            .env("RUNTIME_DIRECTORY", configuration.parent().unwrap())
            .stdin(Stdio::null());
        command
    }

    /// Its answer to some bytes.
    fn answer_to(&self, bytes: &[u8]) -> Value {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        // It may be turned away before all of it is read.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        serde_json::from_slice(&answer).expect("it answers with JSON")
    }

    fn ask(&self, operation: &Value) -> Value {
        self.answer_to(format!("{}\n", json!({ "resource": "cluster", "operation": operation })).as_bytes())
    }

    /// Its words for not doing something.
    fn refusal(&self, operation: &Value) -> String {
        let answer = self.ask(operation);
        let words = answer["forbidden"].as_str();
        words
            .unwrap_or_else(|| panic!("{operation}: {answer}"))
            .to_owned()
    }

    /// The output of `bespeak cluster check`, as another user, and where it waits `wait` seconds for its job.
    pub(super) fn checked_by(&self, user: u32, wait: u32) -> String {
        // The folder for temporary files may be another user's.
        let scratch = self.configuration.with_file_name("scratch");
        fs::create_dir_all(&scratch).unwrap();
        fs::set_permissions(&scratch, fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new("setpriv");
        command
            .env("TMPDIR", scratch)
            .args([format!("--reuid={user}"), format!("--regid={user}")])
            .args(["--clear-groups", EXECUTABLE, "cluster", "check"])
            .args([&format!("--wait={wait}"), "--config"])
            .arg(&self.configuration);
        let output = output_of(&mut command, DEADLINE);
        assert!(!output.stdout.is_empty(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The configuration of the service and of the helper.
pub(super) fn text(cluster: &Cluster) -> String {
    let (folder, user) = (cluster.folder().display(), Cluster::user());
    // Its files are its user's alone to read.
    let program = cluster.folder().join("private");
    super::put_program(
        &program,
        "#!/bin/sh\numask 077\nid -un\necho \"$1\" >result\nrm -f until; sleep 1\n",
    );
    format!(
        "[[resource]]\nname = \"cluster\"\nkind = \"slurm\"\n[resource.slurm]\npartition = \"batch\"\n\
         node_list = \"n[1-3]\"\nconfiguration = \"{folder}/slurm.conf\"\nwork_dir = \"{folder}/work\"\n\
         helper = \"{folder}/helper/sock\"\nuser = \"games\"\ncall_seconds = 40\nturnaround_seconds = 1\n\
         [[resource.slurm.party]]\nname = \"operator\"\nuser = \"{user}\"\n\
         [[resource.slurm.party]]\nname = \"root\"\nuser = \"root\"\n\
         [[application]]\nname = \"private\"\nprogram = \"{}\"\n\
         [[application.argument]]\nname = \"word\"\ntype = \"choice\"\nvalues = [\"kept\", \"lost\"]\n",
        program.display(),
    )
}

/// A job to submit for a party: a program, and its arguments.
fn submission(id: &str, party: &str, program: &Path, arguments: &[&str]) -> Value {
    json!({"submit": {
        "place": place(id, party), "application": "private", "program": program, "arguments": arguments, "nodes": 1,
        "slot_end": 4_000_000_000_000_000_i64, "pieces": null, "save": null,
    }})
}

fn place(id: &str, party: &str) -> Value {
    json!({ "id": id, "common": id, "party": party })
}

/// The requests that the helper itself refuses, with its words. The ids are those of a job's folder, of a link in place of one,
/// and of another user's job.
fn forbidden([own, led, job]: [&str; 3], program: &Path) -> Vec<(Value, &'static str)> {
    let reserve = |id: &str, nodes: &[&str], users: &str| json!({"reserve": {"id": id, "start": null, "end": 4_000_000_000_i64, "nodes": nodes, "users": users, "party": "", "application": "", "flags": []}});
    let (user, up) = (Cluster::user(), format!("../{own}"));
    let mut nameless = submission(own, "operator", program, &["kept"]);
    nameless["submit"]["application"] = json!("");
    vec![
        (nameless, "not in the catalogue"),
        (
            json!({"release": {"id": "theirs"}}),
            "expected the id of an agreement",
        ),
        (
            json!({"release": {"id": "../theirs"}}),
            "expected the id of an agreement",
        ),
        (json!({"run": {"program": "/bin/sh"}}), "unknown variant"),
        (json!({"release": {"id": own, "name": "theirs"}}), "unknown field"),
        (reserve(own, &["n4"], &user), "\"n4\" is not in node_list"),
        (reserve(own, &["n1 Flags=MAINT"], &user), "is not in node_list"),
        (reserve(own, &[], &user), "nodes have to be named"),
        (reserve(own, &["n1"], "bin"), "\"bin\" is the user of no party"),
        (reserve(own, &["n1"], "root"), "nothing is done as root"),
        (
            json!({"cancel": {"jobs": [job]}}),
            "is none of the resource cluster",
        ),
        (
            json!({"cancel": {"jobs": ["--user=root"]}}),
            "is no number of a job",
        ),
        (
            json!({"limit": {"job": job, "minutes": 1}}),
            "is none of the resource cluster",
        ),
        (
            submission(own, "operator", Path::new("/bin/sh"), &[]),
            "not in the catalogue",
        ),
        (
            submission(own, "operator", program, &["other"]),
            "takes these arguments",
        ),
        (
            submission(own, "root", program, &["kept"]),
            "nothing is done as root",
        ),
        (
            submission(&up, "operator", program, &["kept"]),
            "expected the id of an agreement",
        ),
        (
            json!({"open": {"place": place(own, "operator"), "item": {"file": "../started"}}}),
            "no name of a file",
        ),
        (
            json!({"create": {"place": place(led, "operator"), "until": 1, "save": null, "inputs": ["a"]}}),
            "has to come",
        ),
        (json!({"remove": {"id": led}}), "is no folder"),
        (json!({"pack": {"id": led}}), "is no folder"),
        (json!({"pack": {"id": up}}), "expected the id of an agreement"),
        (json!({"clear": {"path": "/"}}), "expected unit"),
    ]
}

/// The requests that the system refuses on the way.
fn led_astray([own, led, _]: [&str; 3], program: &Path) -> Vec<(Value, &'static str)> {
    vec![
        (submission(led, "operator", program, &["kept"]), "Not a directory"),
        (
            json!({"open": {"place": place(led, "operator"), "item": {"file": "passwd"}}}),
            "Not a directory",
        ),
        (
            json!({"open": {"place": place(own, "operator"), "item": {"file": "link"}}}),
            "symbolic links",
        ),
        (
            json!({"open": {"place": place(own, "operator"), "item": "stderr"}}),
            "no file of the job's user",
        ),
        (
            json!({"open": {"place": place(own, "other"), "item": "stdout"}}),
            "no folder of the job's user",
        ),
        (
            json!({"put": {"place": place(led, "operator"), "record": {"until": 1}}}),
            "Not a directory",
        ),
    ]
}

fn refuses_what_is_no_request(helper: &Helper) {
    for (bytes, words) in [
        (&b"\xff\x00\x01 no JSON\n"[..], "cannot be read"),
        (
            b"{\"resource\":\"other\",\"operation\":\"touch\"}\n",
            "no cluster \"other\"",
        ),
        (
            b"{\"resource\":\"cluster\",\"operation\":\"touch\"}\n{}\n",
            "cannot be read",
        ),
        (&vec![b' '; 3 << 20], "a line of at most"),
    ] {
        let answer = helper.answer_to(bytes);
        assert!(
            answer["forbidden"]
                .as_str()
                .is_some_and(|said| said.contains(words)),
            "{answer}"
        );
    }
}

/// Files that only mattered while a job ran, and one that was to become a folder and has not.
fn removes_what_is_over(helper: &Helper, work_dir: &Path, job: &str) {
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    let before = names(work_dir);
    let old = Uuid::new_v7(Timestamp::from_unix(NoContext, 1_000_000_000, 0));
    let (old, new) = (format!(".{old}"), format!(".{}", Uuid::now_v7()));
    for draft in [&old, &new] {
        fs::create_dir_all(work_dir.join(draft).join("work")).unwrap();
        chown(work_dir.join(draft), Some(GAMES), Some(GAMES)).unwrap();
        fs::set_permissions(work_dir.join(draft), fs::Permissions::from_mode(0o000)).unwrap();
    }
    assert_eq!(helper.ask(&json!("clear"))["done"], "");
    fs::remove_dir_all(work_dir.join(new)).unwrap();
    assert_eq!(names(work_dir), before, "only old files are removed");
    assert_eq!(helper.ask(&json!({"pack": {"id": job}}))["done"], "");
    let left = ["claim", "stderr", "work"].map(str::to_owned);
    assert_eq!(names(&work_dir.join(job)), left.into());
    fs::remove_file(work_dir.join(job).join("stderr")).unwrap();
    fs::remove_file(work_dir.join(job).join("work/link")).unwrap();
    assert_eq!(helper.ask(&json!({"pack": {"id": job}}))["done"], "");
    assert!(!work_dir.join(job).exists());
}

/// Where others could put a file beside the folders, nothing is done; the same with a configuration that others can write.
fn nothing_is_done_where_others_can_write(helper: &Helper, work_dir: &Path) {
    fs::set_permissions(work_dir, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(
        helper
            .refusal(&json!("touch"))
            .contains("only that user may write there")
    );
    fs::set_permissions(&helper.configuration, fs::Permissions::from_mode(0o666)).unwrap();
    let refused = output_of(&mut Helper::command(&helper.configuration), DEADLINE);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(2) && said.contains("no other user may write to it"),
        "{said}"
    );
}

#[test]
fn a_helper_does_nothing_but_what_its_own_configuration_allows() {
    if !is_root() {
        return;
    }
    let cluster = Cluster::start();
    let helper = Helper::start(&cluster, &text(&cluster));
    let work_dir = cluster.folder().join("work");
    let batch = super::service::script(&cluster, "sleep 600");
    let job = cluster.run(
        "sbatch",
        &["--parsable", "-t5", "-o/dev/null", "--chdir=/", &batch],
    );
    let theirs = [
        "create",
        "reservation",
        "ReservationName=theirs",
        "StartTime=now+3600",
    ];
    cluster.run(
        "scontrol",
        &[&theirs[..], &["Duration=9", "Nodes=n1", "Users=root"]].concat(),
    );
    // In place of a job's folder, of another user, one that leads away.
    let (own, led) = (Uuid::now_v7().to_string(), Uuid::now_v7().to_string());
    let made = helper.ask(&json!({"create": {
        "place": place(&own, "operator"), "until": 4_000_000_000_i64, "save": null, "inputs": [],
    }}));
    assert_eq!(made["done"], "yes", "{made}");
    symlink("/etc", work_dir.join(&led)).unwrap();
    let secret = cluster.folder().join("secret");
    fs::write(&secret, "root's").unwrap();
    symlink(&secret, work_dir.join(&own).join("work/link")).unwrap();
    fs::hard_link(&secret, work_dir.join(&own).join("stderr")).unwrap();
    let state = || {
        let mut names: Vec<_> = fs::read_dir(&work_dir)
            .unwrap()
            .map(|dir| dir.unwrap().file_name())
            .collect();
        names.sort();
        let held = cluster.run("scontrol", &["-o", "show", "reservation"]);
        (
            names,
            held,
            cluster.jobs().len(),
            cluster.run("squeue", &["-h", "-o", "%i %l"]),
        )
    };
    let before = state();

    let ids = [own.as_str(), led.as_str(), job.as_str()];
    let program = cluster.folder().join("private");
    for (operation, words) in forbidden(ids, &program) {
        let said = helper.refusal(&operation);
        assert!(said.contains(words), "{operation}: {said}");
    }
    for (operation, words) in led_astray(ids, &program) {
        let answer = helper.ask(&operation);
        let said = answer["system"][1].as_str().unwrap_or_default();
        assert!(said.contains(words), "{operation}: {answer}");
    }
    refuses_what_is_no_request(&helper);
    assert_eq!(state(), before);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
    removes_what_is_over(&helper, &work_dir, &own);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
    nothing_is_done_where_others_can_write(&helper, &work_dir);
}

#[test]
fn the_unit_files_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "bespeak.service",
        "bespeak-helper.socket",
        "bespeak-helper.service",
    ];
    for name in names {
        let unit = file(&format!("deploy/{name}"));
        // The programs that they start are not installed here.
        fs::write(
            folder.path().join(name),
            unit.replace("/usr/local/bin/bespeak", "/bin/true"),
        )
        .unwrap();
    }
    let service = file("deploy/bespeak.service");
    for line in ["User=bespeak", "NoNewPrivileges=yes", "CapabilityBoundingSet="] {
        assert!(service.lines().any(|each| each == line), "{line}");
    }
    let paths = names.map(|name| folder.path().join(name));
    let mut verify = Command::new("systemd-analyze");
    verify.arg("verify").args(&paths).stdin(Stdio::null());
    let Ok(verified) = verify.output() else {
        eprintln!("not verified: this machine has no systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    let ours = |line: &&str| names.iter().any(|name| line.contains(name));
    let wrong: Vec<&str> = said.lines().filter(ours).collect();
    assert!(wrong.is_empty(), "{said}");
}
