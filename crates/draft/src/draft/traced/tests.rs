//! Tests of traces of logs, in the form in which servers write them.

use super::*;
use crate::draft::seen::read_log;
use crate::trace::{Replay, Trace};

fn traced(log: &str, grammar: Grammar) -> Result<Traced, TracedError> {
    let mut tracer = Tracer::new(grammar);
    read_log(&mut log.as_bytes(), "", &mut tracer).unwrap();
    tracer.finish()
}

fn trace_of(log: &str, grammar: Grammar) -> Trace {
    let mut file = Vec::new();
    traced(log, grammar).unwrap().write(&[], "", &mut file).unwrap();
    Trace::read(&mut file.as_slice()).unwrap()
}

/// Returns the time, session, text and values of each statement that ran.
fn told(trace: &Trace) -> Vec<(u64, u32, &str, String)> {
    let one = |event: &crate::trace::Event| {
        let mut cells = crate::record::Cells::new();
        trace.append_values(event, &mut cells);
        let values: Vec<String> = cells.as_slice().iter().map(|cell| cells.to_json(*cell).to_string()).collect();
        let sql = trace.statements[usize::from(event.statement)].sql.as_str();
        (event.at_us, event.session, sql, values.join(" "))
    };
    trace.events.iter().map(one).collect()
}

#[test]
fn statements_begin_as_long_before_their_end_as_they_took() {
    let log = "2026-11-26 06:22:55.500 UTC [1] LOG:  duration: 400.000 ms  execute s: SELECT a FROM t WHERE b = $1\n\
         2026-11-26 06:22:55.500 UTC [1] DETAIL:  parameters: $1 = '\\x00ff'\n\
         2026-11-26 06:22:55.500 UTC [2] LOG:  duration: 10.000 ms  statement: SELECT a FROM t WHERE b = 'x' AND c IN (1, -2.5)\n\
         2026-11-26 06:22:55.501 UTC [2] LOG:  duration: 20.000 ms  statement: SELECT 1\n";
    let trace = trace_of(log, Grammar::POSTGRES);
    let told = told(&trace);
    assert_eq!(
        told.iter().map(|(_, session, sql, values)| (*session, *sql, values.as_str())).collect::<Vec<_>>(),
        [
            (0, "SELECT a FROM t WHERE b = ?", "\"00ff\""),
            (1, "SELECT a FROM t WHERE b = ? AND c IN (?, ?)", "\"x\" 1 -2.5"),
            (1, "SELECT ?", "1")
        ]
    );
    // Both ends fall in the millisecond of .500, at a quarter and three quarters of it. The last statement cannot begin before the previous
    // one of its session has ended.
    let times: Vec<u64> = told.iter().map(|(at_us, ..)| *at_us).collect();
    assert_eq!(times, [0, 390_500, 400_500]);
}

#[test]
fn transactions_are_kept_and_those_that_are_open_are_ended() {
    let line = |id: u32, sql: &str| format!("2026-11-26T06:22:55.25{id}000Z\t     {id} Query\t{sql}\n");
    let log = line(7, "SET autocommit=0")
        + &line(7, "SELECT a FROM t")
        + &line(7, "UPDATE t SET a = 1")
        + &line(7, "commit")
        + &line(7, "SELECT b FROM t")
        + &line(8, "START TRANSACTION")
        + &line(8, "ROLLBACK")
        + &line(8, "DROP TABLE t");
    let traced = traced(&log, Grammar::MYSQL).unwrap();
    assert_eq!(traced.left_out().collect::<Vec<_>>(), [(why::OTHER_KIND, 2)]);
    assert_eq!((traced.writes(), traced.sessions(), traced.at_once), (1, 2, 1));
    let trace = trace_of(&log, Grammar::MYSQL);
    let of = |session: u32| {
        told(&trace).into_iter().filter(|one| one.1 == session).map(|one| one.2.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        of(0),
        ["BEGIN", "SELECT a FROM t", "UPDATE t SET a = ?", "commit", "BEGIN", "SELECT b FROM t", "ROLLBACK"]
    );
    assert_eq!(of(1), ["START TRANSACTION", "ROLLBACK"]);
    let replay = Replay::of(std::sync::Arc::new(trace), None, true).unwrap();
    assert_eq!((replay.connections.len(), replay.statements), (1, 9), "one after the other");
}

#[test]
fn times_in_whole_seconds_are_spread() {
    let line = |second: u32, id: u32| format!("26112{}  6:22:5{second}\t     {id} Query\tSELECT {id}\n", 6);
    let log = line(1, 7) + "\t     8 Query\tSELECT 8\n" + &line(3, 7);
    let traced_log = traced(&log, Grammar::MYSQL).unwrap();
    assert_eq!(traced_log.unit_us, 1_000_000);
    let trace = trace_of(&log, Grammar::MYSQL);
    assert_eq!(told(&trace).iter().map(|one| one.0).collect::<Vec<_>>(), [0, 500_000, 2_250_000]);
}

#[test]
fn what_cannot_be_sent_is_no_trace() {
    let log = |prefix: &str, sql: &str| format!("2026-11-26 06:22:55.500 UTC {prefix}LOG:  statement: {sql}\n");
    let error = |log: &str| traced(log, Grammar::POSTGRES).unwrap_err();
    assert_eq!(error(&log("", "SELECT 1")), TracedError::NoSessions);
    assert_eq!(error(&log("[7] ", "BEGIN")), TracedError::Nothing);
    let two = log("[7] me@a ", "SELECT 1") + &log("[7] me@b ", "SELECT 1");
    assert_eq!(error(&two), TracedError::Databases(vec!["a".to_owned(), "b".to_owned()]));
    let without = "2026-11-26 06:22:55.500 UTC [7] LOG:  duration: 1.5 ms  execute s: SELECT $1\n";
    assert_eq!(error(without), TracedError::Nothing);
    assert_eq!(error(&log("[7] ", "SELECT 1 AS loadline_drawn")), TracedError::Nothing);
}

#[test]
fn numbers_keep_their_value() {
    for (text, value) in [
        ("7", Value::Int(7)),
        ("-7", Value::Int(-7)),
        ("12.50", Value::Float(12.5)),
        ("1e3", Value::Float(1000.0)),
        ("9223372036854775808", Value::Text("9223372036854775808".to_owned())),
        ("0.1234567890123456789", Value::Text("0.1234567890123456789".to_owned())),
        ("0xF", Value::Bytes { hex: "0F".to_owned() }),
    ] {
        assert_eq!(number(text), value);
    }
}
