//! `loadline durability`: cuts the power of a database while it records, again and again, and counts acknowledged records that are gone.
//!
//! Main function: [`run`]. Invariant: acknowledgements are kept outside of the disk that fails.

mod failure;
mod kept;
mod life;
mod oracle;
mod recorders;
mod reference;
mod subject;
mod tally;
mod told;
mod writers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::output::{note, sentence};
use super::{Failure, Status};
use crate::cli::{DurabilityArguments, RunArguments, StudyArguments};
use crate::database::{self, Capability, Entry};
use crate::fault::fault;
use crate::finding::{DurabilityCase, DurabilityTest, NotTested};
use crate::random::derive;
use crate::report::durability_test::label;
use crate::runner::entry::entry_of;
use crate::runner::execute;
use crate::runner::private_start::remove_leftovers;
use crate::runner::proofs::{self, Proof};
use crate::server::{self, OwnDirectory, interrupted};
use crate::store::RunDirectory;
use crate::study::cluster::nodes_of;
use crate::study::{self, Names, Study};
use crate::trial::{Case, DurabilityPlan, FaultKind, Levels, Settings};
use crate::units::show_number;
use crate::workload::Work;

use kept::{begin, keep, tell};
use life::{Life, Scene, live};
use subject::Subject;
use tally::{CaseTallies, Tally};

pub use kept::report_again;
pub use recorders::OTHER_RECORDER;
pub use writers::work_as_writers;

/// The default study.
const STUDY: &str = "durability";

/// Interval between two progress messages.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// Number of consecutive failures that cannot be judged after which the test ends.
const UNJUDGED_MOST: u32 = 3;

/// Number of writers.
const CLIENTS: u32 = 4;
/// Number of records in the larger transactions.
const BATCH: u32 = 10;

/// Prefixes of the settings that decide what is tested; the other settings describe a load.
const DECIDING: [&str; 3] = ["database.", "layout.", "record."];

/// A requested test, and where its result is kept.
struct Asked<'a> {
    study: &'a Study,
    plan: DurabilityPlan,
    /// Name of the database or study.
    target: &'a str,
    /// Directory for the result; `None` if it is only printed.
    directory: Option<PathBuf>,
    /// The words of the command line.
    words: Vec<String>,
}

/// Runs `loadline durability`: tests a database, or the databases of a study.
///
/// # Errors
/// [`Failure::Usage`] for errors found before anything is started, such as a missing FUSE; [`Failure::Broken`] if the test cannot go on.
pub fn run(arguments: &DurabilityArguments, is_json: bool, names: &Names) -> Result<Status, Failure> {
    if let Some(recorder) = &arguments.recorder {
        return recorders::run(recorder, arguments, is_json);
    }
    let target = arguments.target.as_deref().unwrap_or(STUDY);
    let mut study = study_of(target, arguments, names)?;
    let mut plan = study.durability.take().unwrap_or_default();
    plan.cuts = arguments.cuts.unwrap_or(plan.cuts);
    if !arguments.faults.is_empty() {
        plan.faults = arguments.faults.clone();
    }
    plan.sync_first |= arguments.sync_first;
    if plan.faults.contains(&FaultKind::Store) {
        let remedy = "name a recorder with --recorder, or another --fault";
        return Err(Failure::refused(
            fault!("--fault store is a failure of the store behind a recorder, and \"{target}\" is none"; "{remedy}"),
        ));
    }
    study.durability = Some(plan.clone());
    let words = words_of(arguments, target);
    test_all(&Asked { study: &study, plan, target, directory: arguments.out.clone(), words }, is_json)
}

/// Runs `loadline run` for a durability study: tests its databases.
///
/// # Errors
/// As [`run`], and if the run is to be continued or to last a given time.
pub fn run_study(
    study: &Study,
    plan: DurabilityPlan,
    arguments: &RunArguments,
    is_json: bool,
) -> Result<Status, Failure> {
    let refused = |flag: &str, remedy: &str| {
        Err(Failure::refused(
            fault!("{flag}: study \"{}\" has [durability], and measures nothing", study.name; "{remedy}"),
        ))
    };
    if arguments.resume.is_some() {
        return refused("--resume", "begin it again, with another directory");
    }
    if arguments.budget.is_some() {
        return refused("--budget", "say how often something fails, as in --set durability.cuts=300");
    }
    let directory = arguments.out.clone().unwrap_or_else(|| super::run::new_directory(study));
    let words = super::rerun::words_of(&arguments.study, study);
    test_all(&Asked { study, plan, target: &study.name, directory: Some(directory), words }, is_json)
}

/// Checks that a durability study can run here.
///
/// # Errors
/// Fails with the first problem of a case or of this machine.
pub fn check(study: &Study) -> anyhow::Result<()> {
    cases_of(study).map(drop)
}

/// Estimates the shortest and longest duration of a study, in seconds: without and with the kills that follow harmful cuts.
pub fn estimate_s(study: &Study, plan: &DurabilityPlan) -> [f64; 2] {
    let of_case = |case: &Case| {
        let is_embedded = entry_of(&case.settings.database).is_ok_and(|entry| entry.recipe.is_none());
        f64::from(plan.cuts) * if is_embedded { EMBEDDED_LIFE_S } else { SERVER_LIFE_S }
    };
    let once_s: f64 = cases_of(study).unwrap_or_default().iter().map(of_case).sum();
    match plan.faults.len() {
        0 => [once_s, 2.0 * once_s],
        kinds => [once_s * kinds as f64; 2],
    }
}

/// Approximate duration of one life, in seconds.
const EMBEDDED_LIFE_S: f64 = 0.2;
const SERVER_LIFE_S: f64 = 4.0;

/// Tests all cases and reports the result.
fn test_all(asked: &Asked<'_>, is_json: bool) -> Result<Status, Failure> {
    let cases = cases_of(asked.study).map_err(Failure::usage)?;
    server::install_signal_handlers();
    remove_leftovers().map_err(Failure::usage)?;
    // Another loadline leaves the files below this directory alone while this process is alive.
    let own = OwnDirectory::new().map_err(Failure::usage)?;
    let place = own.path().to_owned();
    subject::check_disk(&place).map_err(Failure::usage)?;
    let mut kept = match &asked.directory {
        Some(path) => Some(begin(path, asked.study, asked.words.clone()).map_err(Failure::usage)?),
        None => None,
    };
    let (mut found, mut not_tested) = (Vec::new(), Vec::new());
    for case in &cases {
        match test(case, asked, &place, kept.as_mut()) {
            Ok(tallies) => found.extend(tallies.told()),
            // What keeps one database from being tested need not keep the others.
            Err(error) if cases.len() > 1 => {
                let (levels, why) = (case.levels.clone(), sentence(&error));
                note(&format!("warning: {}: not tested: {why}", label(&levels)));
                not_tested.push(NotTested { levels, why });
            }
            Err(error) => return Err(without_results(kept, broken(case, &error))),
        }
        if interrupted() {
            note("interrupted: what is told is what was found until then");
            break;
        }
    }
    if found.is_empty() {
        let failure = Failure::Broken("none of the cases could be tested; the reasons are told above".to_owned());
        return Err(without_results(kept, failure));
    }
    let test = DurabilityTest {
        target: asked.target.to_owned(),
        server: servers(&found),
        seed: asked.study.seed,
        rehearsal: asked.study.quick,
        sync_first: asked.plan.sync_first,
        cases: found,
        not_tested,
    };
    let page = kept.map(|kept| keep(&kept, &test)).transpose()?;
    tell(&test, page.as_deref(), is_json)?;
    Ok(if test.is_as_promised() && !interrupted() { Status::Valid } else { Status::Invalid })
}

/// Removes a directory that holds no results, and returns the failure. It does no harm if the directory cannot be removed.
fn without_results(kept: Option<RunDirectory>, failure: Failure) -> Failure {
    let _ = kept.map(|kept| std::fs::remove_dir_all(kept.path()));
    failure
}

/// Returns the versions of the servers, each once.
fn servers(cases: &[DurabilityCase]) -> String {
    let mut servers: Vec<&str> = cases.iter().map(|case| case.server.as_str()).collect();
    let mut known = std::collections::HashSet::new();
    servers.retain(|server| known.insert(*server));
    servers.join(", ")
}

/// Returns the named study, or a study of the named database.
fn study_of(target: &str, arguments: &DurabilityArguments, names: &Names) -> Result<Study, Failure> {
    let DurabilityArguments { sets, seed, .. } = arguments;
    if let Some(entry) = database::find(target) {
        let workload = workload_of(entry);
        let record = record_of(entry);
        let text = format!(
            "name = \"durability\"\n[database]\nname = \"{target}\"\n[record]\n{record}\n[layout]\nname = \"wide\"\n\
             [workload]\nname = \"{workload}\"\n[load]\nduration = \"1s\"\n"
        );
        return study::load_text(target, &text, sets, *seed, false, names)
            .map(|(study, _)| study)
            .map_err(Failure::refused);
    }
    let named =
        StudyArguments { study: Some(target.to_owned()), ycsb: None, sets: sets.clone(), quick: false, seed: *seed };
    super::read_study(&named, names).map(|(study, _)| study)
}

/// Returns the workload that shows what a database loses: with updates and deletes, where it has them.
fn workload_of(entry: &Entry) -> &'static str {
    let changes = [Capability::Updates, Capability::Deletes].iter().all(|change| entry.capabilities.has(*change));
    if changes { "turnover" } else { "additions" }
}

/// Returns the records that are written: sensor events, and a level and a temperature where there are no texts.
fn record_of(entry: &Entry) -> &'static str {
    match entry.capabilities.has(Capability::Values) {
        true => "type = \"sensor\"",
        false => {
            "type = \"custom\"\nidentity = [{ name = \"site\", kind = \"int\", fill = { uniform = [1, 1000] } }]\n\
             values = [{ name = \"level\", kind = \"int\", fill = { uniform = [0, 1000000] } }, \
             { name = \"temperature\", kind = \"float\", fill = { drift = [-20.0, 30.0, 0.1] } }]"
        }
    }
}

/// Returns the words of the command that repeats the test.
fn words_of(arguments: &DurabilityArguments, target: &str) -> Vec<String> {
    let mut words = vec!["loadline".to_owned(), "durability".to_owned(), target.to_owned()];
    words.extend(arguments.sets.iter().flat_map(|set| ["--set".to_owned(), study::without_passwords(set)]));
    words.extend(arguments.cuts.iter().flat_map(|cuts| ["--cuts".to_owned(), cuts.to_string()]));
    words.extend(arguments.faults.iter().flat_map(|fault| ["--fault".to_owned(), fault.name().to_owned()]));
    words.extend(arguments.sync_first.then(|| "--sync-first".to_owned()));
    words.extend(arguments.seed.iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]));
    words
}

/// Returns the cases that differ in the tested settings, with the workload of the test.
fn cases_of(study: &Study) -> anyhow::Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    for case in &study.cases {
        let entry = entry_of(&case.settings.database)?;
        let settings = tested(&case.settings, entry);
        let decides = |setting: &String| DECIDING.iter().any(|part| setting.starts_with(part));
        let levels: Levels = case
            .levels
            .iter()
            .filter(|(setting, _)| decides(setting))
            .map(|(setting, level)| (setting.clone(), level.clone()))
            .collect();
        let case = Case::new(levels, settings);
        if cases.iter().any(|known| known.id == case.id) {
            continue;
        }
        let about = || label(&case.levels);
        let database = &case.settings.database;
        if database.url.is_some() || database.path.is_some() {
            anyhow::bail!(
                "{}: a database that is there already cannot lose its power; leave {} out, so that loadline starts one of its own",
                about(),
                if database.url.is_some() { "database.url" } else { "database.path" }
            );
        }
        if entry.level.is_none() {
            anyhow::bail!("database.name = \"{}\" promises to keep nothing; take another", database.name);
        }
        let nodes = nodes_of(database);
        if nodes > 1 {
            anyhow::bail!(
                "{}: the server has {nodes} nodes, and one disk fails at a time; leave database.nodes out",
                about()
            );
        }
        entry.recipe.map(|recipe| server::check(recipe, database)).transpose()?;
        execute::check(&case.settings).map_err(|error| error.context(about()))?;
        cases.push(case);
    }
    Ok(cases)
}

/// Returns the settings of a case with the workload of the test: each record is one measurement, and the tables hold nothing else.
fn tested(settings: &Settings, entry: &Entry) -> Settings {
    let mut tested = Settings {
        database: settings.database.clone(),
        record: settings.record.clone(),
        layout: settings.layout.clone(),
        ..Settings::default()
    };
    tested.record.rows = 0;
    tested.record.runs.clear();
    (tested.record.per_measurement, tested.record.existing) = (1, false);
    (tested.layout.tables_per_client, tested.layout.tables_as_recorded) = (false, false);
    tested.workload.name = workload_of(entry).to_owned();
    // The study's own load does not matter: cases that differ only in it are the same.
    (tested.workload.batch, tested.load.clients) = (BATCH, CLIENTS);
    tested
}

/// Returns the failure of a test whose only case could not be tested.
fn broken(case: &Case, error: &anyhow::Error) -> Failure {
    Failure::Broken(format!("{}: {}", label(&case.levels), sentence(error)))
}

/// Tests a case with the requested number of failures.
///
/// # Errors
/// Fails if the case cannot be tested, or its results cannot be kept.
fn test(case: &Case, asked: &Asked<'_>, place: &Path, kept: Option<&mut RunDirectory>) -> anyhow::Result<CaseTallies> {
    let mut tallies: Vec<Tally> = Vec::new();
    let mut facts: BTreeMap<String, String> = BTreeMap::new();
    let is_open = asked.plan.faults.is_empty();
    let faults = if is_open { vec![FaultKind::Power, FaultKind::Kill] } else { asked.plan.faults.clone() };
    for fault in faults {
        // Data that survives a power cut survives a kill, which takes nothing from the disk.
        let is_known = tallies.iter().any(|tally| tally.case.fault == FaultKind::Power && tally.case.is_harmless());
        if is_open && fault == FaultKind::Kill && is_known {
            continue;
        }
        tallies.push(fail(case, fault, asked, place, &mut facts)?);
        if interrupted() {
            break;
        }
    }
    let entry = entry_of(&case.settings.database)?;
    let of_power =
        tallies.iter().map(|tally| &tally.case).find(|cuts| cuts.fault == FaultKind::Power && cuts.telling() > 0);
    // Where the disk was synced first, less was shown.
    of_power.into_iter().filter(|_| !asked.plan.sync_first).for_each(|cuts| {
        let counts = (cuts.telling(), cuts.harmed(), asked.study.seed);
        proofs::keep(Proof::new(entry, &case.settings.database, &facts, counts));
    });
    let promised = entry.level(&case.settings.database, &facts, true);
    let server = facts.get("version").cloned().unwrap_or_default();
    let facts: Vec<(String, String)> = facts.into_iter().collect();
    let noted = kept.map(|kept| kept.note_database(&case.settings.database, &facts));
    noted.transpose()?;
    Ok(CaseTallies { levels: case.levels.clone(), server, tallies, promised })
}

/// Tests one kind of failure.
fn fail(
    case: &Case,
    fault: FaultKind,
    asked: &Asked<'_>,
    directory: &Path,
    facts: &mut BTreeMap<String, String>,
) -> anyhow::Result<Tally> {
    let settings = &case.settings;
    let work = Work::with_reads(settings).map_err(anyhow::Error::msg)?;
    let scene = Scene { directory, settings, work: &work, fault, sync_first: asked.plan.sync_first };
    let mut subject: Option<Subject> = None;
    repeat(&label(&case.levels), fault, asked.plan.cuts, asked.study.seed, |number, seed| {
        let mut own = match subject.take() {
            Some(subject) => subject,
            None => Subject::new(directory, settings)?,
        };
        let life = live(&scene, &mut own, (number, seed));
        let life = life.map_err(|error| anyhow::anyhow!(own.with_log(&sentence(&error))))?;
        if facts.is_empty() {
            facts.extend(own.facts());
        }
        // A database that may be damaged is not reused, and an embedded one is made anew quickly.
        let is_sound = !own.is_embedded() && !life.is_harmed() && life.did_not_start.is_none();
        subject = (is_sound && matches!(fault, FaultKind::Power | FaultKind::Kill)).then_some(own);
        Ok(life)
    })
}

/// Carries out one life for each failure of a kind, and counts what became of them. A life gets its number, from 1, and its seed.
///
/// # Errors
/// Fails if the first life cannot be judged, or several in a row.
fn repeat(
    about: &str,
    fault: FaultKind,
    cuts: u32,
    seed: u64,
    mut live: impl FnMut(u64, u64) -> anyhow::Result<Life>,
) -> anyhow::Result<Tally> {
    let mut tally = Tally::new(fault);
    let (mut said, mut unjudged) = (Instant::now(), 0);
    for number in 1..=u64::from(cuts) {
        if interrupted() {
            break;
        }
        let life = live(number, derive(derive(seed, fault as u64), number - 1));
        if interrupted() {
            // A life that the user interrupted says nothing.
            break;
        }
        match life {
            Ok(life) => {
                unjudged = 0;
                tally.add(life);
            }
            Err(error) => {
                unjudged += 1;
                if number == 1 || unjudged == UNJUDGED_MOST {
                    return Err(error);
                }
                tally.case.not_judged += 1;
                let name = fault.name();
                note(&format!("{about}, {name}: failure {number} was not judged: {}", sentence(&error)));
            }
        }
        if said.elapsed() > SAID_EVERY {
            said = Instant::now();
            let [done, all, harmed] = [tally.case.cuts, u64::from(cuts), tally.case.harmed()];
            let [done, all, harmed] = [done, all, harmed].map(|number| show_number(number as f64));
            note(&format!("{about}, {}: {done} of {all} failures, {harmed} with a loss", fault.name()));
        }
    }
    Ok(tally)
}
