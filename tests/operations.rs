//! The oracle of operations: every layout with every kind of record on every database holds, after insertions, updates of one
//! field and of all, and deletions, what a model holds; reads, selections and scans give it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "behind/mod.rs"]
#[expect(dead_code, reason = "shared with tests that stop the server")]
mod behind;
#[path = "operations/model.rs"]
mod model;

use std::sync::Arc;

use behind::Behind;
use loadline::data;
use loadline::database::dialect::{create_table, remove_table};
use loadline::database::sqlite::Sqlite;
use loadline::database::{self, Answer, Capability, Database, Session, duckdb, mysql, postgres};
use loadline::layout::{self, Access, Layout};
use loadline::operation::{Fields, Operation};
use loadline::record::{Cells, Column, ColumnKind, Generator, RecordType};
use loadline::server::Server;
use loadline::statement::{Bind, Request, SchemaChange};
use loadline::trial::{CustomColumn, DatabaseSettings, Fill, RecordSettings};
use model::{Model, records, same_number, text};

/// Records with a text as key, as those of other tools have, whose order is not that of their numbers.
struct Users(RecordType);

impl Users {
    fn new() -> Self {
        let column = |name: &str, kind, nullable| Column { name: name.to_owned(), kind, nullable, hot: name == "b" };
        Users(RecordType {
            name: "users".to_owned(),
            identity: vec![column("user_key", ColumnKind::Text(40), false)],
            identity_key: 1,
            identity_end: None,
            series: None,
            key: Some(0),
            values: vec![
                column("a", ColumnKind::Text(100), false),
                column("b", ColumnKind::Text(100), false),
                column("c", ColumnKind::Text(2000), false),
            ],
        })
    }
}

impl Generator for Users {
    fn record_type(&self) -> &RecordType {
        &self.0
    }

    fn records_per_measurement(&self) -> u64 {
        1
    }

    fn identity(&self, measurement: u64, _: u64, out: &mut Cells) {
        out.text(&format!("user{}", measurement.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }

    fn values(&self, record: u64, out: &mut Cells) {
        out.text(&format!("a '{record}' \"\\ ä\t"));
        out.text("");
        out.text(&"long ".repeat(record as usize % 300));
    }
}

fn record_types() -> Vec<Arc<dyn Generator>> {
    let column = |name: &str, kind: &str, fill: Fill, hot: bool| {
        let (name, kind) = (name.to_owned(), kind.to_owned());
        CustomColumn { name, kind, fill, hot }
    };
    let settings = |type_name: &str, per_measurement| RecordSettings {
        type_name: type_name.to_owned(),
        per_measurement,
        rows: 40,
        seed: 7,
        ..RecordSettings::default()
    };
    let custom = RecordSettings {
        identity: vec![column("probe", "int", Fill::Uniform(1.0, 3.0), true)],
        values: vec![
            column("order", "bigint", Fill::Sequence(-5, 3), true),
            column("note \"ä\"", "text", Fill::RandomText(12), false),
            column("rtt_ms", "float", Fill::Normal(20.0, 5.0), true),
            column("raw", "blob", Fill::RandomBytes(9), false),
            column("small", "smallint", Fill::Zipf(-3, 300, 1.1), true),
        ],
        ..settings("custom", 1)
    };
    let built = [settings("qos", 1), settings("wisconsin", 1), custom].map(|settings| data::build(&settings).unwrap());
    built.into_iter().chain([Arc::new(Users::new()) as Arc<dyn Generator>]).collect()
}

/// A layout's tables on a database, with a connection.
struct Tables<'a> {
    database: &'a dyn Database,
    layout: Box<dyn Layout>,
    generator: &'a dyn Generator,
    session: Box<dyn Session>,
    request: Request,
}

impl<'a> Tables<'a> {
    fn new(database: &'a dyn Database, name: &str, generator: &'a dyn Generator) -> Self {
        let record_type = generator.record_type();
        let one = (0..record_type.values.len() as u16).map(Fields::One);
        let fields: Vec<_> = [Fields::All].into_iter().chain(one).collect();
        let mut layout = layout::build(name, record_type, "oracle", 100).unwrap();
        let access = Access { read: true, select: fields.clone(), update: fields, scan: true, delete: true };
        layout.add_access(&access, record_type);
        let mut session = database.connect().unwrap();
        for table in &layout.program().tables {
            create_table(database.dialect(), table).iter().for_each(|sql| session.run(sql).unwrap());
        }
        session.prepare(layout.program()).unwrap();
        session.execute(&layout.program().first, None).unwrap();
        Tables { database, layout, generator, session, request: Request::default() }
    }

    fn execute(&mut self, operation: Operation) -> Result<(Answer, Cells), String> {
        self.request.clear();
        self.layout.bind(&operation, self.generator, &mut self.request);
        assert!(!self.request.steps.is_empty(), "{operation:?} does nothing");
        let mut rows = Cells::new();
        let answer = self.session.execute(&self.request, Some(&mut rows)).map_err(|error| error.to_string())?;
        Ok((answer, rows))
    }
}

impl Drop for Tables<'_> {
    fn drop(&mut self) {
        let mut session = self.database.connect().unwrap();
        for table in self.layout.program().tables.iter().rev() {
            remove_table(self.database.dialect(), &table.name).iter().for_each(|sql| session.run(sql).unwrap());
        }
    }
}

const ROWS: u64 = 40;

/// Changes records in every way.
fn change(name: &str, tables: &mut Tables<'_>, model: &mut Model<'_>) {
    for (first, records) in [(0, 25), (25, 1), (26, 14)] {
        tables.execute(Operation::Insert { first, records }).unwrap();
        (first..first + u64::from(records)).for_each(|record| model.insert(record));
    }
    let columns = tables.generator.record_type().values.len() as u16;
    for step in 0..60_u64 {
        let (record, like) = (step * 7 % ROWS, step * 11 % ROWS);
        let fields = if step % 4 == 0 { Fields::All } else { Fields::One((step % u64::from(columns)) as u16) };
        tables.execute(Operation::Update { record, like, fields }).unwrap();
        model.update(record, like, fields, name == "key-value");
    }
    for record in [3, 17, 39] {
        tables.execute(Operation::Delete { record }).unwrap();
        model.records.remove(&record);
        let again = tables.execute(Operation::Delete { record }).unwrap_err();
        assert!(again.contains("changed 0 rows instead of"), "{name}: {again}");
    }
    tables.execute(Operation::Insert { first: 17, records: 1 }).unwrap();
    model.insert(17);
}

/// Reads records in every way.
fn read(name: &str, tables: &mut Tables<'_>, model: &Model<'_>) {
    let record_type = tables.generator.record_type().clone();
    for record in 0..ROWS {
        for operation in [Operation::Read { record }, Operation::Select { record, fields: Fields::All }] {
            let (answer, rows) = tables.execute(operation).unwrap();
            let found = records(name, &rows, tables.generator);
            let expected = if model.records.contains_key(&record) { vec![model.expected(record)] } else { vec![] };
            assert_eq!(found, expected, "{name}: {operation:?}");
            assert_eq!(answer.empty, u32::from(expected.is_empty()));
        }
    }
    for (place, column) in record_type.values.iter().enumerate() {
        let (_, rows) = tables.execute(Operation::Select { record: 7, fields: Fields::One(place as u16) }).unwrap();
        if name == "key-value" {
            assert_eq!(records(name, &rows, tables.generator), [model.expected(7)], "the whole is read");
        } else {
            let found = same_number(&column.name, &text(&rows, rows.get(0)), tables.generator);
            assert_eq!((rows.len(), found), (1, model.value(7, place)), "{name}: {}", column.name);
        }
    }
    for (first, most) in [(0, 1), (5, 10), (3, 3), (30, 100), (ROWS + 1, 5)] {
        let (answer, rows) = tables.execute(Operation::Scan { first, records: most }).unwrap();
        let expected = model.scanned(first, most);
        assert_eq!(records(name, &rows, tables.generator), expected, "{name}: {most} records from {first}");
        assert_eq!(answer.empty, u32::from(expected.is_empty()));
    }
}

/// Gives records a field while they are in use, and takes it away.
fn evolve(name: &str, tables: &mut Tables<'_>, model: &Model<'_>) {
    let field = Column { name: "later".to_owned(), kind: ColumnKind::Text(40), nullable: true, hot: false };
    let evolution = tables.layout.evolution(&field);
    let mut session = tables.database.connect().unwrap();
    let dialect = tables.database.dialect();
    let apply = |session: &mut Box<dyn Session>, change: &Option<SchemaChange>| {
        let ways = change.as_ref().map_or(Vec::new(), |change| dialect.schema_change(change, None));
        assert!(ways.is_empty() || ways.iter().any(|sql| session.run(sql).is_ok()), "{name}: {ways:?}");
    };
    apply(&mut session, &evolution.add);
    session.prepare(&evolution.program).unwrap();
    session.execute(&evolution.begin, None).unwrap();
    let generator = tables.generator;
    let mut bound = |bind: &Option<Bind>, record: u64| {
        let mut request = Request::default();
        if let Some(bind) = bind {
            bind(record, generator, &mut request);
        }
        session.execute(&request, None).map(|answer| answer.changed)
    };
    for record in [0, 1, 2] {
        assert_eq!(bound(&evolution.write, record).unwrap(), 1, "{name}");
    }
    // Statements that were prepared before go on.
    let (_, rows) = tables.execute(Operation::Read { record: 9 }).unwrap();
    assert_eq!(records(name, &rows, tables.generator), [model.expected(9)], "{name}");
    for record in [0, 1, 2] {
        bound(&evolution.erase, record).unwrap();
    }
    session.execute(&evolution.end, None).unwrap();
    drop(session);
    let mut session = tables.database.connect().unwrap();
    apply(&mut session, &evolution.remove);
}

fn holds_what_the_model_holds(database: &dyn Database) {
    for generator in record_types() {
        for entry in layout::REGISTRY.iter().filter(|entry| !entry.packs) {
            let mut tables = Tables::new(database, entry.name, &*generator);
            let mut model = Model { generator: &*generator, records: Default::default() };
            change(entry.name, &mut tables, &mut model);
            read(entry.name, &mut tables, &model);
            if !database::find(database.name()).unwrap().capabilities.has(Capability::SchemaChanges) {
                continue;
            }
            evolve(entry.name, &mut tables, &model);
            if entry.name == "key-value" {
                // Values are written as a whole, from the records as they were made.
                (0..3).for_each(|record| model.insert(record));
            }
            read(entry.name, &mut tables, &model);
        }
    }
}

#[test]
fn sqlite_holds_what_the_model_holds_in_every_layout() {
    let file = std::env::temp_dir().join(format!("loadline-operations-{}.db", std::process::id()));
    let path = Some(file.to_string_lossy().into_owned());
    let database = Sqlite::open(&DatabaseSettings { path, ..DatabaseSettings::default() }).unwrap();
    holds_what_the_model_holds(&database);
    drop(database);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
}

#[test]
fn duckdb_holds_what_the_model_holds_in_every_layout() {
    if let Err(missing) = duckdb::library::find() {
        return eprintln!("{missing}: nothing was checked");
    }
    let directory = std::env::temp_dir().join(format!("loadline-operations-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = Some(directory.join("database.db").to_string_lossy().into_owned());
    let settings = DatabaseSettings { name: "duckdb".to_owned(), path, ..DatabaseSettings::default() };
    holds_what_the_model_holds(&duckdb::Duckdb::open(&settings).unwrap());
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn mariadb_holds_what_the_model_holds_in_every_layout() {
    let settings = DatabaseSettings { name: "mariadb".to_owned(), ..DatabaseSettings::default() };
    let server = Server::start(mysql::MARIADB.recipe.unwrap(), &settings, None).unwrap();
    let opened = database::find("mariadb").unwrap().open_sql(&settings, Some(server.endpoint())).unwrap();
    holds_what_the_model_holds(&*opened);
}

#[test]
fn postgresql_holds_what_the_model_holds_in_every_layout() {
    let settings = DatabaseSettings { name: "postgres".to_owned(), ..DatabaseSettings::default() };
    let server = Server::start(postgres::POSTGRES.recipe.unwrap(), &settings, None).unwrap();
    let opened = database::find("postgres").unwrap().open_sql(&settings, Some(server.endpoint())).unwrap();
    holds_what_the_model_holds(&*opened);
}

#[test]
fn postgresql_behind_odbc_holds_what_the_model_holds_in_every_layout() {
    Behind::start("postgres", &[]).iter().for_each(|behind| holds_what_the_model_holds(&*behind.open()));
}

#[test]
fn mariadb_behind_odbc_holds_what_the_model_holds_in_every_layout() {
    Behind::start("mariadb", &[]).iter().for_each(|behind| holds_what_the_model_holds(&*behind.open()));
}
