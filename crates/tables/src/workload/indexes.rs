//! Indexes that a study asks for, whatever the layout: on columns that it names, and on sources and times.

use crate::data::{SOURCE_ID, TIME_NS};
use crate::layout::gorilla::{FIRST_NS, LAST_NS};
use crate::record::ColumnKind;
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

/// The most columns that an index covers: InnoDB has indexes of 16 columns, of which source and times take up to three.
const COVERED_MOST: usize = 13;

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
        TimeIndex::SourceTimeCovering => SourceIndex::CoveringBySource,
        TimeIndex::SourceTimeKey => SourceIndex::KeyBySource,
        TimeIndex::TimeSource | TimeIndex::TimeSourceKey | TimeIndex::TimeSourceCovering => SourceIndex::ByTime,
        TimeIndex::None => SourceIndex::None,
    };
    let (columns, is_key) = match index {
        TimeIndex::SourceTime | TimeIndex::SourceTimeCovering => ([source, times].concat(), false),
        TimeIndex::TimeSource | TimeIndex::TimeSourceCovering => ([times, source].concat(), false),
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
    let covered = if index.is_covering() { covered(program, name, layout)? } else { Vec::new() };
    let columns = columns.into_iter().map(str::to_owned).chain(covered);
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

/// Returns the columns of a table that questions name, in the order in which they do, without source and times.
///
/// # Errors
/// A sentence: there are none, they are too many for an index, or not numbers.
fn covered(program: &Program, table: &str, layout: &str) -> Result<Vec<String>, String> {
    let mut columns: Vec<String> = Vec::new();
    let asked = program.statements.iter().filter_map(|statement| match statement {
        Statement::Ask(asking) => Some(asking),
        _ => None,
    });
    for (column, kind) in asked.flat_map(|asking| &asking.columns).filter(|(column, _)| column.table == table) {
        if matches!(kind, ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json) {
            return Err(format!(
                "layout.time_index covers what questions name, and \"{}\" of layout \"{layout}\" is no number; take an index without \"-covering\"",
                column.column
            ));
        }
        let is_new = ![SOURCE_ID, TIME_NS].contains(&column.column.as_str()) && !columns.contains(&column.column);
        columns.extend(is_new.then(|| column.column.clone()));
    }
    match columns.len() {
        0 => Err(format!(
            "layout.time_index covers what questions name, and they name no column of a table of layout \"{layout}\"; take workload.name = \"questions\", or an \
             index without \"-covering\""
        )),
        1..=COVERED_MOST => Ok(columns),
        more => Err(format!(
            "layout.time_index covers what questions name, and that are {more} columns; name at most {COVERED_MOST}, or take an index without \"-covering\""
        )),
    }
}
