//! The fixture: the tables that loadline made, and their content.
//!
//! Main types: [`Fixture`], [`OwnTable`]. Invariant: only tables that loadline made are ever dropped, and a trial that reads finds the data that
//! its settings describe.

use anyhow::{Context, bail};

use super::entry::entry_of;
use crate::database::Session;
use crate::operation::Operation;
use crate::server::ServerError;
use crate::statement::Request;
use crate::study::content::{content_of, is_kept};
use crate::trial::{Settings, text_hash};
use crate::workload::Work;

/// The tables and their content after the last trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// The trial's record and layout settings and the shape of the tables, as text.
    pub content: String,
    /// Names of the tables.
    pub tables: Vec<String>,
    /// The study's own tables, made after those.
    pub own: Vec<OwnTable>,
    /// Whether a trial has written to the tables since they were filled, so that other trials cannot use them. Updates that leave
    /// keys, rows and the distribution of values as they were do not count.
    pub is_changed: bool,
}

/// One of the study's own tables, after it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnTable {
    /// Name of the table.
    pub name: String,
    /// The statements that remove the table, in order.
    pub drop: Vec<String>,
}

impl Fixture {
    /// Returns a fixture for tables that hold nothing yet.
    pub fn empty() -> Self {
        Fixture { content: String::new(), tables: Vec::new(), own: Vec::new(), is_changed: true }
    }
}

/// Removes a table with the study's own statements. Errors on parts that were never made, as of a half-made table, are ignored.
///
/// # Errors
/// Fails if the table is still there afterwards or the connection broke.
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

/// Returns a query that the database refuses if the table does not exist.
pub fn asks_whether_there(quoted: &str) -> String {
    format!("SELECT 1 FROM {quoted} WHERE 1 = 0")
}

/// Number of records sampled to detect whether the generated data has changed.
const SAMPLED: u64 = 256;

/// Returns the text that determines the content of a filled fixture, if it can be kept for other runs: trials with these settings only
/// read, the fixture is large, and the database is loadline's own. Returns `None` otherwise.
///
/// # Errors
/// Fails with a sentence if the settings cannot be carried out.
pub fn identity_of(settings: &Settings) -> anyhow::Result<Option<String>> {
    let database = &settings.database;
    if !is_kept(settings) {
        return Ok(None);
    }
    let work = Work::new(settings).map_err(anyhow::Error::msg)?;
    let entry = entry_of(database)?;
    let binary = match (entry.recipe, entry.library) {
        (Some(recipe), _) => recipe.find_binary(database).map_err(ServerError::NotFound)?,
        // Another version may have another form of files.
        (None, Some(find)) => find()?,
        (None, None) => Default::default(),
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
