//! Files: uploads of a party for its jobs, and the files that its jobs leave, through the API and the command line.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use reqwest::{Method, StatusCode};

use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::{eventually, run};

async fn put(client: &Client, path: &str, bytes: impl Into<Vec<u8>>) -> Answer {
    client
        .send(client.request(Method::PUT, path).body(bytes.into()))
        .await
}

async fn delete(client: &Client, path: &str) -> Answer {
    client.send(client.request(Method::DELETE, path)).await
}

fn names(list: &serde_json::Value) -> Vec<&str> {
    let files = list["files"].as_array().expect("a list");
    files
        .iter()
        .map(|file| file["name"].as_str().unwrap_or_default())
        .collect()
}

/// An offer to sum a file.
fn sum(file: &str) -> String {
    let mut offer = Offer::sleep(0, 600);
    offer.run = Some(("sha256sum", vec![file.to_owned()]));
    offer.xml()
}

async fn ended(client: &Client, id: &str) -> serde_json::Value {
    eventually("the job to end", Duration::from_mins(1), async || {
        let view = client.get_json(&format!("/agreements/{id}")).await;
        (view["state"] == "Complete").then_some(view)
    })
    .await
}

#[test]
fn a_partys_job_reads_what_it_uploaded_and_no_other_party_can() {
    run(async {
        let server = Server::local();
        let physics = server.client_with(&server.key_for("physics", "consumer"));
        let biology = server.client_with(&server.key_for("biology", "consumer"));
        let answer = put(&physics, "/files/grain.txt", "grain").await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        assert_eq!(answer.headers["location"], "/files/grain.txt");
        let list = physics.get_json("/files").await;
        assert_eq!(list["files"][0]["name"], "grain.txt", "{list}");
        assert_eq!(list["files"][0]["bytes"], 5, "{list}");
        assert_eq!(physics.get("/files/grain.txt").await.body, "grain");

        assert!(names(&biology.get_json("/files").await).is_empty());
        for answer in [
            biology.get("/files/grain.txt").await,
            delete(&biology, "/files/grain.txt").await,
        ] {
            assert_eq!(answer.status, StatusCode::NOT_FOUND);
        }
        let refused = biology.post("/agreements", sum("grain.txt")).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.body
        );

        let id = physics
            .post("/agreements", sum("grain.txt"))
            .await
            .created()
            .to_string();
        let view = ended(&physics, &id).await;
        assert_eq!(view["outcome"], "completed", "{view}");
        let output = physics.get(&format!("/agreements/{id}/files/stdout")).await.body;
        let expected = sha256(b"grain");
        assert_eq!(output, format!("{expected}  grain.txt\n"));
        let written = physics.get_json(&format!("/agreements/{id}/files")).await;
        assert_eq!(
            names(&written),
            ["stdout", "stderr"],
            "its input is not its output"
        );
        // As when its time is over.
        fs::remove_dir_all(server.data_dir().join("jobs").join(&id)).expect("it is there");
        for path in ["files", "files/stdout"] {
            let gone = physics.get(&format!("/agreements/{id}/{path}")).await;
            assert_eq!(gone.status, StatusCode::GONE, "{}", gone.body);
            assert!(gone.body.contains("no longer kept"), "{}", gone.body);
        }

        let replaced = put(&physics, "/files/grain.txt", "corn").await;
        assert_eq!(replaced.status, StatusCode::NO_CONTENT, "{}", replaced.body);
        assert_eq!(physics.get("/files/grain.txt").await.body, "corn");
        assert_eq!(
            delete(&physics, "/files/grain.txt").await.status,
            StatusCode::NO_CONTENT
        );
        assert_eq!(
            delete(&physics, "/files/grain.txt").await.status,
            StatusCode::NOT_FOUND
        );
        assert!(names(&physics.get_json("/files").await).is_empty());
    });
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    store::hex(&Sha256::digest(bytes))
}

#[test]
fn names_that_are_paths_and_files_beyond_the_quota_are_refused_and_leave_nothing() {
    run(async {
        let server = Server::configured(None, "[limits]\nparty_files_mib = 1\n");
        let client = server.client_with(&server.key_for("physics", "consumer"));
        for name in [
            "..%2Fpasswd",
            "%2Fetc%2Fpasswd",
            ".hidden",
            "-rf",
            "a%00b",
            &"x".repeat(256),
        ] {
            let answer = put(&client, &format!("/files/{name}"), "x").await;
            assert_eq!(
                answer.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{name}: {}",
                answer.body
            );
        }
        let mebibyte = vec![b'x'; 1 << 20];
        let full = put(&client, "/files/full", mebibyte.clone()).await;
        assert_eq!(full.status, StatusCode::CREATED, "{}", full.body);
        let over = put(&client, "/files/more", "x").await;
        assert_eq!(over.status, StatusCode::CONFLICT, "{}", over.body);
        assert!(over.body.contains("QUOTA_EXCEEDED"), "{}", over.body);
        assert_eq!(names(&client.get_json("/files").await), ["full"]);
        let other = server.client_with(&server.key_for("biology", "consumer"));
        let full = put(&other, "/files/full", mebibyte).await;
        assert_eq!(full.status, StatusCode::CREATED, "each party has its own quota");
        for folder in fs::read_dir(server.data_dir().join("party-files")).expect("it is there") {
            let folder = folder.expect("an entry").path();
            let files = fs::read_dir(&folder).expect("a folder").count();
            assert_eq!(files, 1, "nothing is left behind in {}", folder.display());
        }
    });
}

#[test]
fn what_a_job_leaves_in_its_folder_is_listed_and_fetched() {
    run(async {
        let scripts = tempfile::tempdir().expect("a folder");
        let program = scripts.path().join("writes");
        let script = "#!/bin/sh\nprintf 42 > result.dat\nln -s /etc/passwd secret\nmkdir folder\n";
        fs::write(&program, script).expect("it can be written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let mut server = Server::configured(
            None,
            &format!(
                "[[application]]\nname = \"writes\"\nprogram = \"{}\"\n",
                program.display()
            ),
        );
        let client = server.client_with(&server.key_for("physics", "consumer"));
        let mut offer = Offer::sleep(0, 600);
        offer.run = Some(("writes", Vec::new()));
        let id = client
            .post("/agreements", offer.xml())
            .await
            .created()
            .to_string();
        let view = ended(&client, &id).await;
        assert_eq!(view["outcome"], "completed", "{view}");
        let path = format!("/agreements/{id}/files");
        client.get(&path).await.assert_valid();
        assert_eq!(
            names(&client.get_json(&path).await),
            ["stdout", "stderr", "result.dat"]
        );
        assert_eq!(client.get(&format!("{path}/result.dat")).await.body, "42");
        for name in ["secret", "folder", "..%2Fspec.json", "absent"] {
            let answer = client.get(&format!("{path}/{name}")).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{name}");
        }
        let other = server.client_with(&server.key_for("biology", "consumer"));
        for path in [path.clone(), format!("{path}/result.dat")] {
            assert_eq!(other.get(&path).await.status, StatusCode::NOT_FOUND);
        }
        let printed = server.run(&["output", &id, "--file", "result.dat"]);
        assert_eq!(printed.stdout, b"42");
        let listed = server.run(&["output", &id, "--list"]);
        assert!(String::from_utf8_lossy(&listed.stdout).contains("result.dat"));

        // The next start finds it as a version before has left it.
        server.stop();
        server.restart();
        let folder = server.data_dir().join("jobs").join(&id);
        eventually("its folder to be packed", Duration::from_mins(1), async || {
            (!folder.join("spec.json").exists()).then_some(())
        })
        .await;
        let entries = fs::read_dir(&folder).expect("a folder").flatten();
        let mut left: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["claim.json", "end.json", "work"]);
        let client = server.client();
        assert_eq!(
            names(&client.get_json(&path).await),
            ["stdout", "stderr", "result.dat"]
        );
        assert_eq!(client.get(&format!("{path}/result.dat")).await.body, "42");
        let output = client.get(&format!("{path}/stdout")).await;
        assert_eq!((output.status, output.body.as_str()), (StatusCode::OK, ""));
        server.assert_verified();
    });
}

#[test]
fn the_command_line_uploads_lists_fetches_and_removes() {
    run(async {
        let server = Server::local();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("grain.txt");
        fs::write(&file, "grain").expect("it can be written");
        let file = file.to_string_lossy();
        let done = |arguments: &[&str]| {
            let output = server.run(arguments);
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            String::from_utf8(output.stdout).expect("it is text")
        };
        done(&["files", "put", &file]);
        done(&["files", "put", &file, "--as", "corn.txt"]);
        let list = done(&["files", "list"]);
        assert!(list.contains("grain.txt") && list.contains("10 of "), "{list}");
        assert_eq!(done(&["files", "get", "corn.txt"]), "grain");
        done(&["files", "remove", "corn.txt"]);
        let gone = server.run(&["files", "get", "corn.txt"]);
        assert_eq!(gone.status.code(), Some(1));
        let path = server.run(&["files", "put", &file, "--as", "../x"]);
        assert_eq!(path.status.code(), Some(2), "{path:?}");
    });
}

#[test]
fn an_input_stays_until_every_agreement_that_names_it_has_begun_or_is_over() {
    run(async {
        let server = Server::local();
        let physics = server.client_with(&server.key_for("physics", "consumer"));
        let biology = server.client_with(&server.key_for("biology", "consumer"));
        for client in [&physics, &biology] {
            for name in ["grain.txt", "other.txt"] {
                put(client, &format!("/files/{name}"), "grain").await;
            }
        }
        let later = hours_ahead(2);
        let mut offer = Offer::sleep(0, 600).within(later, later + 600);
        offer.run = Some(("sha256sum", vec!["grain.txt".to_owned()]));
        let id = physics
            .post("/agreements", offer.xml())
            .await
            .created()
            .to_string();
        let kept = delete(&physics, "/files/grain.txt").await;
        assert_eq!(kept.status, StatusCode::CONFLICT, "{}", kept.body);
        assert!(kept.body.contains(&id), "it says which: {}", kept.body);
        assert_eq!(physics.get("/files/grain.txt").await.body, "grain");
        for (client, name) in [(&physics, "other.txt"), (&biology, "grain.txt")] {
            let gone = delete(client, &format!("/files/{name}")).await;
            assert_eq!(gone.status, StatusCode::NO_CONTENT, "{name}: {}", gone.body);
        }
        let ended = server.run(&["terminate", &id]);
        assert!(ended.status.success(), "{ended:?}");
        let gone = delete(&physics, "/files/grain.txt").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
    });
}

#[test]
fn what_a_job_has_left_goes_when_its_party_says_so_and_not_while_it_runs() {
    run(async {
        let server = Server::local();
        let physics = server.client_with(&server.key_for("physics", "consumer"));
        let biology = server.client_with(&server.key_for("biology", "consumer"));
        let running = physics
            .post("/agreements", Offer::sleep(100, 600).xml())
            .await
            .created()
            .to_string();
        let over = physics
            .post("/agreements", Offer::sleep(0, 600).xml())
            .await
            .created()
            .to_string();
        let view = ended(&physics, &over).await;
        assert_eq!(view["outcome"], "completed", "{view}");
        let folder = |id: &str| server.data_dir().join("jobs").join(id);
        eventually("the job to run", Duration::from_mins(1), async || {
            folder(&running).join("claim.json").exists().then_some(())
        })
        .await;
        let kept = delete(&physics, &format!("/agreements/{running}/files")).await;
        assert_eq!(kept.status, StatusCode::CONFLICT, "{}", kept.body);
        assert!(folder(&running).exists());

        let path = format!("/agreements/{over}/files");
        assert_eq!(delete(&biology, &path).await.status, StatusCode::NOT_FOUND);
        assert!(folder(&over).exists());
        for _ in 0..2 {
            let gone = delete(&physics, &path).await;
            assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
            assert!(!folder(&over).exists());
        }
        assert_eq!(physics.get(&path).await.status, StatusCode::GONE);
        assert!(server.run(&["terminate", &running]).status.success());
        eventually(
            "the files of the stopped job to go",
            Duration::from_mins(1),
            async || {
                let removed = server.run(&["output", &running, "--remove"]);
                removed.status.success().then_some(())
            },
        )
        .await;
        assert!(!folder(&running).exists());
    });
}
