//! A look for old readings in all measurements, and their deletion.

use std::collections::BTreeMap;
use std::time::Duration;

use super::counted;
use super::tables::{SOURCES, Tables};
use super::worker::Worker;
use crate::database::{DatabaseError, Session};
use crate::recorder::config::RetentionConfig;
use crate::recorder::writer::{Meaning, meaning, registered, writer_of};
use crate::statement::{Expect, Program, Request, SqlForm, Statement, Step};

/// The old readings of a measurement that are being deleted.
struct Old<'a> {
    config: &'a RetentionConfig,
    tables: &'a Tables,
    /// Readings with time stamps before this are deleted, in nanoseconds since 1970.
    before_ns: i64,
    /// The most readings of the transaction, and the numbers of those found for it.
    most: u32,
    found: Vec<i64>,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    On,
    Stop,
}

impl Worker {
    /// Deletes the old readings of all measurements, as of `now_ns`.
    ///
    /// # Errors
    /// The database's, if nothing more can be done over this connection. What it refuses for a measurement is logged.
    pub(super) fn pass(
        &mut self,
        session: &mut dyn Session,
        config: &RetentionConfig,
        now_ns: i64,
    ) -> Result<(), DatabaseError> {
        let (catalogue, _) = registered(self.database.dialect(), session)?;
        let (mut without_index, mut refused, mut behind_ns) = (0, 0, 0);
        for measurement in catalogue.measurements() {
            let Some(keep) = config.keep_of(&measurement.name) else { continue };
            let tables = Tables::of(measurement, self.database.dialect());
            let before_ns = now_ns.saturating_sub(i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX));
            let name = &measurement.name;
            if !self.has_index(session, &tables)? {
                without_index += 1;
                let (reason, event) =
                    ("its table has no index by which they are found", "old readings of a measurement are not deleted");
                self.complain(name, reason, &tables.make_index(self.database.dialect()), event);
                continue;
            }
            let mut old = Old { config, tables: &tables, before_ns, most: 0, found: Vec::new() };
            match self.delete_old(session, &mut old, &mut behind_ns) {
                Ok(Go::On) => self.is_well(name),
                Ok(Go::Stop) => return Ok(()),
                // Another recorder has deleted some of them.
                Err(error) if meaning(&error) == Meaning::Ledger => {}
                Err(error @ DatabaseError::Refused { .. }) if !is_of_session(&error) => {
                    refused += 1;
                    self.complain(
                        name,
                        &error.to_string(),
                        "",
                        "the database does not delete old readings of a measurement",
                    );
                }
                Err(error) => return Err(error),
            }
        }
        self.gauges.without_index.set(without_index);
        self.gauges.refused.set(refused);
        self.gauges.behind_ms.set(behind_ns / 1_000_000);
        self.gauges.passes.add(1);
        Ok(())
    }

    /// Returns whether the table of the readings has an index by which old ones are found.
    fn has_index(&mut self, session: &mut dyn Session, tables: &Tables) -> Result<bool, DatabaseError> {
        if self.state.indexed.contains(&tables.records_name) {
            return Ok(true);
        }
        let Some(sql) = self.database.dialect().index_columns(&tables.records_name) else { return Ok(false) };
        let mut indexes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in session.query(&sql)? {
            let [Some(index), _, Some(column)] = &row[..] else { continue };
            indexes.entry(index.clone()).or_default().push(column.to_lowercase());
        }
        let has = indexes.values().any(|columns| {
            columns.iter().map(String::as_str).take(2).collect::<Vec<_>>().starts_with(&tables.index_columns())
        });
        if has {
            self.state.indexed.insert(tables.records_name.clone());
        }
        Ok(has)
    }

    /// Deletes the old readings of a measurement. Raises `behind_ns` to how much older than permitted the oldest is.
    fn delete_old(
        &mut self,
        session: &mut dyn Session,
        old: &mut Old<'_>,
        behind_ns: &mut u64,
    ) -> Result<Go, DatabaseError> {
        let mut above = i64::MIN;
        loop {
            let sources = self.oldest(session, old, above)?;
            for (source, oldest_ns) in &sources {
                *behind_ns = old.before_ns.saturating_sub(*oldest_ns).try_into().unwrap_or(0).max(*behind_ns);
                if *oldest_ns < old.before_ns && self.delete_of(session, old, *source, *oldest_ns)? == Go::Stop {
                    return Ok(Go::Stop);
                }
            }
            match sources.last() {
                Some((Some(last), _)) if sources.len() == SOURCES => above = *last,
                _ => return self.flush(session, old),
            }
        }
    }

    /// Returns the next sources behind the number `above` with the time stamps of their oldest readings; the readings of `wide` count as one source without
    /// number. The last source is there even if it has no readings.
    fn oldest(
        &mut self,
        session: &mut dyn Session,
        old: &Old<'_>,
        above: i64,
    ) -> Result<Vec<(Option<i64>, i64)>, DatabaseError> {
        let number = |value: Option<&Option<String>>| value.and_then(|value| value.as_deref()?.parse::<i64>().ok());
        let begun = self.clock.now();
        let rows = match old.tables.oldest_of_sources(above) {
            Some(sql) => {
                let rows = session.query(&sql)?;
                // A source without readings has no old ones.
                let source = |row: &Vec<Option<String>>| {
                    Some((Some(number(row.first())?), number(row.get(1)).unwrap_or(i64::MAX)))
                };
                rows.iter().filter_map(source).collect()
            }
            None => {
                let rows = session.query(&old.tables.oldest_of_all())?;
                rows.iter().filter_map(|row| Some((None, number(row.first())?))).collect()
            }
        };
        self.rest(self.clock.since(begun), old.config);
        Ok(rows)
    }

    /// Finds the old readings of a source, and deletes them whenever there are enough for a transaction.
    fn delete_of(
        &mut self,
        session: &mut dyn Session,
        old: &mut Old<'_>,
        source: Option<i64>,
        oldest_ns: i64,
    ) -> Result<Go, DatabaseError> {
        let mut from_ns = oldest_ns;
        loop {
            if old.found.is_empty() {
                match self.admitted(old.config) {
                    Some(most) => old.most = most,
                    None => return Ok(Go::Stop),
                }
            }
            let room = old.most - old.found.len() as u32;
            let begun = self.clock.now();
            let rows = session.query(&old.tables.oldest(source, (from_ns, old.before_ns), room))?;
            if !self.rest(self.clock.since(begun), old.config) {
                return Ok(Go::Stop);
            }
            for row in &rows {
                let [Some(id), Some(time_ns)] = &row[..] else { continue };
                let (Ok(id), Ok(time_ns)) = (id.parse(), time_ns.parse::<i64>()) else { continue };
                old.found.push(id);
                from_ns = time_ns;
            }
            if (rows.len() as u32) < room {
                return Ok(Go::On);
            }
            // No index is read again from where the deleted readings were.
            if self.flush(session, old)? == Go::Stop {
                return Ok(Go::Stop);
            }
        }
    }

    /// Deletes the readings that were found, in one transaction with their number.
    fn flush(&mut self, session: &mut dyn Session, old: &mut Old<'_>) -> Result<Go, DatabaseError> {
        let ids = std::mem::take(&mut old.found);
        if ids.is_empty() {
            return Ok(Go::On);
        }
        let mut by_writer: BTreeMap<i64, u64> = BTreeMap::new();
        ids.iter().for_each(|id| *by_writer.entry(writer_of(*id)).or_default() += 1);
        for writer in by_writer.keys() {
            if self.state.counted.insert(*writer) {
                counted::insert(session, *writer)?;
            }
        }
        let begun = self.clock.now();
        delete(session, &old.tables.delete(&ids, old.before_ns), ids.len() as u64, &by_writer)?;
        let took = self.clock.since(begun);
        self.note(&ids);
        self.note_step(ids.len() as u32, took, old.config);
        Ok(if self.rest(took.max(Duration::from_micros(1)), old.config) { Go::On } else { Go::Stop })
    }

    fn note(&mut self, ids: &[i64]) {
        let (meter, spooled) = (&self.meter, &self.state.spooled);
        let of_spool = ids.iter().filter(|id| spooled.contains(&writer_of(**id))).count() as u64;
        let unspooled = ids.iter().filter(|id| meter.unspooled.has(**id)).count() as u64;
        self.state.unspooled += unspooled;
        meter.retired.add(of_spool + unspooled);
        self.gauges.of_others.add(ids.len() as u64 - of_spool - unspooled);
    }
}

/// Deletes readings in a transaction that is undone unless all of them, and nothing else, are deleted and counted.
fn delete(
    session: &mut dyn Session,
    statements: &[String],
    rows: u64,
    by_writer: &BTreeMap<i64, u64>,
) -> Result<(), DatabaseError> {
    let mut program = Program { rows_max: 1, as_text: true, ..Program::default() };
    let mut request = Request::default();
    let mut add = |sql: String, expect: Expect| {
        let statement = program.statements.len() as u16;
        program.statements.push(Statement::Sql { sql, allow_empty: true, form: SqlForm::Text });
        request.steps.push(Step { statement, rows: 1, first_cell: 0, expect });
    };
    for (place, sql) in statements.iter().enumerate() {
        // What belongs to readings may be none or many rows.
        let is_readings = place + 1 == statements.len();
        add(sql.clone(), if is_readings { Expect::Changed(rows) } else { Expect::Anything });
    }
    by_writer.iter().for_each(|(writer, rows)| add(counted::count(*writer, *rows), Expect::Changed(1)));
    session.prepare(&program)?;
    session.execute(&request, None).map(drop)
}

/// Returns whether a refusal is due to the session's settings, and not to a measurement.
fn is_of_session(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Refused { code, .. } if code == super::worker::NEEDS_GAP_LOCKS)
}
