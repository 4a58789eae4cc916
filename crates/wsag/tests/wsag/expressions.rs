//! The expression language: the expressions that are understood, and their values when data are missing.

use wsag::expression::{ExpressionValue, NESTING_MAX, ParsedExpression, ValueRange, Variables};
use wsag::time::{DateTime, Duration};

fn evaluate(text: &str) -> Option<bool> {
    let mut variables = Variables::predefined();
    variables.add("delay", "xs:duration");
    variables.add("ok", "xs:boolean");
    let parsed = ParsedExpression::parse(text, &variables).unwrap_or_else(|error| panic!("{text}: {error}"));
    parsed.evaluate(|name| match name {
        "deadline" => Some(ExpressionValue::DateTime(DateTime::from_seconds(1_000))),
        "completed" => Some(ExpressionValue::DateTime(DateTime::from_seconds(999))),
        "duration" => Some(ExpressionValue::Duration(Duration::from_seconds(60))),
        "nodes" => Some(ExpressionValue::Number(4.0)),
        "ok" => Some(ExpressionValue::Boolean(true)),
        // Not started, and no delay measured.
        _ => None,
    })
}

#[test]
fn comparisons_and_connectives_have_their_usual_meaning() {
    for (text, expected) in [
        ("completed le deadline", true),
        ("completed eq deadline", false),
        ("completed ne deadline", true),
        ("nodes ge 4 and nodes lt 4.5", true),
        ("nodes gt 4 or duration eq PT1M", true),
        ("not nodes gt 4", true),
        ("not (nodes eq 4 or nodes eq 5)", false),
        ("nodes eq 4 or nodes eq 5 and nodes eq 6", true),
        ("(nodes eq 4 or nodes eq 5) and nodes eq 6", false),
        ("not not nodes eq 4", true),
        ("deadline eq 1970-01-01T01:16:40+01:00", true),
        ("duration lt P1D", true),
        ("-1 lt nodes", true),
        ("ok", true),
        ("ok eq false", false),
    ] {
        assert_eq!(evaluate(text), Some(expected), "{text}");
    }
}

#[test]
fn missing_data_decide_nothing_unless_the_rest_does() {
    for (text, expected) in [
        ("started le deadline", None),
        ("not started le deadline", None),
        ("started le deadline and nodes eq 5", Some(false)),
        ("nodes eq 5 and started le deadline", Some(false)),
        ("started le deadline and nodes eq 4", None),
        ("started le deadline or nodes eq 4", Some(true)),
        ("started le deadline or nodes eq 5", None),
        ("delay le PT5S", None),
        // A month may be shorter or longer than thirty days.
        ("P1M lt P30D", None),
    ] {
        assert_eq!(evaluate(text), expected, "{text}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_the_reason() {
    let mut variables = Variables::predefined();
    variables.add("weight", "xs:string");
    let deep = format!(
        "{}nodes eq 1{}",
        "(".repeat(NESTING_MAX + 2),
        ")".repeat(NESTING_MAX + 2)
    );
    let long = "nodes eq 1 and ".repeat(200) + "nodes eq 1";
    for (text, said) in [
        ("", "the end at character 1"),
        ("ActualStart != null", "the variable ActualStart is not known"),
        ("nodes != null", "\"!=\" at character 7"),
        (
            "Duration <= EndTime - StartTime",
            "the variable Duration is not known",
        ),
        ("nodes <= 4", "\"<=\" at character 7"),
        ("nodes", "a number stands where a truth is expected"),
        ("nodes le", "the end at character 9"),
        ("nodes le 4 4", "\"4\" at character 12"),
        ("nodes le 4)", ") at character 11"),
        ("(nodes le 4", "the end at character 12"),
        ("nodes and ok", "a number stands where a truth is expected"),
        ("nodes le PT4H", "a number cannot be compared with a duration"),
        ("duration le 3600", "a duration cannot be compared with a number"),
        ("nodes le deadline", "a number cannot be compared with a dateTime"),
        ("deadline le 2026-01-10T08:00", "2026-01-10T08:00"),
        ("and", "\"and\" at character 1"),
        ("le nodes 4", "\"le\" at character 1"),
        ("weight eq 4", "the metric xs:string, which cannot be compared"),
        ("nodes eq 'x'", "at character 10"),
        (deep.as_str(), "nested brackets at most"),
        (long.as_str(), "bytes"),
    ] {
        let error = ParsedExpression::parse(text, &variables)
            .expect_err(text)
            .to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

/// Every answer about ranges is the one for each value that lies in them.
#[test]
fn what_holds_of_ranges_holds_of_every_value_in_them() {
    let variables = Variables::predefined();
    let instant = |at| ExpressionValue::DateTime(DateTime::from_seconds(at));
    let mut decided = 0;
    for text in [
        "started le deadline",
        "started lt deadline or completed gt deadline",
        "not started ge ready and completed ne deadline",
        "started eq ready or not completed eq ready",
        "completed gt started and started ge ready",
    ] {
        let parsed = ParsedExpression::parse(text, &variables).unwrap();
        for (least, most) in (0..6).flat_map(|least| (least..6).map(move |most| (least, most))) {
            let said = parsed.evaluate_ranges(|name| match name {
                "started" | "completed" => Some(ValueRange {
                    least: instant(least),
                    most: instant(most),
                }),
                "ready" => Some(instant(2).into()),
                "deadline" => Some(instant(3).into()),
                _ => None,
            });
            let Some(said) = said else { continue };
            decided += 1;
            for (started, completed) in (least..=most).flat_map(|s| (least..=most).map(move |c| (s, c))) {
                let exact = parsed.evaluate(|name| match name {
                    "started" => Some(instant(started)),
                    "completed" => Some(instant(completed)),
                    "ready" => Some(instant(2)),
                    "deadline" => Some(instant(3)),
                    _ => None,
                });
                assert_eq!(
                    exact,
                    Some(said),
                    "{text} of {started}, {completed} in {least}..={most}"
                );
            }
        }
    }
    assert!(decided > 30, "only {decided} were decided");
}

/// The names come from a stranger, as many and as long as a document carries, and each violation would show all of them.
#[test]
fn what_is_said_of_an_unknown_variable_is_bounded() {
    let mut variables = Variables::predefined();
    for number in 0..1_500 {
        variables.add(&format!("{number}{}", "n".repeat(1_000)), "xs:int");
    }
    variables.add("odd", &"m".repeat(100_000));
    let said = |text: &str| {
        ParsedExpression::parse(text, &variables)
            .expect_err(text)
            .to_string()
    };
    let unknown = said(&format!("x{} eq 1", "x".repeat(1_500)));
    assert!(unknown.contains("known are submitted, ready, ") && unknown.ends_with(", 1491 more"));
    assert!(unknown.len() < 20 * 110, "{unknown}");
    let odd = said("odd eq 1");
    assert!(odd.contains("mmm") && odd.len() < 300, "{odd}");
}
