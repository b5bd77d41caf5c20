//! Studies with a `[goal]` as a user sees them, on the simulated database: a service of 1 ms carries 1,000 per second. Whether a
//! machine drives every trial well is not up to the tests; what is said of it is.

use serde_json::Value;

use crate::program::Scratch;

const STUDY: &str = "name = \"line\"\nquestion = \"How much does it carry?\"\n[database]\nname = \"simulated\"\n\
    config = { service = \"1ms\" }\n[load]\nclients = 8\nduration = \"250ms\"\nwarmup = \"50ms\"\ndrain = \"2s\"\n\
    [repeat]\nrule = \"fixed\"\nleast = 3\n[goal]\nquantile = 0.9\nbelow = \"4ms\"\nwithin = 0.2\n";

#[test]
fn a_search_says_what_it_found_and_only_confirmed_rates_are_settled() {
    let scratch = Scratch::new();
    scratch.write("line.toml", STUDY);
    let plan = scratch.run(&["plan", "line.toml"]).expect(0);
    assert!(plan.stdout.contains("until its load line is confirmed"), "{}", plan.stdout);

    let outcome = scratch.run(&["run", "line.toml", "--out", "line", "--json"]);
    let findings = outcome.json();
    assert_eq!(outcome.status, Some(i32::from(findings["valid"] == false)), "{findings:#}");
    let lines = findings["load_lines"].as_array().unwrap();
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!((&line["quantile"], &line["below_s"]), (&0.9.into(), &0.004.into()));
    let ending = &line["outcome"];
    assert_ne!(ending["kind"], "not_finished", "{line}");
    assert_eq!(line["ci95"].is_array(), ending["kind"] == "found", "{line}");
    let is_verified = ending["kind"] == "unbounded" || ending["seen"].is_object();
    assert_eq!(line["verified"] == true, is_verified, "{line}");
    for case in findings["cases"].as_array().unwrap() {
        let (valid, settled) = (case["valid_trials"].as_u64().unwrap(), case["settled"].as_bool().unwrap());
        assert_eq!(settled, valid >= 10, "a rate with fewer trials than confirm one is a step of the search: {case:#}");
        if line["verified"] == true && case["levels"]["load.rate"].as_f64() == line["arrival_rate_per_s"].as_f64() {
            assert!(settled, "{case:#}");
        }
    }
    // On a machine that drives no trial well, that is said too.
    let has_valid = findings["cases"].as_array().unwrap().iter().any(|case| case["valid_trials"] != 0);
    assert_eq!(findings["verdicts"].as_array().unwrap().len(), if has_valid { 1 } else { 2 }, "{findings:#}");

    // Resuming finds nothing to do and says the same; so does the report, from what is stored.
    let stored = scratch.stored("line").len();
    let again = scratch.run(&["run", "line.toml", "--resume", "line", "--json"]);
    assert!(again.stderr.contains("nothing is missing in this run"), "{}", again.stderr);
    assert_eq!((again.status, again.json(), scratch.stored("line").len()), (outcome.status, findings, stored));
    let text = scratch.run(&["report", "line"]);
    assert!(text.stdout.contains("p90 of response time below 4 ms"), "{}", text.stdout);
    assert!(!text.stdout.contains("did not settle"), "{}", text.stdout);
}

#[test]
fn a_bound_that_no_load_keeps_is_said_to_be_out_of_reach() {
    let scratch = Scratch::new();
    scratch.write("line.toml", STUDY);
    let arguments =
        ["run", "line.toml", "--set", "goal.below=500us", "--set", "load.rate=200", "--out", "line", "--json"];
    let findings = scratch.run(&arguments).json();
    let line = &findings["load_lines"][0];
    assert_eq!((&line["arrival_rate_per_s"], &line["verified"]), (&Value::Null, &false.into()));
    let outcome = &line["outcome"];
    let kinds = ["not_reached", "unusable", "disturbed", "not_driven"];
    assert!(kinds.iter().any(|kind| outcome["kind"] == *kind), "{outcome}");
    let verdict = &findings["verdicts"].as_array().unwrap().iter().find(|said| said["kind"] == "load_line").unwrap();
    assert!(verdict["says"].as_str().unwrap().starts_with("no load line for p90"), "{verdict}");
    assert_eq!((&verdict["decides"], &verdict["arrival_rate_per_s"]), (&false.into(), &Value::Null));
}

#[test]
fn what_a_hypervisor_may_take_is_a_share() {
    let scratch = Scratch::new();
    scratch.write("line.toml", STUDY);
    for wrong in ["much", "30", "-0.1", "NaN"] {
        let mut command = scratch.command(&["run", "line.toml"]);
        let outcome = crate::program::Outcome::of(command.env("LOADLINE_STOLEN", wrong).output().unwrap());
        outcome.refused(&[&format!("LOADLINE_STOLEN is \"{wrong}\""), "a share from 0 to 1"]);
    }
}

#[test]
fn a_goal_in_a_closed_loop_or_without_a_bound_is_refused() {
    let scratch = Scratch::new();
    scratch.write("closed.toml", &STUDY.replace("[load]\n", "[load]\narrivals = \"closed\"\n"));
    scratch.run(&["run", "closed.toml"]).refused(&["closed.toml:", "load.arrivals is \"closed\""]);
    scratch.write("unbound.toml", &STUDY.replace("below = \"4ms\"\n", ""));
    scratch.run(&["run", "unbound.toml"]).refused(&["unbound.toml:", "below"]);
}
