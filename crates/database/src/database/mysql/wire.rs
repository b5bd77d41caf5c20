//! The hot path: requests over prepared statements as a state machine. Main type: [`MySqlWire`].
//!
//! One statement in one command commits by itself. Anything more is a transaction: BEGIN, each command and COMMIT wait for the
//! answer to the one before, and COMMIT is sent only when everything succeeded. Where the program asks for pipelining, BEGIN is sent together
//! with the first command; nothing else can be, because the server continues after a command that failed.
//!
//! Invariant: after an outcome other than a loss the connection is idle, outside of any transaction.

use std::os::fd::{AsRawFd, RawFd};

use super::decode::{self, ColumnType};
use super::dialect::{Engine, MySqlLiterals};
use super::handshake::Abilities;
use super::packet::{self, Message};
use super::program::Prepared;
use super::response::{Event, Response, error, out_of_step};
use crate::database::carrying::Carrying;
use crate::database::session::{Attempt, Before};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Progress, Unasked, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Miscount, Request};

/// The maximum bytes of a command of many rows, even where the server would take more, to bound the memory of the client.
const COMMAND_BYTES_MAX: usize = 4 << 20;
const ERROR: u8 = 0xff;
const PING: u8 = 0x0e;
const QUERY: u8 = 0x03;

/// A connection with a prepared program.
#[derive(Debug)]
pub struct MySqlWire {
    socket: Socket,
    pub(super) abilities: Abilities,
    pub(super) engine: Engine,
    command_bytes_max: usize,
    pub(super) statements: Vec<Prepared>,
    kept: Option<Cells>,
    carrying: Carrying,
    /// True if BEGIN is sent together with the first command.
    pub(super) pipelines: bool,
    /// The part of a dry run that the request is; `None` outside a dry run.
    pub(super) dry_run: Option<Attempt>,
    /// The first command of a transaction until its BEGIN is answered; its memory is reused.
    held: Vec<u8>,
    run: Run,
}

/// The running request.
#[derive(Debug)]
struct Run {
    /// The index of the step in the request.
    step: usize,
    /// The number of rows of the step that were sent.
    sent: u32,
    /// The index of the statement's size that was sent last.
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
    Nothing,
    Begin,
    Statement,
    Commit,
    Rollback,
}

type Outcome = Result<Answer, DatabaseError>;

impl MySqlWire {
    /// Creates a wire over a connection that is logged in and idle.
    pub(super) fn new(socket: Socket, abilities: Abilities, engine: Engine) -> Self {
        let run = Run::new(abilities);
        let (statements, kept, held, pipelines) = (Vec::new(), None, Vec::new(), false);
        let command_bytes_max = COMMAND_BYTES_MAX;
        MySqlWire {
            socket,
            abilities,
            engine,
            command_bytes_max,
            statements,
            kept,
            carrying: Carrying::default(),
            pipelines,
            dry_run: None,
            held,
            run,
        }
    }

    /// Keeps commands of many rows below the length that the server accepts.
    pub(super) fn set_packet_bytes_max(&mut self, bytes: usize) {
        self.command_bytes_max = bytes.saturating_sub(1024).clamp(1024, COMMAND_BYTES_MAX);
    }

    /// Appends the command for the next rows of the step. Returns whether all rows of the step are sent.
    #[inline]
    fn send_rows(&mut self, request: &Request, out: &mut Vec<u8>) -> bool {
        let (run, values) = (&mut self.run, self.carrying.values(request));
        let step = &request.steps[run.step];
        let statement = &mut self.statements[usize::from(step.statement)];
        let left = step.rows.saturating_sub(run.sent).max(1);
        let first = step.first_cell as usize + run.sent as usize * statement.columns;
        if statement.text.is_some() {
            self.send_text(request, out);
        } else if statement.bulk && left > 1 {
            run.size = statement.sizes.len() - 1;
            run.sent += statement.sizes[run.size].execute_bulk(values, first, left, self.command_bytes_max, out);
        } else {
            let at = out.len();
            run.size = statement.size_for(left, None);
            statement.sizes[run.size].execute(values, first, out);
            while out.len() - at > self.command_bytes_max && run.size + 1 < statement.sizes.len() {
                // The discarded command may have contained the types, so the server has not received them.
                statement.sizes[run.size].forget_types();
                out.truncate(at);
                run.size = statement.size_for(left, Some(run.size));
                statement.sizes[run.size].execute(values, first, out);
            }
            run.sent += statement.sizes[run.size].rows;
        }
        self.run.awaiting = Awaiting::Statement;
        self.run.sent >= step.rows
    }

    /// Appends the text for the next rows of the step.
    fn send_text(&mut self, request: &Request, out: &mut Vec<u8>) {
        let (run, values) = (&mut self.run, self.carrying.values(request));
        let step = &request.steps[run.step];
        let statement = &self.statements[usize::from(step.statement)];
        let Some(text) = &statement.text else { return };
        let first = step.first_cell as usize + run.sent as usize * statement.columns;
        let left = step.rows.saturating_sub(run.sent).max(1);
        let at = packet::begin(out);
        out.push(QUERY);
        // Every value can be written, so at least one row is taken.
        let taken = text.append::<MySqlLiterals>(values, first, left, self.command_bytes_max, out);
        packet::end(out, at, 0);
        run.size = 0;
        run.sent += taken.unwrap_or(left);
    }

    #[inline]
    fn take(&mut self, request: &Request, message: Message<'_>, out: &mut Vec<u8>) -> Option<Outcome> {
        match self.run.response.take(message.first(), message.is_long()) {
            Event::Row => {
                self.run.rows += 1;
                if self.kept.is_some() || self.needs_row(request) { self.keep(request, message) } else { None }
            }
            Event::KnownTable | Event::Nothing | Event::EndedWithMore => None,
            Event::Ended => self.ended(request, out),
            Event::Table => {
                self.columns(request).map(Vec::clear);
                None
            }
            Event::Column if self.kept.is_some() || self.needs_row(request) => self.define(request, message),
            Event::Column if self.abilities.caches_metadata && !self.is_text(request) => self.define(request, message),
            Event::Column => None,
            Event::Failed => self.failed(request, error(message.first()), out),
            Event::OutOfStep => Some(Err(out_of_step("something else"))),
        }
    }

    /// Stores the definition of a column: servers that cache definitions do not send them again.
    #[cold]
    fn define(&mut self, request: &Request, message: Message<'_>) -> Option<Outcome> {
        match (self.columns(request), ColumnType::from_definition(&message.payload())) {
            (Some(columns), Some(column)) => columns.push(column),
            _ => return Some(Err(out_of_step("a cut-off column"))),
        }
        None
    }

    /// Returns whether a later step needs a row that the running statement reads.
    #[inline]
    fn needs_row(&self, request: &Request) -> bool {
        self.run.awaiting == Awaiting::Statement && Carrying::is_needed(request, self.run.step)
    }

    /// Returns whether the running statement was sent as text.
    fn is_text(&self, request: &Request) -> bool {
        let statement =
            request.steps.get(self.run.step).and_then(|step| self.statements.get(usize::from(step.statement)));
        statement.is_some_and(|statement| statement.text.is_some())
    }

    /// Returns the columns of the running statement; `None` for other commands.
    fn columns(&mut self, request: &Request) -> Option<&mut Vec<ColumnType>> {
        if self.run.awaiting != Awaiting::Statement {
            return None;
        }
        let statement = usize::from(request.steps.get(self.run.step)?.statement);
        Some(&mut self.statements.get_mut(statement)?.sizes.get_mut(self.run.size)?.answer)
    }

    fn keep(&mut self, request: &Request, message: Message<'_>) -> Option<Outcome> {
        let read_row = if self.is_text(request) { decode::text_row } else { decode::row };
        let payload = message.payload();
        let mut is_read = true;
        if let Some(mut kept) = self.kept.take() {
            is_read = self.columns(request).and_then(|columns| read_row(&payload, columns, &mut kept)).is_some();
            self.kept = Some(kept);
        }
        if self.needs_row(request) {
            let columns = self.columns(request).map(std::mem::take).unwrap_or_default();
            if let Some(row) = self.carrying.first_row(request, self.run.step) {
                is_read &= read_row(&payload, &columns, row).is_some();
            }
            if let Some(own) = self.columns(request) {
                *own = columns;
            }
        }
        if is_read { None } else { Some(Err(out_of_step("a row that does not fit its columns"))) }
    }

    /// Handles a command's success.
    #[inline]
    fn ended(&mut self, request: &Request, out: &mut Vec<u8>) -> Option<Outcome> {
        match self.run.awaiting {
            Awaiting::Begin => {
                self.run.awaiting = Awaiting::Statement;
                self.run.response = Response::new(self.abilities.deprecates_eof);
                out.append(&mut self.held);
                None
            }
            Awaiting::Statement => self.statement_ended(request, out),
            Awaiting::Commit => Some(Ok(self.run.answer)),
            Awaiting::Rollback => Some(Err(self.run.failure.take().unwrap_or_else(|| out_of_step("a rollback")))),
            Awaiting::Nothing => Some(Err(out_of_step("an answer"))),
        }
    }

    fn statement_ended(&mut self, request: &Request, out: &mut Vec<u8>) -> Option<Outcome> {
        let run = &mut self.run;
        // The server may say any number.
        run.changed = run.changed.saturating_add(run.response.changed());
        run.response = Response::new(self.abilities.deprecates_eof);
        let step = &request.steps[run.step];
        if run.sent < step.rows {
            self.send_rows(request, out);
            return None;
        }
        run.answer.rows = run.answer.rows.saturating_add(run.rows);
        run.answer.changed = run.answer.changed.saturating_add(run.changed);
        if step.expect == Expect::Rows && run.rows == 0 {
            run.answer.empty += 1;
        }
        if let Some(miscount) = step.expect.miscount(run.rows, run.changed) {
            let statement = Some(self.statements[usize::from(step.statement)].name.to_string());
            return self.undo(DatabaseError::Miscounted(Box::new(Miscount { statement, ..miscount })), out);
        }
        if let Err(error) = self.carrying.hand_on(request, run.step) {
            return self.undo(error, out);
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

    /// Handles a command's error.
    #[cold]
    fn failed(&mut self, request: &Request, error: DatabaseError, out: &mut Vec<u8>) -> Option<Outcome> {
        if matches!(error, DatabaseError::Lost(_)) {
            return Some(Err(error));
        }
        self.run.response = Response::new(self.abilities.deprecates_eof);
        match self.run.awaiting {
            // After a failed BEGIN, the statement may already be sent and would commit by itself.
            Awaiting::Begin | Awaiting::Rollback | Awaiting::Nothing => {
                Some(Err(DatabaseError::Lost(error.to_string())))
            }
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

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.run.begin(self.abilities);
        self.carrying.begin(request);
        self.held.clear();
        if request.steps.is_empty() {
            // A request without steps still takes a round trip, as any request does.
            packet::command(out, PING, &[]);
            self.run.awaiting = Awaiting::Commit;
            return;
        }
        let at = out.len();
        if self.dry_run.is_some_and(|part| part.is_of_many) {
            // It is not known yet whether the server has received the types with the request before.
            let statement = self.statements.get_mut(usize::from(request.steps[0].statement));
            statement.into_iter().flat_map(|one| &mut one.sizes).for_each(|size| size.forget_types());
        }
        let all_sent = self.send_rows(request, out);
        // A request sent with others is a single command, which undoes itself where it is refused.
        let text = self.dry_run.and_then(|part| match part.before {
            Before::Undone => Some("ROLLBACK TO SAVEPOINT attempt"),
            // A new savepoint replaces the one of its name.
            Before::Kept | Before::AsAnswered => (!part.is_of_many).then_some("SAVEPOINT attempt"),
        });
        if let Some(text) = text {
            self.held.extend(out.drain(at..));
            packet::query(out, text);
            out.append(&mut self.held);
            self.run.awaiting = Awaiting::Begin;
        } else if self.dry_run.is_none() && self.engine.has_transactions() && (request.steps.len() > 1 || !all_sent) {
            // Only now is it known whether one command takes all rows; BEGIN goes in front of it.
            self.held.extend(out.drain(at..));
            packet::query(out, "BEGIN");
            if self.pipelines {
                out.append(&mut self.held);
            }
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
                self.run.awaiting = Awaiting::Nothing;
                return Progress { consumed, outcome };
            }
        }
        Progress { consumed, outcome: None }
    }

    /// A server that closes an idle connection sends the reason first.
    fn unasked(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<usize, Unasked> {
        match Message::at_front_of(input) {
            None => Ok(0),
            Some(message) if message.first().first() == Some(&ERROR) => Err(Unasked::Ended),
            Some(_) => Err(Unasked::Wrong),
        }
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
            awaiting: Awaiting::Nothing,
            in_transaction: false,
            response: Response::new(abilities.deprecates_eof),
            answer: Answer::default(),
            rows: 0,
            changed: 0,
            failure: None,
        }
    }

    /// Resets the state of the last request, field by field: this is done for every operation.
    #[inline]
    fn begin(&mut self, abilities: Abilities) {
        (self.step, self.sent, self.rows, self.changed) = (0, 0, 0, 0);
        self.in_transaction = false;
        self.response = Response::new(abilities.deprecates_eof);
        self.answer = Answer::default();
        if self.failure.is_some() {
            self.failure = None;
        }
    }
}

#[cfg(test)]
mod tests;
