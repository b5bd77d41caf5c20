//! Tests of the keys of described tables: their values are generated and examined.

use std::collections::BTreeSet;

use loadline_tables::data::Parameters;

use super::keys::keys_of;
use crate::draft::catalogue::{Column, Holds, Server, Spread, Table, Writer};
use crate::draft::fit::Place;
use crate::record::Cells;
use crate::trial::{Asked, Fill};

fn column(name: &str, holds: Holds, (low, high): (&str, &str), distinct: f64) -> Column {
    let range = Some((low.to_owned(), high.to_owned()));
    let spread = Spread { range, distinct: Some(distinct), width: Some(8.0), ..Spread::default() };
    let type_name = "timestamp(6)".to_owned();
    let plain_type = Some(type_name.clone());
    Column { name: name.to_owned(), type_name, holds, makes_itself: false, nullable: false, plain_type, spread }
}

fn table(columns: Vec<Column>, keys: Vec<Vec<usize>>) -> Table {
    Table {
        schema: String::new(),
        name: "t".to_owned(),
        quoted: "\"t\"".to_owned(),
        is_view: false,
        definition: None,
        rows: 10_000.0,
        bytes: None,
        columns,
        keys,
        indexed: vec![0],
        indexes: Vec::new(),
        references: Vec::new(),
        suffix: None,
        is_analysed: true,
        is_visible: true,
    }
}

/// Returns the number of distinct rows that the columns of a key have among the given number.
fn different(fills: &[Fill], rows: u64) -> usize {
    let parameters = Parameters::new(fills.iter(), &Asked::default()).unwrap();
    let row = |index| {
        let mut cells = Cells::new();
        parameters.fill(1, index, 0, &mut cells);
        cells.as_slice().iter().map(|cell| cells.to_json(*cell).to_string()).collect::<Vec<_>>()
    };
    (0..rows).map(row).collect::<BTreeSet<_>>().len()
}

#[test]
fn no_two_rows_have_the_same_key() {
    let (quote, literal) = (|name: &str| format!("\"{name}\""), |text: &str| format!("'{text}'"));
    let writer = Writer { quote: &quote, literal: &literal };
    let place = Place { server: Server::Postgres, writer: &writer, now_us: 0, offset_s: 0, keeps_values: false };
    let moments = ("2026-11-01 00:00:00", "2026-11-01 01:00:00");
    let time = Holds::Time { has_zone: false };
    for (columns, key) in [
        (vec![column("id", Holds::Whole, ("5", "40000"), 10_000.0)], vec![0]),
        (vec![column("code", Holds::Text, ("a", "b"), 10_000.0)], vec![0]),
        (vec![column("at", time, moments, 10_000.0)], vec![0]),
        (
            vec![column("parent", Holds::Whole, ("1", "3000"), 3_000.0), column("line", Holds::Whole, ("1", "9"), 9.0)],
            vec![0, 1],
        ),
        (vec![column("device", Holds::Whole, ("1", "300"), 300.0), column("at", time, moments, 100.0)], vec![0, 1]),
        (vec![column("sensor", Holds::Text, ("a", "z"), 300.0), column("at", time, moments, 100.0)], vec![0, 1]),
        (
            vec![column("plant", Holds::Text, ("a", "z"), 50.0), column("code", Holds::Text, ("a", "z"), 200.0)],
            vec![0, 1],
        ),
    ] {
        let table = table(columns, vec![key.clone()]);
        let keys = keys_of(&place, &table, 10_000);
        assert_eq!(keys.holds, [true]);
        let fills: Vec<Fill> = key.iter().map(|column| keys.fills[*column].clone().unwrap()).collect();
        assert_eq!(different(&fills, 10_000), 10_000, "{fills:?}");
    }
    // A text of two letters cannot tell 10,000 rows apart.
    let mut short = column("code", Holds::Text, ("a", "b"), 10_000.0);
    short.spread.width = Some(2.0);
    assert_eq!(keys_of(&place, &table(vec![short], vec![vec![0]]), 10_000).holds, [false]);
}
