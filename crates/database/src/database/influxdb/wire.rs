//! A connection to InfluxDB as a state machine: each step of a request is a request of its own over HTTP, and rows are taken in as they arrive.
//!
//! Invariant: an outcome is given only when the answer to the last request sent has ended, or when the connection is lost; bytes of the next answer are never among those
//! consumed.

use std::os::fd::{AsRawFd, RawFd};

use super::answer::{Taking, put_in_order};
use super::exchange::{ANSWERED, Lines, TEXT_BYTES_MAX, WRITTEN, append, refusal, too_long};
use super::program::Plan;
use super::settings;
use super::tables;
use crate::database::http::{Part, Reading};
use crate::database::session::{Channel, Prepare};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Miscount, Program, Request, Step, Table};

/// The request for a step that cannot be sent, or for none.
const NOTHING: &[u8] = b"GET /ping HTTP/1.1\r\nHost: influxdb\r\n\r\n";

/// How often a query is asked again whose rows are not wholly there yet.
const AGAIN_MAX: u32 = 200;

/// A connection whose account has been let in.
#[derive(Debug)]
pub(super) struct InfluxdbWire {
    socket: Socket,
    lines: Lines,
    database: String,
    version: String,
    plans: Vec<Plan>,
    run: Run,
    reading: Reading,
    taking: Taking,
    /// The words of an error.
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
    /// The number of values that were kept before the step.
    kept_from: usize,
    /// How often the step has been asked again.
    again: u32,
    answer: Answer,
    failure: Option<DatabaseError>,
}

impl InfluxdbWire {
    pub(super) fn new(socket: Socket, lines: Lines, database: String, version: String) -> Self {
        let (run, reading, taking) = (Run::default(), Reading::default(), Taking::default());
        let (plans, body) = (Vec::new(), Vec::new());
        InfluxdbWire { socket, lines, database, version, plans, run, reading, taking, body, kept: None }
    }

    /// Appends the request for the next step. A step that cannot be sent ends the request.
    fn send(&mut self, request: &Request, step: usize, out: &mut Vec<u8>) {
        self.run.step = Some(step);
        self.run.kept_from = self.kept.as_ref().map_or(0, Cells::len);
        self.body.clear();
        self.taking.begin();
        let Some(own) = request.steps.get(step) else { return self.send_nothing(out) };
        let sent = match self.plans.get(usize::from(own.statement)) {
            Some(plan) => {
                let head = if plan.is_insert() { &self.lines.write } else { &self.lines.query };
                append(head, out, |body| plan.append(&request.cells, own, body))
            }
            None => Err("a statement was not prepared".to_owned()),
        };
        if let Err(why) = sent {
            self.fail(DatabaseError::refused("influxdb", why));
            self.send_nothing(out);
        }
    }

    fn send_nothing(&mut self, out: &mut Vec<u8>) {
        self.run.step = None;
        out.extend_from_slice(NOTHING);
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

    /// Returns the step that is being answered, with its plan.
    fn current<'a>(plans: &'a [Plan], run: &Run, request: &'a Request) -> Option<(&'a Step, &'a Plan)> {
        let step = request.steps.get(run.step?)?;
        Some((step, plans.get(usize::from(step.statement))?))
    }

    /// Returns whether the status is that of an answer without an error.
    fn is_right(&self, request: &Request) -> bool {
        let is_query = matches!(Self::current(&self.plans, &self.run, request), Some((_, Plan::Select { .. })));
        self.run.status == if is_query { ANSWERED } else { WRITTEN }
    }

    /// Returns whether the answer that ends is not the last of the request.
    fn has_more(&self, request: &Request) -> bool {
        let is_last = self.run.step.is_none_or(|number| number + 1 >= request.steps.len());
        self.is_right(request) && !is_last
    }

    /// Takes in bytes of a body.
    fn take(&mut self, request: &Request, bytes: &[u8]) -> Result<(), DatabaseError> {
        if let Some((_, Plan::Select { reads, .. })) = Self::current(&self.plans, &self.run, request)
            && self.run.status == ANSWERED
        {
            return self.taking.take(reads, bytes, self.kept.as_mut()).map_err(no_answer);
        }
        if self.body.len() + bytes.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    /// Completes the answer to a request. Returns whether it was the last; otherwise the next one has been appended.
    fn end(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<bool, DatabaseError> {
        if !self.is_right(request) {
            let error = refusal(self.run.status, &self.body);
            if error.is_lost() {
                return Err(error);
            }
            self.fail(error);
            return Ok(true);
        }
        if self.taking.is_torn {
            return self.ask_again(request, out);
        }
        let Some((step, plan)) = Self::current(&self.plans, &self.run, request) else { return Ok(true) };
        let is_insert = plan.is_insert();
        let (rows, changed) = match plan {
            Plan::Insert(_) => (0, u64::from(step.rows)),
            Plan::Select { reads, order, counts_none, .. } => {
                self.taking.end().map_err(no_answer)?;
                let columns = reads.outs.len();
                let is_none = *counts_none && self.taking.rows == 0;
                if let Some(kept) = &mut self.kept {
                    if is_none {
                        kept.int(0);
                        (1..columns).for_each(|_| kept.null());
                    }
                    put_in_order(*order, columns, self.run.kept_from, kept);
                }
                (self.taking.rows + u64::from(is_none), 0)
            }
        };
        self.complete(request, is_insert, rows, changed, out)
    }

    /// Appends the query that has been answered once more: a row was shown while it was written. Returns whether that has been done too often.
    fn ask_again(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<bool, DatabaseError> {
        self.taking.end().map_err(no_answer)?;
        let kept_from = self.run.kept_from;
        self.kept.iter_mut().for_each(|kept| kept.truncate(kept_from));
        if self.run.again == AGAIN_MAX || self.run.closes {
            let why = "a point has no value in a field that each point has, however often it is asked for";
            self.fail(DatabaseError::refused("value", why));
            return Ok(true);
        }
        self.run.again += 1;
        self.send(request, self.run.step.unwrap_or(0), out);
        Ok(false)
    }

    fn complete(
        &mut self,
        request: &Request,
        is_insert: bool,
        rows: u64,
        changed: u64,
        out: &mut Vec<u8>,
    ) -> Result<bool, DatabaseError> {
        if let Some(told) = self.taking.error.take() {
            self.fail(DatabaseError::refused("influxdb", told));
            return Ok(true);
        }
        if let Some(wrong) = self.taking.wrong.take() {
            self.fail(DatabaseError::refused("value", wrong));
        }
        let Some(number) = self.run.step else { return Ok(true) };
        let Some(step) = request.steps.get(number) else { return Ok(true) };
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
        self.run.again = 0;
        self.send(request, number + 1, out);
        Ok(false)
    }
}

fn no_answer(why: String) -> DatabaseError {
    DatabaseError::Lost(format!("the server answers a query with something else than rows: {why}"))
}

impl Wire for InfluxdbWire {
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
                    // What follows is the answer to a request that has not been sent.
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

impl Prepare for InfluxdbWire {
    fn prepare(&mut self, _: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        self.plans = Plan::of(program)?;
        Ok(())
    }

    fn version(&mut self, _: &mut Channel) -> Result<String, DatabaseError> {
        Ok(format!("InfluxDB {}", self.version))
    }

    fn create_table(&mut self, channel: &mut Channel, table: &Table) -> Result<(), DatabaseError> {
        tables::create(channel, &self.lines, table)
    }

    fn drop_table(&mut self, channel: &mut Channel, table: &str) -> Result<(), DatabaseError> {
        tables::remove(channel, &self.lines, table)
    }

    fn count_rows(&mut self, channel: &mut Channel, table: &str) -> Result<Option<u64>, DatabaseError> {
        tables::count(channel, &self.lines, table).map(Some)
    }

    fn sum_column(&mut self, channel: &mut Channel, table: &str, column: &str) -> Result<Option<u64>, DatabaseError> {
        tables::sum(channel, &self.lines, table, column).map(Some)
    }

    fn table_bytes(&mut self, channel: &mut Channel, tables: &[&str]) -> Option<u64> {
        tables::bytes(channel, &self.lines, &self.database, tables)
    }

    fn ask(&mut self, channel: &mut Channel, question: &str) -> Result<Option<String>, DatabaseError> {
        settings::value(channel, &self.lines, question)
    }
}

#[cfg(test)]
mod tests;
