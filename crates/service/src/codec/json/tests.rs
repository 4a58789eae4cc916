use super::*;

fn refusal(text: &str) -> String {
    match Json::parse(text.as_bytes()) {
        Err(Error::MalformedJson(why)) => why,
        other => panic!("{text:.80} is read as {other:?}"),
    }
}

#[test]
fn hostile_documents_are_refused_before_they_cost_anything() {
    let deep = format!("{}1{}", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1));
    assert!(refusal(&deep).contains("deeper"));
    let very_deep = "[".repeat(200_000);
    refusal(&very_deep);
    let wide = format!("[{}1]", "1,".repeat(VALUES_MAX));
    assert!(refusal(&wide).contains("more than"));
    assert!(refusal(r#"{"a": 1, "a": 2}"#).contains("twice"));
    assert!(refusal(r#"{"a": {"b": 1, "\u0062": 2}}"#).contains("twice"));
    for text in [
        "",
        "{",
        "nul",
        "1e999",
        "\"\\ud800\"",
        "[1] []",
        "{\"a\" 1}",
        "\u{feff}{}",
        "[1,]",
    ] {
        refusal(text);
    }
    assert!(Json::parse(b"\"\xff\"").is_err());
    let allowed = format!("{}1{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
    assert!(Json::parse(allowed.as_bytes()).is_ok());
}

#[test]
fn a_number_is_whole_however_it_is_written() {
    for (text, whole) in [
        ("600", Some(600)),
        ("600.0", Some(600)),
        ("6e2", Some(600)),
        ("0.0", Some(0)),
        ("600.5", None),
        ("-1.0", None),
        ("18446744073709551615", Some(u64::MAX)),
        ("9007199254740991.0", Some(9_007_199_254_740_991)),
        ("9007199254740993.0", None),
        ("18446744073709551616.0", None),
        ("1e300", None),
    ] {
        let Json::Number(number) = Json::parse(text.as_bytes()).unwrap() else {
            panic!("{text} is no number");
        };
        assert_eq!(whole_json_number(&number), whole, "{text}");
    }
}

#[test]
fn a_number_that_may_stand_for_a_neighbour_is_known() {
    for (text, is_sure) in [
        ("-2.5", true),
        ("18446744073709551615", true),
        ("-9007199254740993", true),
        ("9007199254740991.0", true),
        ("9007199254740993.0", false),
        ("18446744073709551617", false),
        ("-1e300", false),
    ] {
        let Json::Number(number) = Json::parse(text.as_bytes()).unwrap() else {
            panic!("{text} is no number");
        };
        assert_eq!(is_json_as_written(&number), is_sure, "{text}");
    }
}
