//! Tests of the wire against answers in any pieces.

use super::*;
use crate::database::{Answer, Endpoint};
use crate::record::{Cell, ColumnKind};
use crate::statement::{ColumnRef, Comparison, Condition, Expect, Select, Statement, Step, TableColumn};

fn program() -> Program {
    let column = |name: &str, kind, nullable| TableColumn { name: name.to_owned(), kind, nullable };
    let columns = vec![column("id", ColumnKind::Int16, false), column("note", ColumnKind::Text(40), true)];
    let at = |name: &str| ColumnRef { table: "t".to_owned(), column: name.to_owned() };
    let condition = Condition { column: at("note"), kind: ColumnKind::Text(40), comparison: Comparison::Equal };
    let select = Select {
        columns: vec![at("id"), at("note")],
        from: "t".to_owned(),
        conditions: vec![condition],
        ..Select::default()
    };
    let table = Table {
        name: "t".to_owned(),
        columns: columns.clone(),
        primary_key: vec!["id".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    };
    let statements = vec![Statement::Insert { table: "t".to_owned(), columns }, Statement::Select(select)];
    Program { tables: vec![table], statements, rows_max: 10, ..Program::default() }
}

fn wire() -> (ClickhouseWire, std::os::unix::net::UnixStream) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let line = Line::new(&Endpoint::default(), &[]);
    let socket = Socket::from(std::os::fd::OwnedFd::from(ours));
    let mut wire = ClickhouseWire::new(socket, line, Own::default(), Engine::MergeTree, "18.16.1".to_owned());
    wire.plans = Plan::of(&program()).unwrap();
    (wire, theirs)
}

/// An insert of the row (7, "a'b") and a query for that text.
fn both() -> Request {
    let mut request = Request::default();
    request.cells.int(7);
    request.cells.text("a'b");
    request.cells.text("a'b");
    request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
    request.steps.push(Step { statement: 1, rows: 1, first_cell: 2, expect: Expect::Rows });
    request
}

/// The outcome of answers that arrive in pieces of this size, with what was sent.
fn driven(
    wire: &mut ClickhouseWire,
    request: &Request,
    said: &[u8],
    piece: usize,
) -> (Option<Result<Answer, DatabaseError>>, Vec<u8>) {
    let mut sent = Vec::new();
    wire.start(request, &mut sent);
    let (mut at, mut shown) = (0, 0);
    loop {
        let progress = wire.advance(request, &said[at..shown], &mut sent);
        at += progress.consumed;
        if progress.outcome.is_some() {
            return (progress.outcome, sent);
        }
        if progress.consumed == 0 && shown == said.len() {
            return (None, sent);
        }
        shown = (shown + piece).min(said.len());
    }
}

const STORED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";

fn rows(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [STORED.as_bytes(), head.as_bytes(), body].concat()
}

#[test]
fn steps_are_sent_one_after_the_other_and_rows_arrive_in_pieces_of_any_size() {
    let said = rows(&[&[7, 0, 0, 3][..], b"a'b", &[8, 0, 1]].concat());
    for piece in [1, 2, 3, 5, 1_000] {
        let (mut wire, _theirs) = wire();
        wire.keep_rows(Some(Cells::new()));
        let (outcome, sent) = driven(&mut wire, &both(), &said, piece);
        assert_eq!(outcome, Some(Ok(Answer { rows: 2, changed: 1, empty: 0 })), "{piece}");
        let kept = wire.keep_rows(None).unwrap();
        let found: Vec<_> = kept.as_slice().iter().map(|cell| kept.to_json(*cell)).collect();
        assert_eq!(found, [serde_json::json!(7), "a'b".into(), 8.into(), serde_json::Value::Null]);
        let sent = String::from_utf8_lossy(&sent).into_owned();
        assert!(
            sent.contains("\r\n\r\nINSERT INTO `t` (`id`, `note`) FORMAT RowBinary\n\u{7}\0\0\u{3}a'bPOST "),
            "{sent}"
        );
        let select = "SELECT `t`.`id`, `t`.`note` FROM `t` WHERE `t`.`note` = 'a\\'b' FORMAT RowBinary";
        assert!(sent.ends_with(select), "{sent}");
    }
}

#[test]
fn what_is_no_answer_ends_the_connection() {
    for (said, why) in [
        (rows(&[7, 0, 0]), "cut"),
        (rows(&[7, 0, 2]), "instead of 0 or 1"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx".to_vec(), "data to a query that has none"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno".to_vec(), "status 502: no"),
        (b"SSH-2.0 x\r\n\r\n".to_vec(), "no answer of HTTP/1.1"),
    ] {
        let (mut wire, _theirs) = wire();
        let error = driven(&mut wire, &both(), &said, 4).0.unwrap().unwrap_err();
        assert!(error.is_lost() && error.to_string().contains(why), "{why}: {error}");
    }
}

#[test]
fn a_refused_step_is_the_last_and_says_what_stays() {
    let refused = b"HTTP/1.1 404 Not Found\r\nContent-Length: 22\r\n\r\nCode: 60. DB::Gone: t.";
    let (mut wire, _theirs) = wire();
    let (outcome, sent) = driven(&mut wire, &both(), refused, 9);
    assert_eq!(outcome, Some(Err(DatabaseError::refused("60", "DB::Gone: t."))));
    assert_eq!(String::from_utf8_lossy(&sent).matches("POST").count(), 1);
    let said = [STORED.as_bytes(), refused].concat();
    let error = driven(&mut wire, &both(), &said, 9).0.unwrap().unwrap_err();
    assert!(error.is_refusal() && error.to_string().contains("what the statements before it stored stays"), "{error}");
}

#[test]
fn what_cannot_be_sent_is_refused_and_the_connection_stays_usable() {
    let mut request = both();
    request.cells.replace(0, Cell::Int(40_000));
    let (mut wire, _theirs) = wire();
    let (outcome, sent) = driven(&mut wire, &request, STORED.as_bytes(), 1_000);
    assert!(outcome.unwrap().unwrap_err().to_string().contains("40000 is out of range"));
    assert!(sent.ends_with(NOTHING));
    let (outcome, _) = driven(&mut wire, &both(), &rows(&[]), 1_000);
    assert_eq!(outcome, Some(Ok(Answer { rows: 0, changed: 1, empty: 1 })));
}

#[test]
fn a_server_that_closes_the_connection_says_so_before() {
    let closing = STORED.replace("OK\r\n", "OK\r\nConnection: Close\r\n");
    let (mut wire, _theirs) = wire();
    let mut request = both();
    assert!(driven(&mut wire, &request, closing.as_bytes(), 1_000).0.unwrap().unwrap_err().is_lost());
    request.steps.pop();
    assert!(driven(&mut wire, &request, closing.as_bytes(), 1_000).0.unwrap().is_ok() && wire.is_over());
    assert!(driven(&mut wire, &request, STORED.as_bytes(), 1_000).0.unwrap().is_ok() && !wire.is_over());
}
