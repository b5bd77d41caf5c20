//! A connection to Redis as a state machine: the commands of a request are sent together, and their answers are taken in one by one.
//!
//! Invariant: an outcome is given only when every command of the request is answered, or when the connection is lost; bytes of the next answer are never
//! among those consumed.

use std::os::fd::{AsRawFd, RawFd};

use super::program::{Keyed, Plan, Reading, UPDATE};
use super::replica::{NOT_ACKNOWLEDGED, Question, WAIT_MS};
use super::reply::{Part, Reply, ask, bulk, command, number, out_of_step, read_part, refused};
use super::stream::{self, Entries};
use super::{tables, value};
use crate::database::session::{Channel, Prepare};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Progress, Wire};
use crate::record::{Cell, Cells};
use crate::statement::{Expect, Miscount, Program, Request, Table};

/// A connection that is logged in.
#[derive(Debug)]
pub(super) struct RedisWire {
    socket: Socket,
    plans: Vec<Plan>,
    /// The hash by which the server knows [`UPDATE`].
    update: Vec<u8>,
    /// Whether a write is acknowledged only once a replica has it.
    awaits_replica: bool,
    /// The commands of the running request.
    sent: Vec<Sent>,
    run: Run,
    kept: Option<Cells>,
    /// A buffer for the digits of a value and for the key of a row.
    scratch: Vec<u8>,
    key: Vec<u8>,
}

/// A command of a request.
#[derive(Debug, Clone, Copy)]
struct Sent {
    /// The index of the step that the command belongs to.
    step: u32,
    /// The number of fields that the command sets or reads.
    fields: u32,
}

/// The part of the answer that is expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// The answer to a PING, for a request without commands.
    #[default]
    Nothing,
    /// The confirmation that a transaction has begun.
    Begun,
    /// The confirmation that a command is queued until EXEC.
    Queued,
    /// The list with the answers of all commands.
    Executed,
    /// The answer of a command.
    Answers,
    /// A field of a row.
    Fields,
    /// A part of the rows that the server has numbered.
    Entries,
    /// The number of replicas that have what was written.
    Replicas,
}

/// The progress of a request.
#[derive(Debug, Default)]
struct Run {
    stage: Stage,
    /// Whether the number of replicas was asked for behind the commands.
    awaits_replica: bool,
    /// The index of the command whose answer comes next.
    next: usize,
    answer: Answer,
    failure: Option<DatabaseError>,
    /// The numbers of rows read and changed by the step so far.
    rows: u64,
    changed: u64,
    /// The index of the next field of a row, whether the row exists, and the index of its first kept value.
    field: u32,
    is_there: bool,
    kept_from: usize,
    /// The progress of the rows that the server has numbered.
    entries: Entries,
}

impl RedisWire {
    pub(super) fn new(socket: Socket) -> Self {
        RedisWire {
            socket,
            plans: Vec::new(),
            update: Vec::new(),
            awaits_replica: false,
            sent: Vec::new(),
            run: Run::default(),
            kept: None,
            scratch: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Makes writes wait for a replica, or not.
    pub(super) fn awaiting_replica(self, awaits_replica: bool) -> Self {
        RedisWire { awaits_replica, ..self }
    }

    /// Appends the command for one row of a step, whose values begin at `first`. Returns the numbers of its fields and of the row's values.
    fn append(&mut self, plan: usize, cells: &Cells, first: usize, out: &mut Vec<u8>) -> (u32, usize) {
        let RedisWire { plans, update, scratch, key, .. } = self;
        let mut head = |words: usize, name: &[u8], keyed: &Keyed, out: &mut Vec<u8>| {
            out.push(b'*');
            number(words as i64, out);
            out.extend_from_slice(b"\r\n");
            bulk(name, out);
            key.clear();
            keyed.append(cells, first, key);
        };
        let is_given = |place: usize| !matches!(cells.get(first + place), Cell::Null);
        match &plans[plan] {
            Plan::Insert { keyed, fields } => {
                let given = (0..fields.len()).filter(|place| is_given(*place)).count();
                head(2 + 2 * given, b"HSET", keyed, out);
                bulk(key, out);
                for (place, field) in fields.iter().enumerate().filter(|(place, _)| is_given(*place)) {
                    out.extend_from_slice(&field.bulk);
                    value::append_bulk(cells, cells.get(first + place), scratch, out);
                }
                (given as u32, fields.len())
            }
            Plan::Update { keyed, fields } => {
                let given = (0..fields.len()).filter(|place| is_given(*place)).count();
                head(5 + 2 * given + (fields.len() - given), b"EVALSHA", keyed, out);
                bulk(update, out);
                out.extend_from_slice(b"$1\r\n1\r\n");
                bulk(key, out);
                scratch.clear();
                number(given as i64, scratch);
                bulk(scratch, out);
                for (place, field) in fields.iter().enumerate().filter(|(place, _)| is_given(*place)) {
                    out.extend_from_slice(&field.bulk);
                    value::append_bulk(cells, cells.get(first + place), scratch, out);
                }
                for (_, field) in fields.iter().enumerate().filter(|(place, _)| !is_given(*place)) {
                    out.extend_from_slice(&field.bulk);
                }
                (given as u32, fields.len())
            }
            Plan::Delete { keyed } => {
                head(2, b"UNLINK", keyed, out);
                bulk(key, out);
                (0, 0)
            }
            Plan::Append { key, fields } => {
                let values = fields.iter().enumerate();
                let values = values.map(|(place, field)| (field.bulk.as_slice(), cells.get(first + place)));
                (stream::append_entry(key, values, cells, scratch, out), fields.len())
            }
            Plan::Follow { reading } => {
                reading.append(cells, first, scratch, out);
                (0, 0)
            }
            Plan::Select { keyed, fields, .. } => {
                head(2 + fields.len(), b"HMGET", keyed, out);
                bulk(key, out);
                fields.iter().for_each(|field| out.extend_from_slice(&field.bulk));
                (fields.len() as u32, 0)
            }
        }
    }

    /// Takes in one part of the answer. Returns whether it was the last.
    fn take(&mut self, request: &Request, part: Part<'_>) -> Result<bool, DatabaseError> {
        if self.run.stage == Stage::Replicas {
            return self.replicas(&part);
        }
        let is_last = self.take_commands(request, part)?;
        if is_last && self.run.awaits_replica {
            self.run.stage = Stage::Replicas;
            return Ok(false);
        }
        Ok(is_last)
    }

    /// Takes in the number of replicas that have what was written. Where none has it, the primary may lose it together with itself: nobody knows whether it is stored.
    fn replicas(&mut self, part: &Part<'_>) -> Result<bool, DatabaseError> {
        match part {
            Part::Number(1..) => {}
            Part::Number(0) => {
                let seconds = WAIT_MS / 1_000;
                let why = format!("closed by the client, because no replica had its write within {seconds} s");
                self.fail(DatabaseError::Lost(format!("{why} ({NOT_ACKNOWLEDGED})")));
            }
            Part::Error(text) => self.fail(refused(text)),
            part => return Err(out_of_step(part)),
        }
        Ok(true)
    }

    /// Takes in one part of the answers to the commands. Returns whether it was the last.
    fn take_commands(&mut self, request: &Request, part: Part<'_>) -> Result<bool, DatabaseError> {
        match (self.run.stage, part) {
            (Stage::Nothing, Part::Status(b"PONG")) => return Ok(true),
            (Stage::Begun, Part::Status(b"OK")) => self.run.stage = Stage::Queued,
            (Stage::Queued, Part::Status(b"QUEUED")) => self.queued(),
            (Stage::Queued, Part::Error(text)) => {
                self.fail(refused(text));
                self.queued();
            }
            (Stage::Executed, Part::List(Some(commands))) if commands as usize == self.sent.len() => {
                (self.run.stage, self.run.next) = (Stage::Answers, 0);
            }
            // The error of an earlier command, because of which nothing is executed; or the server's own error where no command had one.
            (Stage::Executed, Part::Error(text)) => {
                self.fail(refused(text));
                return Ok(true);
            }
            (Stage::Executed, Part::List(None)) => {
                self.fail(DatabaseError::refused("EXEC", "the server has executed none of the transaction"));
                return Ok(true);
            }
            (Stage::Answers, Part::Error(text)) => {
                self.fail(refused(text));
                return Ok(self.answered(request));
            }
            (Stage::Answers, part) => return self.answer(request, part),
            (Stage::Fields, Part::Bytes(bytes)) => return self.field(request, bytes),
            (Stage::Entries, part) => return self.entry(request, &part),
            (Stage::Nothing | Stage::Begun, Part::Error(text)) => {
                self.fail(refused(text));
                return Err(DatabaseError::Lost(
                    self.run.failure.take().map_or_else(String::new, |error| error.to_string()),
                ));
            }
            (_, part) => return Err(out_of_step(&part)),
        }
        Ok(false)
    }

    fn queued(&mut self) {
        self.run.next += 1;
        if self.run.next == self.sent.len() {
            self.run.stage = Stage::Executed;
        }
    }

    fn fail(&mut self, error: DatabaseError) {
        self.run.failure.get_or_insert(error);
    }

    /// Takes in the answer to a command, or the beginning of a row.
    fn answer(&mut self, request: &Request, part: Part<'_>) -> Result<bool, DatabaseError> {
        let Sent { step, fields } = self.sent[self.run.next];
        let statement = usize::from(request.steps[step as usize].statement);
        match (&self.plans[statement], part) {
            // An existing row already had its key field.
            (Plan::Insert { .. }, Part::Number(new)) => self.run.changed += u64::from(new == i64::from(fields)),
            (Plan::Update { .. } | Plan::Delete { .. }, Part::Number(rows @ 0..=1)) => self.run.changed += rows as u64,
            (Plan::Append { .. }, Part::Bytes(Some(_))) => self.run.changed += 1,
            (Plan::Follow { .. }, Part::List(Some(0))) => {}
            (Plan::Follow { reading }, Part::List(Some(entries))) if reading.may_have(entries) => {
                (self.run.stage, self.run.entries) = (Stage::Entries, Entries::of(entries));
                return Ok(false);
            }
            (Plan::Select { .. }, Part::List(Some(found))) if found == fields => {
                self.run.stage = Stage::Fields;
                (self.run.field, self.run.is_there) = (0, false);
                self.run.kept_from = self.kept.as_ref().map_or(0, Cells::len);
                return Ok(false);
            }
            (_, part) => return Err(out_of_step(&part)),
        }
        Ok(self.answered(request))
    }

    /// Takes in a field of a row.
    fn field(&mut self, request: &Request, bytes: Option<&[u8]>) -> Result<bool, DatabaseError> {
        let Sent { step, fields } = self.sent[self.run.next];
        let statement = usize::from(request.steps[step as usize].statement);
        let Some(Plan::Select { reading: Reading { kinds, present }, .. }) = self.plans.get(statement) else {
            return Ok(self.answered(request));
        };
        let place = self.run.field as usize;
        self.run.field += 1;
        self.run.is_there |= place == *present && bytes.is_some();
        let mut wrong = None;
        if let (Some(rows), Some(kind)) = (&mut self.kept, kinds.get(place)) {
            match bytes {
                None => rows.null(),
                Some(bytes) if value::keep(*kind, bytes, rows).is_some() => {}
                Some(bytes) => {
                    rows.null();
                    wrong = Some(value::no_value(*kind, bytes));
                }
            }
        }
        if let Some(wrong) = wrong {
            self.fail(wrong);
        }
        if self.run.field < fields {
            return Ok(false);
        }
        if self.run.is_there {
            self.run.rows += 1;
        } else if let Some(rows) = &mut self.kept {
            rows.truncate(self.run.kept_from);
        }
        self.run.stage = Stage::Answers;
        Ok(self.answered(request))
    }

    /// Takes in a part of the rows that the server has numbered.
    fn entry(&mut self, request: &Request, part: &Part<'_>) -> Result<bool, DatabaseError> {
        let statement = usize::from(request.steps[self.sent[self.run.next].step as usize].statement);
        let Some(Plan::Follow { reading }) = self.plans.get(statement) else { return Err(out_of_step(part)) };
        let entries = &mut self.run.entries;
        self.run.rows += u64::from(entries.take(reading, part, self.kept.as_mut())?);
        let (wrong, are_complete) = (entries.take_wrong(), entries.are_complete());
        if let Some(wrong) = wrong {
            self.fail(wrong);
        }
        if !are_complete {
            return Ok(false);
        }
        self.run.stage = Stage::Answers;
        Ok(self.answered(request))
    }

    /// Completes the answer to a command. Returns whether it was the last of the request.
    fn answered(&mut self, request: &Request) -> bool {
        let step = self.sent[self.run.next].step;
        self.run.next += 1;
        let is_last = self.run.next == self.sent.len();
        if is_last || self.sent[self.run.next].step != step {
            self.end_step(request, step);
        }
        is_last
    }

    fn end_step(&mut self, request: &Request, step: u32) {
        let run = &mut self.run;
        let expect = request.steps[step as usize].expect;
        let (rows, changed) = (std::mem::take(&mut run.rows), std::mem::take(&mut run.changed));
        run.answer.rows += rows;
        run.answer.changed += changed;
        run.answer.empty += u32::from(expect == Expect::Rows && rows == 0);
        if run.failure.is_none()
            && let Some(miscount) = expect.miscount(rows, changed)
        {
            // This includes what an insert has put into an existing row.
            let stays = miscount.is_of_changes;
            self.fail(DatabaseError::Miscounted(Box::new(Miscount { stays, ..miscount })));
        }
    }

    fn outcome(&mut self) -> Result<Answer, DatabaseError> {
        self.run.failure.take().map_or(Ok(self.run.answer), Err)
    }
}

impl Wire for RedisWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.run = Run::default();
        self.sent.clear();
        let commands: u64 = request.steps.iter().map(|step| u64::from(step.rows)).sum();
        if request.steps.iter().any(|step| usize::from(step.statement) >= self.plans.len()) {
            self.fail(DatabaseError::refused("redis", "a statement was not prepared"));
            out.extend_from_slice(b"PING\r\n");
            return;
        }
        match commands {
            0 => return out.extend_from_slice(b"PING\r\n"),
            1 => self.run.stage = Stage::Answers,
            _ => {
                self.run.stage = Stage::Begun;
                out.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
            }
        }
        for (number, step) in request.steps.iter().enumerate() {
            let mut first = step.first_cell as usize;
            for _ in 0..step.rows {
                let (fields, values) = self.append(usize::from(step.statement), &request.cells, first, out);
                self.sent.push(Sent { step: number as u32, fields });
                first += values;
            }
        }
        if commands > 1 {
            out.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
        }
        if self.awaits_replica && request.steps.iter().any(|step| self.plans[usize::from(step.statement)].writes()) {
            self.run.awaits_replica = true;
            self.scratch.clear();
            number(WAIT_MS.into(), &mut self.scratch);
            command(&[b"WAIT", b"1", &self.scratch], out);
        }
    }

    fn advance(&mut self, request: &Request, input: &[u8], _: &mut Vec<u8>) -> Progress {
        let mut consumed = 0;
        loop {
            let taken = match read_part(&input[consumed..]) {
                Ok(None) => return Progress { consumed, outcome: None },
                Ok(Some((part, length))) => {
                    consumed += length;
                    self.take(request, part)
                }
                Err(error) => Err(error),
            };
            match taken {
                Ok(false) => {}
                Ok(true) => return Progress { consumed, outcome: Some(self.outcome()) },
                Err(error) => return Progress { consumed, outcome: Some(Err(error)) },
            }
        }
    }

    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells> {
        std::mem::replace(&mut self.kept, rows)
    }
}

impl Prepare for RedisWire {
    fn prepare(&mut self, channel: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        self.plans = Plan::of(program)?;
        if self.plans.iter().any(|plan| matches!(plan, Plan::Update { .. })) {
            let name = ask(channel, &[b"SCRIPT", b"LOAD", UPDATE.as_bytes()])?.text();
            self.update =
                name.ok_or_else(|| DatabaseError::refused("redis", "it does not name a script"))?.into_bytes();
        }
        Ok(())
    }

    fn version(&mut self, channel: &mut Channel) -> Result<String, DatabaseError> {
        let told = ask(channel, &[b"INFO", b"server"])?.text().unwrap_or_default();
        let line = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let versions = [("valkey_version", "Valkey"), ("dragonfly_version", "Dragonfly"), ("redis_version", "Redis")];
        let found = versions.iter().find_map(|(name, whose)| Some(format!("{whose} {}", line(name)?)));
        found.ok_or_else(|| DatabaseError::Unavailable("the server does not tell its version".to_owned()))
    }

    fn create_table(&mut self, channel: &mut Channel, table: &Table) -> Result<(), DatabaseError> {
        tables::create(channel, table)
    }

    fn drop_table(&mut self, channel: &mut Channel, table: &str) -> Result<(), DatabaseError> {
        tables::remove(channel, table)
    }

    fn count_rows(&mut self, channel: &mut Channel, table: &str) -> Result<Option<u64>, DatabaseError> {
        tables::count(channel, table).map(Some)
    }

    fn ask(&mut self, channel: &mut Channel, question: &str) -> Result<Option<String>, DatabaseError> {
        if let Some(question) = Question::of(question) {
            return question.ask(channel);
        }
        match ask(channel, &[b"CONFIG", b"GET", question.as_bytes()])? {
            Reply::List(pair) => Ok(pair.get(1).and_then(Reply::text)),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
