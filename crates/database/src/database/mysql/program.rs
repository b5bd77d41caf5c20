//! A program's statements as a connection has prepared them. Main type: [`Prepared`].
//!
//! An insert of many rows goes to MariaDB as a bulk execution of the single-row statement. For MySQL, statements of several
//! rows are prepared in a few sizes; the sizes are bounded because the server keeps memory for every parameter of every
//! prepared statement of every connection.

use super::values::Bound;
use crate::database::dialect::{Dialect, statement_text};
use crate::database::literal::TextStatement;
use crate::record::ColumnKind;
use crate::statement::{SelectRecords, Statement};

/// The maximum number of parameters of a prepared statement of several rows. The protocol allows 65,535.
pub(in crate::database) const PARAMETERS_MAX: usize = 16_000;

/// A prepared statement of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The name of the statement in messages to the user.
    pub name: Box<str>,
    /// The number of values of a row.
    pub columns: usize,
    /// True if many rows are sent as a bulk execution.
    pub bulk: bool,
    /// The prepared sizes, in falling order of rows; the last takes one row.
    pub sizes: Vec<Bound>,
    /// The statement for sending as text, where none is prepared; there is one size then, which only describes the answer's columns.
    pub text: Option<TextStatement>,
}

impl Prepared {
    /// Creates a statement that is sent as text.
    pub fn as_text(dialect: &dyn Dialect, statement: &Statement) -> Self {
        let text = TextStatement::new(dialect, statement);
        let sizes = vec![Bound::new(0, 1, Vec::new(), std::iter::empty())];
        let (name, columns) = (name(dialect, statement).into_boxed_str(), text.values());
        Prepared { name, columns, bulk: false, sizes, text: Some(text) }
    }

    /// Returns the index of the largest size that fits the rows left, among those after `after`.
    pub fn size_for(&self, rows: u32, after: Option<usize>) -> usize {
        let from = after.map_or(0, |after| after + 1).min(self.sizes.len() - 1);
        from + size_for(self.sizes[from..].iter().map(|size| size.rows), rows)
    }
}

/// Returns the index of the largest size that fits the rows left, of sizes in falling order; the last takes what no other does.
pub(in crate::database) fn size_for(sizes: impl ExactSizeIterator<Item = u32>, rows: u32) -> usize {
    let last = sizes.len().saturating_sub(1);
    sizes.take(last).position(|size| size <= rows).unwrap_or(last)
}

/// The numbers of rows that the requests of an insert have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// The maximum of any request.
    pub max: usize,
    /// The number in most requests; 0 where there is no such number.
    pub usual: usize,
}

/// The plan for preparing a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The name of the statement in messages to the user.
    pub name: String,
    /// The kinds of one row's values; `None` where only the value determines the kind.
    pub kinds: Vec<Option<ColumnKind>>,
    /// True if many rows are sent as a bulk execution.
    pub bulk: bool,
    /// The texts and their numbers of rows, in falling order; the last takes one row.
    pub texts: Vec<(String, u32)>,
}

impl Plan {
    /// Plans the preparation of a statement for requests of these numbers of rows.
    pub fn new(dialect: &dyn Dialect, statement: &Statement, rows: Rows, has_bulk: bool) -> Self {
        let (name, kinds) = (name(dialect, statement), statement.kinds());
        let is_insert = matches!(statement, Statement::Insert { .. });
        let bulk = has_bulk && is_insert && !kinds.is_empty();
        let mut rows = if is_insert && !bulk { sizes(rows, kinds.len(), PARAMETERS_MAX) } else { Vec::new() };
        rows.push(1);
        let texts = rows.iter().map(|rows| (statement_text(dialect, statement, *rows), *rows as u32)).collect();
        Plan { name, kinds, bulk, texts }
    }
}

/// Returns the name of a statement in messages to the user.
fn name(dialect: &dyn Dialect, statement: &Statement) -> String {
    let (verb, table) = match statement {
        Statement::Insert { table, .. } => ("INSERT INTO", table),
        Statement::Update { table, .. }
        | Statement::UpdateCases { table, .. }
        | Statement::UpdateDocument { table, .. }
        | Statement::ReduceDocument { table, .. } => ("UPDATE", table),
        Statement::Delete { table, .. } => ("DELETE FROM", table),
        Statement::Select(select) => ("SELECT FROM", &select.from),
        Statement::SelectRecords(SelectRecords { table, .. })
        | Statement::SelectMember { table, .. }
        | Statement::SelectGroups { table, .. } => ("SELECT FROM", table),
        Statement::Ask(asking) => ("SELECT FROM", &asking.from),
        Statement::Sql { sql, .. } => return shortened(sql, 120),
    };
    format!("{verb} {}", dialect.quote(table))
}

/// Returns the sizes of the statements of several rows, falling: the largest divides the largest request evenly, one takes the
/// usual request whole, and powers of four take the remaining rows. None has more parameters than `parameters_max`.
pub(in crate::database) fn sizes(rows: Rows, columns: usize, parameters_max: usize) -> Vec<usize> {
    if rows.max < 2 || columns == 0 {
        return Vec::new();
    }
    let bound = (parameters_max / columns).max(1);
    let full = rows.max.div_ceil(rows.max.div_ceil(bound));
    if full == 1 {
        return Vec::new();
    }
    let mut sizes: Vec<_> =
        std::iter::successors(Some(4), |size| Some(size * 4)).take_while(|size| *size < full).collect();
    sizes.push(full);
    if (2..full).contains(&rows.usual) {
        sizes.push(rows.usual);
    }
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    sizes
}

/// Returns the first characters of a text, with a mark where there are more.
pub fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::mysql::dialect::{Engine, MySqlDialect};
    use crate::statement::TableColumn;

    fn insert(columns: usize) -> Statement {
        let column = |number| TableColumn { name: format!("c{number}"), kind: ColumnKind::Int32, nullable: false };
        Statement::Insert { table: "t".into(), columns: (0..columns).map(column).collect() }
    }

    fn plan(columns: usize, rows_max: usize, has_bulk: bool) -> Vec<u32> {
        let dialect = MySqlDialect { engine: Engine::InnoDb };
        let usual = if rows_max == 1000 { 10 } else { 0 };
        let plan = Plan::new(&dialect, &insert(columns), Rows { max: rows_max, usual }, has_bulk);
        plan.texts.iter().map(|(_, rows)| *rows).collect()
    }

    #[test]
    fn the_largest_size_divides_the_largest_request_and_stays_within_the_bound() {
        assert_eq!(plan(61, 1000, false), [250, 64, 16, 10, 4, 1], "a request of the usual size is one statement");
        assert_eq!(plan(61, 1, false), [1]);
        assert_eq!(plan(61, 2, false), [2, 1]);
        assert_eq!(plan(3, 7, false), [7, 4, 1]);
        assert_eq!(plan(10_000, 7, false), [1]);
        assert_eq!(plan(61, 1000, true), [1], "a bulk needs no more");
    }

    #[test]
    fn a_request_of_any_size_is_covered() {
        let bound = |rows: &u32| Bound::new(0, *rows, Vec::new(), std::iter::empty());
        let sizes = plan(61, 1000, false).iter().map(bound).collect();
        let prepared = Prepared { name: "t".into(), columns: 61, bulk: false, sizes, text: None };
        for rows in 1..=2000 {
            let (mut left, mut statements) = (rows, 0);
            while left > 0 {
                left -= prepared.sizes[prepared.size_for(left, None)].rows;
                statements += 1;
            }
            assert!(statements <= rows / 250 + 13, "{rows} rows take {statements} statements");
        }
        assert_eq!(prepared.size_for(1000, Some(0)), 1);
        assert_eq!(prepared.size_for(1000, Some(5)), 5);
    }

    #[test]
    fn texts_are_shortened_between_characters() {
        assert_eq!(shortened("äöü", 2), "äö ...");
        assert_eq!(shortened("äöü", 3), "äöü");
    }
}
