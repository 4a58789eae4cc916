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
