//! Tests of fills for statements, on a catalogue written here.

use proptest::prelude::*;

use super::*;
use crate::draft::catalogue::{Catalogue, Column, Holds, Server, Spread, Table, Writer};
use crate::draft::seen::{Ran, Sample};
use crate::draft::sql::{Grammar, shape_of};
use crate::draft::written::fill_text;
use crate::draft::{known, lookups};
use crate::trial::Fill;

fn column(name: &str, holds: Holds, spread: Spread) -> Column {
    let (name, type_name) = (name.to_owned(), "t".to_owned());
    Column { name, plain_type: Some(type_name.clone()), type_name, holds, makes_itself: false, nullable: true, spread }
}

fn numbers(low: u32, high: u32, distinct: f64) -> Spread {
    let bounds = (0..=20).map(|part| (low + part * (high - low) / 20).to_string()).collect();
    Spread { distinct: Some(distinct), range: Some((low.to_string(), high.to_string())), bounds, ..Spread::default() }
}

/// Returns a catalogue with the orders of a shop: a key without gaps, customers with ten orders each, a state, and times of one day.
fn catalogue() -> Catalogue {
    let frequent = vec![("top-secret".to_owned(), 0.9), ("open".to_owned(), 0.1)];
    let hours = (0..=20).map(|part| format!("2026-11-01 {:02}:00:00", part)).collect();
    let day = ("2026-11-01 00:00:00".to_owned(), "2026-11-01 20:00:00".to_owned());
    let orders = Table {
        schema: String::new(),
        name: "orders".to_owned(),
        quoted: "\"orders\"".to_owned(),
        is_view: false,
        definition: None,
        rows: 10_000.0,
        bytes: None,
        columns: vec![
            column("id", Holds::Whole, numbers(1, 10_000, 10_000.0)),
            column("customer", Holds::Whole, numbers(1, 1_000, 1_000.0)),
            column(
                "state",
                Holds::Text,
                Spread { distinct: Some(2.0), width: Some(7.0), frequent, ..Spread::default() },
            ),
            column(
                "at",
                Holds::Time { has_zone: false },
                Spread { range: Some(day), bounds: hours, distinct: Some(9_000.0), ..Spread::default() },
            ),
        ],
        keys: vec![vec![0]],
        indexed: vec![0, 1],
        indexes: vec![vec![1]],
        references: Vec::new(),
        suffix: None,
        is_analysed: true,
        is_visible: true,
    };
    Catalogue { tables: vec![orders], notes: Vec::new() }
}

/// Returns a statement that ran with these calls and rows per call; the literals of the calls are its samples.
fn ran(calls: &[&str], rows_per_call: f64) -> Ran {
    let shapes: Vec<_> = calls.iter().map(|sql| shape_of(sql, Grammar::POSTGRES)).collect();
    let sample = |shape: &crate::draft::sql::Shape| Sample {
        values: shape.literals.iter().map(|literal| literal.value().map(str::to_owned)).collect(),
        at_us: None,
    };
    Ran {
        text: shapes[0].text.clone(),
        literals: shapes[0].literals.clone(),
        calls: calls.len() as f64,
        rows: Some(rows_per_call * calls.len() as f64),
        seconds: None,
        samples: shapes.iter().map(sample).collect(),
        broken: None,
    }
}

fn fit(ran: &Ran, keeps_values: bool) -> Result<Fitted, String> {
    let (quote, literal) = (|name: &str| format!("\"{name}\""), |text: &str| format!("'{text}'"));
    let writer = Writer { quote: &quote, literal: &literal };
    let catalogue = catalogue();
    let known = known(&catalogue);
    let place =
        Place { server: Server::Postgres, writer: &writer, now_us: 1_795_674_175_000_000, offset_s: 0, keeps_values };
    Fitter { catalogue: &catalogue, known: &known, grammar: Grammar::POSTGRES, place }.fit(ran)
}

fn fills(sql: &str, rows: f64) -> Vec<String> {
    fit(&ran(&[sql], rows), false).unwrap().fills.iter().map(fill_text).collect()
}

#[test]
fn a_key_without_gaps_is_asked_for_evenly_and_others_are_taken_from_the_table() {
    assert_eq!(fills("SELECT * FROM orders WHERE id = $1", 1.0), ["{ uniform = [1, 10000] }"]);
    let of_customer = fills("SELECT * FROM orders WHERE customer = $1", 10.0);
    assert!(of_customer[0].starts_with("{ from = 'SELECT \"customer\" FROM"), "{of_customer:?}");
}

#[test]
fn columns_of_one_row_are_drawn_together() {
    let found = fills("SELECT * FROM orders WHERE customer = $1 AND state = $2", 5.0);
    assert!(found[0].contains("SELECT \"customer\", \"state\" FROM") && found[1] == "{ row_of = [1, 2] }", "{found:?}");
    assert_eq!(fills("SELECT * FROM orders WHERE id = $1 OR customer = $2 OR id = $1", 1.0)[2], "{ same = 1 }");
}

#[test]
fn arrays_are_as_long_as_calls_found_rows() {
    assert_eq!(fills("SELECT * FROM orders WHERE id = ANY($1)", 4.0), ["{ array = [4, { uniform = [1, 10000] }] }"]);
    let asked = fit(&ran(&["SELECT * FROM orders WHERE id = ANY('{1,2,3,4,5,6}')"; 9], 4.0), false).unwrap();
    assert_eq!(fill_text(&asked.fills[0]), "{ array = [6, { uniform = [1, 10000] }] }");
}

#[test]
fn a_range_is_as_wide_as_the_rows_of_a_call_say() {
    let found = fills("SELECT * FROM orders WHERE at BETWEEN $1 AND $2", 500.0);
    // A twentieth of the rows is one hour out of twenty.
    assert!(
        found[0].starts_with("{ times = [\"2026-11-01 00:00:00\"") && found[1] == "{ plus = [1, 3600] }",
        "{found:?}"
    );
    assert!(found[0].contains("\"2026-11-01 19:00:00\"]"), "no range ends behind the last row: {found:?}");
    let downwards = fills("SELECT * FROM orders WHERE id < $1 AND id >= $2", 100.0);
    assert_eq!(downwards[1], "{ plus = [1, -99] }");
    let fitted = fit(&ran(&["SELECT count(*) FROM orders WHERE at BETWEEN $1 AND $2"], 1.0), false).unwrap();
    assert!(fitted.remarks[0].contains("is a guess"), "a sum has one row, whatever it sums: {fitted:?}");
}

#[test]
fn what_is_always_the_same_stays_in_the_text_where_it_may() {
    let calls: Vec<String> =
        (1..=30).map(|id| format!("SELECT id FROM orders WHERE state = 'top-secret' AND id > {id} LIMIT 7")).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let hidden = fit(&ran(&calls, 7.0), false).unwrap();
    assert_eq!(hidden.sql, "SELECT id FROM orders WHERE state = ? AND id > ? LIMIT 7");
    let shown = fit(&ran(&calls, 7.0), true).unwrap();
    assert_eq!(shown.fills[0], Fill::Text("top-secret".to_owned()));
    assert_eq!(shown.fills[1], Fill::Uniform(1.0, 30.0));
}

#[test]
fn what_is_not_understood_is_said_with_its_place() {
    let why = |sql: &str| fit(&ran(&[sql], 1.0), false).unwrap_err();
    assert_eq!(
        why("SELECT id FROM orders WHERE at > now() - interval $1"),
        "value number 1, in \"- CAST ( ? AS interval\", is not understood, and what it was is not known; a log would tell it"
    );
    assert!(why("SELECT * FROM elsewhere").contains("elsewhere, which is no table"));
    assert!(why("SELECT * FROM orders WHERE lower(state) = $1").contains("a function of orders.state"));
}

#[test]
fn what_is_stored_is_new_where_it_must_be_and_as_it_was_elsewhere() {
    let insert = fit(&ran(&["INSERT INTO orders VALUES ($1, $2, $3, $4)"], 1.0), false).unwrap();
    let found: Vec<String> = insert.fills.iter().map(fill_text).collect();
    assert_eq!(found[0], "{ sequence = ['SELECT max(\"id\") + 1 FROM \"orders\"', 1] }");
    assert!(found[1].contains("SELECT \"customer\"") && found[2].contains("SELECT \"state\""), "{found:?}");
    assert!(found[3].starts_with("{ times = ["), "{found:?}");
    assert!(insert.writes);
    assert!(fit(&ran(&["SELECT id FROM orders WHERE id = $1 FOR UPDATE"], 1.0), false).unwrap().writes);
}

#[test]
fn ranges_are_widened_by_a_factor() {
    let mut fitted = fit(&ran(&["SELECT * FROM orders WHERE id BETWEEN $1 AND $2 LIMIT $3"], 100.0), false).unwrap();
    assert!(fitted.widen(2.0));
    assert_eq!(fill_text(&fitted.fills[1]), "{ plus = [1, 199] }");
    assert_eq!(fill_text(&fitted.fills[2]), "200");
    assert!(!fit(&ran(&["SELECT * FROM orders WHERE id = $1"], 1.0), false).unwrap().widen(2.0));
}

#[test]
fn without_statements_rows_are_looked_up_by_their_keys() {
    let seen = lookups(&catalogue(), &|name: &str| format!("\"{name}\""));
    assert_eq!(seen.statements[0].text, "SELECT * FROM \"orders\" WHERE \"id\" = ?");
}

proptest! {
    #[test]
    fn no_text_of_a_log_or_of_the_database_gets_into_a_study(
        text in "[a-z]{12}",
        conditions in proptest::collection::vec("state = |state IN |state LIKE |state <> |lower\\(state\\) = |\\? \\|\\| state = |state > ", 1..4),
        calls in 1..40_usize
    ) {
        let conditions: Vec<String> = conditions.iter().map(|condition| match condition.contains(" IN ") {
            true => format!("{condition}('{text}', 'b{text}')"),
            false => format!("{condition}'{text}'"),
        }).collect();
        let sql = format!("SELECT '{text}', id FROM orders WHERE {}", conditions.join(" AND "));
        let ran = ran(&vec![sql.as_str(); calls], 1.0);
        let told = match fit(&ran, false) {
            Ok(fitted) => format!("{}{:?}{}", fitted.sql, fitted.fills, fitted.remarks.concat()),
            Err(why) => why,
        };
        prop_assert!(!told.contains(&text) && !told.contains("top-secret"), "{told}");
    }
}
