//! The tables of violations, and the statements that write and read them. Main type: [`Form`].
//!
//! `wide`: `violation`, with whole rows. `star`: `violation_identity` (camera, place, limit, once) and `violation_values`. In both a record has a
//! number, `record_id`, in the order of storing. `loadline_block` maps a camera's sequence to its record; `loadline_replay` lists uploads that
//! brought nothing new; `violation_image` holds the images that are kept in the database.

use crate::data::violation::record_type;
use crate::layout::RECORD_ID;
use crate::record::{Column, ColumnKind};
use crate::statement::{ColumnRef, Comparison, Condition, Join, Program, Select, Statement, Table, TableColumn};

/// The layout of violations in tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One table.
    Wide,
    /// Identities and values.
    Star,
}

/// The name of the column with the number of an identity.
const MEASUREMENT: &str = "measurement";
/// The size of the largest image, in bytes.
const IMAGE_BYTES: u32 = (16 << 20) - 1;

/// The indices of the statements in the program.
pub(super) mod place {
    pub const FIND: u16 = 0;
    pub const BLOCK: u16 = 1;
    pub const REPLAY: u16 = 2;
    pub const RECORD: u16 = 3;
    pub const IDENTITY: u16 = 4;
    pub const IMAGE: u16 = 5;
    pub const FIND_REPLAY: u16 = 6;
}

impl Form {
    /// Returns the form for the name of a layout; `None` for layouts that cannot store violations.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "wide" => Some(Form::Wide),
            "star" => Some(Form::Star),
            _ => None,
        }
    }

    /// Returns the table with the values, and the one with the identity: the same one in `wide`.
    pub fn tables_of_columns(self) -> (&'static str, &'static str) {
        match self {
            Form::Wide => ("violation", "violation"),
            Form::Star => ("violation_values", "violation_identity"),
        }
    }

    /// Returns the columns of the table of records.
    pub(super) fn record_columns(self) -> Vec<TableColumn> {
        let about = record_type();
        let mut columns = vec![number(RECORD_ID)];
        match self {
            Form::Wide => columns.extend(about.identity.iter().map(column)),
            Form::Star => columns.push(number(MEASUREMENT)),
        }
        columns.extend(about.values.iter().map(column));
        columns
    }

    /// Returns all tables, in the order in which they are created.
    pub fn tables(self) -> Vec<Table> {
        let (values, identity) = self.tables_of_columns();
        let mut tables = Vec::new();
        if self == Form::Star {
            let columns = identity_columns();
            let unique = columns[1..].iter().map(|column| column.name.clone()).collect();
            tables.push(table(identity, columns, &[MEASUREMENT], vec![unique], &[]));
        }
        let first = if self == Form::Star { MEASUREMENT } else { "camera" };
        let indexes = [&["time_ns"][..], &["plate"], &[first, "time_ns"]];
        tables.push(table(values, self.record_columns(), &[RECORD_ID], Vec::new(), &indexes));
        tables.push(table("loadline_block", block_columns(), &["camera", "sequence"], Vec::new(), &[&[RECORD_ID]]));
        tables.push(table("loadline_replay", replay_columns(), &["upload"], Vec::new(), &[]));
        tables.push(table("violation_image", image_columns(), &[RECORD_ID], Vec::new(), &[]));
        tables
    }

    /// Returns the statements that processing executes.
    pub(super) fn program(self, rows_max: usize) -> Program {
        let insert = |table: &str, columns: Vec<TableColumn>| Statement::Insert { table: table.to_owned(), columns };
        let find = Select {
            columns: ["digest", "upload"].map(|column| reference("loadline_block", column)).to_vec(),
            from: "loadline_block".to_owned(),
            conditions: vec![
                condition("loadline_block", "camera", ColumnKind::Text(64), Comparison::Equal),
                condition("loadline_block", "sequence", ColumnKind::Int64, Comparison::Equal),
            ],
            ..Select::default()
        };
        let find_replay = Select {
            columns: vec![reference("loadline_replay", "sequence")],
            from: "loadline_replay".to_owned(),
            conditions: vec![condition("loadline_replay", "upload", ColumnKind::Text(64), Comparison::Equal)],
            ..Select::default()
        };
        let (values, identity) = self.tables_of_columns();
        // With one table, the statement for identities is never executed; it only keeps the indices the same.
        let identity = if self == Form::Star {
            insert(identity, identity_columns())
        } else {
            insert(values, self.record_columns())
        };
        Program {
            statements: vec![
                Statement::Select(find),
                insert("loadline_block", block_columns()),
                insert("loadline_replay", replay_columns()),
                insert(values, self.record_columns()),
                identity,
                insert("violation_image", image_columns()),
                Statement::Select(find_replay),
            ],
            rows_max,
            pipelines: true,
            ..Program::default()
        }
    }

    /// Returns a query for whole records: identity, values, number; `conditions` name columns of either.
    pub fn select(self) -> Select {
        let (values, identity) = self.tables_of_columns();
        let about = record_type();
        let mut columns = vec![reference(values, RECORD_ID)];
        columns.extend(about.identity.iter().map(|column| reference(identity, &column.name)));
        columns.extend(about.values.iter().map(|column| reference(values, &column.name)));
        let on = vec![(reference(identity, MEASUREMENT), reference(values, MEASUREMENT))];
        let joins = match self {
            Form::Wide => Vec::new(),
            Form::Star => vec![Join { table: identity.to_owned(), on }],
        };
        Select { columns, from: values.to_owned(), joins, ..Select::default() }
    }

    /// Returns a condition on a column of a record.
    pub fn condition(self, name: &str, comparison: Comparison) -> Option<Condition> {
        let (values, identity) = self.tables_of_columns();
        if name == RECORD_ID {
            return Some(condition(values, name, ColumnKind::Int64, comparison));
        }
        let about = record_type();
        let find = |columns: &[Column]| columns.iter().find(|column| column.name == name).map(|column| column.kind);
        let (table, kind) = match find(&about.identity) {
            Some(kind) => (identity, kind),
            None => (values, find(&about.values)?),
        };
        Some(condition(table, name, kind, comparison))
    }

    /// Returns the column with the number of a record, in the table of records.
    pub fn number(self) -> ColumnRef {
        reference(self.tables_of_columns().0, RECORD_ID)
    }
}

/// Returns the query for an image in the database, by the number of its record.
pub fn select_image() -> Select {
    Select {
        columns: vec![reference("violation_image", "image")],
        from: "violation_image".to_owned(),
        conditions: vec![condition("violation_image", RECORD_ID, ColumnKind::Int64, Comparison::Equal)],
        ..Select::default()
    }
}

fn identity_columns() -> Vec<TableColumn> {
    std::iter::once(number(MEASUREMENT)).chain(record_type().identity.iter().map(column)).collect()
}

fn block_columns() -> Vec<TableColumn> {
    vec![text("camera"), number("sequence"), number(RECORD_ID), text("digest"), text("upload"), number("stored_ns")]
}

fn replay_columns() -> Vec<TableColumn> {
    vec![text("upload"), text("camera"), number("sequence"), number("seen_ns")]
}

fn image_columns() -> Vec<TableColumn> {
    let image = TableColumn { name: "image".to_owned(), kind: ColumnKind::Blob(IMAGE_BYTES), nullable: false };
    vec![number(RECORD_ID), image]
}

fn column(column: &Column) -> TableColumn {
    TableColumn { name: column.name.clone(), kind: column.kind, nullable: column.nullable }
}

fn number(name: &str) -> TableColumn {
    TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false }
}

fn text(name: &str) -> TableColumn {
    TableColumn { name: name.to_owned(), kind: ColumnKind::Text(64), nullable: false }
}

fn reference(table: &str, column: &str) -> ColumnRef {
    ColumnRef { table: table.to_owned(), column: column.to_owned() }
}

fn condition(table: &str, name: &str, kind: ColumnKind, comparison: Comparison) -> Condition {
    Condition { column: reference(table, name), kind, comparison }
}

fn table(name: &str, columns: Vec<TableColumn>, key: &[&str], unique: Vec<Vec<String>>, indexes: &[&[&str]]) -> Table {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    Table {
        name: name.to_owned(),
        columns,
        primary_key: owned(key),
        numbered: false,
        unique,
        indexes: indexes.iter().map(|names| owned(names)).collect(),
        foreign_keys: Vec::new(),
        time: None,
    }
}
