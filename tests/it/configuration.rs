//! A wrong configuration is refused at start, with the key and the expected value.

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use crate::support::offers::{file, moved};
use crate::support::server::Server;
use crate::support::{output_of, run};

/// A service that has not refused its configuration by then has taken it.
const DEADLINE: Duration = Duration::from_mins(1);

/// Configurations that are wrong, and the words that the message must have.
const WRONG: &[(&str, &[&str])] = &[
    ("resources = 4\n", &["resources"]),
    ("horizon_days = 0\n", &["horizon_days", "1 to"]),
    ("horizon_days = \"long\"\n", &["horizon_days"]),
    (
        "[[resource]]\nname = \"local\"\nkind = \"cloud\"\n",
        &["kind", "local", "cloud"],
    ),
    (
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 0\n",
        &["nodes", "1 to"],
    ),
    (
        "[[resource]]\nname = \"a b\"\nkind = \"local\"\n",
        &["name", "a b"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"local\"\n[[resource]]\nname = \"a\"\nkind = \"local\"\n",
        &["resource[1].name", "another resource"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"local\"\nrate = 0.0\n",
        &["resource[0].rate", "0.01 to 100"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"local\"\nmemory_bytes = 0\n",
        &["resource[0].memory_bytes", "from 1 on"],
    ),
    (
        "[scheduling]\nobjective = \"soon\"\n",
        &["objective", "earliest-completion"],
    ),
    (
        "[scheduling]\ndecision = \"printed\"\n",
        &["decision", "standing", "published"],
    ),
    (
        "[scheduling]\ndecision_work = 0\n",
        &["scheduling.decision_work", "1000 to 1000000000"],
    ),
    (
        "[scheduling]\nimprove_moves_per_hour = 0\n",
        &["scheduling.improve_moves_per_hour", "1 to 3600"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"slurm\"\n",
        &["resource[0].slurm", "[resource.slurm]"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"slurm\"\n[resource.slurm]\npartition = \"p\"\nnode_list = \"n[1-100001]\"\nwork_dir = \"/w\"\nuser = \"u\"\n",
        &["resource[0].slurm.node_list", "1 to 100000"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"slurm\"\n[resource.slurm]\npartition = \"p\"\nnode_list = \"n[1-2\"\n\
         work_dir = \"/shared\"\nuser = \"u\"\n",
        &["resource[0].slurm.node_list", "n[01-16]", "n[1-2"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"slurm\"\n[resource.slurm]\npartition = \"p\"\nnode_list = \"n1\"\n\
         work_dir = \"shared\"\nuser = \"u\"\n",
        &["resource[0].slurm.work_dir", "absolute"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"slurm\"\n[resource.slurm]\npartition = \"p\"\nnode_list = \"n1\"\n\
         work_dir = \"/shared\"\nuser = \"--uid=root\"\n",
        &["resource[0].slurm.user", "--uid=root"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"slurm\"\n[resource.slurm]\npartition = \"p\"\nnode_list = \"n1\"\n\
         work_dir = \"/shared\"\nuser = \"u\"\n[[resource.slurm.party]]\nname = \"a\"\nuser = \"b c\"\n",
        &["resource[0].slurm.party[0].user", "b c"],
    ),
    ("[limits]\nheader_seconds = 0\n", &["header_seconds", "1 to"]),
    (
        "[history]\nexecutions_each = 0\n",
        &["history.executions_each", "1 to 1000000"],
    ),
    (
        "[history]\nsamples_days = 0\n",
        &["history.samples_days", "1 to 36500"],
    ),
    (
        "[history]\nhours_days = 36501\n",
        &["history.hours_days", "1 to 36500"],
    ),
    (
        "[history]\narchive_days = 0\n",
        &["history.archive_days", "1 to 36500"],
    ),
    (
        "[execution]\nkeep_folders_days = 0\n",
        &["execution.keep_folders_days", "1 to 3650"],
    ),
    (
        "[execution.limits]\nmemory_mib = 0\n",
        &["execution.limits.memory_mib", "1 to"],
    ),
    (
        "[[resource]]\nname = \"a\"\nkind = \"local\"\n[resource.limits]\nopen_files = 1\n",
        &["resource[0].limits.open_files", "16 to"],
    ),
    (
        "[[application]]\nname = \"x\"\nprogram = \"/bin/true\"\n[application.limits]\nprocesses = 0\n",
        &["`x`", "limits.processes", "1 to"],
    ),
    ("[limits]\npatience = 3\n", &["patience"]),
    ("[federation]\nname = \"a b\"\n", &["federation.name", "a b"]),
    (
        "[federation]\nname = \"n\"\nhops = 9\n",
        &["federation.hops", "0 to 8"],
    ),
    (
        "[federation]\nname = \"n\"\nhome_templates = [\"none\"]\n",
        &["federation.home_templates", "advance-reservation", "none"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey = \"k\"\ncredit = \"-1\"\n",
        &["peer[0].credit", "\"0\" to"],
    ),
    (
        "[federation]\nname = \"n\"\nask_seconds = 0\n",
        &["federation.ask_seconds", "1 to 8"],
    ),
    (
        "[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey = \"k\"\n",
        &["federation.name", "[[peer]]"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"http://s.example\"\nkey = \"k\"\n",
        &["peer[0].address", "https://", "plain = true"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"s.example\"\nkey = \"k\"\n",
        &["peer[0].address", "https://"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example/?a\"\nkey = \"k\"\n",
        &["peer[0].address", "without ?"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\n",
        &["peer[0].key_file"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey = \"a b\"\n",
        &["peer[0].key"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey_file = \"none.key\"\n",
        &["peer[0].key_file", "none.key"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"local\"\naddress = \"https://s.example\"\nkey = \"k\"\n",
        &["peer[0].name", "local", "resource"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"n\"\naddress = \"https://s.example\"\nkey = \"k\"\n",
        &["peer[0].name", "this domain"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey = \"k\"\n\
         [[peer]]\nname = \"s\"\naddress = \"https://t.example\"\nkey = \"k\"\n",
        &["peer[1].name", "another peer"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey = \"k\"\n\
         [[peer]]\nname = \"t\"\nparty = \"s\"\naddress = \"https://t.example\"\nkey = \"k\"\n",
        &["peer[1].party", "another peer"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey = \"k\"\nmarkup_percent = 0.0001\n",
        &["peer[0].markup_percent", "three decimals"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey = \"k\"\nmarkup_percent = -1\n",
        &["peer[0].markup_percent", "0 to 1000"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey = \"k\"\nnodes = 0\n",
        &["peer[0].nodes", "1 to 100000"],
    ),
    (
        "[federation]\nname = \"n\"\n[[peer]]\nname = \"s\"\naddress = \"https://s.example\"\nkey = \"k\"\n\
         templates = { none = \"nap\" }\n",
        &["peer[0].templates", "advance-reservation", "none"],
    ),
    (
        "[[application]]\nname = \"x\"\nprogram = \"relative\"\n",
        &["program", "absolute"],
    ),
    (
        "[[application]]\nname = \"x\"\nprogram = \"/no/such/program\"\n",
        &["`x`", "program", "/no/such/program"],
    ),
    ("[[application]]\nname = \"x\"\n", &["program"]),
    (
        "[[application]]\nname = \"x\"\nprogram = \"/work/x\"\n",
        &["`x`", "program", "not below /proc or /work"],
    ),
    (
        "[[application]]\nname = \"x\"\nprogram = \"/bin/true\"\nvisible = [\"/opt/..\"]\n",
        &["`x`", "visible", "without `..`"],
    ),
    (
        "[[application]]\nname = \"x\"\nprogram = \"/bin/true\"\ntrusted = true\nnetwork = true\n",
        &["`x`", "trusted", "`network`"],
    ),
    (
        "[[quota]]\nparty = \"x\"\nnode_hours = 1\n[[quota]]\nparty = \"x\"\n",
        &["quota[1].party", "each party once"],
    ),
    (
        "[[quota]]\nparty = \"x\"\nnode_hours = 0\n",
        &["quota[0].node_hours", "1 or more"],
    ),
    ("[trail]\ninterval_seconds = 0\n", &["trail.interval_seconds"]),
    (
        "[[template]]\nfile = \"nowhere.xml\"\n",
        &["template", "nowhere.xml"],
    ),
    (
        "[pricing]\ncurrency = \"euro\"\nnode_hour = \"1\"\n",
        &["currency", "three capital letters"],
    ),
    (
        "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"0.0000001\"\n",
        &["pricing.node_hour", "six decimals"],
    ),
    (
        "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\nflexible_percent = 101\n",
        &["pricing.flexible_percent", "0 to 100"],
    ),
    (
        "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[[pricing.resource]]\nname = \"moon\"\nnode_hour = \"2\"\n",
        &["pricing.resource[0].name", "moon"],
    ),
    (
        "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[pricing.energy]\nseries = \"nowhere.csv\"\nresource = []\n",
        &["pricing.energy.series", "nowhere.csv"],
    ),
    (
        "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[pricing.energy]\nkwh = \"1\"\n[[pricing.energy.resource]]\nname = \"local\"\nbusy_watts = 0\n",
        &["pricing.energy.resource[0].busy_watts", "1 to 1000000"],
    ),
    (
        "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[pricing.energy]\nkwh = \"-4000.1\"\nresource = []\n",
        &["pricing.energy.kwh", "-4000", "4000"],
    ),
    (
        "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[pricing.energy]\nseries = \"http://127.0.0.1:9/\"\nseries_seconds = 0\nresource = []\n",
        &["pricing.energy.series_seconds", "1 to 604800"],
    ),
    (
        "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[pricing.energy]\nseries = \"https://u:secret@127.0.0.1/\"\nresource = []\n",
        &["pricing.energy.series"],
    ),
    (
        "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[pricing.energy]\nresource = []\n",
        &["pricing.energy", "kwh or series"],
    ),
    ("not toml", &["bespeak.toml"]),
];

#[test]
fn a_wrong_configuration_is_refused_with_its_key_and_what_was_expected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (text, named) in WRONG {
        fs::write(folder.path().join("bespeak.toml"), text).expect("a file can be written");
        let (code, errors) = serve(&folder, &["--config", "bespeak.toml"]);
        assert_eq!(code, Some(2), "{text}: {errors}");
        for name in *named {
            assert!(errors.contains(name), "{text}: {name} is not named: {errors}");
        }
        let checked = check(&folder);
        let said = String::from_utf8_lossy(&checked.stderr);
        assert_eq!(checked.status.code(), Some(2), "{text}: {said}");
        assert!(said.contains(named[0]), "{text}: {said}");
    }
}

/// Runs `config check` in a folder with a configuration.
fn check(folder: &tempfile::TempDir) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bespeak"));
    command
        .current_dir(folder)
        .env_remove("BESPEAK_CONFIG")
        .args(["config", "check", "bespeak.toml"]);
    output_of(&mut command, DEADLINE)
}

#[test]
fn resources_of_different_rates_get_the_least_work_lost_where_no_objective_is_set() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let said = |text: &str| {
        fs::write(folder.path().join("bespeak.toml"), text).expect("a file can be written");
        let right = check(&folder);
        assert!(right.status.success(), "{right:?}");
        let said = String::from_utf8_lossy(&right.stdout).into_owned();
        let line = said
            .lines()
            .find(|line| line.trim_start().starts_with("objective"));
        line.unwrap_or_else(|| panic!("no objective in {said}"))
            .trim()
            .to_owned()
    };
    let resource = |name: &str, rate: &str| {
        format!("[[resource]]\nname = \"{name}\"\nkind = \"local\"\nnodes = 2\nrate = {rate}\n")
    };
    let set = "[scheduling]\nobjective = \"earliest-completion\"\n";
    let alike = resource("a", "1.5") + &resource("b", "1.5");
    let two = resource("a", "1.0") + &resource("b", "0.5");
    assert!(said(&alike).ends_with(" earliest-completion"));
    assert!(said(&(set.to_owned() + &alike)).ends_with(" earliest-completion"));
    assert!(said(&two).ends_with(" least-work-lost"));
    let told = said(&(set.to_owned() + &two));
    assert!(
        told.contains("earliest-completion, as it is set; resources differ in rate"),
        "{told}"
    );
    let least = "[scheduling]\nobjective = \"least-work-lost\"\n";
    assert!(said(&(least.to_owned() + &two)).ends_with(" least-work-lost"));
}

#[test]
fn the_check_tells_what_a_configuration_has_and_reads_the_files_that_it_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let configuration = |more: &str| {
        let text = format!("{more}[[resource]]\nname = \"big\"\nkind = \"local\"\nnodes = 7\n");
        fs::write(folder.path().join("bespeak.toml"), text).expect("a file can be written");
    };
    configuration("[pricing]\ncurrency = \"CHF\"\nnode_hour = \"1\"\n");
    let right = check(&folder);
    let said = String::from_utf8_lossy(&right.stdout).into_owned();
    assert!(right.status.success(), "{right:?}");
    for part in ["big (local, 7 nodes)", "sleep", "advance-reservation", "CHF"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for (missing, key) in [
        ("[[template]]\nfile = \"none.xml\"\n", "template[0].file"),
        (
            "[tls]\ncertificate = \"none.pem\"\nkey = \"none.pem\"\n",
            "tls.certificate",
        ),
        (
            "[pricing]\ncurrency = \"CHF\"\nnode_hour = \"1\"\n[pricing.energy]\nseries = \"none.csv\"\n[[pricing.energy.resource]]\nname = \"big\"\nbusy_watts = 400\nidle_watts = 120\n",
            "none.csv",
        ),
    ] {
        configuration(missing);
        let checked = check(&folder);
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert_eq!(checked.status.code(), Some(2), "{key}: {said}");
        assert!(said.contains(key), "{key}: {said}");
    }
    assert!(!folder.path().join("data").exists(), "no store is made");
}

#[test]
fn the_check_tells_what_the_running_service_would_change() {
    run(async {
        let server = Server::local();
        let check = |more: &[&'static str]| {
            let file = server.data_dir().with_file_name("bespeak.toml");
            let file = file.to_str().expect("a path in UTF-8");
            server.run(&[&["config", "check", file, "--running"], more].concat())
        };
        let same = check(&[]);
        let said = String::from_utf8_lossy(&same.stdout).into_owned();
        assert!(
            same.status.success() && said.contains("no resource would be changed"),
            "{same:?}"
        );
        server.reconfigure("horizon_days = 7\n[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 3\n");
        let other = check(&[]);
        let said = String::from_utf8_lossy(&other.stdout).into_owned();
        assert!(other.status.success(), "{other:?}");
        assert!(said.contains("local: would be 3 nodes"), "{said}");
        assert!(said.contains("restart only: horizon_days"), "{said}");
        let told: serde_json::Value = serde_json::from_slice(&check(&["--json"]).stdout).expect("it is JSON");
        assert_eq!(told["file"]["resources"][0]["nodes"], 3, "{told}");
        assert_eq!(told["running"]["dryRun"], true, "{told}");
        // Nothing is taken over.
        let resources = server.client().get_json("/resources").await;
        assert_eq!(resources["resources"][0]["nodes"], 4, "{resources}");
        let refused = server.run(&["config", "check", "--server", "http://127.0.0.1:1"]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    });
}

#[test]
fn a_template_that_no_offer_can_keep_to_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let template = file("templates/agreements/advance-reservation.xml");
    let unbound = "<wsag:ServiceProperties wsag:Name=\"P\" wsag:ServiceName=\"COMPUTE\"><wsag:VariableSet>\
                   <wsag:Variable wsag:Name=\"cnt\" wsag:Metric=\"xs:int\"><wsag:Location>count(//jsdl:Exact)</wsag:Location>\
                   </wsag:Variable></wsag:VariableSet></wsag:ServiceProperties><wsag:GuaranteeTerm";
    for (part, replacement, why) in [
        ("<wsag:Name>advance-reservation</wsag:Name>", "", "no wsag:Name"),
        (
            "<wsag:GuaranteeTerm",
            unbound,
            "the variable \"cnt\" cannot be bound",
        ),
        (
            "name=\"StartTime\" type=\"xs:dateTime\"",
            "name=\"StartTime\" type=\"jsdl:Instant_Type\"",
            "/wsag:Template/wsag:CreationConstraints/wsag:Item[8]/wsag:ItemConstraint/xs:sequence/xs:element[1]: the type \
             jsdl:Instant_Type is not supported",
        ),
        (
            "name=\"StartTime\" type=\"xs:dateTime\"",
            "name=\"StartTime\" type=\"wsag:AgreementType\"",
            "xs:element[1]: the type wsag:AgreementType is not supported",
        ),
        (
            "<xs:minInclusive value=\"1\"/><xs:maxInclusive value=\"31536000\"/>",
            "<xs:minInclusive value=\"61\"/><xs:maxInclusive value=\"60\"/>",
            "item \"duration\": no value is at least 61 and at most 60",
        ),
        (
            "<xs:element ref=\"arp:AllocationTimeConstraint\"/>",
            "<xs:element name=\"AllocationTimeConstraint\"><xs:complexType><xs:complexContent><xs:extension \
             base=\"arp:AllocationTimeConstraintType\"/></xs:complexContent></xs:complexType></xs:element>",
            "/xs:complexType/xs:complexContent: a type that is derived by xs:complexContent is not supported",
        ),
    ] {
        let wrong = template.replacen(part, replacement, 1);
        assert_ne!(template, wrong);
        fs::write(folder.path().join("wrong.xml"), wrong).expect("a file can be written");
        let text = "[[template]]\nfile = \"wrong.xml\"\n";
        fs::write(folder.path().join("bespeak.toml"), text).expect("a file can be written");
        let (code, errors) = serve(&folder, &["--config", "bespeak.toml"]);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains("wrong.xml") && errors.contains(why), "{errors}");
    }
}

#[test]
fn a_wrong_option_is_refused_with_its_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (arguments, named) in [
        (&["--listen", "everywhere"][..], "--listen"),
        (&["--listen", "0.0.0.0:0"], "--insecure"),
        (&["--database-url", "mysql://localhost/x"], "database address"),
        (&["--config", "nowhere.toml"], "nowhere.toml"),
        (&["--no-such-option"], "--no-such-option"),
    ] {
        let (code, errors) = serve(&folder, arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(named), "{arguments:?}: {errors}");
    }
}

#[test]
fn the_example_is_a_configuration_and_so_are_its_optional_keys() {
    run(async {
        let example = file("bespeak.example.toml");
        // Its own time is not over.
        let folder = tempfile::tempdir().expect("a temporary folder");
        let template = folder.path().join("template.xml");
        fs::write(&template, moved(&file("tests/messages/m01-template.xml"))).expect("a file can be written");
        let optional = example
            .replace("# public_address", "public_address")
            .replace("# version", "version")
            .replace("# [[template]]", "[[template]]")
            .replace("# file", "file")
            .replace("templates/my-template.xml", &template.display().to_string());
        let priced = [
            "[pricing]",
            "[[pricing.resource]]",
            "[[pricing.profile]]",
            "[pricing.energy]",
            "[[pricing.energy.resource]]",
            "kwh",
            "carbon_kg",
            "busy_watts",
            "idle_watts",
            "currency",
            "node_hour",
            "busy_percent",
            "late_percent",
            "flexible_percent",
            "flexible_half_seconds",
            "preemptive_percent",
            "shapes_percent",
            "cancellation_percent",
            "change_percent",
            "name = \"local\"",
            "party",
            "percent",
        ];
        let cluster = [
            "[[resource]]",
            "name = \"cluster\"",
            "kind = \"slurm\"",
            "[resource.slurm]",
            "partition",
            "node_list",
            "configuration",
            "work_dir",
            "user",
            "account",
            "call_seconds",
            "turnaround_seconds",
            "reclaim_minutes",
            "[[resource.slurm.party]]",
            "name = \"physics\"",
        ];
        // A key file is tested beside.
        let federated = [
            "[federation]",
            "name = \"north\"",
            "hops",
            "ask_seconds",
            "tell_requesters",
            "show_peers",
            "home_templates",
            "[[peer]]",
            "name = \"south\"",
            "address = ",
            "plain",
            "key = \"bsp_",
            "templates = {",
            "nodes = 1000 ",
            "requests_per_minute",
            "held_node_hours",
            "credit",
            "markup_percent",
            "forwards",
            "party = \"south\"",
        ];
        let optional = optional
            .replace("bsp_…", "bsp_1")
            .replace("{ advance-reservation =", "{ 1 =");
        let optional = priced
            .iter()
            .chain(&cluster)
            .chain(&federated)
            .fold(optional, |text, key| {
                text.replace(&format!("\n# {key}"), &format!("\n{key}"))
            });
        assert_ne!(example, optional, "the example has lost its optional keys");
        let server = Server::configured(None, &example);
        server
            .client()
            .post("/agreements", file("examples/sleep.xml"))
            .await
            .created();
        let server = Server::configured(None, &optional);
        let templates = server.client().get("/templates").await;
        assert!(templates.body.contains("wsag:TemplateId=\"1\""), "{templates:?}");
    });
}

/// Runs `serve` where it must end by itself; its exit status and its output.
pub(crate) fn serve(folder: &tempfile::TempDir, arguments: &[&str]) -> (Option<i32>, String) {
    let listen = if arguments.contains(&"--listen") {
        &[][..]
    } else {
        &["--listen", "127.0.0.1:0"]
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_bespeak"));
    command
        .current_dir(folder)
        .env_remove("BESPEAK_CONFIG")
        .args(["serve", "--data-dir", "data"]);
    let output = output_of(command.args(listen).args(arguments), DEADLINE);
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
