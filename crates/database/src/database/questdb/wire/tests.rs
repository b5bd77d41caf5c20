//! Tests of reads that look again, and of values that are refused, against answers in pieces.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::*;
use crate::database::postgres::prepared::Prepared;
use crate::database::postgres::types;
use crate::record::{Cell, ColumnKind};
use crate::statement::{Expect, Step, TableColumn};

const INSERT: u16 = 0;
const READ: u16 = 1;

/// Returns a wire with an insert of a number and a read of one, and the other end of its socket, which must stay open.
fn wire() -> (QuestdbWire, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut inner = PostgresWire::new(OwnedFd::from(ours).into());
    inner.statements.push(Prepared::new("s0", "INSERT".into(), &[types::INT8], &[], false));
    inner.statements.push(Prepared::new("s1", "SELECT".into(), &[types::INT8], &[types::INT8], false));
    let mut wire = QuestdbWire::new(inner);
    let column = TableColumn { name: "id".to_owned(), kind: ColumnKind::Int64, nullable: false };
    wire.guards = vec![Some(vec![Guard::of(&column, None)]), None];
    wire.question = "LOOK".to_owned();
    (wire, theirs)
}

fn request(statement: u16, value: Cell, expect: Expect) -> Request {
    let mut request = Request::default();
    request.cells.int(0);
    request.cells.replace(0, value);
    request.steps.push(Step { statement, rows: 1, first_cell: 0, expect });
    request
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    message::write(&mut out, tag, |out| out.extend_from_slice(body));
    out
}

fn row(values: &[&[u8]]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    }
    message(b'D', &body)
}

/// Returns what the server says of an executed statement, with these rows in front of its end.
fn executed(rows: &[Vec<u8>], tag: &[u8]) -> Vec<u8> {
    [message(b'2', b""), rows.concat(), message(b'C', tag), message(b'Z', b"I")].concat()
}

fn table(written: &str, acknowledged: &str) -> Vec<u8> {
    let told = row(&[b"t", b"f", written.as_bytes(), acknowledged.as_bytes(), b"", b""]);
    [message(b'T', &[0, 0]), told, message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()
}

/// Gives the answer byte by byte. Returns the outcome and what was sent.
fn answered(
    wire: &mut QuestdbWire,
    request: &Request,
    input: &[u8],
) -> (Option<Result<Answer, DatabaseError>>, Vec<u8>) {
    let (mut out, mut from) = (Vec::new(), 0);
    for to in 1..=input.len() {
        let progress = wire.advance(request, &input[from..to], &mut out);
        from += progress.consumed;
        if progress.outcome.is_some() {
            assert_eq!(from, input.len(), "all of the answer was taken");
            return (progress.outcome, out);
        }
    }
    assert_eq!(from, input.len(), "all of the answer was taken");
    (None, out)
}

#[test]
fn a_read_that_misses_its_row_waits_for_what_was_acknowledged_and_is_sent_once_more() {
    let (mut wire, _server) = wire();
    let request = request(READ, Cell::Int(7), Expect::Rows);
    let mut kept = Cells::new();
    kept.int(1);
    wire.keep_rows(Some(kept));
    let mut first = Vec::new();
    wire.start(&request, &mut first);
    let (outcome, out) = answered(&mut wire, &request, &executed(&[], b"SELECT 0\0"));
    assert_eq!((outcome, &out[..1], &out[5..9]), (None, &b"Q"[..], &b"LOOK"[..]));
    // Others write on, and are not waited for.
    let (outcome, out) = answered(&mut wire, &request, &table("3", "5"));
    assert_eq!((outcome, &out[5..9]), (None, &b"LOOK"[..]));
    let (outcome, out) = answered(&mut wire, &request, &table("5", "9"));
    assert_eq!((outcome, &out), (None, &first), "the same is sent again");
    let found = executed(&[row(&[&7_u64.to_be_bytes()])], b"SELECT 1\0");
    let (outcome, _) = answered(&mut wire, &request, &found);
    assert_eq!(outcome, Some(Ok(Answer { rows: 1, ..Answer::default() })));
    assert_eq!(wire.keep_rows(None).unwrap().as_slice(), [Cell::Int(1), Cell::Int(7)]);
}

#[test]
fn what_is_not_there_is_empty_in_the_end_and_the_rows_of_the_first_time_do_not_stay() {
    let (mut wire, _server) = wire();
    let request = request(READ, Cell::Int(7), Expect::RowCount(2));
    wire.keep_rows(Some(Cells::new()));
    wire.start(&request, &mut Vec::new());
    let one = executed(&[row(&[&7_u64.to_be_bytes()])], b"SELECT 1\0");
    assert_eq!(answered(&mut wire, &request, &one).0, None);
    assert_eq!(answered(&mut wire, &request, &table("5", "5")).0, None);
    let (outcome, _) = answered(&mut wire, &request, &one);
    assert!(matches!(outcome, Some(Err(DatabaseError::Miscounted(_)))), "{outcome:?}");
    assert_eq!(wire.keep_rows(None).unwrap().as_slice(), [Cell::Int(7)]);
}

#[test]
fn a_log_that_is_not_applied_any_more_fails_the_read_and_the_connection_stays() {
    let (mut wire, _server) = wire();
    let read = request(READ, Cell::Int(7), Expect::Rows);
    wire.start(&read, &mut Vec::new());
    answered(&mut wire, &read, &executed(&[], b"SELECT 0\0"));
    let told =
        [row(&[b"t", b"t", b"3", b"5", b"DISK FULL", b""]), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat();
    let (outcome, _) = answered(&mut wire, &read, &told);
    assert!(matches!(&outcome, Some(Err(DatabaseError::Refused { code, .. })) if code == "suspended"), "{outcome:?}");
    let insert = request(INSERT, Cell::Int(8), Expect::Changed(1));
    wire.start(&insert, &mut Vec::new());
    let (outcome, _) = answered(&mut wire, &insert, &executed(&[], b"INSERT 0 1\0"));
    assert_eq!(outcome, Some(Ok(Answer { changed: 1, ..Answer::default() })));
    // A refusal of the question is one of the read; anything else than an answer is a loss.
    wire.start(&read, &mut Vec::new());
    answered(&mut wire, &read, &executed(&[], b"SELECT 0\0"));
    let refused = [message(b'E', b"SERROR\0C00000\0Mno such function\0\0"), message(b'Z', b"I")].concat();
    assert!(matches!(answered(&mut wire, &read, &refused).0, Some(Err(DatabaseError::Refused { .. }))));
    wire.start(&read, &mut Vec::new());
    answered(&mut wire, &read, &executed(&[], b"SELECT 0\0"));
    assert!(matches!(answered(&mut wire, &read, &message(b'9', b"")).0, Some(Err(DatabaseError::Lost(_)))));
}

#[test]
fn a_value_that_would_come_back_as_null_is_refused_and_nothing_of_it_is_sent() {
    let (mut wire, _server) = wire();
    for value in [Cell::Int(i64::MIN), Cell::Null] {
        let request = request(INSERT, value, Expect::Changed(1));
        let mut out = Vec::new();
        wire.start(&request, &mut out);
        assert_eq!(out, message::SYNC);
        let (outcome, _) = answered(&mut wire, &request, &message(b'Z', b"I"));
        let told = outcome.unwrap().unwrap_err().to_string();
        assert!(told.contains("column id") && told.contains("null"), "{told}");
    }
}
