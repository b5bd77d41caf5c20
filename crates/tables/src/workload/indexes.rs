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

/// Adds an index on source and time to the table that has them, or makes them the beginning of its primary key, and tells the questions of it; does nothing where no
/// table has them.
///
/// # Errors
/// A sentence: other tables refer to the primary key.
pub(super) fn add_times(program: &mut Program, index: TimeIndex, layout: &str) -> Result<(), String> {
    let has = |table: &Table| table.columns.iter().any(|own| own.name == TIME_NS);
    let Some(place) = program.tables.iter().position(has) else { return Ok(()) };
    let (columns, is_key): (&[&str], bool) = match index {
        TimeIndex::SourceTime => (&[SOURCE_ID, TIME_NS], false),
        TimeIndex::TimeSource => (&[TIME_NS, SOURCE_ID], false),
        TimeIndex::SourceTimeKey => (&[SOURCE_ID, TIME_NS], true),
        TimeIndex::TimeSourceKey => (&[TIME_NS, SOURCE_ID], true),
        TimeIndex::None => return Ok(()),
    };
    let name = &program.tables[place].name;
    let is_referred_to = program.tables.iter().any(|table| table.foreign_keys.iter().any(|key| key.table == *name));
    if is_key && is_referred_to {
        return Err(format!(
            "layout.time_index makes source and time a part of the primary key, to which another table of layout \"{layout}\" refers; take another \
             layout.name, or \"source-time\""
        ));
    }
    let columns = columns.iter().map(|column| (*column).to_owned());
    let table = &mut program.tables[place];
    match is_key {
        true => table.primary_key = columns.chain(std::mem::take(&mut table.primary_key)).collect(),
        false => table.indexes.push(columns.collect()),
    }
    for statement in &mut program.statements {
        if let Statement::Ask(asking) = statement {
            asking.is_indexed_by_source = matches!(index, TimeIndex::SourceTime | TimeIndex::SourceTimeKey);
        }
    }
    Ok(())
}
