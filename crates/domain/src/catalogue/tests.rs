use proptest::prelude::*;

use super::*;

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Configuration {
    application: Vec<Application>,
}

const EXAMPLE: &str = r#"
[[application]]
name = "solve"
version = "2.1"
description = "Solves."
program = "/opt/solve"
[[application.argument]]
name = "steps"
type = "integer"
min = -5
max = 10
[[application.argument]]
name = "tolerance"
type = "number"
min = 0
max = 1.5
[[application.argument]]
name = "label"
type = "text"
max_length = 4
characters = "a-z_-"
[[application.argument]]
name = "method"
type = "choice"
values = ["fast", "good"]
[[application.argument]]
name = "mesh"
type = "file"
"#;

fn solve() -> Application {
    toml::from_str::<Configuration>(EXAMPLE)
        .unwrap()
        .application
        .remove(0)
}

fn check(arguments: &[&str]) -> Result<(), ArgumentError> {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    solve().check(&arguments, |name| name == "mesh.dat")
}

#[test]
fn arguments_within_their_bounds_are_taken() {
    check(&["-5", "0.25", "a-b_", "good", "mesh.dat"]).unwrap();
    check(&["10", "1.5", "x", "fast", "mesh.dat"]).unwrap();
    check(&["0", "0", "x", "fast", "mesh.dat"]).unwrap();
}

#[test]
fn the_first_wrong_argument_is_named_with_what_was_expected() {
    let good = ["1", "1", "x", "fast", "mesh.dat"];
    let wrong: [(usize, &[&str], &str); 5] = [
        (
            0,
            &[
                "-6", "11", "+1", "01", "-0", "1.0", "", " 1", "1e1", "--help", "0x1",
            ],
            "from -5 to 10",
        ),
        (
            1,
            &[
                "-0.1", "-0", "1.6", "nan", "inf", "1e-3", ".5", "5.", "+1", "", "-",
            ],
            "from 0 to 1.5",
        ),
        (
            2,
            &["", "-", "-a", "abcde", "A", "a b", "a\0", "é"],
            "of the characters a-z_-",
        ),
        (3, &["", "best", "-fast", "fast "], "one of fast, good"),
        (
            4,
            &[
                "../mesh.dat",
                "/etc/passwd",
                ".hidden",
                "-r",
                "a/b",
                "",
                ".",
                "..",
                "a\0b",
                "a b",
            ],
            "without a path",
        ),
    ];
    for (index, values, expected) in wrong {
        for value in values {
            let mut arguments = good;
            arguments[index] = value;
            let error = check(&arguments).expect_err(value);
            assert_eq!(error.index, index, "{value:?}");
            assert!(error.expected.contains(expected), "{value:?}: {}", error.expected);
        }
    }
    let absent = check(&["1", "1", "x", "fast", "other.dat"]).unwrap_err();
    assert!(
        absent
            .to_string()
            .starts_with("argument 5 of solve: expected mesh, "),
        "{absent}"
    );
    assert!(absent.expected.ends_with("it has no file of this name"));
}

#[test]
fn too_few_and_too_many_arguments_are_refused_at_their_place() {
    assert_eq!(check(&[]).unwrap_err().index, 0);
    assert_eq!(check(&["1", "1", "x", "fast"]).unwrap_err().index, 4);
    let more = check(&["1", "1", "x", "fast", "mesh.dat", "--", "x"]).unwrap_err();
    assert_eq!(
        (more.index, more.expected.as_str()),
        (5, "no more than 5 arguments")
    );
}

#[test]
fn a_wrong_configuration_is_refused_with_its_key() {
    for (from, to, expected) in [
        ("description", "colour", "unknown field `colour`"),
        (
            "/opt/solve",
            "solve",
            "application `solve`: program: expected an absolute path",
        ),
        ("\"solve\"", "\"-solve\"", "name: expected"),
        ("\"2.1\"", "\"\"", "application `solve`: version: expected"),
        (
            "min = -5",
            "min = 50",
            "argument `steps`: max: expected no less than min",
        ),
        (
            "min = -5",
            "min = 0.5",
            "argument `steps`: min: expected a whole number",
        ),
        ("max = 10", "", "argument `steps`: max: expected a whole number"),
        (
            "max = 1.5",
            "max = nan",
            "argument `tolerance`: max: expected a number",
        ),
        (
            "max_length = 4",
            "max_length = 0",
            "argument `label`: max_length: expected a number from 1 to 1024",
        ),
        ("a-z_-", "z-a", "argument `label`: characters: expected"),
        ("\"fast\"", "\"-fast\"", "argument `method`: values: expected"),
        (
            "[\"fast\", \"good\"]",
            "[]",
            "argument `method`: values: expected",
        ),
        (
            "type = \"file\"",
            "type = \"file\"\nmax = 3",
            "argument `mesh`: max: expected nothing, for this type",
        ),
        ("type = \"file\"", "type = \"path\"", "unknown variant `path`"),
        (
            "name = \"mesh\"",
            "name = \"label\"",
            "application `solve`: argument: expected each name once",
        ),
        ("name = \"mesh\"", "nam = \"mesh\"", "unknown field `nam`"),
    ] {
        assert!(EXAMPLE.contains(from), "{from}");
        let text = EXAMPLE.replace(from, to);
        let error = toml::from_str::<Configuration>(&text).expect_err(to).to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn an_application_is_found_by_name_and_where_given_by_version() {
    let newer = Application {
        version: Some("3".into()),
        ..solve()
    };
    let catalogue = Catalogue::new(vec![newer, solve()]).unwrap();
    assert_eq!(
        catalogue.find("solve", None).unwrap().version.as_deref(),
        Some("3")
    );
    assert_eq!(
        catalogue.find("solve", Some("2.1")).unwrap().version.as_deref(),
        Some("2.1")
    );
    assert_eq!(catalogue.find("solve", Some("4")), None);
    assert_eq!(catalogue.find("sleep", None), None);
    assert!(Catalogue::new(vec![solve(), solve()]).is_err());
}

#[test]
fn the_built_in_applications_are_those_whose_programs_are_there() {
    let catalogue = Catalogue::built_in(|name| (name == "sleep").then(|| "/bin/sleep".into()));
    let sleep = catalogue.find("sleep", None).unwrap();
    assert!(catalogue.find("sha256sum", None).is_none());
    assert!(sleep.check(&["604800".into()], |_| false).is_ok());
    assert!(sleep.check(&["604801".into()], |_| false).is_err());
    assert!(sleep.check(&["-1".into()], |_| false).is_err());
}

proptest! {
    #[test]
    fn whatever_is_given_nothing_passes_that_a_program_could_read_as_an_option(
        text in "\\PC{0,8}|-{1,2}[a-z0-9.]{0,4}", index in 0_usize..5
    ) {
        let mut arguments = ["1", "1", "x", "fast", "mesh.dat"];
        arguments[index] = &text;
        if check(&arguments).is_ok() {
            let negative = index == 0 && text.parse::<i64>().is_ok_and(|number| (-5..0).contains(&number));
            prop_assert!(!text.starts_with('-') || negative, "{}", text);
            prop_assert!(!text.contains(['/', '\0', '\n']), "{}", text);
        }
    }
}

#[test]
fn a_text_of_any_characters_is_no_path() {
    let any = EXAMPLE.replace("characters = \"a-z_-\"\n", "");
    let solve = toml::from_str::<Configuration>(&any)
        .unwrap()
        .application
        .remove(0);
    let check = |text: &str| {
        let arguments = ["-5", "0.25", text, "good", "mesh.dat"].map(str::to_owned);
        solve.check(&arguments, |name| name == "mesh.dat")
    };
    check("a.b!").unwrap();
    for path in ["/etc", "a/b", ".."] {
        check(path).expect_err(path);
    }
}
