//! Queries that fill parameters (`from`, and sequences that start where a table ends): the database answers them before each trial.
//!
//! Main function: [`ask`]. Invariant: nothing but queries is asked, over a connection that may not write where the case may not.

use std::sync::Arc;

use anyhow::Context;

use super::options::restrict;
use super::stage::Current;
use crate::database::Database;
use crate::fault::Fault;
use crate::trial::{Asked, Fill, Settings, SqlStatement};
use crate::workload::{self, Work};

/// Rows of an answer at most: parameters are drawn from them while they are in memory.
const ROWS_MOST: usize = 200_000;

/// The work of a case whose parameters are filled from what its database answers now; the same work where nothing is asked, or it is too early: tables
/// of loadline's own have to be filled before.
///
/// # Errors
/// When a query is refused, or its answer is none to fill from; a sentence.
pub fn ask(settings: &Settings, work: Arc<Work>, current: &Current, is_time: bool) -> anyhow::Result<Arc<Work>> {
    let asked = if is_time { answers(settings, &*current.database)? } else { None };
    let Some(asked) = asked else { return Ok(work) };
    let mut settings = settings.clone();
    settings.workload.asked = asked;
    Work::new(&settings).map(Arc::new).map_err(|why| anyhow::Error::new(Fault::from(why)))
}

fn answers(settings: &Settings, database: &dyn Database) -> anyhow::Result<Option<Asked>> {
    let statements = settings.workload.statements.iter().filter(|_| workload::has_statements(settings));
    let queries: Vec<&str> =
        statements.flat_map(SqlStatement::fills).flat_map(Fill::parts).filter_map(Fill::query).collect();
    if queries.is_empty() {
        return Ok(None);
    }
    let mut session = database.connect()?;
    restrict(&mut *session, database, settings)?;
    let mut asked = Asked::default();
    for sql in queries {
        if asked.rows(sql).is_some() {
            continue;
        }
        let rows =
            session.query(sql).with_context(|| format!("workload.statements, the query {sql} of a parameter"))?;
        if rows.len() > ROWS_MOST {
            let what = format!(
                "workload.statements, the query {sql} of a parameter: it gives {} rows, and at most {ROWS_MOST} are drawn from",
                rows.len()
            );
            return Err(anyhow::Error::new(Fault::new(what, "add a LIMIT")));
        }
        asked.0.insert(sql.to_owned(), Arc::new(rows));
    }
    Ok(Some(asked))
}
