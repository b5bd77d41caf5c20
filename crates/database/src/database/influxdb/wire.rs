//! A connection to InfluxDB as a state machine: each step of a request is a request of its own over HTTP, and rows are taken in as they arrive.
//!
//! How steps follow each other is that of [`crate::database::http::steps`].

use std::os::fd::{AsRawFd, RawFd};

use super::answer::{Taking, put_in_order};
use super::exchange::{ANSWERED, Lines, WRITTEN, refusal};
use super::program::Plan;
use super::settings;
use super::tables;
use crate::database::http::Reading;
use crate::database::http::request::{append, take_words};
use crate::database::http::steps::{self, Run, Steps};
use crate::database::session::{Channel, Prepare};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{DatabaseError, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, Step, Table};

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
    /// The number of values that were kept before the step.
    kept_from: usize,
    /// How often the step has been asked again.
    again: u32,
    kept: Option<Cells>,
}

impl InfluxdbWire {
    pub(super) fn new(socket: Socket, lines: Lines, database: String, version: String) -> Self {
        let (run, reading, taking) = (Run::default(), Reading::default(), Taking::default());
        let (plans, body) = (Vec::new(), Vec::new());
        InfluxdbWire {
            socket,
            lines,
            database,
            version,
            plans,
            run,
            reading,
            taking,
            body,
            kept_from: 0,
            again: 0,
            kept: None,
        }
    }

    /// Appends the request for the next step. A step that cannot be sent ends the request.
    fn send(&mut self, request: &Request, step: usize, out: &mut Vec<u8>) {
        self.run.step = Some(step);
        self.kept_from = self.kept.as_ref().map_or(0, Cells::len);
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
            self.run.fail(DatabaseError::refused("influxdb", why));
            self.send_nothing(out);
        }
    }

    fn send_nothing(&mut self, out: &mut Vec<u8>) {
        self.run.step = None;
        out.extend_from_slice(NOTHING);
    }

    /// Returns the step that is being answered, with its plan.
    fn current<'a>(plans: &'a [Plan], run: &Run, request: &'a Request) -> Option<(&'a Step, &'a Plan)> {
        let step = request.steps.get(run.step?)?;
        Some((step, plans.get(usize::from(step.statement))?))
    }

    /// Appends the query that has been answered once more: a row was shown while it was written. Returns whether that has been done too often.
    fn ask_again(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<bool, DatabaseError> {
        self.taking.end().map_err(no_answer)?;
        let kept_from = self.kept_from;
        self.kept.iter_mut().for_each(|kept| kept.truncate(kept_from));
        if self.again == AGAIN_MAX || self.run.closes {
            let why = "a point has no value in a field that each point has, however often it is asked for";
            self.run.fail(DatabaseError::refused("value", why));
            return Ok(true);
        }
        self.again += 1;
        self.send(request, self.run.step.unwrap_or(0), out);
        Ok(false)
    }
}

fn no_answer(why: String) -> DatabaseError {
    DatabaseError::Lost(format!("the server answers a query with something else than rows: {why}"))
}

impl Steps for InfluxdbWire {
    fn run(&mut self) -> (&mut Run, &mut Reading) {
        (&mut self.run, &mut self.reading)
    }

    fn is_right(&self, request: &Request) -> bool {
        let is_query = matches!(Self::current(&self.plans, &self.run, request), Some((_, Plan::Select { .. })));
        self.run.status == if is_query { ANSWERED } else { WRITTEN }
    }

    fn take(&mut self, request: &Request, bytes: &[u8]) -> Result<(), DatabaseError> {
        if let Some((_, Plan::Select { reads, .. })) = Self::current(&self.plans, &self.run, request)
            && self.run.status == ANSWERED
        {
            return self.taking.take(reads, bytes, self.kept.as_mut()).map_err(no_answer);
        }
        take_words(&mut self.body, bytes)
    }

    fn end(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<bool, DatabaseError> {
        if !self.is_right(request) {
            return self.run.refuse(refusal(self.run.status, &self.body));
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
                    put_in_order(*order, columns, self.kept_from, kept);
                }
                (self.taking.rows + u64::from(is_none), 0)
            }
        };
        if let Some(told) = self.taking.error.take() {
            return self.run.refuse(DatabaseError::refused("influxdb", told));
        }
        if let Some(wrong) = self.taking.wrong.take() {
            self.run.fail(DatabaseError::refused("value", wrong));
        }
        let next = self.run.complete(request, rows, changed, is_insert);
        self.again = 0;
        next.into_iter().for_each(|next| self.send(request, next, out));
        Ok(next.is_none())
    }
}

impl Wire for InfluxdbWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        (self.run, self.reading, self.again) = (Run::default(), Reading::default(), 0);
        self.send(request, 0, out);
    }

    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        steps::advance(self, request, input, out)
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
