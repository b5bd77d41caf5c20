//! Tests of the wire against answers in any pieces.

use super::*;
use crate::database::fuzzed_table::{insert, program, select, table};
use crate::database::mongodb::message::answer;
use crate::record::Cell;
use crate::statement::{Comparison, Statement};

fn wire() -> (MongodbWire, std::os::unix::net::UnixStream) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let socket = Socket::from(std::os::fd::OwnedFd::from(ours));
    let mut wire = MongodbWire::new(socket, "d".to_owned(), Vec::new(), None);
    let from_id = Statement::Select(select(["id", "note"], "id", Comparison::GreaterOrEqual));
    wire.plans = Plan::of(&program(table(), vec![insert(), from_id])).unwrap();
    (wire, theirs)
}

/// An insert of two rows and a query for them.
fn both() -> Request {
    let mut request = Request::default();
    for id in [7, 8] {
        request.cells.int(id);
        request.cells.text("a'b");
    }
    request.cells.int(7);
    request.steps.push(Step { statement: 0, rows: 2, first_cell: 0, expect: Expect::Changed(2) });
    request.steps.push(Step { statement: 1, rows: 1, first_cell: 4, expect: Expect::Rows });
    request
}

fn stored(number: u32, rows: i32) -> Vec<u8> {
    answer(number, |out| {
        bson::int32("n", rows, out);
        bson::double("ok", 1.0, out);
    })
}

/// Documents of these numbers; only the first has a note, in front of its number.
fn found(number: u32, batch: &str, cursor: i64, ids: &[i64]) -> Vec<u8> {
    answer(number, |out| {
        bson::document("cursor", out, |out| {
            bson::int64("id", cursor, out);
            bson::array(batch, out, |out| {
                for (place, id) in ids.iter().enumerate() {
                    bson::document(&place.to_string(), out, |out| {
                        if place == 0 {
                            bson::text("note", b"x", out);
                        }
                        bson::text("_id", format!("{id:019}").as_bytes(), out);
                    });
                }
            });
        });
        bson::double("ok", 1.0, out);
    })
}

/// The outcome of answers that arrive in pieces of this size, and the number of messages that were sent.
fn driven(said: &[u8], piece: usize) -> (Option<Result<Answer, DatabaseError>>, Cells, u32) {
    let (mut wire, _theirs) = wire();
    wire.keep_rows(Some(Cells::new()));
    let (request, mut sent) = (both(), Vec::new());
    wire.start(&request, &mut sent);
    let (mut at, mut shown) = (0, 0);
    loop {
        let progress = wire.advance(&request, &said[at..shown], &mut sent);
        at += progress.consumed;
        if progress.outcome.is_some() || progress.consumed == 0 && shown == said.len() {
            return (progress.outcome, wire.keep_rows(None).unwrap(), wire.number);
        }
        shown = (shown + piece).min(said.len());
    }
}

#[test]
fn rows_come_from_all_batches_of_a_cursor_in_pieces_of_any_size() {
    let said = [
        stored(1, 2),
        found(2, "firstBatch", 5, &[7]),
        found(3, "nextBatch", 5, &[]),
        found(4, "nextBatch", 0, &[8, 9]),
    ];
    let said = said.concat();
    for piece in [1, 3, 100, said.len()] {
        let (outcome, rows, sent) = driven(&said, piece);
        assert_eq!(outcome, Some(Ok(Answer { rows: 3, changed: 2, empty: 0 })));
        let ids: Vec<Cell> = rows.as_slice().iter().step_by(2).copied().collect();
        assert_eq!(ids, [7, 8, 9].map(Cell::Int));
        let notes = [rows.get(1), rows.get(3), rows.get(5)].map(|cell| cell != Cell::Null);
        assert_eq!((notes, sent), ([true, true, false], 4), "a missing member is null");
    }
}

#[test]
fn what_is_stored_before_a_refusal_stays_and_is_named() {
    let refused = answer(1, |out| {
        bson::int32("n", 1, out);
        bson::array("writeErrors", out, |out| {
            bson::document("0", out, |out| {
                bson::int32("code", 11000, out);
                bson::text("errmsg", b"E11000 duplicate", out);
            });
        });
        bson::double("ok", 1.0, out);
    });
    let (outcome, _, sent) = driven(&refused, 7);
    let told = outcome.unwrap().unwrap_err();
    assert!(told.is_refusal() && told.to_string().contains("stays: 1"), "{told}");
    assert_eq!(sent, 1, "the next step is not sent");
    let (outcome, ..) = driven(&stored(1, 1), 7);
    assert!(matches!(outcome, Some(Err(DatabaseError::Miscounted(found))) if found.stays && found.rows == 1));
}

#[test]
fn answers_that_cannot_be_end_the_connection() {
    let after = |said: Vec<u8>| driven(&[stored(1, 2), said].concat(), 1_000).0.unwrap().unwrap_err();
    let silent = answer(2, |out| bson::double("ok", 1.0, out));
    let number = answer(2, |out| {
        bson::document("cursor", out, |out| {
            bson::array("firstBatch", out, |out| bson::int32("0", 7, out));
            bson::int64("id", 0, out);
        });
        bson::double("ok", 1.0, out);
    });
    for said in [silent, number, found(9, "firstBatch", 0, &[7]), b"HTTP/1.1 400 Bad Request".to_vec()] {
        assert!(after(said).is_lost());
    }
    let endless: Vec<u8> = (2..2_000).flat_map(|number| found(number, "nextBatch", 5, &[])).collect();
    assert!(after(endless).to_string().contains("does not come to an end"));
    assert!(driven(&stored(1, 3), 1_000).0.unwrap().unwrap_err().is_lost(), "more than was sent");
}

#[test]
fn values_that_are_none_of_their_columns_are_refused_before_anything_is_sent() {
    let (mut wire, _theirs) = wire();
    let (mut request, mut sent) = (both(), Vec::new());
    request.cells.replace(0, Cell::Null);
    wire.start(&request, &mut sent);
    // Instead, it is asked whether the server is there.
    let progress = wire.advance(&request, &stored(2, 0), &mut Vec::new());
    let told = progress.outcome.unwrap().unwrap_err();
    assert!(told.is_refusal() && told.to_string().contains("a key is null"), "{told}");
    assert!(!sent.windows(6).any(|part| part == b"insert"));
}
