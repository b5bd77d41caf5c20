//! Schema changes while a load runs: repeatedly, a field is added, written to some records, erased and removed again; or a column with
//! a default, or an index, is added and removed.
//!
//! Main type: [`Evolver`]. It has its own connections, like the new version of an application. The load lasts until the change that
//! is in progress at its end is complete, or the bound of [`load_of`] is reached. Invariant: when the evolver ends, the tables are as
//! they were before, or it reports that they are not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use super::changes::Change;
use crate::database::{DatabaseError, Target, TargetSession};
use crate::load::Changing;
use crate::measurement::ChangeMeasurement;
use crate::record::{Column, ColumnKind, Generator};
use crate::statement::{Bind, Evolution, Request, SchemaChange, TableColumn};
use crate::trial::{EVOLVE_AT_MOST_S, Length, LoadSettings, SchemaChangeKind, Settings};
use crate::workload::Work;

/// Number of records that get a value of the new field, unless the study sets another.
pub const RECORDS: u64 = 100;

/// Name of the new field.
const FIELD: &str = "evolved";

/// Largest number of changes that are reported; the changes themselves go on after that.
const CHANGES_MAX: usize = 1000;

/// Changes the schema of a trial's tables.
pub struct Evolver<'a> {
    target: &'a dyn Target,
    generator: &'a dyn Generator,
    evolution: Evolution,
    every: Duration,
    /// The algorithm that the database is told to change tables with; `None` for the best one it accepts.
    algorithm: Option<String>,
    /// Shortest and longest duration of the load, if it lasts as long as changes do.
    load: Option<[Duration; 2]>,
    /// Numbers of the records that get the field.
    records: Vec<u64>,
    session: Option<Box<dyn TargetSession>>,
    is_added: bool,
    changes: Vec<ChangeMeasurement>,
}

/// The result of the schema changes.
pub struct Evolved {
    /// The changes within the measured phase.
    pub changes: Vec<ChangeMeasurement>,
    /// See [`crate::measurement::EvolutionMeasurement::silences_s`].
    pub silences_s: BTreeMap<String, f64>,
    /// True if the tables are as they were before.
    pub is_undone: bool,
}

/// Returns the load of a trial: with schema changes it may exceed its duration until the change in progress is complete.
pub fn load_of(settings: &Settings) -> LoadSettings {
    let load = settings.load.clone();
    match (settings.workload.evolve_s, load.length) {
        (Some(_), Length::Seconds(seconds)) => {
            let at_most_s = settings.workload.evolve.at_most_s.unwrap_or(EVOLVE_AT_MOST_S);
            LoadSettings { length: Length::Seconds(seconds + at_most_s), ..load }
        }
        _ => load,
    }
}

/// Returns the evolution that the settings ask for, derived from the layout's own, which adds a field.
fn evolution_of(kind: SchemaChangeKind, work: &Work, own: Evolution) -> Option<Evolution> {
    let Some(SchemaChange::AddColumn { table, column, .. }) =
        own.add.clone().filter(|_| kind != SchemaChangeKind::Field)
    else {
        return Some(own);
    };
    let text = |text: &str| Some(text.to_owned());
    let add = match kind {
        SchemaChangeKind::Field | SchemaChangeKind::Default => {
            SchemaChange::AddColumn { table, column, default: text("none") }
        }
        SchemaChangeKind::NotNull => {
            let column = TableColumn { nullable: false, ..column };
            SchemaChange::AddColumn { table, column, default: text("none") }
        }
        SchemaChangeKind::Index => {
            let stored = work.program().tables.iter().find(|known| known.name == table)?;
            let is_value = |column: &&TableColumn| !stored.primary_key.contains(&column.name);
            let column = stored.columns.iter().find(is_value)?.name.clone();
            let remove = SchemaChange::DropIndex { table: table.clone(), name: FIELD.to_owned() };
            let add = SchemaChange::AddIndex { table, name: FIELD.to_owned(), column };
            return Some(Evolution { add: Some(add), remove: Some(remove), ..Evolution::default() });
        }
    };
    Some(Evolution { add: Some(add), remove: own.remove, ..Evolution::default() })
}

impl<'a> Evolver<'a> {
    /// Creates the evolver of the settings; `None` if they ask for no schema changes or there are no tables.
    pub fn new(settings: &Settings, work: &'a Work, target: &'a dyn Target) -> Option<Self> {
        let every = Duration::from_secs_f64(settings.workload.evolve_s?);
        let kind = ColumnKind::Text(64);
        let field = Column { name: FIELD.to_owned(), kind, nullable: true, hot: false };
        let evolution = evolution_of(settings.workload.evolve.change, work, work.evolution(&field)?)?;
        let generator = work.generator()?;
        let algorithm = settings.workload.evolve.algorithm.clone();
        let load = match settings.load.length {
            Length::Seconds(seconds) => {
                let at_most_s = settings.workload.evolve.at_most_s.unwrap_or(EVOLVE_AT_MOST_S);
                Some([seconds, seconds + at_most_s].map(Duration::from_secs_f64))
            }
            _ => None,
        };
        let rows = settings.record.rows;
        let count = settings.workload.evolve_records.unwrap_or(RECORDS).min(rows);
        // The records are spread evenly, so that their pages are too.
        let records =
            (0..count).map(|place| (u128::from(place) * u128::from(rows) / u128::from(count)) as u64).collect();
        let (session, changes, is_added) = (None, Vec::new(), false);
        Some(Evolver { target, generator, evolution, every, algorithm, load, records, session, is_added, changes })
    }

    /// Waits for the measured phase and changes the schema until the load has lasted long enough, then ends the load, or until the sender
    /// is gone; finally undoes what is still there.
    pub fn run(mut self, begin: &Receiver<Arc<Changing>>) -> Evolved {
        let Ok(changing) = begin.recv() else {
            return Evolved { changes: self.changes, silences_s: BTreeMap::new(), is_undone: true };
        };
        let begun_ns = changing.now_ns();
        let bounds = self.load.map(|bounds| bounds.map(|bound| Instant::now() + bound));
        let last = bounds.map(|[last, _]| last);
        let mut next = Instant::now() + self.every / 2;
        loop {
            let until = last.map_or(next, |last| next.min(last));
            match begin.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {}
                // The load has ended.
                Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
            }
            if last.is_some_and(|last| Instant::now() >= last) {
                changing.end_load();
                break;
            }
            let made = self.changes.len();
            if self.is_added {
                self.take_back(&changing, begun_ns)
            } else {
                self.add(&changing, begun_ns)
            }
            let outlasted = matches!(begin.try_recv(), Err(TryRecvError::Disconnected))
                || bounds.is_some_and(|[_, most]| Instant::now() >= most);
            self.changes[made..].iter_mut().for_each(|change| change.outlasted = outlasted);
            // A change that takes longer than its interval is followed at once by the next.
            next = (next + self.every).max(Instant::now());
        }
        // Operations still unanswered when the load ended are waited for, and end their silence, before the schema is undone.
        while begin.recv().is_ok() {}
        let silences_s = changing.silences_s();
        let changes = std::mem::take(&mut self.changes);
        if self.is_added {
            self.take_back(&changing, begun_ns);
        }
        let is_undone = !self.is_added && self.changes.iter().all(|change| change.failed == 0);
        Evolved { changes, silences_s, is_undone }
    }

    fn add(&mut self, changing: &Changing, begun_ns: u64) {
        let mut change = Change::begin("add", changing, begun_ns);
        let mut outcome = self.change_table(self.evolution.add.clone());
        change.pause();
        if outcome.is_ok() {
            self.is_added = true;
            // The new version of the application connects and prepares its statements; that is not part of the change.
            outcome = if self.evolution.program.statements.is_empty() { outcome } else { self.prepare().and(outcome) };
            change.resume();
            outcome = outcome.and_then(|way| self.execute(&self.evolution.begin.clone()).map(|()| way));
        }
        let is_ready = outcome.is_ok();
        if !is_ready || self.evolution.add.is_some() || !self.evolution.begin.steps.is_empty() {
            self.note(change.end(outcome));
        } else {
            change.pause();
        }
        if is_ready && self.evolution.write.is_some() {
            let written = self.for_each_record("write", changing, begun_ns, |evolution| evolution.write.as_ref());
            self.note(written);
        }
    }

    fn take_back(&mut self, changing: &Changing, begun_ns: u64) {
        if self.evolution.erase.is_some() {
            let erased = self.for_each_record("erase", changing, begun_ns, |evolution| evolution.erase.as_ref());
            self.note(erased);
        }
        self.is_added = false;
        if self.evolution.remove.is_some() || !self.evolution.end.steps.is_empty() {
            let change = Change::begin("remove", changing, begun_ns);
            let outcome = self.execute(&self.evolution.end.clone());
            let outcome = outcome.and_then(|()| self.change_table(self.evolution.remove.clone()));
            self.is_added = outcome.is_err();
            self.note(change.end(outcome));
        }
        // While the field is still there, its statements are needed to remove it.
        if !self.is_added {
            self.session = None;
        }
    }

    fn note(&mut self, change: ChangeMeasurement) {
        if self.changes.len() < CHANGES_MAX {
            self.changes.push(change);
        }
    }

    /// Changes a table in the best way that the database accepts, and returns the accepted statement.
    fn change_table(&self, change: Option<SchemaChange>) -> Result<Option<String>, DatabaseError> {
        let Some(change) = change else { return Ok(None) };
        self.target.open()?.change_schema(&change, self.algorithm.as_deref())
    }

    fn prepare(&mut self) -> Result<Option<String>, DatabaseError> {
        let mut session = self.target.open()?;
        session.prepare(&self.evolution.program)?;
        self.session = Some(session);
        Ok(None)
    }

    fn execute(&mut self, request: &Request) -> Result<(), DatabaseError> {
        match &mut self.session {
            Some(session) if !request.steps.is_empty() => session.execute(request, None).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Writes the field of each record in its own transaction.
    fn for_each_record(
        &mut self,
        what: &'static str,
        changing: &Changing,
        begun_ns: u64,
        bind: fn(&Evolution) -> Option<&Bind>,
    ) -> ChangeMeasurement {
        let change = Change::begin(what, changing, begun_ns);
        let (mut failed, mut error) = (0, None);
        let mut request = Request::default();
        for record in &self.records {
            let (Some(bind), Some(session)) = (bind(&self.evolution), &mut self.session) else { break };
            request.clear();
            bind(*record, self.generator, &mut request);
            if let Err(refusal) = session.execute(&request, None) {
                failed += 1;
                error.get_or_insert(refusal.to_string());
            }
        }
        let records = self.records.len() as u64;
        ChangeMeasurement { records, failed, error, ..change.end(Ok(None)) }
    }
}
