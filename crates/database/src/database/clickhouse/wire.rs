//! A connection to ClickHouse as a state machine: each step of a request is a query of its own over HTTP, and its rows are taken in as they arrive.
//!
//! Invariant: an outcome is given only when the answer to the last query sent has ended, or when the connection is lost; bytes of the next answer are never among those
//! consumed.

use std::os::fd::{AsRawFd, RawFd};

use super::Engine;
use super::exchange::{Line, TEXT_BYTES_MAX, refusal, too_long};
use super::program::Plan;
use super::settings::{self, Own};
use super::tables;
use super::value::{Extent, extent, keep};
use crate::database::http::{Part, Reading};
use crate::database::session::{ANSWER_BYTES_MAX, Channel, Prepare};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Miscount, Program, Request, SchemaChange, Table};

/// The query of a request without steps, or with one that cannot be sent.
const NOTHING: &[u8] = b"SELECT 1 FORMAT Null";

/// A connection whose account has been let in.
#[derive(Debug)]
pub(super) struct ClickhouseWire {
    socket: Socket,
    line: Line,
    own: Own,
    engine: Engine,
    version: String,
    plans: Vec<Plan>,
    run: Run,
    reading: Reading,
    /// The part of the answer that is no whole row yet, or the words of an error.
    body: Vec<u8>,
    kept: Option<Cells>,
}

/// The progress of a request.
#[derive(Debug, Default)]
struct Run {
    /// The index of the step that is being answered; `None` for [`NOTHING`].
    step: Option<usize>,
    /// The number of steps that are stored already.
    stored: usize,
    status: u16,
    /// Whether the server closes the connection behind the answer.
    closes: bool,
    /// The number of bytes that the next row has at least.
    needed: usize,
    /// The number of rows read by the step so far.
    rows: u64,
    answer: Answer,
    failure: Option<DatabaseError>,
}

impl ClickhouseWire {
    pub(super) fn new(socket: Socket, line: Line, own: Own, engine: Engine, version: String) -> Self {
        let (plans, run, reading, body) = (Vec::new(), Run::default(), Reading::default(), Vec::new());
        ClickhouseWire { socket, line, own, engine, version, plans, run, reading, body, kept: None }
    }

    /// Appends the query of the next step. A step that cannot be sent ends the request.
    fn send(&mut self, request: &Request, step: usize, out: &mut Vec<u8>) {
        (self.run.rows, self.run.needed, self.run.step) = (0, 1, Some(step));
        self.body.clear();
        let Some(own) = request.steps.get(step) else { return self.send_nothing(out) };
        let sent = match self.plans.get(usize::from(own.statement)) {
            Some(plan) => self.line.append(out, |body| plan.append(&request.cells, own, body)),
            None => Err("a statement was not prepared".to_owned()),
        };
        if let Err(why) = sent {
            self.fail(DatabaseError::refused("clickhouse", why));
            self.send_nothing(out);
        }
    }

    fn send_nothing(&mut self, out: &mut Vec<u8>) {
        self.run.step = None;
        let written = self.line.append(out, |body| {
            body.extend_from_slice(NOTHING);
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = written;
    }

    #[cold]
    fn fail(&mut self, error: DatabaseError) {
        let has_stored = self.run.stored > 0;
        let error = match error {
            DatabaseError::Refused { code, message } if has_stored => DatabaseError::Refused {
                code,
                message: format!("{message}; what the statements before it stored stays"),
            },
            error => error,
        };
        self.run.failure.get_or_insert(error);
    }

    /// Returns whether the answer that ends is not the last of the request.
    fn has_more(&self, request: &Request) -> bool {
        let is_last = self.run.step.is_none_or(|number| number + 1 >= request.steps.len());
        self.run.status == 200 && !is_last
    }

    fn plan<'a>(plans: &'a [Plan], run: &Run, request: &Request) -> Option<&'a Plan> {
        plans.get(usize::from(request.steps.get(run.step?)?.statement))
    }

    /// Takes in bytes of a body.
    fn take(&mut self, request: &Request, bytes: &[u8]) -> Result<(), DatabaseError> {
        if self.run.status != 200 {
            if self.body.len() + bytes.len() > TEXT_BYTES_MAX {
                return Err(too_long());
            }
            self.body.extend_from_slice(bytes);
            return Ok(());
        }
        let ClickhouseWire { plans, run, body, kept, .. } = self;
        let Some(Plan::Select { columns, .. }) = Self::plan(plans, run, request) else {
            return Err(DatabaseError::Lost("the server answers with data to a query that has none".to_owned()));
        };
        let mut wrong = None;
        // Most rows arrive as a whole, and are not copied.
        let mut rest = bytes;
        loop {
            let is_joined = !body.is_empty();
            if is_joined {
                let missing = run.needed.saturating_sub(body.len()).max(1).min(rest.len());
                body.extend_from_slice(&rest[..missing]);
                rest = &rest[missing..];
            }
            let shown = if is_joined { body.as_slice() } else { rest };
            if shown.is_empty() || shown.len() < run.needed {
                break;
            }
            match extent(columns, shown).map_err(no_row)? {
                Extent::AtLeast(needed) if needed > ANSWER_BYTES_MAX => {
                    return Err(no_row(format!("a row has more than {} MiB", ANSWER_BYTES_MAX >> 20)));
                }
                Extent::AtLeast(needed) => {
                    run.needed = needed;
                    if !is_joined || rest.is_empty() {
                        break;
                    }
                }
                // A row of no bytes would be one of endlessly many.
                Extent::Whole(0) => return Err(no_row("a row has no columns".to_owned())),
                Extent::Whole(length) => {
                    run.rows += 1;
                    run.needed = 1;
                    if let Some(rows) = kept {
                        let column = keep(columns, &shown[..length], rows).map_err(no_row)?;
                        wrong = wrong.or(column.map(|column| column.name.clone()));
                    }
                    if is_joined {
                        body.clear();
                    } else {
                        rest = &rest[length..];
                    }
                }
            }
        }
        body.extend_from_slice(rest);
        if let Some(column) = wrong {
            self.fail(DatabaseError::refused("value", format!("a value of the column {column} is no text in UTF-8")));
        }
        Ok(())
    }

    /// Completes the answer to a query. Returns whether it was the last of the request; otherwise the next query has been appended.
    fn end(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<bool, DatabaseError> {
        if self.run.status != 200 {
            let error = refusal(self.run.status, &self.body);
            if error.is_lost() {
                return Err(error);
            }
            self.fail(error);
            return Ok(true);
        }
        if !self.body.is_empty() {
            return Err(no_row("the last row is cut".to_owned()));
        }
        let Some(number) = self.run.step else { return Ok(true) };
        let Some(step) = request.steps.get(number) else { return Ok(true) };
        let is_insert = matches!(Self::plan(&self.plans, &self.run, request), Some(Plan::Insert { .. }));
        let (rows, changed) = if is_insert { (0, u64::from(step.rows)) } else { (self.run.rows, 0) };
        let run = &mut self.run;
        run.answer.rows += rows;
        run.answer.changed += changed;
        run.answer.empty += u32::from(step.expect == Expect::Rows && rows == 0);
        run.stored += usize::from(is_insert);
        if let Some(miscount) = step.expect.miscount(rows, changed) {
            let stays = run.stored > 0;
            self.fail(DatabaseError::Miscounted(Box::new(Miscount { stays, ..miscount })));
        }
        if self.run.failure.is_some() || number + 1 == request.steps.len() {
            return Ok(true);
        }
        self.send(request, number + 1, out);
        Ok(false)
    }
}

fn no_row(why: String) -> DatabaseError {
    DatabaseError::Lost(format!("the server answers with something else than rows: {why}"))
}

impl Wire for ClickhouseWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        (self.run, self.reading) = (Run::default(), Reading::default());
        self.send(request, 0, out);
    }

    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let mut consumed = 0;
        loop {
            let (part, length) = match self.reading.take(&input[consumed..]) {
                Ok(Some(taken)) => taken,
                Ok(None) => return Progress { consumed, outcome: None },
                Err(why) => return Progress { consumed, outcome: Some(Err(DatabaseError::Lost(why))) },
            };
            consumed += length;
            let taken = match part {
                Part::Head(head) => {
                    (self.run.status, self.run.closes) = (head.status, head.closes);
                    Ok(false)
                }
                Part::Body(bytes) => self.take(request, bytes).map(|()| false),
                Part::Framing => Ok(false),
                Part::End if self.run.closes && self.has_more(request) => Err(DatabaseError::Lost(
                    "the server closes the connection between two statements of a request".to_owned(),
                )),
                Part::End => match self.end(request, out) {
                    // What follows is the answer to a query that has not been sent.
                    Ok(false) => return Progress { consumed, outcome: None },
                    ended => ended,
                },
            };
            match taken {
                Ok(false) => {}
                Ok(true) => {
                    let outcome = self.run.failure.take().map_or(Ok(self.run.answer), Err);
                    return Progress { consumed, outcome: Some(outcome) };
                }
                Err(error) => return Progress { consumed, outcome: Some(Err(error)) },
            }
        }
    }

    fn is_over(&self) -> bool {
        self.run.closes
    }

    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells> {
        std::mem::replace(&mut self.kept, rows)
    }
}

impl Prepare for ClickhouseWire {
    fn prepare(&mut self, _: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        self.plans = Plan::of(program)?;
        Ok(())
    }

    fn version(&mut self, _: &mut Channel) -> Result<String, DatabaseError> {
        Ok(format!("ClickHouse {}", self.version))
    }

    fn create_table(&mut self, channel: &mut Channel, table: &Table) -> Result<(), DatabaseError> {
        tables::create(channel, &self.line, self.engine, &self.own, table)
    }

    fn drop_table(&mut self, channel: &mut Channel, table: &str) -> Result<(), DatabaseError> {
        tables::remove(channel, &self.line, &self.version, table)
    }

    fn count_rows(&mut self, channel: &mut Channel, table: &str) -> Result<Option<u64>, DatabaseError> {
        tables::count(channel, &self.line, table).map(Some)
    }

    fn sum_column(&mut self, channel: &mut Channel, table: &str, column: &str) -> Result<Option<u64>, DatabaseError> {
        tables::sum(channel, &self.line, table, column).map(Some)
    }

    fn change_schema(&mut self, channel: &mut Channel, change: &SchemaChange) -> Result<Option<String>, DatabaseError> {
        tables::change(channel, &self.line, change)
    }

    fn table_bytes(&mut self, channel: &mut Channel, tables: &[&str]) -> Option<u64> {
        tables::bytes(channel, &self.line, tables)
    }

    fn ask(&mut self, channel: &mut Channel, question: &str) -> Result<Option<String>, DatabaseError> {
        settings::value(channel, &self.line, &self.own, question)
    }
}

#[cfg(test)]
mod tests;
