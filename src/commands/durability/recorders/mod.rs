//! `loadline durability --recorder`: makes a recorder's disk, its processes or its store fail, again and again, and counts acknowledged records that
//! never reach the store.
//!
//! Main function: [`run`]. Invariant: a recorder is judged by what its senders were told and by what its store has, and by nothing that it says of itself.

mod bridge;
mod connection;
mod file;
mod http;
mod intake;
mod judge;
mod life;
mod lines;
mod mqtt;
mod own;
mod recipe;
mod run_file;
mod source;
mod store;
mod stream;
mod tested;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::super::output::{note, sentence};
use super::super::{Failure, Status};
use super::tally::CaseTallies;
use super::{kept, repeat, subject, without_results};
use crate::cli::DurabilityArguments;
use crate::database::Level;
use crate::database::recorder::recipe::NatsRecipe;
use crate::fault::fault;
use crate::finding::{DurabilityTest, RECORDER_NAME};
use crate::runner::private_start::remove_leftovers;
use crate::server::{self, OwnDirectory, interrupted};
use crate::trial::{DatabaseSettings, DurabilityPlan, FaultKind, Levels};
use intake::Way;
use tested::Tested;

pub use file::OTHER_RECORDER;

/// The setting under which results state by which intake a recorder was tested.
const INTAKE: &str = "recorder.intake";

/// The most characters of a version.
const VERSION_MOST: usize = 100;

/// Runs the test of a recorder.
///
/// # Errors
/// [`Failure::Usage`] for errors found before anything is started; [`Failure::Broken`] if the test cannot go on.
pub fn run(path: &Path, arguments: &DurabilityArguments, is_json: bool) -> Result<Status, Failure> {
    check(arguments)?;
    let tested = file::read(path).map_err(Failure::usage)?;
    tested.iter().try_for_each(check_programs)?;
    server::install_signal_handlers();
    remove_leftovers().map_err(Failure::usage)?;
    let own = OwnDirectory::new().map_err(Failure::usage)?;
    subject::check_disk(own.path()).map_err(Failure::usage)?;
    let faults = match arguments.faults.as_slice() {
        [] => vec![FaultKind::Power, FaultKind::Kill],
        faults => faults.to_vec(),
    };
    let cuts = arguments.cuts.unwrap_or(DurabilityPlan::CUTS);
    let recorder = Some(run_file::how_started(&tested));
    let plan = DurabilityPlan { cuts, faults, sync_first: false, recorder };
    let seed = arguments.seed.unwrap_or_default();
    let mut kept = match &arguments.out {
        Some(directory) => Some(run_file::begin(directory, &tested, &plan, (path, seed)).map_err(Failure::usage)?),
        None => None,
    };
    let found = match test_all(&tested, &plan, (seed, own.path())) {
        Ok(found) => found,
        Err(failure) => return Err(without_results(kept, failure)),
    };
    let is_whole = !interrupted();
    let name = tested.first().map_or_else(String::new, |tested| tested.name.clone());
    let server = found.first().map_or_else(String::new, |found| found.server.clone());
    let noted = kept.as_mut().map(|kept| run_file::note_version(kept, &name, &server));
    noted.transpose().map_err(Failure::broken)?;
    let cases = found.iter().flat_map(CaseTallies::told).collect();
    let result = DurabilityTest { target: name, server, seed, cases, ..DurabilityTest::default() };
    let page = kept.map(|kept| kept::keep(&kept, &result)).transpose()?;
    kept::tell(&result, page.as_deref(), is_json)?;
    Ok(if result.is_as_promised() && is_whole { Status::Valid } else { Status::Invalid })
}

/// Tests a recorder by each of its intakes.
fn test_all(
    tested: &[Tested],
    plan: &DurabilityPlan,
    (seed, place): (u64, &Path),
) -> Result<Vec<CaseTallies>, Failure> {
    let mut found = Vec::new();
    for tested in tested {
        match (Test { tested, plan, seed, place }).run() {
            Ok(tallies) => found.push(tallies),
            Err(failure) if found.is_empty() => return Err(failure),
            // The results of the other intakes are worth reporting.
            Err(failure) => {
                note(&format!("warning: {failure}"));
                break;
            }
        }
        if interrupted() {
            note("interrupted: what is told is what was found until then");
            break;
        }
    }
    Ok(found)
}

/// Checks that everything can be started that a test needs.
fn check_programs(tested: &Tested) -> Result<(), Failure> {
    let program = tested.command.first().map_or("", String::as_str);
    recipe::find_program(program).map_err(Failure::refused)?;
    if tested.own.is_some() && tested.way == Way::Nats {
        server::check(&NatsRecipe { syncs: false }, &DatabaseSettings::default()).map_err(Failure::usage)?;
    }
    Ok(())
}

/// Refuses arguments that are for databases.
fn check(arguments: &DurabilityArguments) -> Result<(), Failure> {
    let refused = |what: &str, remedy: &str| Err(Failure::refused(fault!("{what}"; "{remedy}")));
    match arguments {
        DurabilityArguments { target: Some(target), .. } => refused(
            &format!("--recorder and \"{target}\" are two things to test"),
            "test them one after the other, each with a command of its own",
        ),
        DurabilityArguments { sets, .. } if !sets.is_empty() => refused(
            "--set changes a study, and --recorder names a file of a recorder",
            "write the setting into that file",
        ),
        DurabilityArguments { sync_first: true, .. } => refused(
            "--sync-first is for databases, and --recorder names a recorder",
            "leave it out: a recorder's disk loses everything that is not synced",
        ),
        _ => Ok(()),
    }
}

/// A test of a recorder.
struct Test<'a> {
    tested: &'a Tested,
    plan: &'a DurabilityPlan,
    seed: u64,
    /// A directory that is on no disk that fails.
    place: &'a Path,
}

impl Test<'_> {
    fn run(&self) -> Result<CaseTallies, Failure> {
        let mut tallies = Vec::new();
        for fault in &self.plan.faults {
            let name = &format!("{}, {}", self.tested.name, self.tested.way.name());
            let live = |number, seed| life::live(self.tested, self.place, *fault, (number, seed));
            let broken = |error: anyhow::Error| Failure::Broken(format!("{name}: {}", sentence(&error)));
            tallies.push(repeat(name, *fault, self.plan.cuts, self.seed, live).map_err(broken)?);
            if interrupted() {
                break;
            }
        }
        let levels = [(RECORDER_NAME, self.tested.name.as_str()), (INTAKE, self.tested.way.name())];
        let levels: Levels = levels.map(|(name, level)| (name.to_owned(), Value::from(level))).into_iter().collect();
        let promised = self.tested.own.as_ref().map(|_| Level::PowerCut);
        Ok(CaseTallies { levels, server: self.version(), tallies, promised })
    }

    /// Returns the first line of what the recorder says of its version; empty if that is not known.
    fn version(&self) -> String {
        let Some((program, arguments)) = self.tested.version.split_first() else { return String::new() };
        let Ok(program) = recipe::find_program(program) else { return String::new() };
        let said = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        text.lines().next().unwrap_or_default().chars().take(VERSION_MOST).collect()
    }
}
