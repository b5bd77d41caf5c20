//! Table operations of targets that speak SQL: create, change, count and remove tables, and read the server's settings.

use super::dialect;
use super::{DatabaseError, Session};
use crate::statement::{SchemaChange, Table};

pub(super) fn create_table(session: &mut dyn Session, table: &Table) -> Result<(), DatabaseError> {
    let texts = dialect::create_table(session.dialect(), table);
    texts.iter().try_for_each(|sql| session.run_change(sql))
}

pub(super) fn drop_table(session: &mut dyn Session, table: &str) -> Result<(), DatabaseError> {
    let texts = dialect::remove_table(session.dialect(), table);
    texts.iter().try_for_each(|sql| session.run_change(sql))
}

pub(super) fn count_rows(session: &mut dyn Session, table: &str) -> Result<Option<u64>, DatabaseError> {
    let sql = format!("SELECT COUNT(*) FROM {}", session.dialect().quote(table));
    number(session, &sql)
}

pub(super) fn sum_column(session: &mut dyn Session, table: &str, column: &str) -> Result<Option<u64>, DatabaseError> {
    let dialect = session.dialect();
    let sql = format!("SELECT COALESCE(SUM({}), 0) FROM {}", dialect.quote(column), dialect.quote(table));
    number(session, &sql)
}

/// Returns the number with which a query is answered.
fn number(session: &mut dyn Session, sql: &str) -> Result<Option<u64>, DatabaseError> {
    let answer = session.query(sql)?.into_iter().flatten().flatten().next().unwrap_or_default();
    let no_number = |_| DatabaseError::Unavailable(format!("{sql} was answered with {answer:?}, which is no number"));
    answer.parse().map(Some).map_err(no_number)
}

pub(super) fn change_schema(
    session: &mut dyn Session,
    change: &SchemaChange,
    algorithm: Option<&str>,
) -> Result<Option<String>, DatabaseError> {
    let mut outcome = Ok(None);
    for sql in session.dialect().schema_change(change, algorithm) {
        outcome = session.run_change(&sql).map(|()| Some(sql));
        if !outcome.as_ref().is_err_and(DatabaseError::is_refusal) {
            break;
        }
    }
    outcome
}

/// Returns the bytes that these tables take on the disk, including their indexes.
pub(super) fn table_bytes(session: &mut dyn Session, tables: &[&str]) -> Option<u64> {
    let queries = session.dialect().table_bytes(tables);
    // Names of views differ between versions, and some users may not read them.
    queries.iter().find_map(|query| ask(session, query).ok()??.parse().ok())
}

/// Returns the last value of the first row of an answer: some answers repeat the name of the setting in front of it.
pub(super) fn ask(session: &mut dyn Session, query: &str) -> Result<Option<String>, DatabaseError> {
    let first = session.query(query)?.into_iter().next();
    Ok(first.and_then(|mut row| row.pop()).flatten())
}
