//! The blocking work around the hot path: preparing a program's statements, and statements as text.
//!
//! Invariant: a call returns when the server is ready for the next one, or when the connection is lost.

use super::dialect::PostgresDialect;
use super::message::{
    self, COPY_FAIL_AND_SYNC, SYNC, ServerError, broken, column_types, take_i16, take_i32, take_value,
};
use super::prepared::{COPY_ROWS_MIN, Prepared};
use super::startup::receive;
use super::types;
use super::wire::PostgresWire;
use crate::database::dialect::statement_text;
use crate::database::session::{Attempt, Channel, Prepare, Speak, WireSession, size_in_memory};
use crate::database::{DatabaseError, Dialect, PassingOver, Session};
use crate::statement::{Program, Request, SqlForm, Statement, Step, TableColumn};

/// Rows in text form; null is `None`.
type Rows = Vec<Vec<Option<String>>>;

impl Prepare for PostgresWire {
    fn prepare(&mut self, channel: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        let has_prepared = self.statements.iter().any(|statement| !statement.is_text());
        self.statements.clear();
        self.pipelines = program.pipelines;
        if has_prepared {
            self.run(channel, "DEALLOCATE ALL")?;
        }
        if program.as_text {
            let can_miss = |statement: &Statement| !matches!(statement, Statement::Insert { .. });
            let as_text = program.statements.iter().map(|text| Prepared::as_text(text, can_miss(text)));
            self.statements = as_text.collect();
            return Ok(());
        }
        for (number, statement) in program.statements.iter().enumerate() {
            let (text, name) = (statement_text(&PostgresDialect, statement, 1), format!("s{number}"));
            let types = match statement.form() {
                SqlForm::Text => None,
                SqlForm::Prepared => Some(describe(channel, &name, &text, &[])?),
                SqlForm::Either => match describe(channel, &name, &text, &[]) {
                    Err(DatabaseError::Refused { .. }) => None,
                    described => Some(described?),
                },
            };
            let Some(types) = types else {
                self.statements.push(Prepared::as_text(statement, true));
                continue;
            };
            let can_miss = !matches!(statement, Statement::Insert { .. });
            let mut prepared = Prepared::new(&name, text, &types.parameters, &types.columns, can_miss);
            let copy =
                copy_texts(statement).filter(|_| program.rows_max >= COPY_ROWS_MIN && prepared.is_fit_for_copy());
            if let Some([types, copy]) = copy {
                let names = [format!("t{number}"), format!("c{number}")];
                match describe(channel, &names[0], &types, &[]).and_then(|_| describe(channel, &names[1], &copy, &[])) {
                    Ok(_) => prepared.set_copy(&names[0], &names[1]),
                    // Other databases that speak this protocol may not prepare a COPY; inserts row by row work with all of them.
                    Err(DatabaseError::Refused { .. }) => {}
                    Err(lost) => return Err(lost),
                }
            }
            self.statements.push(prepared);
        }
        Ok(())
    }

    fn version(&mut self, channel: &mut Channel) -> Result<String, DatabaseError> {
        let rows = self.query(channel, "SELECT version()")?;
        rows.into_iter().flatten().flatten().next().ok_or_else(|| broken("it has no version"))
    }

    fn as_sql(session: &mut WireSession<Self>) -> Option<&mut dyn Session> {
        Some(session)
    }
}

impl Speak for PostgresWire {
    fn dialect(&self) -> &dyn Dialect {
        &PostgresDialect
    }

    fn run(&mut self, channel: &mut Channel, sql: &str) -> Result<(), DatabaseError> {
        simple_query(channel, sql, None)
    }

    fn query(&mut self, channel: &mut Channel, sql: &str) -> Result<Rows, DatabaseError> {
        let mut rows = Rows::new();
        simple_query(channel, sql, Some(&mut rows))?;
        Ok(rows)
    }

    fn prepare_passing_over(
        &mut self,
        channel: &mut Channel,
        insert: &Statement,
        _rows_max: usize,
    ) -> Result<Option<PassingOver>, DatabaseError> {
        let (Statement::Insert { table, columns }, Some([types_text, _]), Ok(place)) =
            (insert, copy_texts(insert), u16::try_from(self.statements.len()))
        else {
            return Ok(None);
        };
        let [name, types] = [format!("s{place}"), format!("t{place}")];
        let elements = describe(channel, &types, &types_text, &[])?.columns;
        let Some(text) = passing_over_text(table, columns, &elements) else { return Ok(None) };
        describe(channel, &name, &text, &[])?;
        self.statements.push(Prepared::of_arrays(&name, text, &elements, &types));
        Ok(Some(PassingOver { statement: place, counts_all: false }))
    }

    fn dry_run_texts(&self) -> [&'static [&'static str]; 3] {
        [&["BEGIN", "SET CONSTRAINTS ALL IMMEDIATE", "SAVEPOINT attempt"], &["ROLLBACK"], &["COMMIT"]]
    }

    /// A request of several steps could be refused for its count alone, after the other steps have succeeded.
    fn can_follow(&self, request: &Request) -> bool {
        let is_prepared =
            |step: &Step| self.statements.get(usize::from(step.statement)).is_some_and(|one| !one.is_text());
        matches!(&request.steps[..], [step] if step.rows == 1 && is_prepared(step))
    }

    fn set_dry_run(&mut self, part: Option<Attempt>) {
        self.dry_run = part;
    }

    fn listen(&mut self, channel: &mut Channel, name: &str) -> Result<(), DatabaseError> {
        self.run(channel, &format!("LISTEN {}", PostgresDialect.quote(name)))
    }

    fn take_notices(&mut self, channel: &mut Channel) -> Result<bool, DatabaseError> {
        while let Some(message) = message::read(channel.input())? {
            match message.tag {
                b'A' => self.notices += 1,
                b'E' => return Err(ServerError::read(message.body).into()),
                _ if message.is_unasked() => {}
                tag => return Err(broken(&format!("it sends {tag:#04x} without being asked"))),
            }
            let length = message.length();
            channel.consume(length);
        }
        Ok(std::mem::take(&mut self.notices) > 0)
    }
}

/// Returns the query of the columns and the COPY that takes the rows of an insert; `None` for other statements.
fn copy_texts(statement: &Statement) -> Option<[String; 2]> {
    let Statement::Insert { table, columns } = statement else {
        return None;
    };
    let names: Vec<_> = columns.iter().map(|column| PostgresDialect.quote(&column.name)).collect();
    let (table, names) = (PostgresDialect.quote(table), names.join(", "));
    Some([format!("SELECT {names} FROM {table} LIMIT 0"), format!("COPY {table} ({names}) FROM STDIN (FORMAT binary)")])
}

/// Returns an insert of rows, each column as an array, that passes over existing rows; `None` where there is no array for the type of a column.
fn passing_over_text(table: &str, columns: &[TableColumn], types: &[u32]) -> Option<String> {
    let names: Vec<_> = columns.iter().map(|column| PostgresDialect.quote(&column.name)).collect();
    let array = |(place, oid): (usize, &u32)| Some(format!("${}::{}[]", place + 1, types::name(*oid)?));
    let arrays = types.iter().enumerate().map(array).collect::<Option<Vec<_>>>()?;
    let (table, names, arrays) = (PostgresDialect.quote(table), names.join(", "), arrays.join(", "));
    Some(format!("INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"))
}

/// The types of a statement's parameters and columns, as OIDs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Types {
    parameters: Vec<u32>,
    columns: Vec<u32>,
}

/// Prepares one statement whose values have these types, for a server that decides them too late, or otherwise. Inserts must not be of tables with triggers that drop rows.
///
/// # Errors
/// The server's error, with the text.
pub(in crate::database) fn prepare(
    channel: &mut Channel,
    name: &str,
    text: String,
    parameters: &[u32],
) -> Result<Prepared, DatabaseError> {
    let types = describe(channel, name, &text, parameters)?;
    Ok(Prepared::new(name, text, parameters, &types.columns, false))
}

/// Prepares one statement and asks for its types. The server decides the types of values that are not among `parameters`.
fn describe(channel: &mut Channel, name: &str, text: &str, parameters: &[u32]) -> Result<Types, DatabaseError> {
    let mut out = Vec::with_capacity(text.len() + 64);
    message::write(&mut out, b'P', |out| {
        message::write_text(out, name);
        message::write_text(out, text);
        out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        parameters.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
    });
    message::write(&mut out, b'D', |out| {
        out.push(b'S');
        message::write_text(out, name);
    });
    out.extend_from_slice(&SYNC);
    channel.ask(text);
    channel.send(&out)?;
    let mut types = Types::default();
    let mut failure = None;
    loop {
        let (tag, body) = receive(channel)?;
        let malformed = || broken("a description of a statement is malformed");
        match tag {
            b't' => types.parameters = parameter_types(&body).ok_or_else(malformed)?,
            b'T' => types.columns = column_types(&body).ok_or_else(malformed)?,
            // A server reports an error once; if it repeats itself, the first error counts.
            b'E' if failure.is_none() => failure = Some(failed(&body, text)?),
            b'Z' => {
                pass_over_unasked(channel)?;
                return failure.map_or(Ok(types), Err);
            }
            _ => {}
        }
    }
}

/// Returns the refusal of a statement, with its text; the loss of the connection is the outer error.
fn failed(body: &[u8], text: &str) -> Result<DatabaseError, DatabaseError> {
    match ServerError::read(body).into() {
        DatabaseError::Refused { code, message } => {
            Ok(DatabaseError::refused(code, format!("{message}, of: {}", text.chars().take(500).collect::<String>())))
        }
        lost => Err(lost),
    }
}

fn parameter_types(mut body: &[u8]) -> Option<Vec<u32>> {
    let count = take_i16(&mut body)? as u16;
    (0..count).map(|_| take_i32(&mut body).map(|oid| oid as u32)).collect()
}

/// Executes a text by the simple protocol and appends its rows if `rows` is given.
fn simple_query(channel: &mut Channel, sql: &str, mut rows: Option<&mut Rows>) -> Result<(), DatabaseError> {
    if sql.contains('\0') {
        return Err(DatabaseError::refused("22021", "a statement cannot hold a zero character"));
    }
    let mut out = Vec::with_capacity(sql.len() + 8);
    message::write(&mut out, b'Q', |out| message::write_text(out, sql));
    channel.send(&out)?;
    let mut failure = None;
    loop {
        let (tag, body) = receive(channel)?;
        match tag {
            b'D' => {
                if let Some(rows) = &mut rows {
                    let row = text_row(&body).ok_or_else(|| broken("a row is malformed"))?;
                    channel.keep(size_in_memory(&row))?;
                    rows.push(row);
                }
            }
            b'E' if failure.is_none() => failure = Some(failed(&body, sql)?),
            // A COPY that waits for data; there is none. In the simple protocol a Sync would get an answer of its own.
            b'G' => channel.send(&COPY_FAIL_AND_SYNC[..6])?,
            b'Z' => {
                pass_over_unasked(channel)?;
                return failure.map_or(Ok(()), Err);
            }
            _ => {}
        }
    }
}

/// Returns a row in text form; `None` where it is malformed.
pub(in crate::database) fn text_row(mut body: &[u8]) -> Option<Vec<Option<String>>> {
    let count = take_i16(&mut body)?;
    let mut value = || take_value(&mut body).map(|value| value.map(|text| String::from_utf8_lossy(text).into_owned()));
    (0..count).map(|_| value()).collect()
}

/// Takes in the server's unasked messages, so that nothing is left unread.
fn pass_over_unasked(channel: &mut Channel) -> Result<(), DatabaseError> {
    while let Some(message) = message::read(channel.input())?.filter(|message| message.is_unasked()) {
        let length = message.length();
        channel.consume(length);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ColumnKind;
    use crate::statement::TableColumn;
    use proptest::prelude::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn descriptions_give_the_types_of_parameters_and_columns() {
        assert_eq!(parameter_types(&[0, 2, 0, 0, 0, 23, 0, 0, 0, 25]), Some(vec![23, 25]));
        let column = b"id\0\0\0\0\x01\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
        let two = [&[0, 2][..], column, column].concat();
        assert_eq!(column_types(&two), Some(vec![23, 23]));
        assert_eq!(column_types(&two[..two.len() - 1]), None);
        assert_eq!(parameter_types(&[0, 1, 0]), None);
    }

    #[test]
    fn only_inserts_are_copied_and_names_are_quoted() {
        let columns = vec![TableColumn { name: "a\"b".into(), kind: ColumnKind::Int16, nullable: false }];
        let passing_over = passing_over_text("t", &columns, &[types::INT2]).unwrap();
        let right = "INSERT INTO \"t\" (\"a\"\"b\") SELECT * FROM unnest($1::smallint[]) ON CONFLICT DO NOTHING";
        assert_eq!(passing_over, right);
        assert_eq!(passing_over_text("t", &columns, &[types::BPCHAR]), None);
        let insert = Statement::Insert { table: "t".into(), columns };
        let [types, copy] = copy_texts(&insert).unwrap();
        assert_eq!(types, "SELECT \"a\"\"b\" FROM \"t\" LIMIT 0");
        assert_eq!(copy, "COPY \"t\" (\"a\"\"b\") FROM STDIN (FORMAT binary)");
        assert_eq!(
            copy_texts(&Statement::Sql { sql: String::new(), allow_empty: true, form: SqlForm::Prepared }),
            None
        );
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        message::write(&mut out, tag, |out| out.extend_from_slice(body));
        out
    }

    /// Prepares an insert of one column on a server that answers `insert` to the INSERT and `copy` to the query of its columns and the COPY.
    fn prepare(insert: &[Vec<u8>], copy: &[Vec<u8>]) -> (Result<(), DatabaseError>, Vec<Prepared>) {
        let (ours, mut server) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut channel = Channel::new(ours.as_raw_fd());
        let mut wire = PostgresWire::new(std::os::fd::OwnedFd::from(ours).into());
        std::io::Write::write_all(&mut server, &[insert, copy].concat().concat()).unwrap();
        let columns = vec![TableColumn { name: "id".into(), kind: ColumnKind::Int32, nullable: false }];
        let statements = vec![Statement::Insert { table: "t".into(), columns }];
        let outcome = wire.prepare(&mut channel, &Program { statements, rows_max: 100, ..Program::default() });
        assert!(channel.input().is_empty(), "nothing is left unread");
        (outcome, wire.statements)
    }

    #[test]
    fn rows_go_one_by_one_where_a_copy_cannot_be_prepared() {
        let ready = message(b'Z', b"I");
        let types = message(b't', &[0, 1, 0, 0, 0, 23]);
        let described = [message(b'1', b""), types, message(b'n', b""), ready.clone()];
        let setting = message(b'S', b"TimeZone\0UTC\0");
        let queried = [message(b'1', b""), message(b't', &[0, 0]), message(b'n', b""), ready.clone()];
        let copied = [&queried[..], &queried[..], &[setting]].concat();
        let (outcome, statements) = prepare(&described, &copied);
        assert_eq!((outcome, statements[0].completions(50)), (Ok(()), 2));
        let error = message(b'E', b"SERROR\0C0A000\0Mno COPY here\0\0");
        let refused = [error.clone(), ready.clone()];
        for answers in [refused.to_vec(), [&queried[..], &refused[..]].concat()] {
            let (outcome, statements) = prepare(&described, &answers);
            assert_eq!((outcome, statements[0].completions(50)), (Ok(()), 50));
        }
        let (outcome, statements) = prepare(&[error, ready], &[]);
        assert!(outcome.unwrap_err().to_string().starts_with("no COPY here, of: INSERT INTO"));
        assert!(statements.is_empty());
    }

    proptest! {
        #[test]
        fn arbitrary_descriptions_never_panic(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            parameter_types(&body);
            column_types(&body);
            text_row(&body);
        }
    }
}
