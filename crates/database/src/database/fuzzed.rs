//! Fuzzing: servers that send arbitrary bytes, from the greeting to the rows of a query.

use std::os::fd::OwnedFd;

use super::session::{Speak, WireSession};
use super::tls::Socket;
use super::{DatabaseError, Endpoint, Session, TargetSession, mysql, postgres};
use crate::fuzzed::{Target, said_by_a_server};
use crate::record::{Cells, ColumnKind};
use crate::statement::{Expect, Program, Request, SqlForm, Statement, Step, TableColumn};

/// The bit of the first byte for a client that is already logged in. A login reads all the bytes that the server sends at once, so that without this
/// bit none are left for a session.
const LOGGED_IN: u8 = 64;

/// A server of MySQL or MariaDB. The first byte selects the client's socket, whether it is logged in, and its requests.
pub static MYSQL: Target = Target {
    name: "mysql",
    run: |input| {
        asked_of_mysql(input);
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

/// A server of PostgreSQL. The first byte selects the requests.
pub static POSTGRES: Target = Target {
    name: "postgres",
    run: |input| {
        asked_of_postgres(input);
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

/// Returns the number of requests to such a server that were answered.
fn asked_of_mysql(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    if first & LOGGED_IN != 0 {
        return converse(mysql::session::logged_in(ours.into(), first & 128 != 0), *first);
    }
    let engine = mysql::dialect::Engine::InnoDb;
    match mysql::session::over(ours.into(), &endpoint(first & 1 == 0), engine, true) {
        Ok(session) => converse(session, *first),
        Err(_) => 0,
    }
}

fn asked_of_postgres(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    if first & LOGGED_IN != 0 {
        let socket = Socket::from(OwnedFd::from(ours));
        return converse(WireSession::new(postgres::PostgresWire::new(socket)), *first);
    }
    match postgres::startup::over(ours.into(), &endpoint(false)) {
        Ok(socket) => converse(WireSession::new(postgres::PostgresWire::new(socket)), *first),
        Err(_) => 0,
    }
}

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

/// Uses a session as the recorder does: settings, statements, a batch, a dry run, and rows. Returns the number of requests that succeeded.
fn converse<W: Speak + 'static>(mut session: WireSession<W>, first: u8) -> u32 {
    // Otherwise, data that arrives before the request ends a session.
    session.parts().1.follow_script(first & 32 == 0);
    let mut answered = 0;
    let mut goes_on = |outcome: Result<(), DatabaseError>| {
        answered += u32::from(outcome.is_ok());
        !matches!(outcome, Err(DatabaseError::Lost(_)))
    };
    if first & 2 != 0 && !goes_on(session.query("SELECT 1").map(drop)) {
        return answered;
    }
    if !goes_on(session.prepare(&program(first & 4 != 0))) {
        return answered;
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
            return answered;
        }
    }
    let mut rows = Cells::new();
    let outcome = session.execute(&request, Some(&mut rows));
    if let Ok(answer) = &outcome {
        assert!(first & 8 != 0 || answer.changed == 3, "{answer:?} is no answer to three rows");
    }
    if goes_on(outcome.map(drop)) {
        goes_on(session.version().map(drop));
    }
    answered
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
    // The same after the login; and with rows, in a transaction.
    let begun = [&in_bulk[..], &changed].concat();
    let ok = packet(1, &[0, 0, 0, 2, 0, 0, 0]);
    let rows =
        [packet(1, &[1, 1]), column(2, 253), packet(3, b"\0\0\x01x"), packet(4, &[0xfe, 0, 0, 2, 0, 0, 0])].concat();
    let both = [&in_bulk[..], &ok, &changed, &rows, &ok].concat();
    [
        (0, &done),
        (8, &done),
        (4, &done),
        (2, &refused),
        (16, &refused),
        (1, &asked),
        (LOGGED_IN, &begun),
        (LOGGED_IN | 8, &both),
        (LOGGED_IN | 128, &begun),
        (LOGGED_IN | 32, &begun),
    ]
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
    let (begun, whole) = (done[greeting.len()..].to_vec(), both[greeting.len()..].to_vec());
    [
        (0, &done),
        (4, &done),
        (8, &both),
        (16, &both),
        (0, &scram),
        (LOGGED_IN, &begun),
        (LOGGED_IN | 8, &whole),
        (LOGGED_IN | 32, &begun),
    ]
    .map(|(first, said)| [&[first], &said[..]].concat())
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_targets_begin_with_is_conversed_through() {
        for (seeds, asked) in
            [(mysql_seeds(), asked_of_mysql as fn(&[u8]) -> u32), (postgres_seeds(), asked_of_postgres)]
        {
            let of = |bits: u8| {
                let own = seeds.iter().filter(|seed| seed[0] == bits).map(|seed| asked(seed)).collect::<Vec<_>>();
                assert_eq!(own.len(), 1, "{bits}");
                own[0]
            };
            // Statements, and the batch alone or with rows; none succeed where all answers come before the requests.
            assert_eq!((of(LOGGED_IN), of(LOGGED_IN | 8), of(LOGGED_IN | 32)), (2, 2, 0));
            let early = seeds.iter().map(|seed| asked(&[&[seed[0] | 32][..], &seed[1..]].concat()));
            assert_eq!(early.max(), Some(0));
        }
    }
}
