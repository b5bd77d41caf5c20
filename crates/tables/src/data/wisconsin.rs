//! The record type `wisconsin`: the relation of the Wisconsin benchmark in its scalable version (DeWitt 1991, table 2), which
//! Kihl, Cedersjö, Robertsson and Aspernäs 2011 based their load on.
//!
//! `unique2` is the record's number and the key, so it is the identity and `wide` needs no other key; the 15 other attributes
//! are values. Only `unique3`, the one that the queries of 2011 ask for, is hot. Integers are 4 bytes and strings 52, as in
//! the benchmark: 208 bytes a row.
//!
//! Invariant: among the first n records, n being `record.rows`, `unique1` takes each number below n once; the next n records
//! take the next n numbers in the same order.

use std::sync::Arc;

use super::Entry;
use super::wisconsin_permutation::{PERMUTATIONS, Permutation};
use crate::record::{Cells, Column, ColumnKind, Generator, RecordType};
use crate::trial::RecordSettings;

/// Registry entry.
pub(super) static WISCONSIN: Entry = Entry {
    name: "wisconsin",
    summary: "the scalable Wisconsin relation, known from benchmarks: 16 attributes, 208 bytes, key unique2",
    build: |settings| Ok(Arc::new(Wisconsin::new(settings)?)),
};

/// Size of the relation if a study leaves `record.rows` at 0 and only writes.
const ROWS_DEFAULT: u64 = 1_000_000;

/// Length of a string attribute.
const STRING_LENGTH: u32 = 52;

/// Number of leading letters of `stringu1` and `stringu2` that differ; the others are x.
const LETTERS: usize = 7;

/// The beginnings of `string4`, in turn.
const CYCLE: [&[u8; 4]; 4] = [b"AAAA", b"HHHH", b"OOOO", b"VVVV"];

const INTEGERS: [&str; 12] = [
    "unique1",
    "two",
    "four",
    "ten",
    "twenty",
    "onePercent",
    "tenPercent",
    "twentyPercent",
    "fiftyPercent",
    "unique3",
    "evenOnePercent",
    "oddOnePercent",
];

const STRINGS: [&str; 3] = ["stringu1", "stringu2", "string4"];

struct Wisconsin {
    record_type: RecordType,
    permutation: Permutation,
    rows: u64,
}

impl Wisconsin {
    fn new(settings: &RecordSettings) -> Result<Self, String> {
        let rows = if settings.rows == 0 { ROWS_DEFAULT } else { settings.rows };
        let name = settings.permutation.as_deref().unwrap_or(PERMUTATIONS[0]);
        Ok(Wisconsin { record_type: record_type(), permutation: Permutation::new(name, rows, settings.seed)?, rows })
    }
}

impl Generator for Wisconsin {
    fn record_type(&self) -> &RecordType {
        &self.record_type
    }

    fn records_per_measurement(&self) -> u64 {
        1
    }

    fn identity(&self, measurement: u64, _records: u64, out: &mut Cells) {
        out.int(measurement as i64);
    }

    fn values(&self, record: u64, out: &mut Cells) {
        let unique1 = record / self.rows * self.rows + u64::from(self.permutation.at(record));
        let one_percent = unique1 % 100;
        let integers = [
            unique1,
            unique1 % 2,
            unique1 % 4,
            unique1 % 10,
            unique1 % 20,
            one_percent,
            unique1 % 10,
            unique1 % 5,
            unique1 % 2,
            unique1,
            one_percent * 2,
            one_percent * 2 + 1,
        ];
        integers.into_iter().for_each(|value| out.int(value as i64));
        for number in [unique1, record] {
            out.text_with(STRING_LENGTH as usize, |text| write_number(number, text));
        }
        out.text_with(STRING_LENGTH as usize, |text| {
            text.fill(b'x');
            text[..4].copy_from_slice(CYCLE[(record % 4) as usize]);
        });
    }
}

/// Writes a number to the base of 26, A for 0, right-aligned in the first seven letters, with A in front and x behind.
#[inline]
fn write_number(number: u64, text: &mut [u8]) {
    text.fill(b'x');
    let mut left = number;
    for letter in text[..LETTERS].iter_mut().rev() {
        *letter = b'A' + (left % 26) as u8;
        left /= 26;
    }
}

fn record_type() -> RecordType {
    let column =
        |name: &str, kind: ColumnKind| Column { name: name.to_owned(), kind, nullable: false, hot: name == "unique3" };
    let integers = INTEGERS.iter().map(|name| column(name, ColumnKind::Int32));
    let strings = STRINGS.iter().map(|name| column(name, ColumnKind::Text(STRING_LENGTH)));
    RecordType {
        name: "wisconsin".to_owned(),
        identity: vec![column("unique2", ColumnKind::Int32)],
        identity_key: 1,
        identity_end: None,
        series: None,
        key: Some(0),
        values: integers.chain(strings).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn wisconsin(rows: u64, permutation: &str) -> Arc<dyn Generator> {
        let permutation = Some(permutation.to_owned());
        crate::data::build(&RecordSettings {
            type_name: "wisconsin".to_owned(),
            permutation,
            rows,
            seed: 1,
            per_measurement: 1,
            ..RecordSettings::default()
        })
        .unwrap()
    }

    /// Returns a function that returns the attributes of a record by name.
    fn record(generator: &dyn Generator, number: u64) -> impl Fn(&str) -> Value {
        let mut cells = Cells::new();
        generator.identity(number, 1, &mut cells);
        generator.values(number, &mut cells);
        let record_type = generator.record_type();
        let names: Vec<_> =
            record_type.identity.iter().chain(&record_type.values).map(|column| column.name.clone()).collect();
        move |name| cells.to_json(cells.get(names.iter().position(|known| known == name).unwrap()))
    }

    fn known() -> Value {
        let all: Value = serde_json::from_str(include_str!("../../../../tests/known-answers.json")).unwrap();
        all["wisconsin"]["expected"].clone()
    }

    fn assert_begins(rows: u64, permutation: &str, expected: &Value) {
        let generator = wisconsin(rows, permutation);
        let expected = expected.as_array().unwrap();
        assert_eq!(expected.len(), 10);
        for (number, expected) in expected.iter().enumerate() {
            let attribute = record(&*generator, number as u64);
            assert_eq!(attribute("unique1"), *expected, "{permutation}, {rows} rows, record {number}");
            assert_eq!((attribute("unique3"), attribute("unique2")), (expected.clone(), number.into()));
        }
    }

    #[test]
    fn dewitts_generator_gives_the_known_numbers() {
        let known = known();
        for (rows, name) in [(100, "n100"), (1000, "n1000"), (10_000, "n10000")] {
            assert_begins(rows, "dewitt", &known[name]);
        }
    }

    #[test]
    fn shift_registers_give_the_known_numbers() {
        let known = known();
        let plain = &known["lfsr_galois_right"];
        assert_begins(1000, "lfsr", &plain["1000 (k=10,mask=0x240,start 1)"]);
        assert_begins(10_000, "lfsr", &plain["10000 (k=14,mask=0x3500)"]);
        let leap = &known["lfsr_leap"];
        assert_begins(1000, "lfsr-leap", &leap["1000 k=10 leap 13"]);
        assert_begins(10_000, "lfsr-leap", &leap["10000 k=14 leap 17"]);
    }

    #[test]
    fn strings_are_the_known_ones() {
        let known = known()["str"].clone();
        let generator = wisconsin(1_000_000, "lfsr");
        for (number, letters) in known.as_object().unwrap() {
            let number: u64 = number.parse().unwrap();
            let expected = format!("{}{}", letters.as_str().unwrap(), "x".repeat(45));
            assert_eq!(record(&*generator, number)("stringu2"), expected);
        }
        let turns = ["AAAA", "HHHH", "OOOO", "VVVV", "AAAA"];
        for (number, letters) in turns.into_iter().enumerate() {
            assert_eq!(record(&*generator, number as u64)("string4"), format!("{letters}{}", "x".repeat(48)));
        }
    }

    #[test]
    fn a_row_has_16_attributes_and_208_bytes() {
        let record_type = record_type();
        let columns: Vec<_> = record_type.identity.iter().chain(&record_type.values).collect();
        let bytes = |column: &&Column| match column.kind {
            ColumnKind::Int32 => 4,
            ColumnKind::Text(length) => u64::from(length),
            other => panic!("{} is {other:?}", column.name),
        };
        assert_eq!(columns.len(), 16);
        assert_eq!(columns.iter().map(bytes).sum::<u64>(), known()["row_bytes"].as_u64().unwrap());
    }

    #[test]
    fn attributes_are_the_remainders_that_the_benchmark_defines() {
        let generator = wisconsin(1000, "dewitt");
        for number in [0, 1, 2, 999] {
            let attribute = record(&*generator, number);
            let number = |name: &str| attribute(name).as_u64().unwrap();
            let unique1 = number("unique1");
            let remainders = [
                ("two", 2),
                ("four", 4),
                ("ten", 10),
                ("twenty", 20),
                ("onePercent", 100),
                ("tenPercent", 10),
                ("twentyPercent", 5),
                ("fiftyPercent", 2),
            ];
            remainders.into_iter().for_each(|(name, modulo)| assert_eq!(number(name), unique1 % modulo, "{name}"));
            assert_eq!(number("evenOnePercent"), unique1 % 100 * 2);
            assert_eq!(number("oddOnePercent"), unique1 % 100 * 2 + 1);
            assert!(attribute("stringu1").as_str().unwrap().ends_with(&"x".repeat(45)));
        }
    }

    #[test]
    fn neighbours_have_nothing_to_do_with_each_other_unless_a_study_asks_for_a_register() {
        let correlation = |rows: u64, permutation: Option<&str>| {
            let settings = RecordSettings {
                type_name: "wisconsin".to_owned(),
                permutation: permutation.map(str::to_owned),
                rows,
                seed: 1,
                per_measurement: 1,
                ..RecordSettings::default()
            };
            let generator = crate::data::build(&settings).unwrap();
            let numbers: Vec<f64> =
                (0..rows).map(|row| record(&*generator, row)("unique1").as_f64().unwrap()).collect();
            super::super::shuffle::correlation_of(&numbers, 1)
        };
        for rows in [1000, 30_000] {
            assert!(correlation(rows, None).abs() < 0.05, "{rows} rows: {}", correlation(rows, None));
        }
        assert!(correlation(30_000, Some("lfsr")) > 0.1, "the source's register is kept as it is, for who asks for it");
    }

    #[test]
    fn records_behind_the_relation_have_numbers_of_their_own() {
        let generator = wisconsin(100, "feistel");
        let mut unique1: Vec<_> =
            (0..300).map(|number| record(&*generator, number)("unique1").as_u64().unwrap()).collect();
        unique1.sort_unstable();
        assert_eq!(unique1, (0..300).collect::<Vec<_>>());
    }
}
