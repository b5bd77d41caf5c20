//! The requests for a program's statements. Main type: [`Plan`].
//!
//! A statement that VictoriaMetrics does not execute as it is meant is refused here, and already during planning.

use super::answer::Reads;
use super::exchange::Lines;
use super::figures::Query;
use super::metricsql::is_label;
use super::questions::{Question, ask};
use super::rules::{LABEL, RULES, refused};
use super::selecting::Points;
use crate::database::DatabaseError;
use crate::database::points::lines::LinePlan;
use crate::database::points::shape::{At, Shape};
use crate::record::Cells;
use crate::statement::{Program, Request, Statement, Step};

/// The request for a statement.
#[derive(Debug, Clone)]
pub(super) enum Plan {
    /// Lines that are written.
    Insert(Box<LinePlan>),
    /// A request for points.
    Points(Points),
    /// A query for figures.
    Figures(Query),
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

    /// Returns what is read from the answer; `None` where it writes.
    pub(super) fn reads(&self) -> Option<&Reads> {
        match self {
            Plan::Insert(_) => None,
            Plan::Points(points) => Some(&points.reads),
            Plan::Figures(query) => Some(&query.reads),
        }
    }

    /// Returns the head of the request.
    pub(super) fn head<'a>(&self, lines: &'a Lines) -> &'a [u8] {
        match self {
            Plan::Insert(_) => &lines.write,
            Plan::Points(_) => &lines.export,
            Plan::Figures(query) if query.has_buckets() => &lines.range,
            Plan::Figures(_) => &lines.query,
        }
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
            Plan::Points(points) => points.append(cells, first, out),
            Plan::Figures(query) => query.append(cells, first, out),
        }
    }
}

fn plan(statement: &Statement, program: &Program) -> Result<Plan, DatabaseError> {
    let shape = |table: &str| {
        let shape = Shape::of(&RULES, program, table)?;
        let tag = shape.columns.iter().find(|column| column.at == At::Tag);
        match tag.filter(|tag| !is_label(&tag.name) || tag.name == LABEL) {
            Some(tag) => Err(refused(&format!("the name {:?} cannot be that of a label of its own", tag.name))),
            None => Ok(shape),
        }
    };
    match statement {
        Statement::Insert { table, columns } => {
            let lines = LinePlan::of(&shape(table)?, columns)?;
            Ok(Plan::Insert(Box::new(lines)))
        }
        Statement::Select(asked) => Ok(Plan::Points(Points::of_select(&shape(&asked.from)?, asked)?)),
        Statement::Ask(asking) => Ok(match ask(&shape(&asking.from)?, asking)? {
            Question::Points(points) => Plan::Points(points),
            Question::Figures(query) => Plan::Figures(query),
        }),
        Statement::Update { .. } | Statement::Delete { .. } => {
            Err(refused("it changes no points, and removes whole series alone"))
        }
        _ => Err(refused("it has no request for such a statement")),
    }
}

/// Returns why the rows of a request cannot be written; `None` where they can.
pub(super) fn refusal_of(program: &Program, request: &Request) -> Option<String> {
    let plans = Plan::of(program).ok()?;
    let mut out = Vec::new();
    request
        .steps
        .iter()
        .find_map(|step| plans.get(usize::from(step.statement))?.append(&request.cells, step, &mut out).err())
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::readings;
    use super::*;
    use crate::statement::Expect;

    #[test]
    fn rows_whose_values_are_not_kept_are_refused_before_anything_is_started() {
        let (program, mut request) = (readings(None), Request::default());
        for value in [0.25, 1.0 / 3.0] {
            request.cells.int(1);
            request.cells.int(4);
            request.cells.int(1_700_000_000_002_000_000);
            request.cells.float(value);
        }
        request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
        assert_eq!(refusal_of(&program, &request), None);
        request.steps[0].rows = 2;
        assert!(
            refusal_of(&program, &request)
                .unwrap()
                .contains("the column v is given a number that would come back rounded")
        );
    }

    #[test]
    fn a_row_is_a_line_with_the_label_of_its_table() {
        let plans = Plan::of(&readings(None)).unwrap();
        let mut cells = Cells::new();
        [31, 4, 1_700_000_000_002_000_000].iter().for_each(|value| cells.int(*value));
        cells.float(21.5);
        let (mut out, step) = (Vec::new(), Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Anything });
        plans[0].append(&cells, &step, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "t,loadline=t,source=4 id=31i,v=21.5 1700000000002\n");
        let mut program = readings(None);
        program.tables[0].columns[1].name = "so urce".to_owned();
        program.apart[0].source = Some("so urce".to_owned());
        program.statements =
            vec![Statement::Insert { table: "t".to_owned(), columns: program.tables[0].columns.clone() }];
        assert!(Plan::of(&program).unwrap_err().to_string().contains("label"));
    }
}
