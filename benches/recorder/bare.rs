//! The bare bulk path: the same values into the same kind of table, over one connection, 1,000 rows a transaction, nothing before it, and with
//! the recorder's foreign key or without it.

use std::time::{Duration, Instant};

use loadline::database::dialect::{create_table, drop_table};
use loadline::database::{self, Endpoint};
use loadline::record::ColumnKind;
use loadline::statement::{Expect, ForeignKey, Program, Request, Statement, Step, Table, TableColumn};
use loadline::trial::DatabaseSettings;

use crate::clients::{FIELDS, value};

/// Rows a transaction; more make it no faster.
const BATCH: usize = 1_000;
/// As many as the recorder's clients are.
const IDENTITIES: usize = 8;

/// Rows a second, from the first row to the last commit, on a table that is new.
pub fn rows_per_s(settings: &DatabaseSettings, endpoint: Option<&Endpoint>, lasts: Duration, refers: bool) -> f64 {
    let database = database::find(&settings.name).unwrap().open_sql(settings, endpoint).unwrap();
    let mut session = database.connect().unwrap();
    let number = |name: &str| TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false };
    let mut columns: Vec<_> = ["record_id", "measurement", "time_ns"].map(number).to_vec();
    columns.extend((0..FIELDS).map(|field| TableColumn {
        name: format!("f{field}"),
        kind: ColumnKind::Float64,
        nullable: true,
    }));
    let identities = Table {
        name: "bare_source".to_owned(),
        columns: vec![number("measurement")],
        primary_key: vec!["measurement".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    };
    let key = ForeignKey {
        columns: vec!["measurement".to_owned()],
        table: identities.name.clone(),
        references: vec!["measurement".to_owned()],
    };
    let table = Table {
        name: "bare".to_owned(),
        columns: columns.clone(),
        primary_key: vec!["record_id".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: vec![vec!["measurement".to_owned()]],
        foreign_keys: if refers { vec![key] } else { Vec::new() },
        time: None,
    };
    for table in [&identities, &table] {
        create_table(database.dialect(), table).iter().for_each(|sql| session.run(sql).unwrap());
    }
    for identity in 0..IDENTITIES {
        session.run(&format!("INSERT INTO bare_source VALUES ({identity})")).unwrap();
    }
    let statements = vec![Statement::Insert { table: table.name, columns }];
    session.prepare(&Program { statements, rows_max: BATCH, ..Program::default() }).unwrap();
    let (begun, mut rows, mut request) = (Instant::now(), 0, Request::default());
    while begun.elapsed() < lasts {
        request.clear();
        for _ in 0..BATCH {
            rows += 1;
            [rows as i64, (rows % IDENTITIES) as i64, rows as i64].iter().for_each(|number| request.cells.int(*number));
            (0..FIELDS).for_each(|field| request.cells.float(value(rows, field)));
        }
        let expect = Expect::Changed(BATCH as u64);
        request.steps.push(Step { statement: 0, rows: BATCH as u32, first_cell: 0, expect });
        session.execute(&request, None).unwrap();
    }
    let rows_per_s = rows as f64 / begun.elapsed().as_secs_f64();
    for table in ["bare", "bare_source"] {
        session.run(&drop_table(database.dialect(), table)).unwrap();
    }
    rows_per_s
}
