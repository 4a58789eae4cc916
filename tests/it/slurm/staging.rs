//! Files that are moved for a job on a cluster go by way of the service's own folder of it.

use serde_json::json;

use super::service::{SOON, serve_with};
use crate::support::data_server::DataServer;
use crate::support::slurm::Cluster;
use crate::support::{eventually, run};

#[test]
fn a_job_on_a_cluster_finds_what_was_brought_and_its_result_is_sent() {
    run(async {
        let cluster = Cluster::start();
        let data = DataServer::start().await;
        let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        data.put("/open/in.dat", content.clone());
        let more = format!(
            "[staging]\nallowed = [\"{}\"]\nprivate_addresses = true\n\
             [[application]]\nname = \"copy\"\nprogram = \"/bin/cp\"\n\
             [[application.argument]]\nname = \"from\"\ntype = \"text\"\nmax_length = 80\n\
             [[application.argument]]\nname = \"to\"\ntype = \"text\"\nmax_length = 80\n",
            data.url("/open/")
        );
        let server = serve_with(&cluster, &more);
        let client = server.client();
        let request = json!({
            "application": "copy", "arguments": ["in.dat", "out.dat"], "nodes": 1, "durationSeconds": 60,
            "staging": [
                { "file": "in.dat", "source": data.url("/open/in.dat") },
                { "file": "out.dat", "target": data.url("/open/out.dat") },
            ],
        });
        let id = client.post_json("/agreements", &request).await.created();
        let over = eventually("the agreement to be over", 3 * SOON, async || {
            let view = client.get_json(&format!("/agreements/{id}")).await;
            (view["serviceState"] == "Completed").then_some(view)
        })
        .await;
        let events = client.get_json(&format!("/agreements/{id}/events")).await;
        assert_eq!(over["outcome"], "completed", "{events}");
        assert_eq!(data.file("/open/out.dat"), Some(content));
        server.assert_verified();
    });
}
