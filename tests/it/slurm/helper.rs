//! Work of every kind for other users, had done by a service without rights through its helper.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::thread;

use domain::agreement::Run;
use execution::slurm::slurm_name_of_run;
use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use super::privilege::{Helper, is_root, text};
use super::put_program;
use super::service::{SOON, reserved, script, until};
use crate::support::client::Client;
use crate::support::offers::{Offer, date_time, file, now};
use crate::support::server::Server;
use crate::support::slurm::Cluster;
use crate::support::{eventually, output_of, run};

/// The number of the user that the service runs as, `games`, since Slurm 26.05 reserves nothing for `nobody`; and how a shell becomes the
/// service as that user, which may not reach the executable where it lies.
pub(super) const GAMES: u32 = 5;
const AS_GAMES: &str = "chown -R 5:60 . && cp \"$1\" service && shift && \
    exec setpriv --reuid=5 --regid=60 --clear-groups ./service \"$@\"";
/// Seconds of each of the two pieces of the work that is cut, and of the time between them. A busy machine takes some of the first
/// one until the job runs.
const PIECE: i64 = 14;
const BETWEEN: i64 = 5;
/// Nodes of the cluster: enough for all to be done at the same time.
const NODES: u32 = 6;

/// The configuration of both: work that reads a file, work that is done in pieces, and work that is run again. Their files can be
/// read by their user only, where that matters.
fn configured(cluster: &Cluster) -> String {
    let folder = cluster.folder();
    let runs = folder.join("runs");
    fs::create_dir(&runs).unwrap();
    fs::set_permissions(&runs, fs::Permissions::from_mode(0o777)).unwrap();
    let put = |name: &str, script: &str| {
        put_program(&folder.join(name), &format!("#!/bin/sh\numask 077\n{script}"));
    };
    put(
        "read",
        "id -un; stat -c '%U %a' \"$1\"; cat \"$1\" >result; rm -f until; sleep 1\n",
    );
    put(
        "cut",
        "[ \"$1\" = --resume ] && exec cat state\n\
         trap 'echo saved by piece $BESPEAK_PIECE of $BESPEAK_PIECES >state; exit 0' USR1\n\
         while :; do sleep 0.1; done\n",
    );
    put(
        "again",
        &format!(
            "echo ran >>'{0}/again'; echo told; [ $(wc -l <'{0}/again') -gt 1 ] || sleep 600\n",
            runs.display()
        ),
    );
    let template = file("templates/agreements/advance-reservation.xml");
    fs::write(folder.join("template.xml"), template).unwrap();
    let application = |name: &str| {
        let program = folder.join(name);
        format!(
            "[[application]]\nname = \"{name}\"\nprogram = \"{}\"\n",
            program.display()
        )
    };
    // Slurm refuses the jobs of one user once this file is there.
    let (programs, refuses) = (folder.join("programs"), folder.join("refuses"));
    let user = number_of(&Cluster::user());
    let sbatch = format!(
        "#!/bin/sh\n[ -e '{}' ] && case \"$*\" in *--uid={user}\\ *--test-only*)\n\
         echo 'allocation failure: Invalid account' >&2; exit 1;; esac\n\
         PATH=/usr/local/bin:/usr/bin:/bin exec sbatch \"$@\"\n",
        refuses.display()
    );
    fs::create_dir(&programs).unwrap();
    put_program(&programs.join("sbatch"), &sbatch);
    let helper = format!("programs = \"{}\"\nhelper = ", programs.display());
    let text = text(cluster)
        .replace("helper = ", &helper)
        .replace("n[1-3]", &format!("n[1-{NODES}]"))
        .replace(
            "name = \"root\"\nuser = \"root\"",
            "name = \"b\"\nuser = \"games\"",
        );
    format!(
        "{text}{}[[application.argument]]\nname = \"file\"\ntype = \"file\"\n{}\
         [application.checkpoint]\nsignal = \"USR1\"\ngrace_seconds = 2\nresume = [\"--resume\"]\n{}\
         [[template]]\nfile = \"{}/template.xml\"\non_loss = \"restart\"\n[failures]\nsettle_seconds = 1\n",
        application("read"),
        application("cut"),
        application("again"),
        folder.display(),
    )
}

/// The number of a user.
fn number_of(user: &str) -> String {
    let number = output_of(Command::new("id").args(["-u", user]), SOON).stdout;
    String::from_utf8(number).unwrap().trim().to_owned()
}

/// An offer that runs something of the catalogue on one node.
fn runs(application: &'static str, arguments: &[&str], seconds: i64) -> Offer {
    Offer {
        run: Some((
            application,
            arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        )),
        ..Offer::reserve(1, seconds)
    }
}

async fn output(client: &Client, id: Uuid, name: &str) -> String {
    client.get(&format!("/agreements/{id}/files/{name}")).await.body
}

/// The names of the jobs that Slurm has had for an agreement, without their common part.
fn jobs_of(cluster: &Cluster, id: Uuid) -> Vec<String> {
    let own = slurm_name_of_run("cluster", Run::first(id));
    let names = cluster.jobs().into_iter().map(|[_, name, _]| name);
    let mut names: Vec<String> = names
        .filter_map(|name| Some(name.strip_prefix(&own)?.to_owned()))
        .collect();
    names.sort();
    names
}

/// Has `nodes` nodes taken in the time after a first piece that begins then.
async fn taken_after(client: &Client, start: i64, nodes: u32) {
    let others = Offer::reserve(nodes, BETWEEN).within(start + PIECE, start + PIECE + BETWEEN);
    client.post("/agreements", others.xml()).await.created();
}

/// Has work on half of the nodes planned around that time.
async fn is_cut_in_two(client: &Client, start: i64) -> Uuid {
    let work = json!({
        "application": "cut", "arguments": [], "nodes": NODES / 2, "durationSeconds": 2 * PIECE,
        "window": { "start": date_time(start), "end": date_time(start + 120) },
        "preemption": { "pieces": 2, "interval": 0.25, "independent": false },
    });
    client.post_json("/agreements", &work).await.created()
}

/// The party's user works in the reservation that was handed over, until that ends, and the job with it.
async fn is_handed_and_taken_back(client: &Client, cluster: &Cluster) {
    let id = client
        .post("/agreements", Offer::reserve(1, 40).xml())
        .await
        .created();
    let name = slurm_name_of_run("cluster", Run::first(id));
    reserved(cluster, id, 1).await;
    let (user, reservation) = (
        format!("--uid={}", Cluster::user()),
        format!("--reservation={name}"),
    );
    let own = script(cluster, "sleep 600");
    cluster.run(
        "sbatch",
        &[&user, "-Jown", "-o/dev/null", "--chdir=/", &reservation, &own],
    );
    let is_running = || {
        let jobs = cluster.jobs();
        jobs.iter()
            .any(|[_, name, state]| name == "own" && state == "RUNNING")
    };
    eventually("the user's job", SOON, async || is_running().then_some(())).await;
    // The job may run a moment before the service has begun the slot.
    eventually("its name", SOON, async || {
        let shown = client.get(&format!("/agreements/{id}")).await;
        shown.body.contains(&name).then_some(())
    })
    .await;
    let ended = client
        .post_json(&format!("/agreements/{id}/terminate"), &json!({}))
        .await;
    assert!(ended.status.is_success(), "{ended:?}");
    eventually("its end", SOON, async || {
        (cluster.reservation(&name).is_none() && !is_running()).then_some(())
    })
    .await;
}

/// Work that runs for the first time.
async fn runs_once(client: &Client, cluster: &Cluster) -> Uuid {
    let offer = runs("again", &[], 30).within(now(), now() + 200);
    let id = client.post("/agreements", offer.xml()).await.created();
    let ran = cluster.folder().join("runs/again");
    eventually("it to run", SOON, async || ran.exists().then_some(())).await;
    id
}

/// Takes the power of the node away that an agreement has.
async fn loses_its_node(cluster: &mut Cluster, id: Uuid) {
    let node = reserved(cluster, id, 1).await;
    let node = node.first().expect("a node");
    cluster.cut_power(node);
    let nodename = format!("nodename={node}");
    cluster.run("scontrol", &["update", &nodename, "state=down", "reason=test"]);
}

/// The input and the output of a job belong to its user alone, and are fetched all the same.
async fn reads_an_input(client: &Client, cluster: &Cluster, server: &Server) {
    let upload = client.request(Method::PUT, "/files/grain.txt").body("grain");
    assert_eq!(client.send(upload).await.status, 201);
    let offer = runs("read", &["grain.txt"], 60);
    let id = client.post("/agreements", offer.xml()).await.created();
    until(client, cluster, id, "Complete").await;
    let user = Cluster::user();
    assert_eq!(
        output(client, id, "stdout").await,
        format!("{user}\n{user} 400\n")
    );
    assert_eq!(output(client, id, "result").await, "grain");
    let shared = cluster.folder().join(format!("work/{id}"));
    let left = |name: &str| fs::metadata(shared.join("work").join(name)).unwrap();
    assert_eq!(left("result").mode() & 0o077, 0);
    let removed = server.run(&["output", &id.to_string(), "--remove"]);
    assert!(removed.status.success() && !shared.exists(), "{removed:?}");
}

/// An error names a user with jobs that Slurm refuses, and a helper that refuses, or is away.
fn is_named(helper: Helper, cluster: &Cluster, server: &Server) {
    fs::write(cluster.folder().join("refuses"), "").unwrap();
    let said = helper.checked_by(GAMES, 0);
    let refused = format!("as {} with account the default: Invalid account", Cluster::user());
    assert!(said.contains(&refused), "{said}");
    fs::set_permissions(&helper.socket, fs::Permissions::from_mode(0o666)).unwrap();
    let said = helper.checked_by(2, 0);
    assert!(said.contains("the user 2 may not speak to the helper"), "{said}");
    let (socket, configuration) = (helper.socket.clone(), helper.configuration.clone());
    drop(helper);
    let check = server.run(&["cluster", "check", "--config", configuration.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    let away = format!("it does not answer: {}", socket.display());
    assert!(said.contains(&away), "{said}");
}

/// How many folders of jobs there are.
fn folders(work_dir: &Path) -> usize {
    fs::read_dir(work_dir).unwrap().count()
}

#[test]
fn a_service_without_rights_has_work_of_every_kind_done_as_other_users_and_fetches_what_only_these_can_read()
{
    if !is_root() {
        return;
    }
    run(async {
        let mut cluster = Cluster::with_missing(NODES as usize, 0);
        let text = configured(&cluster);
        let helper = Helper::start(&cluster, &text);
        let (server, said) = thread::scope(|scope| {
            let checked = scope.spawn(|| helper.checked_by(GAMES, 60));
            (Server::through(AS_GAMES, &text), checked.join().unwrap())
        });
        let good = said.lines().filter(|line| line.contains(" good "));
        assert_eq!(good.count() + 1, said.lines().count(), "{said}");
        assert!(said.contains("  job "), "{said}");
        let process = format!("/proc/{}", server.process());
        assert_eq!(fs::metadata(process).unwrap().uid(), GAMES);
        let client = server.client();
        eventually("a cluster that has passed its checks", SOON, async || {
            let ready = client.get("/readyz").await;
            (ready.body.starts_with("ready\n") && !ready.body.contains("nothing new is promised"))
                .then_some(())
        })
        .await;
        let work_dir = cluster.folder().join("work");
        assert_eq!(folders(&work_dir), 0, "nothing is left of the check");

        let start = now() + 6;
        taken_after(&client, start, NODES - 2).await;
        let (cut, again, ()) = tokio::join!(
            is_cut_in_two(&client, start),
            runs_once(&client, &cluster),
            is_handed_and_taken_back(&client, &cluster),
        );
        loses_its_node(&mut cluster, again).await;
        reads_an_input(&client, &cluster, &server).await;

        let over = until(&client, &cluster, cut, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        assert_eq!(output(&client, cut, "stdout").await, "saved by piece 1 of 2\n");
        assert_eq!(jobs_of(&cluster, cut), ["", ".2"], "one job each");
        let over = until(&client, &cluster, again, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        assert_eq!(
            output(&client, again, "stdout").await,
            "told\n",
            "of a folder of its own"
        );
        assert_eq!(jobs_of(&cluster, again), ["", ".1.1"]);
        for id in [cut, again] {
            let removed = server.run(&["output", &id.to_string(), "--remove"]);
            assert!(removed.status.success(), "{removed:?}");
        }
        assert_eq!(
            folders(&work_dir),
            0,
            "the folders of pieces and of lost work, too"
        );
        server.assert_verified();
        is_named(helper, &cluster, &server);
    });
}
