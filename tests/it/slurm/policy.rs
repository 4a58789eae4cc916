//! What a site's policy wants of jobs, and what becomes of the offers of parties whose jobs the cluster would refuse.

use bespeak::execution::slurm::name_of;
use uuid::Uuid;

use super::service::{SOON, reserved, serve_keys, until};
use crate::support::client::Client;
use crate::support::negotiation::{Said, negotiate, open};
use crate::support::offers::{Offer, now};
use crate::support::server::Server;
use crate::support::slurm::{Cluster, NODES};
use crate::support::{eventually, run};

/// What Slurm says of a quality of service that an association does not have.
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

/// A service whose party `operator` has the account `phys`, `poor` the other one, and `brief` a quality of service of its own.
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

/// The job of an agreement as squeue shows it in this format, once it is there.
async fn job(cluster: &Cluster, id: Uuid, format: &str) -> String {
    let (name, format) = (
        format!("--name={}", name_of("cluster", id)),
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
        .post("/agreements", Offer::sleep(50, 60).xml())
        .await
        .created();
    eventually("its start", SOON, async || {
        (job(cluster, id, "%T").await == "RUNNING").then_some(())
    })
    .await;
    cluster.run("scancel", &["--name", &name_of("cluster", id)]);
    let over = until(client, cluster, id, "Complete").await;
    assert_eq!(over.text("Outcome"), "lost", "{over:?}");
}

#[test]
fn a_job_has_what_the_policy_says_and_what_the_cluster_would_refuse_is_refused_when_it_is_offered() {
    run(async {
        let cluster = accounted();
        let server = serve(&cluster);
        let client = server.client();
        let accepted = client.post("/agreements", Offer::sleep(1, 60).xml()).await;
        let id = accepted.created();
        reserved(&cluster, id, 1).await;
        let held = cluster.reservation(&name_of("cluster", id)).expect("it is held");
        assert_eq!((&*held["Features"], &*held["Licenses"]), ("fast", "solver:1"));
        assert_eq!(job(&cluster, id, "%q|%f|%W|%a").await, "gold|fast|solver:1|phys");

        // Told with each offer, those of other parties aside.
        let poor = server.client_with(&server.key_for("poor", "consumer"));
        is_refused(&poor, Offer::sleep(1, 60), INVALID).await;
        let talks = open(&poor).await;
        let asked = [Said::solicited("c-1", Offer::sleep(1, 60))];
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

        // What an administrator grants counts from the next dry run on: each try is of another size.
        let user = Cluster::user();
        let granted = [
            "-i",
            "modify",
            "user",
            &user,
            "where",
            "account=poor",
            "set",
            "qos+=gold",
        ];
        cluster.run("sacctmgr", &granted);
        let mut minutes = 1;
        eventually("an agreement", SOON, async || {
            minutes += 1;
            let offer = far(Offer::sleep(1, minutes * 60));
            let answer = poor.post("/agreements", offer.xml()).await;
            answer.status.is_success().then_some(())
        })
        .await;
        server.assert_verified();
    });
}
