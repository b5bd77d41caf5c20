//! A run's own `run.toml` as a study, and the command that began a run, so that every run can be repeated.
//!
//! Main functions: [`study_of_run`], [`words_of`]. Invariant: the repeated study has the same cases, repeats and seed as the run.

use std::path::Path;

use super::Failure;
use crate::cli::StudyArguments;
use crate::store::RunFile;
use crate::study::{Names, Study, without_passwords};
use crate::trial::Case;

/// Returns the study of a run if the arguments name its `run.toml` or its directory; `None` if they name a study.
///
/// # Errors
/// Fails with a sentence if the file cannot be understood, cannot be built by this version, or is to be changed by options.
pub fn study_of_run(arguments: &StudyArguments, names: &Names) -> Option<Result<Study, Failure>> {
    let named = arguments.study.as_deref()?;
    let is_study = crate::study::BUNDLED.iter().any(|bundled| bundled.name == named)
        || Path::new(named).join("study.toml").exists();
    let found = if is_study { None } else { RunFile::find(Path::new(named)) }?;
    Some(found.and_then(|file| resolved(file, named, arguments, names)).map_err(Failure::refused))
}

fn resolved(file: RunFile, named: &str, arguments: &StudyArguments, names: &Names) -> Result<Study, String> {
    if !file.environment.is_own() {
        let remedy = "repeat it with that tool";
        return Err(format!("{named}: another tool measured this run, which loadline cannot repeat; {remedy}"));
    }
    if file.study.durability.as_ref().is_some_and(|plan| plan.recorder.is_some()) {
        let command = file.environment.command.join(" ");
        return Err(format!("{named}: a recorder was tested, and there is no study; repeat it with {command}"));
    }
    let remedy = "change the study that the run came from, or leave this out";
    if let Some(set) = arguments.sets.first() {
        return Err(format!("--set {set}: {named} is the file of a run, whose cases are decided; {remedy}"));
    }
    let mut study = file.study;
    if arguments.quick && !study.quick {
        return Err(format!("--quick: {named} is the file of a run, whose cases are decided; {remedy}"));
    }
    study.seed = arguments.seed.unwrap_or(study.seed);
    for case in &mut study.cases {
        (names.try_build)(&case.settings).map_err(|why| format!("{named}: {why}"))?;
        *case = Case::new(std::mem::take(&mut case.levels), case.settings.clone());
    }
    Ok(study)
}

/// Returns the words of the command that starts a run of a study, without passwords.
pub fn words_of(arguments: &StudyArguments, study: &Study) -> Vec<String> {
    let StudyArguments { study: named, ycsb, sets, quick, seed } = arguments;
    let mut words = vec!["loadline".to_owned(), "run".to_owned()];
    words.extend(named.clone());
    words.extend(ycsb.iter().flat_map(|file| ["--ycsb".to_owned(), file.clone()]));
    words.extend(sets.iter().flat_map(|set| ["--set".to_owned(), without_passwords(set)]));
    words.extend(quick.then(|| "--quick".to_owned()));
    words.extend(["--seed".to_owned(), seed.unwrap_or(study.seed).to_string()]);
    words
}
