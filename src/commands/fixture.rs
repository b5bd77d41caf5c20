//! The fixture: the tables that loadline made, and what is in them.
//!
//! Main type: [`Fixture`]. Invariant: only tables that loadline has made are ever dropped, and a trial that reads finds what its
//! settings say.

use anyhow::{Context, bail};

use super::stage::Current;
use crate::database::{Session, dialect};
use crate::server::interrupted;
use crate::statement::Request;
use crate::trial::Settings;
use crate::workload::Work;

/// What the tables hold after the last trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// The trial's record and layout settings, as text.
    pub content: String,
    /// Names of the tables.
    pub tables: Vec<String>,
    /// Whether a trial has written to them since they were filled.
    pub is_changed: bool,
}

/// What tables of these settings hold before a trial.
fn content_of(settings: &Settings) -> anyhow::Result<String> {
    serde_json::to_string(&(&settings.record, &settings.layout)).context("settings as text")
}

/// Makes empty tables in the place of those of the last trial, unless these hold what is needed. Gives a connection.
///
/// # Errors
/// When the database refuses one, as it does when it has one of that name already.
pub fn make_tables(settings: &Settings, work: &Work, current: &mut Current) -> anyhow::Result<Box<dyn Session>> {
    let tables = &work.program().tables;
    let content = content_of(settings)?;
    let is_there = |fixture: &Fixture| fixture.content == content && !fixture.is_changed;
    if tables.is_empty() || current.fixture.as_ref().is_some_and(is_there) {
        return Ok(current.database.connect()?);
    }
    current.remove_tables()?;
    let mut session = current.database.connect()?;
    let dialect = current.database.dialect();
    for table in tables {
        for sql in dialect::create_table(dialect, table) {
            session.run(&sql).with_context(|| {
                let remedy = "drop it if it is not needed, or name another with record.table";
                format!(
                    "table \"{}\" cannot be made, and one that is there already is left alone; {remedy}",
                    table.name
                )
            })?;
        }
        let empty = Fixture { content: String::new(), tables: Vec::new(), is_changed: true };
        current.fixture.get_or_insert(empty).tables.push(table.name.clone());
    }
    Ok(session)
}

/// Fills the tables that [`make_tables`] made anew, through a connection with the statements prepared.
///
/// # Errors
/// When a record cannot be written.
pub fn fill(
    settings: &Settings,
    work: &Work,
    current: &mut Current,
    mut session: Box<dyn Session>,
) -> anyhow::Result<()> {
    let Some(fixture) = current.fixture.as_mut().filter(|fixture| fixture.is_changed) else { return Ok(()) };
    if work.program().tables.is_empty() {
        return Ok(());
    }
    let mut request = Request::default();
    for operation in work.preload() {
        if interrupted() {
            bail!("interrupted while the tables were being filled");
        }
        request.clear();
        work.bind(&operation, &mut request);
        session.execute(&request, None).with_context(|| format!("filling the tables: {operation:?}"))?;
    }
    (fixture.content, fixture.is_changed) = (content_of(settings)?, false);
    Ok(())
}
