//! A connection to ClickHouse as a state machine: each step of a request is a query of its own over HTTP, and its rows are taken in as they arrive.
//!
//! How steps follow each other is that of [`crate::database::http::steps`].

use std::convert::Infallible;
use std::os::fd::{AsRawFd, RawFd};

use super::Engine;
use super::exchange::{Line, refusal};
use super::program::Plan;
use super::settings::{self, Own};
use super::tables;
use super::value::{Extent, extent, keep};
use crate::database::http::Reading;
use crate::database::http::request::take_words;
use crate::database::http::steps::{self, Run, Steps};
use crate::database::session::{ANSWER_BYTES_MAX, Channel, Prepare};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{DatabaseError, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, SchemaChange, Table};

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
    /// The number of bytes that the next row has at least.
    needed: usize,
    /// The number of rows read by the step so far.
    rows: u64,
    kept: Option<Cells>,
}

impl ClickhouseWire {
    pub(super) fn new(socket: Socket, line: Line, own: Own, engine: Engine, version: String) -> Self {
        let (plans, run, reading, body) = (Vec::new(), Run::default(), Reading::default(), Vec::new());
        ClickhouseWire { socket, line, own, engine, version, plans, run, reading, body, needed: 1, rows: 0, kept: None }
    }

    /// Appends the query of the next step. A step that cannot be sent ends the request.
    fn send(&mut self, request: &Request, step: usize, out: &mut Vec<u8>) {
        (self.rows, self.needed, self.run.step) = (0, 1, Some(step));
        self.body.clear();
        let Some(own) = request.steps.get(step) else { return self.send_nothing(out) };
        let sent = match self.plans.get(usize::from(own.statement)) {
            Some(plan) => self.line.append(out, |body| plan.append(&request.cells, own, body)),
            None => Err("a statement was not prepared".to_owned()),
        };
        if let Err(why) = sent {
            self.run.fail(DatabaseError::refused("clickhouse", why));
            self.send_nothing(out);
        }
    }

    fn send_nothing(&mut self, out: &mut Vec<u8>) {
        self.run.step = None;
        let Ok(()) = self.line.append::<Infallible>(out, |body| {
            body.extend_from_slice(NOTHING);
            Ok(())
        });
    }

    fn plan<'a>(plans: &'a [Plan], run: &Run, request: &Request) -> Option<&'a Plan> {
        plans.get(usize::from(request.steps.get(run.step?)?.statement))
    }
}

fn no_row(why: String) -> DatabaseError {
    DatabaseError::Lost(format!("the server answers with something else than rows: {why}"))
}

impl Steps for ClickhouseWire {
    fn run(&mut self) -> (&mut Run, &mut Reading) {
        (&mut self.run, &mut self.reading)
    }

    fn is_right(&self, _: &Request) -> bool {
        self.run.status == 200
    }

    fn take(&mut self, request: &Request, bytes: &[u8]) -> Result<(), DatabaseError> {
        if self.run.status != 200 {
            return take_words(&mut self.body, bytes);
        }
        let ClickhouseWire { plans, run, body, needed, rows: read, kept, .. } = self;
        let Some(Plan::Select { columns, .. }) = Self::plan(plans, run, request) else {
            return Err(DatabaseError::Lost("the server answers with data to a query that has none".to_owned()));
        };
        let mut wrong = None;
        // Most rows arrive as a whole, and are not copied.
        let mut rest = bytes;
        loop {
            let is_joined = !body.is_empty();
            if is_joined {
                let missing = needed.saturating_sub(body.len()).max(1).min(rest.len());
                body.extend_from_slice(&rest[..missing]);
                rest = &rest[missing..];
            }
            let shown = if is_joined { body.as_slice() } else { rest };
            if shown.is_empty() || shown.len() < *needed {
                break;
            }
            match extent(columns, shown).map_err(no_row)? {
                Extent::AtLeast(least) if least > ANSWER_BYTES_MAX => {
                    return Err(no_row(format!("a row has more than {} MiB", ANSWER_BYTES_MAX >> 20)));
                }
                Extent::AtLeast(least) => {
                    *needed = least;
                    if !is_joined || rest.is_empty() {
                        break;
                    }
                }
                // A row of no bytes would be one of endlessly many.
                Extent::Whole(0) => return Err(no_row("a row has no columns".to_owned())),
                Extent::Whole(length) => {
                    *read += 1;
                    *needed = 1;
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
            self.run
                .fail(DatabaseError::refused("value", format!("a value of the column {column} is no text in UTF-8")));
        }
        Ok(())
    }

    fn end(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<bool, DatabaseError> {
        if self.run.status != 200 {
            return self.run.refuse(refusal(self.run.status, &self.body));
        }
        if !self.body.is_empty() {
            return Err(no_row("the last row is cut".to_owned()));
        }
        let Some(step) = self.run.step.and_then(|number| request.steps.get(number)) else { return Ok(true) };
        let is_insert = matches!(Self::plan(&self.plans, &self.run, request), Some(Plan::Insert { .. }));
        let (rows, changed) = if is_insert { (0, u64::from(step.rows)) } else { (self.rows, 0) };
        let next = self.run.complete(request, rows, changed, is_insert);
        next.into_iter().for_each(|next| self.send(request, next, out));
        Ok(next.is_none())
    }
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
        steps::advance(self, request, input, out)
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
