//! The fixture: the tables that loadline made, and what is in them.
//!
//! Main type: [`Fixture`]. Invariant: only tables that loadline has made are ever dropped, and a trial that reads finds what its
//! settings say.

use anyhow::Context;

use super::entry::entry_of;
use crate::operation::Operation;
use crate::server::ServerError;
use crate::statement::Request;
use crate::trial::{Settings, text_hash};
use crate::workload::{self, Work};

/// What the tables hold after the last trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// The trial's record and layout settings and the shape of the tables, as text.
    pub content: String,
    /// Names of the tables.
    pub tables: Vec<String>,
    /// Whether a trial has written to them since they were filled, so that they cannot serve another. Updates that leave keys,
    /// rows and the spread of values as they were do not count.
    pub is_changed: bool,
}

/// What tables of these settings hold before a trial, and their shape: a layout may add an index for what a case asks.
pub fn content_of(settings: &Settings, work: &Work) -> anyhow::Result<String> {
    let tables: Vec<_> = work.programs().iter().map(|program| &program.tables).collect();
    let tables = match tables[..] {
        [one] => format!("{one:?}"),
        _ => format!("{tables:?}"),
    };
    serde_json::to_string(&(&settings.record, &settings.layout, tables, is_analysed(settings)))
        .context("settings as text")
}

/// Whether the database is to look at the content before trials: plans of queries depend on what it knows.
pub fn is_analysed(settings: &Settings) -> bool {
    matches!(settings.workload.name.as_str(), "query" | "recent")
}

/// Fewer records than this are filled in faster than servers are stopped and started.
const KEPT_ROWS_MIN: u64 = 100_000;
/// Records that are looked at to tell whether the data is still made as it was.
const SAMPLED: u64 = 256;

/// All that decides what a filled fixture holds, as text, where it can be kept for other runs: trials with these settings only read,
/// it is large, and the database is loadline's own. None where it cannot.
///
/// # Errors
/// A sentence when the settings cannot be carried out.
pub fn identity_of(settings: &Settings) -> anyhow::Result<Option<String>> {
    let database = &settings.database;
    let is_own = database.url.is_none() && database.path.is_none() && database.name != "simulated";
    if !is_own || settings.record.rows < KEPT_ROWS_MIN || !workload::only_reads(settings) {
        return Ok(None);
    }
    let work = Work::new(settings).map_err(anyhow::Error::msg)?;
    let entry = entry_of(database)?;
    let binary = match entry.recipe {
        Some(recipe) => recipe.find_binary(database).map_err(ServerError::NotFound)?,
        None => Default::default(),
    };
    let made = std::fs::metadata(&binary).and_then(|file| Ok((file.len(), file.modified()?))).ok();
    let stored =
        (&database.name, &database.engine, &database.encryption, &database.config, format!("{binary:?} {made:?}"));
    let mut sample = String::new();
    for number in 0..SAMPLED {
        let mut request = Request::default();
        let first = number * (settings.record.rows - 1) / (SAMPLED - 1);
        work.bind(&Operation::Insert { first, records: 1 }, &mut request);
        for cell in request.cells.as_slice() {
            sample += &request.cells.to_json(*cell).to_string();
        }
    }
    let content = content_of(settings, &work)?;
    Ok(Some(serde_json::to_string(&(stored, content, text_hash(&sample))).context("settings as text")?))
}
