//! `loadline compare` on runs: within one, between two, on one machine and on two.

use loadline::measurement::Measurement;
use loadline::reason::Reason;
use loadline::statistics::random::Random;
use loadline::store::RunDirectory;
use loadline::study::Study;
use loadline::trial::Levels;

use crate::command::{assert_refused, json, loadline, scratch};
use crate::trials::{Machine, environment, measure, study};

fn speed(levels: &Levels) -> f64 {
    if levels.get("layout.name").is_some_and(|layout| layout == "star") { 1.3 } else { 1.0 }
}

const CALM: Machine = Machine { noise: 0.02, drift: 0.05, is_interleaved: true, echo: 0.0, slow: 0.0, speed };

/// A run directory with these trials.
fn run(name: &str, machine: &str, study: &Study, trials: &[Measurement]) -> String {
    let path = scratch(name);
    let _ = std::fs::remove_dir_all(&path);
    let mut directory = RunDirectory::create(&path, study, environment(machine), "2026-11-21T06:00:00Z").unwrap();
    trials.iter().for_each(|trial| directory.append(trial, &[]).unwrap());
    path.to_str().unwrap().to_owned()
}

fn layouts() -> Study {
    study(&[("layout.name", &["wide", "star"]), ("database.name", &["mariadb", "sqlite"])])
}

#[test]
fn the_levels_of_a_factor_are_compared_case_by_case_and_round_by_round() {
    let trials = measure(&layouts(), &CALM, 8, &mut Random::new(1));
    let path = run("levels", "here", &layouts(), &trials);
    let found = json(&["compare", &path, "--factor", "layout.name", "--json"], 0);
    let comparisons = found["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2);
    for (one, case) in comparisons.iter().zip(["mariadb", "sqlite"]) {
        assert_eq!(
            (&one["case"], &one["machine"], &one["metric"]),
            (&case.into(), &"here".into(), &"throughput".into())
        );
        assert_eq!((&one["a"], &one["b"], &one["verdict"]), (&"wide".into(), &"star".into(), &"slower".into()));
        assert_eq!((&one["paired_rounds"], &one["ratio_method"]), (&8.into(), &"log t over rounds".into()));
        let (low, high) = (one["ratio_ci95"][0].as_f64().unwrap(), one["ratio_ci95"][1].as_f64().unwrap());
        assert!(low < 1.0 / 1.3 && 1.0 / 1.3 < high, "{one}");
        for figure in ["median_ratio", "shift", "p_mann_whitney", "p_paired", "p_welch", "p_pooled", "t", "df"] {
            assert!(one[figure].is_f64(), "{figure}: {one}");
        }
        assert!(one["shift_ci95"][0].as_f64().unwrap() < one["shift"].as_f64().unwrap());
    }
    let all = json(&["compare", &path, "--json"], 0);
    assert_eq!((all["comparisons"].as_array().unwrap().len(), &all["family"]), (4, &4.into()), "both factors");
    let text = String::from_utf8(loadline(&["compare", &path, "--factor", "layout.name"]).stdout).unwrap();
    assert!(text.contains("8 rounds") && text.contains("round by round"), "{text}");
}

#[test]
fn times_are_compared_for_each_kind_of_operation() {
    let study = study(&[("layout.name", &["wide", "star"]), ("workload.name", &["mix", "write"])]);
    let path = run("kinds", "here", &study, &measure(&study, &CALM, 10, &mut Random::new(2)));
    let arguments = ["compare", &path, "--factor", "layout.name", "--metric", "response_time_mean", "--json"];
    let found = json(&arguments, 0);
    let cases: Vec<&str> =
        found["comparisons"].as_array().unwrap().iter().map(|one| one["case"].as_str().unwrap()).collect();
    assert_eq!(cases, ["mix, read", "mix, update", "write, insert"]);
    let update = &found["comparisons"][1];
    let (update, read) = (update["mean_a"].as_f64().unwrap(), found["comparisons"][0]["mean_a"].as_f64().unwrap());
    assert!((8.0..12.0).contains(&(update / read)), "{update} {read}");
    assert_eq!(found["comparisons"][2]["verdict"], "slower", "less is better: {found}");
}

#[test]
fn parts_of_other_operations_are_compared_as_their_own_kind() {
    let study = study(&[("layout.name", &["wide", "star"])]);
    let mut trials = measure(&study, &CALM, 6, &mut Random::new(14));
    for trial in &mut trials {
        let whole = trial.operations.remove("insert").unwrap();
        trial.parts = [("read".to_owned(), whole.clone()), ("update".to_owned(), whole.clone())].into();
        trial.operations = [("read-modify-write".to_owned(), whole)].into();
    }
    let path = run("parts", "here", &study, &trials);
    let found = json(&["compare", &path, "--metric", "response_time_mean", "--json"], 0);
    let cases: Vec<&str> =
        found["comparisons"].as_array().unwrap().iter().map(|one| one["case"].as_str().unwrap()).collect();
    assert_eq!(cases, ["read-modify-write", "read", "update"]);
}

#[test]
fn two_machines_that_disagree_are_marked() {
    let turned: fn(&Levels) -> f64 = |levels| 1.0 / speed(levels);
    let first = run("first", "main", &layouts(), &measure(&layouts(), &CALM, 8, &mut Random::new(3)));
    let second_trials = measure(&layouts(), &Machine { speed: turned, ..CALM }, 8, &mut Random::new(4));
    let second = run("second", "validation", &layouts(), &second_trials);
    let found = json(&["compare", &first, &second, "--factor", "layout.name", "--json"], 0);
    let marks = found["marks"].as_array().unwrap();
    assert_eq!(marks.len(), 2);
    for mark in marks {
        assert_eq!((&mark["mark"], &mark["certain"]), (&"direction".into(), &true.into()));
        assert_eq!(mark["machines"], serde_json::json!(["main", "validation"]));
    }
    let noisy = Machine { noise: 0.6, drift: 0.0, is_interleaved: true, echo: 0.0, slow: 0.0, speed: |_| 1.0 };
    let third = run("third", "noisy", &layouts(), &measure(&layouts(), &noisy, 8, &mut Random::new(11)));
    let found = json(&["compare", &first, &third, "--factor", "layout.name", "--json"], 0);
    let silent = found["unconfirmed"].as_array().unwrap().len() + found["marks"].as_array().unwrap().len();
    assert_eq!(silent, 2, "a machine on which nothing is found confirms nothing: {found}");
}

#[test]
fn the_same_cases_of_two_versions_are_compared_without_pairing() {
    let faster: fn(&Levels) -> f64 = |levels| 1.2 * speed(levels);
    let before = run("before", "here", &layouts(), &measure(&layouts(), &CALM, 12, &mut Random::new(5)));
    let mut after_study = study(&[("layout.name", &["wide", "star"])]);
    after_study.base.record.rows = 5;
    after_study.cases.iter_mut().for_each(|case| case.settings.database.name = "sqlite".to_owned());
    let trials = measure(&after_study, &Machine { speed: faster, ..CALM }, 12, &mut Random::new(6));
    let after = run("after", "here", &after_study, &trials);
    let found = json(&["compare", &before, &after, "--json"], 0);
    let comparisons = found["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2, "the cases that both have: {found}");
    for one in comparisons {
        assert!(one["case"].as_str().unwrap().contains("sqlite"), "{one}");
        assert_eq!((&one["a"], &one["b"]), (&"comparing-before".into(), &"comparing-after".into()));
        assert_eq!((&one["verdict"], &one["paired_rounds"]), (&"slower".into(), &serde_json::Value::Null));
        assert_eq!(one["ratio_method"], "log t");
    }
    let notes = found["notes"].to_string();
    for words in [
        "mariadb only in comparing-before",
        "record.rows is 0 in comparing-before and 5 in comparing-after",
        "not interleaved",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
}

#[test]
fn a_machine_that_became_slower_on_the_way_is_told_of() {
    let steady = Machine { drift: 0.0, ..CALM };
    let mut trials = measure(&layouts(), &steady, 12, &mut Random::new(12));
    trials.iter_mut().filter(|trial| trial.trial.round >= 7).for_each(|trial| trial.measured_s *= 2.0);
    let changed = run("changed", "here", &layouts(), &trials);
    let other = run("steady", "here", &layouts(), &measure(&layouts(), &steady, 12, &mut Random::new(13)));
    let notes = json(&["compare", &changed, &other, "--json"], 0)["notes"].to_string();
    let found = json(&["compare", &changed, &other, "--json"], 0);
    let paired = found["comparisons"].as_array().unwrap().iter().filter(|one| !one["paired_rounds"].is_null()).count();
    assert_eq!(paired, 0, "rounds of different runs have nothing to do with each other: {found}");
    assert_eq!(notes.matches("the level changed after 7 of 12 trials").count(), 4, "{notes}");
    let within = json(&["compare", &changed, "--json"], 0)["notes"].to_string();
    assert!(!within.contains("the level changed"), "rounds cancel it: {within}");
}

#[test]
fn invalid_trials_are_left_out_and_make_the_status_1() {
    let mut trials = measure(&layouts(), &CALM, 8, &mut Random::new(7));
    trials[3].invalid_because.push(Reason::OperationsFailed { failed: 3, scheduled: 50, errors: Vec::new() });
    let path = run("invalid", "here", &layouts(), &trials);
    let found = json(&["compare", &path, "--factor", "layout.name", "--json"], 1);
    assert_eq!(found["valid"], false);
    assert!(found["notes"][0]["says"].as_str().unwrap().contains("1 of 32 trials are invalid and left out"), "{found}");
    let rounds = |place: usize| found["comparisons"][place]["paired_rounds"].as_u64().unwrap();
    assert_eq!(rounds(0) + rounds(1), 15, "the round of the invalid trial is left out of its case: {found}");
    let text = String::from_utf8(loadline(&["compare", &path]).stdout).unwrap();
    assert!(text.starts_with("INVALID: "), "{text}");
}

#[test]
fn alternatives_whose_queries_answer_something_else_are_not_compared() {
    let windows = study(&[("layout.name", &["wide", "star", "eav"])]);
    let mut trials = measure(&windows, &CALM, 8, &mut Random::new(8));
    let rows = |trials: &mut [Measurement], of: &dyn Fn(&str) -> u64| {
        for trial in trials {
            let each = of(trial.trial.case.levels["layout.name"].as_str().unwrap());
            trial.operations.values_mut().for_each(|kind| kind.rows = Some(each * kind.completed));
        }
    };
    rows(&mut trials, &|layout| if layout == "eav" { 1_000 } else { 10 });
    let path = run("windows", "here", &windows, &trials);
    let found = json(&["compare", &path, "--json"], 0);
    let comparisons = found["comparisons"].as_array().unwrap();
    assert_eq!((comparisons.len(), &comparisons[0]["b"]), (1, &"star".into()), "{found:#}");
    let why = "layout.name = eav is not compared with wide (the only case): their queries answered different things (10 and 1,000 rows each)";
    assert!(found["notes"].as_array().unwrap().iter().any(|note| note["says"] == why), "{found:#}");

    rows(&mut trials, &|_| 10_000);
    let other = run("windows-wider", "here", &windows, &trials);
    assert_refused(
        &["compare", &path, &other],
        &["wide, because their queries answered different things (10 and 10,000"],
    );
}

#[test]
fn nothing_to_compare_is_refused_with_a_remedy() {
    let single = study(&[]);
    let path = run("single", "here", &single, &measure(&single, &CALM, 4, &mut Random::new(8)));
    assert_refused(&["compare", &path], &["comparing-single: the run has one case only", "or name a second run"]);
    let two = run("unknown", "here", &layouts(), &measure(&layouts(), &CALM, 4, &mut Random::new(8)));
    let says =
        ["--factor: ", "varies no \"layout.nam\"; did you mean \"layout.name\"? it varies layout.name, database.name"];
    assert_refused(&["compare", &two, "--factor", "layout.nam"], &says);
    assert_refused(&["compare", &two, &two], &["is named twice; name two different runs"]);
    let other = study(&[("layout.name", &["json", "eav"])]);
    let other = run("other", "here", &other, &measure(&other, &CALM, 4, &mut Random::new(8)));
    assert_refused(
        &["compare", &two, &other],
        &["share no case with two valid trials each", "name two runs of the same"],
    );
    let few = run("few", "here", &layouts(), &measure(&layouts(), &CALM, 1, &mut Random::new(8)));
    assert_refused(&["compare", &few], &["there is nothing to compare", "fewer than two valid trials"]);
    assert_refused(&["compare", &two, "--metric", "load_line"], &["has no load line, because its study has no [goal]"]);
    assert_refused(
        &["compare", &two, "--metric", "iowait"],
        &["nothing to compare", "fewer than two valid trials with share of"],
    );
}
