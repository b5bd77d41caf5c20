//! What a study measures with `layout.tables = "recorder"` is what a recorder does: the same records go through a real recorder and through the
//! study's statements, and the tables, their keys and every value are compared.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;

use harness::{Directory, Target, send};
use loadline::database::dialect::create_table;
use loadline::database::recorder::Lines;
use loadline::operation::Operation;
use loadline::statement::{Request, Statement};
use loadline::trial::{CustomColumn, Fill, Length, RecordSettings, Settings};
use loadline::workload::Work;

const SHAPES: [&str; 5] = ["wide", "star", "star-hot", "json", "eav"];
/// Records of both, in batches; the last measurement is not whole.
const RECORDS: u64 = 60;
const BATCH: u32 = 5;

/// `recorded` is `None` for a study's own tables, or whether a recorder's tables have an index on source and time.
fn settings(record: RecordSettings, layout: &str, recorded: Option<bool>) -> Settings {
    let mut settings = Settings { record, ..Settings::default() };
    if settings.record.table.is_empty() {
        settings.record.table = "unnamed".to_owned();
    }
    settings.layout.name = layout.to_owned();
    settings.layout.tables_as_recorded = recorded.is_some();
    settings.layout.recorded_index = recorded == Some(true);
    settings.workload.name = "write".to_owned();
    settings.workload.batch = BATCH;
    settings.load.clients = 3;
    settings.load.length = Length::Operations(1);
    settings
}

fn qos() -> RecordSettings {
    RecordSettings { type_name: "qos".to_owned(), per_measurement: 25, seed: 7, ..RecordSettings::default() }
}

/// Columns of every kind that is sent, and bytes, which are not; no two measurements have the same number.
fn custom() -> RecordSettings {
    let column = |name: &str, kind: &str, fill: Fill, hot: bool| CustomColumn {
        name: name.to_owned(),
        kind: kind.to_owned(),
        fill,
        hot,
    };
    RecordSettings {
        type_name: "custom".to_owned(),
        per_measurement: 25,
        seed: 7,
        identity: vec![
            column("host", "text", Fill::RandomText(9), false),
            column("port", "int", Fill::Sequence(-5, 3), false),
        ],
        values: vec![
            column("whole", "bigint", Fill::Sequence(-5, 1 << 40), true),
            column("note", "text", Fill::RandomText(30), true),
            column("real", "float", Fill::Normal(20.0, 5.0), false),
            column("round", "float", Fill::Number(7.0), true),
            column("raw", "blob", Fill::RandomBytes(9), false),
            column("small", "smallint", Fill::Zipf(-3, 300, 1.1), false),
        ],
        ..RecordSettings::default()
    }
}

/// The names of all tables that a study makes in a layout, the row of writers first.
fn tables(work: &Work) -> Vec<String> {
    work.program().tables.iter().map(|table| table.name.clone()).collect()
}

fn batches() -> impl Iterator<Item = Operation> {
    (0..RECORDS).step_by(BATCH as usize).map(|first| {
        let records = u64::from(BATCH).min(RECORDS - first) as u32;
        Operation::Insert { first, records }
    })
}

/// Sends the records to a recorder, each batch as a request; its tables have the names of the study's, with another beginning.
fn record(target: &Target, about: &RecordSettings, layout: &str, time_index: bool) {
    let directory = Directory::new();
    let sent = Work::new(&settings(about.clone(), "wide", None)).unwrap();
    let generator = sent.generator().unwrap();
    let of_type = generator.record_type();
    let hot: Vec<_> = of_type.values.iter().filter(|column| column.hot).map(|column| column.name.as_str()).collect();
    let hot = if layout == "star-hot" { format!("\nhot = {hot:?}") } else { String::new() };
    let started = target.start(&directory, &format!("name = \"{layout}\"\ntime_index = {time_index}{hot}"), "");
    let lines = Lines::new(&recorded_name(about, layout, time_index), of_type, generator.records_per_measurement());
    for operation in batches() {
        let (mut request, mut body) = (Request::default(), Vec::new());
        sent.bind(&operation, &mut request);
        lines.append(&request, &mut body);
        assert_eq!(send(started.http, "POST", "/write", "", &body).status, 204);
        // One after the other, so that identities are numbered in their order.
        started.wait_until_committed();
    }
    assert_eq!(started.stop().counts.committed, RECORDS);
}

fn recorded_name(about: &RecordSettings, layout: &str, time_index: bool) -> String {
    let plain = if time_index { "" } else { "_plain" };
    format!("rec_{}_{}{plain}", about.type_name, layout.replace('-', "_"))
}

fn study_name(about: &RecordSettings, layout: &str, time_index: bool) -> String {
    recorded_name(about, layout, time_index).replace("rec_", "sty_")
}

/// Executes the study's statements.
fn study(target: &Target, about: &RecordSettings, layout: &str, time_index: bool) -> Vec<String> {
    let record = RecordSettings { table: study_name(about, layout, time_index), ..about.clone() };
    let work = Work::new(&settings(record, layout, Some(time_index))).unwrap();
    let database = target.open();
    let mut session = database.connect().unwrap();
    for table in &work.program().tables {
        create_table(database.dialect(), table).iter().for_each(|sql| session.run(sql).unwrap());
    }
    session.prepare(work.program()).unwrap();
    session.execute(&work.program().first, None).unwrap();
    for (operation, client) in batches().zip((0..3).cycle()) {
        let mut request = Request { client, ..Request::default() };
        work.bind(&operation, &mut request);
        session.execute(&request, None).unwrap();
    }
    tables(&work)
}

/// What a database says of a table's columns, keys and indexes, with the study's names for the recorder's.
fn shape_of(target: &Target, table: &str) -> Vec<String> {
    let statements: &[&str] = match target.name {
        "sqlite" => &[
            "SELECT name, type, \"notnull\", pk > 0 FROM pragma_table_info('{t}') ORDER BY name",
            "SELECT il.\"unique\", il.origin, (SELECT group_concat(name) FROM pragma_index_info(il.name)) \
             FROM pragma_index_list('{t}') il ORDER BY 2, 3",
            "SELECT \"table\", \"from\", \"to\" FROM pragma_foreign_key_list('{t}') ORDER BY 1",
        ],
        "mariadb" => &[
            "SELECT column_name, column_type, is_nullable FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND table_name = '{t}' ORDER BY column_name",
            "SELECT column_name, seq_in_index, non_unique, index_name = 'PRIMARY' FROM information_schema.statistics \
             WHERE table_schema = DATABASE() AND table_name = '{t}' ORDER BY 1, 2, 3, 4",
            "SELECT column_name, referenced_table_name, referenced_column_name FROM information_schema.key_column_usage \
             WHERE table_schema = DATABASE() AND table_name = '{t}' AND referenced_table_name IS NOT NULL ORDER BY 1",
        ],
        _ => &[
            "SELECT column_name, data_type, character_maximum_length, is_nullable FROM information_schema.columns \
             WHERE table_name = '{t}' ORDER BY column_name",
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{t}'::regclass ORDER BY 1",
            "SELECT substring(indexdef FROM ' USING .*') FROM pg_indexes WHERE tablename = '{t}' ORDER BY 1",
        ],
    };
    let queries = statements.iter().flat_map(|sql| target.query(&sql.replace("{t}", table)));
    queries.map(|row| row.replace("rec_", "sty_")).collect()
}

/// All values of a table but for those that say when something was written, by the names of the columns.
fn values_of(target: &Target, work: &Work, table: &str, like: &str) -> Vec<String> {
    let described = work.program().tables.iter().find(|own| own.name == like).unwrap();
    let mut names: Vec<&str> = described.columns.iter().map(|column| column.name.as_str()).collect();
    names.retain(|name| !["edited_ns", "end_ns"].contains(name));
    // A recorder's numbers have its writer's above them: above 52 bits of a record's, above 40 of an identity's.
    let column = |name: &&str| match *name {
        "record_id" => format!("record_id % {}", 1_i64 << 52),
        "measurement" => format!("measurement % {}", 1_i64 << 40),
        name => target.open().dialect().quote(name),
    };
    let columns: Vec<String> = names.iter().map(column).collect();
    let by: Vec<&str> = described.primary_key.iter().map(String::as_str).collect();
    target.query(&format!("SELECT {} FROM {table} ORDER BY {}", columns.join(", "), by.join(", ")))
}

/// Returns the query for the columns of all indexes of these tables.
fn indexed_columns(target: &Target, tables: &[String]) -> String {
    let names = tables.iter().map(|table| format!("'{table}'")).collect::<Vec<_>>().join(", ");
    match target.name {
        "sqlite" => format!(
            "SELECT i.name FROM sqlite_master m, pragma_index_list(m.name) l, pragma_index_info(l.name) i WHERE m.name IN ({names})"
        ),
        "mariadb" => format!(
            "SELECT column_name FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name IN ({names})"
        ),
        _ => format!(
            "SELECT a.attname FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = \
             i.indexrelid WHERE t.relname IN ({names})"
        ),
    }
}

/// Executes the statements with which the documentation adds the index to a table that exists.
fn change_by_hand(target: &Target, table: &str) {
    let documentation = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/recording.md")).unwrap();
    let of = match target.name {
        "sqlite" => "-- SQLite\n",
        "mariadb" => "-- MariaDB and MySQL\n",
        _ => "-- PostgreSQL, one after the other and in no transaction\n",
    };
    let (_, statements) = documentation.split_once(of).unwrap();
    let end = statements.find("```").unwrap().min(statements.find("-- ").unwrap_or(usize::MAX));
    for statement in statements[..end].split(";\n").filter(|statement| !statement.is_empty()) {
        target.session().run(&statement.replace("qos_values", table)).unwrap();
    }
}

/// Identities of `custom` may repeat, which a recorder makes one of.
fn a_study_does_what_a_recorder_does(target: &Target) {
    let of_qos = SHAPES.map(|layout| (qos(), layout, true));
    let others = [(custom(), "wide", true), (custom(), "wide", false), (qos(), "star", false)];
    for (about, layout, time_index) in of_qos.into_iter().chain(others) {
        let about = &about;
        record(target, about, layout, time_index);
        let made = study(target, about, layout, time_index);
        let as_study = RecordSettings { table: study_name(about, layout, time_index), ..about.clone() };
        let work = Work::new(&settings(as_study, layout, Some(time_index))).unwrap();
        let with_time = target.query(&indexed_columns(target, &made)).contains(&"time_ns".to_owned());
        assert_eq!(with_time, time_index, "{made:?}");
        assert_eq!(shape_of(target, &made[0]), shape_of(target, "loadline_writer"), "{layout}: the row of writers");
        let moved = target.query(&format!("SELECT COUNT(*) FROM {} WHERE sequence > 0 AND edited_ns > 0", made[0]));
        assert_eq!(moved, ["3"], "{layout}: each client moves its own row");
        for table in &made[1..] {
            let recorded =
                table.replace(&study_name(about, layout, time_index), &recorded_name(about, layout, time_index));
            let here = shape_of(target, table);
            assert!(here.len() > 2, "{table}: {here:?}");
            assert_eq!(here, shape_of(target, &recorded), "{table} and {recorded}");
            let values = values_of(target, &work, table, table);
            assert!(!values.is_empty());
            assert_eq!(values, values_of(target, &work, &recorded, table), "{table} and {recorded}");
        }
        if !time_index && about.type_name == "qos" {
            change_by_hand(target, &made[2]);
            assert!(target.query(&indexed_columns(target, &made)).contains(&"time_ns".to_owned()), "{}", made[2]);
        }
        for table in made.iter().rev() {
            target.session().run(&format!("DROP TABLE {table}")).unwrap();
        }
    }
}

#[test]
fn a_study_does_what_a_recorder_does_in_sqlite() {
    let directory = Directory::new();
    a_study_does_what_a_recorder_does(&Target::sqlite(&directory));
}

#[test]
fn a_study_does_what_a_recorder_does_in_mariadb() {
    a_study_does_what_a_recorder_does(&Target::server("mariadb"));
}

#[test]
fn a_study_does_what_a_recorder_does_in_postgres() {
    a_study_does_what_a_recorder_does(&Target::server("postgres"));
}

/// The transaction itself: the writer's row first, then identities, then records, as the recorder sends them.
#[test]
fn a_transaction_moves_its_writers_row_first() {
    let record = RecordSettings { table: "t".to_owned(), ..qos() };
    let work = Work::new(&settings(record, "star", Some(true))).unwrap();
    let mut request = Request { client: 2, ..Request::default() };
    work.bind(&Operation::Insert { first: 45, records: 10 }, &mut request);
    let of = |place: usize| &work.program().statements[usize::from(request.steps[place].statement)];
    assert!(matches!(of(0), Statement::Sql { sql, .. } if sql.starts_with("UPDATE t_writer SET sequence")));
    assert!(matches!(of(1), Statement::Insert { table, .. } if table == "t_identity"));
    assert!(matches!(of(2), Statement::Insert { table, .. } if table == "t_values"));
    let rows: Vec<u32> = request.steps.iter().map(|step| step.rows).collect();
    assert_eq!(rows, [1, 1, 10], "one measurement begins within these records");
    assert!(work.program().pipelines, "a recorder takes as few round trips as it can");
}

#[test]
fn what_a_recorder_would_not_make_is_refused() {
    let refusal =
        |record: RecordSettings, layout: &str| Work::new(&settings(record, layout, Some(true))).err().unwrap();
    assert!(refusal(qos(), "spare").contains("a recorder has the layouts wide, star, star-hot, json, eav"));
    let wisconsin = RecordSettings { type_name: "wisconsin".to_owned(), rows: 0, ..qos() };
    assert!(refusal(wisconsin, "wide").contains("have a key and no source"));
    let named = RecordSettings { table: "My Table".to_owned(), ..qos() };
    assert!(refusal(named, "wide").contains("record.table \"My Table\""));
    let mut taken = custom();
    taken.values[0].name = "series".to_owned();
    assert!(refusal(taken, "wide").contains("the column \"series\""));
    assert!(refusal(custom(), "star").contains("may have the same tags"));
}
