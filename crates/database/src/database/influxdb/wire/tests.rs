//! Tests of the wire against answers in any pieces.

use super::*;
use crate::database::fuzzed_table::{insert, program, select, table};
use crate::database::{Answer, Endpoint};
use crate::record::Cell;
use crate::statement::{Comparison, Expect, Statement};

fn wire() -> (InfluxdbWire, std::os::unix::net::UnixStream) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let lines = Lines::new(&Endpoint::default());
    let socket = Socket::from(std::os::fd::OwnedFd::from(ours));
    let mut wire = InfluxdbWire::new(socket, lines, String::new(), "1.6.7".to_owned());
    let from_id = Statement::Select(select(["id", "note"], "id", Comparison::GreaterOrEqual));
    wire.plans = Plan::of(&program(table(), vec![insert(), from_id])).unwrap();
    (wire, theirs)
}

/// An insert of the row (7, "a'b") and a query for it.
fn both() -> Request {
    let mut request = Request::default();
    request.cells.int(7);
    request.cells.text("a'b");
    request.cells.int(7);
    request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
    request.steps.push(Step { statement: 1, rows: 1, first_cell: 2, expect: Expect::Rows });
    request
}

/// The outcome of answers that arrive in pieces of this size, with what was sent.
fn driven(
    wire: &mut InfluxdbWire,
    request: &Request,
    said: &[u8],
    piece: usize,
) -> (Option<Result<Answer, DatabaseError>>, String) {
    let mut sent = Vec::new();
    wire.start(request, &mut sent);
    let (mut at, mut shown) = (0, 0);
    loop {
        let progress = wire.advance(request, &said[at..shown], &mut sent);
        at += progress.consumed;
        if progress.outcome.is_some() || progress.consumed == 0 && shown == said.len() {
            return (progress.outcome, String::from_utf8_lossy(&sent).into_owned());
        }
        shown = (shown + piece).min(said.len());
    }
}

const STORED: &str = "HTTP/1.1 204 No Content\r\n\r\n";
/// The beginning of an answer with rows of three values, up to their number.
const BEGUN: &[u8] =
    b"\x81\xa7results\x91\x82\xacstatement_id\x00\xa6series\x91\x83\xa4name\xa1t\xa7columns\x93\xa4time\xa4note\xa2id\xa6values";

fn answered(body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let head = format!("{STORED}HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

#[test]
fn steps_are_sent_one_after_the_other_and_rows_arrive_in_pieces_of_any_size() {
    let said = answered(&[BEGUN, b"\x92\x93\x07\xa3a'b\x07\x93\x08\xc0\x08"]);
    for piece in [1, 2, 3, 5, 1_000] {
        let (mut wire, _theirs) = wire();
        wire.keep_rows(Some(Cells::new()));
        let (outcome, sent) = driven(&mut wire, &both(), &said, piece);
        assert_eq!(outcome, Some(Ok(Answer { rows: 2, changed: 1, empty: 0 })), "{piece}");
        let kept = wire.keep_rows(None).unwrap();
        let found: Vec<_> = kept.as_slice().iter().map(|cell| kept.to_json(*cell)).collect();
        assert_eq!(found, [serde_json::json!(7), "a'b".into(), 8.into(), serde_json::Value::Null]);
        assert!(sent.contains("\r\n\r\nt id=7i,note=\"a'b\" 7\nPOST /query?db=&epoch=ns "), "{sent}");
        assert!(
            sent.ends_with("q=SELECT%20%22note%22%2C%20%22id%22%20FROM%20%22t%22%20WHERE%20time%20%3E%3D%207"),
            "{sent}"
        );
    }
}

#[test]
fn what_is_no_answer_ends_the_connection() {
    for (said, why) in [
        (answered(&[BEGUN, b"\x91\x93\x07"]), "cut"),
        (answered(&[BEGUN, b"\x91\x92\x07\x07"]), "no list of 3 values"),
        (answered(&[b"{}"]), "no map"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx".to_vec(), "status 200: x"),
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
    let refused = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 14\r\n\r\n{\"error\":\"no\"}";
    let (mut wire, _theirs) = wire();
    let (outcome, sent) = driven(&mut wire, &both(), refused, 9);
    assert_eq!(outcome, Some(Err(DatabaseError::refused("400", "no"))));
    assert_eq!(sent.matches("POST").count(), 1);
    for said in [
        [STORED.as_bytes(), refused].concat(),
        answered(&[b"\x81\xa7results\x91\x82\xacstatement_id\x00\xa5error\xa2no"]),
    ] {
        let error = driven(&mut wire, &both(), &said, 9).0.unwrap().unwrap_err();
        assert!(
            error.is_refusal() && error.to_string().contains("what the statements before it stored stays"),
            "{error}"
        );
    }
}

#[test]
fn what_cannot_be_sent_is_refused_and_the_connection_stays_usable() {
    let mut request = both();
    request.cells.replace(0, Cell::Int(i64::MAX));
    let (mut wire, _theirs) = wire();
    let (outcome, sent) = driven(&mut wire, &request, STORED.as_bytes(), 1_000);
    assert!(
        outcome.unwrap().unwrap_err().to_string().contains("the column id is given a number that no time can have")
    );
    assert!(sent.starts_with("GET /ping "), "{sent}");
    let none = answered(&[b"\x81\xa7results\x91\x81\xacstatement_id\x00"]);
    let (outcome, _) = driven(&mut wire, &both(), &none, 1_000);
    assert_eq!(outcome, Some(Ok(Answer { rows: 0, changed: 1, empty: 1 })));
}

#[test]
fn a_server_that_closes_the_connection_says_so_before() {
    let closing = STORED.replace("Content\r\n", "Content\r\nConnection: Close\r\n");
    let (mut wire, _theirs) = wire();
    let mut request = both();
    assert!(driven(&mut wire, &request, closing.as_bytes(), 1_000).0.unwrap().unwrap_err().is_lost());
    request.steps.pop();
    assert!(driven(&mut wire, &request, closing.as_bytes(), 1_000).0.unwrap().is_ok() && wire.is_over());
    assert!(driven(&mut wire, &request, STORED.as_bytes(), 1_000).0.unwrap().is_ok() && !wire.is_over());
}

#[test]
fn a_row_that_is_shown_while_it_is_written_is_asked_for_again() {
    let torn = answered(&[BEGUN, b"\x92\x93\x07\xa1x\x07\x93\x08\xa1y\xc0"]);
    let whole = answered(&[BEGUN, b"\x91\x93\x07\xa1x\x07"]).split_off(STORED.len());
    // The key of a row is read from its time; its field says that the point is there.
    let by_note = |wire: &mut InfluxdbWire| {
        if let Plan::Select { reads, .. } = &mut wire.plans[1] {
            reads.outs[0].from = super::super::answer::From::Column(2);
        }
    };
    let (mut first, _theirs) = wire();
    by_note(&mut first);
    first.keep_rows(Some(Cells::new()));
    let (outcome, sent) = driven(&mut first, &both(), &[&*torn, &*whole].concat(), 7);
    assert_eq!(outcome, Some(Ok(Answer { rows: 1, changed: 1, empty: 0 })));
    assert_eq!((sent.matches("POST /query").count(), first.keep_rows(None).unwrap().len()), (2, 2));
    let mut always = torn.clone();
    (0..AGAIN_MAX).for_each(|_| always.extend_from_slice(&torn[STORED.len()..]));
    first.keep_rows(Some(Cells::new()));
    let error = driven(&mut first, &both(), &always, 9_999).0.unwrap().unwrap_err();
    assert!(error.to_string().contains("however often"), "{error}");
}
