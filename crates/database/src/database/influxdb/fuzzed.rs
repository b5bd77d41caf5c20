//! Fuzzing of a session that makes a table, writes, reads and counts against a hostile server.

use super::exchange::Lines;
use super::wire::InfluxdbWire;
use crate::database::fuzzed_table::{self, insert, select, table};
use crate::database::session::WireSession;
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint, TargetSession};
use crate::fuzzed::{Target, assert_told, said_by_a_server};
use crate::record::Cells;
use crate::statement::{Comparison, Expect, Program, Request, Statement, Step};

/// The maximum bytes of an error that quotes an answer.
const TOLD_BYTES_MAX: usize = 2 << 10;

/// A server. The first byte selects the requests.
pub static INFLUXDB: Target = Target {
    name: "influxdb",
    run: |input| {
        asked(input);
    },
    seeds: || {
        let none = sized(b"{\"results\":[{\"statement_id\":0}]}");
        let there = sized(
            b"{\"results\":[{\"series\":[{\"name\":\"measurements\",\"columns\":[\"name\"],\"values\":[[\"t\"]]}]}]}",
        );
        let made = sized(
            b"{\"results\":[{\"series\":[{\"columns\":[\"time\",\"loadline_made\"],\"values\":[[-1,\"id\"]]}]}]}",
        );
        let count = sized(b"{\"results\":[{\"series\":[{\"columns\":[\"time\",\"count\"],\"values\":[[0,7]]}]}]}");
        let stored = b"HTTP/1.1 204 No Content\r\nX-Influxdb-Version: 1.6.7\r\n\r\n".to_vec();
        let rows = sized(
            b"\x81\xa7results\x91\x82\xacstatement_id\x00\xa6series\x91\x84\xa4name\xa1t\xa4tags\x81\xa1a\xa11\xa7columns\x93\xa4time\xa4note\xa2id\
              \xa6values\x92\x93\x01\xa1x\x01\x93\x02\xc0\xd3\x00\x00\x00\x00\x00\x00\x00\x02",
        );
        let refused = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\n\r\n\x81\xa5error\xa2no".to_vec();
        let of = |first: u8, parts: &[&[u8]]| [&[first][..], &parts.concat()].concat();
        vec![
            of(0, &[&none, &stored, &stored]),
            of(1, &[&none, &stored, &stored, &rows]),
            of(1, &[&none, &stored, &refused]),
            of(1, &[&there]),
            of(2, &[&none, &stored, &made, &count]),
            of(3, &[&made, &count, &none]),
            of(5, &[&none, &stored, &stored, &rows]),
        ]
    },
    words: &[
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 500 ",
        "Transfer-Encoding: chunked\r\n\r\n",
        "Content-Length: ",
        "18446744073709551615\r\n\r\n",
        "0\r\n\r\n",
        "{\"results\":[{\"series\":[",
        "{\"error\":\"",
        "results",
        "values",
        "\u{0}",
        "\u{1}",
    ],
    memory: (768 << 10, 128),
    is_linear: true,
};

/// Returns an answer with its length.
fn sized(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// The bits of the first byte besides those that select requests: the rows that are read are only counted; a client that sends before it looks at answers.
const COUNTS: u8 = 4;
const UNSCRIPTED: u8 = 32;

fn program() -> Program {
    let from_id = Statement::Select(select(["id", "note"], "id", Comparison::GreaterOrEqual));
    fuzzed_table::program(table(), vec![insert(), from_id])
}

/// Returns the number of requests to such a server that were answered.
fn asked(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    let socket = Socket::from(std::os::fd::OwnedFd::from(ours));
    let lines = Lines::new(&Endpoint::default());
    converse(WireSession::new(InfluxdbWire::new(socket, lines, String::new(), "1.6.7".to_owned())), *first)
}

fn converse(mut session: WireSession<InfluxdbWire>, first: u8) -> u32 {
    session.parts().1.follow_script(first & UNSCRIPTED == 0);
    let mut answered = 0;
    let mut goes_on = |outcome: Result<(), DatabaseError>| {
        if let Err(error) = &outcome {
            assert_told(&error.to_string(), TOLD_BYTES_MAX);
        }
        answered += u32::from(outcome.is_ok());
        !matches!(outcome, Err(DatabaseError::Lost(_)))
    };
    if first & 3 == 3 {
        if goes_on(session.count_rows("t").map(drop)) {
            goes_on(session.ask("data.wal-fsync-delay").map(drop));
        }
        return answered;
    }
    if !goes_on(session.create_table(&table())) || !goes_on(session.prepare(&program())) {
        return answered;
    }
    if first & 2 != 0 {
        goes_on(session.count_rows("t").map(drop));
        return answered;
    }
    let mut request = Request::default();
    request.cells.int(1);
    request.cells.text("x");
    request.cells.int(1);
    request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
    if first & 1 != 0 {
        request.steps.push(Step { statement: 1, rows: 1, first_cell: 2, expect: Expect::Rows });
    }
    let mut rows = Cells::new();
    let kept = (first & COUNTS == 0).then_some(&mut rows);
    let outcome = session.execute(&request, kept);
    if let Ok(answer) = &outcome {
        assert_eq!(answer.changed, 1, "an answer to one row");
        assert!(first & COUNTS != 0 || rows.len() as u64 == 2 * answer.rows);
    }
    goes_on(outcome.map(drop));
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_target_begins_with_is_conversed_through() {
        let found: Vec<u32> = (INFLUXDB.seeds)().iter().map(|seed| asked(seed)).collect();
        assert_eq!(found, [3, 3, 2, 1, 3, 2, 3]);
    }
}
