//! One transaction: the state of a lane's connection, and how a batch's rows, its identities and the ledger's row go through it
//! together. Main type: [`Connection`].

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::ahead::Ahead;
use super::batch::Batch;
use super::bind::{Binder, Bound};
use super::catalogue::Catalogue;
use super::identity::{Ends, Identities, NewIdentity, Times};
use super::ledger::Ledger;
use super::messages::{self, MessageStatements};
use super::opening::{self, Standing};
use super::passable::Passable;
use super::refusal::{UNUSABLE, is_duplicate};
use super::registry::{Registry, ensure};
use super::shape::{Statements, described, own_tables};
use crate::database::{Database, DatabaseError, LogPosition, Session, SessionLimits};
use crate::layout::RECORD_ID;
use crate::record::Cells;
use crate::recorder::clock::SharedClock;
use crate::recorder::durability::{self, Terms};
use crate::recorder::spool::{IdClock, LaneNews, LaneOpening, Reader};
use crate::statement::{Expect, Program, Request, Step};

/// The most ends of measurements that are brought up to date in one transaction.
const ENDS_MAX: usize = 1_000;

/// News about a lane's opening, found on a new connection.
pub(super) struct News {
    /// The news for the spool.
    pub news: LaneNews,
    /// How far the lane's own commits had come.
    pub through: i64,
    /// Whether the news is about a copy of the spool; otherwise the database may have forgotten what was registered.
    pub is_of_copy: bool,
}

impl News {
    fn of(news: LaneNews, through: i64) -> Self {
        let is_of_copy = news != LaneNews::Checked;
        News { news, through, is_of_copy }
    }
}

/// A connection with all its statements prepared.
pub(super) struct Connection {
    pub(super) session: Box<dyn Session>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) statements: Vec<Statements>,
    /// Measurements whose statements could not be prepared, by place, with the database's message.
    unusable: BTreeMap<usize, String>,
    pub(super) messages: MessageStatements,
    pub(super) ledger_statement: u16,
    pub(super) passable: Passable,
    /// What the database promises about commits on this connection.
    pub terms: Terms,
    /// The lane's row, as of the last transaction that is known to be committed.
    pub ledger: Ledger,
    /// News that the spool must know before anything is written.
    pub news: Option<News>,
    pub(super) request: Request,
    pub(super) clock: SharedClock,
}

/// The parts that lanes share, and those that outlive a connection.
pub(super) struct Context<'a> {
    pub database: &'a dyn Database,
    /// The limits on how long the session waits for the database.
    pub limits: &'a Arc<SessionLimits>,
    pub registry: &'a Registry,
    /// The opening that the lane shows to the ledger.
    pub opening: &'a LaneOpening,
    /// Whether the lane's entries come from the spool.
    pub is_spooled: bool,
    pub lane: u32,
    pub rows_max: usize,
    /// How long entries are kept whose commits the database may forget; `None` if it must not forget any.
    pub keep: Option<Duration>,
    /// The code of a refusal that is put down to a record.
    pub suspected: Option<&'a str>,
    pub clock: &'a SharedClock,
    pub identities: &'a mut Identities,
    pub binder: &'a mut Binder,
    pub ends: &'a mut Ends,
    pub reader: &'a Reader,
    pub ahead: &'a mut Ahead,
}

/// Rows that are ready to be written.
pub(super) struct Ready {
    pub(super) bound: Bound,
    pub(super) fresh: Vec<(NewIdentity, i64)>,
}

impl Ready {
    /// Removes and returns the rows that cannot be stored, each with its number, the reason and the line.
    pub(super) fn refused(&mut self) -> Vec<(usize, String, Vec<u8>)> {
        std::mem::take(&mut self.bound.refused)
    }

    /// Returns whether so many rows cannot be stored that none is ready to be written yet.
    pub(super) fn is_cut(&self) -> bool {
        self.bound.is_cut
    }

    /// Returns the number of bound rows.
    pub(super) fn rows(&self) -> u64 {
        self.bound.rows
    }
}

impl Connection {
    /// Connects, and reads how far the lane has come.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn open(context: &mut Context<'_>) -> Result<Self, DatabaseError> {
        let mut session = context.database.connect_writer(context.limits)?;
        let catalogue = context.registry.catalogue(context.database, &mut *session)?;
        ensure(context.database.dialect(), &mut *session, &messages::table())?;
        let recorder = &context.opening.recorder;
        let ledger = Ledger::read_or_make(recorder, context.lane, context.database, &mut *session)?;
        let own = own_tables(&catalogue);
        let is_own = |table: &str| own.contains(table);
        let terms = durability::terms(context.database, &mut *session, context.keep, &is_own)?;
        let mut program = Program::default();
        let messages = MessageStatements::add(&mut program);
        let mut connection = Connection {
            session,
            catalogue,
            terms,
            statements: Vec::new(),
            unusable: BTreeMap::new(),
            messages,
            ledger_statement: 0,
            passable: Passable::default(),
            ledger,
            news: None,
            request: Request::default(),
            clock: SharedClock::clone(context.clock),
        };
        connection.news = connection.compare(context)?;
        connection.prepare(context)?;
        connection.recover_ends(context)?;
        Ok(connection)
    }

    /// Compares the ledger with the spool's opening, which is registered if it may be.
    fn compare(&mut self, context: &Context<'_>) -> Result<Option<News>, DatabaseError> {
        ensure(context.database.dialect(), &mut *self.session, &opening::table())?;
        let own = context.opening;
        let history = opening::read_history(&self.ledger, own, &mut *self.session)?;
        let sequence = self.ledger.sequence;
        match opening::standing(sequence, &history, own) {
            Standing::Own => {}
            Standing::Superseded { through } => {
                return Ok(Some(News { through, ..News::of(LaneNews::Superseded, sequence) }));
            }
            Standing::Forgotten => {
                return Ok(Some(News { is_of_copy: false, ..News::of(LaneNews::Superseded, sequence) }));
            }
            // Records that go straight into the database have no entries that could differ from those that the row has passed.
            Standing::Parted { same_through: through, recorder } if context.is_spooled => {
                return Ok(Some(News::of(LaneNews::Parted { through, recorder }, sequence)));
            }
            Standing::Free | Standing::Parted { .. } => {
                let now_ns = self.clock.day_ns();
                opening::register(&mut self.ledger, &history, (own, now_ns), &mut *self.session)?;
            }
        }
        Ok((!own.is_checked).then(|| News::of(LaneNews::Checked, sequence)))
    }

    /// Returns how far the database's log has come, which matters where entries are kept.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn log_position(&mut self, context: &Context<'_>) -> Result<Option<LogPosition>, DatabaseError> {
        context.database.log_position(&mut *self.session)
    }

    /// Prepares the statements of all measurements, but for those whose tables somebody has removed, changed or locked.
    fn prepare(&mut self, context: &mut Context<'_>) -> Result<(), DatabaseError> {
        self.unusable.clear();
        self.passable.forget();
        context.binder.forget();
        let Err(error) = self.prepare_those(context, &|_| true) else { return Ok(()) };
        for place in 0..self.catalogue.measurements().len() {
            match self.prepare_those(context, &|chosen| chosen == place) {
                Err(DatabaseError::Refused { message, .. }) => drop(self.unusable.insert(place, message)),
                outcome => outcome?,
            }
        }
        if self.unusable.is_empty() {
            // The registry seems to differ from the tables: a new connection reads both again.
            return Err(DatabaseError::Unavailable(format!("statements cannot be prepared: {error}")));
        }
        let unusable = self.unusable.clone();
        self.prepare_those(context, &|place| !unusable.contains_key(&place))
    }

    /// Prepares the statements of some measurements.
    fn prepare_those(&mut self, context: &Context<'_>, is_chosen: &dyn Fn(usize) -> bool) -> Result<(), DatabaseError> {
        let mut program = Program { rows_max: context.rows_max, pipelines: true, ..Program::default() };
        program.statements.push(Ledger::statement());
        self.ledger_statement = 0;
        self.messages = MessageStatements::add(&mut program);
        let dialect = context.database.dialect();
        let add = |(place, measurement)| match is_chosen(place) {
            true => Statements::add(measurement, dialect, &mut program),
            false => Statements::default(),
        };
        self.statements = self.catalogue.measurements().iter().enumerate().map(add).collect();
        self.session.prepare(&program)
    }

    /// Returns an error if rows or identities belong to a measurement whose statements could not be prepared.
    pub(super) fn check_usable(&self, bound: &Bound, binder: &Binder) -> Result<(), DatabaseError> {
        let has_identities = |place: usize| bound.identities.iter().any(|identity| identity.measurement == place);
        let has_rows = |place: usize| binder.rows.get(place).is_some_and(|rows| rows.main_rows > 0);
        match self.unusable.iter().find(|(place, _)| has_rows(**place) || has_identities(**place)) {
            Some((_, reason)) => Err(DatabaseError::refused(UNUSABLE, reason.clone())),
            None => Ok(()),
        }
    }

    /// Binds rows, creates what their tables lack, and finds the numbers of their identities.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn make_ready(
        &mut self,
        batch: &Batch,
        rows: Range<usize>,
        context: &mut Context<'_>,
    ) -> Result<Ready, DatabaseError> {
        let mut fresh: Vec<(NewIdentity, i64)> = Vec::new();
        // By measurement and hash: tags in another order are the same identity.
        let mut fresh_places: HashMap<(usize, String), usize> = HashMap::new();
        // Of this batch, which may have more identities than the cache keeps.
        let mut numbers_of: HashMap<Box<[u8]>, i64> = HashMap::new();
        loop {
            let first_record = self.ledger.next_record();
            let (catalogue, identities) = (&self.catalogue, &mut *context.identities);
            let bound = context.binder.bind(batch, rows.clone(), catalogue, identities, &numbers_of, first_record);
            if bound.is_cut {
                // The refused rows go to quarantine first, and the others are bound again without them.
                return Ok(Ready { bound, fresh });
            }
            self.check_usable(&bound, context.binder)?;
            if !bound.needs.is_empty() {
                self.catalogue =
                    context.registry.extend(bound.needs.as_slice(), context.database, &mut *self.session)?;
                self.prepare(context)?;
            } else if !bound.identities.is_empty() {
                let mut asked = bound.identities;
                // All writers insert new identities in the same order, so that no two transactions wait for each other.
                asked.sort_by(|a, b| (a.measurement, &a.hash).cmp(&(b.measurement, &b.hash)));
                let known = self.find_identities(&asked)?;
                for identity in asked {
                    let key = (identity.measurement, identity.hash.clone());
                    if let Some(place) = fresh_places.get(&key) {
                        numbers_of.insert(identity.series, fresh[*place].1);
                    } else if let Some(number) = known.get(&key) {
                        context.identities.keep(identity.series.clone(), *number);
                        numbers_of.insert(identity.series, *number);
                    } else {
                        let number = self.ledger.next_identity() + fresh.len() as i64;
                        numbers_of.insert(identity.series.clone(), number);
                        fresh_places.insert(key, fresh.len());
                        fresh.push((identity, number));
                    }
                }
            } else {
                return Ok(Ready { bound, fresh });
            }
        }
    }

    /// Returns, for each key, whether its message was committed before.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn find_messages(&mut self, keys: &[String]) -> Result<Vec<bool>, DatabaseError> {
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            self.request.clear();
            self.messages.append_find(key, &mut self.request);
            found.push(self.session.execute(&self.request, None)?.rows > 0);
        }
        Ok(found)
    }

    /// Forgets ids of messages that were received before a time.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn forget_messages(&mut self, before_ns: i64) -> Result<(), DatabaseError> {
        self.session.run_change(&messages::forget(before_ns))
    }

    /// Moves the clock by which ids age forward to a time, unless that is too far ahead of it, and returns where it is then. If there is no clock yet, it is
    /// created.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn move_id_clock(&mut self, to_ns: Option<i64>) -> Result<i64, DatabaseError> {
        if number(&self.session.query(&messages::clock())?).is_none() {
            let newest_ns = number(&self.session.query(&messages::newest())?);
            let begun = self.session.run(&messages::begin_clock(IdClock::first_ns(newest_ns, self.clock.day_ns())));
            // Another recorder may have been faster: its value is read below.
            begun.or_else(|error| if is_duplicate(&error) { Ok(()) } else { Err(error) })?;
        }
        if let Some(to_ns) = to_ns {
            self.session.run(&messages::move_clock(to_ns, IdClock::AHEAD_NS_MOST))?;
        }
        let found = number(&self.session.query(&messages::clock())?);
        found.ok_or_else(|| DatabaseError::refused("clock", "loadline_message has lost the line of its clock"))
    }

    /// Writes rows with the ids of their messages, and moves the lane's row to `sequence`.
    ///
    /// # Errors
    /// Returns the database's error. After [`DatabaseError::Lost`], and when the ledger was not where it should be, only a new connection
    /// knows whether the commit happened.
    pub(super) fn commit(
        &mut self,
        ready: &Ready,
        sequence: i64,
        keys: &[(String, i64)],
        context: &mut Context<'_>,
    ) -> Result<Duration, DatabaseError> {
        let next = self.append_head(ready, (sequence, keys), context);
        self.append_rows(ready, context);
        let took = self.execute_rows(sequence, next.next_record(), context)?;
        self.note_commit(next, ready, &ready.bound.times, context);
        Ok(took)
    }

    /// Begins a request with what goes before the rows of a transaction: moving the lane's row, and storing the ids of messages. Returns the lane's row as it
    /// will be after it.
    pub(super) fn append_head(
        &mut self,
        ready: &Ready,
        (sequence, keys): (i64, &[(String, i64)]),
        context: &Context<'_>,
    ) -> Ledger {
        let next = Ledger {
            sequence,
            rows: self.ledger.rows + ready.bound.rows as i64,
            identities: self.ledger.identities + ready.fresh.len() as i64,
            ended_rows: if context.ends.is_empty() { self.ledger.rows } else { self.ledger.ended_rows },
            edited_ns: self.ledger.edit_after(self.clock.day_ns()),
            ..self.ledger
        };
        self.request.clear();
        self.ledger.append(&next, self.ledger_statement, &mut self.request);
        self.messages.append_insert(keys, &mut self.request);
        next
    }

    /// Notes what a commit has changed.
    pub(super) fn note_commit(&mut self, next: Ledger, ready: &Ready, times: &Times, context: &mut Context<'_>) {
        self.ledger = next;
        for (identity, number) in &ready.fresh {
            context.identities.keep(identity.series.clone(), *number);
        }
        context.ends.merge(times);
    }

    pub(super) fn append_rows(&mut self, ready: &Ready, context: &Context<'_>) {
        let (request, now_ns) = (&mut self.request, self.clock.day_ns());
        self.catalogue.measurements().iter().enumerate().for_each(|(place, measurement)| {
            let Some(statement) = self.statements[place].begin else { return };
            let first_cell = request.cells.len() as u32;
            let mut rows = 0;
            for (identity, number) in ready.fresh.iter().filter(|(identity, _)| identity.measurement == place) {
                append_identity((identity, *number), measurement, now_ns, &mut request.cells);
                rows += 1;
            }
            insert(request, statement, rows, first_cell);
        });
        for (rows, statements) in context.binder.rows.iter().zip(&self.statements) {
            if rows.main_rows > 0 {
                let first_cell = request.cells.len() as u32;
                request.cells.append(&rows.main);
                insert(request, statements.main, rows.main_rows, first_cell);
            }
            if let Some(statement) = statements.second.filter(|_| rows.second_rows > 0) {
                let first_cell = request.cells.len() as u32;
                request.cells.append(&rows.second);
                insert(request, statement, rows.second_rows, first_cell);
            }
        }
    }

    /// Brings the ends of measurements up to date, some at a time.
    ///
    /// # Errors
    /// Returns the database's error; the ends are then written again later.
    pub(super) fn write_ends(&mut self, ends: &mut Ends) -> Result<(), DatabaseError> {
        let some = ends.some(ENDS_MAX);
        let edited_ns = self.clock.day_ns();
        self.request.clear();
        for ((place, identity), time_ns) in &some {
            let Some(statement) = self.statements.get(*place).and_then(|statements| statements.end) else { continue };
            let first_cell = self.request.cells.len() as u32;
            [*time_ns, *time_ns, edited_ns, *identity].iter().for_each(|value| self.request.cells.int(*value));
            self.request.steps.push(Step { statement, rows: 1, first_cell, expect: Expect::Anything });
        }
        if !self.request.steps.is_empty() {
            self.session.execute(&self.request, None)?;
        }
        ends.forget(&some);
        Ok(())
    }

    /// Finds the ends that an earlier process, or this one before it lost its connection, did not write.
    fn recover_ends(&mut self, context: &mut Context<'_>) -> Result<(), DatabaseError> {
        let Some((first, last)) = self.ledger.unended() else { return Ok(()) };
        let dialect = context.database.dialect();
        let mut times = Times::new();
        let catalogue = Arc::clone(&self.catalogue);
        for (place, measurement) in catalogue.measurements().iter().enumerate() {
            if !measurement.shape.has_identity() || self.unusable.contains_key(&place) {
                continue;
            }
            let table = dialect.quote(&described(measurement).record_table());
            let sql = format!(
                "SELECT measurement, MAX(time_ns) FROM {table} WHERE {RECORD_ID} BETWEEN {first} AND {last} GROUP BY measurement"
            );
            let rows = match self.session.query(&sql) {
                // Trouble with one measurement must not stop the others.
                Err(DatabaseError::Refused { message, .. }) => {
                    self.unusable.insert(place, message);
                    continue;
                }
                found => found?,
            };
            for row in rows {
                let number = |place: usize| row.get(place).cloned().flatten().and_then(|text| text.parse::<i64>().ok());
                if let (Some(identity), Some(time_ns)) = (number(0), number(1)) {
                    times.insert((place, identity), time_ns);
                }
            }
        }
        context.ends.merge(&times);
        Ok(())
    }
}

pub(super) fn insert(request: &mut Request, statement: u16, rows: u32, first_cell: u32) {
    if rows > 0 {
        request.steps.push(Step { statement, rows, first_cell, expect: Expect::Changed(u64::from(rows)) });
    }
}

pub(super) fn append_identity(
    (identity, number): (&NewIdentity, i64),
    measurement: &super::Measurement,
    now_ns: i64,
    cells: &mut Cells,
) {
    cells.int(number);
    cells.text(&identity.hash);
    cells.int(identity.begin_ns);
    cells.int(identity.begin_ns);
    cells.int(now_ns);
    let value_of = |name: &str| identity.tags.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    for column in measurement.tags.iter() {
        match value_of(&column.name) {
            Some(value) => cells.text(value),
            None => cells.null(),
        }
    }
    if measurement.has_more {
        let others = identity.tags.iter().filter(|(key, _)| measurement.tags.find(key).is_none());
        let others: serde_json::Map<_, _> = others.map(|(key, value)| (key.clone(), value.clone().into())).collect();
        match others.is_empty() {
            true => cells.null(),
            false => cells.text(&serde_json::Value::Object(others).to_string()),
        }
    }
}

/// Returns the number that a query has answered, if there is one.
fn number(rows: &[Vec<Option<String>>]) -> Option<i64> {
    rows.first()?.first()?.as_ref()?.parse().ok()
}
