//! Requests: what there is, what would be done, and what is refused before anything is started.

use std::process::Stdio;

use serde_json::Value;

use crate::program::{Outcome, Scratch, outcome, small_study};

#[test]
fn what_there_is_is_listed_as_text_and_as_one_document() {
    let scratch = Scratch::new();
    let text = scratch.run(&["list"]).expect(0).stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    let all = scratch.run(&["list", "--json"]).expect(0).json();
    for kind in ["studies", "records", "layouts", "databases", "workloads"] {
        let members = all[kind].as_array().unwrap();
        assert!(
            !members.is_empty() && text.contains(&format!("\n {kind}")) || text.starts_with(&format!(" {kind}")),
            "{text}"
        );
        for member in members {
            assert!(member["summary"].is_string() && text.contains(member["name"].as_str().unwrap()), "{member}");
        }
        let one = scratch.run(&["list", kind, "--json"]).expect(0).json();
        assert_eq!((one.as_object().unwrap().len(), &one[kind]), (2, &all[kind]), "with the version");
    }
    let databases = all["databases"].as_array().unwrap();
    let database = |name: &str| databases.iter().find(|database| database["name"] == name).unwrap();
    assert_eq!(database("sqlite")["can_start"], true);
    for name in ["mariadb", "postgres"] {
        assert!(database(name)["can_start"] == true && database(name)["server"].is_string(), "{databases:#?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_line() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("study.toml"), b"name = \"x\"\nquestion = \"\xff\"\n").unwrap();
    scratch.run(&["plan", "study.toml"]).refused(&["study.toml:2: not UTF-8 text; a study is a TOML file"]);
    std::fs::write(scratch.path("workload"), b"recordcount=1\n\n\xfe\n").unwrap();
    scratch.run(&["plan", "--ycsb", "workload"]).refused(&["workload:3: not UTF-8 text"]);
}

#[test]
fn an_argument_commands_no_terminal() {
    let scratch = Scratch::new();
    let title = "--\u{1b}]0;title\u{7}";
    for arguments in [vec!["plan", title], vec!["plan", title, "--json"], vec!["\u{9b}2J"]] {
        let refused = scratch.run(&arguments).expect(2);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(said.contains("u{1b}") || said.contains("u{9b}"), "{said}");
        assert!(!said.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{said:?}");
    }
}

#[test]
fn a_plan_says_what_would_be_done_and_starts_nothing() {
    let scratch = Scratch::new();
    let plan = scratch.run(&["plan", "qos-write", "--json", "--quick"]).expect(0).json();
    assert_eq!(plan["cases"].as_array().unwrap().len(), 12);
    assert!(plan["trials"]["least"].as_u64() <= plan["trials"]["most"].as_u64());
    assert!(plan["estimate_s"]["least"].is_f64() && plan["seed"] == 1 && plan["quick"] == true);
    let text = scratch.run(&["plan", "qos-write", "--set", "load.clients=[1,16]", "--seed", "9"]).expect(0).stdout;
    assert!(text.contains("6 = 3 layout.name × 2 load.clients") && text.contains("seed      9"), "{text}");
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 0, "nothing is made");
}

#[test]
fn generated_records_come_in_three_forms_and_as_one_document() {
    let scratch = Scratch::new();
    let csv = scratch.run(&["data", "qos", "--rows", "4"]).expect(0).stdout;
    assert_eq!((csv.lines().count(), csv.lines().next().unwrap().split(',').count()), (5, 61));
    let jsonl = scratch.run(&["data", "qos", "--rows", "4", "--format", "jsonl"]).expect(0).stdout;
    let objects: Vec<Value> = jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        scratch.run(&["data", "qos", "--rows", "4", "--json"]).expect(0).json()["records"],
        Value::Array(objects)
    );
    assert_eq!(
        scratch.run(&["data", "qos", "--rows", "0", "--json"]).expect(0).json()["records"],
        Value::Array(Vec::new())
    );
    let line = scratch.run(&["data", "qos", "--rows", "4", "--format", "line", "--seed", "2"]).expect(0).stdout;
    assert!(line.lines().count() == 4 && line.starts_with("qos,customerId="), "{line}");
    scratch.run(&["data", "qos", "--rows", "4", "--format", "csv", "--json"]).refused(&["leave one of them out"]);
    scratch.run(&["data", "qoss", "--rows", "4"]).refused(&["unknown record.type \"qoss\""]);
    scratch.run(&["data", "custom", "--rows", "4"]).refused(&["study file"]);
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let scratch = Scratch::new();
    for arguments in [
        &["data", "qos", "--rows", "200000"][..],
        &["data", "qos", "--rows", "200000", "--json"],
        &["list"],
        &["plan", "qos-write", "--json"],
    ] {
        let mut child = scratch.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
    let mut nobody_listens = scratch.command(&["run", "nosuch"]);
    let mut child = nobody_listens.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2), "the status is the same when nobody listens");
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for arguments in [&["list"][..], &["data", "qos", "--rows", "1"]] {
        let output = scratch.command(arguments).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "what is lost is said: {output:?}");
    }
}

#[test]
fn wrong_usage_is_refused_with_the_usage() {
    let scratch = Scratch::new();
    for arguments in [&["compare"][..], &["list", "tables"], &["data", "qos"], &["report"], &["runn", "qos-write"]] {
        scratch.run(arguments).refused(&["error: ", "help"]);
    }
    scratch.run(&["run", "qos-write", "--out", "a", "--resume", "b"]).refused(&["cannot be used with"]);
    scratch.run(&["report", "nowhere"]).refused(&["nowhere is not a run directory"]);
    scratch.run(&["run", "qos-writ"]).refused(&["unknown study \"qos-writ\"", "qos-write"]);
}

/// A run that must be refused, and leave no directory.
#[track_caller]
fn refused(scratch: &Scratch, sets: &[&str], words: &[&str]) {
    let mut arguments = vec!["run", "study.toml", "--out", "run"];
    arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
    scratch.run(&arguments).refused(words);
    assert!(!scratch.path("run").exists(), "{sets:?} made a run directory");
}

#[test]
fn what_is_wrong_in_a_study_is_told_all_at_once_with_place_and_remedy() {
    let scratch = Scratch::new();
    scratch.write(
        "study.toml",
        &small_study("[database]\nnane = \"sqlite\"\n[layout]\nname = \"wdie\"\n[load]\nclients = 0"),
    );
    refused(
        &scratch,
        &["load.clinets=4"],
        &[
            "study.toml:3: unknown key \"nane\" in database; did you mean \"name\"?",
            "study.toml:5: unknown layout \"wdie\"; did you mean \"wide\"?",
            "study.toml:7: load.clients is 0",
            "--set load.clinets=4: unknown setting \"load.clinets\"; did you mean \"load.clients\"?",
        ],
    );
    scratch.write("study.toml", &small_study("[database]\nname = \"sqlite\""));
    refused(&scratch, &["workload.name=read"], &["record.rows is 0"]);
    refused(&scratch, &["load.rate=5"], &["a closed loop has no rate"]);
    refused(&scratch, &["database.engine=innodb"], &["sqlite has no engines"]);
    refused(&scratch, &["layout.name=jsno"], &["unknown layout \"jsno\"; did you mean \"json\"?"]);
}

#[test]
fn a_server_that_cannot_be_started_is_refused_before_anything_is_measured() {
    let scratch = Scratch::new();
    scratch.write("study.toml", &small_study("[database]\nname = \"mariadb\""));
    refused(&scratch, &["database.binary=/nowhere/mariadbd"], &["database.binary = \"/nowhere/mariadbd\""]);
    refused(
        &scratch,
        &["database.cpus=77"],
        &["database.cpus: CPU 77 does not exist or is switched off; this machine has"],
    );
    refused(&scratch, &["load.cpus=77"], &["load.cpus: CPU 77 does not exist"]);
    refused(&scratch, &["database.config.datadir=/tmp/x"], &["\"datadir\" is set by loadline"]);
    refused(
        &scratch,
        &["database.config.no_such_setting=1"],
        &["unknown variable 'no_such_setting=1'", "correct or remove database.config.no_such_setting"],
    );
    refused(
        &scratch,
        &["database.name=postgres", "database.config.shared_buffers=many"],
        &[
            "invalid value for parameter \"shared_buffers\"",
            "correct or remove database.config.shared_buffers = \"many\"",
        ],
    );
    refused(&scratch, &["database.name=simulated", "database.config.servce=1"], &["it has service, "]);
}

#[test]
fn whoever_names_no_study_is_told_what_there_is() {
    let scratch = Scratch::new();
    for command in ["run", "plan"] {
        scratch.run(&[command]).refused(&["no study is named", "qos-write", "loadline list studies"]);
    }
}

#[test]
fn a_server_that_does_not_let_us_in_is_refused() {
    let scratch = Scratch::new();
    scratch.write("study.toml", &small_study("[database]\nname = \"mariadb\""));
    let port = crate::port::free();
    for (database, scheme) in [("mariadb", "mysql"), ("postgres", "postgres")] {
        let name = format!("database.name={database}");
        let nobody = format!("database.url={scheme}://ann:secret@127.0.0.1:{port}/db");
        refused(
            &scratch,
            &[&name, &nobody],
            &[
                &format!("database.url = \"{scheme}://ann@127.0.0.1:{port}/db\": cannot connect to 127.0.0.1:{port}"),
                "check the address, and that the server is running",
            ],
        );
        let no_port = format!("database.url={scheme}://ann:secret@127.0.0.1:many/db");
        refused(
            &scratch,
            &[&name, &no_port],
            &["port", &format!("{scheme}://ann:***@127.0.0.1:many/db: database.url")],
        );
    }
    let text: Vec<Outcome> = ["mysql://ann:secret@h:x/d", "secret"]
        .map(|url| scratch.run(&["plan", "study.toml", "--set", &format!("database.url={url}")]))
        .into();
    assert!(!text[0].stderr.contains("secret"), "{text:?}");
}

#[test]
fn a_run_directory_that_exists_or_cannot_be_made_is_refused_and_left_alone() {
    let scratch = Scratch::new();
    scratch.write("study.toml", &small_study("[database]\nname = \"sqlite\""));
    std::fs::create_dir(scratch.path("there")).unwrap();
    scratch.write("there/notes", "mine");
    scratch.run(&["run", "study.toml", "--out", "there"]).refused(&["there exists already", "--out", "--resume"]);
    assert_eq!(std::fs::read_to_string(scratch.path("there/notes")).unwrap(), "mine");
    scratch.run(&["run", "study.toml", "--out", "study.toml/run"]).refused(&["study.toml/run: Not a directory"]);
    scratch.run(&["run", "study.toml", "--resume", "there"]).refused(&["there is not a run directory"]);
    scratch.run(&["run", "study.toml", "--resume", "nowhere"]).refused(&["nowhere is not a run directory"]);
    let mut unwritable = scratch.command(&["run", "study.toml", "--out", "/proc/run"]);
    outcome(&mut unwritable).refused(&["/proc/run"]);
}
