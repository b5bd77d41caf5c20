//! A connection to MongoDB as a state machine: each step of a request is a command, and the next one is sent when it is answered.
//!
//! Invariant: an outcome is given only when the last command of the request is answered, or when the connection is lost; a cursor is read to its end, so that the server keeps none;
//! an answer to another command than the last one breaks the connection.

use std::os::fd::{AsRawFd, RawFd};

use super::answer::{Written, refused as not_done};
use super::bson::{self, Document, Value, broken};
use super::durability::SYNCHRONOUS;
use super::find::{Find, batch};
use super::message::{begin_message, body, command, end_message, read_message, refusal};
use super::program::Plan;
use super::shape::refused;
use super::tables::{self, Build};
use crate::database::session::{Channel, Prepare};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Miscount, Program, Request, Step, Table};

/// The number of successive answers without a document after which a cursor is considered endless.
const EMPTY_BATCHES_MAX: u32 = 1_000;

/// A connection that is logged in.
#[derive(Debug)]
pub(super) struct MongodbWire {
    socket: Socket,
    database: String,
    /// The member of a command that says what a write waits for.
    concern: Vec<u8>,
    /// The setting of SQLite that a private server of FerretDB was started with; `None` for a server of somebody else.
    synchronous: Option<String>,
    plans: Vec<Plan>,
    run: Run,
    /// The number of the last command.
    number: u32,
    kept: Option<Cells>,
    offsets: Vec<usize>,
}

/// The progress of a request.
#[derive(Debug, Default)]
struct Run {
    /// The step whose answer comes next.
    step: usize,
    /// Whether it is only asked whether the server is there.
    is_ping: bool,
    /// The number of rows that the step has read so far, and of successive answers without one.
    rows: u64,
    empty_batches: u32,
    /// Whether something was stored, which nothing undoes.
    has_stored: bool,
    answer: Answer,
    failure: Option<DatabaseError>,
}

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The request has ended.
    End,
    /// The next step.
    Step,
    /// More documents of this cursor.
    More(i64),
}

impl MongodbWire {
    pub(super) fn new(socket: Socket, database: String, concern: Vec<u8>, synchronous: Option<String>) -> Self {
        MongodbWire {
            socket,
            database,
            concern,
            synchronous,
            plans: Vec::new(),
            run: Run::default(),
            number: 0,
            kept: None,
            offsets: Vec::new(),
        }
    }

    fn plan(&self, step: &Step) -> &Plan {
        &self.plans[usize::from(step.statement)]
    }

    /// Returns the number of the next command; 0 is that of commands besides those of a load.
    fn next_number(&mut self) -> u32 {
        self.number = if self.number == i32::MAX as u32 { 1 } else { self.number + 1 };
        self.number
    }

    /// Appends the command of the current step.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`], with nothing appended.
    fn append_step(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<(), DatabaseError> {
        let number = self.next_number();
        let step = &request.steps[self.run.step];
        let from = begin_message(number, out);
        let values = (&request.cells, step.first_cell as usize, step.rows);
        if let Err(error) = self.plan(step).append(&self.database, &self.concern, values, out) {
            out.truncate(from);
            return Err(error);
        }
        end_message(from, out);
        Ok(())
    }

    /// Appends a question whether the server is there.
    fn append_ping(&mut self, out: &mut Vec<u8>) {
        self.run.is_ping = true;
        let number = self.next_number();
        command(number, &self.database, out, |out| bson::int32("ping", 1, out));
    }

    /// Appends the command for more documents of a cursor.
    fn append_more(&mut self, request: &Request, id: i64, out: &mut Vec<u8>) {
        let number = self.next_number();
        let from = begin_message(number, out);
        if let Plan::Find(find) = self.plan(&request.steps[self.run.step]) {
            body(&self.database, out, |out| {
                bson::int64("getMore", id, out);
                bson::text("collection", find.table.as_bytes(), out);
            });
        }
        end_message(from, out);
    }

    /// Takes in an answer, and says what follows.
    fn take(&mut self, request: &Request, answer: Document<'_>) -> Result<Next, DatabaseError> {
        let refused = refusal(answer)?;
        if self.run.is_ping {
            return match refused {
                None => Ok(Next::End),
                Some(said) => Err(DatabaseError::Lost(said.error().to_string())),
            };
        }
        let step = &request.steps[self.run.step];
        let statement = usize::from(step.statement);
        if let Some(said) = refused {
            let error = self.of_step(not_done(said, self.plan(step).writes()));
            self.fail(error)?;
            return Ok(Next::End);
        }
        if !self.plans[statement].writes() {
            let id = self.take_batch(request, statement, answer)?;
            if id != 0 {
                return Ok(Next::More(id));
            }
            let rows = std::mem::take(&mut self.run.rows);
            self.end_step(step, rows, 0);
        } else {
            let Written { rows, failure } = Written::of(answer)?;
            if rows > step.rows.into() && matches!(self.plans[statement], Plan::Insert { .. }) {
                return Err(broken("says that it has stored more documents than it was sent"));
            }
            if let Some(failure) = failure {
                let failure = self.of_step(failure);
                self.fail(failure)?;
            }
            self.run.has_stored |= rows > 0;
            self.end_step(step, 0, rows);
        }
        self.run.step += 1;
        let is_last = self.run.failure.is_some() || self.run.step == request.steps.len();
        Ok(if is_last { Next::End } else { Next::Step })
    }

    /// Returns the error of a step, which says what stays of the steps in front of it.
    fn of_step(&self, error: DatabaseError) -> DatabaseError {
        match error {
            DatabaseError::Refused { code, message } if self.run.has_stored => {
                DatabaseError::refused(code, format!("{message}; what the steps in front of it have stored stays"))
            }
            error => error,
        }
    }

    /// Notes the first failure.
    ///
    /// # Errors
    /// The failure, where it ends the connection.
    fn fail(&mut self, error: DatabaseError) -> Result<(), DatabaseError> {
        if error.is_lost() {
            return Err(error);
        }
        self.run.failure.get_or_insert(error);
        Ok(())
    }

    /// Takes in documents that a step reads; returns the number of the cursor behind them.
    fn take_batch(&mut self, request: &Request, statement: usize, answer: Document<'_>) -> Result<i64, DatabaseError> {
        let (documents, id) = batch(answer)?;
        let MongodbWire { plans, run, kept, offsets, .. } = self;
        let Plan::Find(find) = &plans[statement] else {
            return Err(broken("answers with rows where nothing was read"));
        };
        let find: &Find = find;
        let before = run.rows;
        for member in documents.members() {
            let Value::Document(document) = member?.value else {
                return Err(broken("answers with something else than documents"));
            };
            run.rows += 1;
            if let Some(rows) = kept.as_mut().filter(|_| run.failure.is_none())
                && let Err(wrong) = find.take(document, offsets, rows)
            {
                if wrong.is_lost() {
                    return Err(wrong);
                }
                run.failure = Some(wrong);
            }
        }
        let first = request.steps[run.step].first_cell as usize;
        if run.rows > find.rows_max(&request.cells, first) {
            return Err(broken("answers with more documents than it was asked for"));
        }
        run.empty_batches = if run.rows == before { run.empty_batches + 1 } else { 0 };
        if run.empty_batches > EMPTY_BATCHES_MAX {
            return Err(broken("does not come to an end with its answer"));
        }
        Ok(id)
    }

    fn end_step(&mut self, step: &Step, rows: u64, changed: u64) {
        let run = &mut self.run;
        run.answer.rows += rows;
        run.answer.changed += changed;
        run.answer.empty += u32::from(step.expect == Expect::Rows && rows == 0);
        if run.failure.is_none()
            && let Some(miscount) = step.expect.miscount(rows, changed)
        {
            let miscount = Miscount { stays: run.has_stored, ..miscount };
            run.failure = Some(DatabaseError::Miscounted(Box::new(miscount)));
        }
    }

    fn outcome(&mut self) -> Result<Answer, DatabaseError> {
        self.run.failure.take().map_or(Ok(self.run.answer), Err)
    }
}

impl Wire for MongodbWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.run = Run::default();
        let is_unknown = |step: &Step| usize::from(step.statement) >= self.plans.len();
        let is_several = |step: &Step| step.rows != 1 && !matches!(self.plan(step), Plan::Insert { .. });
        let begun = if request.steps.iter().any(is_unknown) {
            Err(refused("a statement was not prepared"))
        } else if request.steps.iter().any(is_several) {
            Err(refused("it reads or changes the rows of one key at a time"))
        } else if !request.carries.is_empty() {
            Err(refused("no value of a step comes from the answer to another one"))
        } else if request.steps.is_empty() {
            Ok(false)
        } else {
            self.append_step(request, out).map(|()| true)
        };
        if let Err(error) = &begun {
            self.run.failure = Some(error.clone());
        }
        // The answer to a question shows that the server is there, where there is nothing to execute.
        if begun != Ok(true) {
            self.append_ping(out);
        }
    }

    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let (message, consumed) = match read_message(input) {
            Ok(None) => return Progress { consumed: 0, outcome: None },
            Ok(Some(found)) => found,
            Err(error) => return Progress { consumed: 0, outcome: Some(Err(error)) },
        };
        let next = match message.answers == self.number {
            true => self.take(request, message.body),
            false => Err(broken("answers to something that it was not asked")),
        };
        let outcome = match next {
            Err(error) => Some(Err(error)),
            Ok(Next::End) => Some(self.outcome()),
            Ok(Next::Step) => self.append_step(request, out).err().map(|error| Err(self.of_step(error))),
            Ok(Next::More(id)) => {
                self.append_more(request, id, out);
                None
            }
        };
        Progress { consumed, outcome }
    }

    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells> {
        std::mem::replace(&mut self.kept, rows)
    }
}

impl Prepare for MongodbWire {
    fn prepare(&mut self, _: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        self.plans = Plan::of(program)?;
        Ok(())
    }

    fn version(&mut self, channel: &mut Channel) -> Result<String, DatabaseError> {
        Build::ask(channel).map(|build| build.to_string())
    }

    fn create_table(&mut self, channel: &mut Channel, table: &Table) -> Result<(), DatabaseError> {
        tables::create(channel, &self.database, table)
    }

    fn drop_table(&mut self, channel: &mut Channel, table: &str) -> Result<(), DatabaseError> {
        tables::remove(channel, &self.database, table)
    }

    fn count_rows(&mut self, channel: &mut Channel, table: &str) -> Result<Option<u64>, DatabaseError> {
        tables::count(channel, &self.database, table).map(Some)
    }

    fn ask(&mut self, channel: &mut Channel, question: &str) -> Result<Option<String>, DatabaseError> {
        // FerretDB does not tell the settings that it was started with.
        match (question, &self.synchronous) {
            (SYNCHRONOUS, Some(set)) => Ok(Build::ask(channel)?.ferretdb.map(|_| set.clone())),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
