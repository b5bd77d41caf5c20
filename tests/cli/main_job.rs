//! The main job from a study to a verdict, on each database.

use std::collections::BTreeSet;
use std::path::Path;

use loadline::store::Run;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::contract::check_findings;
use crate::program::{Outcome, Scratch, small_study};

/// The bundled study on a database, with as many clients as two CPUs bear. Trials are counted in operations: on a machine that
/// does other things too, 400 ms may pass without one, and such a trial is invalid.
fn rehearse(scratch: &Scratch, database: &str) -> Value {
    let mut arguments = vec!["run", "qos-write", "--quick", "--json", "--out", database];
    let name = format!("database.name={database}");
    for set in [name.as_str(), "load.clients=[1,2]", "load.operations=60", "repeat.most=3"] {
        arguments.extend(["--set", set]);
    }
    let outcome = scratch.run(&arguments).expect(0);
    assert_eq!(outcome.stderr, "", "a run that is valid has nothing to say besides");
    let findings = outcome.json();
    check_findings(&findings);
    assert_eq!((&findings["study"], &findings["valid"]), (&"qos-write".into(), &true.into()));
    assert_eq!((&findings["run"], &findings["rehearsal"]), (&database.into(), &true.into()));
    let cases = findings["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let trials = case["trials"].as_u64().unwrap();
        assert_eq!(case["operations"]["insert"]["count"], 60 * trials, "{case:#}");
        assert!(case["throughput_per_s"]["mean"].as_f64().unwrap() > 0.0);
        assert!(case["resources"]["client_cpu"].as_f64().unwrap() > 0.0, "the machine was watched: {case:#}");
    }
    assert_eq!(findings["claims"].as_array().unwrap().len(), 4);
    check_directory(&scratch.path(database), &findings);
    findings
}

/// The run directory, as ARCHITECTURE.md has it: what is in it, and that its counts are those of the findings.
fn check_directory(path: &Path, findings: &Value) {
    let mut names: Vec<String> =
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["monitor", "report.html", "run.toml", "trials.jsonl"], "a database leaves nothing behind");

    let lines = std::fs::read_to_string(path.join("trials.jsonl")).unwrap();
    let trials: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let counted: u64 = findings["cases"].as_array().unwrap().iter().map(|case| case["trials"].as_u64().unwrap()).sum();
    assert_eq!(trials.len() as u64, counted);
    let ids: BTreeSet<&str> = trials.iter().map(|trial| trial["trial"]["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), trials.len(), "no trial is done twice");
    for (place, trial) in trials.iter().enumerate() {
        assert_eq!((&trial["version"], &trial["sequence"]), (&2.into(), &place.into()));
        let samples = path.join(format!("monitor/{}.jsonl", trial["trial"]["id"].as_str().unwrap()));
        let samples = std::fs::read_to_string(samples).unwrap();
        assert!(
            samples.lines().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|sample| sample["idle"].is_f64()))
        );
    }
    assert_eq!(std::fs::read_dir(path.join("monitor")).unwrap().count(), trials.len());

    let run = Run::open(path).unwrap();
    assert_eq!((run.file.study.name.as_str(), run.file.study.seed), ("qos-write", 1));
    let environment = &run.file.environment;
    assert!(!environment.machine.is_empty() && environment.cpus > 0 && !environment.kernel.is_empty());
    let name = &run.file.study.base.database.name;
    assert!(environment.databases[name].contains_key("version"), "{environment:?}");

    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("Which layout takes the most measurement rows per second?"));
    for address in page.match_indices("http").map(|(at, _)| &page[at..(at + 40).min(page.len())]) {
        let is_address = address.starts_with("http://") || address.starts_with("https://");
        assert!(!is_address || address.starts_with("http://www.w3.org/"), "the page must open offline: {address}");
    }
    assert!(!page.contains("src=\"") && !page.contains("@import") && !page.contains("url("), "nothing is fetched");
}

#[test]
fn the_study_runs_on_sqlite_and_everything_else_follows_from_what_is_stored() {
    let scratch = Scratch::new();
    let findings = rehearse(&scratch, "sqlite");

    // From a copy of the two files that are the evidence.
    std::fs::create_dir(scratch.path("copy")).unwrap();
    for name in ["run.toml", "trials.jsonl"] {
        std::fs::copy(scratch.path("sqlite").join(name), scratch.path("copy").join(name)).unwrap();
    }
    let mut again = scratch.run(&["report", "copy", "--json"]).expect(0).json();
    again["run"] = findings["run"].clone();
    assert_eq!(again, findings);
    let page = |run: &str| std::fs::read_to_string(scratch.path(run).join("report.html")).unwrap();
    assert_eq!(page("copy").replace("copy", "sqlite"), page("sqlite"));

    let both = scratch.run(&["report", "sqlite", "copy", "--json"]).expect(0).json();
    let both = both["runs"].as_array().expect("several runs are one document");
    let mut first = findings.clone();
    first.as_object_mut().unwrap().remove("version");
    assert_eq!((both.len(), &both[0]), (2, &first));

    let text = scratch.run(&["report", "sqlite"]).expect(0);
    assert_eq!(text.stderr, "");
    check_text(&text, &findings);
    exports(&scratch, &findings);
}

/// A line for each case, then the verdicts and claims, no line wider than the terminal.
fn check_text(text: &Outcome, findings: &Value) {
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert_eq!(lines[0], "qos-write: Which layout takes the most measurement rows per second?");
    assert!(lines[1].starts_with("REHEARSAL"), "{}", lines[1]);
    // Rows begin with one space; the second lines of long sentences with two.
    let is_row = |line: &str| line.starts_with(' ') && !line.starts_with("  ");
    let row =
        |line: &&&str| is_row(line) && ["wide ", "star"].iter().any(|layout| line.trim_start().starts_with(layout));
    // What the cases take of the disk has a table of its own behind it.
    let cases = lines.iter().take_while(|line| **line != "On the disk");
    assert_eq!(cases.filter(row).count(), findings["cases"].as_array().unwrap().len(), "{}", text.stdout);
    assert!(lines.iter().all(|line| line.chars().count() <= 120), "{}", text.stdout);
    let words = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let texts = |name: &str| findings[name].as_array().unwrap().clone();
    for verdict in texts("verdicts").iter().filter(|verdict| verdict["kind"] != "rehearsal") {
        assert!(words.contains(verdict["says"].as_str().unwrap()), "{verdict:?} is missing: {}", text.stdout);
    }
    for claim in texts("claims") {
        assert!(words.contains(claim["says"].as_str().unwrap()) && words.contains(claim["evidence"].as_str().unwrap()));
    }
    assert!(text.stdout.ends_with("\nreport: sqlite/report.html\n"), "{}", text.stdout);
}

fn exports(scratch: &Scratch, findings: &Value) {
    let trials: u64 = findings["cases"].as_array().unwrap().iter().map(|case| case["trials"].as_u64().unwrap()).sum();
    let outcome = scratch.run(&["export", "sqlite", "--format", "csv", "--out", "files"]).expect(0);
    assert_eq!(outcome.stdout, "files/trials.csv\n");
    let csv = std::fs::read_to_string(scratch.path("files/trials.csv")).unwrap();
    assert_eq!(csv.lines().count() as u64, 1 + trials, "one kind of operation, one line a trial");
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns));

    let outcome = scratch.run(&["export", "sqlite", "--format", "jsonl", "--out", "files", "--json"]).expect(0);
    assert_eq!(outcome.json(), serde_json::json!({ "version": 1, "files": ["files/trials.jsonl"] }));
    let jsonl = std::fs::read_to_string(scratch.path("files/trials.jsonl")).unwrap();
    assert_eq!(jsonl.lines().count() as u64, trials);
    assert!(jsonl.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));

    let arguments = ["export", "sqlite", "--format", "csv", "--out", "files"];
    scratch.run(&arguments).refused(&["files/trials.csv exists already", "--out"]);
    assert_eq!(std::fs::read_to_string(scratch.path("files/trials.csv")).unwrap(), csv, "it is left as it was");
    let outcome = scratch.run(&["export", "sqlite", "--format", "parquet", "--out", "files"]).expect(0);
    assert_eq!(outcome.stdout, "files/trials.parquet\n");
    assert_eq!(as_csv(&scratch.path("files/trials.parquet")), csv);
    scratch.run(&["export", "files", "--format", "csv", "--out", "x"]).refused(&["files is not a run directory"]);
}

/// A Parquet file as the comma-separated values that the same export makes; no field of these needs quotes.
fn as_csv(path: &std::path::Path) -> String {
    let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let columns = file.metadata().file_metadata().schema_descr().columns().to_vec();
    let mut lines = columns.iter().map(|column| column.name().to_owned()).collect::<Vec<_>>().join(",") + "\n";
    for row in file.get_row_iter(None).unwrap() {
        let fields = row.unwrap().into_columns().into_iter().map(|(_, field)| match field {
            Field::Null => String::new(),
            Field::Str(text) => text,
            Field::ULong(count) => count.to_string(),
            Field::Double(figure) => figure.to_string(),
            Field::Bool(flag) => flag.to_string(),
            other => panic!("a field of another type: {other}"),
        });
        lines += &(fields.collect::<Vec<_>>().join(",") + "\n");
    }
    lines
}

#[test]
fn the_study_runs_on_mariadb() {
    let findings = rehearse(&Scratch::new(), "mariadb");
    let cpus = findings["cases"][0]["resources"]["server_cpu"].as_f64().unwrap();
    assert!(cpus > 0.0, "the server was watched");
}

#[test]
fn the_study_runs_on_postgres() {
    let findings = rehearse(&Scratch::new(), "postgres");
    let cpus = findings["cases"][0]["resources"]["server_cpu"].as_f64().unwrap();
    assert!(cpus > 0.0, "the server was watched");
}

#[test]
fn a_run_without_out_goes_to_a_directory_of_its_study_and_time() {
    let scratch = Scratch::new();
    scratch.write("study.toml", &small_study("[load]\noperations = 20\nwarmup = \"0s\""));
    let outcome = scratch.run(&["run", "study.toml"]);
    let outcome = outcome.expect(0);
    assert_eq!(outcome.stderr, "");
    let runs: Vec<_> =
        std::fs::read_dir(scratch.path("runs")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(runs.len(), 1);
    let name = runs[0].to_str().unwrap();
    assert!(name.starts_with("small-20") && name.ends_with('Z') && !name.contains(':'), "{name}");
    assert!(outcome.stdout.ends_with(&format!("report: runs/{name}/report.html\n")), "{}", outcome.stdout);
}
