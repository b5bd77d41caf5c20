//! A connection to Cassandra as a state machine: writes that follow each other are one message, and each read is one.
//!
//! Invariant: an outcome is given only when the last message of the request is answered, or when the connection is lost; an answer on another stream than that of the
//! request breaks the connection.

use std::os::fd::{AsRawFd, RawFd};

use super::clock::now_us;
use super::frame::{Body, Frame, Said, begin_frame, broken, end_frame, opcode, out_of_step, read_frame, short_bytes};
use super::program::{Action, Plan, refused};
use super::query::{Outcome, RowsOf, read_result};
use super::value::{self, Absent};
use super::{Consistency, query, tables};
use crate::database::session::{Channel, Prepare};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, Step, Table};

/// The flags of an execution: it has values, and its answer needs no description of columns.
const VALUES: u8 = 0x01;
const SKIP_DESCRIPTION: u8 = 0x02;
/// A batch of which everything is stored or nothing, also where its rows lie in several partitions.
const LOGGED: u8 = 0;
/// A prepared statement within a batch.
const BY_ID: u8 = 1;
/// The greatest number of statements in a batch.
const STATEMENTS_MAX: u64 = 65_535;

/// A connection that is logged in.
#[derive(Debug)]
pub(super) struct CassandraWire {
    socket: Socket,
    keyspace: String,
    consistency: Consistency,
    plans: Vec<Plan>,
    run: Run,
    /// The stream of the last message.
    stream: i16,
    /// The last time of writing, in microseconds since 1970: each step that writes has a later one.
    stamp_us: i64,
    kept: Option<Cells>,
}

/// The progress of a request.
#[derive(Debug, Default)]
struct Run {
    /// The steps whose answer comes next: the first one, and the one behind the last; the same for a message without steps.
    first: usize,
    end: usize,
    /// Whether something was stored, which nothing undoes.
    has_stored: bool,
    answer: Answer,
    failure: Option<DatabaseError>,
}

impl CassandraWire {
    pub(super) fn new(socket: Socket, keyspace: String, consistency: Consistency) -> Self {
        CassandraWire {
            socket,
            keyspace,
            consistency,
            plans: Vec::new(),
            run: Run::default(),
            stream: 0,
            stamp_us: 0,
            kept: None,
        }
    }

    fn plan(&self, step: &Step) -> &Plan {
        &self.plans[usize::from(step.statement)]
    }

    /// Appends the next message of a request, and notes its steps.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`], with nothing appended, for values that no column has, and for more than a message takes.
    fn append_next(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<(), DatabaseError> {
        let (first, steps) = (self.run.end, &request.steps);
        let reads = !self.plan(&steps[first]).writes();
        let behind = steps[first..].iter().position(|step| !self.plan(step).writes()).unwrap_or(steps.len() - first);
        let end = if reads { first + 1 } else { first + behind };
        let statements: u64 = steps[first..end].iter().map(|step| u64::from(step.rows)).sum();
        if statements > STATEMENTS_MAX {
            let why = format!(
                "a batch has {STATEMENTS_MAX} statements at most, and this one {statements}; write fewer records together"
            );
            return Err(refused(&why));
        }
        let from = out.len();
        self.stream = if self.stream == i16::MAX { 0 } else { self.stream + 1 };
        let appended = match statements {
            1 => self.append_execution(request, first..end, out),
            _ => self.append_batch(request, first..end, statements as u16, out),
        };
        if appended.is_none() || !end_frame(from, &mut out[..]) {
            out.truncate(from);
            let why = "a value is none of its column's type, or there is more than a message takes";
            return Err(refused(why));
        }
        (self.run.first, self.run.end) = (first, end);
        Ok(())
    }

    /// Appends a statement with its values; `None` where a value is none of its column's type.
    fn append_execution(&mut self, request: &Request, steps: std::ops::Range<usize>, out: &mut Vec<u8>) -> Option<()> {
        begin_frame(opcode::EXECUTE, self.stream, out);
        let step = request.steps[steps].iter().find(|step| step.rows == 1)?;
        let stamp_us = self.next_stamp();
        let plan = self.plan(step);
        short_bytes(&plan.id, out);
        out.extend_from_slice(&self.consistency.number().to_be_bytes());
        out.push(VALUES | SKIP_DESCRIPTION);
        append_values(plan, &request.cells, step.first_cell as usize, stamp_us, out)
    }

    /// Appends statements that take effect together, each with its values; `None` where a value is none of its column's type.
    fn append_batch(
        &mut self,
        request: &Request,
        steps: std::ops::Range<usize>,
        statements: u16,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        begin_frame(opcode::BATCH, self.stream, out);
        out.push(LOGGED);
        out.extend_from_slice(&statements.to_be_bytes());
        for step in &request.steps[steps] {
            // The same row may be written by several steps: the last one of them counts.
            let stamp_us = self.next_stamp();
            let plan = self.plan(step);
            let mut first = step.first_cell as usize;
            for _ in 0..step.rows {
                out.push(BY_ID);
                short_bytes(&plan.id, out);
                append_values(plan, &request.cells, first, stamp_us, out)?;
                first += plan.kinds.len();
            }
        }
        out.extend_from_slice(&self.consistency.number().to_be_bytes());
        out.push(0);
        Some(())
    }

    fn next_stamp(&mut self) -> i64 {
        self.stamp_us = now_us().max(self.stamp_us + 1);
        self.stamp_us
    }

    /// Takes in an answer. Returns whether it was the last of the request.
    fn take(&mut self, request: &Request, frame: &Frame<'_>) -> Result<bool, DatabaseError> {
        if frame.stream != self.stream {
            return Err(broken("answers to something that it was not asked"));
        }
        if frame.opcode == opcode::ERROR {
            let writes = request.steps[self.run.first..self.run.end].iter().any(|step| self.plan(step).writes());
            let error = Said::of(frame.body)?.outcome(writes);
            if error.is_lost() {
                return Err(error);
            }
            self.run.failure.get_or_insert(error);
            return Ok(true);
        }
        if self.run.first == self.run.end {
            return if frame.opcode == opcode::SUPPORTED { Ok(true) } else { Err(out_of_step(frame)) };
        }
        if frame.opcode != opcode::RESULT {
            return Err(out_of_step(frame));
        }
        let reads = !self.plan(&request.steps[self.run.first]).writes();
        match read_result(frame.body, None)? {
            Outcome::Rows(found) if reads => self.take_rows(request, &found)?,
            Outcome::Done if !reads => {
                self.run.has_stored = true;
                for step in &request.steps[self.run.first..self.run.end] {
                    self.end_step(step, 0, step.rows.into());
                }
            }
            Outcome::Rows(_) => return Err(broken("answers with rows where nothing was read")),
            Outcome::Done => return Err(broken("answers without rows where something was read")),
        }
        Ok(self.run.failure.is_some() || self.run.end == request.steps.len())
    }

    /// Takes in the row that a step reads, if there is one.
    fn take_rows(&mut self, request: &Request, found: &RowsOf<'_>) -> Result<(), DatabaseError> {
        let step = &request.steps[self.run.first];
        let Action::Select(kinds) = &self.plans[usize::from(step.statement)].action else {
            return Err(broken("answers with rows where nothing was read"));
        };
        if found.columns as usize != kinds.len() || found.rows > 1 {
            return Err(broken("answers with more than the row that has a key"));
        }
        let mut values: Body<'_> = found.values;
        if found.rows > 0 {
            for kind in kinds {
                let bytes = values.value()?;
                match &mut self.kept {
                    Some(rows) => value::keep(*kind, bytes, rows)?,
                    None => value::check(*kind, bytes)?,
                }
            }
        }
        values.end()?;
        self.end_step(step, found.rows.into(), 0);
        Ok(())
    }

    fn end_step(&mut self, step: &Step, rows: u64, changed: u64) {
        let run = &mut self.run;
        run.answer.rows += rows;
        run.answer.changed += changed;
        run.answer.empty += u32::from(step.expect == crate::statement::Expect::Rows && rows == 0);
        if run.failure.is_none()
            && let Some(miscount) = step.expect.miscount(rows, changed)
        {
            let miscount = crate::statement::Miscount { stays: run.has_stored, ..miscount };
            run.failure = Some(DatabaseError::Miscounted(Box::new(miscount)));
        }
    }

    fn outcome(&mut self) -> Result<Answer, DatabaseError> {
        self.run.failure.take().map_or(Ok(self.run.answer), Err)
    }
}

/// Appends the number of values and the values of a statement; `None` where one is none of its column's type.
#[inline]
fn append_values(plan: &Plan, cells: &Cells, first: usize, stamp_us: i64, out: &mut Vec<u8>) -> Option<()> {
    let count = plan.kinds.len() + usize::from(plan.writes());
    out.extend_from_slice(&(count as u16).to_be_bytes());
    if matches!(plan.action, Action::Update | Action::Delete) {
        value::append_bigint(stamp_us, out);
    }
    let absent = if plan.action == Action::Insert { Absent::Unset } else { Absent::Null };
    for (place, kind) in plan.kinds.iter().enumerate() {
        value::append(*kind, cells, cells.get(first + place), absent, out)?;
    }
    if plan.action == Action::Insert {
        value::append_bigint(stamp_us, out);
    }
    Some(())
}

impl Wire for CassandraWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.run = Run::default();
        let is_unknown = |step: &Step| usize::from(step.statement) >= self.plans.len();
        let reads_several = |step: &Step| step.rows != 1 && !self.plan(step).writes();
        let begun = if request.steps.iter().any(is_unknown) {
            Err(refused("a statement was not prepared"))
        } else if request.steps.iter().any(reads_several) {
            Err(refused("it reads one row at a time"))
        } else if !request.carries.is_empty() {
            Err(refused("no value of a step comes from the answer to another one"))
        } else if request.steps.is_empty() {
            Ok(false)
        } else {
            self.append_next(request, out).map(|()| true)
        };
        // The answer to a question shows that the server is there, where there is nothing to execute.
        if let Err(error) = &begun {
            self.run.failure = Some(error.clone());
        }
        if begun != Ok(true) {
            self.stream = if self.stream == i16::MAX { 0 } else { self.stream + 1 };
            let from = begin_frame(opcode::OPTIONS, self.stream, out);
            end_frame(from, out);
        }
    }

    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let (frame, consumed) = match read_frame(input) {
            Ok(None) => return Progress { consumed: 0, outcome: None },
            Ok(Some(found)) => found,
            Err(error) => return Progress { consumed: 0, outcome: Some(Err(error)) },
        };
        let outcome = match self.take(request, &frame) {
            Err(error) => Some(Err(error)),
            Ok(true) => Some(self.outcome()),
            Ok(false) => self.append_next(request, out).err().map(Err),
        };
        Progress { consumed, outcome }
    }

    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells> {
        std::mem::replace(&mut self.kept, rows)
    }
}

impl Prepare for CassandraWire {
    fn prepare(&mut self, channel: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        let mut plans = Plan::of(program, &self.keyspace)?;
        plans.iter_mut().try_for_each(|plan| query::prepare(channel, plan))?;
        self.plans = plans;
        Ok(())
    }

    fn version(&mut self, channel: &mut Channel) -> Result<String, DatabaseError> {
        // ScyllaDB tells the version of Cassandra that it is compatible with, and its own in a table that Cassandra does not have.
        let own = "SELECT version FROM system.versions WHERE key = 'local'";
        let usual = "SELECT release_version FROM system.local";
        for (whose, text) in [("ScyllaDB", own), ("Cassandra", usual)] {
            match query::query(channel, text, Consistency::LocalOne) {
                Ok(rows) => {
                    if let Some(version) = rows.into_iter().flatten().flatten().next() {
                        return Ok(format!("{whose} {version}"));
                    }
                }
                Err(error) if error.is_refusal() => {}
                Err(error) => return Err(error),
            }
        }
        Err(DatabaseError::Unavailable("the server does not tell its version".to_owned()))
    }

    fn create_table(&mut self, channel: &mut Channel, table: &Table) -> Result<(), DatabaseError> {
        tables::create(channel, &self.keyspace, table)
    }

    fn drop_table(&mut self, channel: &mut Channel, table: &str) -> Result<(), DatabaseError> {
        tables::remove(channel, &self.keyspace, table)
    }

    fn count_rows(&mut self, channel: &mut Channel, table: &str) -> Result<Option<u64>, DatabaseError> {
        tables::count(channel, &self.keyspace, table, self.consistency).map(Some)
    }

    fn ask(&mut self, channel: &mut Channel, question: &str) -> Result<Option<String>, DatabaseError> {
        if question == tables::DURABLE_WRITES {
            return tables::of_keyspace(channel, &self.keyspace, question);
        }
        let name = tables::literal(question);
        let text = format!("SELECT value FROM system_views.settings WHERE name = {name}");
        Ok(query::query(channel, &text, Consistency::LocalOne)?.into_iter().flatten().flatten().next())
    }
}

#[cfg(test)]
mod tests;
