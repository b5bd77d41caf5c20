//! Fuzzing of the answers of a hostile recorder or NATS server to records.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::http::HttpWire;
use super::lines::Lines;
use super::nats::NatsWire;
use crate::database::session::{Prepare, WireSession};
use crate::database::tls::Socket;
use crate::database::{DatabaseError, TargetSession};
use crate::fuzzed::{Target, assert_short, said_by_a_server, texts};
use crate::record::{Column, ColumnKind, RecordType};
use crate::statement::{Expect, Program, Request, Statement, Step, TableColumn};

/// The maximum bytes of an error that quotes an answer.
const TOLD_BYTES_MAX: usize = 2 << 10;

/// The two ways to a recorder. The first byte selects one.
pub static FRONTS: Target = Target {
    name: "fronts",
    run: |input| {
        acknowledged(input);
    },
    seeds: || {
        texts(&[
            "\u{0}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nfullHTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
            "\u{3}INFO {\"version\":\"2.9.10\"}\r\nPING\r\nPONG\r\nINFO {}\r\n",
            "\u{1}INFO {}\r\nMSG _INBOX.f.1 1 22\r\n{\"stream\":\"s\",\"seq\":3}\r\nPING\r\nMSG _INBOX.f.2 1 46\r\n{\"error\":{\"code\":400,\"description\":\"it is full\"}}\r\n",
            "\u{1}HMSG _INBOX.f.1 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n-ERR 'no'\r\n",
        ])
    },
    words: &[
        "HTTP/1.1 204 No Content\r\n",
        "HTTP/1.1 503 ",
        "content-length: ",
        "18446744073709551615\r\n\r\n",
        "MSG _INBOX.f.1 1 ",
        "{\"seq\":1}\r\n",
        "PONG\r\n",
        "PING\r\n",
        "-ERR ",
    ],
    memory: (512 << 10, 128),
    is_linear: true,
};

/// Returns the number of requests that were acknowledged.
fn acknowledged(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    let (socket, lines) = (Socket::from(OwnedFd::from(ours)), Arc::new(Lines::new("t", &record_type(), 1)));
    if first & 1 == 0 {
        return converse(WireSession::new(HttpWire::over(socket, lines, "t")), *first);
    }
    let inbox = "_INBOX.f".to_owned();
    if first & 2 == 0 {
        let wire = NatsWire::greeted(socket, String::new(), "s", (inbox, lines));
        return converse(WireSession::new(wire), *first);
    }
    match NatsWire::over(socket, None, "s", (inbox, lines)) {
        Ok(wire) => converse(WireSession::new(wire), *first),
        Err(error) => {
            assert_short(&error.to_string(), TOLD_BYTES_MAX);
            0
        }
    }
}

/// Returns a record type of one number that identifies the source and one that is measured.
pub(super) fn record_type() -> RecordType {
    let column = |name: &str| Column { name: name.to_owned(), kind: ColumnKind::Int32, nullable: false, hot: true };
    RecordType {
        name: "t".to_owned(),
        identity: vec![column("port")],
        identity_key: 1,
        identity_end: None,
        series: None,
        key: None,
        values: vec![column("lost")],
    }
}

/// Sends requests of records one after another until the connection is lost. Returns the number acknowledged.
fn converse<W: Prepare + 'static>(mut session: WireSession<W>, first: u8) -> u32 {
    session.parts().1.follow_script(first & 32 == 0);
    let column = TableColumn { name: "lost".to_owned(), kind: ColumnKind::Int32, nullable: false };
    let statements = vec![Statement::Insert { table: "t".to_owned(), columns: vec![column] }];
    let program = Program { statements, rows_max: 2, ..Program::default() };
    let mut acknowledged = 0;
    if session.prepare(&program).is_err() {
        return acknowledged;
    }
    for number in 0..3 {
        let mut request = Request::default();
        for record in 0..2 {
            [2 * number + record, 80, -3].into_iter().for_each(|value| request.cells.int(value));
        }
        request.steps.push(Step { statement: 0, rows: 2, first_cell: 0, expect: Expect::Changed(2) });
        match session.execute(&request, None) {
            Ok(answer) => {
                assert_eq!(answer.changed, 2, "an answer is about all records or none");
                acknowledged += 1;
            }
            Err(error) => {
                assert_short(&error.to_string(), TOLD_BYTES_MAX);
                if matches!(error, DatabaseError::Lost(_)) {
                    return acknowledged;
                }
            }
        }
    }
    acknowledged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_target_begins_with_is_conversed_through() {
        let found: Vec<u32> = (FRONTS.seeds)().iter().map(|seed| acknowledged(seed)).collect();
        assert_eq!(found, [2, 0, 1, 0]);
        // Data before the request is no answer; from a NATS server it may be about earlier messages.
        let early = |seed: &Vec<u8>| acknowledged(&[&[seed[0] | 32][..], &seed[1..]].concat());
        assert_eq!((FRONTS.seeds)().iter().map(early).collect::<Vec<_>>(), [0, 0, 0, 0]);
    }
}
