//! Schemas as editors and other programs get them, and what the program prints held against them.

use boon::{Compiler, Schemas};
use serde_json::Value;

use super::program::Scratch;

/// What is wrong with a document by a schema; none where it is valid.
fn wrong(schema: &Value, document: &Value) -> Option<String> {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("https://loadline.invalid/schema.json", schema.clone()).unwrap();
    let index = compiler.compile("https://loadline.invalid/schema.json", &mut schemas).unwrap();
    schemas.validate(document, index).err().map(|error| format!("{error:#}"))
}

fn printed(what: &str) -> Value {
    let outcome = Scratch::new().run(&["schema", what]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""), "{what}");
    let schema: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    schema
}

fn json_of(text: &str) -> Value {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

#[test]
fn a_file_is_valid_by_the_schema_where_the_program_takes_it() {
    let (study, recorder) = (printed("study"), printed("recorder"));
    let scratch = Scratch::new();
    for (text, is_right) in [
        ("[load]\nclients = 2\n[factors]\n\"layout.name\" = [\"star\", \"wide\"]\n", true),
        ("[load]\nclients = 0\n", false),
        ("[load]\ncleints = 2\n", false),
        ("[disk]\nsync = \"ech\"\n", false),
        ("[factors]\n\"load.trace\" = [\"a\"]\n", false),
    ] {
        scratch.write("s.toml", text);
        let outcome = scratch.run(&["plan", "s.toml"]);
        assert_eq!(outcome.status == Some(0), is_right, "{text}: {}", outcome.stderr);
        let said = wrong(&study, &json_of(text));
        assert_eq!(said.is_none(), is_right, "{text}: {said:?}");
    }
    let right = "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n";
    assert_eq!(wrong(&recorder, &json_of(right)), None);
    assert!(wrong(&recorder, &json_of("[intake.http]\nlistn = \"127.0.0.1:0\"\n")).is_some());
}

#[test]
fn what_run_and_report_print_is_as_the_schema_says() {
    let schema = printed("results");
    let scratch = Scratch::new();
    scratch.write(
        "s.toml",
        "[database]\nname = \"simulated\"\n[load]\noperations = 20\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 2\n\
         [factors]\n\"load.clients\" = [1, 2]\n[[claims]]\nsays = \"a\"\nmetric = \"throughput\"\n\
         ratio = { of = { \"load.clients\" = 1 }, to = { \"load.clients\" = 2 }, above = 0.01 }\n",
    );
    let run = scratch.run(&["run", "s.toml", "--out", "r", "--json"]);
    let found: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stderr));
    assert_eq!(wrong(&schema, &found), None);
    assert!(found["cases"].as_array().is_some_and(|cases| cases.len() == 2), "{found:#}");
    let both = scratch.run(&["report", "r", "r", "--json"]);
    assert_eq!(wrong(&schema, &serde_json::from_str(&both.stdout).unwrap()), None);
    assert!(wrong(&schema, &serde_json::json!({ "run": 1 })).is_some());
}

#[test]
fn what_has_no_schema_is_refused_with_what_has_one() {
    let outcome = Scratch::new().run(&["schema", "studies"]);
    assert_eq!(outcome.status, Some(2));
    assert!(outcome.stderr.contains("study, recorder, other-recorder, results"), "{}", outcome.stderr);
}

#[test]
fn help_tells_of_commands_and_of_settings_what_their_rows_say() {
    let scratch = Scratch::new();
    let told = |words: &[&str]| {
        let outcome = scratch.run(words);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""), "{words:?}");
        outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let clients = told(&["help", "load.clients"]);
    for part in ["clients in [load], of a study file", "whole number from 1 to 100,000", "\"load.clients\" = ["] {
        assert!(clients.contains(part), "{clients}");
    }
    assert_eq!(told(&["help", "database.config.fsync"]), told(&["help", "database.config"]));
    // The end of a name is enough, and what both files have is told of both.
    let listen = told(&["help", "listen"]);
    assert!(listen.contains("intake.http.listen") && listen.contains("of a recorder's file"), "{listen}");
    let load = told(&["help", "load"]);
    assert!(load.contains("[load], of a study file") && load.contains("think"), "{load}");
    let run = told(&["help", "run"]);
    assert!(run.contains("Usage: loadline run") && run.contains("--resume"), "{run}");
    assert_eq!(run, told(&["run", "--help"]));
    assert!(told(&["help"]).contains("Commands:") && told(&["help", "block", "make"]).contains("loadline block make"));
    scratch.run(&["help", "load.cleints"]).refused(&["\"load.cleints\"", "did you mean \"load.clients\"?"]);
    assert_eq!(told(&["help", "[load]"]), load);
    let own = told(&["help", "database.config.fsync"]);
    assert!(own.contains("\"database.config.NAME\" = ["), "{own}");
    let long = scratch.run(&["help", &"x".repeat(5_000)]);
    assert!(long.status == Some(2) && long.stderr.len() < 300, "{}", long.stderr);
    scratch.run(&["help", "rnu"]).refused(&["did you mean \"run\"?"]);
    let json: Value = serde_json::from_str(&scratch.run(&["help", "load.clients", "--json"]).stdout).unwrap();
    assert_eq!(
        (&json["settings"][0]["setting"], &json["settings"][0]["can_be_factor"]),
        (&"load.clients".into(), &true.into())
    );
}

#[test]
fn every_setting_has_help() {
    let scratch = Scratch::new();
    let page =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md")).unwrap();
    let keys: std::collections::BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert!(keys.len() > 150, "{keys:?}");
    // Each process takes some milliseconds: a part of them is enough.
    for key in keys.into_iter().step_by(7) {
        let outcome = scratch.run(&["help", key]);
        assert_eq!(outcome.status, Some(0), "{key}: {}", outcome.stderr);
    }
}
