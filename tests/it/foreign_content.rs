//! Foreign content of a requester, which answers repeat: it is checked as far as the published schemas look into it, so that no answer
//! of the service is invalid for it. The client of the tests holds each answer against them.

use reqwest::StatusCode;

use crate::negotiations::opening;
use crate::support::client::Answer;
use crate::support::negotiation::{SentOffer, message, open};
use crate::support::offers::Offer;
use crate::support::run;
use crate::support::server::Server;

/// Declarations for what is put into an offer.
const DECLARED: &str = "xmlns:x=\"urn:x\" xmlns:wsa=\"http://www.w3.org/2005/08/addressing\" \
    xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xmlns:jsdl=\"http://schemas.ggf.org/jsdl/2005/11/jsdl\" xmlns:bsp=\"urn:bespeak:terms:1\"";

/// An offer with other words somewhere.
fn offer(from: &str, to: &str) -> String {
    let offer = Offer::reserve(1, 60).xml();
    let declared = offer.replacen(
        "<wsag:AgreementOffer ",
        &format!("<wsag:AgreementOffer {DECLARED} "),
        1,
    );
    let changed = declared.replacen(from, to, 1);
    assert_ne!(declared, changed, "{from}");
    changed
}

/// An offer with this at the end of its context.
fn described(what: &str) -> String {
    offer("</wsag:Context>", &format!("{what}</wsag:Context>"))
}

/// An offer from this initiator.
fn initiated(by: &str) -> String {
    offer(
        "<wsag:Context>",
        &format!("<wsag:Context><wsag:AgreementInitiator>{by}</wsag:AgreementInitiator>"),
    )
}

fn assert_refused_at(end: &str, refused: &Answer) {
    assert!(refused.text("Path").ends_with(end), "{refused:?}");
}

#[test]
fn foreign_content_that_would_make_answers_invalid_is_refused_with_its_path() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let context = "/wsag:AgreementOffer/wsag:Context";
        let address = |text: &str| {
            format!("<wsa:EndpointReference><wsa:Address>{text}</wsa:Address></wsa:EndpointReference>")
        };
        for (wrong, path) in [
            (described("<wsa:EndpointReference/>"), "/wsa:EndpointReference"),
            (
                described("<wsa:EndpointReference><x:a/></wsa:EndpointReference>"),
                "/wsa:EndpointReference/x:a",
            ),
            (
                described(&address("http://[")),
                "/wsa:EndpointReference/wsa:Address",
            ),
            (described(&address("a%zz")), "/wsa:EndpointReference/wsa:Address"),
            (
                initiated("<wsa:EndpointReference/>"),
                "/wsag:AgreementInitiator/wsa:EndpointReference",
            ),
            (
                described("<x:a><x:b><wsa:EndpointReference/></x:b></x:a>"),
                "/x:a/x:b/wsa:EndpointReference",
            ),
            (described("<jsdl:JobDefinition/>"), "/jsdl:JobDefinition"),
            (
                described("<bsp:Scheduling><x:a/></bsp:Scheduling>"),
                "/bsp:Scheduling",
            ),
            (described("<xs:element/>"), "/xs:element"),
            (
                described("<x:a><wsag:Terms><x:a/></wsag:Terms></x:a>"),
                "/x:a/wsag:Terms",
            ),
            (described("<x:a xml:lang=\"no language\"/>"), "/x:a/@lang"),
            (described("<x:a xml:space=\"some\"/>"), "/x:a/@space"),
            (described("<x:a xsi:nil=\"maybe\"/>"), "/x:a/@nil"),
            (described("<x:a xml:id=\"i\"/>"), "/x:a/@id"),
            (
                described(&address("a").replacen('>', " xml:id=\"i\">", 1)),
                "/wsa:EndpointReference/@id",
            ),
            (
                initiated(&address("a").replacen("Address>", "Address xml:id=\"i\">", 1)),
                "/wsag:AgreementInitiator/wsa:EndpointReference/wsa:Address/@id",
            ),
            (offer("<wsag:Context>", "<wsag:Context x:a=\"1\">"), "/@a"),
            (
                offer("<wsag:Context>", "<wsag:Context xml:lang=\"no language\">"),
                "/@lang",
            ),
        ] {
            let refused = client.post("/agreements", wrong).await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{path}: {refused:?}"
            );
            assert_eq!(refused.text("Path"), format!("{context}{path}"));
        }
        let refused = client
            .post(
                "/agreements",
                offer(
                    "<wsag:ServiceScope wsag:ServiceName=\"COMPUTE\"/>",
                    "<wsag:ServiceScope wsag:ServiceName=\"COMPUTE\"><wsa:EndpointReference/></wsag:ServiceScope>",
                ),
            )
            .await;
        assert_refused_at("/wsag:ServiceScope/wsa:EndpointReference", &refused);
        let identified =
            "<jsdl:JobDescription><jsdl:JobIdentification><wsa:EndpointReference/></jsdl:JobIdentification>";
        let refused = client
            .post("/agreements", offer("<jsdl:JobDescription>", identified))
            .await;
        assert_refused_at("/jsdl:JobIdentification/wsa:EndpointReference", &refused);
        let opened = opening().replacen(
            "</wsag-neg:NegotiationContext>",
            "<wsa:EndpointReference xmlns:wsa=\"http://www.w3.org/2005/08/addressing\"/></wsag-neg:NegotiationContext>",
            1,
        );
        let refused = client.post("/negotiations", opened).await;
        assert_refused_at("/wsag-neg:NegotiationContext/wsa:EndpointReference", &refused);
    });
}

#[test]
fn foreign_content_is_taken_and_repeated_where_the_schemas_have_a_wildcard() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let endpoint = "<wsa:EndpointReference x:a=\"1\"><wsa:Address x:b=\"2\">http://a.example/?b=c#d</wsa:Address>\
             <wsa:ReferenceParameters><x:a wsa:IsReferenceParameter=\"1\"/></wsa:ReferenceParameters>\
             <wsa:Metadata><x:a/></wsa:Metadata><x:a/></wsa:EndpointReference>";
        for right in [
            described(endpoint),
            described(&format!(
                "<x:a x:b=\"1\" c=\"2\" xml:lang=\"en-GB\" xml:space=\"preserve\">a<x:b/>{endpoint}</x:a>"
            )),
            initiated(&format!("a{endpoint}<none xmlns=\"\"/>")),
            offer(
                "<wsag:Context>",
                "<wsag:Context xml:lang=\"\" xml:space=\"default\" xml:base=\"http://a.example/\" xml:id=\"i\">",
            ),
            offer(
                "<wsag:CustomServiceLevel>",
                "<wsag:CustomServiceLevel x:a=\"1\" xml:lang=\"en\">",
            ),
            offer(
                "<jsdl:JobDescription>",
                &format!(
                    "<jsdl:JobDescription xml:lang=\"en\"><jsdl:JobIdentification>{endpoint}<x:a/></jsdl:JobIdentification>"
                ),
            ),
        ] {
            let id = client.post("/agreements", right).await.created();
            for part in ["", "/context", "/terms"] {
                let shown = client.get(&format!("/agreements/{id}{part}")).await;
                assert_eq!(shown.status, StatusCode::OK, "{shown:?}");
            }
        }
        server.assert_verified();
    });
}

#[test]
fn an_element_names_its_own_type_and_no_other() {
    run(async {
        let server = Server::local();
        let client = server.client();
        for (element, own, others) in [
            (
                "wsag:AgreementOffer",
                "wsag:AgreementType",
                &["wsag:AgreementTemplateType", "xs:string"][..],
            ),
            (
                "wsag:Context",
                "wsag:AgreementContextType",
                &["wsag:AgreementType", "xs:string", "x:Type"],
            ),
            (
                "wsag:ServiceProvider",
                "wsag:AgreementRoleType",
                &["xs:string", "wsag:ServiceRoleType"],
            ),
            (
                "wsag:TemplateId",
                "xs:string",
                &["xs:token", "wsag:AgreementType"],
            ),
            ("wsag:Terms", "wsag:TermTreeType", &["wsag:TermCompositorType"]),
            (
                "wsag:GuaranteeTerm",
                "wsag:GuaranteeTermType",
                &["wsag:ServiceDescriptionTermType", "wsag:TermType"],
            ),
            (
                "wsag:CustomServiceLevel",
                "xs:string",
                &["wsag:AgreementType", "xs:int"],
            ),
            ("jsdl:Resources", "jsdl:Resources_Type", &["jsdl:RangeValue_Type"]),
            (
                "jsdl:TotalResourceCount",
                "jsdl:RangeValue_Type",
                &["jsdl:TotalResourceCount_Type"],
            ),
            (
                "arp:Duration",
                "xs:int",
                &["xs:string", "arp:AllocationTimeConstraintType"],
            ),
        ] {
            let typed =
                |kind: &str| offer(&format!("<{element}"), &format!("<{element} xsi:type=\"{kind}\""));
            let id = client.post("/agreements", typed(own)).await.created();
            client.get(&format!("/agreements/{id}")).await;
            for other in others {
                let refused = client.post("/agreements", typed(other)).await;
                assert_eq!(
                    refused.status,
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "{element}: {other}: {refused:?}"
                );
                let path = refused.text("Path");
                assert!(
                    path.ends_with(&format!("/{element}/@type")),
                    "{element}: {other}: {path}"
                );
            }
        }
    });
}

#[test]
fn a_constraint_of_a_requester_is_said_in_nothing_but_what_is_read_of_it() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let demanding = |constraint: &str| {
            let mut said = SentOffer::solicited("a", Offer::reserve(1, 60));
            said.demands = format!(
                "<wsag-neg:Item wsag-neg:Type=\"Optional\"><wsag:Location>//jsdl:Exact</wsag:Location>\
                 <wsag:ItemConstraint>{constraint}</wsag:ItemConstraint></wsag-neg:Item>"
            );
            message("NegotiateInput", &[said])
        };
        let path = format!("/negotiations/{id}/offers");
        for (wrong, below) in [
            (
                "<xs:maxInclusive value=\"4\" extra=\"1\"/>",
                "/xs:maxInclusive/@extra",
            ),
            (
                "<xs:maxInclusive value=\"4\">text</xs:maxInclusive>",
                "/xs:maxInclusive",
            ),
            (
                "<xs:maxInclusive value=\"4\"/><xs:annotation><a/></xs:annotation>",
                "/xs:annotation",
            ),
        ] {
            let refused = client.post(&path, demanding(wrong)).await;
            assert_eq!(
                refused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{wrong}: {refused:?}"
            );
            let found = refused.text("Path");
            assert!(
                found.ends_with(&format!("/wsag:ItemConstraint{below}")),
                "{wrong}: {found}"
            );
        }
        let taken = client
            .post(&path, demanding("<xs:maxInclusive value=\"4\"/>"))
            .await;
        assert_eq!(taken.status, StatusCode::OK, "{taken:?}");
        client.get(&format!("/negotiations/{id}")).await;
    });
}
