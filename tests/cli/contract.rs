//! The form of the JSON that `run` and `report` print: other programs rely on it.

use serde_json::Value;

/// What stands at a place.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Truth,
    /// A number; a count has no fraction.
    Number,
    Count,
    /// A number, or null where the evidence gives none.
    Figure,
    /// Two numbers in order, or null.
    Interval,
    /// Objects with their kind and their sentence.
    Said,
    Object,
    /// A share, 0 to 1.
    Share,
}

use Form::{Count, Figure, Interval, Number, Object, Said, Share, Text, Truth};

const RUN: &[(&str, Form)] = &[
    ("version", Count),
    ("run", Text),
    ("study", Text),
    ("seed", Count),
    ("valid", Truth),
    ("verdicts", Said),
    ("notes", Said),
];

const CASE: &[(&str, Form)] = &[
    ("id", Text),
    ("levels", Object),
    ("trials", Count),
    ("valid_trials", Count),
    ("settled", Truth),
    ("throughput_per_s/mean", Figure),
    ("throughput_per_s/sd", Figure),
    ("throughput_per_s/n", Count),
    ("throughput_per_s/ci95", Interval),
    ("operations", Object),
    ("offered_per_s", Figure),
    ("generator_late_s/p99", Figure),
    ("client_cpu_s_per_operation", Figure),
    ("invalid_because", Said),
];

const TIMES: [&str; 3] = ["response_time_s", "residence_time_s", "schedule_lag_s"];
const QUANTILES: [&str; 6] = ["mean", "p50", "p90", "p99", "p999", "max"];

const RESOURCES: &[(&str, Form)] = &[
    ("server_cpu", Number),
    ("client_cpu", Number),
    ("user", Share),
    ("system", Share),
    ("iowait", Share),
    ("idle", Share),
    ("write_requests_per_s", Number),
    ("written_bytes_per_s", Number),
    ("memory_used_bytes", Number),
    ("received_bytes_per_s", Number),
    ("sent_bytes_per_s", Number),
];

const CLAIM: &[(&str, Form)] = &[("says", Text), ("verdict", Text), ("evidence", Text)];

fn fits(value: &Value, form: Form) -> bool {
    let numbers =
        |value: &Value| value.as_array().map(|list| list.iter().filter_map(Value::as_f64).collect::<Vec<_>>());
    match form {
        Text => value.is_string(),
        Truth => value.is_boolean(),
        Number => value.is_number(),
        Count => value.is_u64(),
        Figure => value.is_number() || value.is_null(),
        Interval => value.is_null() || numbers(value).is_some_and(|ends| ends.len() == 2 && ends[0] <= ends[1]),
        Said => value
            .as_array()
            .is_some_and(|list| list.iter().all(|said| said["kind"].is_string() && said["says"].is_string())),
        Object => value.is_object(),
        Share => value.as_f64().is_some_and(|share| (0.0..=1.000_001).contains(&share)),
    }
}

#[track_caller]
fn check(place: &str, object: &Value, fields: &[(&str, Form)]) {
    for (path, form) in fields {
        let found = object.pointer(&format!("/{path}"));
        assert!(found.is_some_and(|value| fits(value, *form)), "{place}: {path} is {found:?} in {object:#}");
    }
}

/// Asserts that a document has every field that other programs rely on, of the right kind, and that its counts agree.
#[track_caller]
pub fn check_findings(findings: &Value) {
    check("the run", findings, RUN);
    let cases = findings["cases"].as_array().unwrap();
    assert!(!cases.is_empty() && findings["load_lines"].is_array());
    for case in cases {
        check("a case", case, CASE);
        let (trials, valid) = (case["trials"].as_u64().unwrap(), case["valid_trials"].as_u64().unwrap());
        assert!(valid <= trials && case["throughput_per_s"]["n"] == valid, "{case:#}");
        assert_eq!(case["invalid_because"].as_array().unwrap().is_empty(), valid == trials, "{case:#}");
        for (kind, operation) in case["operations"].as_object().unwrap() {
            check(kind, operation, &[("count", Count), ("failed", Count), ("empty", Count)]);
            for time in TIMES {
                for quantile in QUANTILES {
                    check(kind, operation, &[(&format!("{time}/{quantile}"), Figure)]);
                }
            }
        }
        if !case["resources"].is_null() {
            check("resources", &case["resources"], RESOURCES);
        }
    }
    for claim in findings["claims"].as_array().unwrap() {
        check("a claim", claim, CLAIM);
        assert!(["reproduced", "contradicted", "undecided"].iter().any(|verdict| claim["verdict"] == *verdict));
    }
    check_units("", findings);
}

/// Bare names that say what they are without a unit: counts, shares, CPUs, and places of quantiles below a unit.
const WITHOUT_UNIT: &[&str] = &[
    "version",
    "seed",
    "trials",
    "valid_trials",
    "discarded",
    "n",
    "count",
    "failed",
    "empty",
    "abandoned",
    "server_cpu",
    "client_cpu",
    "user",
    "system",
    "iowait",
    "idle",
    "quantile",
    "between",
    "expected",
    "operations",
    "ratio",
    "ratio_interval",
    "ratio_ci95",
    "mean",
    "at",
    "throughput_ratio",
    "busy_cpus",
    "rows",
];

/// Places of objects with a kind and a sentence.
const SAID: [&str; 3] = ["/invalid_because", "/verdicts", "/notes"];

/// Asserts that every number is at or below a name that ends with its unit, or is one of those that have none.
#[track_caller]
fn check_units(path: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            // What users name themselves, and messages, are no names of figures.
            let named = fields.iter().filter(|(name, _)| *name != "levels" && *name != "errors");
            named.for_each(|(name, inner)| check_units(&format!("{path}/{name}"), inner));
        }
        Value::Array(items) => items.iter().for_each(|item| check_units(path, item)),
        Value::Number(number) => {
            let units = ["_s", "_bytes", "_s_per_operation", "bytes_per_record", "_share"];
            // What is said counts whatever it is about: whole numbers are counts there.
            let is_count = number.is_u64() && SAID.iter().any(|said| path.contains(said));
            let has_unit = |name: &str| WITHOUT_UNIT.contains(&name) || units.iter().any(|unit| name.ends_with(unit));
            assert!(is_count || path.split('/').any(has_unit), "{path} is {number} and has no unit");
        }
        _ => {}
    }
}
