//! Indexes that a study asks for, whatever the layout: on columns that it names, and on sources and times.

use crate::data::{SOURCE_ID, TIME_NS};
use crate::layout::gorilla::{FIRST_NS, LAST_NS};
use crate::statement::{Program, SourceIndex, Statement, Table};
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
    let has = |table: &Table, name: &str| table.columns.iter().any(|own| own.name == name);
    // Rows of several readings have two times: the last one finds those that reach into a span, and the first one beside it spares reading those behind the span.
    let times = [&[TIME_NS][..], &[LAST_NS, FIRST_NS]];
    let found = times.iter().find_map(|own| Some((own, program.tables.iter().position(|table| has(table, own[0]))?)));
    let Some((times, place)) = found else { return Ok(()) };
    let source = [SOURCE_ID].as_slice();
    let source_index = match index {
        TimeIndex::SourceTime => SourceIndex::BySource,
        TimeIndex::SourceTimeKey => SourceIndex::KeyBySource,
        TimeIndex::TimeSource | TimeIndex::TimeSourceKey => SourceIndex::ByTime,
        TimeIndex::None => SourceIndex::None,
    };
    let (columns, is_key) = match index {
        TimeIndex::SourceTime => ([source, times].concat(), false),
        TimeIndex::TimeSource => ([times, source].concat(), false),
        TimeIndex::SourceTimeKey => ([source, times].concat(), true),
        TimeIndex::TimeSourceKey => ([times, source].concat(), true),
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
    let columns = columns.into_iter().map(str::to_owned);
    let table = &mut program.tables[place];
    match is_key {
        true => table.primary_key = columns.chain(std::mem::take(&mut table.primary_key)).collect(),
        false => table.indexes.push(columns.collect()),
    }
    for statement in &mut program.statements {
        if let Statement::Ask(asking) = statement {
            asking.source_index = source_index;
        }
    }
    Ok(())
}
