//! Indexes that a study asks for, whatever the layout: on columns that it names, and on sources and times.

use crate::data::{SOURCE_ID, TIME_NS};
use crate::statement::{Program, Statement, Table};
use crate::trial::TimeIndex;

/// Adds an index on a column to the first table that has it; identities come before values.
pub(super) fn add(program: &mut Program, column: &str, layout: &str) -> Result<(), String> {
    let has = |table: &&mut Table| table.columns.iter().any(|own| own.name == column);
    match program.tables.iter_mut().find(has) {
        Some(table) => {
            table.indexes.push(vec![column.to_owned()]);
            Ok(())
        }
        None => Err(format!(
            "layout.indexes: no table of layout \"{layout}\" has a column \"{column}\"; name a column of the record type that the \
             layout keeps as one"
        )),
    }
}

/// Adds an index on source and time to the table that has them, and tells the questions of it; does nothing where no table has.
pub(super) fn add_times(program: &mut Program, index: TimeIndex) {
    let has = |table: &&mut Table| table.columns.iter().any(|own| own.name == TIME_NS);
    let Some(table) = program.tables.iter_mut().find(has) else { return };
    let columns: &[&str] = match index {
        TimeIndex::SourceTime => &[SOURCE_ID, TIME_NS],
        TimeIndex::TimeSource => &[TIME_NS, SOURCE_ID],
        TimeIndex::None => return,
    };
    table.indexes.push(columns.iter().map(|column| (*column).to_owned()).collect());
    for statement in &mut program.statements {
        if let Statement::Ask(asking) = statement {
            asking.is_indexed_by_source = index == TimeIndex::SourceTime;
        }
    }
}
