//! The offers in `examples/` have the effects that their comments state.

use std::fs;

use reqwest::StatusCode;

use crate::support::offers::{date_time, file, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};
use std::time::Duration;

/// Each offer that is wrong: how it is answered, the code of the fault, and where the mistake is.
const WRONG: &[(&str, u16, &str, &str)] = &[
    ("malformed", 400, "MALFORMED", "wsag:Terms"),
    (
        "unknown-template",
        422,
        "INVALID",
        "/wsag:AgreementOffer/wsag:Context/wsag:TemplateId",
    ),
    (
        "unknown-application",
        422,
        "INVALID",
        "/jsdl:Application/jsdl:ApplicationName",
    ),
    ("unknown-term", 422, "INVALID", "/wsag:ServiceDescriptionTerm[3]"),
    (
        "window-in-the-past",
        422,
        "INVALID",
        "/arp:AllocationTimeConstraint",
    ),
    (
        "window-too-short",
        422,
        "INVALID",
        "/arp:AllocationTimeConstraint",
    ),
    ("beyond-the-horizon", 409, "HORIZON_EXCEEDED", "365 days"),
    (
        "too-many-nodes",
        422,
        "INVALID",
        "/jsdl:TotalResourceCount/jsdl:Exact",
    ),
    (
        "bad-datetime",
        422,
        "INVALID",
        "/arp:AllocationTimeConstraint/arp:StartTime",
    ),
    (
        "wrong-argument",
        422,
        "INVALID",
        "/jsdl-posix:POSIXApplication/jsdl-posix:Argument",
    ),
];

on_both_engines!(
    a_release_on_postgres:
    offers_that_fit_become_agreements,
    an_offer_that_conflicts_is_refused_with_the_nearest_starts,
);

async fn offers_that_fit_become_agreements(url: String) {
    let server = Server::start(&url);
    fs::write(
        server.data_dir().join("files/input.txt"),
        "what is to be summed\n",
    )
    .expect("an input file");
    let client = server.client();
    for example in ["sleep", "sha256sum", "reserve-nodes", "moldable"] {
        let id = client
            .post("/agreements", file(&format!("examples/{example}.xml")))
            .await
            .created();
        let state = client.get(&format!("/agreements/{id}/state")).await;
        // A short job may be over by now.
        assert!(
            matches!(state.text("State"), "Observed" | "Complete"),
            "{example}: {state:?}"
        );
    }
    server.assert_verified();
}

async fn an_offer_that_conflicts_is_refused_with_the_nearest_starts(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let noon = hours_ahead(48) / 86_400 * 86_400 + 12 * 3_600;
    let day = &date_time(noon)[..10];
    let offer = file("examples/conflict.xml")
        .replace("DAY", day)
        .replace("NODES", "4");
    client.post("/agreements", offer.clone()).await.created();
    let refused = client.post("/agreements", offer).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    assert!(refused.body.contains("ContinuingFault"), "{refused:?}");
    for nearest in [noon - 3_600, noon + 3_600] {
        assert!(
            refused.body.contains(&date_time(nearest)),
            "{} is not offered: {refused:?}",
            date_time(nearest)
        );
    }
    server.assert_verified();
}

#[test]
fn each_kind_of_wrong_is_refused_with_its_own_reason_and_place() {
    run(async {
        let server = Server::local();
        let client = server.client();
        for (example, status, code, place) in WRONG {
            let answer = client
                .post("/agreements", file(&format!("examples/wrong/{example}.xml")))
                .await;
            assert_eq!(answer.status.as_u16(), *status, "{example}: {answer:?}");
            assert_eq!(answer.text("ErrorCode"), *code, "{example}: {answer:?}");
            assert!(
                answer.body.contains(place),
                "{example}: {place} is not named: {answer:?}"
            );
        }
        let names =
            fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/wrong")).expect("examples/wrong");
        assert_eq!(names.count(), WRONG.len(), "every wrong example is in the table");
    });
}

#[test]
fn a_checksum_of_an_input_file_can_be_fetched() {
    run(async {
        let server = Server::local();
        fs::write(server.data_dir().join("files/input.txt"), "abc").expect("an input file");
        let client = server.client();
        let id = client
            .post("/agreements", file("examples/sha256sum.xml"))
            .await
            .created();
        eventually("the end of the job", Duration::from_mins(1), async || {
            let state = client.get(&format!("/agreements/{id}/state")).await;
            (state.text("State") == "Complete").then_some(())
        })
        .await;
        let output = client.get(&format!("/agreements/{id}/files/stdout")).await;
        assert_eq!(
            output.body, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  input.txt\n",
            "FIPS 180-2, appendix B.1"
        );
    });
}

#[test]
fn an_input_file_is_a_name_in_the_providers_folder_and_nothing_else() {
    run(async {
        let server = Server::local();
        let files = server.data_dir().join("files");
        fs::create_dir(files.join("folder")).expect("a folder can be made");
        let client = server.client();
        let offer = file("examples/sha256sum.xml");
        for name in [
            "missing",
            "../operator.key",
            "/etc/passwd",
            "folder",
            "--check",
            "-",
            "",
            ".",
            "a\nb",
        ] {
            let answer = client
                .post("/agreements", offer.replace("input.txt</", &format!("{name}</")))
                .await;
            assert_eq!(answer.status.as_u16(), 422, "{name:?}: {answer:?}");
            assert!(
                answer.body.contains("/jsdl-posix:Argument"),
                "{name:?}: {answer:?}"
            );
        }
    });
}
