//! Rates at which another machine filled tables, for plans on a machine that has measured nothing yet.
//!
//! Main function: [`record_s`]. Invariant: the figures here were measured and are used only for plans: they should be right within a factor of two on a usual machine.

use super::subject::{Filling, Kind};
use crate::trial::{DatabaseSettings, LayoutSettings};

/// Microseconds that a record takes: one with few columns (`sensor`), and one with many (`qos`).
type Record = (f64, f64);
/// The times of records, by the name of the layout.
type Layouts = &'static [(&'static str, Record)];

/// Times of a record in each layout, database and engine: measured on 27 November 2026 with a release build, on two virtual CPUs with other work on
/// them. Least of two trials with 30,000 records and one with 150,000 (except `eav`), without the 0.1 s that a trial takes besides: the others took
/// up to three times as long. SQLite 3.54.1, PostgreSQL 15.18, MariaDB 10.11.19, Redis 7.0.15. Redis has no `star`, `star-hot` and `eav`.
#[rustfmt::skip]
const RECORDS_US: &[(&str, &str, Layouts)] = &[
    ("sqlite", "", &[
        ("wide", (1.0, 2.2)), ("star", (2.2, 1.1)), ("star-hot", (3.6, 2.0)), ("json", (2.6, 7.0)), ("eav", (13.7, 66.1)),
        ("key-value", (1.0, 1.0)), ("spare", (2.4, 5.9)),
    ]),
    ("postgres", "", &[
        ("wide", (2.2, 4.9)), ("star", (16.2, 9.1)), ("star-hot", (34.8, 23.6)), ("json", (14.1, 35.7)), ("eav", (28.0, 114.1)),
        ("key-value", (2.3, 1.7)), ("spare", (6.7, 14.0)),
    ]),
    ("mariadb", "innodb", &[
        ("wide", (11.0, 7.4)), ("star", (29.8, 4.9)), ("star-hot", (33.2, 7.8)), ("json", (25.2, 20.2)), ("eav", (67.6, 200.5)),
        ("key-value", (6.3, 2.0)), ("spare", (17.0, 12.9)),
    ]),
    ("mariadb", "myisam", &[
        ("wide", (5.2, 3.3)), ("star", (8.8, 5.6)), ("star-hot", (7.5, 11.8)), ("json", (9.8, 23.0)), ("eav", (87.1, 553.1)),
        ("key-value", (1.4, 1.4)), ("spare", (8.8, 12.2)),
    ]),
    ("mariadb", "aria", &[
        ("wide", (7.9, 6.9)), ("star", (29.9, 13.9)), ("star-hot", (34.0, 29.0)), ("json", (16.2, 42.3)), ("eav", (332.8, 1065.9)),
        ("key-value", (10.1, 4.8)), ("spare", (10.3, 23.6)),
    ]),
    ("redis", "", &[
        ("wide", (15.1, 64.9)), ("json", (4.7, 15.6)), ("key-value", (8.3, 4.2)), ("spare", (16.0, 57.2)),
    ]),
];
/// Database, engine and layout whose figures are used for those that have none.
const INSTEAD: (&str, &str, &str) = ("mariadb", "innodb", "wide");
/// Numbers of columns of these two records.
const COLUMNS: (f64, f64) = (11.0, 61.0);
/// Bytes of a record that these figures include: those of the larger record.
const BYTES: u64 = 500;
/// Microseconds of each further byte: by records of ten texts of 100 bytes (`usertable`), on the same day. They took 2
/// to 9 µs more than `sensor` with 30,000 records, and 11 to 44 with 150,000, which the disk has to take at once.
const BYTE_US: f64 = 0.02;
/// Microseconds of a record in a secondary index: one and three indexes on 60,000 `sensor` records, least of two
/// trials, on the same day. PostgreSQL 1 to 2, InnoDB 1 to 2, SQLite 1.
const INDEX_US: f64 = 2.0;
/// Microseconds of a row in one of a study's own tables, and of each of its columns: 60,000 rows of five columns, two
/// trials each, on the same day. SQLite up to 12, MariaDB 10 to 21, PostgreSQL 17 to 19.
const OWN_ROW_US: (f64, f64) = (4.0, 1.6);

/// Seconds to start a private server and stop the one before it: PostgreSQL took 2.4 to 4.1, MariaDB 0.8 to 5.
pub const START_S: f64 = 3.0;

/// Returns how long filling tables takes per record, in seconds.
pub fn record_s(filling: &Filling) -> f64 {
    let (few, many) = record_us(&filling.database, &filling.layout);
    let of_column = (many - few) / (COLUMNS.1 - COLUMNS.0);
    let of_columns = few + of_column * (f64::from(filling.columns) - COLUMNS.0);
    // Outside the measured range, a small record still costs something, and more columns cost no less. Inside it they
    // can cost less, because the many columns belong to few measurements.
    let of_columns = of_columns.max(few.min(many) / 4.0);
    let of_columns = if filling.columns > COLUMNS.1 as u32 { of_columns.max(many) } else { of_columns };
    let of_bytes = BYTE_US * filling.bytes.saturating_sub(BYTES) as f64;
    (of_columns + of_bytes + INDEX_US * f64::from(filling.indexes)) / 1e6
}

/// Returns the same for a record of 61 columns.
pub fn qos_record_s(database: &DatabaseSettings, layout: &LayoutSettings) -> f64 {
    let (database, layout) = (Kind::of(database), layout.name.clone());
    record_s(&Filling {
        database,
        layout,
        record: "qos".to_owned(),
        columns: COLUMNS.1 as u32,
        bytes: BYTES,
        indexes: 0,
    })
}

/// Returns how long a row in one of a study's own tables takes, in seconds.
pub fn own_row_s(columns: usize) -> f64 {
    (OWN_ROW_US.0 + OWN_ROW_US.1 * columns as f64) / 1e6
}

fn record_us(database: &Kind, layout: &str) -> Record {
    let engine = database.engine.as_deref().unwrap_or_default();
    let of = |name: &str, engine: &str| {
        RECORDS_US.iter().find(|(of, with, _)| *of == name && *with == engine).map(|(_, _, layouts)| *layouts)
    };
    // MySQL's engines are taken to be MariaDB's, and each has InnoDB.
    let known = of(&database.name, engine).or_else(|| of(INSTEAD.0, engine)).or_else(|| of(INSTEAD.0, INSTEAD.1));
    let layouts = known.unwrap_or_default();
    let of_layout = |layout: &str| layouts.iter().find(|(of, _)| *of == layout).map(|(_, record)| *record);
    of_layout(layout).or_else(|| of_layout(INSTEAD.2)).unwrap_or(COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout;

    fn record(database: (&str, Option<&str>), layout: &str, (columns, bytes, indexes): (u32, u64, u32)) -> f64 {
        let (name, engine) = (database.0.to_owned(), database.1.map(str::to_owned));
        let database = Kind { name, engine, is_elsewhere: false };
        1e6 * record_s(&Filling { database, layout: layout.to_owned(), record: String::new(), columns, bytes, indexes })
    }

    #[test]
    fn what_was_measured_is_what_is_told() {
        let near = |value: f64, wanted: f64| assert!((value - wanted).abs() < 1e-9, "{value} instead of {wanted}");
        near(record(("sqlite", None), "eav", (61, 488, 0)), 66.1);
        near(record(("mariadb", Some("aria")), "json", (11, 200, 0)), 16.2);
        near(record(("postgres", None), "wide", (11, 1000, 1)), 2.2 + 10.0 + 2.0);
        near(record(("mysql", Some("innodb")), "wide", (11, 200, 0)), 11.0);
        near(record(("mariadb", Some("innodb")), "star", (61, 488, 0)), 4.9);
        near(record(("one more", None), "one more", (11, 200, 0)), 11.0);
    }

    #[test]
    fn every_database_and_layout_has_a_rate_that_grows_with_the_bytes_of_a_record() {
        let engines = crate::database::REGISTRY.iter().flat_map(|entry| {
            let engines = entry.engines.iter().map(|engine| (entry.name, Some(*engine)));
            engines.chain([(entry.name, None)]).collect::<Vec<_>>()
        });
        for database in engines {
            for layout in layout::REGISTRY.iter().map(|entry| entry.name) {
                for columns in [0, 1, 11, 30, 61, 200] {
                    let sizes = [(columns, 0, 0), (columns, 1_000, 0), (columns, 1_000, 3)];
                    let told = sizes.map(|size| record(database, layout, size));
                    assert!(told.is_sorted() && told[0] > 0.0 && told[2] < 5_000.0, "{database:?} {layout}: {told:?}");
                }
            }
        }
    }
}
