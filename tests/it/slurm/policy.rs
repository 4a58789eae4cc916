//! The demands of a site's policy on jobs, and the offers of parties with jobs that the cluster would refuse.

use domain::agreement::Run;
use execution::slurm::slurm_name_of_run;
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::service::{SOON, passes_checks, reserved, script, serve_keys, until};
use crate::support::client::Client;
use crate::support::negotiation::{SentOffer, negotiate, open};
use crate::support::offers::{Offer, date_time, now};
use crate::support::server::Server;
use crate::support::slurm::{Cluster, NODES};
use crate::support::{eventually, run};

/// Seconds of a job of a size that the test asks for at last only: verdicts are remembered.
const UNJUDGED: i64 = 6_000;
/// Slurm's message about a quality of service that an association does not have.
const INVALID: &str = "cluster would refuse the job: Invalid qos specification";

/// Two accounts of the same user: `phys` has the qualities of service `gold` and, for a minute, `brief`; `poor` has none of them.
fn accounted() -> Cluster {
    let cluster = Cluster::accounted(&[
        "add cluster test",
        "add qos gold",
        "add qos brief MaxWall=1 Flags=DenyOnLimit",
        "add account phys",
        "add account poor",
    ]);
    let user = Cluster::user();
    for (account, qos) in [("phys", "normal,gold,brief"), ("poor", "normal")] {
        let [user, account, qos] = [user.clone(), format!("account={account}"), format!("qos={qos}")];
        cluster.run("sacctmgr", &["-i", "add", "user", &user, &account, &qos]);
    }
    cluster
}

/// A service in which the party `operator` has the account `phys`, `poor` the other one, and `brief` a quality of service of its
/// own.
fn serve(cluster: &Cluster) -> Server {
    let user = Cluster::user();
    let keys = format!(
        "account = \"phys\"\nqos = \"gold\"\nconstraint = \"fast\"\nlicenses = \"solver:1\"\n\
         reservation_options = [\"Features=fast\", \"Licenses=solver:1\"]\n\
         [[resource.slurm.application]]\nname = \"sleep\"\nsbatch_options = [\"--nice=7\"]\n\
         [[resource.slurm.party]]\nname = \"poor\"\nuser = \"{user}\"\naccount = \"poor\"\n\
         [[resource.slurm.party]]\nname = \"brief\"\nuser = \"{user}\"\naccount = \"phys\"\nqos = \"brief\"\n"
    );
    serve_keys(cluster, NODES.len(), &keys, "")
}

/// The same in a week, when no nodes have to be held for it yet.
fn far(offer: Offer) -> Offer {
    let week = now() + 7 * 86_400;
    offer.within(week, week + 7_200)
}

/// The offer is refused with these words, whether it begins now or in a week.
async fn is_refused(client: &Client, offer: Offer, words: &str) {
    for offer in [offer.clone(), far(offer)] {
        let refused = client.post("/agreements", offer.xml()).await;
        assert_eq!(refused.status.as_u16(), 409, "{refused:?}");
        assert!(refused.body.contains(words), "{refused:?}");
    }
}

/// Has the account `poor` given the quality of service `gold`, with `+`, or taken from it, with `-`.
fn change_gold(cluster: &Cluster, sign: char) {
    let (user, set) = (Cluster::user(), format!("qos{sign}=gold"));
    let change = ["modify", "user", &user, "where", "account=poor", "set", &set];
    cluster.run("sacctmgr", &[&["-i"], &change[..]].concat());
}

/// Waits until Slurm itself refuses the jobs of the account `poor`.
async fn until_poor_is_refused(cluster: &Cluster) {
    let (user, script) = (format!("--uid={}", Cluster::user()), script(cluster, "true"));
    let mut arguments = vec![
        "--test-only",
        "--account=poor",
        "--qos=gold",
        "--chdir=/",
        &script,
    ];
    if rustix::process::geteuid().is_root() {
        arguments.insert(0, &user);
    }
    eventually("a refusal", SOON, async || {
        let tried = cluster.try_run("sbatch", &arguments);
        String::from_utf8_lossy(&tried.stderr)
            .contains("Invalid qos")
            .then_some(())
    })
    .await;
}

/// The id of an offer that is held for this request.
async fn held(client: &Client, wanted: &Value) -> Value {
    let answer = client.post_json("/negotiations", wanted).await.json();
    let offer = &answer["offers"][0];
    assert_eq!(offer["state"], "Acceptable", "{answer}");
    offer["id"].clone()
}

/// Offers that were held before the policy changed are withdrawn when they are accepted, in each way of acceptance: those of new
/// agreements, and one that would replace an agreement.
async fn is_judged_again_when_it_is_accepted(server: &mut Server, cluster: &Cluster, key: &str, old: Uuid) {
    let client = server.client_with(key);
    // Of a size that was not judged yet, on another day than the others.
    let start = now() + 8 * 86_400;
    let end = start + 36_000;
    let wanted = json!({
        "application": "sleep", "arguments": ["1"], "nodes": 1, "durationSeconds": UNJUDGED,
        "window": { "start": date_time(start), "end": date_time(end) },
    });
    let flat = held(&client, &wanted).await;
    let later = held(&client, &wanted).await;
    let longer = held(&client, &json!({ "agreement": old, "durationSeconds": UNJUDGED })).await;
    let talks = open(&client).await;
    let asked = [SentOffer::solicited(
        "c-1",
        Offer::sleep(1, UNJUDGED).within(start, end),
    )];
    let words = negotiate(&client, talks, &asked).await.remove(0);
    assert_eq!(words.state, "Acceptable");
    let others = held(&server.client(), &wanted).await;
    change_gold(cluster, '-');
    until_poor_is_refused(cluster).await;
    // It keeps an answer for a minute.
    server.kill9();
    server.restart();
    passes_checks(server);
    let client = server.client_with(key);

    let why = format!("the offer has been withdrawn, since {INVALID}");
    for offer in [&flat, &longer] {
        let gone = client.post_json("/agreements", &json!({ "offer": offer })).await;
        assert_eq!(gone.status, StatusCode::GONE, "{gone:?}");
        let problem = gone.json();
        assert_eq!(problem["code"], "WITHDRAWN", "{problem}");
        assert_eq!(problem["detail"], why, "{problem}");
        assert_eq!(problem["offers"][0]["state"], "Rejected", "{problem}");
    }
    let kept = client.get_json(&format!("/agreements/{old}")).await;
    assert_eq!(kept["state"], "Observed", "{kept}");
    let gone = client.post("/agreements", words.acceptance()).await;
    assert_eq!(gone.status, StatusCode::GONE, "{gone:?}");
    assert_eq!(gone.text("ErrorCode"), "WITHDRAWN");
    assert!(gone.body.contains(&why), "{gone:?}");
    let pending = json!({ "offer": later, "pending": true });
    let taken = client.post_json("/agreements", &pending).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED, "{taken:?}");
    let taken = format!("/agreements/{}", taken.json()["id"].as_str().expect("an id"));
    let rejected = eventually("its decision", SOON, async || {
        let shown = client.get_json(&taken).await;
        (shown["state"] != "Pending").then_some(shown)
    })
    .await;
    assert_eq!(rejected["state"], "Rejected", "{rejected}");
    let told = client.get(&format!("{taken}/events")).await.body;
    assert!(told.contains(&why), "{told}");
    // Those of others stand.
    let stands = json!({ "offer": others });
    server.client().post_json("/agreements", &stands).await.created();
}

/// The job of an agreement as squeue shows it in this format, once it is there.
async fn job(cluster: &Cluster, id: Uuid, format: &str) -> String {
    let (name, format) = (
        format!("--name={}", slurm_name_of_run("cluster", Run::first(id))),
        format!("-o{format}"),
    );
    eventually("its job", SOON, async || {
        let shown = cluster.run("squeue", &["-h", "-t", "all", &name, &format]);
        (!shown.is_empty()).then_some(shown)
    })
    .await
}

/// Accounting knows that it was not the job's own user. Without root there is only one user.
async fn is_lost_where_an_administrator_cancels_it(client: &Client, cluster: &Cluster) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let id = client
        .post("/agreements", Offer::sleep(500, 600).xml())
        .await
        .created();
    eventually("its start", SOON, async || {
        (job(cluster, id, "%T").await == "RUNNING").then_some(())
    })
    .await;
    cluster.run(
        "scancel",
        &["--name", &slurm_name_of_run("cluster", Run::first(id))],
    );
    let over = until(client, cluster, id, "Complete").await;
    assert_eq!(over.text("Outcome"), "lost", "{over:?}");
}

#[test]
fn a_job_has_what_the_policy_says_and_what_the_cluster_would_refuse_is_refused_when_it_is_offered_and_accepted()
 {
    run(async {
        let cluster = accounted();
        let mut server = serve(&cluster);
        let client = server.client();
        let accepted = client.post("/agreements", Offer::sleep(1, 60).xml()).await;
        let id = accepted.created();
        reserved(&cluster, id, 1).await;
        let held = cluster
            .reservation(&slurm_name_of_run("cluster", Run::first(id)))
            .expect("it is held");
        assert_eq!((&*held["Features"], &*held["Licenses"]), ("fast", "solver:1"));
        assert_eq!(job(&cluster, id, "%q|%f|%W|%a").await, "gold|fast|solver:1|phys");

        // Told with each offer, those of other parties aside.
        let key = server.key_for("poor", "consumer");
        let poor = server.client_with(&key);
        is_refused(&poor, Offer::sleep(1, 60), INVALID).await;
        let talks = open(&poor).await;
        let asked = [SentOffer::solicited("c-1", Offer::sleep(1, 60))];
        let answers = negotiate(&poor, talks, &asked).await;
        assert_eq!(answers[0].state, "Rejected");
        // Without a job there is nothing that Slurm could refuse.
        let reserves = far(Offer::reserve(1, 60));
        poor.post("/agreements", reserves.xml()).await.created();
        // By its size.
        let brief = server.client_with(&server.key_for("brief", "consumer"));
        is_refused(
            &brief,
            Offer::sleep(1, 3_600),
            "cluster would refuse the job: Job violates",
        )
        .await;
        brief
            .post("/agreements", far(Offer::sleep(1, 60)).xml())
            .await
            .created();

        let over = until(&client, &cluster, id, "Complete").await;
        assert_eq!(over.texts("State")[..2], ["Complete", "Fulfilled"], "{over:?}");

        is_lost_where_an_administrator_cancels_it(&client, &cluster).await;

        // A right that an administrator grants counts from the next dry run on: each try is of another size.
        change_gold(&cluster, '+');
        let mut minutes = 1;
        let granted = eventually("an agreement", SOON, async || {
            minutes += 1;
            let offer = far(Offer::sleep(1, minutes * 60));
            let answer = poor.post("/agreements", offer.xml()).await;
            answer.status.is_success().then(|| answer.created())
        })
        .await;
        is_judged_again_when_it_is_accepted(&mut server, &cluster, &key, granted).await;
        server.assert_verified();
    });
}
