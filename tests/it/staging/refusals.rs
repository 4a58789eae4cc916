//! Files that no job may have: refused with the offer, at their places in it.

use super::*;

/// An address that is allowed but for its port.
const OTHER_PORT: &str = "http://127.0.0.1:1/open/x";

/// Lists of files that are refused, the places of their faults, and what the first one says.
fn refused(data: &DataServer) -> Vec<(Value, Vec<&'static str>, &'static str)> {
    let good = data.url("/open/x");
    let file = |file: &str, source: Option<&str>, target: Option<&str>| json!({ "file": file, "source": source, "target": target });
    let brought = |source: &str| json!([file("in.dat", Some(source), None)]);
    vec![
        (brought(OTHER_PORT), vec!["/staging/0"], "begins with"),
        (
            brought(&data.url("/open/../closed")),
            vec!["/staging/0"],
            "begins with",
        ),
        (
            brought(&data.url("/open/%2e%2e/closed")),
            vec!["/staging/0"],
            "begins with",
        ),
        (brought(&data.url("/open/..%2Fclosed")), vec!["/staging/0"], "%2F"),
        (brought(&data.url("/opened/x")), vec!["/staging/0"], "begins with"),
        (
            brought("http://user:word@127.0.0.1/open/x"),
            vec!["/staging/0"],
            "without a user",
        ),
        (brought("ftp://127.0.0.1/open/x"), vec!["/staging/0"], "uploaded"),
        (brought("file:///etc/passwd"), vec!["/staging/0"], "uploaded"),
        (brought("not-uploaded.dat"), vec!["/staging/0"], "uploaded"),
        (brought("../../operator.key"), vec!["/staging/0"], "uploaded"),
        (
            json!([file("out.dat", None, Some("words.txt"))]),
            vec!["/staging/0"],
            "http",
        ),
        (
            json!([file("../x", Some(&good), None)]),
            vec!["/staging/0"],
            "without folders",
        ),
        (
            json!([file("/etc/passwd", Some(&good), None)]),
            vec!["/staging/0"],
            "without folders",
        ),
        (
            json!([file("a/b", None, Some(&good))]),
            vec!["/staging/0"],
            "without folders",
        ),
        (
            json!([file("stdout", Some(&good), None)]),
            vec!["/staging/0"],
            "own output",
        ),
        (
            json!([file("a", Some(&good), None), file("a", None, Some(&good))]),
            vec!["/staging/1"],
            "twice",
        ),
        (
            json!([
                file("a", Some(&good), None),
                file("b", Some(OTHER_PORT), Some(OTHER_PORT))
            ]),
            vec!["/staging/1", "/staging/1"],
            "begins with",
        ),
        (
            json!([{ "file": "a", "source": good, "bytes": 600_000 }, { "file": "b", "source": good, "bytes": 600_000 }]),
            vec!["/staging/1"],
            "at most 1048576 bytes",
        ),
        (
            json!([{ "file": "a", "bytes": -1 }]),
            vec!["/staging/0/bytes"],
            "whole number",
        ),
        (json!([{ "source": good }]), vec!["/staging/0"], "is expected"),
        (
            json!([{ "file": "a", "creationFlag": "never" }]),
            vec!["/staging/0/creationFlag"],
            "dontOverwrite",
        ),
        (json!({ "file": "a" }), vec!["/staging"], "a list is expected"),
    ]
}

#[test]
fn what_may_not_be_moved_is_refused_at_its_place() {
    run(async {
        let data = DataServer::start().await;
        let server = Server::configured(None, &configured(&data, "job_mib = 1"));
        let client = server.client_with(&server.key_for("physics", "consumer"));
        let (good, other_port) = (data.url("/open/x"), OTHER_PORT);
        for (staging, places, said) in refused(&data) {
            let answer = client
                .post_json("/agreements", &copying("in.dat", "out.dat", 60, &staging))
                .await;
            assert_eq!(
                answer.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{staging}: {answer:?}"
            );
            let problem = answer.json();
            let found = problem["violations"].as_array().expect("a list");
            let paths: Vec<_> = found
                .iter()
                .map(|found| found["path"].as_str().unwrap_or_default())
                .collect();
            assert_eq!(paths, places, "{staging}: {problem}");
            let message = found[0]["message"].as_str().unwrap_or_default();
            assert!(message.contains(said), "{staging}: {problem}");
        }
        let mut nodes =
            json!({ "nodes": 1, "durationSeconds": 60, "staging": [{ "file": "a", "source": good }] });
        let answer = client.post_json("/agreements", &nodes).await;
        assert!(answer.body.contains("an application is expected"), "{answer:?}");
        nodes["staging"] = json!([]);
        client.post_json("/agreements", &nodes).await.created();

        // In a document by the path of the element.
        let element = |file: &str, uri: &str| {
            format!(
                "<jsdl:DataStaging><jsdl:FileName>{file}</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag>\
                 <jsdl:Source><jsdl:URI>{uri}</jsdl:URI></jsdl:Source></jsdl:DataStaging>"
            )
        };
        let elements = element("a", &good) + &element("../b", other_port);
        let answer = client.post("/agreements", copying_xml("a", "b", &elements)).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:?}");
        for place in [
            "/jsdl:DataStaging[2]/jsdl:FileName",
            "/jsdl:DataStaging[2]/jsdl:Source",
        ] {
            assert!(answer.body.contains(place), "{place}: {}", answer.body);
        }
        assert!(
            data.asked().is_empty(),
            "an offer is answered without asking anybody"
        );
    });
}

#[test]
fn nothing_is_moved_where_the_provider_allows_nothing_or_the_address_is_not_public() {
    run(async {
        let data = DataServer::start().await;
        let source = json!([{ "file": "in.dat", "source": data.url("/open/in.dat") }]);
        let request = copying("in.dat", "out.dat", 60, &source);
        let configuration = configured(&data, "");
        let none = configuration.replace(&format!("\"{}\"", data.url("/open/")), "");
        let answer = Server::configured(None, &none)
            .client()
            .post_json("/agreements", &request)
            .await;
        assert!(
            answer.body.contains("this provider allows no address"),
            "{answer:?}"
        );
        // A name that leads to this machine is found out when it is asked for.
        let port = data.url("").rsplit(':').next().expect("a port").to_owned();
        let strict = configuration
            .replace("private_addresses = true", "")
            .replace("127.0.0.1", "localhost");
        let server = Server::configured(None, &strict);
        let client = server.client();
        let source = json!([{ "file": "in.dat", "source": format!("http://localhost:{port}/open/in.dat") }]);
        let id = made(&client, &copying("in.dat", "out.dat", 60, &source)).await;
        assert_eq!(over(&client, &id).await["outcome"], "failed-staging");
        let why = told(&client, &id, "ended").await;
        assert!(why.contains("is not a public address"), "{why}");
        assert!(data.asked().is_empty());
    });
}
