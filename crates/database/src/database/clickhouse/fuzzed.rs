//! Fuzzing of a session that logs in, makes a table, writes, reads and counts against a hostile server.

use super::Engine;
use super::exchange::Line;
use super::settings::Own;
use super::wire::ClickhouseWire;
use crate::database::fuzzed_table::{self, insert, select, table};
use crate::database::session::WireSession;
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint, TargetSession};
use crate::fuzzed::{Target, assert_told, said_by_a_server, texts};
use crate::record::Cells;
use crate::statement::{Comparison, Expect, Program, Request, Statement, Step};

/// The maximum bytes of an error that quotes an answer.
const TOLD_BYTES_MAX: usize = 2 << 10;

/// A server. The first byte selects the requests.
pub static CLICKHOUSE: Target = Target {
    name: "clickhouse",
    run: |input| {
        asked(input);
    },
    seeds: || {
        let empty = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let count = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n7\n";
        let rows = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                    9\r\n\u{1}\0\0\0\0\0\0\0\0\r\n4\r\n\u{2}xy\u{2}\r\n8\r\n\0\0\0\0\0\0\0\u{1}\r\n0\r\n\r\n";
        let refused = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n\
                       19\r\nCode: 60. DB::Exception: n\r\n0\r\n\r\n";
        texts(&[
            &format!("\u{0}{empty}{empty}"),
            &format!("\u{1}{empty}{empty}{rows}"),
            &format!("\u{1}{empty}{refused}"),
            &format!("\u{2}{empty}{count}{count}"),
            &format!("\u{3}{count}{count}"),
            &format!("\u{5}{empty}{empty}{rows}"),
        ])
    },
    words: &[
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 500 ",
        "Transfer-Encoding: chunked\r\n\r\n",
        "Content-Length: ",
        "18446744073709551615\r\n\r\n",
        "0\r\n\r\n",
        "fffffffffffffff\r\n",
        "Code: 60. DB::Exception: ",
        "\u{0}",
        "\u{1}",
    ],
    memory: (512 << 10, 128),
    is_linear: true,
};

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
    let line = Line::new(&Endpoint::default(), &[]);
    let wire = ClickhouseWire::new(socket, line, Own::default(), Engine::MergeTree, "18.16.1".to_owned());
    converse(WireSession::new(wire), *first)
}

fn converse(mut session: WireSession<ClickhouseWire>, first: u8) -> u32 {
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
            goes_on(session.ask("max_threads").map(drop));
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
        let found: Vec<u32> = (CLICKHOUSE.seeds)().iter().map(|seed| asked(seed)).collect();
        assert_eq!(found, [3, 3, 2, 3, 2, 3]);
    }
}
