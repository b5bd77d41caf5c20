//! `loadline durability --recorder`: makes a recorder's disk, its processes or its store fail, again and again, and counts acknowledged records that
//! never reach the store.
//!
//! Main function: [`run`]. Invariant: a recorder is judged by what its senders were told and by what its store has, and by nothing that it says of itself.

mod file;
mod judge;
mod life;
mod recipe;
mod source;
mod store;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::super::output::{note, sentence};
use super::super::{Failure, Status};
use super::tally::CaseTallies;
use super::{kept, repeat, subject};
use crate::cli::DurabilityArguments;
use crate::database::Level;
use crate::fault::fault;
use crate::finding::DurabilityTest;
use crate::runner::private_start::remove_leftovers;
use crate::server::{self, OwnDirectory, interrupted};
use crate::trial::{DurabilityPlan, FaultKind, Levels};
use file::Tested;

pub use file::OTHER_RECORDER;

/// The name under which results state which recorder was tested.
const LEVEL: &str = "recorder.name";

/// The most characters of a version.
const VERSION_MOST: usize = 100;

/// Runs the test of a recorder.
///
/// # Errors
/// [`Failure::Usage`] for errors found before anything is started; [`Failure::Broken`] if the test cannot go on.
pub fn run(path: &Path, arguments: &DurabilityArguments, is_json: bool) -> Result<Status, Failure> {
    check(arguments)?;
    let tested = file::read(path).map_err(Failure::usage)?;
    let program = tested.command.first().map_or("", String::as_str);
    recipe::find_program(program).map_err(Failure::refused)?;
    server::install_signal_handlers();
    remove_leftovers().map_err(Failure::usage)?;
    let own = OwnDirectory::new().map_err(Failure::usage)?;
    subject::check_disk(own.path()).map_err(Failure::usage)?;
    let faults = match arguments.faults.as_slice() {
        [] => vec![FaultKind::Power, FaultKind::Kill],
        faults => faults.to_vec(),
    };
    let plan = DurabilityPlan { cuts: arguments.cuts.unwrap_or(DurabilityPlan::CUTS), faults, sync_first: false };
    let test = Test { tested: &tested, plan, seed: arguments.seed.unwrap_or_default(), place: own.path() };
    let found = test.run()?;
    let is_whole = !interrupted();
    let result = DurabilityTest {
        target: tested.name.clone(),
        server: found.server.clone(),
        seed: test.seed,
        rehearsal: false,
        sync_first: false,
        cases: found.told(),
        not_tested: Vec::new(),
    };
    kept::tell(&result, None, is_json)?;
    Ok(if result.is_as_promised() && is_whole { Status::Valid } else { Status::Invalid })
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
        DurabilityArguments { out: Some(_), .. } => refused(
            "--out keeps a test of a database, and none of a recorder yet",
            "leave it out, and keep what --json prints",
        ),
        _ => Ok(()),
    }
}

/// A test of a recorder.
struct Test<'a> {
    tested: &'a Tested,
    plan: DurabilityPlan,
    seed: u64,
    /// A directory that is on no disk that fails.
    place: &'a Path,
}

impl Test<'_> {
    fn run(&self) -> Result<CaseTallies, Failure> {
        let mut tallies = Vec::new();
        for fault in &self.plan.faults {
            let name = &self.tested.name;
            let live = |number, seed| life::live(self.tested, self.place, *fault, (number, seed));
            let broken = |error: anyhow::Error| Failure::Broken(format!("{name}: {}", sentence(&error)));
            tallies.push(repeat(name, *fault, self.plan.cuts, self.seed, live).map_err(broken)?);
            if interrupted() {
                note("interrupted: what is told is what was found until then");
                break;
            }
        }
        let levels: Levels = [(LEVEL.to_owned(), Value::from(self.tested.name.clone()))].into_iter().collect();
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
