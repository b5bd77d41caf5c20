//! Run directories: what was finished survives whatever happens, and what is read back is what was written.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::io::Write;
use std::path::PathBuf;

use loadline::measurement::{Environment, Measurement, OperationMeasurement, ResourceSample};
use loadline::reason::Reason;
use loadline::store::{Run, RunDirectory, StoreError};
use loadline::study::{Repeat, RepeatRule, Study};
use loadline::trial::{Case, DatabaseSettings, Levels, Settings, Trial};

fn study() -> Study {
    let mut settings = Settings::default();
    settings.database.config.insert("flush".to_owned(), "2".to_owned());
    let levels: Levels = [("load.clients".to_owned(), 4.into())].into();
    Study {
        name: "stored".to_owned(),
        question: "Does \"it\" survive?".to_owned(),
        source: String::new(),
        base: settings.clone(),
        factors: Vec::new(),
        repeat: Repeat { rule: RepeatRule::Fixed, within: 0.05, least: 1, most: 1, discard_first: false },
        goal: None,
        durability: None,
        claims: Vec::new(),
        quick: false,
        shrunk: Default::default(),
        left_out: Vec::new(),
        patience: loadline::study::Patience::default(),
        seed: 7,
        cases: vec![Case::new(levels, settings)],
    }
}

fn environment() -> Environment {
    Environment { machine: "here".to_owned(), cpus: 2, ..Environment::default() }
}

fn measurement(round: u32) -> Measurement {
    let mut insert = OperationMeasurement { scheduled: 2, completed: 2, ..Default::default() };
    insert.response_time.record(1_000);
    insert.response_time.record(2_000_000);
    Measurement {
        sequence: u64::from(round),
        started: "2026-11-21T06:20:00Z".to_owned(),
        total_s: 2.0,
        measured_s: 1.0,
        operations: [("insert".to_owned(), Box::new(insert))].into(),
        client_cpu_s: 0.1,
        database_version: "1".to_owned(),
        invalid_because: vec![Reason::SentLate { late_s: 0.5, mean_s: 1.0 }],
        ..Measurement::unmeasured(&Trial::new(study().cases[0].clone(), round, 1))
    }
}

/// A directory of its own that is removed when the test ends.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadline-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write(place: &Place, trials: u32) -> RunDirectory {
    let mut directory = RunDirectory::create(&place.0, &study(), environment(), "2026-11-21T06:20:00Z").unwrap();
    for round in 0..trials {
        directory.append(&measurement(round), &[ResourceSample { at_s: 1.0, ..Default::default() }]).unwrap();
    }
    directory
}

#[test]
fn what_is_written_is_read_back() {
    let place = Place::new("round-trip");
    drop(write(&place, 2));
    let run = Run::open(&place.0).unwrap();
    assert_eq!(run.file.study, study());
    assert_eq!(run.file.environment, environment());
    assert_eq!(run.measurements[1].trial, measurement(1).trial);
    assert_eq!(run.measurements[1].invalid_because, [Reason::SentLate { late_s: 0.5, mean_s: 1.0 }]);
    assert_eq!(run.measurements[0].operations["insert"].response_time.count(), 2);
    assert!(run.notes.is_empty());
    let samples = place.0.join("monitor").join(format!("{}.jsonl", measurement(0).trial.id));
    assert!(std::fs::read_to_string(samples).unwrap().contains("\"at_s\":1.0"));
}

#[test]
fn a_run_cut_at_any_byte_keeps_every_whole_trial() {
    let place = Place::new("torn");
    drop(write(&place, 3));
    let trials = place.0.join("trials.jsonl");
    let whole = std::fs::read(&trials).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').map(|at| at + 1).collect();
    for cut in (0..whole.len()).step_by(97).chain(ends.iter().copied()) {
        std::fs::write(&trials, &whole[..cut]).unwrap();
        let run = Run::open(&place.0).unwrap();
        let complete = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(run.measurements.len(), complete, "cut at byte {cut}");
        let is_torn = cut > 0 && !ends.contains(&cut);
        assert_eq!(run.notes.len(), usize::from(is_torn), "cut at byte {cut}");
    }
}

#[test]
fn resuming_drops_the_torn_line_and_goes_on_behind_it() {
    let place = Place::new("resume");
    drop(write(&place, 2));
    let trials = place.0.join("trials.jsonl");
    std::fs::OpenOptions::new().append(true).open(&trials).unwrap().write_all(b"{\"version\":1,\"tri").unwrap();
    let (mut directory, run) = RunDirectory::resume(&place.0, &study(), &environment()).unwrap();
    assert_eq!((run.measurements.len(), run.notes.len(), directory.written()), (2, 1, 2));
    directory.append(&measurement(2), &[]).unwrap();
    drop(directory);
    let run = Run::open(&place.0).unwrap();
    assert_eq!(run.measurements.iter().map(|each| each.trial.round).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(run.notes.is_empty());
}

#[test]
fn a_damaged_line_is_left_out_and_named() {
    let place = Place::new("damage");
    drop(write(&place, 3));
    let trials = place.0.join("trials.jsonl");
    let text = std::fs::read_to_string(&trials).unwrap();
    let second = text.find('\n').unwrap() + 1;
    std::fs::write(&trials, format!("{}#{}", &text[..second], &text[second + 1..])).unwrap();
    let run = Run::open(&place.0).unwrap();
    assert_eq!(run.measurements.iter().map(|each| each.trial.round).collect::<Vec<_>>(), [0, 2]);
    assert!(
        run.left_out.len() == 1 && run.left_out[0].to_string().contains("trials.jsonl:2: the trial is left out"),
        "{:?}",
        run.left_out
    );
    // Resumed, it is measured again, and what is damaged stays named.
    let (mut directory, _) = RunDirectory::resume(&place.0, &study(), &environment()).unwrap();
    directory.append(&measurement(1), &[]).unwrap();
    drop(directory);
    let run = Run::open(&place.0).unwrap();
    assert_eq!((run.measurements.len(), run.left_out.len()), (3, 1));
}

/// A line of a run of another case that began at the same moment.
fn line_of_another_case() -> String {
    let place = Place::new("another-case");
    let case = Case::new(Levels::default(), Settings::default());
    let study = Study { cases: vec![case.clone()], ..study() };
    let mut directory = RunDirectory::create(&place.0, &study, environment(), "2026-11-21T06:20:00Z").unwrap();
    directory.append(&Measurement { trial: Trial::new(case, 0, 1), ..measurement(0) }, &[]).unwrap();
    std::fs::read_to_string(place.0.join("trials.jsonl")).unwrap()
}

#[test]
fn a_line_that_does_not_belong_to_the_run_is_left_out() {
    let place = Place::new("own");
    drop(write(&place, 2));
    let trials = place.0.join("trials.jsonl");
    let own = std::fs::read_to_string(&trials).unwrap();
    let twice = format!("{}\n", own.lines().next().unwrap());
    let changed = twice.replacen("\"completed\":2", "\"completed\":9", 1);
    for (added, why) in
        [(twice, "is there already"), (changed, "checksum is wrong"), (line_of_another_case(), "is none of this study")]
    {
        std::fs::write(&trials, format!("{own}{added}")).unwrap();
        let run = Run::open(&place.0).unwrap();
        assert_eq!((run.measurements.len(), run.left_out.len()), (2, 1), "{:?}", run.left_out);
        let told = run.left_out[0].to_string();
        assert!(told.contains("trials.jsonl:3:") && told.contains(why), "{told}");
    }
    std::fs::remove_file(&trials).unwrap();
    let run = Run::open(&place.0).unwrap();
    assert!(run.measurements.is_empty() && run.left_out[0].to_string().contains("missing"), "{:?}", run.left_out);
}

#[test]
fn an_existing_directory_is_not_written_into() {
    let place = Place::new("exists");
    let directory = write(&place, 1);
    let again = RunDirectory::create(&place.0, &study(), environment(), "").unwrap_err();
    assert!(matches!(again, StoreError::Exists(_)));
    assert!(again.to_string().contains("--resume"), "{again}");
    let busy = RunDirectory::resume(&place.0, &study(), &environment()).unwrap_err();
    assert!(matches!(busy, StoreError::Busy(_)), "a second process may not write at the same time: {busy}");
    drop(directory);
    assert_eq!(Run::open(&place.0).unwrap().measurements.len(), 1);
}

#[test]
fn resuming_refuses_another_study_or_machine_and_names_what_differs() {
    let place = Place::new("different");
    drop(write(&place, 1));
    let other_seed = Study { seed: 8, ..study() };
    let message = RunDirectory::resume(&place.0, &other_seed, &environment()).unwrap_err().to_string();
    assert!(message.contains("--seed"), "{message}");
    let other_machine = Environment { machine: "there".to_owned(), ..environment() };
    let message = RunDirectory::resume(&place.0, &study(), &other_machine).unwrap_err().to_string();
    assert!(message.contains("\"here\", now \"there\""), "{message}");
    let message = Run::open(&std::env::temp_dir().join("no-such-run")).unwrap_err().to_string();
    assert!(message.contains("not a run directory"), "{message}");
}

#[test]
fn facts_about_a_database_are_added_to_the_run_file() {
    let place = Place::new("facts");
    let mut directory = write(&place, 0);
    let settings = &study().cases[0].settings.database;
    let version = |number: &str| [("version".to_owned(), number.to_owned())];
    directory.note_database(settings, &version("10.11")).unwrap();
    directory
        .note_database(&DatabaseSettings { binary: Some("other".to_owned()), ..settings.clone() }, &version("11.4"))
        .unwrap();
    directory.note_database(settings, &version("10.11")).unwrap();
    drop(directory);
    let environment = Run::open(&place.0).unwrap().file.environment;
    assert_eq!(environment.databases[&settings.name]["version"], "10.11");
    let servers: Vec<_> =
        environment.servers.iter().map(|server| (&*server.facts["version"], server.cases.len())).collect();
    assert_eq!(servers, [("10.11", 1), ("11.4", 0)], "each version with the cases that were measured on it");
}
