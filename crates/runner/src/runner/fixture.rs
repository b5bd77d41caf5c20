//! The fixture: the tables that loadline made, and what is in them.
//!
//! Main types: [`Fixture`], [`OwnTable`]. Invariant: only tables that loadline has made are ever dropped, and a trial that reads finds what its
//! settings say.

use anyhow::{Context, bail};

use super::entry::entry_of;
use crate::database::Session;
use crate::operation::Operation;
use crate::server::ServerError;
use crate::statement::Request;
use crate::study::content::{content_of, is_kept};
use crate::trial::{Settings, text_hash};
use crate::workload::Work;

/// What the tables hold after the last trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// The trial's record and layout settings and the shape of the tables, as text.
    pub content: String,
    /// Names of the tables.
    pub tables: Vec<String>,
    /// Tables of the study's own, which stand behind those.
    pub own: Vec<OwnTable>,
    /// Whether a trial has written to them since they were filled, so that they cannot serve another. Updates that leave keys,
    /// rows and the spread of values as they were do not count.
    pub is_changed: bool,
}

/// A table of the study's own that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnTable {
    /// Its name.
    pub name: String,
    /// What removes it, in order.
    pub drop: Vec<String>,
}

impl Fixture {
    /// Tables that hold nothing yet.
    pub fn empty() -> Self {
        Fixture { content: String::new(), tables: Vec::new(), own: Vec::new(), is_changed: true }
    }
}

/// Removes a table that was made, in the words of the study. What cannot be removed because it was never made, as half of a table, is passed over.
///
/// # Errors
/// When the table is still there afterwards, or the connection broke.
pub fn remove_own(table: &OwnTable, session: &mut dyn Session) -> anyhow::Result<()> {
    let mut refused = None;
    for sql in &table.drop {
        match session.run_change(sql) {
            Err(error) if error.is_refusal() => {
                refused.get_or_insert(anyhow::Error::new(error).context(format!("table \"{}\": {sql}", table.name)));
            }
            outcome => outcome?,
        }
    }
    let name = session.dialect().quote(&table.name);
    match (session.query(&asks_whether_there(&name)), refused) {
        (Ok(_), Some(refused)) => Err(refused),
        (Ok(_), None) => bail!("table \"{}\" is there still after its drop; write what removes it", table.name),
        (Err(error), _) if error.is_refusal() => Ok(()),
        (Err(error), _) => Err(error.into()),
    }
}

/// What is refused where there is no such table.
pub fn asks_whether_there(quoted: &str) -> String {
    format!("SELECT 1 FROM {quoted} WHERE 1 = 0")
}

/// Records that are looked at to tell whether the data is still made as it was.
const SAMPLED: u64 = 256;

/// All that decides what a filled fixture holds, as text, where it can be kept for other runs: trials with these settings only read,
/// it is large, and the database is loadline's own. None where it cannot.
///
/// # Errors
/// A sentence when the settings cannot be carried out.
pub fn identity_of(settings: &Settings) -> anyhow::Result<Option<String>> {
    let database = &settings.database;
    if !is_kept(settings) {
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
    let content = content_of(settings, &work).context("settings as text")?;
    Ok(Some(serde_json::to_string(&(stored, content, text_hash(&sample))).context("settings as text")?))
}
