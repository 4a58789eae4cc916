//! The remains of jobs on a cluster when they are over.

use std::fs;
use std::path::Path;

use uuid::Uuid;

use super::put_program;
use super::service::{SOON, serve_with, until};
use crate::support::offers::{Offer, now};
use crate::support::slurm::Cluster;
use crate::support::{eventually, run};

/// Seconds of the slots, in which the jobs end early, and for how long after them something may run.
const SLOT: i64 = 15;
const OUT_OF_SIGHT: i64 = 15;

/// All that is below a folder, by path; none where that is not there.
fn all_in(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = vec![folder.to_owned()];
    while let Some(next) = ahead.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            found.push(path.strip_prefix(folder).unwrap().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                ahead.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_job_that_is_over_leaves_one_file_and_what_it_has_written() {
    run(async {
        let cluster = Cluster::start();
        let writes = cluster.folder().join("writes");
        put_program(&writes, "#!/bin/sh\necho said\nmkdir inner\necho 42 >result\n");
        let application = |name: &str, program: &Path| {
            format!(
                "[[application]]\nname = \"{name}\"\nprogram = \"{}\"\n",
                program.display()
            )
        };
        let applications = application("quiet", Path::new("/bin/true")) + &application("writes", &writes);
        let mut server = serve_with(&cluster, &applications);
        let client = server.client();
        let offers = ["quiet", "writes"].map(|name| Offer {
            run: Some((name, Vec::new())),
            ..Offer::reserve(1, SLOT)
        });
        let mut ids: Vec<Uuid> = Vec::new();
        for offer in offers {
            ids.push(client.post("/agreements", offer.xml()).await.created());
        }
        for id in &ids {
            until(&client, &cluster, *id, "Complete").await;
        }
        let own = |id: Uuid| server.data_dir().join("jobs").join(id.to_string());
        let shared = |id: Uuid| cluster.folder().join("work").join(id.to_string());
        let (quiet, writing) = (ids[0], ids[1]);
        let before = [own(quiet), shared(quiet)].map(|folder| all_in(&folder));
        assert!(before[0].contains(&"spec.json".to_owned()), "{before:?}");
        assert!(before[1].contains(&"claim".to_owned()), "{before:?}");
        // By the clock of the service, no slot ends later.
        let over = now() + SLOT + OUT_OF_SIGHT + 1;
        eventually("the slots to be over", 2 * SOON, async || {
            (now() > over).then_some(())
        })
        .await;
        let (folder, disk) = (own(quiet), shared(quiet));
        let (written, kept) = (own(writing), shared(writing));
        server.stop();
        server.restart();
        eventually("the folders to be packed", SOON, async || {
            let is_loose = |folder: &Path| folder.join("spec.json").exists();
            (!is_loose(&folder) && !is_loose(&written)).then_some(())
        })
        .await;
        assert_eq!(all_in(&folder), ["end.json"]);
        assert!(!disk.exists(), "{:?}", all_in(&disk));
        assert_eq!(all_in(&written), ["end.json", "stdout", "work", "work/result"]);
        assert_eq!(
            all_in(&kept),
            ["claim", "stdout", "work", "work/inner", "work/result"]
        );
        let client = server.client();
        let fetch = async |id: Uuid, name: &str| {
            let answer = client.get(&format!("/agreements/{id}/files/{name}")).await;
            assert!(answer.status.is_success(), "{answer:?}");
            answer.body
        };
        assert_eq!(fetch(quiet, "stdout").await, "");
        assert_eq!(fetch(writing, "stdout").await, "said\n");
        assert_eq!(fetch(writing, "stderr").await, "");
        assert_eq!(fetch(writing, "result").await, "42\n");
        for id in ids {
            let removed = server.run(&["output", &id.to_string(), "--remove"]);
            assert!(removed.status.success(), "{removed:?}");
        }
        assert!(!folder.exists() && !written.exists() && !kept.exists());
        server.assert_verified();
    });
}
