//! Sources of parameter values: queries (`from`, and sequences that start where a table ends), which the database answers before each trial, and
//! CSV files (`from_csv`).
//!
//! Main function: [`ask`]. Invariant: only queries are sent, over a read-only connection if the case may not write.

use std::sync::Arc;

use anyhow::Context;

use super::entry::as_database;
use super::options::restrict;
use crate::csv::cells;
use crate::database::{Session, Target};
use crate::fault::Fault;
use crate::file::read_text;
use crate::trial::{Asked, Fill, Settings, SqlStatement};
use crate::workload::{self, Work};

/// Largest number of rows of an answer or a file: they are held in memory while parameters are drawn from them.
const ROWS_MOST: usize = 200_000;
/// Largest size of a file in bytes.
const FILE_BYTES_MOST: u64 = 64 << 20;

/// Returns the work of a case with its parameters filled from current answers of the database; the same work if there are no queries, or if it is too
/// early because loadline's own tables have to be filled first.
///
/// # Errors
/// Fails with a sentence if a query is refused or its answer cannot be used.
pub fn ask(settings: &Settings, work: Arc<Work>, target: &dyn Target, is_time: bool) -> anyhow::Result<Arc<Work>> {
    let asked = if is_time { answers(settings, target)? } else { None };
    let Some(asked) = asked else { return Ok(work) };
    let mut settings = settings.clone();
    settings.workload.asked = asked;
    Work::new(&settings).map(Arc::new).map_err(|why| anyhow::Error::new(Fault::from(why)))
}

fn answers(settings: &Settings, target: &dyn Target) -> anyhow::Result<Option<Asked>> {
    let statements = settings.workload.statements.iter().filter(|_| workload::has_statements(settings));
    let fills: Vec<&Fill> = statements.flat_map(SqlStatement::fills).collect();
    let parts = || fills.iter().flat_map(|fill| fill.parts());
    if !parts().any(|part| part.source().is_some()) {
        return Ok(None);
    }
    let place = "workload.statements, the source of a parameter";
    let mut asked = Asked::default();
    if parts().any(|part| part.query().is_some()) {
        let mut session = as_database(target)?.connect()?;
        restrict(&mut *session, settings)?;
        asked = answers_to(fills.iter().copied(), &mut *session, place)?;
    }
    read_files(fills.iter().copied(), place, &mut asked)?;
    Ok(Some(asked))
}

/// Adds the rows of the CSV files that the fills name.
///
/// # Errors
/// Fails with a sentence that names the file and the line if a file cannot be read or used.
pub fn read_files<'f>(fills: impl Iterator<Item = &'f Fill>, place: &str, asked: &mut Asked) -> anyhow::Result<()> {
    for part in fills.flat_map(Fill::parts) {
        let (Fill::FromCsv(path), Some(source)) = (part, part.source()) else { continue };
        if asked.rows(&source).is_none() {
            let rows = rows_of_file(path).with_context(|| format!("{place}: {path}"))?;
            asked.0.insert(source.into_owned(), Arc::new(rows));
        }
    }
    Ok(())
}

/// Reads the rows of a CSV file after the header, which names the columns. An empty value is `None`.
fn rows_of_file(path: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
    let text = read_text(path, FILE_BYTES_MOST).map_err(|error| anyhow::Error::new(Fault::from(error.to_string())))?;
    let mut lines = text.trim_start_matches('\u{feff}').lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let refuse = |line: i32, why: String| anyhow::Error::new(Fault::from(format!("line {line}: {why}")));
    let (heading, _) =
        lines.next().ok_or_else(|| refuse(1, "it is empty; its first line names its columns".to_owned()))?;
    let columns = cells(heading).map_err(|why| refuse(1, why))?.len();
    let mut rows = Vec::new();
    for (text, line) in lines {
        let row = cells(text).map_err(|why| refuse(line, why))?;
        if row.len() != columns {
            return Err(refuse(
                line,
                format!("it has {} values and the first line names {columns} columns", row.len()),
            ));
        }
        if rows.len() == ROWS_MOST {
            return Err(refuse(line, format!("at most {ROWS_MOST} rows are drawn from; leave some out")));
        }
        rows.push(row.into_iter().map(|value| Some(value).filter(|value| !value.is_empty())).collect());
    }
    Ok(rows)
}

/// Returns the session's answers to the queries of these fills; error messages name a query after `place`.
///
/// # Errors
/// Fails with a sentence if a query is refused or returns too many rows.
pub fn answers_to<'f>(
    fills: impl Iterator<Item = &'f Fill>,
    session: &mut dyn Session,
    place: &str,
) -> anyhow::Result<Asked> {
    let mut asked = Asked::default();
    for sql in fills.flat_map(Fill::parts).filter_map(Fill::query) {
        if asked.rows(sql).is_some() {
            continue;
        }
        let rows = session.query(sql).with_context(|| format!("{place}: {sql}"))?;
        if rows.len() > ROWS_MOST {
            let given = rows.len();
            let what = format!("{place}: {sql} gives {given} rows, and at most {ROWS_MOST} are drawn from");
            return Err(anyhow::Error::new(Fault::new(what, "add a LIMIT")));
        }
        asked.0.insert(sql.to_owned(), Arc::new(rows));
    }
    Ok(asked)
}
