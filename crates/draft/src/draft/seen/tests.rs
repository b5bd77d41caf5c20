//! Tests of logs of every form, as servers write them.

use proptest::prelude::*;

use super::*;
use crate::draft::sql::Grammar;

/// Returns the form of a log and the statements in it.
fn seen_in(log: &str, grammar: Grammar) -> (LogForm, Seen) {
    let mut collector = Collector::new(grammar);
    let form = read_log(&mut log.as_bytes(), "shop", &mut collector).unwrap();
    (form, collector.seen())
}

#[test]
fn a_file_without_statements_is_no_log() {
    let mut collector = Collector::new(Grammar::POSTGRES);
    let empty = read_log(&mut "".as_bytes(), "shop", &mut collector);
    assert!(matches!(empty, Err(LogError::Empty(LogForm::Script))));
}

proptest! {
    #[test]
    fn no_log_panics(lines in proptest::collection::vec("# Time: [0-9T:Z -]{0,20}|# Query_time: [0-9.]{1,5}|[\"',;$= a-z0-9{}:]{0,40}|2026-01-01 00:00:00 UTC LOG:  (statement|execute x): .{0,9}|DETAIL:  parameters: .{0,12}|\t    7 Query\tSELECT 1", 0..12), which in 0..3_usize) {
        let grammar = [Grammar::POSTGRES, Grammar::MYSQL, Grammar::SQLITE][which];
        let mut collector = Collector::new(grammar);
        let _ = read_log(&mut lines.join("\n").as_bytes(), "shop", &mut collector);
        collector.seen();
    }
}

#[test]
fn a_slow_log_of_mariadb_is_read() {
    let log = "/usr/sbin/mariadbd, Version: 10.11. started with:\nTcp port: 3306  Unix socket: /run/x\nTime\t\t    Id Command\tArgument\n\
         # Time: 261126  6:22:55\n# User@Host: me[me] @ localhost []\n# Thread_id: 5  Schema: shop  QC_hit: No\n\
         # Query_time: 0.000200  Lock_time: 0.000050  Rows_sent: 3  Rows_examined: 3\n# Rows_affected: 0  Bytes_sent: 60\n\
         SET timestamp=1795674175;\nSELECT a\nFROM t WHERE b = 5;\n\
         # Time: 261126  6:22:57\n# User@Host: me[me] @ localhost []\n# Thread_id: 5  Schema: other  QC_hit: No\n\
         # Query_time: 0.1  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 1\nSELECT 1;\n\
         # User@Host: me[me] @ localhost []\n# Thread_id: 6  Schema: shop  QC_hit: No\n\
         # Query_time: 0.000400  Lock_time: 0.0  Rows_sent: 0  Rows_examined: 1\n# Rows_affected: 1  Bytes_sent: 9\nUPDATE t SET a = 'x' WHERE b = 6;\n";
    let (form, seen) = seen_in(log, Grammar::MYSQL);
    assert_eq!(form, LogForm::MySqlSlow);
    let told: Vec<_> = seen.statements.iter().map(|ran| (ran.text.as_str(), ran.rows, ran.seconds)).collect();
    assert_eq!(
        told,
        [
            ("SELECT a FROM t WHERE b = ?", Some(3.0), Some(0.0002)),
            ("UPDATE t SET a = ? WHERE b = ?", Some(1.0), Some(0.0004))
        ]
    );
    assert_eq!((seen.seconds, seen.statements[0].samples[0].at_us), (Some(2.0), Some(1_795_674_175_000_000)));
}

#[test]
fn a_slow_log_of_mysql_is_read() {
    let log = "# Time: 2026-11-26T06:22:55.250000Z\n# User@Host: me[me] @ localhost []  Id:     8\n\
         # Query_time: 0.000200  Lock_time: 0.000050 Rows_sent: 1  Rows_examined: 1\nuse shop;\nSET timestamp=1795674175;\nSELECT 1 FROM t;\n";
    let (form, seen) = seen_in(log, Grammar::MYSQL);
    assert_eq!((form, seen.statements.len()), (LogForm::MySqlSlow, 1));
    assert_eq!(seen.statements[0].samples[0].at_us, Some(1_795_674_175_250_000));
}

#[test]
fn general_logs_are_read() {
    let mariadb = "Time\t\t    Id Command\tArgument\n261126  6:22:55\t     5 Connect\tme@localhost on shop using Socket\n\t\t     5 Query\tselect a\n\
         from t where b = 1\n\t\t     5 Prepare\tselect ?\n261126  6:22:58\t     5 Execute\tselect a from t where b = 2\n\t\t     5 Quit\t\n";
    let mysql = "2026-11-26T06:22:55.000000Z\t   12 Query\tselect a from t where b = 1\n2026-11-26T06:22:58.000000Z\t   12 Execute\tselect a from t where b = 2\n";
    for log in [mariadb, mysql] {
        let (form, seen) = seen_in(log, Grammar::MYSQL);
        assert_eq!(form, LogForm::MySqlGeneral);
        assert_eq!((seen.statements[0].text.as_str(), seen.statements[0].calls), ("select a from t where b = ?", 2.0));
        assert_eq!(seen.seconds, Some(3.0));
    }
}

const VALUES: [Option<&str>; 2] = [Some("it's"), Some("7")];

fn check(log: &str, form: LogForm) {
    let (found, seen) = seen_in(log, Grammar::POSTGRES);
    assert_eq!(found, form);
    let texts: Vec<(&str, f64)> = seen.statements.iter().map(|ran| (ran.text.as_str(), ran.calls)).collect();
    assert_eq!(texts, [("SELECT a FROM t WHERE b = ? AND c = ?", 2.0), ("UPDATE t SET a = ?", 1.0)]);
    let values: Vec<Vec<Option<&str>>> =
        seen.statements[0].samples.iter().map(|sample| sample.values.iter().map(Option::as_deref).collect()).collect();
    assert_eq!(values, [VALUES, VALUES]);
    assert!((seen.seconds.unwrap() - 2.5).abs() < 1e-6, "{:?}", seen.seconds);
}

#[test]
fn text_is_read_with_any_prefix_over_several_lines() {
    check(
        "2026-11-26 06:22:55.500 UTC [12] me@shop LOG:  statement: SELECT a FROM t\n\tWHERE b = 'it''s' AND c = 7\n\
         2026-11-26 06:22:55.600 UTC [12] me@shop LOG:  duration: 0.5 ms\n\
         2026-11-26 06:22:56.500 UTC [12] me@shop LOG:  duration: 1.25 ms  execute s1: SELECT a FROM t WHERE b = $1 AND c = $2\n\
         2026-11-26 06:22:56.500 UTC [12] me@shop DETAIL:  parameters: $1 = 'it''s', $2 = '7'\n\
         2026-11-26 06:22:57.000 UTC [12] me@shop ERROR:  relation \"x\" does not exist at character 15\n\
         2026-11-26 06:22:57.000 UTC [12] me@shop STATEMENT:  SELECT * FROM x\n\
         2026-11-26 06:22:58.000 UTC [12] me@shop LOG:  statement: BEGIN; UPDATE t SET a = 1; COMMIT\n",
        LogForm::PostgresText,
    );
}

#[test]
fn csv_is_read_with_quotes_and_ends_of_lines_in_fields() {
    let line = |time: &str, database: &str, message: &str, detail: &str| {
        let message = message.replace('"', "\"\"");
        format!(
            "{time} UTC,\"me\",\"{database}\",12,\"[local]\",6a.1,1,\"SELECT\",2026-11-26 06:00:00 UTC,3/4,0,LOG,00000,\"{message}\",\"{detail}\",,,,,,,,\"psql\",\"client backend\",,0\n"
        )
    };
    let log = [
        line("2026-11-26 06:22:55.500", "shop", "statement: SELECT a FROM t\nWHERE b = 'it''s' AND c = 7", ""),
        line(
            "2026-11-26 06:22:56.500",
            "shop",
            "execute <unnamed>: SELECT a FROM t WHERE b = $1 AND c = $2",
            "Parameters: $1 = 'it''s', $2 = '7'",
        ),
        line("2026-11-26 06:22:57.000", "other", "statement: SELECT 1", ""),
        line("2026-11-26 06:22:58.000", "shop", "statement: UPDATE t SET a = \"b\"", "").replace("\"\"b\"\"", "5"),
    ];
    check(&log.concat(), LogForm::PostgresCsv);
}

#[test]
fn json_is_read() {
    let line = |time: &str, message: &str, detail: &str| {
        serde_json::json!({ "timestamp": format!("{time} UTC"), "dbname": "shop", "message": message, "detail": detail }).to_string() + "\n"
    };
    let log = [
        line("2026-11-26 06:22:55.500", "statement: SELECT a FROM t\nWHERE b = 'it''s' AND c = 7", ""),
        line(
            "2026-11-26 06:22:56.500",
            "execute a: SELECT a FROM t WHERE b = $1 AND c = $2",
            "parameters: $1 = 'it''s', $2 = '7'",
        ),
        line("2026-11-26 06:22:58.000", "duration: 3.000 ms  statement: UPDATE t SET a = 9", ""),
    ];
    check(&log.concat(), LogForm::PostgresJson);
}

#[test]
fn a_file_of_sql_is_read() {
    let (form, seen) = seen_in(
        "\\set x 1\nSELECT a FROM t\nWHERE b = 'x;\ny';\nSELECT a FROM t WHERE b = 'z'; BEGIN;\n",
        Grammar::POSTGRES,
    );
    assert_eq!(form, LogForm::Script);
    assert_eq!((seen.statements[0].text.as_str(), seen.statements[0].calls), ("SELECT a FROM t WHERE b = ?", 2.0));
}
