//! The checks for a target that rounds floating-point numbers when it reads them: their bits are stored as whole numbers. Main type: [`InWhole`].

use super::*;
use crate::database::Wire;

/// Returns the program with whole numbers in the place of floating-point ones.
pub fn program(mut program: Program) -> Program {
    let to_whole = |column: &mut TableColumn| {
        if column.kind == ColumnKind::Float64 {
            column.kind = ColumnKind::Int64;
        }
    };
    program.tables.iter_mut().flat_map(|table| &mut table.columns).for_each(to_whole);
    for statement in &mut program.statements {
        if let Statement::Insert { columns, .. } = statement {
            columns.iter_mut().for_each(to_whole);
        }
    }
    program
}

/// A connection that is given the bits of numbers.
pub struct InWhole(pub Box<dyn TargetSession>);

impl TargetSession for InWhole {
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        self.0.prepare(program)
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        let mut request = request.clone();
        for place in 0..request.cells.len() {
            if let Cell::Float(value) = request.cells.get(place) {
                request.cells.replace(place, Cell::Int(value.to_bits() as i64));
            }
        }
        self.0.execute(&request, rows)
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        self.0.version()
    }

    fn sql(&mut self) -> Option<&mut dyn Session> {
        self.0.sql()
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Err(self)
    }
}
