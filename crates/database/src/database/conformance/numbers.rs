//! The checks for a target that stores numbers alone, of a limited number of digits, and shows them after a while: each other value is written as its place in a list. Main type: [`InNumbers`].

use std::sync::{Arc, Mutex, PoisonError};

use super::*;
use crate::database::Wire;

/// The values that were written, shared by all connections.
pub type Known = Arc<Mutex<Cells>>;

/// Returns whether a column has the place of a value.
fn is_replaced(name: &str, kind: ColumnKind) -> bool {
    name != "id" && !matches!(kind, ColumnKind::Int16 | ColumnKind::Int32)
}

/// Returns the program with whole numbers in the place of what is replaced.
pub fn program(mut program: Program) -> Program {
    let replace = |column: &mut TableColumn| {
        if is_replaced(&column.name, column.kind) {
            column.kind = ColumnKind::Int64;
        }
    };
    program.tables.iter_mut().flat_map(|table| &mut table.columns).for_each(replace);
    for statement in &mut program.statements {
        if let Statement::Insert { columns, .. } = statement {
            columns.iter_mut().for_each(replace);
        }
    }
    program
}

/// A connection that is given the places of values.
pub struct InNumbers {
    pub session: Box<dyn TargetSession>,
    pub known: Known,
    /// The program as the checks have it.
    pub program: Program,
    /// Whether what was written must be counted before it is seen.
    pub is_seen_late: bool,
}

impl InNumbers {
    fn statement(&self, step: &Step) -> Option<&Statement> {
        self.program.statements.get(usize::from(step.statement))
    }

    /// Returns the request with the places of values.
    fn replaced(&self, request: &Request) -> Request {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut replaced = request.clone();
        for step in &request.steps {
            let Some(Statement::Insert { columns, .. }) = self.statement(step) else { continue };
            for row in 0..step.rows as usize {
                for (place, column) in (step.first_cell as usize + row * columns.len()..).zip(columns) {
                    let cell = request.cells.get(place);
                    let is_value = matches!(
                        (cell, column.kind),
                        (Cell::Int(_), ColumnKind::Int64)
                            | (Cell::Float(_), ColumnKind::Float64)
                            | (Cell::Text(_), ColumnKind::Text(_))
                            | (Cell::Blob(_), ColumnKind::Blob(_))
                    );
                    if is_value && is_replaced(&column.name, column.kind) {
                        replaced.cells.replace(place, Cell::Int(known.len() as i64));
                        known.copy_from(&request.cells, cell);
                    }
                }
            }
        }
        replaced
    }

    /// Appends the rows that were read, with the values themselves.
    fn restore(&self, request: &Request, found: &Cells, rows: &mut Cells) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let selects = request.steps.iter().filter_map(|step| match self.statement(step) {
            Some(Statement::Select(select)) => Some(select),
            _ => None,
        });
        // A request of the checks reads with one statement.
        let Some(select) = selects.into_iter().next() else { return };
        let columns = self.program.tables.iter().find(|table| table.name == select.from).map(|table| &table.columns);
        let kind = |name: &str| columns.and_then(|columns| columns.iter().find(|column| column.name == name));
        let is_replaced = select
            .columns
            .iter()
            .map(|column| kind(&column.column).is_some_and(|column| is_replaced(&column.name, column.kind)));
        for (cell, is_replaced) in found.as_slice().iter().zip(is_replaced.collect::<Vec<_>>().iter().cycle()) {
            match *cell {
                Cell::Int(place) if *is_replaced && (0..known.len() as i64).contains(&place) => {
                    rows.copy_from(&known, known.get(place as usize));
                }
                cell => rows.copy_from(found, cell),
            }
        }
    }
}

impl TargetSession for InNumbers {
    fn prepare(&mut self, replaced: &Program) -> Result<(), DatabaseError> {
        self.session.prepare(replaced)
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        let reads = request.steps.iter().any(|step| matches!(self.statement(step), Some(Statement::Select(_))));
        if self.is_seen_late && reads {
            self.session.count_rows(SAMPLE)?;
        }
        let mut found = Cells::new();
        let answer = self.session.execute(&self.replaced(request), rows.is_some().then_some(&mut found))?;
        if let Some(rows) = rows {
            self.restore(request, &found, rows);
        }
        Ok(answer)
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        self.session.version()
    }

    fn create_table(&mut self, table: &Table) -> Result<(), DatabaseError> {
        self.session.create_table(table)
    }

    fn drop_table(&mut self, table: &str) -> Result<(), DatabaseError> {
        self.session.drop_table(table)
    }

    fn count_rows(&mut self, table: &str) -> Result<Option<u64>, DatabaseError> {
        self.session.count_rows(table)
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Err(self)
    }
}
