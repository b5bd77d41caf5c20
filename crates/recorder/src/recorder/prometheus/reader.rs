//! Connections that questions are asked over. Main types: [`Readers`], which keeps them, and [`Asking`], a question under way.
//!
//! Invariant: a question has a connection of its own that can only read, and reads no more rows and takes no more time than configured.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::names::Names;
use super::refusal::Refusal;
use crate::database::{Database, DatabaseError, Session, SessionLimits};
use crate::record::Cells;
use crate::recorder::meter::Count;
use crate::recorder::writer::registered;
use crate::statement::{Expect, Program, Request, SqlForm, Statement, Step};

/// How long the names of metrics are believed: a new one can be asked after that.
const NAMES_LAST: Duration = Duration::from_secs(1);
/// The codes with which databases end a statement because of its time: PostgreSQL, MariaDB, MySQL, SQLite.
const TOO_LONG: [&str; 4] = ["57014", "1969", "3024", "SQLITE_INTERRUPT"];

/// A connection, and the deadline of the question that has it.
struct Reader {
    session: Box<dyn Session>,
    until: Arc<Mutex<Option<Instant>>>,
}

/// The bounds of a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The most rows that it reads.
    pub(super) rows: u64,
    /// The most series that it has.
    pub(super) series: usize,
    /// The most time that it takes.
    pub(super) within: Duration,
}

/// The connections, and what is known of the tables.
pub(super) struct Readers {
    database: Arc<dyn Database>,
    bounds: Bounds,
    idle: Mutex<Vec<Reader>>,
    names: Mutex<Option<(Instant, Arc<Names>)>>,
    /// Rows read so far.
    pub(super) rows: Count,
}

impl Readers {
    pub(super) fn new(database: Arc<dyn Database>, bounds: Bounds) -> Self {
        Readers { database, bounds, idle: Mutex::default(), names: Mutex::default(), rows: Count::default() }
    }

    /// Answers a question with a connection. It is asked once more if a kept connection turns out to be lost.
    ///
    /// # Errors
    /// The question's, or that the database does not answer.
    pub(super) fn ask<T>(&self, work: impl Fn(&mut Asking<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let until = Instant::now() + self.bounds.within;
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let is_kept = kept.is_some();
            let reader = match kept {
                Some(reader) => reader,
                None => self.connect(until)?,
            };
            *reader.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
            let (rows_left, failed) = (self.bounds.rows, None);
            let mut asking = Asking { reader, readers: self, until, rows_left, failed };
            let outcome = work(&mut asking);
            let Asking { reader, failed, .. } = asking;
            match failed {
                None => {
                    *reader.until.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
                }
                Some(true) if is_kept && Instant::now() < until => continue,
                Some(_) => {}
            }
            return outcome;
        }
    }

    fn connect(&self, at: Instant) -> Result<Reader, Refusal> {
        let until = Arc::new(Mutex::new(Some(at)));
        let own = Arc::clone(&until);
        let over_at = Box::new(move || *own.lock().unwrap_or_else(PoisonError::into_inner));
        let limits = SessionLimits::new("", self.bounds.within, over_at).set_by("query.within");
        let session = self.database.connect_reader(&Arc::new(limits));
        let session = session.map_err(|error| Refusal::Unavailable(format!("the database: {error}")))?;
        Ok(Reader { session, until })
    }
}

/// A question under way.
pub(super) struct Asking<'r> {
    reader: Reader,
    readers: &'r Readers,
    until: Instant,
    rows_left: u64,
    /// Whether the database has failed, and then whether the connection was lost.
    failed: Option<bool>,
}

impl Asking<'_> {
    /// Returns the most series that the question may have.
    pub(super) fn series_max(&self) -> usize {
        self.readers.bounds.series
    }

    /// Returns a name in the quotes of the database.
    pub(super) fn quote(&self, name: &str) -> String {
        self.readers.database.dialect().quote(name)
    }

    /// Fails if the time is over.
    ///
    /// # Errors
    /// That it is.
    pub(super) fn check_time(&self) -> Result<(), Refusal> {
        if Instant::now() < self.until { Ok(()) } else { Err(self.too_long()) }
    }

    fn too_long(&self) -> Refusal {
        let within = crate::units::show_seconds(self.readers.bounds.within.as_secs_f64());
        let remedy = "ask for fewer sources or a shorter time, or raise query.within";
        Refusal::Timeout(format!("the question took longer than query.within ({within}); {remedy}"))
    }

    /// Returns what can be asked.
    ///
    /// # Errors
    /// The database's.
    pub(super) fn names(&mut self) -> Result<Arc<Names>, Refusal> {
        let known = || self.readers.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, names)) = known().as_ref().filter(|(read, _)| read.elapsed() < NAMES_LAST) {
            return Ok(Arc::clone(names));
        }
        let read = registered(self.readers.database.dialect(), &mut *self.reader.session);
        let (catalogue, order) = read.map_err(|error| self.failed(&error))?;
        let names = Arc::new(Names::of(&catalogue, &order));
        *self.readers.names.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), Arc::clone(&names)));
        Ok(names)
    }

    /// Returns the rows of a query, one after the other, and counts them. `limit` is added to it: one row more than may be read.
    ///
    /// # Errors
    /// The database's; that there are too many rows; that it took too long.
    pub(super) fn rows(&mut self, sql: &str, values: &[&str]) -> Result<Cells, Refusal> {
        self.check_time()?;
        let limited = format!("{sql} LIMIT {}", self.rows_left + 1);
        let statement = Statement::Sql { sql: limited, allow_empty: true, form: SqlForm::Text };
        let program = Program { statements: vec![statement], rows_max: 1, as_text: true, ..Program::default() };
        let mut request = Request::default();
        values.iter().for_each(|value| request.cells.text(value));
        request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Anything });
        let mut found = Cells::new();
        let session = &mut self.reader.session;
        let outcome = session.prepare(&program).and_then(|()| session.execute(&request, Some(&mut found)));
        let answer = outcome.map_err(|error| self.failed(&error))?;
        self.readers.rows.add(answer.rows);
        match self.rows_left.checked_sub(answer.rows) {
            Some(left) => self.rows_left = left,
            None => {
                let most = self.readers.bounds.rows;
                let remedy = "ask for fewer sources or a shorter time, or raise query.rows";
                return Err(Refusal::Execution(format!("the question reads more than {most} rows; {remedy}")));
            }
        }
        Ok(found)
    }

    fn failed(&mut self, error: &DatabaseError) -> Refusal {
        self.failed = Some(error.is_lost());
        match error {
            DatabaseError::Refused { code, .. } if TOO_LONG.contains(&code.as_str()) => self.too_long(),
            _ if Instant::now() >= self.until => self.too_long(),
            DatabaseError::Refused { .. } => Refusal::Execution(format!("the database: {error}")),
            _ => Refusal::Unavailable(format!("the database: {error}")),
        }
    }
}
