//! What goes wrong on the way: whose fault it is, and what becomes of the work.

use super::*;
use crate::support::data_server::Behaviour::{CutAfter, LeadsOn, SilentAfter, Status};

#[test]
fn a_cut_file_is_gone_on_with_and_a_changed_one_begins_anew() {
    run(async {
        let data = DataServer::start().await;
        let content = bytes(1_000_000);
        data.put("/open/cut.dat", content.clone());
        data.behave("/open/cut.dat", CutAfter(300_000));
        data.put("/open/changed.dat", bytes(500_000));
        data.behave("/open/changed.dat", SilentAfter(200_000));
        let server = Server::configured(None, &configured(&data, ""));
        let client = server.client();
        let file = |name: &str| {
            json!([
                { "file": name, "source": data.url(&format!("/open/{name}")) },
                { "file": "out.dat", "target": data.url(&format!("/open/of-{name}")) },
            ])
        };
        let cut = made(&client, &copying("cut.dat", "out.dat", 300, &file("cut.dat"))).await;
        let changed = made(
            &client,
            &copying("changed.dat", "out.dat", 300, &file("changed.dat")),
        )
        .await;
        eventually("a part of the file", PATIENCE, async || {
            (view(&client, &changed).await["staging"][0]["bytesIn"] == 200_000).then_some(())
        })
        .await;
        data.put("/open/changed.dat", "another version");
        data.behave("/open/changed.dat", None);
        assert_eq!(
            over(&client, &cut).await["outcome"],
            "completed",
            "{:?}",
            timeline(&client, &cut).await
        );
        assert_eq!(over(&client, &changed).await["outcome"], "completed");
        assert_eq!(data.file("/open/of-cut.dat"), Some(content));
        assert_eq!(
            data.file("/open/of-changed.dat").as_deref(),
            Some(&b"another version"[..])
        );
        let asked = data.asked();
        let ranges: Vec<_> = asked_for(&asked, "/open/cut.dat")
            .iter()
            .map(|asked_for| asked_for.range.clone())
            .collect();
        let expected =
            ["bytes=300000-", "bytes=600000-", "bytes=900000-"].map(|range| Some(range.to_owned()));
        assert_eq!(ranges, [&[None][..], &expected[..]].concat());
        let again = &asked_for(&asked, "/open/changed.dat")[1];
        assert_eq!(
            (again.range.as_deref(), again.if_range.as_deref()),
            (Some("bytes=200000-"), Some("\"1\""))
        );
    });
}

#[test]
fn a_file_that_cannot_be_had_is_the_partys_own_fault_and_says_why() {
    run(async {
        let (data, elsewhere) = (DataServer::start().await, DataServer::start().await);
        elsewhere.put("/hidden", "of another server");
        data.put("/open/large.dat", bytes((1 << 20) + 1));
        data.behave("/open/private", LeadsOn(302, elsewhere.url("/hidden")));
        data.behave("/open/climbs", LeadsOn(302, "/open/../closed".to_owned()));
        data.put("/open/real.dat", "found");
        data.behave("/open/moved", LeadsOn(301, "/open/real.dat".to_owned()));
        data.behave("/open/loop", LeadsOn(307, "/open/loop".to_owned()));
        data.behave("/open/down", Status(503));
        data.without_marks();
        data.put("/open/unmarked.dat", bytes(1_000));
        data.behave("/open/unmarked.dat", CutAfter(500));
        let server = Server::configured(None, &configured(&data, "job_mib = 1"));
        let client = server.client_with(&server.key_for("physics", "consumer"));
        let mut asked = Vec::new();
        for (path, said) in [
            ("absent.dat", "it answers 404 Not Found"),
            ("large.dat", "more than the 1048576 that may be moved for it"),
            ("private", "is not allowed: an address that begins with"),
            ("climbs", "is not allowed"),
            ("loop", "it leads on more than 5 times"),
            (
                "down",
                "it answers 503 Service Unavailable, and 4 tries before no better",
            ),
            ("unmarked.dat", "4 tries before no better"),
        ] {
            let staging =
                json!([{ "file": "in.dat", "source": data.url(&format!("/open/{path}?key=secret")) }]);
            asked.push((
                path,
                said,
                made(&client, &copying("in.dat", "out.dat", 60, &staging)).await,
            ));
        }
        for (path, said, id) in asked {
            let view = over(&client, &id).await;
            assert_eq!(
                (&view["outcome"], &view["state"]),
                (&json!("failed-staging"), &json!("Complete")),
                "{path}"
            );
            let why = told(&client, &id, "ended").await;
            assert!(
                why.starts_with("its files could not be moved: in.dat, from http://"),
                "{why}"
            );
            assert!(why.contains(said), "{path}: {why}");
            assert!(!why.contains("secret"), "{why}");
            let jobs = server.data_dir().join("jobs").join(&id);
            assert!(
                !jobs.join("parts").exists() && !jobs.join("spec.json").exists(),
                "nothing of it stays or starts"
            );
            assert_eq!(
                view["guarantees"][0]["state"], "Fulfilled",
                "the provider has done its part: {view}"
            );
        }
        assert!(elsewhere.asked().is_empty(), "nobody is asked who is not allowed");
        let staging = json!([{ "file": "in.dat", "source": data.url("/open/moved") }]);
        let id = made(&client, &copying("in.dat", "out.dat", 60, &staging)).await;
        assert_eq!(over(&client, &id).await["outcome"], "completed");
        server.assert_verified();
    });
}

#[test]
fn a_result_that_cannot_be_sent_is_kept_and_says_why() {
    run(async {
        let data = DataServer::start().await;
        data.put("/open/in.dat", "content");
        data.behave("/open/closed.dat", Status(403));
        data.behave("/open/elsewhere.dat", LeadsOn(307, "/open/there.dat".to_owned()));
        data.behave("/open/found.dat", LeadsOn(302, "/open/there.dat".to_owned()));
        let server = Server::configured(None, &configured(&data, ""));
        let client = server.client_with(&server.key_for("physics", "consumer"));
        let send = async |file: &str, to: &str| {
            let staging = json!([
                { "file": "in.dat", "source": data.url("/open/in.dat") },
                { "file": file, "target": data.url(to), "deleteOnTermination": true },
            ]);
            let id = made(&client, &copying("in.dat", "out.dat", 60, &staging)).await;
            let outcome = over(&client, &id).await["outcome"]
                .as_str()
                .expect("a word")
                .to_owned();
            (outcome, told(&client, &id, "ended").await, id)
        };
        let (outcome, why, id) = send("out.dat", "/open/closed.dat").await;
        assert_eq!(outcome, "failed-staging");
        assert!(
            why.contains("out.dat, to http://")
                && why.ends_with("/open/closed.dat: it answers 403 Forbidden"),
            "{why}"
        );
        // Its process has run, and what it was to send is gone with its work only where it has arrived.
        assert_eq!(told(&client, &id, "running").await, "its process has started");
        let (outcome, why, _) = send("forgotten.dat", "/open/x.dat").await;
        assert_eq!(outcome, "failed-staging");
        assert!(why.contains("the job has left no such file"), "{why}");
        let (outcome, why, _) = send("out.dat", "/open/found.dat").await;
        assert_eq!(outcome, "failed-staging");
        assert!(why.contains("it answers 302 Found"), "{why}");
        let (outcome, ..) = send("out.dat", "/open/elsewhere.dat").await;
        assert_eq!(outcome, "completed");
        assert_eq!(data.file("/open/there.dat").as_deref(), Some(&b"content"[..]));
        // A program that fails sends nothing.
        let staging = json!([{ "file": "out.dat", "target": data.url("/open/never.dat") }]);
        let id = made(&client, &copying("absent", "out.dat", 60, &staging)).await;
        assert_eq!(over(&client, &id).await["outcome"], "failed");
        assert!(asked_for(&data.asked(), "/open/never.dat").is_empty());
        server.assert_verified();
    });
}

/// An instant without the parts of its second.
fn second(instant: &Value) -> &str {
    &instant.as_str().expect("an instant")[..19]
}

#[test]
fn a_slow_source_has_the_slot_and_no_more() {
    run(async {
        let data = DataServer::start().await;
        data.put("/open/slow.dat", bytes(5_000));
        data.behave("/open/slow.dat", SilentAfter(1_000));
        let server = Server::configured(None, &configured(&data, ""));
        let client = server.client();
        let staging = json!([{ "file": "in.dat", "source": data.url("/open/slow.dat") }]);
        let id = made(&client, &copying("in.dat", "out.dat", 4, &staging)).await;
        let view = over(&client, &id).await;
        assert_eq!(
            view["outcome"],
            "failed-staging",
            "{:?}",
            timeline(&client, &id).await
        );
        let why = told(&client, &id, "ended").await;
        assert!(
            why.contains("the slot was over when 1000 of 5000 bytes of in.dat had been moved"),
            "{why}"
        );
        assert!(second(&view["ended"]) >= second(&view["plannedEnd"]), "{view}");
        let told = timeline(&client, &id).await;
        assert!(
            told.iter()
                .all(|(kind, _)| kind != "running" && kind != "restarted"),
            "{told:?}"
        );
        server.assert_verified();
    });
}

#[test]
fn a_service_that_was_away_has_not_lost_the_partys_work() {
    run(async {
        let data = DataServer::start().await;
        data.put("/open/slow.dat", bytes(5_000));
        data.behave("/open/slow.dat", SilentAfter(1_000));
        let mut server = Server::configured(None, &configured(&data, ""));
        let client = server.client();
        let staging = json!([
            { "file": "in.dat", "source": data.url("/open/slow.dat") },
            { "file": "out.dat", "target": data.url("/open/out.dat") },
        ]);
        let id = made(&client, &copying("in.dat", "out.dat", 4, &staging)).await;
        let first = eventually("a part of the file", PATIENCE, async || {
            let view = view(&client, &id).await;
            (view["staging"][0]["bytesIn"] == 1_000).then_some(view)
        })
        .await;
        server.kill9();
        let end = first["plannedEnd"].as_str().expect("an instant").to_owned();
        eventually("the slot to be over", PATIENCE, async || {
            (crate::support::offers::date_time(crate::support::offers::now()) > end).then_some(())
        })
        .await;
        data.behave("/open/slow.dat", None);
        server.restart();
        let client = server.client();
        let view = over(&client, &id).await;
        assert_eq!(view["outcome"], "completed", "{:?}", timeline(&client, &id).await);
        assert_eq!(data.file("/open/out.dat"), Some(bytes(5_000)));
        let told = timeline(&client, &id).await;
        assert!(told.iter().any(|(kind, _)| kind == "restarted"), "{told:?}");
        let asked = data.asked();
        let ranges: Vec<_> = asked_for(&asked, "/open/slow.dat")
            .iter()
            .map(|asked_for| asked_for.range.clone())
            .collect();
        assert_eq!(
            ranges,
            [None, Some("bytes=1000-".to_owned())],
            "what had arrived is not fetched again"
        );
        server.assert_verified();
    });
}

#[test]
fn an_agreement_that_is_ended_takes_its_files_with_it() {
    run(async {
        let data = DataServer::start().await;
        data.put("/open/slow.dat", bytes(5_000));
        data.behave("/open/slow.dat", SilentAfter(1_000));
        let server = Server::configured(None, &configured(&data, ""));
        let client = server.client();
        let staging = json!([{ "file": "in.dat", "source": data.url("/open/slow.dat") }]);
        let id = made(&client, &copying("in.dat", "out.dat", 300, &staging)).await;
        let jobs = server.data_dir().join("jobs").join(&id);
        eventually("a part of the file", PATIENCE, async || {
            (view(&client, &id).await["staging"][0]["bytesIn"] == 1_000).then_some(())
        })
        .await;
        assert!(jobs.join("parts/in.dat").exists());
        let ending = client
            .post_json(&format!("/agreements/{id}/terminate"), &json!({}))
            .await;
        assert!(ending.status.is_success(), "{ending:?}");
        let view = over(&client, &id).await;
        assert_eq!(
            (&view["outcome"], &view["state"]),
            (&json!("terminated"), &json!("Terminated"))
        );
        assert!(!jobs.join("parts").exists(), "what was brought is removed");
        server.assert_verified();
    });
}

#[test]
fn files_are_moved_at_the_configured_rate_and_that_is_recorded() {
    run(async {
        let data = DataServer::start().await;
        data.put("/open/in.dat", bytes(96 << 10));
        let server = Server::configured(None, &configured(&data, "job_kib_per_second = 64"));
        let client = server.client();
        let staging = json!([{ "file": "in.dat", "source": data.url("/open/in.dat") }]);
        let id = made(&client, &copying("in.dat", "out.dat", 60, &staging)).await;
        assert_eq!(over(&client, &id).await["outcome"], "completed");
        let url = format!("sqlite:{}", server.data_dir().join("bespeak.db").display());
        let (executions, rates) = recorded(&url, &id).await;
        let took = executions[0].transfer_in;
        assert!(took >= 1_400_000, "96 KiB take a second and a half: {took}");
        let expected = (96 << 10) * 1_000_000 / took;
        assert_eq!(rates, [(Some(expected), None)]);
        // Each moment counts once: as waiting, as moving, or as running.
        let one = &executions[0];
        let passed = one.ended - one.planned.start.seconds() * 1_000_000;
        assert_eq!(one.queue_time + took + one.run_time, passed, "{executions:?}");
    });
}
