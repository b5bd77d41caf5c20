//! Layouts: they turn a record type into tables, and operations into statements. [`build`] makes a [`Layout`].
//!
//! Invariant: a layout knows no database; its requests are expressed as [`Statement`](crate::statement::Statement)s. Reading a
//! record returns everything stored of it. With `wide`, `star` and `star-hot` these are its identity and value columns, in the
//! order of its type; with `spare` the same, with the key in front and all others as text; with `json` the key and a document; with
//! `eav` a row of key, attribute and text for each column; with `key-value` the key and bytes, which `opaque` decodes. `gorilla` packs
//! several records into a row and reads none alone.

mod access;
mod columns;
mod eav;
mod evolution;
pub mod gorilla;
mod identity;
mod json;
mod key;
mod key_value;
mod opaque;
mod query;
pub mod recorded;
mod spare;
mod star;
mod star_hot;
mod text;
mod whole;
mod wide;

pub use access::Access;
pub use columns::RECORD_ID;
pub use opaque::decode as decode_opaque;

use gorilla::Packing;

use crate::operation::Operation;
use crate::query::Query;
use crate::question::Question;
use crate::record::{Column, Generator, RecordType};
use crate::statement::{Evolution, Program, Request, Table};

/// Turns operations on records into statements on tables.
pub trait Layout: Send + Sync {
    /// Returns the tables, and the statements that requests refer to.
    fn program(&self) -> &Program;

    /// Adds the statements of [`Operation::Read`], [`Operation::Select`], [`Operation::Update`], [`Operation::Scan`] and
    /// [`Operation::Delete`]. Only operations added here can be bound; a request for others has no steps. Must be called at most
    /// once, before tables are created: a table may get an index for it.
    fn add_access(&mut self, access: &Access, record_type: &RecordType);

    /// Adds the statement that notes the end of a measurement whose records come with several operations; without it, such ends are not noted. Must be called at
    /// most once. By default nothing is added: only layouts with identities have ends.
    fn add_ends(&mut self, _record_type: &RecordType) {}

    /// Adds the statements of [`Operation::Query`], for queries that were checked against the record type. Must be called at most
    /// once.
    ///
    /// # Errors
    /// The reason why the layout cannot, as the end of a sentence; by default it cannot.
    fn add_queries(&mut self, _queries: &[Query], _record_type: &RecordType) -> Result<(), String> {
        Err("cannot select records by what is in them".to_owned())
    }

    /// Adds the statements of [`Operation::Ask`], for questions that were checked against the record type, and returns their numbers. Must be called at
    /// most once.
    ///
    /// # Errors
    /// The reason why the layout cannot, as the end of a sentence; by default it cannot.
    fn add_questions(&mut self, _questions: &[Question], _record_type: &RecordType) -> Result<Vec<u16>, String> {
        Err("keeps sources and times in no columns of their own".to_owned())
    }

    /// Returns how rows that hold several readings are unpacked; `None` where a row is one record or a part of it.
    fn packing(&self) -> Option<&Packing> {
        None
    }

    /// Returns the number of rows of [`Layout::record_table`] that a record has. Where rows are packed, the column [`gorilla::READINGS`] says how many records a row has.
    fn rows_per_record(&self) -> u64 {
        1
    }

    /// Returns how records get a further value column, and lose it again, while the tables are in use.
    fn evolution(&self, field: &Column) -> Evolution;

    /// Returns the table that has one row, or the same number of rows, for each record.
    fn record_table(&self) -> Option<&str> {
        let holds_records = |table: &&Table| table.columns.iter().any(|column| column.name == RECORD_ID);
        self.program().tables.iter().find(holds_records).map(|table| table.name.as_str())
    }

    /// Appends the steps of an operation, with their values, to a request. Allocates nothing once the request has grown to
    /// the size that operations have. Appends nothing for an [`Operation::Statement`] or an [`Operation::Ask`], which others bind.
    fn bind(&self, operation: &Operation, generator: &dyn Generator, request: &mut Request);
}

/// A function that makes a layout for a record type, a table name and the largest number of records in an operation.
type Build = fn(&RecordType, &str, usize) -> Result<Box<dyn Layout>, String>;

/// A layout that studies can name.
pub struct Entry {
    /// Name in `layout.name`.
    pub name: &'static str,
    /// One line for `loadline list layouts`.
    pub summary: &'static str,
    /// Whether a row holds several readings of a source.
    pub packs: bool,
    /// Makes the layout for a record type, a table name and the largest number of records in an operation.
    pub build: Build,
}

/// All layouts, the default first. A new one takes a file and a line here.
pub static REGISTRY: &[&Entry] = &[
    &wide::WIDE,
    &star::STAR,
    &star_hot::STAR_HOT,
    &json::JSON,
    &eav::EAV,
    &key_value::KEY_VALUE,
    &spare::SPARE,
    &gorilla::GORILLA,
];

/// Maximum length of a table name in bytes, which leaves room for what layouts append.
const TABLE_BYTES_MAX: usize = 40;

/// Returns the registry entry with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().copied().find(|entry| entry.name == name)
}

/// Makes the layout with this name for a record type. Its tables have the name `table`, or begin with it; `records_max` is the largest number
/// of records in an operation.
///
/// # Errors
/// A sentence that names the setting, its value and the remedy.
pub fn build(name: &str, record_type: &RecordType, table: &str, records_max: usize) -> Result<Box<dyn Layout>, String> {
    if table.is_empty() || table.len() > TABLE_BYTES_MAX || table.chars().any(char::is_control) {
        let limit = format!("write 1 to {TABLE_BYTES_MAX} visible characters");
        return Err(format!("record.table {table:?} cannot be the name of a table; {limit}"));
    }
    match find(name) {
        Some(entry) => (entry.build)(record_type, table, records_max.max(1)),
        None => {
            let names: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
            Err(format!("unknown layout.name \"{name}\"; there are {}", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Cell, Cells};
    use crate::statement::{Expect, Statement, Step};
    use crate::trial::RecordSettings;

    fn generator(per_measurement: u64) -> std::sync::Arc<dyn Generator> {
        let type_name = "qos".to_owned();
        crate::data::build(&RecordSettings { type_name, per_measurement, seed: 1, ..RecordSettings::default() })
            .unwrap()
    }

    /// Returns the steps of an insert as (kind of statement, table, rows).
    fn steps(name: &str, per_measurement: u64, first: u64, records: u32) -> Vec<(&'static str, String, u32)> {
        let generator = generator(per_measurement);
        let mut layout = build(name, generator.record_type(), "qos", 1000).unwrap();
        layout.add_ends(generator.record_type());
        let mut request = Request::default();
        layout.bind(&Operation::Insert { first, records }, &*generator, &mut request);
        let step = |step: &Step| match &layout.program().statements[usize::from(step.statement)] {
            Statement::Insert { table, .. } => ("insert", table.clone(), step.rows),
            Statement::Update { table, .. } => ("update", table.clone(), step.rows),
            other => panic!("{other:?} does not write"),
        };
        request.steps.iter().map(step).collect()
    }

    fn insert(table: &str, rows: u32) -> (&'static str, String, u32) {
        ("insert", table.to_owned(), rows)
    }

    fn update() -> (&'static str, String, u32) {
        ("update", "qos_identity".to_owned(), 1)
    }

    #[test]
    fn a_star_writes_the_identity_once_and_updates_it_once() {
        assert_eq!(steps("star", 10, 20, 1), [insert("qos_identity", 1), insert("qos_values", 1)]);
        assert_eq!(steps("star", 10, 21, 1), [insert("qos_values", 1)]);
        assert_eq!(steps("star", 10, 29, 1), [insert("qos_values", 1), update()]);
        assert_eq!(steps("star", 10, 25, 5), [insert("qos_values", 5), update()]);
    }

    #[test]
    fn measurements_within_one_transaction_need_no_update() {
        assert_eq!(steps("star", 10, 20, 10), [insert("qos_identity", 1), insert("qos_values", 10)]);
        assert_eq!(steps("star", 1, 7, 1), [insert("qos_identity", 1), insert("qos_values", 1)]);
        assert_eq!(steps("star", 10, 25, 30), [insert("qos_identity", 3), insert("qos_values", 30), update()]);
    }

    #[test]
    fn star_hot_splits_values_and_wide_has_one_table() {
        let tables = [insert("qos_identity", 1), insert("qos_main", 2), insert("qos_secondary", 2)];
        assert_eq!(steps("star-hot", 10, 0, 2), tables);
        assert_eq!(steps("wide", 10, 0, 2), [insert("qos", 2)]);
    }

    #[test]
    fn every_step_has_as_many_cells_as_its_statement_takes() {
        let generator = generator(10);
        let operations = [
            Operation::Insert { first: 5, records: 17 },
            Operation::Insert { first: 0, records: 1 },
            Operation::Insert { first: 9, records: 1 },
            Operation::Read { record: 23 },
        ];
        for entry in REGISTRY.iter().filter(|entry| !entry.packs) {
            let mut layout = build(entry.name, generator.record_type(), "qos", 20).unwrap();
            layout.add_access(&Access { read: true, ..Access::default() }, generator.record_type());
            layout.add_ends(generator.record_type());
            for operation in operations {
                let mut request = Request::default();
                layout.bind(&operation, &*generator, &mut request);
                assert!(!request.steps.is_empty(), "{}: {operation:?}", entry.name);
                for step in &request.steps {
                    let (width, expect) = match &layout.program().statements[usize::from(step.statement)] {
                        Statement::Insert { columns, .. } => (columns.len(), Expect::Changed(u64::from(step.rows))),
                        Statement::Update { set, key, .. } => (set.len() + key.len(), Expect::Changed(1)),
                        other => (other.kinds().len(), Expect::Rows),
                    };
                    assert_eq!(step.expect, expect);
                    let end = step.first_cell as usize + width * step.rows as usize;
                    assert!(end <= request.cells.len(), "{}: {operation:?}: {step:?}", entry.name);
                }
            }
        }
    }

    #[test]
    fn binding_again_needs_no_more_memory() {
        let generator = generator(10);
        for entry in REGISTRY.iter().filter(|entry| !entry.packs) {
            let layout = build(entry.name, generator.record_type(), "qos", 100).unwrap();
            let mut request = Request::default();
            let operation = Operation::Insert { first: 5, records: 100 };
            layout.bind(&operation, &*generator, &mut request);
            let before = (request.steps.as_ptr(), request.cells.as_slice().as_ptr());
            for _ in 0..3 {
                request.clear();
                layout.bind(&operation, &*generator, &mut request);
            }
            assert_eq!(before, (request.steps.as_ptr(), request.cells.as_slice().as_ptr()), "{}", entry.name);
        }
    }

    #[test]
    fn the_end_in_a_wide_row_is_the_time_of_that_row() {
        let generator = generator(10);
        let layout = build("wide", generator.record_type(), "qos", 10).unwrap();
        let mut request = Request::default();
        layout.bind(&Operation::Insert { first: 12, records: 1 }, &*generator, &mut request);
        let mut expected = Cells::new();
        generator.identity(1, 3, &mut expected);
        assert_eq!(request.cells.get(0), Cell::Int(12));
        assert_eq!(request.cells.as_slice()[1..14], *expected.as_slice());
    }

    #[test]
    fn what_cannot_be_laid_out_is_refused_with_the_remedy() {
        let generator = generator(1);
        let mut record_type = generator.record_type().clone();
        let refusal =
            |name: &str, record_type: &RecordType, table: &str| build(name, record_type, table, 1).err().unwrap();
        assert_eq!(
            refusal("eva", &record_type, "qos"),
            "unknown layout.name \"eva\"; there are wide, star, star-hot, json, eav, key-value, spare, gorilla"
        );
        assert!(refusal("star", &record_type, "").contains("record.table \"\""));
        record_type.values.iter_mut().for_each(|column| column.hot = true);
        assert!(refusal("star-hot", &record_type, "qos").contains("hot = false"));
        record_type.values.iter_mut().for_each(|column| column.hot = false);
        assert!(refusal("star-hot", &record_type, "qos").contains("hot = true"));
    }
}
