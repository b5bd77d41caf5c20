//! The requests for a program's statements. Main type: [`Plan`].
//!
//! A statement that VictoriaMetrics does not execute as it is meant is refused here, and already during planning.

use super::answer::Reads;
use super::exchange::Lines;
use super::metricsql::{Span, Text, append_time, is_label};
use super::questions::{Question, ask};
use super::rules::{LABEL, RULES, refused};
use super::selecting::{Points, int};
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

/// The times that a query looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct When {
    /// Whether the first of its values is a source.
    pub has_source: bool,
    /// Whether its next two values are the first time and the one behind the last, in nanoseconds. Otherwise it looks at all times.
    pub has_span: bool,
    /// The length of a bucket, where it has buckets.
    pub bucket_ms: Option<i64>,
}

/// A query for figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Query {
    text: Text,
    pub reads: Reads,
    when: When,
}

impl Query {
    pub(super) fn new(text: &str, reads: Reads, when: When) -> Self {
        Query { text: Text::new(text), reads, when }
    }

    /// Appends the body of the request, with the values from `first` on.
    ///
    /// # Errors
    /// A sentence: a value cannot be written.
    pub(super) fn append(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let When { has_source, has_span, bucket_ms } = self.when;
        let source = if has_source { int(cells, first)? } else { 0 };
        let first = first + usize::from(has_source);
        let (from_ns, to_ns) =
            if has_span { (int(cells, first)?, int(cells, first + 1)?) } else { (i64::MIN, i64::MAX) };
        let next_ms =
            |time_ns: i64| time_ns.div_euclid(RULES.unit_ns) + i64::from(time_ns.rem_euclid(RULES.unit_ns) > 0);
        let span = Span { least_ms: next_ms(from_ns), most_ms: next_ms(to_ns) - 1 }.within(Span::ALL);
        out.extend_from_slice(b"query=");
        let Some(bucket_ms) = bucket_ms else {
            self.text.append(span.window_ms(), source, out);
            out.extend_from_slice(b"&time=");
            append_time(span.most_ms, out);
            return Ok(());
        };
        let bucket_ns = bucket_ms * RULES.unit_ns;
        if from_ns % RULES.unit_ns != 0 || to_ns.saturating_sub(from_ns) % bucket_ns != 0 {
            return Err("a span is not made of whole buckets that begin with a millisecond".to_owned());
        }
        self.text.append(bucket_ms, source, out);
        out.extend_from_slice(format!("&step={bucket_ms}ms&start=").as_bytes());
        // A window looks back from the last time of a bucket.
        append_time(span.least_ms + bucket_ms - 1, out);
        out.extend_from_slice(b"&end=");
        append_time(span.most_ms, out);
        // A query that may be answered from a cache has its times moved to multiples of its step.
        out.extend_from_slice(b"&nocache=1");
        Ok(())
    }
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
            Plan::Figures(query) if query.when.bucket_ms.is_some() => &lines.range,
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
pub(super) mod tests {
    use super::*;
    use crate::question::{Ask, Figure};
    use crate::record::ColumnKind;
    use crate::statement::{Again, Apart, Asking, ColumnRef, Expect, SourceIndex, Table, TableColumn, TimeColumn};

    /// A program with a table of readings: a number, a source, a time and a number that is measured.
    pub fn readings(again: Option<Again>) -> Program {
        let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: name == "v" };
        let columns = vec![
            column("id", ColumnKind::Int64),
            column("source", ColumnKind::Int32),
            column("at", ColumnKind::Int64),
            column("v", ColumnKind::Float64),
        ];
        let table = Table {
            name: "t".to_owned(),
            columns: columns.clone(),
            primary_key: vec!["id".to_owned()],
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: Some(TimeColumn { name: "at".to_owned(), partitions: None }),
        };
        let apart = Apart { table: "t".to_owned(), source: Some("source".to_owned()), again };
        let statements = vec![Statement::Insert { table: "t".to_owned(), columns }];
        Program { tables: vec![table], apart: vec![apart], statements, rows_max: 10, ..Program::default() }
    }

    pub fn asking(ask: Ask, all_sources: bool, has_span: bool) -> Asking {
        let at = |name: &str| ColumnRef { table: "t".to_owned(), column: name.to_owned() };
        Asking {
            ask,
            from: "t".to_owned(),
            joins: Vec::new(),
            source: at("source"),
            time: at("at"),
            least_time: None,
            columns: vec![(at("v"), ColumnKind::Float64)],
            all_sources,
            source_index: SourceIndex::None,
            has_span,
            bucket: 7_000_000_000,
            most: 3,
            by: Figure::Max,
        }
    }

    /// Returns the source 1, if there is one, and fourteen seconds.
    pub fn values(has_source: bool) -> Cells {
        let mut cells = Cells::new();
        if has_source {
            cells.int(1);
        }
        cells.int(1_700_000_000_002_000_000);
        cells.int(1_700_000_014_002_000_000);
        cells
    }

    /// Returns the body of a request, decoded.
    pub fn body(append: impl FnOnce(&mut Vec<u8>) -> Result<(), String>) -> String {
        let mut out = Vec::new();
        append(&mut out).unwrap();
        let (mut bytes, mut rest) = (Vec::new(), out.iter());
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'%' => {
                    let digits = [*rest.next().unwrap(), *rest.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                byte => *byte,
            });
        }
        String::from_utf8(bytes).unwrap()
    }

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

    #[test]
    fn buckets_that_are_not_whole_are_refused() {
        let reads = Reads { form: super::super::answer::Form::Aggregate, outs: Vec::new(), source: None, round: None };
        let query = Query::new("1", reads, When { has_source: false, has_span: true, bucket_ms: Some(7_000) });
        let (mut cells, mut out) = (Cells::new(), Vec::new());
        cells.int(1_700_000_000_000_000_000);
        cells.int(1_700_000_010_000_000_000);
        assert!(query.append(&cells, 0, &mut out).unwrap_err().contains("whole buckets"));
    }
}
