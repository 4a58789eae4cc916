//! The description of the API in JSON: of every route, and true of real requests and answers.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::offers::{date_time, file, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

async fn description(server: &Server) -> String {
    let nobody = server.client_with("");
    let answer = nobody.get("/openapi.json").await;
    assert_eq!(
        (answer.status, answer.content_type()),
        (StatusCode::OK, "application/json")
    );
    answer.body
}

#[test]
fn the_description_says_everything_of_each_operation() {
    run(async {
        let text = description(&Server::local()).await;
        let description: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
        // Every reference leads somewhere.
        let schemas = &description["components"]["schemas"];
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas[name].is_object(), "there is no schema {name}");
        }
        let mut missing = Vec::new();
        for (name, schema) in schemas.as_object().expect("it has schemas") {
            look_at_properties(schema, schemas, name, &mut missing);
        }
        let tags = description["tags"].as_array().expect("it has tags");
        let tags: BTreeSet<&str> = tags.iter().filter_map(|tag| tag["name"].as_str()).collect();
        let mut ids = BTreeSet::new();
        for (path, operations) in description["paths"].as_object().expect("it has paths") {
            for (method, operation) in operations
                .as_object()
                .expect("a path")
                .iter()
                .filter(|(_, each)| each.is_object())
            {
                let id = operation["operationId"].as_str().unwrap_or_default();
                let is_tagged = operation["tags"][0]
                    .as_str()
                    .is_some_and(|tag| tags.contains(tag));
                let takes_dry_run = operation["parameters"].to_string().contains("\"dryRun\"");
                let says_that_not = operation["summary"]
                    .as_str()
                    .is_some_and(|words| words.ends_with("; it takes no dryRun"));
                if method != "get" && takes_dry_run == says_that_not {
                    missing.push(format!("{method} {path}: a dry run, or that it has none"));
                }
                if id.is_empty() || !ids.insert(id) || !is_tagged || !operation["summary"].is_string() {
                    missing.push(format!("{method} {path}: its operationId, tag or summary"));
                }
                let answers = operation["responses"]
                    .as_object()
                    .expect("it has responses")
                    .values();
                for body in answers.chain([&operation["requestBody"]]) {
                    let json = &body["content"]["application/json"];
                    if !json.is_null() && id != "getDescription" {
                        missing.extend(faults(&json["example"], &json["schema"], schemas, id));
                    }
                }
            }
        }
        assert_eq!(missing, Vec::<String>::new());
    });
}

#[test]
fn no_route_is_added_without_its_description() {
    let files = std::fs::read_dir("crates/api/src").expect("it can be listed");
    let with_routes = files.map(|entry| entry.expect("an entry").file_name());
    let with_routes: BTreeSet<String> = with_routes
        .filter_map(|name| name.into_string().ok())
        .filter(|name| file(&format!("crates/api/src/{name}")).contains(".route("))
        .collect();
    // Beside `routes.rs` itself: a process that starts or stands by, and what only replicas ask each other.
    let expected = ["replicas.rs", "routes.rs", "standby.rs"];
    assert_eq!(with_routes, expected.map(ToOwned::to_owned).into());
}

#[test]
fn the_page_of_the_api_has_all_of_it_and_asks_no_other_host() {
    run(async {
        let server = Server::local();
        let description: Value = serde_json::from_str(&description(&server).await).expect("it is JSON");
        let page = server.client_with("").get("/docs").await;
        assert_eq!((page.status, page.content_type()), (StatusCode::OK, "text/html"));
        let policy = page.headers["content-security-policy"]
            .to_str()
            .expect("it is text");
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'"),
            "{policy}"
        );
        let html = &page.body;
        for methods in description["paths"].as_object().expect("it has paths").values() {
            for method in methods
                .as_object()
                .expect("a path")
                .values()
                .filter(|method| method.is_object())
            {
                let id = method["operationId"].as_str().expect("an id");
                assert!(
                    html.contains(&format!("<details class=\"card\" id=\"{id}\">")),
                    "{id}"
                );
            }
        }
        for reference in html.split("href=\"").skip(1) {
            let target = reference.split('"').next().expect("it ends");
            match target.strip_prefix('#') {
                Some(id) => assert!(html.contains(&format!("id=\"{id}\"")), "{target}"),
                None => assert!(target.starts_with('/'), "{target}"),
            }
        }
        let ours = html.replace("<script src=\"/portal/live.js\"", "");
        assert!(!ours.contains("<script") && !ours.contains(" src="), "{html}");
        // The call that it shows for an offer is one that the service takes.
        let call = html.split("id=\"createAgreement\"").nth(1).expect("it is there");
        let call = call
            .split("<pre>curl ")
            .nth(1)
            .expect("a call")
            .split("</pre>")
            .next()
            .expect("its end");
        let call = format!("curl -sf {}", call.replace("&#39;", "'").replace("&#34;", "\""));
        let key = server.key_for("physics", "consumer");
        let made = std::process::Command::new("sh")
            .args(["-c", &call])
            .env("KEY", key)
            .env("SERVER", format!("http://{}", server.address()))
            .output();
        let made = made.expect("curl runs");
        assert!(made.status.success(), "{call}: {made:?}");
        let made: Value = serde_json::from_slice(&made.stdout).expect("it answers in JSON");
        assert_eq!(made["state"], "Observed", "{made}");
    });
}

/// Notes each property below a schema without a description, and without an example that fits where it has no parts.
fn look_at_properties(schema: &Value, schemas: &Value, at: &str, missing: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        if !property["description"].is_string() {
            missing.push(format!("{at}: its description"));
        }
        match property["examples"].as_array() {
            Some(examples) => missing.extend(
                examples
                    .iter()
                    .flat_map(|one| faults(one, property, schemas, &at)),
            ),
            None if !has_parts(property, schemas) => missing.push(format!("{at}: its example")),
            None => {}
        }
    }
    match schema {
        Value::Array(parts) => parts
            .iter()
            .for_each(|part| look_at_properties(part, schemas, at, missing)),
        Value::Object(parts) => parts
            .values()
            .for_each(|part| look_at_properties(part, schemas, at, missing)),
        _ => {}
    }
}

/// Whether a schema consists of others, or lists its values.
fn has_parts(schema: &Value, schemas: &Value) -> bool {
    let name = schema["$ref"]
        .as_str()
        .and_then(|reference| reference.rsplit('/').next());
    let inner = name
        .map(|name| &schemas[name])
        .or(schema.get("items"))
        .or(schema["anyOf"].get(0));
    ["properties", "enum", "const", "examples"]
        .iter()
        .any(|part| schema.get(part).is_some())
        || inner.is_some_and(|inner| has_parts(inner, schemas))
}

/// The faults of a value under a schema: the part of JSON Schema that the description uses.
fn faults(value: &Value, schema: &Value, schemas: &Value, at: &str) -> Vec<String> {
    let length = |number: usize| f64::from(u32::try_from(number).expect("it is short"));
    let size = match value {
        Value::String(text) => Some(length(text.chars().count())),
        Value::Array(list) => Some(length(list.len())),
        _ => value.as_f64(),
    };
    let bounds = match value {
        Value::String(_) => ["minLength", "maxLength"],
        Value::Array(_) => ["minItems", "maxItems"],
        _ => ["minimum", "maximum"],
    };
    let [least, most] = bounds.map(|bound| schema[bound].as_f64());
    let is_out = size
        .is_some_and(|size| least.is_some_and(|least| size < least) || most.is_some_and(|each| size > each));
    let mut found = Vec::new();
    if is_out {
        found.push(format!("{at}: {value} is out of bounds"));
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        found.extend(faults(value, &schemas[name], schemas, at));
        return found;
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let tried: Vec<_> = any.iter().map(|one| faults(value, one, schemas, at)).collect();
        let fits = tried.iter().any(Vec::is_empty);
        found.extend(tried.into_iter().next().filter(|_| !fits).into_iter().flatten());
        return found;
    }
    let is = |kind: &str| match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    };
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect::<Vec<_>>(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind)) {
        return vec![format!("{at}: {value} is no {kinds:?}")];
    }
    let is_listed = schema["enum"]
        .as_array()
        .is_none_or(|schema| schema.contains(value));
    if !is_listed || schema.get("const").is_some_and(|only| only != value) {
        found.push(format!("{at}: {value} is not among those listed"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(faults(item, &schema["items"], schemas, &format!("{at}/{index}")));
    }
    if let (Some(members), Some(properties)) = (value.as_object(), schema["properties"].as_object()) {
        for (name, member) in members {
            match properties.get(name) {
                Some(schema) => found.extend(faults(member, schema, schemas, &format!("{at}/{name}"))),
                None => found.push(format!("{at}/{name} is not described")),
            }
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if !members.contains_key(name.as_str().unwrap_or_default()) {
                found.push(format!("{at}: {name} is missing"));
            }
        }
    }
    found
}

#[test]
fn real_answers_are_as_described() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let description: Value = serde_json::from_str(&description(&server).await).expect("it is JSON");
        let schemas = &description["components"]["schemas"];
        let check = |what: &str, value: &Value, schema: &str| {
            let found = faults(value, &json!({"$ref": format!("/{schema}")}), schemas, what);
            assert_eq!(found, Vec::<String>::new(), "{value}");
        };
        let post = |path: &str, body: &Value| {
            client
                .request(Method::POST, path)
                .header("content-type", "application/json")
                .header("accept", "application/json")
                .body(body.to_string())
        };
        let later = hours_ahead(3);
        let request = json!({"application": "sleep", "arguments": [2], "nodes": {"min": 2, "max": 2},
            "durationSeconds": 3_600, "window": {"start": date_time(later), "end": date_time(later + 7_200)}});
        check("request", &request, "Offer");
        let accepted = client.send(post("/agreements", &request)).await.json();
        check("accepted", &accepted, "Accepted");
        let id = accepted["id"].as_str().expect("it has an id").to_owned();
        for path in [
            "/templates",
            "/agreements",
            "/agreements/{id}",
            "/agreements/{id}/state",
            "/agreements/{id}/terms",
            "/agreements/{id}/context",
            "/agreements/{id}/service-terms",
            "/agreements/{id}/guarantee-terms",
            "/agreements/{id}/ending",
            "/agreements/{id}/events",
            "/agreements/{id}/files",
            "/accounts",
            "/applications",
            "/call-backs",
            "/events",
            "/keys",
            "/maintenance",
            "/negotiations",
            "/prices",
            "/usage",
            "/resources",
            "/peers",
            "/.well-known/bespeak",
            "/files",
            "/availability",
        ] {
            let value = client.get_json(&path.replace("{id}", &id)).await;
            let answer = &description["paths"][path]["get"]["responses"]["200"]["content"];
            let found = faults(&value, &answer["application/json"]["schema"], schemas, path);
            assert_eq!(found, Vec::<String>::new(), "{value}");
        }
        let template = client.get_json("/templates/advance-reservation").await;
        check("template", &template, "Template");
        let nodes = client.get_json("/resources/local/nodes").await;
        check("nodes", &nodes, "NodeList");
        let whole = json!({"nodes": 4, "durationSeconds": 7_200, "window": request["window"]});
        let refused = client.send(post("/agreements", &whole)).await.json();
        check("refused", &refused, "Problem");
        let wrong = client.send(post("/agreements", &json!({"x": 1}))).await.json();
        check("wrong", &wrong, "Problem");
        let pending = json!({"pending": true, "nodes": 1, "durationSeconds": 60});
        check(
            "pending",
            &client.send(post("/agreements", &pending)).await.json(),
            "Accepted",
        );
        let ended = client
            .send(post(&format!("/agreements/{id}/terminate"), &json!({})))
            .await;
        check("ended", &ended.json(), "Agreement");
        // And the check can fail.
        assert!(!faults(&json!({"x": 1}), &schemas["Offer"], schemas, "").is_empty());
        assert!(!faults(&json!({}), &schemas["Agreement"], schemas, "").is_empty());
    });
}

/// Adds the members that a schema describes to each place where an object may stand: the place is that of a member `x`, which is not
/// described. Whether the schema is that of an object, or of a list of them.
fn collect_members(
    schema: &Value,
    schemas: &Value,
    at: &str,
    members: &mut BTreeMap<String, BTreeSet<String>>,
) -> bool {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return collect_members(&schemas[name], schemas, at, members);
    }
    if let Some(ways) = schema["anyOf"].as_array() {
        // Of the ways after the first only their own members are known there, too.
        let mut is_any = false;
        for way in ways {
            let mut own = BTreeMap::new();
            if !collect_members(way, schemas, at, &mut own) {
                continue;
            }
            let place = format!("{at}/x");
            own.retain(|known, _| !is_any || *known == place);
            for (known, names) in own {
                members.entry(known).or_default().extend(names);
            }
            is_any = true;
        }
        return is_any;
    }
    if let Some(items) = schema.get("items") {
        return collect_members(items, schemas, &format!("{at}/0"), members);
    }
    let Some(properties) = schema["properties"].as_object() else {
        return false;
    };
    members
        .entry(format!("{at}/x"))
        .or_default()
        .extend(properties.keys().cloned());
    for (name, property) in properties {
        collect_members(property, schemas, &format!("{at}/{name}"), members);
    }
    true
}

/// The members about an answer that comes later.
const PENDING: [&str; 2] = ["pending", "callback"];

#[test]
fn requests_know_the_members_that_are_described() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let description: Value = serde_json::from_str(&description(&server).await).expect("it is JSON");
        let schemas = &description["components"]["schemas"];
        let wish = json!({"nodes": 1, "durationSeconds": 60});
        let id = client.post_json("/agreements", &wish).await.created();
        let negotiation = client.post_json("/negotiations", &wish).await.created();
        for (method, path, schema) in [
            (Method::POST, "/agreements".to_owned(), "NewOffer"),
            (Method::POST, "/negotiations".to_owned(), "NegotiationRequest"),
            (
                Method::POST,
                format!("/negotiations/{negotiation}/offers"),
                "OfferInNegotiation",
            ),
            (Method::POST, format!("/agreements/{id}/terminate"), "Reason"),
            (Method::POST, format!("/agreements/{id}/evict"), "Eviction"),
            (Method::POST, format!("/agreements/{id}/move"), "Move"),
            (Method::PUT, "/call-backs/planner".to_owned(), "NewCallBack"),
            (Method::POST, "/keys".to_owned(), "NewKey"),
            // The body is read before the key is looked for.
            (Method::PUT, format!("/keys/{id}/expiry"), "KeyExpiry"),
            (Method::POST, "/maintenance".to_owned(), "NewMaintenance"),
            (Method::PUT, "/resources/local".to_owned(), "ResourceDefinition"),
            (Method::PUT, "/resources/local/nodes/0".to_owned(), "NodeOverride"),
        ] {
            let mut members = BTreeMap::new();
            assert!(
                collect_members(&schemas[schema], schemas, "", &mut members),
                "{schema}"
            );
            for (place, described) in members {
                // These are read as the keys of the configuration are, and told in other words.
                if place == "/limits/x" {
                    continue;
                }
                // One at a time: of many mistakes not all are told.
                let wrong = place[1..]
                    .split('/')
                    .rev()
                    .fold(json!(1), |inner, name| match name {
                        "0" => json!([inner]),
                        name => json!({ name: inner }),
                    });
                let request = client
                    .request(method.clone(), &path)
                    .header("content-type", "application/json")
                    .header("accept", "application/json")
                    .body(wrong.to_string());
                let refused = client.send(request).await.json();
                let told = refused["violations"].as_array().into_iter().flatten();
                let told: BTreeMap<&str, &str> = told
                    .filter_map(|one| Some((one["path"].as_str()?, one["message"].as_str()?)))
                    .collect();
                let known = told
                    .get(&*place)
                    .and_then(|message| message.split("known are ").nth(1));
                // Offers of negotiations are never pending, and who says that they are is told so in words of its own.
                let is_refused = |name: &&str| schema.contains("Negotiation") && PENDING.contains(name);
                let known: BTreeSet<String> = known
                    .unwrap_or_else(|| panic!("{path} {place}: {refused}"))
                    .split(", ")
                    .filter(|name| place != "/x" || !is_refused(name))
                    .map(ToOwned::to_owned)
                    .collect();
                assert_eq!(known, described, "{path} {place}");
            }
        }
    });
}

/// The operations of a description: each with its path and its method.
fn operations(description: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = description["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, one_method)| (path, method, one_method))
        })
        .filter(|(_, _, each)| each.is_object())
}

#[test]
fn pages_are_linked_and_dry_runs_answered_as_described() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let description: Value = serde_json::from_str(&description(&server).await).expect("it is JSON");
        let mut linked = 0;
        for (path, method, operation) in operations(&description) {
            let given = operation["parameters"].as_array().into_iter().flatten();
            let names: Vec<&str> = given.filter_map(|given| given["name"].as_str()).collect();
            let takes = |name: &str| names.contains(&name);
            let success = &operation["responses"]["200"];
            if takes("dryRun") {
                assert!(success.is_object(), "{method} {path}: its answer to a dry run");
            }
            if let Some(link) = success["headers"].get("Link") {
                assert_eq!(link["$ref"], "#/components/headers/Link", "{path}");
                assert!(takes("after"), "{path}");
                linked += 1;
            }
        }
        assert!(description["components"]["headers"]["Link"]["schema"].is_object());
        let handlers = std::fs::read_dir("crates/api/src").expect("it can be listed");
        let paged = handlers
            .map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).unwrap_or_default())
            .map(|text| text.matches("call.paged(").count());
        assert_eq!(linked, paged.sum::<usize>(), "lists with linked pages");
        let wish = json!({"nodes": 1, "durationSeconds": 60});
        for path in ["/agreements", "/negotiations"] {
            for _ in 0..2 {
                client.post_json(path, &wish).await.created();
            }
            let dry = client.post_json(&format!("{path}?dryRun=true"), &wish).await;
            assert_eq!(dry.status, StatusCode::OK, "{dry:?}");
            let schema = &description["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]
                ["schema"];
            let found = faults(&dry.json(), schema, &description["components"]["schemas"], path);
            assert_eq!(found, Vec::<String>::new(), "{dry:?}");
        }
        for path in ["/agreements", "/negotiations", "/events"] {
            let page = client.get(&format!("{path}?limit=1")).await;
            assert!(page.headers.contains_key("link"), "{path}: {page:?}");
            let described = &description["paths"][path]["get"]["responses"]["200"]["headers"]["Link"];
            assert!(described.is_object(), "{path}");
        }
    });
}

#[test]
fn free_times_are_told_in_steps_and_never_whose_the_others_are() {
    run(async {
        let server = Server::configured(
            None,
            "[scheduling]\ncoarsen_seconds = 600\n[[resource]]\nname = \"a\"\nkind = \"local\"\nnodes = 4\n",
        );
        let client = server.client_with(&server.key_for("physics", "consumer"));
        let later = hours_ahead(3);
        let taken = json!({"nodes": 3, "durationSeconds": 700,
            "window": {"start": date_time(later + 100), "end": date_time(later + 800)}});
        let request = client
            .request(Method::POST, "/agreements")
            .header("content-type", "application/json")
            .body(taken.to_string());
        client.send(request).await.created();
        let other = server.client_with(&server.key_for("biology", "consumer"));
        let ask = |nodes: u32| {
            let (start, end) = (date_time(later), date_time(later + 3_600));
            format!("/availability?nodes={nodes}&start={start}&end={end}&kind=local")
        };
        let busy = other.get_json(&ask(2)).await;
        // Its own 700 seconds lie in two steps.
        let free = json!([{"start": date_time(later + 1_200), "end": date_time(later + 3_600)}]);
        assert_eq!(busy["free"], free, "{busy}");
        let enough = other.get_json(&ask(1)).await;
        let whole = json!([{"start": date_time(later), "end": date_time(later + 3_600)}]);
        assert_eq!(enough["free"], whole, "{enough}");
        assert_eq!(other.get_json(&ask(5)).await["free"], json!([]));
        for wrong in ["nodes=0", "nodes=x", "start=noon", "whose=physics"] {
            let refused = other.get(&format!("/availability?{wrong}")).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        let silent = Server::configured(None, "[scheduling]\navailability = false\n");
        let refused = silent.client().get("/availability").await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{refused:?}");
    });
}

#[test]
fn the_law_of_the_example_is_taken_and_gives_the_duration_that_is_described() {
    run(async {
        let eight = "[[resource]]\nname = \"a\"\nkind = \"local\"\nnodes = 8\n";
        let server = Server::configured(None, eight);
        let description: Value = serde_json::from_str(&description(&server).await).expect("it is JSON");
        let schemas = &description["components"]["schemas"];
        let schema_of = |name: &str| {
            let property = &schemas["Linear"]["properties"][name];
            property["examples"][0].as_f64().expect("a number")
        };
        let (intercept, slope) = (schema_of("intercept"), schema_of("slope"));
        let linear = &schemas["LinearLaw"]["properties"]["linear"];
        let words = linear["description"].as_str().unwrap_or_default();
        assert!(words.contains("intercept - slope * nodes"), "{words}");
        let pieces = &schemas["Preemption"]["properties"]["independent"];
        let words = pieces["description"].as_str().unwrap_or_default();
        assert!(words.contains("pieces never overlap"), "{words}");
        let request =
            json!({"nodes": 8, "moldability": {"linear": {"intercept": intercept, "slope": slope}}});
        let made = server.client().post_json("/agreements", &request).await;
        assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
        assert_eq!(
            made.json()["durationSeconds"].as_f64(),
            Some(intercept - slope * 8.0),
            "{made:?}"
        );
    });
}
