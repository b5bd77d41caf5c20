//! Fuzzing: servers that say whatever they like, from the greeting to the rows of a query.

use super::session::{Speak, WireSession};
use super::{DatabaseError, Endpoint, Session, TargetSession, mysql, postgres};
use crate::fuzzed::{Target, said_by_a_server};
use crate::record::{Cells, ColumnKind};
use crate::statement::{Expect, Program, Request, SqlForm, Statement, Step, TableColumn};

/// A server of MySQL or MariaDB. The first byte says how long the greeting is, and what may be asked for.
pub static MYSQL: Target = Target {
    name: "mysql",
    run: |input| {
        let (first, said) = input.split_first().unwrap_or((&0, &[]));
        let Some((ours, _theirs)) = said_by_a_server(said) else { return };
        if let Ok(session) =
            mysql::session::over(ours.into(), &endpoint(first & 1 == 0), mysql::dialect::Engine::InnoDb, true)
        {
            converse(session, *first);
        }
    },
    seeds: mysql_seeds,
    words: &[
        "mysql_native_password\u{0}",
        "caching_sha2_password\u{0}",
        "-----BEGIN PUBLIC KEY-----\n",
        "-----END PUBLIC KEY-----\n",
        "#23000",
        "\u{7}\u{0}\u{0}\u{1}\u{0}\u{0}\u{0}\u{2}\u{0}\u{0}\u{0}",
    ],
    memory: (1 << 20, 256),
    is_linear: true,
};

/// A server of PostgreSQL. The first byte says what is asked.
pub static POSTGRES: Target = Target {
    name: "postgres",
    run: |input| {
        let (first, said) = input.split_first().unwrap_or((&0, &[]));
        let Some((ours, _theirs)) = said_by_a_server(said) else { return };
        if let Ok(socket) = postgres::startup::over(ours.into(), &endpoint(false)) {
            converse(WireSession::new(postgres::PostgresWire::new(socket)), *first);
        }
    },
    seeds: postgres_seeds,
    words: &[
        "R\u{0}\u{0}\u{0}\u{8}\u{0}\u{0}\u{0}\u{0}",
        "Z\u{0}\u{0}\u{0}\u{5}I",
        "SCRAM-SHA-256\u{0}\u{0}",
        "C\u{0}\u{0}\u{0}\u{f}INSERT 0 1\u{0}",
        "T\u{0}\u{0}\u{0}",
        "t\u{0}\u{0}\u{0}",
        "D\u{0}\u{0}\u{0}",
        "E\u{0}\u{0}\u{0}",
    ],
    memory: (1 << 20, 256),
    is_linear: true,
};

fn endpoint(is_unix: bool) -> Endpoint {
    let unix = is_unix.then(|| "/s".into());
    let (user, password, database) = ("me".to_owned(), "secret".to_owned(), "d".to_owned());
    Endpoint { user, password, database, unix, ..Endpoint::default() }
}

fn program(as_text: bool) -> Program {
    let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: true };
    let columns = vec![column("id", ColumnKind::Int64), column("note", ColumnKind::Text(40))];
    let statements = vec![
        Statement::Insert { table: "t".to_owned(), columns },
        Statement::Sql { sql: "SELECT * FROM t".to_owned(), allow_empty: true, form: SqlForm::Prepared },
    ];
    Program { statements, rows_max: 10, as_text, ..Program::default() }
}

/// Uses a session as the recorder does: settings, statements, a batch, a dry run, and rows.
fn converse<W: Speak + 'static>(mut session: WireSession<W>, first: u8) {
    let goes_on = |outcome: Result<(), DatabaseError>| !matches!(outcome, Err(DatabaseError::Lost(_)));
    if first & 2 != 0 && !goes_on(session.query("SELECT 1").map(drop)) {
        return;
    }
    if !goes_on(session.prepare(&program(first & 4 != 0))) {
        return;
    }
    let mut request = Request::default();
    for row in 0..3 {
        request.cells.int(row);
        request.cells.text("x");
    }
    request.steps.push(Step { statement: 0, rows: 3, first_cell: 0, expect: Expect::Changed(3) });
    if first & 8 != 0 {
        request.steps.push(Step { statement: 1, rows: 1, first_cell: 6, expect: Expect::Rows });
    }
    if first & 16 != 0 {
        let dry = session.begin_dry_run().and_then(|()| session.attempt(&request)).and_then(|_| session.end_dry_run());
        if !goes_on(dry) {
            return;
        }
    }
    let mut rows = Cells::new();
    let outcome = session.execute(&request, Some(&mut rows));
    if let Ok(answer) = &outcome {
        assert!(first & 8 != 0 || answer.changed == 3, "{answer:?} is no answer to three rows");
    }
    if goes_on(outcome.map(drop)) {
        let _ = session.version();
    }
}

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    [&[payload.len() as u8, 0, 0, number], payload].concat()
}

fn mysql_seeds() -> Vec<Vec<u8>> {
    const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
    let greet = |low: [u8; 2], high: [u8; 2], own: u8, plugin: &str| {
        let head = [
            &b"\x0a10.11.0-Test\0\x07\0\0\x0012345678\0"[..],
            &low,
            &[45, 2, 0],
            &high,
            &[21, 0, 0, 0, 0, 0, 0, own, 0, 0, 0],
        ];
        packet(0, &[&head.concat()[..], b"901234567890\0", plugin.as_bytes(), b"\0"].concat())
    };
    let mariadb = greet([0, 0x82], [8, 1], 0x14, "mysql_native_password");
    let mysql = greet([1, 0x82], [8, 0], 0, "caching_sha2_password");
    let column = |number: u8, kind: u8| {
        packet(number, &[&b"\x03def\x01s\x01t\x01t\x01c\x01c\x0c\x2d\0\0\x01\0\0"[..], &[kind, 0, 0, 0, 0, 0]].concat())
    };
    let settings = [
        packet(1, &[2, 1]),
        column(2, 253),
        column(3, 253),
        packet(4, b"\x0816777216\x011"),
        packet(5, &[0xfe, 0, 0, 2, 0, 0, 0]),
    ]
    .concat();
    let prepared = |parameters: u8, columns: u8| {
        let mut all = packet(1, &[0, 1, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0]);
        (0..parameters + columns).for_each(|number| all.extend(column(number + 2, 253)));
        all
    };
    let in_bulk = [prepared(2, 0), prepared(0, 1)].concat();
    let changed = packet(1, &[0, 3, 0, 2, 0, 0, 0]);
    let done = [&mariadb[..], &packet(2, OK), &settings, &in_bulk, &changed].concat();
    let refused = [&mariadb[..], &packet(2, OK), &settings, &in_bulk, &packet(1, b"\xff\x26\x04#23000twice")].concat();
    let asked = [
        &mysql[..],
        &packet(2, &[1, 4]),
        &packet(4, b"\x01-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK\n-----END PUBLIC KEY-----\n"),
    ]
    .concat();
    [(0, &done), (8, &done), (4, &done), (2, &refused), (16, &refused), (1, &asked)]
        .map(|(first, said)| [&[first], &said[..]].concat())
        .to_vec()
}

fn postgres_seeds() -> Vec<Vec<u8>> {
    let message = |tag: u8, body: &[u8]| [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat();
    let ready = message(b'Z', b"I");
    let greeting = [message(b'R', &[0; 4]), message(b'S', b"server_version\x0015\0"), ready.clone()].concat();
    let scram =
        [message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), message(b'R', b"\0\0\0\x0br=x,s=c2FsdA==,i=4096")].concat();
    let column = b"id\0\0\0\0\x01\0\x02\0\0\0\x14\0\x08\xff\xff\xff\xff\0\0";
    let described = |parameters: &[u8], columns: &[u8]| {
        let types = message(b't', parameters);
        let found = if columns.is_empty() { message(b'n', b"") } else { message(b'T', columns) };
        [message(b'1', b""), types, found, ready.clone()].concat()
    };
    let one = [&[0, 1][..], column].concat();
    let insert = described(&[0, 2, 0, 0, 0, 20, 0, 0, 0, 25], b"");
    let refused = [message(b'E', b"SERROR\0C0A000\0Mno COPY\0\0"), ready.clone()].concat();
    let prepared = [insert, refused, described(&[0, 0], &one)].concat();
    let answer = [message(b'2', b""), message(b'C', b"INSERT 0 1\0")].concat().repeat(3);
    let rows = [message(b'2', b""), message(b'D', b"\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x07"), message(b'C', b"SELECT 1\0")]
        .concat();
    let done = [&greeting[..], &prepared, &answer, &ready].concat();
    let both = [
        &greeting[..],
        &prepared,
        &message(b'C', b"BEGIN\0"),
        &ready,
        &answer,
        &ready,
        &rows,
        &ready,
        &message(b'C', b"COMMIT\0"),
        &ready,
    ]
    .concat();
    [(0, &done), (4, &done), (8, &both), (16, &both), (0, &scram)]
        .map(|(first, said)| [&[first], &said[..]].concat())
        .to_vec()
}
