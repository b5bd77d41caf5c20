//! Tests of the bytes sent for requests and of the outcomes of answers.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::*;
use crate::record::ColumnKind;
use crate::statement::{ColumnRef, Comparison, Condition, Select, Statement, Step, TableColumn};

const INSERT: u16 = 0;
const SELECT: u16 = 1;
const UPDATE_NOTE: u16 = 2;
const DELETE: u16 = 3;

/// Returns a wire with a table of a key, a nullable number and a text, and statements for it.
fn wire() -> RedisWire {
    let column = |name: &str, kind, nullable| TableColumn { name: name.to_owned(), kind, nullable };
    let columns = vec![
        column("id", ColumnKind::Int64, false),
        column("level", ColumnKind::Float64, true),
        column("note", ColumnKind::Text(20), true),
    ];
    let at = |name: &str| ColumnRef { table: "t".to_owned(), column: name.to_owned() };
    let by_id = Condition { column: at("id"), kind: ColumnKind::Int64, comparison: Comparison::Equal };
    let key = || columns[..1].to_vec();
    let statements = vec![
        Statement::Insert { table: "t".to_owned(), columns: columns.clone() },
        Statement::Select(Select {
            columns: vec![at("level"), at("note")],
            from: "t".to_owned(),
            conditions: vec![by_id],
            ..Select::default()
        }),
        Statement::Update { table: "t".to_owned(), set: columns[2..].to_vec(), key: key() },
        Statement::Delete { table: "t".to_owned(), key: key() },
    ];
    let table = Table {
        name: "t".to_owned(),
        columns,
        primary_key: vec!["id".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    };
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut wire = RedisWire::new(Socket::from(OwnedFd::from(ours)));
    wire.plans = Plan::of(&Program { tables: vec![table], statements, ..Program::default() }).unwrap();
    wire.update = b"name".to_vec();
    wire
}

fn step(request: &mut Request, statement: u16, rows: u32, expect: Expect, fill: impl FnOnce(&mut Cells)) {
    let first_cell = request.cells.len() as u32;
    fill(&mut request.cells);
    request.steps.push(Step { statement, rows, first_cell, expect });
}

fn row(cells: &mut Cells, id: i64, note: Option<&str>) {
    cells.int(id);
    cells.float(0.5);
    match note {
        Some(note) => cells.text(note),
        None => cells.null(),
    }
}

/// Returns the bytes sent, with readable line ends.
fn sent(wire: &mut RedisWire, request: &Request) -> String {
    let mut out = Vec::new();
    wire.start(request, &mut out);
    String::from_utf8(out).unwrap().replace("\r\n", " ")
}

fn answered(wire: &mut RedisWire, request: &Request, said: &str) -> Option<Result<Answer, DatabaseError>> {
    let mut out = Vec::new();
    wire.start(request, &mut out);
    let said = said.replace(' ', "\r\n");
    let progress = wire.advance(request, said.as_bytes(), &mut out);
    assert_eq!(progress.consumed, said.len(), "all of it was the answer");
    progress.outcome
}

#[test]
fn a_row_is_a_hash_and_null_is_a_field_that_is_not_there() {
    let (mut wire, mut request) = (wire(), Request::default());
    step(&mut request, INSERT, 1, Expect::Changed(1), |cells| row(cells, 7, Some("a")));
    let all = "*8 $4 HSET $3 t:7 $2 id $1 7 $5 level $3 0.5 $4 note $1 a ";
    assert_eq!(sent(&mut wire, &request), all);
    request.clear();
    step(&mut request, INSERT, 1, Expect::Changed(1), |cells| row(cells, 7, None));
    assert_eq!(sent(&mut wire, &request), "*6 $4 HSET $3 t:7 $2 id $1 7 $5 level $3 0.5 ");
    let one = Answer { changed: 1, ..Answer::default() };
    assert_eq!(answered(&mut wire, &request, ":2 "), Some(Ok(one)));
}

#[test]
fn a_row_that_was_there_is_told_from_a_new_one_and_what_it_was_given_stays() {
    let (mut wire, mut request) = (wire(), Request::default());
    step(&mut request, INSERT, 1, Expect::Changed(1), |cells| row(cells, 7, Some("a")));
    // One field is new: it was null before.
    let Some(Err(DatabaseError::Miscounted(miscount))) = answered(&mut wire, &request, ":1 ") else {
        panic!("a row that was there is none that was inserted");
    };
    assert_eq!((miscount.rows, miscount.right, miscount.stays), (0, 1, true));
}

#[test]
fn several_commands_are_a_transaction() {
    let (mut wire, mut request) = (wire(), Request::default());
    step(&mut request, INSERT, 2, Expect::Changed(2), |cells| {
        row(cells, 1, None);
        row(cells, 2, None);
    });
    step(&mut request, SELECT, 1, Expect::Rows, |cells| cells.int(9));
    step(&mut request, DELETE, 1, Expect::Changed(1), |cells| cells.int(1));
    let text = sent(&mut wire, &request);
    assert!(text.starts_with("*1 $5 MULTI *6 $4 HSET $3 t:1") && text.ends_with("UNLINK $3 t:1 *1 $4 EXEC "), "{text}");
    let said = "+OK +QUEUED +QUEUED +QUEUED +QUEUED *4 :2 :2 *3 $-1 $-1 $-1 :1 ";
    let right = Answer { rows: 0, changed: 3, empty: 1 };
    assert_eq!(answered(&mut wire, &request, said), Some(Ok(right)));
    let aborted = "+OK +QUEUED -OOM +QUEUED +QUEUED -EXECABORT ";
    let refused = answered(&mut wire, &request, aborted);
    assert_eq!(refused, Some(Err(DatabaseError::refused("ERR", "OOM"))), "the first is the reason");
    let halfway = "+OK +QUEUED +QUEUED +QUEUED +QUEUED *4 :2 -WRONG *3 $-1 $-1 $-1 :1 ";
    assert_eq!(answered(&mut wire, &request, halfway), Some(Err(DatabaseError::refused("ERR", "WRONG"))));
}

#[test]
fn rows_are_read_with_their_kinds_and_absent_ones_leave_nothing() {
    let (mut wire, mut request) = (wire(), Request::default());
    step(&mut request, SELECT, 1, Expect::Anything, |cells| cells.int(7));
    // A row of nulls is distinguished from a missing row by a field that every row has.
    assert_eq!(sent(&mut wire, &request), "*5 $5 HMGET $3 t:7 $5 level $4 note $2 id ");
    let mut read = |said: &str| {
        wire.keep_rows(Some(Cells::new()));
        let outcome = answered(&mut wire, &request, said).unwrap();
        let cells = wire.keep_rows(None).unwrap();
        let values: Vec<_> = cells.as_slice().iter().map(|cell| cells.to_json(*cell).to_string()).collect();
        (outcome.map(|answer| answer.rows), values)
    };
    assert_eq!(read("*3 $4 0.25 $1 a $1 7 "), (Ok(1), vec!["0.25".to_owned(), "\"a\"".to_owned()]));
    assert_eq!(read("*3 $-1 $-1 $1 7 "), (Ok(1), vec!["null".to_owned(), "null".to_owned()]));
    assert_eq!(read("*3 $-1 $-1 $-1 "), (Ok(0), Vec::new()));
    let (outcome, _) = read("*3 $3 low $1 a $1 7 ");
    assert!(outcome.unwrap_err().to_string().contains("\"low\" is no Float64"));
}

#[test]
fn an_update_is_of_a_row_that_is_there() {
    let (mut wire, mut request) = (wire(), Request::default());
    step(&mut request, UPDATE_NOTE, 1, Expect::Changed(1), |cells| {
        cells.text("b");
        cells.int(7);
    });
    assert_eq!(sent(&mut wire, &request), "*7 $7 EVALSHA $4 name $1 1 $3 t:7 $1 1 $4 note $1 b ");
    assert!(matches!(answered(&mut wire, &request, ":0 "), Some(Err(DatabaseError::Miscounted(_)))));
    request.clear();
    step(&mut request, UPDATE_NOTE, 1, Expect::Changed(1), |cells| {
        cells.null();
        cells.int(7);
    });
    assert_eq!(sent(&mut wire, &request), "*6 $7 EVALSHA $4 name $1 1 $3 t:7 $1 0 $4 note ");
    assert!(matches!(answered(&mut wire, &request, ":1 "), Some(Ok(_))));
}

#[test]
fn what_does_not_fit_ends_the_connection() {
    let (mut wire, mut request) = (wire(), Request::default());
    step(&mut request, INSERT, 1, Expect::Changed(1), |cells| row(cells, 7, None));
    for said in ["+OK ", "*1 ", "$1 a "] {
        assert!(answered(&mut wire, &request, said).unwrap().unwrap_err().is_lost(), "{said}");
    }
    request.clear();
    step(&mut request, SELECT, 1, Expect::Rows, |cells| cells.int(7));
    for said in ["*2 ", ":1 ", "*3 :1 "] {
        assert!(answered(&mut wire, &request, said).unwrap().unwrap_err().is_lost(), "{said}");
    }
    request.clear();
    assert_eq!(sent(&mut wire, &request), "PING ");
    assert_eq!(answered(&mut wire, &request, "+PONG "), Some(Ok(Answer::default())));
}

#[test]
fn behind_a_write_a_replica_is_waited_for_in_the_same_round_trip() {
    let (wire, mut request) = (wire(), Request::default());
    let mut wire = wire.awaiting_replica(true);
    step(&mut request, INSERT, 1, Expect::Changed(1), |cells| row(cells, 7, None));
    let text = sent(&mut wire, &request);
    assert!(text.starts_with("*6 $4 HSET ") && text.ends_with("$3 0.5 *3 $4 WAIT $1 1 $4 5000 "), "{text}");
    assert_eq!(answered(&mut wire, &request, ":2 "), None, "the primary has it, and no replica");
    let one = Answer { changed: 1, ..Answer::default() };
    assert_eq!(answered(&mut wire, &request, ":2 :1 "), Some(Ok(one)));
    let Some(Err(error)) = answered(&mut wire, &request, ":2 :0 ") else { panic!("no replica has it") };
    assert!(error.is_lost() && error.to_string().ends_with("because no replica had its write within 5 s (WAIT)"));
    let refused = answered(&mut wire, &request, "-OOM :0 ");
    assert_eq!(refused, Some(Err(DatabaseError::refused("ERR", "OOM"))), "nothing was written");

    step(&mut request, DELETE, 1, Expect::Changed(1), |cells| cells.int(1));
    assert!(sent(&mut wire, &request).ends_with("*1 $4 EXEC *3 $4 WAIT $1 1 $4 5000 "), "not within the transaction");
    let both = Answer { changed: 2, ..Answer::default() };
    assert_eq!(answered(&mut wire, &request, "+OK +QUEUED +QUEUED *2 :2 :1 :2 "), Some(Ok(both)));
    let aborted = answered(&mut wire, &request, "+OK -OOM +QUEUED -EXECABORT :0 ");
    assert_eq!(aborted, Some(Err(DatabaseError::refused("ERR", "OOM"))));

    request.clear();
    step(&mut request, SELECT, 1, Expect::Rows, |cells| cells.int(7));
    assert!(!sent(&mut wire, &request).contains("WAIT"), "nothing is written");
}

/// Returns a wire with a table that the server numbers: an insert, a query for rows behind a number, and one for the latest.
fn numbered_wire() -> RedisWire {
    let column = |name: &str, kind, nullable| TableColumn { name: name.to_owned(), kind, nullable };
    let columns = vec![
        column("event", ColumnKind::Int64, false),
        column("a", ColumnKind::Float64, true),
        column("b", ColumnKind::Text(9), true),
    ];
    let at = |name: &str| ColumnRef { table: "e".to_owned(), column: name.to_owned() };
    let behind = Condition { column: at("id"), kind: ColumnKind::Int64, comparison: Comparison::Greater };
    let select = |conditions: Vec<Condition>| Select {
        columns: ["id", "event", "b"].map(at).into(),
        from: "e".to_owned(),
        order: vec![(at("id"), conditions.is_empty())],
        conditions,
        limit: Some(crate::statement::Limit::Fixed(100)),
        ..Select::default()
    };
    let statements = vec![
        Statement::Insert { table: "e".to_owned(), columns: columns.clone() },
        Statement::Select(select(vec![behind])),
        Statement::Select(select(Vec::new())),
    ];
    let table = Table {
        name: "e".to_owned(),
        columns,
        primary_key: vec!["id".to_owned()],
        numbered: true,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    };
    let mut wire = wire();
    wire.plans = Plan::of(&Program { tables: vec![table], statements, ..Program::default() }).unwrap();
    wire
}

#[test]
fn rows_that_the_server_numbers_are_entries_of_a_stream() {
    let (mut wire, mut request) = (numbered_wire(), Request::default());
    step(&mut request, 0, 2, Expect::Changed(2), |cells| {
        row(cells, 7, None);
        row(cells, 8, Some("x"));
    });
    let text = sent(&mut wire, &request);
    assert!(text.contains(" *7 $4 XADD $6 e:rows $3 0-* $5 event $1 7 $1 a $3 0.5 *9 $4 XADD "), "{text}");
    let two = Answer { changed: 2, ..Answer::default() };
    assert_eq!(answered(&mut wire, &request, "+OK +QUEUED +QUEUED *2 $3 0-1 $3 0-2 "), Some(Ok(two)));
    request.clear();
    step(&mut request, 1, 1, Expect::Anything, |cells| cells.int(41));
    assert_eq!(sent(&mut wire, &request), "*6 $6 XRANGE $6 e:rows $5 (0-41 $1 + $5 COUNT $3 100 ");
    request.clear();
    step(&mut request, 2, 1, Expect::Anything, |_| {});
    assert_eq!(sent(&mut wire, &request), "*6 $9 XREVRANGE $6 e:rows $1 + $1 - $5 COUNT $3 100 ");
}

#[test]
fn numbered_rows_are_read_with_their_numbers_and_nulls_where_a_field_is_not_there() {
    let (mut wire, mut request) = (numbered_wire(), Request::default());
    step(&mut request, 1, 1, Expect::Anything, |cells| cells.int(0));
    let mut read = |said: &str| {
        wire.keep_rows(Some(Cells::new()));
        let outcome = answered(&mut wire, &request, said).unwrap();
        let cells = wire.keep_rows(None).unwrap();
        let values: Vec<_> = cells.as_slice().iter().map(|cell| cells.to_json(*cell).to_string()).collect();
        (outcome.map(|answer| answer.rows), values.join(" "))
    };
    let entries = "*2 *2 $3 0-4 *6 $5 event $1 7 $1 a $3 0.5 $1 b $1 x *2 $4 0-12 *2 $5 event $1 8 ";
    assert_eq!(read(entries), (Ok(2), "4 7 \"x\" 12 8 null".to_owned()));
    assert_eq!(read("*0 "), (Ok(0), String::new()));
    assert!(read("*1 *2 $3 0-4 *2 $5 event $3 low ").0.unwrap_err().to_string().contains("\"low\" is no Int64"));
    for wrong in ["*101 ", "*1 *3 ", "*1 *2 $3 1-4 ", "*1 *2 $3 0-4 *3 ", "*1 *2 $3 0-4 *2 :1 ", "$1 a "] {
        assert!(read(wrong).0.unwrap_err().is_lost(), "{wrong}");
    }
}

#[test]
fn other_queries_for_numbered_rows_are_refused() {
    let program = |change: fn(&mut Select)| {
        let at = |name: &str| ColumnRef { table: "t".to_owned(), column: name.to_owned() };
        let mut select = Select {
            columns: vec![at("id"), at("x")],
            from: "t".to_owned(),
            order: vec![(at("id"), true)],
            limit: Some(crate::statement::Limit::Fixed(5)),
            ..Select::default()
        };
        change(&mut select);
        let column = TableColumn { name: "x".to_owned(), kind: ColumnKind::Int64, nullable: false };
        let table = Table {
            name: "t".to_owned(),
            columns: vec![column],
            primary_key: vec!["id".to_owned()],
            numbered: true,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: None,
        };
        Plan::of(&Program { tables: vec![table], statements: vec![Statement::Select(select)], ..Program::default() })
    };
    assert!(program(|_| {}).is_ok());
    for change in [
        (|select| select.limit = None) as fn(&mut Select),
        |select| select.order[0].1 = false,
        |select| select.order.clear(),
        |select| select.columns.reverse(),
        |select| select.columns[1].column.push('y'),
        |select| select.for_update = true,
    ] {
        assert!(program(change).is_err_and(|error| error.is_refusal()));
    }
}
