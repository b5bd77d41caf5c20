//! A connection to PostgreSQL as a state machine. Main type: [`PostgresWire`].
//!
//! A request of one step is one statement that commits by itself, in one round trip. A request of several steps goes as applications
//! send it: BEGIN, each step and COMMIT, each in a round trip of its own; after any failure, ROLLBACK undoes all of it.
//!
//! A program may ask for pipelining instead: then all steps leave together and one Sync ends them, which makes them one
//! transaction and one round trip. If such a request has a step that must change a stated number of rows and may miss it, the Sync is
//! withheld (a Flush asks for the counts) until the counts are known, and a ROLLBACK precedes it when they are wrong. Inserts are
//! assumed to store as many rows as they were given or to fail: a table whose rules or triggers drop rows fails the operation, but
//! what its other steps stored stays. The Sync of a single-step request is never withheld: an update that changed no row has
//! nothing to undo; one that changed more rows than it should fails, and its error says that the rows stay changed.
//!
//! Invariant: an outcome is given only at ReadyForQuery, when the transaction's fate is settled, or when the connection is lost.

use std::os::fd::{AsRawFd, RawFd};

use super::decode::{append_row, append_text_row};
use super::encode::Encoding;
use super::message::{self, COPY_FAIL_AND_SYNC, EXECUTE, FLUSH, Message, SYNC, ServerError, broken, column_types};
use super::prepared::Prepared;
use crate::database::carrying::Carrying;
use crate::database::session::{Attempt, Before};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Progress, Unasked, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Miscount, Request, Step};

/// A connection with the statements prepared on it.
#[derive(Debug)]
pub struct PostgresWire {
    socket: Socket,
    pub(in crate::database) statements: Vec<Prepared>,
    /// True if all steps of a request are sent together.
    pub(in crate::database) pipelines: bool,
    /// The part of a dry run that the request is; `None` outside a dry run.
    pub(super) dry_run: Option<Attempt>,
    rows: Option<Cells>,
    carrying: Carrying,
    /// The encodings of the columns of a statement sent as text, if its rows are read.
    described: Vec<Encoding>,
    running: Running,
    /// The number of notifications since the count was last taken.
    pub(super) notices: u32,
}

/// The progress of the request.
#[derive(Debug, Default)]
struct Running {
    answer: Answer,
    failure: Option<DatabaseError>,
    awaiting: Awaiting,
    /// The index of the step whose answer is awaited.
    step: usize,
    /// The number of executions of this step that have not completed.
    completions: u32,
    /// The numbers of rows that this step has read and changed so far.
    rows: u64,
    changed: u64,
    /// The number of commands around the steps that have not completed; [`KEEPS`] are those behind the steps.
    around: u32,
    /// True if the Sync has not been sent yet.
    is_withheld: bool,
}

/// The part of the request that the next ReadyForQuery ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Awaiting {
    /// The whole request, which was sent in one go.
    #[default]
    Request,
    /// The commands in front of an attempt, which is already sent behind them.
    Before,
    /// The BEGIN of a transaction.
    Begin,
    /// The step with this index.
    Step(usize),
    /// The COMMIT behind the last step.
    Commit,
    /// The ROLLBACK of a transaction that failed.
    Rollback,
}

impl PostgresWire {
    /// Creates a wire over a connection that is ready for its first statement.
    pub fn new(socket: Socket) -> Self {
        PostgresWire {
            socket,
            statements: Vec::new(),
            pipelines: false,
            dry_run: None,
            rows: None,
            carrying: Carrying::default(),
            described: Vec::new(),
            running: Running::default(),
            notices: 0,
        }
    }

    /// Begins a request of which nothing is sent: the answer to a Sync reports the refusal.
    pub(in crate::database) fn refuse(&mut self, request: &Request, error: DatabaseError, out: &mut Vec<u8>) {
        self.running = Running { failure: Some(error), step: request.steps.len(), ..Running::default() };
        out.extend_from_slice(&SYNC);
    }

    /// Appends the commands in front of the steps of a part of a dry run.
    fn start_attempt(&mut self, part: Attempt, out: &mut Vec<u8>) {
        let text = match part.before {
            // If the previous attempt was refused, it made no later savepoint; if it succeeded, nothing follows its own savepoint.
            Before::AsAnswered => {
                append_command(UNDO, out);
                self.running.around = 1;
                return;
            }
            Before::Kept => &KEEPS.join("; "),
            Before::Undone => UNDO,
        };
        message::write(out, b'Q', |out| message::write_text(out, text));
        self.running.awaiting = Awaiting::Before;
    }

    fn append_steps(&self, request: &Request, steps: &[Step], out: &mut Vec<u8>) -> Result<(), DatabaseError> {
        for step in steps {
            let statement = self.statements.get(usize::from(step.statement)).ok_or_else(|| {
                let prepared = self.statements.len();
                DatabaseError::refused("26000", format!("statement {} of {prepared} is not prepared", step.statement))
            })?;
            statement.append(step.rows as usize, step.first_cell as usize, self.carrying.values(request), out)?;
        }
        Ok(())
    }

    /// Returns whether counts must be known before the transaction may be committed.
    fn must_withhold(&self, request: &Request) -> bool {
        request.steps.len() > 1
            && request.steps.iter().any(|step| {
                matches!(step.expect, Expect::Changed(_) | Expect::ChangedSome)
                    && self.statements[usize::from(step.statement)].can_miss()
            })
    }

    /// Advances to the first step with executions to complete, at or behind the current one.
    fn await_step(&mut self, request: &Request) {
        let running = &mut self.running;
        running.completions = 0;
        while let Some(step) = request.steps.get(running.step) {
            running.completions = self.statements[usize::from(step.statement)].completions(step.rows);
            if running.completions > 0 {
                break;
            }
            running.step += 1;
        }
    }

    /// Takes in one message. Returns the outcome when it was the last.
    #[inline]
    fn take(
        &mut self,
        request: &Request,
        message: Message<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Result<Answer, DatabaseError>> {
        match message.tag {
            b'D' => return self.take_row(request, message.body).err().map(Err),
            b'C' if self.is_between_steps() => {}
            b'C' if self.is_around_steps(request) => self.running.around -= 1,
            b'C' => return self.complete(request, message.body, out).err().map(Err),
            b'Z' => return self.ready(request, out),
            b'I' => return self.complete(request, b"", out).err().map(Err),
            b'E' => {
                let error = ServerError::read(message.body);
                let is_fatal = error.is_fatal();
                let error = DatabaseError::from(error);
                if is_fatal {
                    return Some(Err(error));
                }
                self.running.failure.get_or_insert(error);
                self.release(out, &[]);
            }
            b'G' if self.is_stuck_in_copy(request) => {
                self.running.is_withheld = false;
                out.extend_from_slice(&COPY_FAIL_AND_SYNC);
            }
            b'A' => self.notices += 1,
            b'T' | b'n' if self.is_text(request) => return self.describe(request, message).err().map(Err),
            // Parse or Bind is complete; a COPY begins, in or out; a COPY out continues and ends; or an unasked message.
            b'1' | b'2' | b'G' | b'H' | b'd' | b'c' | b'N' | b'S' => {}
            tag => return Some(Err(broken(&format!("it answers an execution with {tag:#04x}")))),
        }
        None
    }

    /// Returns whether BEGIN, COMMIT, ROLLBACK or a savepoint command is in progress.
    #[inline]
    fn is_between_steps(&self) -> bool {
        matches!(self.running.awaiting, Awaiting::Before | Awaiting::Begin | Awaiting::Commit | Awaiting::Rollback)
    }

    /// Returns whether the completed command is one of those in front of and behind the steps of an attempt sent together with others.
    fn is_around_steps(&self, request: &Request) -> bool {
        let running = &self.running;
        running.around > KEEPS.len() as u32 || running.around > 0 && running.step >= request.steps.len()
    }

    /// Handles ReadyForQuery: returns the outcome, or sends the next part of a transaction that goes statement by statement.
    #[inline]
    fn ready(&mut self, request: &Request, out: &mut Vec<u8>) -> Option<Result<Answer, DatabaseError>> {
        match self.running.awaiting {
            Awaiting::Request => return Some(self.finish(request)),
            Awaiting::Before => self.running.awaiting = Awaiting::Request,
            Awaiting::Begin | Awaiting::Step(_) if self.running.failure.is_some() => self.roll_back(out),
            Awaiting::Step(step) if self.running.step <= step => {
                return Some(Err(broken("it is ready before the statement is complete")));
            }
            Awaiting::Begin | Awaiting::Step(_) => self.send_next(request, out),
            Awaiting::Commit => return Some(self.running.failure.take().map_or(Ok(self.running.answer), Err)),
            Awaiting::Rollback => {
                let failure = self.running.failure.take();
                return Some(Err(failure.unwrap_or_else(|| broken("it rolls back what did not fail"))));
            }
        }
        None
    }

    /// Sends the next step of a transaction, or COMMIT after the last one.
    fn send_next(&mut self, request: &Request, out: &mut Vec<u8>) {
        let (next, start) = (self.running.step, out.len());
        let Some(step) = request.steps.get(next..next + 1) else {
            message::write(out, b'Q', |out| message::write_text(out, "COMMIT"));
            self.running.awaiting = Awaiting::Commit;
            return;
        };
        if let Err(error) = self.append_steps(request, step, out) {
            out.truncate(start);
            self.running.failure = Some(error);
            return self.roll_back(out);
        }
        out.extend_from_slice(&SYNC);
        self.running.awaiting = Awaiting::Step(next);
    }

    fn roll_back(&mut self, out: &mut Vec<u8>) {
        message::write(out, b'Q', |out| message::write_text(out, "ROLLBACK"));
        self.running.awaiting = Awaiting::Rollback;
    }

    /// Returns whether the step whose answer is awaited was sent as text.
    fn is_text(&self, request: &Request) -> bool {
        let statement = request.steps.get(self.running.step).map(|step| &self.statements[usize::from(step.statement)]);
        statement.is_some_and(Prepared::is_text)
    }

    /// Takes in the description of the columns of a statement sent as text.
    fn describe(&mut self, request: &Request, message: Message<'_>) -> Result<(), DatabaseError> {
        self.described.clear();
        let is_read = self.rows.is_some() || Carrying::is_needed(request, self.running.step);
        if is_read && message.tag == b'T' {
            let types = column_types(message.body).ok_or_else(|| broken("a description of columns is malformed"))?;
            self.described.extend(types.into_iter().map(Encoding::of));
        }
        Ok(())
    }

    #[inline]
    fn take_row(&mut self, request: &Request, body: &[u8]) -> Result<(), DatabaseError> {
        self.running.rows += 1;
        let carried = self.carrying.first_row(request, self.running.step);
        if self.rows.is_none() && carried.is_none() {
            return Ok(());
        }
        let step = request.steps.get(self.running.step);
        let statement = step.map(|step| &self.statements[usize::from(step.statement)]);
        for cells in self.rows.as_mut().into_iter().chain(carried) {
            let appended = if statement.is_some_and(Prepared::is_text) {
                append_text_row(&self.described, body, cells)
            } else {
                append_row(statement.map_or(&[][..], Prepared::columns), body, cells)
            };
            appended.ok_or_else(|| broken("a row has another shape than was announced"))?;
        }
        Ok(())
    }

    /// Handles the completion of one execution.
    #[inline]
    fn complete(&mut self, request: &Request, tag: &[u8], out: &mut Vec<u8>) -> Result<(), DatabaseError> {
        let Some(step) = request.steps.get(self.running.step) else {
            // Nothing is expected any more but the end of a ROLLBACK.
            return if self.running.failure.is_some() {
                Ok(())
            } else {
                Err(broken("it completes more than was asked"))
            };
        };
        // The server may say any number.
        self.running.changed = self.running.changed.saturating_add(changed_rows(tag));
        self.running.completions = self.running.completions.saturating_sub(1);
        if self.running.completions > 0 {
            return Ok(());
        }
        self.judge(step.expect, request);
        if let Err(error) = self.carrying.hand_on(request, self.running.step) {
            self.running.failure.get_or_insert(error);
        }
        self.running.step += 1;
        self.await_step(request);
        if self.running.step == request.steps.len() && self.running.is_withheld {
            let rollback = if self.running.failure.is_some() { &ROLLBACK[..] } else { &[] };
            self.release(out, rollback);
        }
        Ok(())
    }

    /// Compares the counts of a step with those expected of it and adds them to the answer.
    #[inline]
    fn judge(&mut self, expect: Expect, request: &Request) {
        let running = &mut self.running;
        let (rows, changed) = (std::mem::take(&mut running.rows), std::mem::take(&mut running.changed));
        running.answer.rows = running.answer.rows.saturating_add(rows);
        running.answer.changed = running.answer.changed.saturating_add(changed);
        if expect == Expect::Rows {
            running.answer.empty += u32::from(rows == 0);
        }
        if let Some(miscount) = expect.miscount(rows, changed) {
            let is_undone = self.running.awaiting != Awaiting::Request || self.must_withhold(request);
            let stays = miscount.is_of_changes && changed > 0 && !is_undone;
            let failure = DatabaseError::Miscounted(Box::new(Miscount { stays, ..miscount }));
            self.running.failure.get_or_insert(failure);
        }
    }

    /// Appends `before` and the withheld Sync, if the Sync was withheld.
    fn release(&mut self, out: &mut Vec<u8>, before: &[u8]) {
        if std::mem::take(&mut self.running.is_withheld) {
            out.extend_from_slice(before);
            out.extend_from_slice(&SYNC);
        }
    }

    #[inline]
    fn finish(&mut self, request: &Request) -> Result<Answer, DatabaseError> {
        if let Some(failure) = self.running.failure.take() {
            return Err(failure);
        }
        if self.running.step < request.steps.len() || self.running.around > 0 || self.running.is_withheld {
            return Err(broken("it is ready before all steps are complete"));
        }
        Ok(self.running.answer)
    }

    /// Returns whether the server waits for the data of a study's own COPY, for which there is no data. A Sync or Flush behind it was
    /// taken for a part of the COPY; any other message would have ended it.
    fn is_stuck_in_copy(&self, request: &Request) -> bool {
        request.steps.get(self.running.step).is_some_and(|step| {
            let is_ours = self.statements[usize::from(step.statement)].is_copied(step.rows as usize);
            let is_alone = self.running.awaiting != Awaiting::Request;
            let is_last = is_alone || self.running.step + 1 == request.steps.len();
            !is_ours && is_last && self.running.completions <= 1
        })
    }
}

/// The statement that undoes the refused part of a dry run.
const UNDO: &str = "ROLLBACK TO SAVEPOINT attempt";
/// The statements that keep the successful part of a dry run.
const KEEPS: [&str; 2] = ["RELEASE SAVEPOINT attempt", "SAVEPOINT attempt"];

/// Appends Parse, Bind and Execute of a command without parameters.
fn append_command(text: &str, out: &mut Vec<u8>) {
    message::write(out, b'P', |out| {
        out.push(0);
        message::write_text(out, text);
        out.extend_from_slice(&[0; 2]);
    });
    message::write(out, b'B', |out| out.extend_from_slice(&[0; 8]));
    out.extend_from_slice(&EXECUTE);
}

/// Parse, Bind and Execute of a ROLLBACK.
static ROLLBACK: [u8; 40] = *b"P\0\0\0\x10\0ROLLBACK\0\0\0B\0\0\0\x0c\0\0\0\0\0\0\0\0E\0\0\0\x09\0\0\0\0\0";
const _: () = assert!(ROLLBACK.len() == 17 + 13 + EXECUTE.len());

impl Wire for PostgresWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.running = Running::default();
        self.carrying.begin(request);
        if let Some(part) = self.dry_run {
            self.start_attempt(part, out);
        }
        let start = out.len();
        // A value that a previous step's answer provides cannot be sent before that answer.
        let is_stepwise = !self.pipelines || !request.carries.is_empty();
        if request.steps.len() > 1 && is_stepwise && self.dry_run.is_none() {
            message::write(out, b'Q', |out| message::write_text(out, "BEGIN"));
            self.running.awaiting = Awaiting::Begin;
            return self.await_step(request);
        }
        match self.append_steps(request, &request.steps, out) {
            Ok(()) => {
                self.running.is_withheld = self.must_withhold(request);
                self.await_step(request);
            }
            Err(error) => {
                // Nothing of the request is sent; the answer to the Sync reports the refusal.
                out.truncate(start);
                self.running.failure = Some(error);
                self.running.step = request.steps.len();
            }
        }
        if self.dry_run.is_some_and(|part| part.is_of_many) {
            KEEPS.iter().for_each(|text| append_command(text, out));
            self.running.around += KEEPS.len() as u32;
        }
        out.extend_from_slice(if self.running.is_withheld { &FLUSH } else { &SYNC });
    }

    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let mut consumed = 0;
        loop {
            let outcome = match message::read(&input[consumed..]) {
                Ok(None) => return Progress { consumed, outcome: None },
                Ok(Some(message)) => {
                    consumed += message.length();
                    self.take(request, message, out)
                }
                Err(error) => Some(Err(error)),
            };
            if outcome.is_some() {
                return Progress { consumed, outcome };
            }
        }
    }

    fn unasked(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<usize, Unasked> {
        let mut consumed = 0;
        while let Some(message) = message::read(&input[consumed..]).map_err(|_| Unasked::Wrong)? {
            match message.tag {
                b'A' => self.notices += 1,
                // A warning, or a setting that was reloaded.
                b'N' | b'S' => {}
                b'E' if ServerError::read(message.body).is_fatal() => return Err(Unasked::Ended),
                _ => return Err(Unasked::Wrong),
            }
            consumed += message.length();
        }
        Ok(consumed)
    }

    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells> {
        std::mem::replace(&mut self.rows, rows)
    }
}

/// Returns the number of rows changed according to a command's tag: `INSERT 0 5`, `UPDATE 5`, `COPY 5`; 0 for tags of reads and others.
#[inline]
fn changed_rows(tag: &[u8]) -> u64 {
    if matches!(tag.first(), Some(b'S' | b'F') | None) {
        // SELECT n, FETCH n, and SET, SHOW, START TRANSACTION.
        return 0;
    }
    let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
    let digits = tag.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let number = &tag[tag.len() - digits..];
    number.iter().fold(0, |number: u64, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
