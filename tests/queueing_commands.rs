//! `fit --points` and `predict` as a user runs them: exit status, JSON, text, and refusals.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

use std::process::{Command, Output};

use serde_json::Value;

fn loadline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = loadline(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn assert_refused(arguments: &[&str], says: &str) {
    let output = loadline(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(says), "{said}");
    assert!(output.stdout.is_empty());
}

/// A file in the build's directory for temporary files.
fn file(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const POINTS: &str = "arrival_rate,mean_s,se_s\n50,0.00266,2e-5\n200,0.00284,2e-5\n400,0.00329,3e-5\n600,0.00408,5e-5\n\
                      700,0.00496,8e-5\n800,0.00655,1.8e-4\n850,0.00833,3e-4\n900,0.01148,7e-4\n";

#[test]
fn fit_gives_the_json_of_the_contract() {
    let path = file("fit_json.csv", POINTS);
    let report = json(&["fit", "--points", &path, "--json"]);
    assert_eq!((&report["best"], &report["tie"]), (&Value::from("mm1"), &Value::Array(Vec::new())));
    let fit = &report["fits"][0];
    assert_eq!(fit["model"], "mm1");
    for parameter in ["mu_per_s", "delta_s"] {
        let parameter = &fit["parameters"][parameter];
        let (value, range) = (parameter["value"].as_f64().unwrap(), parameter["ci95"].as_array().unwrap());
        assert!(range[0].as_f64().unwrap() < value && value < range[1].as_f64().unwrap());
        assert!(parameter["se"].as_f64().unwrap() > 0.0);
    }
    for figure in ["chi2", "aicc", "r2", "weight"] {
        assert!(fit[figure].is_f64(), "{figure}");
    }
}

#[test]
fn fit_prints_a_table_and_a_verdict() {
    let path = file("fit_text.csv", POINTS);
    let output = loadline(&["fit", "--points", &path]);
    let text = String::from_utf8(output.stdout).unwrap();
    let verdict = "M/M/1 + delay fits best: mu = 1,000/s [993, 1,008], delta = 1.60 ms [1.57 ms, 1.63 ms], n = 8 points; \
                   chi²/df = 1.38/6 (p = 0.97)";
    assert!(text.contains(verdict), "{text}");
    assert!(text.contains("load-dependent was not fitted: it needs the number of workers"), "{text}");
    assert!(text.contains("as in the source             mu = 1,006/s, delta = 1.67 ms"), "{text}");
}

#[test]
fn fit_refuses_what_it_cannot_read_or_does_not_know() {
    let good = file("good.csv", POINTS);
    let bad = file("bad.csv", "arrival_rate,mean_s\n50,soon\n");
    assert_refused(
        &["fit", "--points", &bad],
        "bad.csv:2: column mean_s: \"soon\" is not a number; write a time above 0",
    );
    assert_refused(&["fit", "--points", "/nowhere/f.csv"], "/nowhere/f.csv cannot be read; name a CSV file of points");
    assert_refused(&["fit", "--points", &good, "--model", "mm"], "unknown model \"mm\"; did you mean \"mm1\"?");
    assert_refused(
        &["fit", "--points", &good, "--timer", "done"],
        "--timer: \"done\" is not known; write intended or sent",
    );
    assert_refused(&["fit", "--points", &good, "--timer", "sent"], "--timer sent needs the number of workers");
    assert_refused(&["fit", "--points", &good, "--quantile", "90"], "--quantile: 90 is not between 0 and 1");
    assert_refused(&["fit", "--points", &good, "--quantile", "0.9"], "no point has its p90");
}

#[test]
fn predict_gives_the_json_of_the_contract() {
    let arguments = "predict --model mm1 --mu 1000 --delta 1.6ms --arrival-rate 800 --quantile 0.9 --below 10ms --json";
    let found = json(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(found["stable"], true);
    for (name, expected) in [
        ("utilisation", 0.8),
        ("mean_s", 0.0066),
        ("p50_s", 0.005_065_735_902_799_726),
        ("p90_s", 0.013_112_925_464_970_23),
        ("p99_s", 0.024_625_850_929_940_46),
        ("quantile_s", 0.013_112_925_464_970_23),
        ("arrival_rate_limit_per_s", 725.882_727_024_518_3),
    ] {
        let found = found[name].as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 1e-9, "{name}: {found}");
    }
}

#[test]
fn predict_knows_overload_and_every_model() {
    let predict = |rest: &str| {
        let arguments = format!("predict --json --mu 1000 {rest}");
        json(&arguments.split(' ').collect::<Vec<_>>())
    };
    let overloaded = predict("--model mm1 --arrival-rate 1300");
    assert_eq!((&overloaded["stable"], &overloaded["mean_s"]), (&Value::Bool(false), &Value::Null));
    assert_eq!(overloaded["throughput_per_s"], 1000.0);
    for (rest, mean_s) in [
        ("--model md1 --arrival-rate 800", 0.003),
        ("--model mg1 --cv2 4 --arrival-rate 800", 0.011),
        ("--model ps --arrival-rate 800", 0.005),
        ("--model mm1-scaled --a 2 --arrival-rate 800", 0.01),
        ("--model mm1 --timer sent --workers 10 --arrival-rate 800", 0.004_463_129_088),
        ("--model load-dependent --p 0.02 --workers 16 --arrival-rate 500", 0.002_204_302_309_636_163),
        ("--model mm1-flush --stall-every 200ms --stall 20ms --arrival-rate 300", 0.004_355_495_251_017_639),
        ("--model repairman --clients 20 --think 10ms", 0.010_037_450_994_823_43),
        ("--model usl --alpha 0 --beta 0 --clients 5", 0.001),
    ] {
        let found = predict(rest)["mean_s"].as_f64().unwrap();
        assert!((found / mean_s - 1.0).abs() < 1e-9, "{rest}: {found}");
    }
}

#[test]
fn predict_refuses_what_a_model_lacks() {
    let refused = |rest: &str, says: &str| {
        let arguments = format!("predict {rest}");
        assert_refused(&arguments.split(' ').collect::<Vec<_>>(), says);
    };
    refused("--model mmc --mu 1000 --arrival-rate 1300", "--servers is missing");
    refused("--model load-dependent --mu 1000 --p 0.1 --arrival-rate 13", "--workers is missing");
    refused("--model mm1 --mu 0 --arrival-rate 13", "--mu is missing or not above 0");
    refused("--model mm1 --mu 10", "--arrival-rate is missing");
    refused("--model mm1 --mu 10 --arrival-rate 5 --below 10", "--below: \"10\" is not a duration");
    refused("--model erlang --mu 10 --arrival-rate 5", "unknown model \"erlang\"");
}

/// What would take a minute, or all memory, is refused in words.
#[test]
fn nothing_is_begun_that_has_no_end() {
    let refused = |rest: &str, says: &str| assert_refused(&rest.split(' ').collect::<Vec<_>>(), says);
    let servers = "predict --model mmc --mu 10 --arrival-rate 5 --servers 4294967295";
    refused(servers, "4294967295 is not in 1..=100000");
    refused("predict --model repairman --mu 10 --think 1s --clients 4294967295", "4294967295 is not in 1..=1000000");
    refused(
        "predict --model mm1 --mu=1e-308 --arrival-rate 1e-309",
        "--mu is 1e-308; write a number from 1e-9 to 1e12",
    );
    refused("fit --points /dev/zero", "has a line of more than 1 MiB");
    refused("plan /dev/zero", "it has more than 16 MiB");
    refused("record /dev/zero", "it has more than 16 MiB");
    refused("score --writes /dev/zero --reads /dev/null", "it has more than 1024 MiB");
}
