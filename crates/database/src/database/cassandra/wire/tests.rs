//! Tests of messages as they are sent, and of answers that no server gives.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::super::frame::long_bytes;
use super::*;
use crate::record::ColumnKind;
use crate::statement::Expect;

const INSERT: u16 = 0;
const UPDATE: u16 = 1;
const SELECT: u16 = 2;

/// A connection whose statements are named `i`, `u` and `s`; nobody is at its other end.
fn wire() -> CassandraWire {
    let (ours, _) = UnixStream::pair().unwrap();
    let mut wire = CassandraWire::new(Socket::from(OwnedFd::from(ours)), "k".to_owned(), Consistency::One);
    let plan = |action, kinds: &[ColumnKind], id: &[u8]| Plan {
        cql: String::new(),
        kinds: kinds.to_vec(),
        action,
        id: id.to_vec(),
    };
    let (whole, small) = (ColumnKind::Int64, ColumnKind::Int16);
    wire.plans = vec![
        plan(Action::Insert, &[whole, small], b"i"),
        plan(Action::Update, &[small, whole], b"u"),
        plan(Action::Select(vec![small]), &[whole], b"s"),
    ];
    wire
}

/// Adds a step to a request, with whole numbers as values.
fn step(request: &mut Request, statement: u16, rows: u32, values: &[i64]) {
    let first_cell = request.cells.len() as u32;
    values.iter().for_each(|value| request.cells.int(*value));
    let expect = if statement == SELECT { Expect::Rows } else { Expect::Changed(rows.into()) };
    request.steps.push(Step { statement, rows, first_cell, expect });
}

fn answer(stream: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x84, 0, 0, stream, opcode];
    long_bytes(body, &mut out);
    out
}

fn void(stream: u8) -> Vec<u8> {
    answer(stream, opcode::RESULT, &[0, 0, 0, 1])
}

/// Rows of a single small number, without a description.
fn rows(stream: u8, count: u8) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, count];
    (0..count).for_each(|number| long_bytes(&[0, number], &mut body));
    answer(stream, opcode::RESULT, &body)
}

/// The kinds of the messages in these bytes.
fn opcodes(mut sent: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    while let Some(header) = sent.first_chunk::<9>() {
        let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize;
        assert_eq!(header[..2], [4, 0], "a request of version 4 without flags");
        found.push(header[4]);
        sent = &sent[9 + length..];
    }
    assert!(sent.is_empty());
    found
}

#[test]
fn writes_that_follow_each_other_are_one_message_and_reads_wait_for_them() {
    let (mut wire, mut request, mut out) = (wire(), Request::default(), Vec::new());
    step(&mut request, INSERT, 2, &[1, 10, 2, 20]);
    step(&mut request, UPDATE, 1, &[30, 2]);
    step(&mut request, SELECT, 1, &[2]);
    step(&mut request, UPDATE, 1, &[40, 2]);
    wire.start(&request, &mut out);
    assert_eq!(opcodes(&out), [opcode::BATCH]);
    assert_eq!(out[9..12], [LOGGED, 0, 3], "three statements");
    out.clear();
    assert_eq!(wire.advance(&request, &void(1), &mut out).outcome, None);
    assert_eq!(opcodes(&out), [opcode::EXECUTE]);
    out.clear();
    assert_eq!(wire.advance(&request, &rows(2, 1), &mut out).outcome, None);
    assert_eq!(opcodes(&out), [opcode::EXECUTE]);
    let ended = wire.advance(&request, &void(3), &mut out).outcome;
    assert_eq!(ended, Some(Ok(Answer { rows: 1, changed: 4, empty: 0 })));
}

#[test]
fn each_step_is_written_later_than_the_one_before() {
    let (mut wire, mut out) = (wire(), Vec::new());
    let mut stamps = Vec::new();
    for _ in 0..100 {
        let mut request = Request::default();
        step(&mut request, UPDATE, 1, &[7, 1]);
        out.clear();
        wire.start(&request, &mut out);
        // Behind the header, the name, the consistency, the flags and the number of values: the length of the first value, and the value.
        let from = 9 + 3 + 2 + 1 + 2;
        assert_eq!(out[from..from + 4], [0, 0, 0, 8]);
        stamps.push(i64::from_be_bytes(out[from + 4..from + 12].try_into().unwrap()));
    }
    assert!(stamps.is_sorted_by(|a, b| a < b), "{stamps:?}");
}

#[test]
fn what_no_server_answers_ends_the_connection() {
    let lost = |statement: u16, said: &[u8]| {
        let (mut wire, mut request) = (wire(), Request::default());
        step(&mut request, statement, 1, if statement == SELECT { &[1] } else { &[1, 2] });
        wire.start(&request, &mut Vec::new());
        let ended = wire.advance(&request, said, &mut Vec::new()).outcome;
        assert!(matches!(ended, Some(Err(DatabaseError::Lost(_)))), "{said:?}: {ended:?}");
    };
    lost(INSERT, &void(2));
    lost(INSERT, &rows(1, 1));
    lost(INSERT, &answer(1, opcode::READY, b""));
    lost(INSERT, &answer(1, opcode::SUPPORTED, b""));
    lost(SELECT, &void(1));
    lost(SELECT, &rows(1, 2));
    let mut cut = rows(1, 1);
    cut[8] -= 1;
    lost(SELECT, &cut);
    // A value of another length than that of its type, and bytes behind the last value.
    let head = [0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1];
    lost(SELECT, &answer(1, opcode::RESULT, &[&head[..], &[0, 0, 0, 1, 9]].concat()));
    lost(SELECT, &answer(1, opcode::RESULT, &[&head[..], &[0, 0, 0, 2, 0, 9, 0]].concat()));
    // Nobody knows whether the write is stored.
    lost(INSERT, &answer(1, opcode::ERROR, &[0, 0, 0x11, 0, 0, 0]));
}

#[test]
fn what_cannot_be_sent_is_refused_and_the_connection_goes_on() {
    let (mut wire, mut request, mut out) = (wire(), Request::default(), Vec::new());
    step(&mut request, INSERT, 1, &[1, 40_000]);
    wire.start(&request, &mut out);
    assert_eq!(opcodes(&out), [opcode::OPTIONS], "a question shows that the server is there");
    let asked = answer(wire.stream as u8, opcode::SUPPORTED, b"\0\0");
    let ended = wire.advance(&request, &asked, &mut out).outcome;
    assert!(matches!(ended, Some(Err(DatabaseError::Refused { .. }))), "{ended:?}");
    let (mut request, mut out) = (Request::default(), Vec::new());
    step(&mut request, INSERT, 1, &[1, 4]);
    wire.start(&request, &mut out);
    let ended = wire.advance(&request, &void(wire.stream as u8), &mut out).outcome;
    assert_eq!(ended, Some(Ok(Answer { changed: 1, ..Answer::default() })));
}

#[test]
fn rows_that_are_kept_are_those_of_the_answer() {
    let (mut wire, mut request) = (wire(), Request::default());
    step(&mut request, SELECT, 1, &[1]);
    for count in [1, 0] {
        wire.keep_rows(Some(Cells::new()));
        wire.start(&request, &mut Vec::new());
        let stream = wire.stream as u8;
        let ended = wire.advance(&request, &rows(stream, count), &mut Vec::new()).outcome;
        let right = Answer { rows: count.into(), changed: 0, empty: u32::from(count == 0) };
        assert_eq!(ended, Some(Ok(right)));
        assert_eq!(wire.keep_rows(None).unwrap().len(), usize::from(count));
    }
}
