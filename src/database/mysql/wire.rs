//! The hot path: requests over prepared statements as a state machine. The main type is [`MySqlWire`].
//!
//! One statement in one command commits by itself. Anything more is a transaction: BEGIN travels together with the first
//! command, each further command waits for the answer to the one before, and COMMIT is sent only when all went well.
//!
//! Invariant: after an outcome other than a loss the connection is idle, outside of any transaction.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::decode::{self, ColumnType};
use super::dialect::{Engine, MySqlLiterals};
use super::handshake::Abilities;
use super::packet::{self, Message};
use super::program::Prepared;
use super::response::{Event, Response, error, out_of_step};
use crate::database::{Answer, DatabaseError, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Request};

/// Longer commands of many rows are divided even where the server would take them, to bound the memory of the client.
const COMMAND_BYTES_MAX: usize = 4 << 20;
const PING: u8 = 0x0e;
const QUERY: u8 = 0x03;

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
    Nothing,
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
    #[inline]
    fn send_rows(&mut self, request: &Request, out: &mut Vec<u8>) -> bool {
        let run = &mut self.run;
        let step = &request.steps[run.step];
        let statement = &mut self.statements[usize::from(step.statement)];
        let left = step.rows.saturating_sub(run.sent).max(1);
        let first = step.first_cell as usize + run.sent as usize * statement.columns;
        if statement.text.is_some() {
            self.send_text(request, out);
        } else if statement.bulk && left > 1 {
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
        self.run.awaiting = Awaiting::Statement;
        self.run.sent >= step.rows
    }

    /// Appends the text for the next rows of the step.
    fn send_text(&mut self, request: &Request, out: &mut Vec<u8>) {
        let run = &mut self.run;
        let step = &request.steps[run.step];
        let statement = &self.statements[usize::from(step.statement)];
        let Some(text) = &statement.text else { return };
        let first = step.first_cell as usize + run.sent as usize * statement.columns;
        let left = step.rows.saturating_sub(run.sent).max(1);
        let at = packet::begin(out);
        out.push(QUERY);
        // Every value can be written, so that at least one row is.
        let taken = text.append::<MySqlLiterals>(&request.cells, first, left, self.command_bytes_max, out);
        packet::end(out, at, 0);
        run.size = 0;
        run.sent += taken.unwrap_or(left);
    }

    #[inline]
    fn take(&mut self, request: &Request, message: Message<'_>, out: &mut Vec<u8>) -> Option<Outcome> {
        match self.run.response.take(message.first(), message.is_long()) {
            Event::Row => {
                self.run.rows += 1;
                if self.kept.is_some() { self.keep(request, message) } else { None }
            }
            Event::KnownTable | Event::Nothing | Event::EndedWithMore => None,
            Event::Ended => self.ended(request, out),
            Event::Table => {
                self.columns(request).map(Vec::clear);
                None
            }
            Event::Column if self.kept.is_some() => self.define(request, message),
            Event::Column if self.abilities.caches_metadata && !self.is_text(request) => self.define(request, message),
            Event::Column => None,
            Event::Failed => self.failed(request, error(message.first()), out),
            Event::OutOfStep => Some(Err(out_of_step("something else"))),
        }
    }

    /// Takes over the definition of a column: servers that cache them do not send them again.
    #[cold]
    fn define(&mut self, request: &Request, message: Message<'_>) -> Option<Outcome> {
        match (self.columns(request), ColumnType::from_definition(&message.payload())) {
            (Some(columns), Some(column)) => columns.push(column),
            _ => return Some(Err(out_of_step("a cut-off column"))),
        }
        None
    }

    /// Whether the statement that is running travelled as text.
    fn is_text(&self, request: &Request) -> bool {
        let statement =
            request.steps.get(self.run.step).and_then(|step| self.statements.get(usize::from(step.statement)));
        statement.is_some_and(|statement| statement.text.is_some())
    }

    /// The columns of the statement that is running; none for other commands.
    fn columns(&mut self, request: &Request) -> Option<&mut Vec<ColumnType>> {
        if self.run.awaiting != Awaiting::Statement {
            return None;
        }
        let statement = usize::from(request.steps.get(self.run.step)?.statement);
        Some(&mut self.statements.get_mut(statement)?.sizes.get_mut(self.run.size)?.answer)
    }

    fn keep(&mut self, request: &Request, message: Message<'_>) -> Option<Outcome> {
        let mut kept = self.kept.take()?;
        let read_row = if self.is_text(request) { decode::text_row } else { decode::row };
        let read = self.columns(request).and_then(|columns| read_row(&message.payload(), columns, &mut kept));
        self.kept = Some(kept);
        if read.is_none() { Some(Err(out_of_step("a row that does not fit its columns"))) } else { None }
    }

    /// A command was answered well.
    #[inline]
    fn ended(&mut self, request: &Request, out: &mut Vec<u8>) -> Option<Outcome> {
        match self.run.awaiting {
            Awaiting::Begin => {
                self.run.awaiting = Awaiting::Statement;
                self.run.response = Response::new(self.abilities.deprecates_eof);
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
        run.changed += run.response.changed();
        run.response = Response::new(self.abilities.deprecates_eof);
        let step = &request.steps[run.step];
        if run.sent < step.rows {
            self.send_rows(request, out);
            return None;
        }
        run.answer.rows += run.rows;
        run.answer.changed += run.changed;
        if step.expect == Expect::Rows && run.rows == 0 {
            run.answer.empty += 1;
        }
        if let Some(right) = step.expect.miscount(run.rows) {
            let name = &self.statements[usize::from(step.statement)].name;
            let message = format!("{name} found {} rows instead of {right}", run.rows);
            return self.undo(DatabaseError::refused("rows", message), out);
        }
        if let Some(right) = step.expect.contradiction(run.changed) {
            let name = &self.statements[usize::from(step.statement)].name;
            let message = format!("{name} changed {} rows instead of {right}", run.changed);
            return self.undo(DatabaseError::refused("rows", message), out);
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
            // Behind a BEGIN the statement is on its way and would stand for itself.
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

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.run.begin(self.abilities);
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
                self.run.awaiting = Awaiting::Nothing;
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
            awaiting: Awaiting::Nothing,
            in_transaction: false,
            response: Response::new(abilities.deprecates_eof),
            answer: Answer::default(),
            rows: 0,
            changed: 0,
            failure: None,
        }
    }

    /// Forgets the last request, field by field: this is done for every operation.
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
mod tests {
    use super::*;
    use crate::database::mysql::values::Bound;
    use crate::statement::Step;
    use proptest::prelude::*;
    use std::os::unix::net::UnixStream;

    const OK: &[u8] = &[7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0];
    const DUPLICATE: &[u8] = b"\x0c\0\0\x01\xff\x26\x04#23000twi";

    /// A wire with two statements of one parameter; the first takes bulks.
    fn wire(engine: Engine) -> MySqlWire {
        let (socket, _) = UnixStream::pair().unwrap();
        let abilities = Abilities { deprecates_eof: true, caches_metadata: true, has_bulk: true };
        let mut wire = MySqlWire::new(socket.into(), abilities, engine);
        for (id, bulk) in [(1, true), (2, false)] {
            let sizes = vec![Bound::new(id, 1, Vec::new(), [None].into_iter())];
            wire.statements.push(Prepared { name: "INSERT INTO t".into(), columns: 1, bulk, sizes, text: None });
        }
        wire
    }

    fn request(steps: &[(u16, u32)]) -> Request {
        let mut request = Request::default();
        for (statement, rows) in steps {
            let first_cell = request.cells.len() as u32;
            (0..*rows).for_each(|row| request.cells.int(i64::from(row)));
            let expect = Expect::Changed(1);
            request.steps.push(Step { statement: *statement, rows: *rows, first_cell, expect });
        }
        request
    }

    /// The commands sent, by their first byte or as text.
    fn commands(mut out: &[u8]) -> Vec<String> {
        let mut commands = Vec::new();
        while let Some(message) = Message::at_front_of(out) {
            commands.push(match message.first() {
                [3, text @ ..] => String::from_utf8_lossy(text).into_owned(),
                [code, id, ..] => format!("{code:x} {id}"),
                other => format!("{other:?}"),
            });
            out = &out[message.length()..];
        }
        commands
    }

    /// Starts a request and gives these answers one by one: what was sent after each, and the outcome.
    fn converse(wire: &mut MySqlWire, request: &Request, answers: &[&[u8]]) -> (Vec<Vec<String>>, Option<Outcome>) {
        let mut out = Vec::new();
        wire.start(request, &mut out);
        let (mut sent, mut outcome) = (vec![commands(&out)], None);
        for answer in answers {
            assert_eq!(outcome, None, "done before all answers were given");
            out.clear();
            let progress = wire.advance(request, answer, &mut out);
            assert_eq!(progress.consumed, answer.len());
            sent.push(commands(&out));
            outcome = progress.outcome;
        }
        (sent, outcome)
    }

    #[test]
    fn one_command_commits_by_itself() {
        let (sent, outcome) = converse(&mut wire(Engine::InnoDb), &request(&[(1, 1)]), &[OK]);
        assert_eq!(sent, [vec!["17 2"], vec![]]);
        assert_eq!(outcome, Some(Ok(Answer { changed: 1, ..Answer::default() })));
        let (sent, _) = converse(&mut wire(Engine::InnoDb), &request(&[(0, 9)]), &[]);
        assert_eq!(sent, [["fa 1"]]);
    }

    #[test]
    fn several_steps_are_a_transaction_and_wait_for_each_other() {
        let request = request(&[(0, 1), (1, 1)]);
        let (sent, outcome) = converse(&mut wire(Engine::InnoDb), &request, &[OK, OK, OK, OK]);
        assert_eq!(sent, [vec!["BEGIN", "17 1"], vec![], vec!["17 2"], vec!["COMMIT"], vec![]]);
        assert_eq!(outcome, Some(Ok(Answer { changed: 2, ..Answer::default() })));
        let (sent, _) = converse(&mut wire(Engine::Aria), &request, &[OK, OK]);
        assert_eq!(sent, [vec!["17 1"], vec!["17 2"], vec![]], "no transaction where the engine has none");
    }

    #[test]
    fn rows_that_need_several_commands_are_a_transaction() {
        let mut wire = wire(Engine::InnoDb);
        wire.set_packet_bytes_max(0);
        let mut request = request(&[(0, 300)]);
        request.steps[0].expect = Expect::Changed(3);
        let (sent, outcome) = converse(&mut wire, &request, &[OK, OK, OK, OK, OK]);
        assert_eq!(sent, [vec!["BEGIN", "fa 1"], vec![], vec!["fa 1"], vec!["fa 1"], vec!["COMMIT"], vec![]]);
        assert_eq!(outcome, Some(Ok(Answer { changed: 3, ..Answer::default() })));
    }

    #[test]
    fn a_failure_is_rolled_back_and_the_first_error_reported() {
        let refused = Some(Err(DatabaseError::refused("1062", "twi")));
        let request = request(&[(0, 1), (1, 1)]);
        for answers in [&[OK, DUPLICATE, OK][..], &[OK, OK, DUPLICATE, OK], &[OK, OK, OK, DUPLICATE, OK]] {
            let (sent, outcome) = converse(&mut wire(Engine::InnoDb), &request, answers);
            assert_eq!(sent[sent.len() - 2], ["ROLLBACK"]);
            assert_eq!(outcome, refused);
        }
        let (_, outcome) = converse(&mut wire(Engine::InnoDb), &request, &[DUPLICATE]);
        assert!(matches!(outcome, Some(Err(DatabaseError::Lost(_)))), "a refused BEGIN leaves the state unknown");
        let (_, outcome) = converse(&mut wire(Engine::InnoDb), &request, &[OK, DUPLICATE, DUPLICATE]);
        assert!(matches!(outcome, Some(Err(DatabaseError::Lost(_)))), "and so does a refused ROLLBACK");
    }

    #[test]
    fn a_request_without_steps_takes_a_round_trip() {
        let (sent, outcome) = converse(&mut wire(Engine::InnoDb), &Request::default(), &[&OK[..3], OK][1..]);
        assert_eq!(sent.len(), 2);
        assert_eq!(outcome, Some(Ok(Answer::default())));
    }

    #[test]
    fn a_message_that_nobody_asked_for_is_a_loss() {
        let mut wire = wire(Engine::InnoDb);
        let progress = wire.advance(&request(&[(0, 1)]), OK, &mut Vec::new());
        assert!(matches!(progress.outcome, Some(Err(DatabaseError::Lost(_)))));
    }

    proptest! {
        #[test]
        fn arbitrary_answers_never_panic(
            payloads in proptest::collection::vec(
                (prop_oneof![Just(0u8), Just(0xfe), Just(0xff), any::<u8>()], proptest::collection::vec(any::<u8>(), 0..20)),
                0..12,
            ),
            steps in proptest::collection::vec((0u16..2, 0u32..5), 0..4),
            keeps in any::<bool>(),
            caches_metadata in any::<bool>(),
            deprecates_eof in any::<bool>(),
        ) {
            let mut wire = wire(Engine::InnoDb);
            wire.abilities = Abilities { caches_metadata, deprecates_eof, has_bulk: true };
            wire.keep_rows(keeps.then(Cells::new));
            let request = request(&steps);
            let mut out = Vec::new();
            wire.start(&request, &mut out);
            let mut input = Vec::new();
            for (first, rest) in &payloads {
                let at = packet::begin(&mut input);
                input.push(*first);
                input.extend_from_slice(rest);
                packet::end(&mut input, at, 1);
            }
            let mut consumed = 0;
            while consumed < input.len() {
                let progress = wire.advance(&request, &input[consumed..], &mut out);
                prop_assert!(progress.consumed > 0);
                consumed += progress.consumed;
            }
        }
    }
}
