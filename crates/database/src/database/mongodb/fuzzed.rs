//! Fuzzing of a session that makes a collection, writes, reads and counts against a hostile server.

use super::bson;
use super::message::answer;
use super::wire::MongodbWire;
use crate::database::TargetSession;
use crate::database::fuzzed_table::{self, insert, select, table, update};
use crate::database::session::WireSession;
use crate::database::tls::Socket;
use crate::fuzzed::{Target, said_by_a_server};
use crate::record::Cells;
use crate::statement::{Comparison, Expect, Program, Request, Statement, Step};

/// A server. The first byte selects the requests.
pub static MONGODB: Target = Target {
    name: "mongodb",
    run: |input| {
        asked(input);
    },
    seeds: || {
        let done = answer(0, |out| bson::double("ok", 1.0, out));
        let there = answer(0, |out| refusal(48, out));
        let groups = |rows: i32| move |out: &mut Vec<u8>| bson::document("0", out, |out| bson::int32("n", rows, out));
        let counted = answer(0, |out| cursor("firstBatch", 0, out, groups(7)));
        let build = answer(0, |out| {
            bson::text("version", b"7.0.42", out);
            bson::text("ferretdbVersion", b"v1.24.0", out);
            bson::double("ok", 1.0, out);
        });
        let of = |first: u8, parts: &[&[u8]]| [&[first][..], &parts.concat()].concat();
        vec![
            of(0, &[&done, &written(1, 1)]),
            of(1, &[&done, &written(1, 1), &rows(2, "firstBatch", 0)]),
            of(1, &[&done, &written(1, 1), &rows(2, "firstBatch", 9), &rows(3, "nextBatch", 0)]),
            of(1, &[&done, &answer(1, |out| refusal(11000, out))]),
            of(1, &[&there]),
            of(2, &[&done, &counted, &done]),
            of(3, &[&build, &counted, &done]),
            of(5, &[&done, &written(1, 1), &rows(2, "firstBatch", 0)]),
            of(9, &[&done, &written(1, 1), &written(2, 1), &rows(3, "firstBatch", 0)]),
            of(8, &[&done, &failed(1)]),
        ]
    },
    words: &[
        "ok",
        "\u{1}ok\u{0}",
        "\u{10}n\u{0}\u{1}\u{0}\u{0}\u{0}",
        "cursor",
        "firstBatch",
        "nextBatch",
        "\u{12}id\u{0}",
        "_id",
        "note",
        "writeErrors",
        "writeConcernError",
        "errmsg",
        "code",
        "\u{0}",
        "\u{7f}",
        "\u{5}\u{0}\u{0}\u{0}\u{0}",
    ],
    memory: (768 << 10, 128),
    is_linear: true,
};

fn refusal(code: i32, out: &mut Vec<u8>) {
    bson::double("ok", 0.0, out);
    bson::text("errmsg", b"no", out);
    bson::int32("code", code, out);
}

fn cursor(batch: &str, id: i64, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    bson::document("cursor", out, |out| {
        bson::array(batch, out, fill);
        bson::int64("id", id, out);
        bson::text("ns", b"d.t", out);
    });
    bson::double("ok", 1.0, out);
}

fn written(number: u32, rows: i32) -> Vec<u8> {
    answer(number, |out| {
        bson::int32("n", rows, out);
        bson::double("ok", 1.0, out);
    })
}

fn failed(number: u32) -> Vec<u8> {
    answer(number, |out| {
        bson::int32("n", 0, out);
        bson::array("writeErrors", out, |out| bson::document("0", out, |out| refusal(11000, out)));
        bson::double("ok", 1.0, out);
    })
}

fn rows(number: u32, batch: &str, id: i64) -> Vec<u8> {
    answer(number, |out| {
        cursor(batch, id, out, |out| {
            bson::document("0", out, |out| {
                bson::text("_id", b"0000000000000000001", out);
                bson::text("note", b"x", out);
            });
            bson::document("1", out, |out| bson::text("_id", b"-9223372036854775807", out));
        });
    })
}

/// The bits of the first byte besides those that select requests: the rows that are read are only counted; a row is changed; a client that sends before it looks at answers.
const COUNTS: u8 = 4;
const CHANGES: u8 = 8;
const UNSCRIPTED: u8 = 32;

fn program() -> Program {
    let from_id = Statement::Select(select(["id", "note"], "id", Comparison::GreaterOrEqual));
    fuzzed_table::program(table(), vec![insert(), from_id, update()])
}

/// Returns the number of requests to such a server that were answered.
fn asked(input: &[u8]) -> u32 {
    let (first, said) = input.split_first().unwrap_or((&0, &[]));
    let Some((ours, _theirs)) = said_by_a_server(said) else { return 0 };
    let socket = Socket::from(std::os::fd::OwnedFd::from(ours));
    let wire = MongodbWire::new(socket, "d".to_owned(), Vec::new(), Some("full".to_owned()));
    converse(WireSession::new(wire), *first)
}

fn converse(mut session: WireSession<MongodbWire>, first: u8) -> u32 {
    session.parts().1.follow_script(first & UNSCRIPTED == 0);
    let mut answered = 0;
    let mut goes_on = |outcome| fuzzed_table::goes_on(outcome, &mut answered);
    if first & 3 == 3 {
        if goes_on(session.version().map(drop)) && goes_on(session.count_rows("t").map(drop)) {
            goes_on(session.drop_table("t"));
        }
        return answered;
    }
    if !goes_on(session.create_table(&table())) || !goes_on(session.prepare(&program())) {
        return answered;
    }
    if first & 2 != 0 {
        if goes_on(session.count_rows("t").map(drop)) {
            goes_on(session.drop_table("t"));
        }
        return answered;
    }
    let mut request = Request::default();
    let mut step = |statement: u16, expect: Expect, fill: &dyn Fn(&mut Cells)| {
        let first_cell = request.cells.len() as u32;
        fill(&mut request.cells);
        request.steps.push(Step { statement, rows: 1, first_cell, expect });
    };
    step(0, Expect::Changed(1), &|cells| {
        cells.int(1);
        cells.text("x");
    });
    if first & CHANGES != 0 {
        step(2, Expect::Changed(1), &|cells| {
            cells.null();
            cells.int(1);
        });
    }
    if first & 1 != 0 {
        step(1, Expect::Rows, &|cells| cells.int(1));
    }
    let right = request.steps.len() as u64 - u64::from(first & 1);
    let mut rows = Cells::new();
    let kept = (first & COUNTS == 0).then_some(&mut rows);
    let outcome = session.execute(&request, kept);
    if let Ok(answer) = &outcome {
        assert_eq!(answer.changed, right, "an answer to one row for each step that writes");
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
        let found: Vec<u32> = (MONGODB.seeds)().iter().map(|seed| asked(seed)).collect();
        assert_eq!(found, [3, 3, 3, 2, 1, 4, 3, 3, 3, 2]);
    }
}
