//! Changes of tables in use: how a layout gets one more field and loses it again. Main type: [`Evolution`].
//!
//! Invariant: an addition that was begun can be reverted, and the tables are then as they were.

use super::{Program, Request, TableColumn};
use crate::record::Generator;

/// A function that appends to a request the steps for the added field of one record.
pub type Bind = Box<dyn Fn(u64, &dyn Generator, &mut Request) + Send + Sync>;

/// A change of a table's columns, indexes or partitions.
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaChange {
    /// Add a column, which has its default in the existing rows.
    AddColumn {
        /// Table name.
        table: String,
        /// The column.
        column: TableColumn,
        /// Its default, a text; `None` for null.
        default: Option<String>,
    },
    /// Remove a column with its values.
    DropColumn {
        /// Table name.
        table: String,
        /// Column name.
        column: String,
    },
    /// Add an index of one column.
    AddIndex {
        /// Table name.
        table: String,
        /// Name of the index.
        name: String,
        /// Column name.
        column: String,
    },
    /// Add the partition behind the last one.
    AddPartition {
        /// Table name.
        table: String,
        /// Number of the partition; see [`Partitions`](super::Partitions).
        partition: i64,
        /// Length of each partition, in nanoseconds.
        span_ns: i64,
    },
    /// Remove a partition with its rows.
    DropPartition {
        /// Table name.
        table: String,
        /// Number of the partition.
        partition: i64,
    },
    /// Remove an index.
    DropIndex {
        /// Table name.
        table: String,
        /// Name of the index.
        name: String,
    },
}

impl SchemaChange {
    /// Returns the name of the table that is changed.
    pub fn table(&self) -> &str {
        match self {
            SchemaChange::AddColumn { table, .. }
            | SchemaChange::DropColumn { table, .. }
            | SchemaChange::AddIndex { table, .. }
            | SchemaChange::AddPartition { table, .. }
            | SchemaChange::DropPartition { table, .. }
            | SchemaChange::DropIndex { table, .. } => table,
        }
    }
}

/// The statements with which records get one more field, and lose it again, while others use the tables.
#[derive(Default)]
pub struct Evolution {
    /// The change of a table before the field can be written; `None` where records get the field without one.
    pub add: Option<SchemaChange>,
    /// Statements of the requests below; they can be prepared once the table is changed.
    pub program: Program,
    /// The request that declares the field's name before it is written; no steps where none is needed.
    pub begin: Request,
    /// Writes the field to a record.
    pub write: Option<Bind>,
    /// Removes the field from a record; `None` where [`Evolution::remove`] does it for all.
    pub erase: Option<Bind>,
    /// The request that removes the field's name after the last record has lost the field; no steps where none is needed.
    pub end: Request,
    /// The change of the table at the end.
    pub remove: Option<SchemaChange>,
}
