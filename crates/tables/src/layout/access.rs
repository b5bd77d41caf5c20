//! Access to single records by their key, and scans from a key: the operations besides inserts that workloads need of a layout. Main types: [`Access`],
//! the operations needed, and [`Accessed`], the statements that carry them out where records are rows of tables.

use super::columns::{add, column_ref, equals, next_cell, read};
use super::text;
use crate::operation::{Fields, Operation};
use crate::record::{Generator, RecordType};
use crate::statement::{Expect, Limit, Program, Request, Select, Statement, Step, TableColumn};

/// The operations on single records that a case needs; layouts prepare only these.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Whether whole records are read.
    pub read: bool,
    /// The fields selected; empty if nothing is selected.
    pub select: Vec<Fields>,
    /// The fields updated; empty if nothing is updated.
    pub update: Vec<Fields>,
    /// Whether records are scanned.
    pub scan: bool,
    /// Whether records are deleted.
    pub delete: bool,
}

impl Access {
    /// Adds the operations that another part of the same case needs.
    pub fn merge(&mut self, other: Access) {
        for (mine, others) in [(&mut self.select, other.select), (&mut self.update, other.update)] {
            for fields in others {
                if !mine.contains(&fields) {
                    mine.push(fields);
                }
            }
        }
        self.read |= other.read;
        self.scan |= other.scan;
        self.delete |= other.delete;
    }

    /// Returns whether some operation reads all values of single records.
    pub(super) fn reads_whole(&self) -> bool {
        self.read || self.select.contains(&Fields::All)
    }
}

/// A value for all fields together, and values for some single fields.
#[derive(Debug)]
pub(super) struct ByFields<T> {
    all: Option<T>,
    one: Vec<Option<T>>,
}

impl<T> Default for ByFields<T> {
    fn default() -> Self {
        ByFields { all: None, one: Vec::new() }
    }
}

impl<T> ByFields<T> {
    /// Calls `make` for each of the requested fields.
    pub(super) fn new(asked: &[Fields], mut make: impl FnMut(Fields) -> T) -> Self {
        let mut by_fields = ByFields::default();
        for fields in asked {
            let made = Some(make(*fields));
            match *fields {
                Fields::All => by_fields.all = made,
                Fields::One(place) => {
                    let place = usize::from(place);
                    if by_fields.one.len() <= place {
                        by_fields.one.resize_with(place + 1, || None);
                    }
                    by_fields.one[place] = made;
                }
            }
        }
        by_fields
    }

    /// Returns the value for these fields; `None` if they were not requested.
    #[inline]
    pub(super) fn get(&self, fields: Fields) -> Option<&T> {
        match fields {
            Fields::All => self.all.as_ref(),
            Fields::One(place) => self.one.get(usize::from(place))?.as_ref(),
        }
    }
}

/// The place of values in a layout with a row for each record.
pub(super) struct Shape<'a> {
    /// The statement that reads all columns of a record by its key.
    pub read: &'a Select,
    /// The columns of the key, which every table of records has.
    pub key: &'a [TableColumn],
    /// The tables of records; tables that others refer to come first.
    pub parts: Vec<TablePart>,
    /// The scan, without its limit.
    pub scan: Select,
    /// Whether values are stored as text, whatever their kind.
    pub as_text: bool,
}

/// A table of records with its value columns.
pub(super) struct TablePart {
    /// Name of the table.
    pub table: String,
    /// For each column, its index among the record's values, and the column that stores it.
    pub columns: Vec<(usize, TableColumn)>,
}

/// The statements of an [`Access`], in a layout's program.
#[derive(Debug, Default)]
pub(super) struct Accessed {
    read: Option<u16>,
    select: ByFields<Option<u16>>,
    update: ByFields<Vec<Setting>>,
    scan: Option<u16>,
    /// One statement for each table; tables that refer to others come first.
    delete: Vec<u16>,
    as_text: bool,
}

/// A statement that sets columns of one table.
#[derive(Debug)]
struct Setting {
    statement: u16,
    /// The indexes of the columns among the record's values.
    places: Vec<usize>,
}

impl Accessed {
    /// Adds the requested operations to a program.
    pub(super) fn add(access: &Access, program: &mut Program, shape: Shape<'_>) -> Self {
        let read = access.reads_whole().then(|| add(program, Statement::Select(shape.read.clone())));
        let select = ByFields::new(&access.select, |fields| match fields {
            Fields::All => read,
            Fields::One(place) => {
                let columns = shape.parts.iter().flat_map(|part| part.columns.iter().map(move |column| (part, column)));
                let (from, columns) = columns
                    .filter(|(_, (at, _))| *at == usize::from(place))
                    .map(|(part, (_, column))| (part.table.clone(), vec![column_ref(&part.table, &column.name)]))
                    .next()
                    .unwrap_or_default();
                let conditions = shape.key.iter().map(|column| equals(&from, &column.name, column.kind)).collect();
                Some(add(program, Statement::Select(Select { columns, from, conditions, ..Select::default() })))
            }
        });
        let update = ByFields::new(&access.update, |fields| {
            let mut settings = Vec::new();
            for part in &shape.parts {
                let is_set = |place: usize| fields == Fields::All || fields == Fields::One(place as u16);
                let set: Vec<_> = part.columns.iter().filter(|(place, _)| is_set(*place)).collect();
                if !set.is_empty() {
                    let places = set.iter().map(|(place, _)| *place).collect();
                    let set = set.into_iter().map(|(_, column)| column.clone()).collect();
                    let update = Statement::Update { table: part.table.clone(), set, key: shape.key.to_vec() };
                    settings.push(Setting { statement: add(program, update), places });
                }
            }
            settings
        });
        let limit = Some(Limit::Bound);
        let scan = access.scan.then(|| add(program, Statement::Select(Select { limit, ..shape.scan })));
        let mut delete = Vec::new();
        if access.delete {
            for part in shape.parts.iter().rev() {
                let (table, key) = (part.table.clone(), shape.key.to_vec());
                delete.push(add(program, Statement::Delete { table, key }));
            }
        }
        Accessed { read, select, update, scan, delete, as_text: shape.as_text }
    }

    /// Appends the steps of a read, a selection, an update, a scan or a deletion; `append_key` appends the key of a record, and `append_first` the
    /// key that a scan starts from.
    #[inline]
    pub(super) fn bind(
        &self,
        operation: &Operation,
        generator: &dyn Generator,
        request: &mut Request,
        append_key: impl Fn(u64, &mut Request),
        append_first: impl Fn(u64, &mut Request),
    ) {
        match *operation {
            Operation::Read { record } => {
                let Some(statement) = self.read else { return };
                let first_cell = next_cell(&request.cells);
                append_key(record, request);
                read(request, statement, first_cell);
            }
            Operation::Select { record, fields } => {
                let Some(Some(statement)) = self.select.get(fields) else { return };
                let first_cell = next_cell(&request.cells);
                append_key(record, request);
                read(request, *statement, first_cell);
            }
            Operation::Update { record, like, fields } => {
                let Some(settings) = self.update.get(fields) else { return };
                let values = request.cells.len();
                generator.values(like, &mut request.cells);
                for Setting { statement, places } in settings {
                    let first_cell = next_cell(&request.cells);
                    for place in places {
                        if self.as_text {
                            text::repeat_as_text(&mut request.cells, values + place);
                        } else {
                            request.cells.repeat(values + place);
                        }
                    }
                    append_key(record, request);
                    change(request, *statement, first_cell, 1);
                }
            }
            Operation::Scan { first, records } => {
                let Some(statement) = self.scan else { return };
                let first_cell = next_cell(&request.cells);
                append_first(first, request);
                request.cells.int(i64::from(records));
                read(request, statement, first_cell);
            }
            Operation::Delete { record } => {
                for statement in &self.delete {
                    let first_cell = next_cell(&request.cells);
                    append_key(record, request);
                    change(request, *statement, first_cell, 1);
                }
            }
            Operation::Insert { .. }
            | Operation::Query { .. }
            | Operation::Ask { .. }
            | Operation::Statement { .. }
            | Operation::Replayed { .. } => {}
        }
    }
}

/// Appends the execution of a statement that must change `rows` rows.
#[inline]
pub(super) fn change(request: &mut Request, statement: u16, first_cell: u32, rows: u64) {
    request.steps.push(Step { statement, rows: 1, first_cell, expect: Expect::Changed(rows) });
}

/// Returns the value columns of a record type for which `is_here` returns true, each with its index.
pub(super) fn value_columns(record_type: &RecordType, is_here: impl Fn(usize) -> bool) -> Vec<(usize, TableColumn)> {
    let columns = record_type.values.iter().map(super::columns::table_column).enumerate();
    columns.filter(|(place, _)| is_here(*place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_parts_ask_for_is_prepared_once() {
        let mut access = Access { select: vec![Fields::All], scan: true, ..Access::default() };
        access.merge(Access {
            read: true,
            select: vec![Fields::One(3), Fields::All],
            delete: true,
            ..Access::default()
        });
        let select = vec![Fields::All, Fields::One(3)];
        assert_eq!(access, Access { read: true, select, update: Vec::new(), scan: true, delete: true });
        let by_fields = ByFields::new(&access.select, |fields| fields);
        assert_eq!(by_fields.get(Fields::One(3)), Some(&Fields::One(3)));
        assert_eq!((by_fields.get(Fields::One(2)), by_fields.get(Fields::One(4))), (None, None));
    }
}
