//! Changes of tables that are in use: how a layout gets one more field and loses it again. Main type: [`Evolution`].
//!
//! Invariant: an addition that was begun can be taken back, and the tables are then as they were.

use super::{Program, Request, TableColumn};
use crate::record::Generator;

/// Appends the steps that concern the field of one record to a request.
pub type Bind = Box<dyn Fn(u64, &dyn Generator, &mut Request) + Send + Sync>;

/// A change of a table's columns.
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaChange {
    /// Add a column, which has its default in the rows that are there.
    AddColumn {
        /// Table name.
        table: String,
        /// The column.
        column: TableColumn,
        /// Its default, a text; none is null.
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
    /// Remove an index.
    DropIndex {
        /// Table name.
        table: String,
        /// Name of the index.
        name: String,
    },
}

impl SchemaChange {
    /// Name of the table that is changed.
    pub fn table(&self) -> &str {
        match self {
            SchemaChange::AddColumn { table, .. }
            | SchemaChange::DropColumn { table, .. }
            | SchemaChange::AddIndex { table, .. }
            | SchemaChange::DropIndex { table, .. } => table,
        }
    }
}

/// How records get one more field, and lose it again, while others use the tables.
#[derive(Default)]
pub struct Evolution {
    /// What is done to a table before the field can be written; none where records simply get it.
    pub add: Option<SchemaChange>,
    /// Statements of the requests below; they can be prepared once the table is changed.
    pub program: Program,
    /// What gives the field its name, before it is written; no steps where nothing does.
    pub begin: Request,
    /// Gives the field to a record.
    pub write: Option<Bind>,
    /// Takes it from a record; none where [`Evolution::remove`] does it for all.
    pub erase: Option<Bind>,
    /// What takes the name back, after the last record has lost the field; no steps where nothing does.
    pub end: Request,
    /// What is done to the table at the end.
    pub remove: Option<SchemaChange>,
}
