//! Templates and offers of other systems: types by their names, time constraints in another language, and terms in languages that
//! are not known here.

use std::fs;

use serde_json::json;
use tempfile::TempDir;
use wsag::languages::WSAG4J;

use crate::support::client::Client;
use crate::support::negotiation::{SentOffer, negotiate, open};
use crate::support::offers::{Offer, date_time, file, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

const HOUR: i64 = 3_600;

/// A service with four nodes, with a template in place of the built-in one if one is given.
fn server(template: Option<&str>) -> (TempDir, Server) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("template.xml");
    let named = template.map_or_else(String::new, |template| {
        fs::write(&path, template).expect("a file can be written");
        format!("[[template]]\nfile = \"{}\"\n", path.display())
    });
    let configuration = format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\ncpu_architecture = \"x86_64\"\n\n{named}"
    );
    let server = Server::configured(None, &configuration);
    (folder, server)
}

/// A document with its time constraints in WSAG4J's language.
fn translated(document: &str) -> String {
    document
        .replace("arp:AllocationTimeConstraint", "wsag4jt:TimeConstraint")
        .replace("arp:", "wsag4jt:")
        .replace(
            "xmlns:arp=\"http://www.ogf.org/graap/AR/2009/04/\"",
            &format!("xmlns:wsag4jt=\"{WSAG4J}\""),
        )
}

/// The part of a document from the first start of a tag to the end of the element.
fn element<'d>(document: &'d str, tag: &str, end: &str) -> &'d str {
    let start = document
        .find(tag)
        .unwrap_or_else(|| panic!("no {tag} in {document}"));
    let length = document[start..].find(end).expect("its end") + end.len();
    &document[start..start + length]
}

/// The offer's status and the path of its first violation.
async fn refused(client: &Client, offer: String) -> (u16, String) {
    let answer = client.post("/agreements", offer).await;
    (answer.status.as_u16(), answer.text("Path").to_owned())
}

#[test]
fn a_template_names_types_of_the_published_schemas_and_offers_are_held_to_them() {
    run(async {
        let items = "<wsag:Item wsag:Name=\"role\"><wsag:Location>//wsag:ServiceProvider</wsag:Location><wsag:ItemConstraint>\
             <xs:simpleType><xs:restriction base=\"wsag:AgreementRoleType\"/></xs:simpleType></wsag:ItemConstraint></wsag:Item>\
             <wsag:Item wsag:Name=\"description\"><wsag:Location>//jsdl:JobDefinition</wsag:Location><wsag:ItemConstraint>\
             <xs:sequence><xs:element name=\"JobDescription\" type=\"jsdl:JobDescription_Type\"/></xs:sequence>\
             </wsag:ItemConstraint></wsag:Item>\
             <wsag:Item wsag:Name=\"architecture\"><wsag:Location>//jsdl:CPUArchitectureName</wsag:Location><wsag:ItemConstraint>\
             <xs:simpleType><xs:restriction base=\"jsdl:ProcessorArchitectureEnumeration\"><xs:enumeration value=\"x86_64\"/>\
             </xs:restriction></xs:simpleType></wsag:ItemConstraint></wsag:Item>\
             <wsag:Item wsag:Name=\"size\"><wsag:Location>//jsdl:JobDescription/jsdl:Resources</wsag:Location><wsag:ItemConstraint>\
             <xs:sequence><xs:element ref=\"jsdl:CPUArchitecture\" minOccurs=\"0\"/>\
             <xs:element name=\"TotalResourceCount\" type=\"jsdl:RangeValue_Type\" minOccurs=\"0\"/></xs:sequence>\
             </wsag:ItemConstraint></wsag:Item>";
        let template = file("templates/agreements/advance-reservation.xml").replace(
            "<wsag:CreationConstraints>",
            &format!("<wsag:CreationConstraints>{items}"),
        );
        let (_folder, server) = server(Some(&template));
        let client = server.client();
        let on = |architecture: &str| {
            Offer::reserve(1, 60).xml().replace(
                "<jsdl:Resources>",
                &format!(
                    "<jsdl:Resources><jsdl:CPUArchitecture><jsdl:CPUArchitectureName>{architecture}</jsdl:CPUArchitectureName>\
                     </jsdl:CPUArchitecture>"
                ),
            )
        };
        client.post("/agreements", on("x86_64")).await.created();
        let (status, path) = refused(&client, on("arm")).await;
        assert_eq!(status, 422);
        assert!(path.ends_with("/jsdl:CPUArchitectureName"), "{path}");
        let all = client.get("/templates").await;
        assert!(all.body.contains("jsdl:JobDescription_Type"), "{all:?}");
        server.assert_verified();
    });
}

#[test]
fn a_time_constraint_of_another_language_means_what_ours_does() {
    run(async {
        let (_folder, server) = server(None);
        let client = server.client();
        let start = hours_ahead(3);
        let asked = Offer::reserve(2, HOUR).within(start, start + 2 * HOUR);
        let theirs = translated(&asked.xml());
        let id = client.post("/agreements", theirs.as_str()).await.created();
        // It shows the words of the requester, and a slot in its window.
        let shown = client.get(&format!("/agreements/{id}")).await;
        let words = element(&theirs, "<wsag4jt:TimeConstraint", "</wsag4jt:TimeConstraint>");
        assert!(shown.body.contains(words), "{shown:?}");
        let view = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(view["plannedStart"], date_time(start).as_str(), "{view}");
        assert_eq!(view["durationSeconds"], HOUR, "{view}");
        assert_eq!(view["deadline"], date_time(start + 2 * HOUR).as_str(), "{view}");
        let terms = client.get_json(&format!("/agreements/{id}/terms")).await;
        let time = terms["terms"].as_array().into_iter().flatten();
        let time: Vec<_> = time.filter(|term| term["kind"] == "time").collect();
        assert_eq!(time.len(), 1, "{terms}");
        assert_eq!(time[0]["durationSeconds"], HOUR, "{terms}");
        // What is wrong is told in its own words: of the window, and of the template, which speaks of ours.
        let path = "/wsag:ServiceDescriptionTerm[2]/wsag4jt:TimeConstraint/wsag4jt:";
        for (offer, part) in [
            (asked.clone().within(start, start + HOUR / 2), "EndTime"),
            (Offer::reserve(1, 31_536_001), "Duration"),
        ] {
            let (status, found) = refused(&client, translated(&offer.xml())).await;
            assert_eq!(status, 422);
            assert!(found.ends_with(&format!("{path}{part}")), "{found}");
        }
        server.assert_verified();
    });
}

#[test]
fn negotiation_and_templates_keep_to_the_language_in_which_they_say_when() {
    run(async {
        let template = translated(&file("templates/agreements/advance-reservation.xml"));
        let (_folder, server) = server(Some(&template));
        let client = server.client();
        // A counter offer is in the language of the offer, and so is the agreement.
        let start = hours_ahead(3);
        let block = Offer::reserve(4, HOUR).within(start, start + HOUR).xml();
        client.post("/agreements", translated(&block)).await.created();
        let negotiation = open(&client).await;
        let latest = format!(
            "<wsag-neg:Item wsag:Name=\"after\" wsag-neg:Type=\"Required\"><wsag:Location xmlns:t=\"{WSAG4J}\">\
             //t:TimeConstraint/t:StartTime</wsag:Location><wsag:ItemConstraint><xs:minInclusive value=\"{}\"/>\
             </wsag:ItemConstraint></wsag-neg:Item>",
            date_time(start + HOUR)
        );
        let asked = SentOffer {
            demands: latest,
            ..SentOffer::solicited("c-1", Offer::reserve(1, HOUR).within(start, start + HOUR))
        };
        let asked = asked
            .replacing("arp:AllocationTimeConstraint", "wsag4jt:TimeConstraint")
            .replacing("arp:", "wsag4jt:")
            .replacing(
                "xmlns:arp=\"http://www.ogf.org/graap/AR/2009/04/\"",
                &format!("xmlns:wsag4jt=\"{WSAG4J}\""),
            );
        let answers = negotiate(&client, negotiation, &[asked]).await;
        let later = answers.first().expect("an answer");
        assert_eq!(
            (later.state.as_str(), later.text("Kind")),
            ("Acceptable", "Later"),
            "{later:?}"
        );
        assert_eq!(later.text("StartTime"), date_time(start + HOUR), "{later:?}");
        let (said, _) = later
            .xml
            .split_once("<wsag-neg:NegotiationOfferContext>")
            .expect("its context");
        assert!(
            said.contains(WSAG4J) && !said.contains("AllocationTimeConstraint"),
            "{later:?}"
        );
        let id = client.post("/agreements", later.acceptance()).await.created();
        let shown = client.get(&format!("/agreements/{id}/terms")).await;
        let words = element(&later.xml, "<TimeConstraint", "</TimeConstraint>");
        assert!(shown.body.contains(words), "{shown:?}");
        // A flat request fills the template's own terms.
        let flat = json!({"nodes": 1, "durationSeconds": 120});
        let id = client.post_json("/agreements", &flat).await.created();
        let shown = client.get(&format!("/agreements/{id}/terms")).await;
        assert!(
            shown.body.contains(&format!(
                "<TimeConstraint xmlns=\"{WSAG4J}\"><Duration>120</Duration>"
            )),
            "{shown:?}"
        );
        // Its constraints hold of an offer in our language, too.
        let (status, path) = refused(&client, Offer::reserve(1, 31_536_001).xml()).await;
        assert_eq!(status, 422);
        assert!(path.ends_with("/arp:Duration"), "{path}");
        server.assert_verified();
    });
}

/// A term of a language that the service does not know. What stands in it would be wrong in an offer.
const COLOURS: &str = "<c:Colours xmlns:c=\"urn:example:colours\"  shade = 'light'><!-- as it is --><c:Colour>none</c:Colour></c:Colours>";

fn with_term(document: &str, name: &str, content: &str) -> String {
    document.replacen(
        "<wsag:GuaranteeTerm",
        &format!(
            "<wsag:ServiceDescriptionTerm wsag:Name=\"{name}\" wsag:ServiceName=\"COMPUTE\">{content}\
             </wsag:ServiceDescriptionTerm><wsag:GuaranteeTerm"
        ),
        1,
    )
}

#[test]
fn terms_of_unknown_languages_are_kept_word_for_word_where_the_template_has_them_and_refused_elsewhere() {
    run(async {
        let template = file("templates/agreements/advance-reservation.xml").replace(
            "<xs:enumeration value=\"SCHEDULING\"/>",
            "<xs:enumeration value=\"SCHEDULING\"/><xs:enumeration value=\"LOOKS\"/><xs:enumeration value=\"OTHER\"/>",
        );
        let declared = "<c:Colours xmlns:c=\"urn:example:colours\"/>";
        let (_folder, server) = server(Some(&with_term(&template, "LOOKS", declared)));
        let client = server.client();
        let offer = Offer::reserve(1, 60).xml();
        let id = client
            .post("/agreements", with_term(&offer, "LOOKS", COLOURS))
            .await
            .created();
        for part in ["", "/terms"] {
            let shown = client.get(&format!("/agreements/{id}{part}")).await;
            assert!(shown.body.contains(COLOURS), "{shown:?}");
        }
        let terms = client.get_json(&format!("/agreements/{id}/terms")).await;
        let other = terms["terms"].as_array().into_iter().flatten();
        let other: Vec<_> = other.filter(|term| term["kind"] == "other").collect();
        assert_eq!(
            other,
            [&json!({
                "kind": "other", "name": "LOOKS", "serviceName": "COMPUTE", "namespace": "urn:example:colours",
                "element": "Colours", "xml": COLOURS
            })],
            "{terms}"
        );
        // An offer may leave it out. One in a negotiation keeps it, and so does what is accepted.
        client.post("/agreements", offer.as_str()).await.created();
        let negotiation = open(&client).await;
        let asked = SentOffer::solicited("c-1", Offer::reserve(1, 60)).replacing(
            "<wsag:GuaranteeTerm",
            &with_term("<wsag:GuaranteeTerm", "LOOKS", COLOURS),
        );
        let answers = negotiate(&client, negotiation, &[asked]).await;
        assert_eq!(answers[0].state, "Acceptable", "{answers:?}");
        assert!(answers[0].xml.contains(COLOURS), "{answers:?}");
        let id = client
            .post("/agreements", answers[0].acceptance())
            .await
            .created();
        let shown = client.get(&format!("/agreements/{id}/terms")).await;
        assert!(shown.body.contains(COLOURS), "{shown:?}");
        // Under another name, another element, and what no template has.
        for (name, content, place) in [
            ("OTHER", COLOURS, "c:Colours"),
            (
                "LOOKS",
                "<c:Colour xmlns:c=\"urn:example:colours\">red</c:Colour>",
                "c:Colour",
            ),
            ("LOOKS", "<z:foo xmlns:z=\"urn:z\"/>", "z:foo"),
        ] {
            let (status, path) = refused(&client, with_term(&offer, name, content)).await;
            assert_eq!(status, 422);
            let place = format!("/wsag:ServiceDescriptionTerm[3]/{place}");
            assert!(path.ends_with(&place), "{place}: {path}");
        }
        server.assert_verified();
    });
}

#[test]
fn a_variable_in_another_language_is_bound_in_an_offer_that_came_in_json() {
    run(async {
        let variable = format!(
            "<wsag:ServiceProperties wsag:Name=\"P\" wsag:ServiceName=\"COMPUTE\"><wsag:VariableSet><wsag:Variable \
             wsag:Name=\"begun\"><wsag:Location>declare namespace w='{WSAG4J}'; //wsag:ServiceTermState/w:StartTime\
             </wsag:Location></wsag:Variable></wsag:VariableSet></wsag:ServiceProperties><wsag:GuaranteeTerm"
        );
        let template = file("templates/agreements/advance-reservation.xml")
            .replacen("<wsag:GuaranteeTerm", &variable, 1)
            .replace("completed le deadline", "begun le deadline");
        let (_folder, server) = server(Some(&template));
        let client = server.client();
        let flat = json!({"nodes": 1, "durationSeconds": 120});
        let id = client.post_json("/agreements", &flat).await.created();
        let terms = client.get_json(&format!("/agreements/{id}/terms")).await;
        let guarantee = terms["terms"].as_array().into_iter().flatten();
        let guarantee: Vec<_> = guarantee.filter(|term| term["kind"] == "guarantee").collect();
        assert_eq!(guarantee.len(), 1, "{terms}");
        server.assert_verified();
    });
}

#[test]
fn a_guarantee_with_content_of_another_language_is_that_of_the_template_in_any_writing() {
    run(async {
        let valued = |document: &str, worth: &str| {
            document.replace(
                "<wsag:BusinessValueList/>",
                &format!(
                    "<wsag:BusinessValueList><wsag:CustomBusinessValue>{worth}</wsag:CustomBusinessValue>\
                     </wsag:BusinessValueList>"
                ),
            )
        };
        let template = file("templates/agreements/advance-reservation.xml");
        let worth = "<w:Worth xmlns:w=\"urn:example:worth\" kind=\"x\" of=\"y\"><w:Sum>1</w:Sum></w:Worth>";
        let (_folder, server) = server(Some(&valued(&template, worth)));
        let client = server.client();
        let offer = Offer::reserve(1, 60).xml();
        let written = "<Worth xmlns=\"urn:example:worth\" of=\"y\" kind=\"x\">\n  <Sum>1</Sum>\n</Worth>";
        for same in [worth, written] {
            client.post("/agreements", valued(&offer, same)).await.created();
        }
        for other in [
            worth.replace(">1<", ">2<"),
            worth.replace("kind=\"x\"", "kind=\"z\""),
        ] {
            let (status, path) = refused(&client, valued(&offer, &other)).await;
            assert_eq!(status, 422, "{other}");
            assert!(path.ends_with("/wsag:GuaranteeTerm"), "{path}");
        }
    });
}
