//! The hot path: requests over prepared statements as a state machine. The main type is [`MySqlWire`].
//!
//! One statement in one command commits by itself. Anything more is a transaction: BEGIN travels together with the first
//! command, each further command waits for the answer to the one before, and COMMIT is sent only when all went well.
//!
//! Invariant: after an outcome other than a loss the connection is idle, outside of any transaction.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::decode::{self, ColumnType};
use super::dialect::Engine;
use super::handshake::Abilities;
use super::packet::{self, Message};
use super::program::Prepared;
use super::response::{Event, Response, out_of_step};
use crate::database::{Answer, DatabaseError, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Request};

/// Longer commands of many rows are divided even where the server would take them, to bound the memory of the client.
const COMMAND_BYTES_MAX: usize = 4 << 20;
const PING: u8 = 0x0e;

/// A connection with the program that it has prepared.
#[derive(Debug)]
pub struct MySqlWire {
    socket: OwnedFd,
    pub(super) abilities: Abilities,
    pub(super) engine: Engine,
    command_bytes_max: usize,
    pub(super) statements: Vec<Prepared>,
    kept: Option<Cells>,
    run: Run,
}

/// The request that is running.
#[derive(Debug)]
struct Run {
    /// Place among the request's steps.
    step: usize,
    /// Rows of the step that were sent.
    sent: u32,
    /// Place of the size of the statement that was sent last.
    size: usize,
    awaiting: Awaiting,
    in_transaction: bool,
    response: Response,
    answer: Answer,
    rows: u64,
    changed: u64,
    failure: Option<DatabaseError>,
}

/// The command whose answer comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaiting {
    Begin,
    Statement,
    Commit,
    Rollback,
}

type Outcome = Result<Answer, DatabaseError>;

impl MySqlWire {
    /// A connection that is logged in and idle.
    pub(super) fn new(socket: OwnedFd, abilities: Abilities, engine: Engine) -> Self {
        let run = Run::new(abilities);
        let (statements, kept) = (Vec::new(), None);
        MySqlWire { socket, abilities, engine, command_bytes_max: COMMAND_BYTES_MAX, statements, kept, run }
    }

    /// Keeps commands of many rows below the length that the server takes.
    pub(super) fn set_packet_bytes_max(&mut self, bytes: usize) {
        self.command_bytes_max = bytes.saturating_sub(1024).clamp(1024, COMMAND_BYTES_MAX);
    }

    /// Appends the command for the next rows of the step. Whether the step's rows are all sent.
    fn send_rows(&mut self, request: &Request, out: &mut Vec<u8>) -> bool {
        let run = &mut self.run;
        let step = &request.steps[run.step];
        let statement = &mut self.statements[usize::from(step.statement)];
        let left = step.rows.saturating_sub(run.sent).max(1);
        let first = step.first_cell as usize + run.sent as usize * statement.columns;
        if statement.bulk && left > 1 {
            run.size = statement.sizes.len() - 1;
            run.sent +=
                statement.sizes[run.size].execute_bulk(&request.cells, first, left, self.command_bytes_max, out);
        } else {
            let at = out.len();
            run.size = statement.size_for(left, None);
            statement.sizes[run.size].execute(&request.cells, first, out);
            while out.len() - at > self.command_bytes_max && run.size + 1 < statement.sizes.len() {
                // What was written may have told the types, and is not sent.
                statement.sizes[run.size].forget_types();
                out.truncate(at);
                run.size = statement.size_for(left, Some(run.size));
                statement.sizes[run.size].execute(&request.cells, first, out);
            }
            run.sent += statement.sizes[run.size].rows;
        }
        run.awaiting = Awaiting::Statement;
        run.sent >= step.rows
    }

    fn take(&mut self, request: &Request, message: Message<'_>, out: &mut Vec<u8>) -> Option<Outcome> {
        let event = match self.run.response.take(message.first(), message.is_long()) {
            Ok(event) => event,
            Err(lost) => return Some(Err(lost)),
        };
        match event {
            Event::Row => {
                self.run.rows += 1;
                if self.kept.is_some() { self.keep(request, message) } else { None }
            }
            Event::Nothing => None,
            Event::Table { defined } => {
                if defined && self.knows_columns() {
                    self.columns(request).clear();
                }
                None
            }
            Event::Column if self.knows_columns() => match ColumnType::from_definition(&message.payload()) {
                Some(column) => {
                    self.columns(request).push(column);
                    None
                }
                None => Some(Err(out_of_step("a cut-off column"))),
            },
            Event::Column => None,
            Event::Ended { changed, more } => {
                self.run.changed += changed;
                if more { None } else { self.ended(request, out) }
            }
            Event::Failed(error) => self.failed(request, error, out),
        }
    }

    /// Whether the columns of answers are to be remembered: they are not defined again by servers that cache them.
    fn knows_columns(&self) -> bool {
        self.abilities.caches_metadata || self.kept.is_some()
    }

    fn columns(&mut self, request: &Request) -> &mut Vec<ColumnType> {
        let statement = usize::from(request.steps[self.run.step].statement);
        &mut self.statements[statement].sizes[self.run.size].answer
    }

    #[cold]
    fn keep(&mut self, request: &Request, message: Message<'_>) -> Option<Outcome> {
        let statement = usize::from(request.steps.get(self.run.step)?.statement);
        let columns = &self.statements[statement].sizes[self.run.size].answer;
        match decode::row(&message.payload(), columns, self.kept.as_mut()?) {
            Some(()) => None,
            None => Some(Err(out_of_step("a row that does not fit its columns"))),
        }
    }

    /// A command was answered well.
    fn ended(&mut self, request: &Request, out: &mut Vec<u8>) -> Option<Outcome> {
        match self.run.awaiting {
            Awaiting::Begin => {
                self.run.awaiting = Awaiting::Statement;
                None
            }
            Awaiting::Statement => self.statement_ended(request, out),
            Awaiting::Commit => Some(Ok(self.run.answer)),
            Awaiting::Rollback => Some(Err(self.run.failure.take().unwrap_or_else(|| out_of_step("a rollback")))),
        }
    }

    fn statement_ended(&mut self, request: &Request, out: &mut Vec<u8>) -> Option<Outcome> {
        let run = &mut self.run;
        let step = &request.steps[run.step];
        if run.sent < step.rows {
            self.send_rows(request, out);
            return None;
        }
        run.answer.rows += run.rows;
        run.answer.changed += run.changed;
        match step.expect {
            Expect::Rows if run.rows == 0 => run.answer.empty += 1,
            Expect::Changed(right) if run.changed != right => {
                let name = &self.statements[usize::from(step.statement)].name;
                let message = format!("{name} changed {} rows instead of {right}", run.changed);
                return self.undo(DatabaseError::refused("rows", message), out);
            }
            _ => {}
        }
        (run.step, run.sent, run.rows, run.changed) = (run.step + 1, 0, 0, 0);
        if run.step < request.steps.len() {
            self.send_rows(request, out);
            None
        } else if run.in_transaction {
            packet::query(out, "COMMIT");
            run.awaiting = Awaiting::Commit;
            None
        } else {
            Some(Ok(run.answer))
        }
    }

    /// A command was answered with an error.
    #[cold]
    fn failed(&mut self, request: &Request, error: DatabaseError, out: &mut Vec<u8>) -> Option<Outcome> {
        if matches!(error, DatabaseError::Lost(_)) {
            return Some(Err(error));
        }
        self.run.response = Response::new(self.abilities.deprecates_eof);
        match self.run.awaiting {
            // The statement behind it is on its way and would stand for itself.
            Awaiting::Begin | Awaiting::Rollback => Some(Err(DatabaseError::Lost(error.to_string()))),
            Awaiting::Commit => self.undo(error, out),
            Awaiting::Statement => {
                let statement = usize::from(request.steps[self.run.step].statement);
                self.statements[statement].sizes[self.run.size].forget_types();
                self.undo(error, out)
            }
        }
    }

    fn undo(&mut self, error: DatabaseError, out: &mut Vec<u8>) -> Option<Outcome> {
        if !self.run.in_transaction {
            return Some(Err(error));
        }
        packet::query(out, "ROLLBACK");
        self.run.awaiting = Awaiting::Rollback;
        self.run.failure = Some(error);
        None
    }
}

impl Wire for MySqlWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.run = Run::new(self.abilities);
        if request.steps.is_empty() {
            // Nothing to do still takes a round trip, as any request does.
            packet::command(out, PING, &[]);
            self.run.awaiting = Awaiting::Commit;
            return;
        }
        let at = out.len();
        let all_sent = self.send_rows(request, out);
        if self.engine.has_transactions() && (request.steps.len() > 1 || !all_sent) {
            // Only now is it known whether one command takes all rows; BEGIN goes in front of it.
            let command = out.len();
            packet::query(out, "BEGIN");
            let begin = out.len() - command;
            out[at..].rotate_right(begin);
            self.run.in_transaction = true;
            self.run.awaiting = Awaiting::Begin;
        }
    }

    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let mut consumed = 0;
        while let Some(message) = Message::at_front_of(&input[consumed..]) {
            consumed += message.length();
            let outcome = self.take(request, message, out);
            if outcome.is_some() {
                return Progress { consumed, outcome };
            }
        }
        Progress { consumed, outcome: None }
    }

    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells> {
        std::mem::replace(&mut self.kept, rows)
    }
}

impl Run {
    fn new(abilities: Abilities) -> Self {
        Run {
            step: 0,
            sent: 0,
            size: 0,
            awaiting: Awaiting::Statement,
            in_transaction: false,
            response: Response::new(abilities.deprecates_eof),
            answer: Answer::default(),
            rows: 0,
            changed: 0,
            failure: None,
        }
    }
}
