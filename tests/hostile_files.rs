//! Files that were damaged: run directories, studies and what other tools wrote. Whatever stands in them, the program ends soon, with status 0, 1 or 2, in bounded memory,
//! and figures of a damaged run that it calls good are those that were measured.
//!
//! `LOADLINE_HOSTILE_RUNS` says how many files of each kind are tried, and `LOADLINE_HOSTILE_SEED` where they begin.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "hostile/damaged.rs"]
mod damaged;
#[path = "hostile/program.rs"]
mod program;

use std::path::{Path, PathBuf};

use damaged::damage;
use loadline::random::Stream;
use program::{Ended, number_in};
use serde_json::Value;

/// Files of each kind where nothing else is asked for.
const RUNS: u64 = 60;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("loadline-hostile-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn seeds() -> impl Iterator<Item = u64> {
    let first = number_in("LOADLINE_HOSTILE_SEED").unwrap_or(1);
    first..first + number_in("LOADLINE_HOSTILE_RUNS").unwrap_or(RUNS)
}

/// Trials of a case.
const TRIALS: u64 = 3;
const STUDY: &str = "name = \"files\"\nquestion = \"Is it there?\"\n[record]\nrows = 60\n[workload]\nname = \"mix\"\n\
    mix = { read = 1, write = 1 }\n[load]\noperations = 80\nwarmup = \"0s\"\n[factors]\n\"load.clients\" = [1, 2]\n\
    [repeat]\nrule = \"fixed\"\nleast = 3\nmost = 3\n[[claims]]\nsays = \"two clients are faster\"\n\
    metric = \"throughput\"\nratio = { of = { \"load.clients\" = 2 }, to = { \"load.clients\" = 1 }, between = [0.01, 100.0] }\n";

/// All files of a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in files(from) {
        let at = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::copy(file, at).unwrap();
    }
}

/// What a report says that depends on what was measured only.
fn figures(ended: &Ended) -> Value {
    let mut findings: Value = serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let cases = findings["cases"].take();
    assert!(cases.is_array(), "{ended:?}");
    cases
}

#[test]
fn a_damaged_run_directory_shows_no_figure_that_was_not_measured() {
    let folder = Folder::new("run");
    std::fs::write(folder.0.join("study.toml"), STUDY).unwrap();
    let made = program::run(&folder.0, &["run", "study.toml", "--out", "whole"]);
    assert_eq!(made.status, Some(0), "{made:?}");
    let whole = program::run(&folder.0, &["report", "whole", "--json"]);
    let measured = figures(&whole);
    let mut good = 0;
    for seed in seeds() {
        let mut random = Stream::seeded(seed);
        let run = folder.0.join("run");
        let _ = std::fs::remove_dir_all(&run);
        copy(&folder.0.join("whole"), &run);
        let all: Vec<PathBuf> = files(&run).into_iter().filter(|file| !file.ends_with("report.html")).collect();
        // Mostly the trials, since that is where the figures are.
        let file = match random.below(3) {
            0 => all[random.below(all.len() as u64) as usize].clone(),
            _ => run.join("trials.jsonl"),
        };
        let how = damage(&file, &mut random);
        let told = format!("seed {seed}, {how} of {}", file.display());
        let commands: [&[&str]; 5] = [
            &["report", "run", "--json"],
            &["compare", "whole", "run"],
            &["export", "run"],
            &["fit", "run"],
            &["run", "study.toml", "--resume", "run"],
        ];
        for arguments in commands {
            let ended = program::run(&folder.0, arguments);
            ended.check(&format!("{told}: {arguments:?}"));
            if arguments[0] == "report" && ended.status == Some(0) {
                good += 1;
                for case in figures(&ended).as_array().unwrap() {
                    let whole = measured.as_array().unwrap().iter().find(|whole| whole["id"] == case["id"]);
                    // A run whose end is missing is one that was interrupted: it has fewer trials, and is not settled.
                    let is_cut = case["trials"].as_u64() < Some(TRIALS) && case["settled"] == false;
                    let are_same = |whole: &Value| {
                        let mean = |case: &Value| case["throughput_per_s"]["mean"].clone();
                        mean(whole) == mean(case) && whole["operations"] == case["operations"]
                    };
                    assert!(whole.is_some_and(|whole| is_cut || are_same(whole)), "{told}: {case}: {}", ended.said);
                }
            }
        }
    }
    println!("{good} reports were called good");
}

#[test]
fn damaged_studies_are_planned_or_refused() {
    let folder = Folder::new("study");
    let bundled: Vec<PathBuf> = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("studies"));
    let studies: Vec<&PathBuf> = bundled.iter().filter(|file| file.ends_with("study.toml")).collect();
    let mut refused = 0;
    for seed in seeds() {
        let mut random = Stream::seeded(seed);
        let from = studies[random.below(studies.len() as u64) as usize];
        let file = folder.0.join("study.toml");
        std::fs::copy(from, &file).unwrap();
        let how = damage(&file, &mut random);
        let ended = program::run(&folder.0, &["plan", "study.toml"]);
        let told = format!("seed {seed}, {how} of {}", from.display());
        ended.check(&told);
        refused += u64::from(ended.status == Some(2));
        // What is refused is named with its place.
        assert!(ended.status == Some(0) || ended.said.contains("study.toml"), "{told}: {ended:?}");
    }
    println!("{refused} studies were refused");
}

#[test]
fn damaged_files_of_other_tools_are_imported_or_refused() {
    let folder = Folder::new("import");
    let all = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import"));
    for seed in seeds() {
        let mut random = Stream::seeded(seed);
        let from = &all[random.below(all.len() as u64) as usize];
        let tool = from.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let name = from.file_name().unwrap().to_str().unwrap();
        let file = folder.0.join(name);
        std::fs::copy(from, &file).unwrap();
        let how = damage(&file, &mut random);
        let _ = std::fs::remove_dir_all(folder.0.join("run"));
        let told = format!("seed {seed}, {how} of {}", from.display());
        let ended = program::run(&folder.0, &["import", tool, name, "--out", "run"]);
        ended.check(&told);
        if ended.status == Some(0) {
            let ended = program::run(&folder.0, &["report", "run"]);
            ended.check(&told);
            assert!(!ended.out.contains("NaN") && !ended.out.contains("inf "), "{told}: {ended:?}");
        }
    }
}
