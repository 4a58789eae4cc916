//! Every message of `tests/messages/`: messages for this service are answered, wrong ones are refused with their place.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::configuration::serve;
use crate::support::negotiation::{self, SentOffer, counters};
use crate::support::offers::{Offer, date_time, file, hours_ahead, moved};
use crate::support::server::Server;
use crate::support::{eventually, output_of, run};

/// The answer to known messages that are not an offer.
const FOR_ANOTHER_ADDRESS: &str = "wsag:AgreementOffer or wsag:CreateAgreementInput is expected";

/// Every message as it is posted to `/agreements` where `m01` is the template: the status, and the words of the answer.
///
/// The constraint and the condition of `m01` are in no language that is known here, so that offers made from it are refused for
/// these. The answer to a message that is not an offer names the expected ones.
const POSTED: &[(&str, u16, &str)] = &[
    ("m01-template", 422, FOR_ANOTHER_ADDRESS),
    (
        "m02-agreement-offer",
        422,
        "/wsag:AgreementOffer/wsag:Terms/wsag:All/wsag:GuaranteeTerm/wsag:QualifyingCondition",
    ),
    (
        "m03-create-agreement-input",
        422,
        "the address of a negotiation here is expected",
    ),
    ("m04-create-agreement-response", 422, FOR_ANOTHER_ADDRESS),
    ("m05-create-pending-agreement-input", 422, "cannot be evaluated"),
    ("m06-accept-agreement-input", 422, FOR_ANOTHER_ADDRESS),
    ("m07-reject-agreement-input", 422, FOR_ANOTHER_ADDRESS),
    ("m08-terminate-input", 422, FOR_ANOTHER_ADDRESS),
    ("m09-agreement-properties", 422, FOR_ANOTHER_ADDRESS),
    ("m10-agreement-factory-properties", 422, FOR_ANOTHER_ADDRESS),
    ("m11-continuing-fault", 422, FOR_ANOTHER_ADDRESS),
    ("m12-initiate-negotiation-input", 422, FOR_ANOTHER_ADDRESS),
    ("m13-initiate-negotiation-output", 422, FOR_ANOTHER_ADDRESS),
    ("m14-negotiate-input", 422, FOR_ANOTHER_ADDRESS),
    ("m15-negotiate-output", 422, FOR_ANOTHER_ADDRESS),
    ("m16-advertise-input", 422, FOR_ANOTHER_ADDRESS),
    ("m17-negotiation-terminate-input", 422, FOR_ANOTHER_ADDRESS),
    ("m18-initiate-renegotiation-input", 422, FOR_ANOTHER_ADDRESS),
    (
        "m19-create-renegotiated-agreement-input",
        422,
        "the address of a negotiation here is expected",
    ),
    ("m20-negotiation-properties", 422, FOR_ANOTHER_ADDRESS),
    (
        "o01-offer-sleep",
        422,
        "/wsag:AgreementOffer/wsag:Context/wsag:TemplateId",
    ),
    (
        "edge-duplicate-names",
        422,
        "/wsag:AgreementOffer/wsag:Terms/wsag:All/wsag:ServiceDescriptionTerm[2]",
    ),
    ("edge-empty-terms", 422, "/wsag:AgreementOffer/wsag:Context"),
    (
        "edge-end-before-start",
        422,
        "/arp:AllocationTimeConstraint/arp:EndTime",
    ),
    ("negative/bad-agreement-root", 422, "/wsag:Agreement"),
    (
        "negative/bad-context-order",
        422,
        "/wsag:AgreementOffer/wsag:Context/wsag:TemplateId",
    ),
    (
        "negative/bad-empty-all",
        422,
        "/wsag:AgreementOffer/wsag:Terms/wsag:All",
    ),
    (
        "negative/bad-negoffer-no-constraints",
        422,
        "/wsag-neg:NegotiateInput",
    ),
    (
        "negative/bad-no-business-value-list",
        422,
        "/wsag:AgreementOffer/wsag:Terms/wsag:All/wsag:GuaranteeTerm",
    ),
    (
        "negative/bad-sdt-two-children",
        422,
        "/wsag:ServiceDescriptionTerm[2]/arp:AllocationTimeConstraint[2]",
    ),
    (
        "negative/bad-state-then-extension",
        422,
        "<bsp:Path>/wsag:AgreementProperties</bsp:Path>",
    ),
    ("negative/bad-template-no-constraints", 422, "/wsag:Template"),
    ("negative/bad-terminate-empty", 422, "/wsag:TerminateInput"),
    (
        "negative/bad-unqualified-attribute",
        422,
        "/wsag:AgreementOffer/@AgreementId",
    ),
];

/// A service with 64 nodes and with this as its only template.
fn server_with(template: &str) -> (TempDir, Server) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("template.xml");
    fs::write(&path, template).expect("a file can be written");
    let configuration = format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 64\n\n[[template]]\nfile = \"{}\"\n",
        path.display()
    );
    let server = Server::configured(None, &configuration);
    (folder, server)
}

/// A message with its windows moved to the days that come.
fn message(name: &str) -> String {
    moved(&file(&format!("tests/messages/{name}.xml")))
}

/// The same with a constraint and a condition of our own language in place of those in an undefined one.
fn evaluable(document: &str) -> String {
    document
        .replace("Duration &lt;= EndTime - StartTime", "ready lt deadline")
        .replace("ActualStart != null", "started ge ready")
        .replace("ActualStart le AgreedStart", "started le planned_start")
}

#[test]
fn every_message_is_answered_or_refused_with_its_place() {
    run(async {
        let (_folder, server) = server_with(&message("m01-template"));
        let client = server.client();
        let mut wrong = Vec::new();
        for (name, status, named) in POSTED {
            let answer = client.post("/agreements", message(name)).await;
            if answer.status.as_u16() != *status || !answer.body.contains(named) {
                wrong.push(format!("{name}: expected {status} and {named}: {answer:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
        // Its constraint cannot be evaluated. It is offered all the same.
        let all = client.get("/templates").await;
        assert_eq!(all.texts("TemplateId"), ["1"], "{all:?}");
        assert!(all.body.contains("wsag:TemplateId=\"1\""), "{all:?}");
    });
}

#[test]
fn a_first_offer_names_its_template_by_id_by_name_or_by_both() {
    run(async {
        let own = |document: &str| {
            document.replace("<wsag:TemplateId>advance-reservation<", "<wsag:TemplateId>own<")
        };
        let template = file("templates/agreements/advance-reservation.xml").replace(
            "wsag:TemplateId=\"advance-reservation\"",
            "wsag:TemplateId=\"own\"",
        );
        let (_folder, server) = server_with(&own(&template));
        let client = server.client();
        let id = negotiation::open(&client).await;
        for (to, state) in [
            ("own", "Advisory"),
            ("advance-reservation", "Advisory"),
            ("own-advance-reservation", "Advisory"),
            ("advance-reservation-own", "Rejected"),
            ("other", "Rejected"),
        ] {
            let said = SentOffer {
                to: to.to_owned(),
                state: "Advisory",
                ..SentOffer::solicited(&format!("to-{to}"), Offer::reserve(1, 60))
            };
            let said = said.replacing("<wsag:TemplateId>advance-reservation<", "<wsag:TemplateId>own<");
            let answers = negotiation::negotiate(&client, id, &[said]).await;
            assert_eq!(answers[0].state, state, "{to}: {answers:?}");
        }
        server.assert_verified();
    });
}

#[test]
fn offers_of_a_template_that_can_be_evaluated_are_answered() {
    run(async {
        let (_folder, server) = server_with(&evaluable(&message("m01-template")));
        let client = server.client();
        let template = client.get("/templates/1").await;
        assert_eq!(template.status.as_u16(), 200, "{template:?}");
        // An offer that comes from a negotiation needs one; without the extension it is an offer of its own.
        let input = evaluable(&message("m03-create-agreement-input"));
        let (before, extension) = input
            .split_once("<wsag-neg:NegotiationExtension")
            .expect("m03 has one");
        let (_, after) = extension
            .split_once("</wsag-neg:NegotiationExtension>")
            .expect("it ends");
        for offer in [
            evaluable(&message("m02-agreement-offer")),
            format!("{before}{after}"),
        ] {
            let id = client.post("/agreements", offer).await.created();
            let shown = client.get(&format!("/agreements/{id}")).await;
            assert_eq!(shown.text("State"), "Observed", "{shown:?}");
        }
        server.assert_verified();
    });
}

#[test]
fn variables_of_service_properties_decide_about_offers_and_guarantees() {
    run(async {
        let properties = "<wsag:ServiceProperties wsag:Name=\"PROPERTIES\" wsag:ServiceName=\"COMPUTE\"><wsag:VariableSet>\
             <wsag:Variable wsag:Name=\"cnt\" wsag:Metric=\"xs:int\"><wsag:Location>//jsdl:TotalResourceCount/jsdl:Exact</wsag:Location>\
             </wsag:Variable><wsag:Variable wsag:Name=\"asked\" wsag:Metric=\"xs:int\"><wsag:Location>//arp:Duration</wsag:Location>\
             </wsag:Variable></wsag:VariableSet></wsag:ServiceProperties><wsag:GuaranteeTerm";
        let with = |document: &str| {
            document
                .replacen("<wsag:GuaranteeTerm", properties, 1)
                .replace("completed le deadline", "cnt ge 5 and asked gt 1")
        };
        let template = with(&file("templates/agreements/advance-reservation.xml")).replace(
            "</wsag:CreationConstraints>",
            "<wsag:Constraint>cnt le 2</wsag:Constraint></wsag:CreationConstraints>",
        );
        let (_folder, server) = server_with(&template);
        let client = server.client();
        let refused = client
            .post("/agreements", with(&Offer::reserve(4, 1).xml()))
            .await;
        assert_eq!(refused.status.as_u16(), 422, "{refused:?}");
        assert!(
            refused.body.contains("the template demands: cnt le 2"),
            "{refused:?}"
        );
        let id = client
            .post("/agreements", with(&Offer::reserve(2, 1).xml()))
            .await
            .created();
        let shown = eventually("an assessed guarantee", Duration::from_mins(1), async || {
            let shown = client.get_json(&format!("/agreements/{id}")).await;
            (shown["guarantees"][0]["state"] != "NotDetermined").then_some(shown)
        })
        .await;
        let guarantee = &shown["guarantees"][0];
        assert_eq!(guarantee["objective"], "nodes ge 5 and 1 gt 1", "{shown}");
        assert_eq!(guarantee["state"], "Violated", "{shown}");
        // Their meaning is the template's.
        let other = with(&Offer::reserve(2, 1).xml()).replace("//arp:Duration", "//jsdl:Exact");
        let refused = client.post("/agreements", other).await;
        assert!(
            refused.text("Path").ends_with("/wsag:ServiceProperties"),
            "{refused:?}"
        );
        server.assert_verified();
    });
}

#[test]
fn a_variable_without_a_metric_that_is_known_does_not_stop_the_start() {
    run(async {
        let properties = "<wsag:ServiceProperties wsag:Name=\"P\" wsag:ServiceName=\"COMPUTE\"><wsag:VariableSet>\
             <wsag:Variable wsag:Name=\"app\"><wsag:Location>//jsdl:ApplicationName</wsag:Location></wsag:Variable>\
             <wsag:Variable wsag:Name=\"speed\" wsag:Metric=\"urn:example:flops\"><wsag:Location>//jsdl:IndividualCPUSpeed\
             </wsag:Location></wsag:Variable></wsag:VariableSet></wsag:ServiceProperties><wsag:GuaranteeTerm";
        let with = |document: &str| document.replacen("<wsag:GuaranteeTerm", properties, 1);
        let (_folder, server) = server_with(&with(&file("templates/agreements/advance-reservation.xml")));
        let client = server.client();
        client
            .post("/agreements", with(&Offer::reserve(1, 60).xml()))
            .await
            .created();
        let flat = json!({"nodes": 1, "durationSeconds": 60});
        client.post_json("/agreements", &flat).await.created();
        server.assert_verified();
    });
}

#[test]
fn a_template_of_which_no_offer_can_be_accepted_is_refused_by_the_check_and_the_start() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let configuration = "[[template]]\nfile = \"wrong.xml\"\n";
    fs::write(folder.path().join("bespeak.toml"), configuration).expect("a file can be written");
    let template = file("templates/agreements/advance-reservation.xml");
    let end = "</wsag:ServiceDescriptionTerm>";
    let start = template.find("<wsag:ServiceDescriptionTerm").expect("a job");
    let job = &template[start..start + template[start..].find(end).expect("its end") + end.len()];
    let penalty = |interval: &str| {
        format!(
            "<wsag:BusinessValueList><wsag:Penalty><wsag:AssessmentInterval>{interval}</wsag:AssessmentInterval>\
             <wsag:ValueUnit>EUR</wsag:ValueUnit><wsag:ValueExpression>1</wsag:ValueExpression></wsag:Penalty>\
             </wsag:BusinessValueList>"
        )
    };
    let provider = "<wsag:ServiceProvider>AgreementResponder</wsag:ServiceProvider>";
    for (part, replacement, why) in [
        (job, String::new(), "needs a jsdl:JobDefinition"),
        (
            provider,
            provider.replace("Responder", "Initiator"),
            "AgreementResponder is expected",
        ),
        (
            provider,
            format!("{provider}<wsag:ExpirationTime>2020-01-01T00:00:00Z</wsag:ExpirationTime>"),
            "its wsag:ExpirationTime is over",
        ),
        (
            "<wsag:BusinessValueList/>",
            penalty("<wsag:Count>2</wsag:Count>"),
            "a Count of 1 is expected",
        ),
        (
            "<wsag:BusinessValueList/>",
            penalty("<wsag:TimeInterval>PT1S</wsag:TimeInterval>"),
            "a TimeInterval of at least a minute",
        ),
    ] {
        let wrong = template.replacen(part, &replacement, 1);
        assert_ne!(template, wrong);
        fs::write(folder.path().join("wrong.xml"), wrong).expect("a file can be written");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bespeak"));
        command.current_dir(&folder).env_remove("BESPEAK_CONFIG");
        let check = output_of(
            command.args(["config", "check", "bespeak.toml"]),
            Duration::from_mins(1),
        );
        let found = String::from_utf8_lossy(&check.stderr).into_owned();
        for (code, found) in [
            (check.status.code(), found),
            serve(&folder, &["--config", "bespeak.toml"]),
        ] {
            assert_eq!(code, Some(2), "{why}: {found}");
            assert!(
                found.contains("wrong.xml") && found.contains(why),
                "{why}: {found}"
            );
        }
    }
    assert!(!template.contains("Importance") && !template.contains("wsag:Preference"));
}

#[test]
fn a_choice_in_a_template_keeps_no_request_from_its_constraints() {
    run(async {
        let template = file("templates/agreements/advance-reservation.xml");
        let start = template.find("<wsag:ServiceDescriptionTerm").expect("a job");
        let end = "</wsag:ServiceDescriptionTerm>";
        let end = start + template[start..].find(end).expect("its end") + end.len();
        let job = &template[start..end];
        let template = format!(
            "{}<wsag:ExactlyOne>{job}{job}</wsag:ExactlyOne>{}",
            &template[..start],
            &template[end..]
        )
        .replace(
            "<wsag:CreationConstraints>",
            "<wsag:CreationConstraints><wsag:Item wsag:Name=\"FEW\"><wsag:Location>//jsdl:TotalResourceCount/jsdl:Exact</wsag:Location>\
             <wsag:ItemConstraint><xs:maxInclusive xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" value=\"4\"/>\
             </wsag:ItemConstraint></wsag:Item>",
        );
        let (_folder, server) = server_with(&template);
        let client = server.client();
        for request in [
            json!({"nodes": 64, "durationSeconds": 60}),
            json!({"nodes": 1, "durationSeconds": 0}),
            json!({"nodes": 1, "durationSeconds": 0, "pending": true}),
        ] {
            let refused = client.post_json("/agreements", &request).await;
            assert_eq!(refused.status.as_u16(), 422, "{request}: {refused:?}");
        }
        let few = json!({"nodes": 4, "durationSeconds": 60});
        client.post_json("/agreements", &few).await.created();
        server.assert_verified();
    });
}

#[test]
fn what_the_published_schemas_allow_is_taken() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let start = hours_ahead(3);
        let offer = Offer {
            run: Some(("sleep", vec!["1".to_owned()])),
            ..Offer::reserve(1, 60)
        };
        let zone = date_time(start);
        let unzoned = zone.trim_end_matches('Z');
        let xsi = "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xsi:type";
        let typed = [
            format!(
                "<wsag:Context {xsi}=\"wsag:AgreementContextType\"><wsag:AgreementInitiator xsi:type=\"xs:string\">me</wsag:AgreementInitiator>"
            ),
            format!("<wsag:CustomServiceLevel {xsi}=\"xs:string\">"),
            format!("<arp:EndTime>{unzoned}</arp:EndTime>"),
        ];
        for (part, replacement) in [
            (" wsag:Obligated=\"ServiceProvider\"", ""),
            ("<wsag:Context>", &typed[0]),
            ("<wsag:Context>", "<wsag:Context xml:lang=\"en\">"),
            ("<wsag:CustomServiceLevel>", &typed[1]),
            ("<arp:Duration>", &(typed[2].clone() + "<arp:Duration>")),
            (
                "<jsdl:JobDescription>",
                "<jsdl:JobDescription x:a=\"1\" xmlns:x=\"urn:x\">",
            ),
            (
                "<jsdl:JobDescription>",
                "<jsdl:JobDescription><jsdl:JobIdentification><jsdl:JobAnnotation>a</jsdl:JobAnnotation><jsdl:JobProject>p</jsdl:JobProject>\
                 <x:of xmlns:x=\"urn:x\"/></jsdl:JobIdentification>",
            ),
            (
                "</jsdl:JobDescription>",
                "</jsdl:JobDescription><x:of xmlns:x=\"urn:x\"/>",
            ),
            (
                "<jsdl:Resources>",
                "<jsdl:Resources><jsdl:ExclusiveExecution>true</jsdl:ExclusiveExecution><jsdl:OperatingSystem><jsdl:OperatingSystemType>\
                 <jsdl:OperatingSystemName>LINUX</jsdl:OperatingSystemName></jsdl:OperatingSystemType></jsdl:OperatingSystem>",
            ),
            (
                "</jsdl-posix:POSIXApplication>",
                "<jsdl-posix:Output>out</jsdl-posix:Output><jsdl-posix:Error>err</jsdl-posix:Error>\
                 <jsdl-posix:WallTimeLimit>60</jsdl-posix:WallTimeLimit></jsdl-posix:POSIXApplication>",
            ),
        ] {
            let sent = offer.xml().replace(part, replacement);
            assert_ne!(sent, offer.xml(), "{part}");
            let id = client.post("/agreements", sent).await.created();
            client.get(&format!("/agreements/{id}")).await;
        }
        // The limit is the length of the slot where nothing else says it.
        let limited = |limit: &str| {
            let limit = format!(
                "<jsdl-posix:WallTimeLimit>{limit}</jsdl-posix:WallTimeLimit></jsdl-posix:POSIXApplication>"
            );
            offer.xml().replace("</jsdl-posix:POSIXApplication>", &limit)
        };
        let without = limited("+90").replace("<arp:Duration>60</arp:Duration>", "");
        let id = client.post("/agreements", without).await.created();
        let shown = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(shown["durationSeconds"], 90, "{shown}");
        let refused = client.post("/agreements", limited("59")).await;
        assert!(
            refused.text("Path").ends_with("/jsdl-posix:WallTimeLimit"),
            "{refused:?}"
        );

        let negotiation = negotiation::open(&client).await;
        let mut said = SentOffer::solicited("without", offer.within(start, start + 3_600));
        said.demands = "<wsag-neg:Item wsag-neg:Type=\"Optional\"><wsag:Location>//jsdl:Exact</wsag:Location><wsag:ItemConstraint/>\
                        </wsag-neg:Item><wsag:Constraint>nodes le 1</wsag:Constraint>"
            .to_owned();
        let input = negotiation::message("NegotiateInput", &[said])
            .replace("wsag-neg:OfferId=\"without\"", "wsag:AgreementId=\"urn:of-mine\"");
        let answer = client
            .post(&format!("/negotiations/{negotiation}/offers"), input)
            .await;
        let counter = counters(&answer).remove(0);
        assert_eq!(counter.state, "Acceptable", "{answer:?}");
        // It was given an id, by which it is seen and was answered.
        let all = client.get(&format!("/negotiations/{negotiation}")).await;
        let answered = counter.text("CounterOfferTo");
        assert!(all.body.contains(&format!("OfferId=\"{answered}\"")), "{all:?}");
        let initiator = "<wsag-neg:InitiatorNegotiationEPR x:a=\"1\" xmlns:x=\"urn:x\"><wsa:Address>http://localhost/mine</wsa:Address>\
                         </wsag-neg:InitiatorNegotiationEPR><wsag-neg:NegotiationOfferContext><wsag-neg:CounterOfferTo>";
        let accepted = counter
            .acceptance()
            .replace(
                "<wsag-neg:NegotiationOfferContext><wsag-neg:CounterOfferTo>",
                initiator,
            )
            .replace(
                "</wsag-neg:NegotiationExtension>",
                "<x:of xmlns:x=\"urn:x\"/></wsag-neg:NegotiationExtension>",
            );
        client.post("/agreements", accepted).await.created();
        server.assert_verified();
    });
}

#[test]
fn the_first_offer_is_accepted_and_terminated_by_the_messages_as_they_stand() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = client
            .post("/agreements", message("o01-offer-sleep"))
            .await
            .created();
        let answer = client
            .post(
                &format!("/agreements/{id}/terminate"),
                message("m08-terminate-input"),
            )
            .await;
        assert_eq!(answer.status.as_u16(), 200, "{answer:?}");
        let id = client
            .post("/agreements", message("o01-offer-sleep"))
            .await
            .created();
        for name in [
            "negative/bad-terminate-empty",
            "m17-negotiation-terminate-input",
            "m02-agreement-offer",
        ] {
            let answer = client
                .post(&format!("/agreements/{id}/terminate"), message(name))
                .await;
            assert_eq!(answer.status.as_u16(), 422, "{name}: {answer:?}");
        }
    });
}

#[test]
fn every_message_is_in_the_table() {
    let listed: BTreeSet<String> = POSTED
        .iter()
        .map(|(message, ..)| format!("{message}.xml"))
        .collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages");
    let names = |sub: &str| -> Vec<String> {
        let entries = fs::read_dir(format!("{folder}/{sub}"))
            .expect("the messages")
            .flatten();
        entries
            .filter(|entry| entry.path().is_file())
            .filter_map(|entry| Some(format!("{sub}{}", entry.file_name().to_str()?)))
            .collect()
    };
    let there: BTreeSet<String> = names("").into_iter().chain(names("negative/")).collect();
    assert_eq!(listed, there);
}

/// A name stands in every list, on every page and on terminals, for agreements of every party.
#[test]
fn a_name_is_one_line_of_a_bounded_length() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let named = |name: &str| file("examples/sleep.xml").replace("two-seconds", name);
        client
            .post("/agreements", named(&"é".repeat(200)))
            .await
            .created();
        for name in [
            "é".repeat(201),
            "two&#10;lines".to_owned(),
            "&#x9b;31m".to_owned(),
        ] {
            let answer = client.post("/agreements", named(&name)).await;
            assert_eq!(answer.status.as_u16(), 422, "{name}: {answer:?}");
            assert!(answer.text("Path").ends_with("/wsag:Name"), "{name}: {answer:?}");
        }
    });
}
