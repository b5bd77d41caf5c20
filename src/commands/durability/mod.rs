//! `loadline durability`: cuts the power under a database while it records, again and again, and counts what was acknowledged and is gone.
//!
//! Main function: [`run`]. Invariant: what was acknowledged is kept outside of the disk that fails.

mod life;
mod oracle;
mod reference;
mod subject;
mod tally;
mod told;
mod writers;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::entry::entry_of;
use super::output::{note, print, print_json, sentence};
use super::private_start::remove_leftovers;
use super::proofs::{self, Proof};
use super::{Failure, Status, execute};
use crate::cli::{DurabilityArguments, FaultKind};
use crate::database;
use crate::random::derive;
use crate::server::{self, OwnDirectory, interrupted};
use crate::study::{self, Names, Study};
use crate::trial::{Case, Levels, Settings};
use crate::units::show_number;
use crate::workload::Work;

use life::{Scene, live};
use subject::Subject;
use tally::Tally;
use told::{CaseTold, Told};

pub use writers::work_as_writers;

/// How often it is said how far it is.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// Failures in a row that cannot be judged, until no more are tried.
const UNJUDGED_MOST: u32 = 3;

/// The writers.
const CLIENTS: u32 = 4;
/// Records in the larger transactions.
const BATCH: u32 = 10;

/// Settings that decide what is put to the test; the others are of a load.
const DECIDING: [&str; 3] = ["database.", "layout.", "record."];

/// Puts a database, or those of a study, to the test.
///
/// # Errors
/// [`Failure::Usage`] for what is wrong before anything is started, a missing FUSE among it; [`Failure::Broken`] when it cannot go on.
pub fn run(arguments: &DurabilityArguments, is_json: bool, names: &Names) -> Result<Status, Failure> {
    let study = study_of(arguments, names)?;
    let cases = cases_of(&study).map_err(Failure::usage)?;
    server::install_signal_handlers();
    remove_leftovers().map_err(Failure::usage)?;
    // What another loadline may find here belongs to this one, as long as it is alive.
    let own = OwnDirectory::new().map_err(Failure::usage)?;
    let directory = own.path().to_owned();
    subject::check_disk(&directory).map_err(Failure::usage)?;
    let (mut tests, mut is_cut_short) = (Vec::new(), false);
    for case in &cases {
        match test(case, arguments, &directory) {
            Ok(test) => tests.push(test),
            Err(failure) if tests.is_empty() => return Err(failure),
            // What was found of the others is worth being told.
            Err(failure) => {
                note(&format!("warning: {failure}"));
                is_cut_short = true;
                break;
            }
        }
        if interrupted() {
            note("interrupted: what is told is what was found until then");
            break;
        }
    }
    let told = Told { target: &arguments.target, cases: &tests };
    if is_json {
        print_json(&told::json_of(&told))?
    } else {
        print(&told::text_of(&told))?
    }
    let is_broken =
        tests.iter().any(|test| test.breaks_promise() || test.tallies.iter().any(|tally| tally.unjudged > 0));
    Ok(if is_broken || is_cut_short || interrupted() { Status::Invalid } else { Status::Valid })
}

/// The study that is named, or one of the database that is named.
fn study_of(arguments: &DurabilityArguments, names: &Names) -> Result<Study, Failure> {
    let DurabilityArguments { target, sets, seed, .. } = arguments;
    let loaded = if database::find(target).is_some() {
        let text = format!(
            "name = \"durability\"\n[database]\nname = \"{target}\"\n[record]\ntype = \"sensor\"\n[layout]\nname = \"wide\"\n\
             [workload]\nname = \"turnover\"\n[load]\nduration = \"1s\"\n"
        );
        study::load_text(target, &text, sets, Some(*seed), false, names)
    } else {
        study::load(target, sets, Some(*seed), false, names)
    };
    loaded.map(|(study, _)| study).map_err(Failure::refused)
}

/// The cases that differ in what is put to the test, with the workload that does it.
fn cases_of(study: &Study) -> anyhow::Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    for case in &study.cases {
        let settings = tested(&case.settings);
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
        let about = || told::label(&case.levels);
        let database = &case.settings.database;
        if database.url.is_some() || database.path.is_some() {
            anyhow::bail!(
                "{}: a database that is there already cannot lose its power; leave {} out, so that loadline starts one of its own",
                about(),
                if database.url.is_some() { "database.url" } else { "database.path" }
            );
        }
        let entry = entry_of(database)?;
        if entry.level.is_none() {
            anyhow::bail!("database.name = \"{}\" promises to keep nothing; take another", database.name);
        }
        entry.recipe.map(|recipe| server::check(recipe, database)).transpose()?;
        execute::check(&case.settings).map_err(|error| error.context(about()))?;
        cases.push(case);
    }
    Ok(cases)
}

/// The settings of a case, for the workload that is looked for afterwards: records that are each a measurement, and tables that hold nothing else.
fn tested(settings: &Settings) -> Settings {
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
    tested.workload.name = "turnover".to_owned();
    // Whatever the study's load is: cases that differ in nothing else are one.
    (tested.workload.batch, tested.load.clients) = (BATCH, CLIENTS);
    tested
}

/// Lets a case fail as often as was asked.
fn test(case: &Case, arguments: &DurabilityArguments, directory: &Path) -> Result<CaseTold, Failure> {
    let mut tallies: Vec<Tally> = Vec::new();
    let broken = |error: anyhow::Error| Failure::Broken(format!("{}: {}", told::label(&case.levels), sentence(&error)));
    let mut facts: BTreeMap<String, String> = BTreeMap::new();
    let asked =
        if arguments.faults.is_empty() { vec![FaultKind::Power, FaultKind::Kill] } else { arguments.faults.clone() };
    for fault in asked {
        // What survives a cut of the power survives a kill, which takes nothing from the disk.
        let is_known = tallies.iter().any(|tally| tally.fault == FaultKind::Power && tally.is_harmless());
        if arguments.faults.is_empty() && fault == FaultKind::Kill && is_known {
            continue;
        }
        tallies.push(fail(case, fault, arguments, directory, &mut facts).map_err(broken)?);
        if interrupted() {
            break;
        }
    }
    let entry = entry_of(&case.settings.database).map_err(broken)?;
    let of_power = tallies.iter().find(|tally| tally.fault == FaultKind::Power && tally.telling() > 0);
    of_power.into_iter().for_each(|tally| {
        let counts = (tally.telling(), tally.harmed(), arguments.seed);
        proofs::keep(Proof::new(entry, &case.settings.database, &facts, counts));
    });
    let promised = entry.level(&case.settings.database, &facts, true);
    let server = facts.get("version").cloned().unwrap_or_default();
    Ok(CaseTold { levels: case.levels.clone(), server, tallies, promised })
}

/// Lets one kind of failure happen.
fn fail(
    case: &Case,
    fault: FaultKind,
    arguments: &DurabilityArguments,
    directory: &Path,
    facts: &mut BTreeMap<String, String>,
) -> anyhow::Result<Tally> {
    let settings = &case.settings;
    let work = Work::new(settings).map_err(anyhow::Error::msg)?;
    let scene = Scene { directory, settings, work: &work, fault };
    let mut tally = Tally::new(fault);
    let mut subject: Option<Subject> = None;
    let (mut said, mut unjudged) = (Instant::now(), 0);
    for number in 0..u64::from(arguments.cuts) {
        if interrupted() {
            break;
        }
        let mut own = match subject.take() {
            Some(subject) => subject,
            None => Subject::new(directory, settings)?,
        };
        let seed = derive(derive(arguments.seed, fault as u64), number);
        let life = live(&scene, &mut own, (number + 1, seed));
        if interrupted() {
            // What is cut by hand says nothing.
            break;
        }
        let life = match life {
            Ok(life) => life,
            Err(error) => {
                let why = own.with_log(&sentence(&error));
                unjudged += 1;
                if number == 0 || unjudged == UNJUDGED_MOST {
                    anyhow::bail!("{why}");
                }
                tally.unjudged += 1;
                let (case, number) = (told::label(&case.levels), number + 1);
                note(&format!("{case}, {}: failure {number} was not judged: {why}", fault.name()));
                continue;
            }
        };
        unjudged = 0;
        if facts.is_empty() {
            facts.extend(own.facts());
        }
        // What may be damaged is of no more use, and a file is made anew in no time.
        let is_sound = !own.is_embedded() && !life.is_harmed() && life.did_not_start.is_none();
        subject = (is_sound && matches!(fault, FaultKind::Power | FaultKind::Kill)).then_some(own);
        tally.add(life);
        if said.elapsed() > SAID_EVERY {
            said = Instant::now();
            note(&format!(
                "{}, {}: {} of {} failures, {} with a loss",
                told::label(&case.levels),
                fault.name(),
                show_number(tally.cuts as f64),
                show_number(f64::from(arguments.cuts)),
                show_number(tally.harmed() as f64)
            ));
        }
    }
    Ok(tally)
}
