//! A connection to VictoriaMetrics as a state machine: each step of a request is a request of its own over HTTP.
//!
//! How steps follow each other is that of [`crate::database::http::steps`]. Answers are read as a whole, because the points of a row are in several places of them.

use std::os::fd::{AsRawFd, RawFd};

use super::exchange::{self, ANSWERED, DONE, Lines, refusal};
use super::program::Plan;
use super::tables;
use crate::database::http::Reading;
use crate::database::http::request::append;
use crate::database::http::steps::{self, Run, Steps};
use crate::database::session::{ANSWER_BYTES_MAX, Channel, Prepare};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{DatabaseError, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, Step, Table};

/// The request for a step that cannot be sent, or for none.
const NOTHING: &[u8] = b"GET /health HTTP/1.1\r\nHost: victoriametrics\r\n\r\n";

/// How often a query is asked again whose rows are not wholly there yet.
const AGAIN_MAX: u32 = 200;

/// A connection that was let in.
#[derive(Debug)]
pub(super) struct VictoriametricsWire {
    socket: Socket,
    lines: Lines,
    plans: Vec<Plan>,
    run: Run,
    reading: Reading,
    body: Vec<u8>,
    /// The number of values that were kept before the step.
    kept_from: usize,
    /// How often the step has been asked again.
    again: u32,
    kept: Option<Cells>,
}

impl VictoriametricsWire {
    pub(super) fn new(socket: Socket, lines: Lines) -> Self {
        let (run, reading) = (Run::default(), Reading::default());
        let (plans, body) = (Vec::new(), Vec::new());
        VictoriametricsWire { socket, lines, plans, run, reading, body, kept_from: 0, again: 0, kept: None }
    }

    /// Appends the request for the next step. A step that cannot be sent ends the request.
    fn send(&mut self, request: &Request, step: usize, out: &mut Vec<u8>) {
        self.run.step = Some(step);
        self.kept_from = self.kept.as_ref().map_or(0, Cells::len);
        self.body.clear();
        let Some(own) = request.steps.get(step) else { return self.send_nothing(out) };
        let sent = match self.plans.get(usize::from(own.statement)) {
            Some(plan) => append(plan.head(&self.lines), out, |body| plan.append(&request.cells, own, body)),
            None => Err("a statement was not prepared".to_owned()),
        };
        if let Err(why) = sent {
            self.run.fail(DatabaseError::refused("victoriametrics", why));
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
    fn ask_again(&mut self, request: &Request, out: &mut Vec<u8>) -> bool {
        let kept_from = self.kept_from;
        self.kept.iter_mut().for_each(|kept| kept.truncate(kept_from));
        if self.again == AGAIN_MAX || self.run.closes {
            let why = "a row has no value in a series that each row has, however often it is asked for";
            self.run.fail(DatabaseError::refused("value", why));
            return true;
        }
        self.again += 1;
        self.send(request, self.run.step.unwrap_or(0), out);
        false
    }
}

impl Steps for VictoriametricsWire {
    fn run(&mut self) -> (&mut Run, &mut Reading) {
        (&mut self.run, &mut self.reading)
    }

    fn is_right(&self, request: &Request) -> bool {
        let reads = Self::current(&self.plans, &self.run, request).map(|(_, plan)| plan.reads().is_some());
        self.run.status == if reads == Some(false) { DONE } else { ANSWERED }
    }

    fn take(&mut self, _: &Request, bytes: &[u8]) -> Result<(), DatabaseError> {
        if self.body.len() + bytes.len() > ANSWER_BYTES_MAX {
            let most = ANSWER_BYTES_MAX >> 20;
            return Err(DatabaseError::Lost(format!("an answer has more than {most} MiB; ask for fewer rows")));
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<bool, DatabaseError> {
        if !self.is_right(request) {
            return self.run.refuse(refusal(self.run.status, &self.body));
        }
        let Some((step, plan)) = Self::current(&self.plans, &self.run, request) else { return Ok(true) };
        let (rows, changed) = match plan.reads() {
            None => (0, u64::from(step.rows)),
            Some(reads) => {
                let taken = reads.read(&self.body, self.kept.as_mut()).map_err(|why| {
                    DatabaseError::Lost(format!("the server answers a query with something else than rows: {why}"))
                })?;
                if taken.is_torn {
                    return Ok(self.ask_again(request, out));
                }
                if let Some(wrong) = taken.wrong {
                    self.run.fail(DatabaseError::refused("value", wrong));
                }
                (taken.rows, 0)
            }
        };
        let is_insert = plan.reads().is_none();
        let next = self.run.complete(request, rows, changed, is_insert);
        self.again = 0;
        next.into_iter().for_each(|next| self.send(request, next, out));
        Ok(next.is_none())
    }
}

impl Wire for VictoriametricsWire {
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

impl Prepare for VictoriametricsWire {
    /// Whoever reads sees all that was acknowledged before.
    fn prepare(&mut self, channel: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        self.plans = Plan::of(program)?;
        match self.plans.iter().any(|plan| plan.reads().is_some()) {
            true => exchange::flush(channel, &self.lines),
            false => Ok(()),
        }
    }

    fn version(&mut self, channel: &mut Channel) -> Result<String, DatabaseError> {
        exchange::version(channel, &self.lines)
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

    fn ask(&mut self, channel: &mut Channel, question: &str) -> Result<Option<String>, DatabaseError> {
        exchange::flag(channel, &self.lines, question)
    }
}
