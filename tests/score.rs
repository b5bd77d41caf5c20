//! Scoring against the published tables, and from runs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "report/synthetic.rs"]
#[expect(dead_code, reason = "shared with the tests of reports, which use all of it")]
mod synthetic;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use loadline::histogram::Histogram;
use loadline::measurement::{Measurement, OperationMeasurement};
use loadline::reason::Reason;
use loadline::report::scored::{Roles, Scored, evidence};
use loadline::scoring::{Scores, Weighting, break_even, case_points, uncertainty};
use loadline::store::RunDirectory;
use loadline::study::Study;
use loadline::trial::Case;
use serde_json::{Value, json};

fn known_answers() -> Value {
    serde_json::from_str(include_str!("known-answers.json")).unwrap()
}

fn table(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/score").join(name)
}

/// The figures of a table by the first field of their rows.
fn rows(name: &str) -> Vec<(String, Vec<f64>)> {
    let text = std::fs::read_to_string(table(name)).unwrap();
    let row = |line: &str| {
        let (name, rest) = line.split_once(',').unwrap();
        (name.to_owned(), rest.split(',').map(|field| field.parse().unwrap()).collect())
    };
    text.lines().filter(|line| !line.starts_with('#')).skip(1).map(row).collect()
}

fn score(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline")).arg("score").args(arguments).output().unwrap()
}

fn from_tables(more: &[&str]) -> Value {
    let (writes, reads) = (table("writes.csv"), table("reads.csv"));
    let files = ["--writes", writes.to_str().unwrap(), "--reads", reads.to_str().unwrap(), "--json"];
    let output = score(&[&files, more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn near(found: &Value, expected: f64, within: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() <= within, "{found} instead of {expected}");
}

#[test]
fn points_of_a_case_are_the_known_answers() {
    let known = &known_answers()["oulu_score"];
    for (times, points) in
        known["inputs"]["times"].as_array().unwrap().iter().zip(known["expected"]["points"].as_array().unwrap())
    {
        let times: Vec<f64> = serde_json::from_value(times.clone()).unwrap();
        let expected: Vec<f64> = serde_json::from_value(points.clone()).unwrap();
        for (found, expected) in case_points(&times).iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} instead of {expected}");
        }
    }
}

#[test]
fn table_5_6_gives_the_reading_points_and_the_totals_of_table_5_7() {
    let queries = rows("table-5.6.csv");
    let published = rows("table-5.7.csv");
    let row = |name: &str| published.iter().find(|(known, _)| known == name).unwrap().1.clone();
    let reading: Vec<f64> = (0..3)
        .map(|schema| queries.iter().map(|(_, points)| points[schema]).sum::<f64>() / queries.len() as f64)
        .collect();
    let known: Vec<f64> = serde_json::from_value(known_answers()["oulu_score"]["expected"]["reading"].clone()).unwrap();
    let writing: Vec<f64> = row("weighted writing").iter().map(|points| points / 2.0).collect();
    let names = ["schema 1", "schema 2", "schema 3"].map(str::to_owned).to_vec();
    let scores = Scores { alternatives: names, writing, reading: reading.clone(), queries };
    for schema in 0..3 {
        assert!((reading[schema] - known[schema]).abs() < 1e-9);
        assert!((reading[schema] - row("reading")[schema]).abs() < 0.0101, "the table cuts digits off");
        assert!((scores.totals(2.0)[schema] - row("total")[schema]).abs() < 0.0101);
    }
    assert_eq!(scores.ranking(2.0), [1, 0, 2]);
    let last = break_even(&scores).pop().unwrap();
    assert!((last.write_weight - 0.61).abs() < 0.005, "{last:?}");
}

#[test]
fn the_command_gives_the_published_totals_ranking_and_break_even() {
    let found = from_tables(&[]);
    for (place, (writing, reading, total)) in
        [(9.705, 7.666, 27.07), (10.0, 9.116, 29.12), (6.805, 9.436, 23.04)].into_iter().enumerate()
    {
        let one = &found["alternatives"][place];
        near(&one["writing"], writing, 1e-9);
        near(&one["reading"], reading, 1e-9);
        near(&one["total"], total, 0.0101);
        assert!(one["total_ci95"].is_null(), "there are no repeats");
        for (query, points) in rows("table-5.6.csv") {
            near(&one["queries"][&query], points[place], 1e-9);
        }
    }
    assert_eq!(found["ranking"], json!(["schema 2", "schema 1", "schema 3"]));
    assert_eq!(found["break_even"].as_array().unwrap().len(), 2);
    assert_eq!((&found["break_even"][1]["a"], &found["break_even"][1]["b"]), (&json!("schema 1"), &json!("schema 3")));
    near(&found["break_even"][1]["write_weight"], 0.61, 0.005);
    let says = |found: &Value| found["verdict"]["says"].as_str().unwrap().to_owned();
    let single = "no choice: a value rests on a single trial; the highest total is that of schema";
    assert!(
        says(&found).starts_with(&format!("{single} 2, for any write weight above 0.10: repeat")),
        "{}",
        says(&found)
    );
    let low = from_tables(&["--write-weight", "0.3"]);
    assert_eq!(low["ranking"], json!(["schema 2", "schema 3", "schema 1"]));
    let reading = from_tables(&["--write-weight", "0"]);
    assert!(
        says(&reading).starts_with(&format!("{single} 3, for any write weight below 0.10: ")),
        "{}",
        says(&reading)
    );
}

#[test]
fn repeats_in_tables_give_intervals_and_a_choice_that_they_do_not_decide_is_said() {
    let place = std::env::temp_dir().join(format!("loadline-score-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(place.join(name), text).unwrap();
        place.join(name).display().to_string()
    };
    let writes = write("w.csv", "alternative,throughput\na,100\na,120\na,95\nb,101\nb,118\nb,99\n");
    let reads = write("r.csv", "alternative,query,case,time_s\na,1,x,1\na,1,x,1.2\nb,1,x,1.1\nb,1,x,1.12\n");
    let page = place.join("score.html").display().to_string();
    let output = score(&["--writes", &writes, "--reads", &reads, "--json", "--html", &page]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for one in found["alternatives"].as_array().unwrap() {
        let [low, high] = [0, 1].map(|end| one["total_ci95"][end].as_f64().unwrap());
        let total = one["total"].as_f64().unwrap();
        assert!(low <= total && total <= high && low < high, "{one}");
    }
    let verdict = found["verdict"]["says"].as_str().unwrap();
    assert!(verdict.starts_with("no choice: the trials do not tell which of b, a is the best; "), "{verdict}");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("Sensitivity to the weight of writing") && page.contains("<svg"));
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn wrong_requests_are_refused_with_place_and_remedy() {
    let (writes, reads) = (table("writes.csv"), table("reads.csv"));
    let (writes, reads) = (writes.to_str().unwrap(), reads.to_str().unwrap());
    for (arguments, says) in [
        (vec!["--writes", writes, "--reads", writes], "writes.csv:2: the column query is missing"),
        (vec!["--writes", "/nowhere.csv", "--reads", reads], "/nowhere.csv cannot be read; name a CSV file"),
        (vec!["--writes", writes, "--reads", reads, "--write-weight=-1"], "--write-weight: -1 is not possible"),
        (
            vec!["--writes", writes, "--reads", reads, "--write-weight=1e308"],
            "is not possible; write a number from 0 to 1000000",
        ),
        (vec!["/nowhere"], "/nowhere is not a run directory"),
    ] {
        let output = score(&arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(says), "{message}");
    }
}

/// Layouts with a writing workload and two queries at several numbers of clients.
fn study() -> Study {
    let mut study = synthetic::study(&[
        ("layout.name", vec![json!("wide"), json!("star")]),
        ("workload.name", vec![json!("write"), json!("small"), json!("large")]),
        ("load.clients", vec![json!(1), json!(4)]),
    ]);
    for case in &mut study.cases {
        let mut settings = case.settings.clone();
        settings.workload.name = case.levels["workload.name"].as_str().unwrap().to_owned();
        *case = Case::new(case.levels.clone(), settings);
    }
    study
}

/// Trials of it: star writes 10 % slower, and reads the large query in half the time.
fn trials(study: &Study, rounds: u32) -> Vec<Measurement> {
    let made = synthetic::measurements(study, rounds);
    made.into_iter()
        .enumerate()
        .map(|(number, mut trial)| {
            let levels = trial.trial.case.levels.clone();
            let is_star = levels["layout.name"] == "star";
            let jitter = 1.0 + 0.01 * ((number * 7 % 5) as f64 - 2.0);
            let (kind, count, time_s) = match levels["workload.name"].as_str().unwrap() {
                "write" => ("insert", if is_star { 9_000.0 } else { 10_000.0 }, 0.001),
                "small" => ("read", 5_000.0, 0.001),
                _ => ("read", 5_000.0, if is_star { 0.010 } else { 0.020 }),
            };
            let mut times = Histogram::new();
            times.record_many((time_s * jitter * 1e9) as u64, 100);
            let completed = (count * jitter) as u64;
            let operation = OperationMeasurement {
                scheduled: completed,
                completed,
                records: completed,
                residence_time: times.clone(),
                response_time: times,
                ..OperationMeasurement::default()
            };
            trial.operations = [(kind.to_owned(), Box::new(operation))].into();
            trial
        })
        .collect()
}

fn roles() -> Roles {
    Roles { query: Some("workload.name".to_owned()), ..Roles::default() }
}

#[test]
fn runs_give_throughput_of_what_writes_and_times_of_each_query_and_case() {
    let study = study();
    let measurements = trials(&study, 3);
    let run = Scored { name: "run", study: &study, measurements: &measurements };
    let (evidence, notes) = evidence(&[run], &roles()).unwrap();
    assert_eq!(notes, []);
    assert_eq!((evidence.writing.len(), evidence.reading.len()), (2, 4), "a case for each number of clients");
    assert!(
        evidence.writing.iter().chain(&evidence.reading).all(|case| case.values.iter().all(|trials| trials.len() == 3))
    );
    let scores = evidence.scores(Weighting::ByQuery).unwrap();
    assert_eq!(scores.queries.iter().map(|(query, _)| query.as_str()).collect::<Vec<_>>(), ["small", "large"]);
    assert!((scores.writing[1] - 9.0).abs() < 0.2 && scores.writing[0] == 10.0);
    assert!((scores.queries[1].1[0] - 5.0).abs() < 0.2 && scores.queries[1].1[1] == 10.0, "{:?}", scores.queries);
    assert!(uncertainty(&evidence, Weighting::ByQuery, 2.0).is_some());
}

#[test]
fn a_case_that_an_alternative_lacks_is_left_out_and_said() {
    let study = study();
    let mut measurements = trials(&study, 2);
    for trial in &mut measurements {
        let levels = &trial.trial.case.levels;
        if levels["workload.name"] == "large" && levels["load.clients"] == 4 && levels["layout.name"] == "star" {
            trial.invalid_because.push(Reason::told("reads found nothing"));
        }
    }
    let run = Scored { name: "run", study: &study, measurements: &measurements };
    let (evidence, notes) = evidence(&[run], &roles()).unwrap();
    assert_eq!(evidence.reading.len(), 3);
    assert_eq!(notes.len(), 1);
    assert_eq!(
        notes[0].to_string(),
        "a case of reading is left out (large, load.clients = 4): star has no valid trial"
    );
}

#[test]
fn what_a_run_lacks_is_named_with_the_option_that_helps() {
    let study = study();
    let measurements: Vec<Measurement> =
        trials(&study, 2).into_iter().filter(|trial| !trial.operations.contains_key("read")).collect();
    let run = Scored { name: "run", study: &study, measurements: &measurements };
    let error = evidence(&[run], &roles()).unwrap_err();
    assert!(
        error.contains("operations that read") && error.contains("\"insert\"") && error.contains("--read-operations"),
        "{error}"
    );
    let other = Roles { factor: "database.name".to_owned(), ..roles() };
    let error = evidence(&[run], &other).unwrap_err();
    assert!(error.contains("no case has a level of database.name") && error.contains("layout.name"), "{error}");
}

#[test]
fn several_run_directories_are_scored_together() {
    let study = study();
    let place = std::env::temp_dir().join(format!("loadline-score-runs-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    let (mut writing, mut reading) = (study.clone(), study.clone());
    (writing.name, reading.name) = ("writing".to_owned(), "reading".to_owned());
    for (study, is_write) in [(&writing, true), (&reading, false)] {
        let mut directory =
            RunDirectory::create(&place.join(&study.name), study, synthetic::environment(), "2026-11-21T06:00:00Z")
                .unwrap();
        let part = trials(study, 3).into_iter().filter(|trial| trial.operations.contains_key("insert") == is_write);
        part.for_each(|trial| directory.append(&trial, &[]).unwrap());
    }
    let runs = ["writing", "reading"].map(|name| place.join(name).display().to_string());
    let output = score(&[&runs[0], &runs[1], "--query", "workload.name", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["ranking"], json!(["star", "wide"]), "{found}");
    near(&found["break_even"][0]["write_weight"], 2.5, 0.5);
    let none = score(&[&runs[0], "--json"]);
    assert_eq!(none.status.code(), Some(2));
    std::fs::remove_dir_all(&place).unwrap();
}

/// Values of many alternatives: of writing and of three queries, two repeats each.
fn many(name: &str, count: usize) -> Vec<String> {
    let directory = std::env::temp_dir().join(format!("loadline-score-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (mut writes, mut reads) = ("alternative,throughput\n".to_owned(), "alternative,query,case,time_s\n".to_owned());
    for number in 0..count {
        // On a quarter of a circle nearly every alternative is the first at some weight.
        let angle = std::f64::consts::FRAC_PI_2 * (number as f64 + 0.5) / count as f64;
        for repeat in [1.0, 1.01] {
            writes += &format!("a{number},{}\n", angle.sin() * repeat);
            for query in 1..=3 {
                reads += &format!("a{number},{query},c,{}\n", (2.0 - angle.cos()) * repeat * f64::from(query));
            }
        }
    }
    let files = [("--writes", "writes.csv", writes), ("--reads", "reads.csv", reads)];
    let arguments = files.into_iter().flat_map(|(option, name, text)| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        [option.to_owned(), path.display().to_string()]
    });
    arguments.chain(["--json".to_owned()]).collect()
}

#[test]
fn of_hundreds_of_alternatives_what_is_listed_grows_with_their_number_and_not_with_its_square() {
    let arguments = many("400", 400);
    let output = score(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.len() < 1_000_000, "{} bytes", output.stdout.len());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |key: &str| found[key].as_array().unwrap().len();
    assert_eq!((count("alternatives"), count("ranking")), (400, 400));
    assert!((1..400).contains(&count("break_even")), "{}", count("break_even"));
    assert!(found["rankings"].as_array().unwrap().iter().all(|span| span["ranking"].as_array().unwrap().len() == 20));
    let note = found["notes"].as_array().unwrap().iter().find(|note| note["kind"] == "many").unwrap();
    assert_eq!((&note["count"], &note["listed"]), (&json!(400), &json!(20)));
    std::fs::remove_dir_all(Path::new(&arguments[1]).parent().unwrap()).unwrap();
}

#[test]
fn more_alternatives_than_can_be_scored_are_refused_with_a_remedy() {
    let arguments = many("1001", 1_001);
    let output = score(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("1001 alternatives") && said.contains("at most 1000"), "{said}");
    std::fs::remove_dir_all(Path::new(&arguments[1]).parent().unwrap()).unwrap();
}
