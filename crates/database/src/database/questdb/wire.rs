//! A connection to QuestDB as a state machine: that of PostgreSQL's protocol, with values that are checked first, and with reads that look again.
//!
//! A read that must find rows and finds too few may only have come before the server has applied what it had acknowledged. It then waits for that, and is sent once more; its time
//! includes the wait.
//!
//! Invariant: an outcome is given only when nothing that was sent is unanswered, or when the connection is lost.

use std::os::fd::RawFd;
use std::time::Instant;

use super::applied::{self, Awaited, Row};
use super::program::{Plan, refused};
use super::value::Guard;
use super::{settings, tables};
use crate::database::postgres::PostgresWire;
use crate::database::postgres::message::{self, Message, ServerError, broken};
use crate::database::postgres::prepare::{prepare, text_row};
use crate::database::session::{Channel, Prepare, Speak};
use crate::database::tls::SharedSecure;
use crate::database::{Answer, DatabaseError, Progress, Unasked, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, Table};

/// The maximum bytes of an answer about the program's tables.
const LOOK_BYTES_MAX: usize = 1 << 20;

/// A connection with the statements prepared on it.
#[derive(Debug)]
pub(super) struct QuestdbWire {
    inner: PostgresWire,
    /// For each statement that inserts, what its values must be.
    guards: Vec<Option<Vec<Guard>>>,
    /// The question whether everything acknowledged for the program's tables is applied.
    question: String,
    /// The number of names that statements were given so far, those of earlier programs and refused ones among them.
    named: usize,
    /// The names of the program's statements.
    names: Vec<String>,
    /// The number of values that were kept before the request.
    kept: usize,
    look: Look,
}

/// How far a request has come that may have to be sent once more.
#[derive(Debug, Default)]
enum Look {
    /// It was sent, and may be sent again.
    #[default]
    First,
    /// What was acknowledged is waited for.
    Waiting(Box<Waiting>),
    /// It was sent again, or must not be.
    Last,
}

/// A wait for what was acknowledged.
#[derive(Debug)]
struct Waiting {
    awaited: Awaited,
    until: Instant,
    rows: Vec<Row>,
    /// The number of bytes of these rows.
    bytes: usize,
    failure: Option<DatabaseError>,
}

impl QuestdbWire {
    pub(super) fn new(inner: PostgresWire) -> Self {
        let (guards, question) = (Vec::new(), String::new());
        QuestdbWire { inner, guards, question, named: 0, names: Vec::new(), kept: 0, look: Look::Last }
    }

    /// Returns the error for the first value of a request that a column cannot hold.
    fn refusal(&self, request: &Request) -> Option<DatabaseError> {
        for step in &request.steps {
            let Some(Some(guards)) = self.guards.get(usize::from(step.statement)) else { continue };
            let first = step.first_cell as usize;
            // That values are missing is told where they are sent.
            let values = request.cells.as_slice().get(first..).unwrap_or_default().iter();
            let values = values.take(step.rows as usize * guards.len());
            for (value, guard) in values.zip(guards.iter().cycle()) {
                if let Some(why) = guard.refusal(*value) {
                    return Some(refused(&format!("the value for the column {} is {why}", guard.name)));
                }
            }
        }
        None
    }

    /// Has the server forget the statements of an earlier program, one by one: it does not know how to forget all.
    fn forget(&mut self, channel: &mut Channel) -> Result<(), DatabaseError> {
        self.guards.clear();
        self.inner.statements.clear();
        let names = std::mem::take(&mut self.names);
        names.iter().try_for_each(|name| self.inner.run(channel, &format!("DEALLOCATE {name}")))
    }

    fn writes(&self, request: &Request) -> bool {
        let writes = |statement: u16| !matches!(self.guards.get(usize::from(statement)), Some(None));
        request.steps.iter().any(|step| writes(step.statement))
    }

    /// Begins to wait for what was acknowledged.
    fn wait(&mut self, out: &mut Vec<u8>) {
        let (awaited, until) = (Awaited::default(), Instant::now() + applied::WITHIN);
        self.look = Look::Waiting(Box::new(Waiting { awaited, until, rows: Vec::new(), bytes: 0, failure: None }));
        ask(&self.question, out);
    }

    /// Sends the request once more, without the rows that it has read.
    fn send_again(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.look = Look::Last;
        if let Some(mut rows) = self.inner.keep_rows(None) {
            rows.truncate(self.kept);
            self.inner.keep_rows(Some(rows));
        }
        self.inner.start(request, out);
    }

    /// Takes in a message of the answer to the question. Returns whether it was the last one.
    fn take(waiting: &mut Waiting, message: Message<'_>) -> Result<bool, DatabaseError> {
        match message.tag {
            b'D' => {
                waiting.bytes = waiting.bytes.saturating_add(message.length());
                if waiting.bytes > LOOK_BYTES_MAX {
                    return Err(broken("it tells of more tables than there are"));
                }
                let row = text_row(message.body).ok_or_else(|| broken("a row is malformed"))?;
                waiting.rows.push(row);
            }
            b'E' => {
                let error = ServerError::read(message.body);
                let is_fatal = error.is_fatal();
                let error = DatabaseError::from(error);
                if is_fatal {
                    return Err(error);
                }
                waiting.failure.get_or_insert(error);
            }
            b'Z' => return Ok(true),
            b'T' | b'C' | b'N' | b'S' | b'A' => {}
            tag => return Err(broken(&format!("it answers a query with {tag:#04x}"))),
        }
        Ok(false)
    }

    /// Acts on the whole answer to the question. Returns the outcome where the request has one now.
    fn looked(&mut self, request: &Request, out: &mut Vec<u8>) -> Option<Result<Answer, DatabaseError>> {
        let Look::Waiting(waiting) = &mut self.look else { return None };
        let taken = waiting.failure.take().map_or_else(|| waiting.awaited.take(&waiting.rows), Err);
        waiting.rows.clear();
        waiting.bytes = 0;
        match taken {
            Ok(true) => self.send_again(request, out),
            Ok(false) if Instant::now() >= waiting.until => return Some(Err(applied::late())),
            Ok(false) => ask(&self.question, out),
            Err(error) => return Some(Err(error)),
        }
        None
    }

    /// Returns whether a read found fewer rows than it should, and may find them when what was acknowledged is applied.
    fn may_find_more(&self, request: &Request, outcome: &Result<Answer, DatabaseError>) -> bool {
        let is_short = match outcome {
            Ok(answer) => answer.empty > 0,
            Err(DatabaseError::Miscounted(miscount)) => !miscount.is_of_changes,
            Err(_) => false,
        };
        is_short && matches!(self.look, Look::First) && !self.writes(request)
    }
}

/// Appends a query as text.
fn ask(text: &str, out: &mut Vec<u8>) {
    message::write(out, b'Q', |out| message::write_text(out, text));
}

impl Wire for QuestdbWire {
    fn fd(&self) -> RawFd {
        self.inner.fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.inner.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.look = if self.question.is_empty() { Look::Last } else { Look::First };
        match self.refusal(request) {
            None => self.inner.start(request, out),
            Some(error) => self.inner.refuse(request, error, out),
        }
    }

    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let Look::Waiting(waiting) = &mut self.look else {
            let progress = self.inner.advance(request, input, out);
            return match &progress.outcome {
                Some(outcome) if self.may_find_more(request, outcome) => {
                    self.wait(out);
                    Progress { outcome: None, ..progress }
                }
                _ => progress,
            };
        };
        let mut consumed = 0;
        loop {
            let taken = match message::read(&input[consumed..]) {
                Ok(None) => return Progress { consumed, outcome: None },
                Ok(Some(message)) => {
                    consumed += message.length();
                    Self::take(waiting, message)
                }
                Err(error) => Err(error),
            };
            match taken {
                Ok(false) => {}
                Ok(true) => return Progress { consumed, outcome: self.looked(request, out) },
                Err(error) => return Progress { consumed, outcome: Some(Err(error)) },
            }
        }
    }

    fn unasked(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Unasked> {
        self.inner.unasked(input, out)
    }

    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells> {
        self.kept = rows.as_ref().map_or(0, Cells::len);
        self.inner.keep_rows(rows)
    }
}

impl Prepare for QuestdbWire {
    /// Waits first until everything acknowledged for the program's tables can be read, so that clients of a load begin with what was stored before.
    fn prepare(&mut self, channel: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        let plans = Plan::of(program)?;
        let names: Vec<&str> = program.tables.iter().map(|table| table.name.as_str()).collect();
        self.question = if names.is_empty() { String::new() } else { Awaited::question(names.iter().copied()) };
        if !names.is_empty() {
            applied::wait(channel, &mut self.inner, &names)?;
        }
        self.forget(channel)?;
        self.inner.pipelines = program.pipelines;
        for plan in plans {
            // A name is not used again: the server may keep that of a statement which it has refused.
            self.named += 1;
            let name = format!("s{}", self.named);
            self.inner.statements.push(prepare(channel, &name, plan.text, &plan.types)?);
            self.names.push(name);
            self.guards.push(plan.guards);
        }
        Ok(())
    }

    fn version(&mut self, channel: &mut Channel) -> Result<String, DatabaseError> {
        let rows = self.inner.query(channel, "SELECT build()")?;
        let build = rows.into_iter().flatten().flatten().next().ok_or_else(|| broken("it has no version"))?;
        Ok(settings::version(&build))
    }

    fn create_table(&mut self, channel: &mut Channel, table: &Table) -> Result<(), DatabaseError> {
        tables::create(channel, &mut self.inner, table)
    }

    fn drop_table(&mut self, channel: &mut Channel, table: &str) -> Result<(), DatabaseError> {
        tables::remove(channel, &mut self.inner, table)
    }

    fn count_rows(&mut self, channel: &mut Channel, table: &str) -> Result<Option<u64>, DatabaseError> {
        tables::count(channel, &mut self.inner, table).map(Some)
    }

    fn sum_column(&mut self, channel: &mut Channel, table: &str, column: &str) -> Result<Option<u64>, DatabaseError> {
        tables::sum(channel, &mut self.inner, table, column).map(Some)
    }

    fn table_bytes(&mut self, channel: &mut Channel, tables: &[&str]) -> Option<u64> {
        tables::bytes(channel, &mut self.inner, tables)
    }

    fn ask(&mut self, channel: &mut Channel, question: &str) -> Result<Option<String>, DatabaseError> {
        settings::value(channel, &mut self.inner, question)
    }
}

#[cfg(test)]
mod tests;
