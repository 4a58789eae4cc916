//! What was agreed: the same in JSON as in XML, term by term.

use serde_json::{Map, Value, json};
use wsag::budget::write_amount;
use wsag::job_definition::{FilterKind, JobDefinition, RangeValue};
use wsag::scheduling::{Moldability, Scheduling};
use wsag::terms::{ServiceDescription, Term};
use wsag::{Document, Message, NamedValue};

use crate::support::client::Client;
use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::random::Random;
use crate::support::run;
use crate::support::server::Server;

/// Requests that are generated.
const REQUESTS: usize = 40;

/// A resource whose nodes have attributes that requests may ask for.
const CONFIGURATION: &str = r#"
[[resource]]
name = "local"
kind = "local"
nodes = 4
cpus = 8
gpus = 4
memory_bytes = 64000000000
disk_bytes = 1000000000
cpu_architecture = "x86_64"
"#;

/// The attributes of nodes that requests ask for, by the ranges of documents that measure them.
const ATTRIBUTES: [(FilterKind, &str, &str); 5] = [
    (FilterKind::IndividualCpuCount, "cpus", "node"),
    (FilterKind::IndividualGpuCount, "gpus", "node"),
    (FilterKind::IndividualPhysicalMemory, "memory_bytes", "node"),
    (FilterKind::IndividualDiskSpace, "disk_bytes", "node"),
    (FilterKind::TotalCpuCount, "cpus", "total"),
];

/// A request in JSON that can be had, with a window of its own.
fn request(random: &mut Random, number: usize) -> Value {
    let start = hours_ahead(3) + 7_200 * i64::try_from(number).expect("few");
    let sizes = [json!(1), json!(3), json!(2.0), json!({ "min": 1, "max": 4 })];
    let nodes = random.choose(&sizes).expect("there are some");
    let mut request = json!({
        "name": format!("request {number}"),
        "nodes": nodes,
        "durationSeconds": 60 + random.seconds(600),
        "window": { "start": date_time(start), "end": date_time(start + 3_600) },
    });
    let mut say = |member: &str, value: Value| request[member] = value;
    if random.below(2) == 0 {
        say("application", json!("sleep"));
        say("arguments", json!([random.below(9).to_string()]));
    }
    let mut attributes = Map::new();
    for (name, most) in [
        ("cpus", 8),
        ("gpus", 4),
        ("memory_bytes", 64_000_000_000_u64),
        ("disk_bytes", 1_000_000_000),
    ] {
        if random.below(3) == 0 {
            attributes.insert(name.to_owned(), json!(most - u64::from(random.below(2) == 0)));
        }
    }
    if random.below(3) == 0 {
        attributes.insert("cpu_architecture".to_owned(), json!("x86_64"));
    }
    if !attributes.is_empty() {
        say("attributes", attributes.into());
    }
    for (member, value) in [
        ("maxDeviation", json!(0.25)),
        ("fixAt", json!(0.5)),
        ("weights", json!({ "start": 1.0, "price": 2.5 })),
        ("budget", json!({ "amount": "12.5", "currency": "EUR" })),
        ("resource", json!("local")),
        ("mayChange", json!({ "sizes": true, "cuts": false })),
    ] {
        if random.below(4) == 0 {
            say(member, value);
        }
    }
    request
}

/// The terms in the document of an agreement.
fn terms_in_document(properties: &str) -> Vec<Term> {
    let part = |name: &str| {
        let start = properties.find(&format!("<wsag:{name}")).expect("it begins");
        let end = format!("</wsag:{name}>");
        let length = properties[start..].find(&end).expect("it ends") + end.len();
        &properties[start..start + length]
    };
    let offer = format!(
        "<wsag:AgreementOffer xmlns:wsag=\"{}\">{}{}</wsag:AgreementOffer>",
        wsag::ns::WSAG,
        part("Context"),
        part("Terms")
    );
    let document = Document::parse(offer.as_bytes()).unwrap_or_else(|why| panic!("{why}: {offer}"));
    match wsag::read(&document) {
        Ok(Message::AgreementOffer(offer)) => offer.terms.flatten().into_iter().cloned().collect(),
        other => panic!("{other:?}: {offer}"),
    }
}

/// A term of a document as JSON shows it.
fn term_in_json(term: &Term) -> Value {
    let description = match term {
        Term::ServiceDescription(description) => description,
        Term::Guarantee(term) => {
            let services: Vec<_> = term
                .scopes
                .iter()
                .filter_map(|scope| scope.service_name.clone())
                .collect();
            return json!({
                "kind": "guarantee",
                "name": term.name,
                "obligated": term.obligated.name(),
                "services": services,
                "kpiName": term.objective.kpi_name,
                "objective": term.objective.level.text,
            });
        }
        other => panic!("{other:?} was in no request"),
    };
    let mut members = match &description.content {
        ServiceDescription::JobDefinition(job) => job_in_json(job),
        ServiceDescription::AllocationTime(time) => json!({
            "kind": "time",
            "start": time.start.map(|at| at.to_string()),
            "end": time.end.map(|at| at.to_string()),
            "durationSeconds": time.duration,
        }),
        ServiceDescription::Scheduling(scheduling) => scheduling_in_json(scheduling),
        ServiceDescription::Other(other) => panic!("{other:?} was in no request"),
    };
    members["name"] = json!(description.name);
    members["serviceName"] = json!(description.service_name);
    members
}

fn job_in_json(job: &JobDefinition) -> Value {
    let (mut attributes, mut conditions) = (Map::new(), Vec::new());
    if let Some(name) = &job.resources.cpu_architecture {
        attributes.insert("cpu_architecture".to_owned(), json!(name));
    }
    for filter in &job.resources.filters {
        let (_, attribute, of) = ATTRIBUTES
            .iter()
            .find(|(kind, ..)| *kind == filter.kind)
            .unwrap_or_else(|| panic!("{filter:?} was in no request"));
        match (&filter.range, *of) {
            (
                RangeValue {
                    lower: Some(least),
                    upper: None,
                    ..
                },
                "node",
            ) => {
                attributes.insert((*attribute).to_owned(), whole(least.value));
            }
            (range, of) => {
                let mut within = Vec::new();
                within.extend(range.upper.iter().map(|most| json!({ "max": whole(most.value) })));
                within.extend(
                    range
                        .lower
                        .iter()
                        .map(|least| json!({ "min": whole(least.value) })),
                );
                within.extend(
                    range
                        .ranges
                        .iter()
                        .map(|(least, most)| json!({ "min": whole(least.value), "max": whole(most.value) })),
                );
                conditions.push(json!({ "attribute": attribute, "of": of, "within": within }));
            }
        }
    }
    let sizes = job
        .resources
        .nodes
        .as_ref()
        .expect("a number of nodes")
        .whole_numbers()
        .expect("it is one");
    let application = job.application.as_ref();
    let posix = application.and_then(|application| application.posix.as_ref());
    json!({
        "kind": "job",
        "application": application.map(|application| &application.name),
        "arguments": posix.map(|posix| &posix.arguments),
        "nodesMin": sizes.0,
        "nodesMax": sizes.1,
        "attributes": attributes,
        "conditions": conditions,
    })
}

fn scheduling_in_json(scheduling: &Scheduling) -> Value {
    let budget = scheduling.budget.as_ref();
    let law = scheduling.moldability.as_ref().map(|law| match law {
        Moldability::ConstantWork(work) => json!({ "constantWork": work }),
        other => panic!("{other:?} was in no request"),
    });
    json!({
        "kind": "scheduling",
        "moldability": law,
        "budget": budget.map(|budget| json!({ "amount": write_amount(budget.amount_micros), "currency": budget.currency })),
        "maxDeviation": scheduling.max_deviation,
        "fixAt": scheduling.fix_at,
        "weights": scheduling.preference.map(|weights| pruned(&json!({
            "start": weights.start, "size": weights.size, "duration": weights.duration, "price": weights.price,
        }))),
        "resource": scheduling.resource,
        "mayChange": scheduling.may_change.map(|changes| pruned(&json!({
            "sizes": changes.sizes, "cuts": changes.cuts, "until": changes.until.map(|until| until.to_string()),
        }))),
    })
}

/// A number that is whole, as JSON has it.
fn whole(value: f64) -> Value {
    let text = format!("{value:.0}");
    json!(text.parse::<i64>().expect("a whole number"))
}

/// The members that say something.
fn pruned(value: &Value) -> Value {
    let members = value.as_object().expect("an object").iter();
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    let members = members.filter(|(_, value)| says(value));
    members
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

async fn assert_views_agree(client: &Client, id: uuid::Uuid, about: &str) -> Value {
    let document = client.get(&format!("/agreements/{id}")).await;
    let shown = client.get_json(&format!("/agreements/{id}/terms")).await;
    let terms = shown["terms"].as_array().expect("a list");
    let in_document: Vec<Value> = terms_in_document(&document.body)
        .iter()
        .map(|term| pruned(&term_in_json(term)))
        .collect();
    let in_json: Vec<Value> = terms.iter().map(pruned).collect();
    assert_eq!(in_json, in_document, "{about}: {}", document.body);
    let job = in_json.iter().find(|term| term["kind"] == "job").expect("a job");
    let agreement = client.get_json(&format!("/agreements/{id}")).await;
    for member in ["attributes", "conditions"] {
        assert_eq!(agreement[member], job[member], "{member} of {about}: {agreement}");
    }
    agreement
}

#[test]
fn json_shows_all_that_was_agreed_as_xml_does() {
    run(async {
        let server = Server::configured(None, CONFIGURATION);
        let client = server.client();
        let mut random = Random::new(42);
        let mut with_attributes = 0;
        for number in 0..REQUESTS {
            let request = request(&mut random, number);
            let mut asked = request.clone();
            asked["hold"] = json!(false);
            let offered = client.post_json("/negotiations", &asked).await.json();
            let offer = &offered["offers"][0];
            assert_eq!(offer["attributes"], request["attributes"], "{request}: {offered}");
            let id = client.post_json("/agreements", &request).await.created();
            let agreement = assert_views_agree(&client, id, &request.to_string()).await;
            assert_eq!(agreement["attributes"], request["attributes"], "{request}");
            with_attributes += usize::from(agreement["attributes"].is_object());
        }
        assert!(with_attributes > REQUESTS / 3, "{with_attributes}");
        server.assert_verified();
    });
}

#[test]
fn json_shows_conditions_that_only_documents_can_ask_for() {
    run(async {
        let server = Server::configured(None, CONFIGURATION);
        let client = server.client();
        let later = hours_ahead(3);
        let bounds = |name: &str, lower: &str, upper: &str| {
            format!(
                "<jsdl:{name}><jsdl:Range><jsdl:LowerBound>{lower}</jsdl:LowerBound><jsdl:UpperBound>{upper}</jsdl:UpperBound></jsdl:Range></jsdl:{name}>"
            )
        };
        let conditions = bounds("IndividualCPUCount", "4", "1.6e1")
            + "<jsdl:IndividualPhysicalMemory><jsdl:LowerBoundedRange>1e9</jsdl:LowerBoundedRange></jsdl:IndividualPhysicalMemory>"
            + "<jsdl:IndividualDiskSpace><jsdl:UpperBoundedRange>2e9</jsdl:UpperBoundedRange></jsdl:IndividualDiskSpace>"
            + &bounds("TotalCPUCount", "8", "64");
        let offer = Offer::sleep(2, 60).on(2).within(later, later + 3_600).xml();
        let offer = offer.replace(
            "<jsdl:TotalResourceCount>",
            &format!("{conditions}<jsdl:TotalResourceCount>"),
        );
        let id = client.post("/agreements", offer.as_str()).await.created();
        let agreement = assert_views_agree(&client, id, &offer).await;
        assert_eq!(
            agreement["attributes"],
            json!({ "memory_bytes": 1_000_000_000 }),
            "{agreement}"
        );
        assert_eq!(
            agreement["conditions"].as_array().map(Vec::len),
            Some(3),
            "{agreement}"
        );
    });
}

#[test]
fn gpus_of_each_node_are_asked_for_in_json_and_in_xml() {
    run(async {
        let resources = "\n[[resource]]\nname = \"plain\"\nkind = \"local\"\nnodes = 4\n\
                         \n[[resource]]\nname = \"fast\"\nkind = \"local\"\nnodes = 2\ngpus = 4\n";
        let server = Server::configured(None, resources);
        let client = server.client();
        let later = hours_ahead(3);
        let request = |nodes: u32, gpus: i64| {
            let window = json!({ "start": date_time(later), "end": date_time(later + 3_600) });
            json!({ "nodes": nodes, "durationSeconds": 60, "window": window, "attributes": { "gpus": gpus } })
        };
        let in_json = client.post_json("/agreements", &request(2, 4)).await.created();
        let condition = "</jsdl:TotalResourceCount><bsp:IndividualGPUCount xmlns:bsp=\"urn:bespeak:terms:1\">\
                         <jsdl:LowerBoundedRange>4</jsdl:LowerBoundedRange></bsp:IndividualGPUCount>";
        let offer = Offer::reserve(1, 60).within(later, later + 3_600).xml();
        let offer = offer.replace("</jsdl:TotalResourceCount>", condition);
        let in_xml = client.post("/agreements", offer.as_str()).await.created();
        for (id, about) in [(in_json, "JSON"), (in_xml, "XML")] {
            let agreement = assert_views_agree(&client, id, about).await;
            assert_eq!(
                (&agreement["resource"], &agreement["attributes"]),
                (&json!("fast"), &json!({ "gpus": 4 })),
                "{about}"
            );
        }
        let listed = client.get_json("/resources").await;
        assert_eq!(
            listed["resources"][1]["attributes"],
            json!({ "gpus": 4 }),
            "{listed}"
        );

        let more = client.post_json("/agreements", &request(1, 5)).await;
        let words = "no resource has the gpus that is asked for; nodes have 4";
        assert!(!more.status.is_success() && more.body.contains(words), "{more:?}");
        let wrong = client.post_json("/agreements", &request(1, 0)).await;
        assert!(wrong.body.contains("/attributes/gpus"), "{wrong:?}");
        // More of them in all, and not on one node.
        let both = client.post_json("/agreements", &request(3, 4)).await;
        assert!(!both.status.is_success(), "{both:?}");
        server.assert_verified();
    });
}

#[test]
fn a_duration_that_could_not_be_read_again_is_refused_also_in_a_term_that_is_not_chosen() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let offer = Offer::reserve(1, 60).xml();
        let start = offer.find("<wsag:GuaranteeTerm").expect("a guarantee");
        let end = offer
            .find("</wsag:All></wsag:Terms>")
            .expect("the end of the terms");
        let guarantee = offer[start..end].trim_end();
        let with_duration = |duration: &str| {
            let penalty = format!(
                "<wsag:BusinessValueList><wsag:Penalty><wsag:AssessmentInterval><wsag:TimeInterval>{duration}</wsag:TimeInterval>\
                 </wsag:AssessmentInterval><wsag:ValueExpression>1</wsag:ValueExpression></wsag:Penalty></wsag:BusinessValueList>"
            );
            let other = guarantee
                .replace("COMPLETION", "OTHER")
                .replace("<wsag:BusinessValueList/>", &penalty);
            format!(
                "{}<wsag:ExactlyOne>{guarantee}{other}</wsag:ExactlyOne>{}",
                &offer[..start],
                &offer[end..]
            )
        };
        for duration in ["P999999999Y999999999M", "P999999999DT999999999H"] {
            let refused = client.post("/agreements", with_duration(duration)).await;
            assert_eq!(refused.status.as_u16(), 422, "{duration}: {refused:?}");
            assert!(
                refused.text("Path").ends_with("/wsag:TimeInterval"),
                "{refused:?}"
            );
        }
        let id = client
            .post("/agreements", with_duration("P999999999Y11M"))
            .await
            .created();
        client.get_json(&format!("/agreements/{id}")).await;
        server.assert_verified();
    });
}
