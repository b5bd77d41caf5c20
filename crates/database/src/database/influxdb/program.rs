//! The requests for a program's statements. Main type: [`Plan`].
//!
//! A statement that InfluxDB does not execute as it is meant is refused here, and already during planning.

use super::answer::{Order, Reads};
use super::influxql::{Text, select};
use super::questions::ask;
use super::rules::{RULES, refused};
use crate::database::DatabaseError;
use crate::database::points::lines::LinePlan;
use crate::database::points::shape::Shape;
use crate::record::Cells;
use crate::statement::{Program, Statement, Step};

/// The request for a statement.
#[derive(Debug, Clone)]
pub(super) enum Plan {
    /// Lines that are written.
    Insert(Box<LinePlan>),
    /// A query of rows.
    Select { text: Text, reads: Reads, order: Order, counts_none: bool },
}

impl Plan {
    /// Returns the requests for a program's statements.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a statement that there is no request for.
    pub(super) fn of(program: &Program) -> Result<Vec<Plan>, DatabaseError> {
        if program.as_text {
            return Err(refused("rows are sent as line protocol, not as statements"));
        }
        program.statements.iter().map(|statement| plan(statement, program)).collect()
    }

    /// Returns whether it writes.
    pub(super) fn is_insert(&self) -> bool {
        matches!(self, Plan::Insert(_))
    }

    /// Appends the body of the request for a step.
    ///
    /// # Errors
    /// A sentence: a value cannot be written.
    pub(super) fn append(&self, cells: &Cells, step: &Step, out: &mut Vec<u8>) -> Result<(), String> {
        let first = step.first_cell as usize;
        match self {
            Plan::Insert(lines) => {
                (0..step.rows as usize).try_for_each(|row| lines.append(cells, first + row * lines.values(), out))
            }
            Plan::Select { text, .. } => text.append(cells, first, out),
        }
    }
}

fn plan(statement: &Statement, program: &Program) -> Result<Plan, DatabaseError> {
    match statement {
        Statement::Insert { table, columns } => {
            let lines = LinePlan::of(&Shape::of(&RULES, program, table)?, columns)?;
            Ok(Plan::Insert(Box::new(lines)))
        }
        Statement::Select(asked) => {
            let (text, reads) = select(&Shape::of(&RULES, program, &asked.from)?, asked)?;
            Ok(Plan::Select { text, reads, order: Order::AsItComes, counts_none: false })
        }
        Statement::Ask(asking) => {
            let found = ask(&Shape::of(&RULES, program, &asking.from)?, asking)?;
            let (text, reads, order, counts_none) = (found.text, found.reads, found.order, found.counts_none);
            Ok(Plan::Select { text, reads, order, counts_none })
        }
        Statement::Update { .. } | Statement::Delete { .. } => {
            Err(refused("it does not say how many points it has changed or removed"))
        }
        _ => Err(refused("it has no request for such a statement")),
    }
}
