//! The blocking work around the hot path: connecting, preparing, and statements as text.

use std::sync::Arc;

use super::decode::ColumnType;
use super::dialect::{Engine, MySqlDialect};
use super::handshake::{self, Abilities};
use super::packet::{self, Fields, Message};
use super::program::{Plan, Prepared, Rows, shortened};
use super::response::{Event, Response, error, out_of_step};
use super::values::Bound;
use super::wire::MySqlWire;
use crate::database::opening::address;
use crate::database::session::{Attempt, Channel, Prepare, Speak, WireSession, dial, dial_within, size_in_memory};
use crate::database::tls::{Socket, Tls};
use crate::database::{DatabaseError, Dialect, Endpoint, PassingOver, Session, SessionLimits};
use crate::question::Ask;
use crate::statement::{Program, Request, SqlForm, Statement, Step};

const PREPARE: u8 = 0x16;
const CLOSE: u8 = 0x19;

/// Opens a connection, within limits if there are any. `bulk` permits bulk executions where the server supports them.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with the address, the user and the server's message.
pub fn connect(
    endpoint: &Endpoint,
    engine: Engine,
    bulk: bool,
    limits: Option<&Arc<SessionLimits>>,
) -> Result<WireSession<MySqlWire>, DatabaseError> {
    let unavailable = |error: DatabaseError| {
        let reason = match error {
            DatabaseError::Refused { code, message } if code == "3159" => {
                format!(
                    "{message} ({code}): the server lets nobody in without TLS; say ssl-mode=REQUIRED or more in the address"
                )
            }
            // A server says no more than this, so that user names cannot be guessed.
            DatabaseError::Refused { code, message } if code == "1045" => {
                format!(
                    "{message} ({code}): the name or the password is wrong (LOADLINE_PASSWORD, where none stands in the address), or the account must use TLS \
                     (REQUIRE SSL: ssl-mode=REQUIRED in the address), or have a certificate (REQUIRE X509: ssl-cert and ssl-key)"
                )
            }
            other => other.to_string(),
        };
        DatabaseError::Unavailable(format!("cannot log in to {} as {:?}: {reason}", address(endpoint), endpoint.user))
    };
    let first = connect_once(endpoint, limits)?;
    let greeted = match first {
        (socket, Ok(abilities)) => Ok((socket, abilities)),
        (socket, Err(error)) if socket.may_do_without(&endpoint.tls) => {
            let plain = Endpoint { tls: Tls::default(), ..endpoint.clone() };
            // If the second attempt also fails, the first error explains more.
            let (socket, second) = connect_once(&plain, limits)?;
            second.map(|abilities| (socket, abilities)).map_err(|_| error)
        }
        (_, Err(error)) => Err(error),
    };
    greeted.and_then(|(socket, abilities)| session_over(socket, abilities, engine, bulk, limits)).map_err(unavailable)
}

/// Opens a socket and performs the handshake. Returns the socket and the agreed capabilities.
fn connect_once(
    endpoint: &Endpoint,
    limits: Option<&Arc<SessionLimits>>,
) -> Result<(Socket, Result<Abilities, DatabaseError>), DatabaseError> {
    let dialled = limits.map_or_else(|| dial(endpoint), |limits| dial_within(endpoint, limits))?;
    let mut socket = Socket::from(dialled);
    let abilities = handshake::shake_hands(&mut socket, endpoint, limits);
    Ok((socket, abilities))
}

/// Creates a session over a logged-in socket.
fn session_over(
    socket: Socket,
    mut abilities: Abilities,
    engine: Engine,
    bulk: bool,
    limits: Option<&Arc<SessionLimits>>,
) -> Result<WireSession<MySqlWire>, DatabaseError> {
    abilities.has_bulk &= bulk;
    let wire = MySqlWire::new(socket, abilities, engine);
    let mut session = WireSession::new(wire);
    limits.iter().for_each(|limits| session.set_limits(Arc::clone(limits)));
    settle(&mut session)?;
    Ok(session)
}

/// Creates a session over a socket that was not dialled.
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub(in crate::database) fn over(
    socket: std::os::fd::OwnedFd,
    endpoint: &Endpoint,
    engine: Engine,
    bulk: bool,
) -> Result<WireSession<MySqlWire>, DatabaseError> {
    let mut socket = Socket::from(socket);
    let abilities = handshake::shake_hands(&mut socket, endpoint, None)?;
    session_over(socket, abilities, engine, bulk, None)
}

/// Creates a session over a logged-in socket to a MariaDB server, or to an older server.
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub(in crate::database) fn logged_in(socket: std::os::fd::OwnedFd, is_older: bool) -> WireSession<MySqlWire> {
    let abilities = Abilities { deprecates_eof: !is_older, caches_metadata: !is_older, has_bulk: true };
    WireSession::new(MySqlWire::new(Socket::from(socket), abilities, Engine::InnoDb))
}

/// Reads the server's settings that affect the codec, and enables autocommit.
fn settle(session: &mut WireSession<MySqlWire>) -> Result<(), DatabaseError> {
    let settings = session.query("SELECT @@max_allowed_packet, @@autocommit")?;
    let setting = |place: usize| settings.first().and_then(|row| row.get(place)).cloned().flatten();
    if let Some(bytes) = setting(0).and_then(|bytes| bytes.parse().ok()) {
        session.wire().set_packet_bytes_max(bytes);
    }
    if setting(1).as_deref() != Some("1") {
        session.run("SET autocommit = 1")?;
    }
    Ok(())
}

/// Reads the answer to a command given as text; its rows are passed to `row`, which returns the number of bytes that it keeps of them.
fn read(
    abilities: Abilities,
    channel: &mut Channel,
    mut row: impl FnMut(&[u8]) -> Option<usize>,
) -> Result<(), DatabaseError> {
    let mut response = Response::new(abilities.deprecates_eof);
    loop {
        let Some(message) = Message::at_front_of(channel.input()) else {
            channel.receive()?;
            continue;
        };
        let event = response.take(message.first(), message.is_long());
        let mut kept = 0;
        let outcome = match event {
            Event::Row => match row(&message.payload()) {
                Some(bytes) => {
                    kept = bytes;
                    None
                }
                None => Some(Err(out_of_step("a row that does not fit its columns"))),
            },
            Event::Ended => Some(Ok(())),
            Event::Failed => Some(Err(error(message.first()))),
            Event::OutOfStep => Some(Err(out_of_step("something else"))),
            _ => None,
        };
        let length = message.length();
        channel.consume(length);
        if let Some(outcome) = outcome {
            return outcome;
        }
        channel.keep(kept)?;
    }
}

/// Returns the values of a row in text form.
fn text_row(payload: &[u8]) -> Option<Vec<Option<String>>> {
    let mut fields = Fields(payload);
    let mut values = Vec::new();
    while let Some(first) = fields.0.first() {
        values.push(if *first == 0xfb {
            fields.u8();
            None
        } else {
            Some(String::from_utf8_lossy(fields.counted()?).into_owned())
        });
    }
    Some(values)
}

/// Prepares a text that must have this many parameters. Returns the server's number of the statement and the columns of its answer: servers
/// that cache them may never define them again.
fn prepare_text(
    abilities: Abilities,
    channel: &mut Channel,
    sql: &str,
    parameters: usize,
) -> Result<(u32, Vec<ColumnType>), DatabaseError> {
    let mut out = Vec::new();
    packet::command(&mut out, PREPARE, sql.as_bytes());
    channel.ask(sql);
    channel.send(&out)?;
    let first = receive(channel)?;
    if first.first() == Some(&0xff) {
        return Err(error(&first));
    }
    let head = |fields: &mut Fields<'_>| {
        fields.u8().filter(|status| *status == 0)?;
        Some((fields.u32()?, fields.u16()?, fields.u16()?))
    };
    let (id, columns, found) = head(&mut Fields(&first)).ok_or_else(|| out_of_step("a cut-off prepared statement"))?;
    definitions(abilities, channel, found)?;
    let columns = definitions(abilities, channel, columns)?;
    if usize::from(found) == parameters {
        return Ok((id, columns));
    }
    let message = format!("the server sees {found} parameters where there are {parameters} values");
    Err(DatabaseError::refused("parameters", message))
}

/// Reads definitions of parameters or columns, and the end marker behind them.
fn definitions(abilities: Abilities, channel: &mut Channel, count: u16) -> Result<Vec<ColumnType>, DatabaseError> {
    let mut columns = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let column = ColumnType::from_definition(&receive(channel)?);
        columns.push(column.ok_or_else(|| out_of_step("a cut-off column"))?);
    }
    if count > 0 && !abilities.deprecates_eof {
        receive(channel)?;
    }
    Ok(columns)
}

fn receive(channel: &mut Channel) -> Result<Vec<u8>, DatabaseError> {
    loop {
        if let Some(message) = Message::at_front_of(channel.input()) {
            let (payload, length) = (message.payload().into_owned(), message.length());
            channel.consume(length);
            return Ok(payload);
        }
        channel.receive()?;
    }
}

impl MySqlWire {
    /// Prepares a statement in all its sizes.
    fn prepare_plan(&self, channel: &mut Channel, plan: Plan) -> Result<Prepared, DatabaseError> {
        let mut sizes = Vec::with_capacity(plan.texts.len());
        for (text, rows) in plan.texts.iter().rev() {
            let count = *rows as usize;
            let (id, columns) = prepare_text(self.abilities, channel, text, count * plan.kinds.len())
                .map_err(|error| within(error, text))?;
            let kinds = plan.kinds.iter().copied().cycle().take(count * plan.kinds.len());
            sizes.push(Bound::new(id, *rows, columns, kinds));
        }
        sizes.reverse();
        let name = plan.name.into_boxed_str();
        Ok(Prepared { name, columns: plan.kinds.len(), bulk: plan.bulk, sizes, text: None })
    }
}

impl Prepare for MySqlWire {
    fn prepare(&mut self, channel: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        for old in self.statements.drain(..).filter(|old| old.text.is_none()).flat_map(|old| old.sizes) {
            let mut out = Vec::new();
            packet::command(&mut out, CLOSE, &old.id.to_le_bytes());
            channel.send(&out)?;
        }
        self.pipelines = program.pipelines;
        let dialect = MySqlDialect { engine: self.engine };
        if program.as_text {
            self.statements = program.statements.iter().map(|text| Prepared::as_text(&dialect, text)).collect();
            return Ok(());
        }
        for statement in &program.statements {
            let rows = Rows { max: program.rows_max, usual: program.rows_usual };
            let plan = || Plan::new(&dialect, statement, rows, self.abilities.has_bulk);
            let prepared = match statement.form() {
                _ if is_planned_each_time(statement) => Prepared::as_text(&dialect, statement),
                SqlForm::Text => Prepared::as_text(&dialect, statement),
                SqlForm::Prepared => self.prepare_plan(channel, plan())?,
                SqlForm::Either => match self.prepare_plan(channel, plan()) {
                    Err(DatabaseError::Refused { .. }) => Prepared::as_text(&dialect, statement),
                    prepared => prepared?,
                },
            };
            self.statements.push(prepared);
        }
        Ok(())
    }

    fn version(&mut self, channel: &mut Channel) -> Result<String, DatabaseError> {
        let rows = self.query(channel, "SELECT VERSION()")?;
        let version = rows.into_iter().flatten().flatten().next();
        version.ok_or_else(|| DatabaseError::Unavailable("the server does not tell its version".into()))
    }

    fn as_sql(session: &mut WireSession<Self>) -> Option<&mut dyn Session> {
        Some(session)
    }
}

/// Returns whether a statement is sent as text, so that it is planned as if for the first time. MariaDB 10.11 skips from source to source in the index for a prepared
/// statement until another one, of any session, has used further columns of the table; from then on it reads the whole index (docs/targets/mariadb.md).
fn is_planned_each_time(statement: &Statement) -> bool {
    matches!(statement, Statement::Ask(asking) if asking.ask == Ask::Newest && asking.all_sources)
}

impl Speak for MySqlWire {
    fn dialect(&self) -> &dyn Dialect {
        self.engine.dialect()
    }

    fn run(&mut self, channel: &mut Channel, sql: &str) -> Result<(), DatabaseError> {
        let mut out = Vec::new();
        packet::query(&mut out, sql);
        channel.send(&out)?;
        read(self.abilities, channel, |_| Some(0))
    }

    fn query(&mut self, channel: &mut Channel, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        let mut out = Vec::new();
        packet::query(&mut out, sql);
        channel.send(&out)?;
        let mut rows = Vec::new();
        read(self.abilities, channel, |payload| {
            let row = text_row(payload)?;
            let bytes = size_in_memory(&row);
            rows.push(row);
            Some(bytes)
        })?;
        Ok(rows)
    }

    fn prepare_passing_over(
        &mut self,
        channel: &mut Channel,
        insert: &Statement,
        rows_max: usize,
    ) -> Result<Option<PassingOver>, DatabaseError> {
        let (Statement::Insert { table, columns }, Ok(statement)) = (insert, u16::try_from(self.statements.len()))
        else {
            return Ok(None);
        };
        let dialect = MySqlDialect { engine: self.engine };
        let Some(first) = columns.first().filter(|_| self.engine.has_transactions()) else { return Ok(None) };
        // A trigger would run for updates that change nothing, and may have effects.
        let triggers = format!(
            "SELECT COUNT(*) FROM information_schema.triggers WHERE event_manipulation = 'UPDATE' \
             AND event_object_schema = DATABASE() AND event_object_table = {}",
            dialect.literal(table)
        );
        if self.query(channel, &triggers)?.first().and_then(|row| row.first()?.as_deref()) != Some("0") {
            return Ok(None);
        }
        // IGNORE would also pass over such rows, but it would store other values where one does not fit.
        let name = dialect.quote(&first.name);
        let tail = format!(" ON DUPLICATE KEY UPDATE {name} = {name}");
        let rows = Rows { max: rows_max, usual: 0 };
        let mut plan = Plan::new(&dialect, insert, rows, self.abilities.has_bulk);
        plan.texts.iter_mut().for_each(|(text, _)| text.push_str(&tail));
        let prepared = self.prepare_plan(channel, plan)?;
        self.statements.push(prepared);
        Ok(Some(PassingOver { statement, counts_all: true }))
    }

    fn dry_run_texts(&self) -> [&'static [&'static str]; 3] {
        // Some errors undo the whole transaction. Requests already sent after such an error must not commit by themselves.
        [
            &["SET autocommit = 0", "BEGIN", "SAVEPOINT attempt"],
            &["ROLLBACK", "SET autocommit = 1"],
            &["COMMIT", "SET autocommit = 1"],
        ]
    }

    /// A single command needs no savepoint.
    fn can_follow(&self, request: &Request) -> bool {
        let is_prepared =
            |step: &Step| self.statements.get(usize::from(step.statement)).is_some_and(|one| one.text.is_none());
        matches!(&request.steps[..], [step] if step.rows == 1 && is_prepared(step))
    }

    fn undoes_statements(&self) -> bool {
        true
    }

    fn set_dry_run(&mut self, part: Option<Attempt>) {
        self.dry_run = part;
    }
}

/// Adds the statement's text to an error.
fn within(error: DatabaseError, sql: &str) -> DatabaseError {
    match error {
        DatabaseError::Refused { code, message } => {
            DatabaseError::Refused { code, message: format!("{message}, in: {}", shortened(sql, 1000)) }
        }
        other => other,
    }
}
