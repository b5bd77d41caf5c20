//! `load.samples = true`, and what `export` and `fit` make of it, as a user sees them. Times in these tests are long beside
//! what a busy machine adds, and nothing has to be short.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::program::Scratch;

/// A study of the simulated database with raw times: 2 ms a service and 400 ms on the way, in an open loop at two rates. Gaps and
/// services are equal, so that as many operations run when the measured phase ends as when it begins.
const STUDY: &str = "name = \"raw\"\n[database]\nname = \"simulated\"\n\
    config = { service = \"2ms\", delay = \"400ms\", distribution = \"constant\" }\n[workload]\nname = \"write\"\n\
    [load]\narrivals = \"constant\"\nclients = 64\nduration = \"1500ms\"\nwarmup = \"600ms\"\nsamples = true\n\
    [factors]\n\"load.rate\" = [40, 80]\n[repeat]\nrule = \"fixed\"\nleast = 2\n";

fn run(scratch: &Scratch) {
    scratch.write("raw.toml", STUDY);
    let outcome = scratch.run(&["run", "raw.toml", "--out", "raw", "--json"]);
    assert!(outcome.status.is_some_and(|status| status < 2), "{outcome:?}");
}

#[test]
fn raw_times_are_stored_and_exported_with_every_operation() {
    let scratch = Scratch::new();
    run(&scratch);
    let stored = scratch.stored("raw");
    assert_eq!(stored.len(), 4);
    let operations: u64 = stored.iter().map(|trial| trial.samples.unwrap()).sum();

    let outcome = scratch.run(&["export", "raw", "--format", "csv", "--out", "files", "--json"]).expect(0);
    assert_eq!(outcome.json(), serde_json::json!({ "version": 1, "files": ["files/trials.csv", "files/samples.csv"] }));
    let csv = std::fs::read_to_string(scratch.path("files/samples.csv")).unwrap();
    let (heading, rows) = csv.split_once('\n').unwrap();
    assert_eq!(heading, "trial,sequence,phase,client,operation,outcome,intended_s,sent_s,done_s");
    assert_eq!(rows.lines().count() as u64, operations);
    for trial in &stored {
        let measured = |line: &&str| line.starts_with(&trial.trial.id) && line.contains(",measured,");
        assert_eq!(rows.lines().filter(measured).count() as u64, trial.scheduled());
    }
    for line in rows.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        let [intended, sent, done] = [6, 7, 8].map(|place| cells[place].parse::<f64>().unwrap());
        assert!(intended <= sent && sent <= done, "{line}");
        assert_eq!(cells[2] == "measured", intended >= 0.0, "{line}");
    }

    scratch.run(&["export", "raw", "--format", "jsonl", "--out", "files"]).expect(0);
    let jsonl = std::fs::read_to_string(scratch.path("files/samples.jsonl")).unwrap();
    let lines: Vec<Value> = jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len() as u64, operations);
    assert!(lines.iter().all(|line| line["done_s"].is_f64() && line["operation"] == "insert"));
    scratch.run(&["export", "raw", "--format", "parquet", "--out", "files"]).expect(0);
    assert_eq!(parquet_rows(&scratch.path("files/samples.parquet")), rows.lines().map(csv_row).collect::<Vec<_>>());
    scratch.run(&["export", "raw", "--format", "csv", "--out", "files"]).refused(&["files/trials.csv exists already"]);
}

#[test]
fn a_rate_that_changes_is_sent_in_its_shape_with_its_mean() {
    let scratch = Scratch::new();
    // Nothing, then a step to three times as much for half of the rest.
    let shape = STUDY
        .replace("samples = true\n", "samples = true\nprofile = [[0, 0], [8, 0], [8, 3], [12, 3], [12, 1], [16, 1]]\n")
        .replace("\"load.rate\" = [40, 80]", "\"load.rate\" = [80]");
    scratch.write("raw.toml", &shape);
    let outcome = scratch.run(&["run", "raw.toml", "--out", "raw", "--json"]);
    assert!(outcome.status.is_some_and(|status| status < 2), "{outcome:?}");
    scratch.run(&["export", "raw", "--format", "csv", "--out", "files"]).expect(0);
    let csv = std::fs::read_to_string(scratch.path("files/samples.csv")).unwrap();
    let of_trial = |line: &&str| line.starts_with(&scratch.stored("raw")[0].trial.id);
    let intended: Vec<f64> =
        csv.lines().filter(of_trial).map(|line| line.split(',').nth(6).unwrap().parse().unwrap()).collect();
    // 80/s over 1.5 s are 120 operations, of which three quarters fall into the third quarter of the time.
    let within = |from_s: f64, to_s: f64| intended.iter().filter(|time| (from_s..to_s).contains(*time)).count();
    assert!((119..=120).contains(&intended.len()), "{}", intended.len());
    assert_eq!(within(-1.0, 0.75), 0);
    assert!((89..=91).contains(&within(0.75, 1.125)), "{intended:?}");
    for (change, says) in [
        ("arrivals = \"closed\"", "operations do not arrive at a rate"),
        ("operations = 50\narrivals = \"constant\"", "stretched over the duration"),
    ] {
        let wrong = shape.replacen("arrivals = \"constant\"", change, 1).replace("[factors]\n\"load.rate\" = [80]", "");
        let wrong =
            if change.starts_with("operations") { wrong.replace("duration = \"1500ms\"", "rate = 80") } else { wrong };
        scratch.write("wrong.toml", &wrong);
        scratch.run(&["plan", "wrong.toml"]).refused(&["load.profile", says]);
    }
    for wrong in ["[[0, 1]]", "[[0, 1], [0, 2]]", "[[0, 0], [1, 0]]", "[[1, 1], [0, 1]]", "[[0, -1], [1, 2]]", "1"] {
        scratch.write("wrong.toml", &shape.replacen("[[0, 0], [8, 0], [8, 3], [12, 3], [12, 1], [16, 1]]", wrong, 1));
        scratch.run(&["plan", "wrong.toml"]).refused(&["wrong.toml:", "load.profile is"]);
    }
}

/// A row in a form that both formats have: text, and times to the nanosecond.
fn csv_row(line: &str) -> Vec<String> {
    let cells = line.split(',').enumerate();
    cells.map(|(place, cell)| if place < 6 { cell.to_owned() } else { nanoseconds(cell.parse().ok()) }).collect()
}

fn parquet_rows(path: &std::path::Path) -> Vec<Vec<String>> {
    let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let rows = file.get_row_iter(None).unwrap();
    rows.map(|row| {
        let fields = row.unwrap().into_columns().into_iter().enumerate();
        let cells = fields.map(|(place, (_, field))| match field {
            Field::Null if place < 6 => String::new(),
            Field::Null => nanoseconds(None),
            Field::Str(text) => text,
            Field::ULong(count) => count.to_string(),
            Field::Double(seconds) => nanoseconds(Some(seconds)),
            other => panic!("a field of another type: {other}"),
        });
        cells.collect()
    })
    .collect()
}

fn nanoseconds(seconds: Option<f64>) -> String {
    seconds.map_or(String::new(), |seconds| format!("{:.0}", seconds * 1e9))
}

#[test]
fn a_fit_of_a_run_uses_raw_times_and_says_so_and_tells_of_a_torn_file() {
    let scratch = Scratch::new();
    run(&scratch);
    let fit = scratch.run(&["fit", "raw", "--model", "mm1", "--json"]);
    assert!(fit.stderr.contains(" raw times of ") && fit.stderr.contains("are used"), "{}", fit.stderr);

    let trial = scratch.stored("raw").iter().find(|trial| trial.is_valid()).unwrap().trial.id.clone();
    let path = scratch.path(&format!("raw/samples/{trial}.samples"));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let torn = scratch.run(&["fit", "raw", "--model", "mm1", "--json"]);
    assert!(torn.stderr.contains("the file is torn"), "{}", torn.stderr);
    std::fs::remove_file(&path).unwrap();
    scratch.run(&["fit", "raw"]).refused(&["samples", "No such file"]);
}

#[test]
fn a_run_is_fitted_per_combination_of_its_other_factors() {
    let scratch = Scratch::new();
    let study = STUDY
        .replace("samples = true\n", "")
        .replace("[factors]\n", "[factors]\n\"database.config.service\" = [\"1ms\", \"2ms\"]\n");
    scratch.write("raw.toml", &study);
    let outcome = scratch.run(&["run", "raw.toml", "--out", "raw", "--json"]);
    assert!(outcome.status.is_some_and(|status| status < 2), "{outcome:?}");
    let fit = scratch.run(&["fit", "raw", "--json"]).expect(0).json();
    let combinations = fit["combinations"].as_array().unwrap();
    let services: Vec<&Value> = combinations.iter().map(|one| &one["levels"]["database.config.service"]).collect();
    assert_eq!(services, ["1ms", "2ms"]);
    let text = scratch.run(&["fit", "raw", "--workers", "8"]).expect(0).stdout;
    assert!(text.contains("service = 1ms") && text.contains("mean from the intended time, "), "{text}");
    scratch.run(&["fit", "raw", "--model", "mm"]).refused(&["did you mean \"mm1\"?"]);
    scratch.run(&["fit", "nowhere"]).refused(&["nowhere is not a run directory"]);
}

#[test]
fn single_times_of_a_file_are_fitted_as_points_with_errors() {
    let scratch = Scratch::new();
    let mut text = "arrival_rate,time_s\n".to_owned();
    // Exponential quantiles in a scrambled order: an M/M/1 server with 1,000 per second.
    for rate in [100.0, 300.0, 500.0, 700.0] {
        for place in 0..4_001_u64 {
            let share = ((place * 1_597) % 4_001) as f64 / 4_001.0 + 0.000_1;
            text += &format!("{rate},{}\n", -(1.0 - share).ln() / (1_000.0 - rate));
        }
    }
    scratch.write("times.csv", &text);
    let fit = scratch.run(&["fit", "--points", "times.csv", "--model", "mm1", "--json"]).expect(0).json();
    let mu = fit["fits"][0]["parameters"]["mu_per_s"]["value"].as_f64().unwrap();
    assert!((mu - 1_000.0).abs() < 20.0, "{mu}");
    scratch.run(&["fit", "--points", "times.csv", "--quantile", "0.9", "--json"]).expect(0);
    scratch.write("bad.csv", "arrival_rate,time_s\n100,0.1\n100,-3\n");
    scratch.run(&["fit", "--points", "bad.csv"]).refused(&["bad.csv:3: column time_s: \"-3\" is not a time above 0"]);
}
