//! Fuzzing of a session that logs in, makes a table, writes, reads and counts against a hostile server.

use super::Consistency;
use super::frame::{long_bytes, opcode, read_frame, short_bytes};
use super::startup::log_in;
use super::wire::CassandraWire;
use crate::database::fuzzed_table::{self, insert, select, table, update};
use crate::database::session::WireSession;
use crate::database::tls::Socket;
use crate::database::{Endpoint, TargetSession};
use crate::fuzzed::{Target, said_by_a_server};
use crate::record::Cells;
use crate::statement::{Comparison, Expect, Program, Request, Statement, Step};

/// A server. The first byte selects the requests.
pub static CASSANDRA: Target = Target {
    name: "cassandra",
    run: |input| {
        asked(input);
    },
    seeds,
    words: &["\u{0}\u{0}\u{0}\u{2}", "\u{0}\u{0}\u{0}\u{4}", "\u{0}\u{0}\u{22}\u{0}", "\u{0}\u{d}", "\u{0}\u{21}"],
    memory: (256 << 10, 256),
    is_linear: true,
};

/// The bits of the first byte: only log in; only count; read besides writing; make the table first; write several rows.
const LOGIN: u8 = 1;
const COUNT: u8 = 2;
const READS: u8 = 4;
const MAKES: u8 = 8;
const SEVERAL: u8 = 16;

fn answer(stream: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x84, 0, 0, stream, opcode];
    long_bytes(body, &mut out);
    out
}

/// A description of columns of one table.
fn columns(types: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 1, 0, 0, 0, types.len() as u8];
    [&b"k"[..], b"t"].iter().for_each(|name| short_bytes(name, &mut out));
    for number in types {
        short_bytes(b"c", &mut out);
        out.extend_from_slice(&[0, *number]);
    }
    out
}

fn rows(types: &[u8], values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = [&[0, 0, 0, 2][..], &columns(types)].concat();
    out.extend_from_slice(&[0, 0, 0, (values.len() / types.len()) as u8]);
    for value in values {
        match value {
            Some(bytes) => long_bytes(bytes, &mut out),
            None => out.extend_from_slice(&[0xff; 4]),
        }
    }
    out
}

fn prepared(values: &[u8], read: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 4];
    short_bytes(b"id", &mut out);
    // The numbers of the columns of the partition's key are between the counts and the names.
    let described = columns(values);
    out.extend_from_slice(&described[..8]);
    out.extend_from_slice(&[0, 0, 0, 1, 0, 0]);
    out.extend_from_slice(&described[8..]);
    out.extend_from_slice(&columns(read));
    answer(0, opcode::RESULT, &out)
}

fn seeds() -> Vec<Vec<u8>> {
    let void = |stream| answer(stream, opcode::RESULT, &[0, 0, 0, 1]);
    let version = |text: &str| answer(0, opcode::RESULT, &rows(&[0x0d], &[Some(text.as_bytes())]));
    let agreed = [version("1"), version("1")].concat();
    let made = [void(0), agreed.clone()].concat();
    let all = [prepared(&[2, 13, 2], &[]), prepared(&[2], &[2, 13]), prepared(&[2, 13, 2], &[])].concat();
    let read = answer(2, opcode::RESULT, &rows(&[2, 13], &[Some(&7_i64.to_be_bytes()), None]));
    let ends = [version("5.0"), made.clone()].concat();
    let asks = [&[0, 1][..], b"x"].concat();
    let refused = [&[0, 0, 1, 0, 0, 2][..], b"no"].concat();
    let said = |first: u8, parts: &[&[u8]]| [&[first][..], &parts.concat()].concat();
    vec![
        said(LOGIN, &[&answer(0, opcode::READY, b"")]),
        said(LOGIN, &[&answer(0, opcode::AUTHENTICATE, &asks), &answer(0, opcode::AUTH_SUCCESS, &[0xff; 4])]),
        said(LOGIN, &[&answer(0, opcode::ERROR, &refused)]),
        said(COUNT, &[&answer(0, opcode::RESULT, &rows(&[2], &[Some(&9_i64.to_be_bytes())]))]),
        said(MAKES | READS, &[&made, &all, &void(1), &read, &ends]),
        said(SEVERAL | READS, &[&all, &void(1), &read, &ends]),
        said(0, &[&all, &answer(1, opcode::ERROR, &refused), &ends]),
    ]
}

fn program() -> Program {
    let by_id = Statement::Select(select(["id", "note"], "id", Comparison::Equal));
    fuzzed_table::program(table(), vec![insert(), by_id, update()])
}

/// Returns the number of requests to such a server that were answered.
fn asked(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    if let Ok(Some((_, length))) = read_frame(said) {
        assert!(length <= said.len());
    }
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    let socket = Socket::from(std::os::fd::OwnedFd::from(ours));
    converse(WireSession::new(CassandraWire::new(socket, "k".to_owned(), Consistency::One)), *first)
}

fn converse(mut session: WireSession<CassandraWire>, first: u8) -> u32 {
    session.parts().1.follow_script(true);
    let mut answered = 0;
    let mut goes_on = |outcome| fuzzed_table::goes_on(outcome, &mut answered);
    if first & LOGIN != 0 {
        let endpoint = Endpoint { user: "ann".to_owned(), ..Endpoint::default() };
        goes_on(log_in(session.parts().1, &endpoint));
        return answered;
    }
    if first & COUNT != 0 {
        goes_on(session.count_rows("t").map(drop));
        return answered;
    }
    if first & MAKES != 0 && !goes_on(session.create_table(&table())) || !goes_on(session.prepare(&program())) {
        return answered;
    }
    let rows = if first & SEVERAL != 0 { 3 } else { 1 };
    let mut request = Request::default();
    for number in 0..rows {
        request.cells.int(number);
        request.cells.text("x");
    }
    let expect = Expect::Changed(rows as u64);
    request.steps.push(Step { statement: 0, rows: rows as u32, first_cell: 0, expect });
    if first & READS != 0 {
        let first_cell = request.cells.len() as u32;
        request.cells.int(1);
        request.steps.push(Step { statement: 1, rows: 1, first_cell, expect: Expect::Rows });
    }
    let mut found = Cells::new();
    let outcome = session.execute(&request, Some(&mut found));
    if let Ok(answer) = &outcome {
        assert_eq!(answer.changed, rows as u64, "an answer to these rows");
        assert!(answer.rows <= 1 && found.len() as u64 == 2 * answer.rows);
    }
    if goes_on(outcome.map(drop)) {
        goes_on(session.version().and_then(|_| session.drop_table("t")));
    }
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_target_begins_with_is_conversed_through() {
        let found: Vec<u32> = seeds().iter().map(|seed| asked(seed)).collect();
        assert_eq!(found, [1, 1, 0, 1, 4, 3, 2]);
    }
}
