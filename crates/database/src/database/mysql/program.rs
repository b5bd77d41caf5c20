//! A program's statements as a connection has prepared them. The main type is [`Prepared`].
//!
//! Many rows for one insert go to MariaDB as a bulk of the single-row statement. MySQL takes them as statements of several
//! rows, prepared in a few sizes; the sizes are bounded because the server keeps memory for every parameter of every
//! prepared statement of every connection.

use super::values::Bound;
use crate::database::dialect::{Dialect, statement_text};
use crate::database::literal::TextStatement;
use crate::record::ColumnKind;
use crate::statement::{SelectRecords, Statement};

/// The most parameters that a prepared statement of several rows gets. The protocol allows 65,535.
const PARAMETERS_MAX: usize = 16_000;

/// A statement of a program, prepared.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// What messages call it.
    pub name: Box<str>,
    /// How many values a row has.
    pub columns: usize,
    /// Whether many rows go as a bulk.
    pub bulk: bool,
    /// In falling order of rows; the last takes one.
    pub sizes: Vec<Bound>,
    /// The statement as it travels where none is prepared; there is one size then, which only knows the answer's columns.
    pub text: Option<TextStatement>,
}

impl Prepared {
    /// A statement that travels as text.
    pub fn as_text(dialect: &dyn Dialect, statement: &Statement) -> Self {
        let text = TextStatement::new(dialect, statement);
        let sizes = vec![Bound::new(0, 1, Vec::new(), std::iter::empty())];
        let (name, columns) = (name(dialect, statement).into_boxed_str(), text.values());
        Prepared { name, columns, bulk: false, sizes, text: Some(text) }
    }

    /// The place of the size that takes the most of the rows left, among those behind `after`.
    pub fn size_for(&self, rows: u32, after: Option<usize>) -> usize {
        let from = after.map_or(0, |after| after + 1);
        let last = self.sizes.len() - 1;
        (from..last).find(|place| self.sizes[*place].rows <= rows).unwrap_or(last)
    }
}

/// The numbers of rows that requests give to an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// At most.
    pub max: usize,
    /// In most of them; 0 where there is no such number.
    pub usual: usize,
}

/// What is to be prepared for a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What messages call it.
    pub name: String,
    /// The kinds of one row's values; none where only the value tells.
    pub kinds: Vec<Option<ColumnKind>>,
    /// Whether many rows go as a bulk.
    pub bulk: bool,
    /// Text and number of rows, in falling order; the last takes one.
    pub texts: Vec<(String, u32)>,
}

impl Plan {
    /// What to prepare so that requests can have these numbers of rows.
    pub fn new(dialect: &dyn Dialect, statement: &Statement, rows: Rows, has_bulk: bool) -> Self {
        let (name, kinds) = (name(dialect, statement), statement.kinds());
        let is_insert = matches!(statement, Statement::Insert { .. });
        let bulk = has_bulk && is_insert && !kinds.is_empty();
        let mut rows = if is_insert && !bulk { sizes(rows, kinds.len()) } else { Vec::new() };
        rows.push(1);
        let texts = rows.iter().map(|rows| (statement_text(dialect, statement, *rows), *rows as u32)).collect();
        Plan { name, kinds, bulk, texts }
    }
}

/// What messages call a statement.
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
        Statement::Sql { sql, .. } => return shortened(sql, 120),
    };
    format!("{verb} {}", dialect.quote(table))
}

/// The numbers of rows of statements of several rows, falling: the largest divides the largest request evenly, one takes the
/// usual request whole, and powers of four take the rest of others.
fn sizes(rows: Rows, columns: usize) -> Vec<usize> {
    if rows.max < 2 || columns == 0 {
        return Vec::new();
    }
    let bound = (PARAMETERS_MAX / columns).max(1);
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

/// The first characters of a text, with a mark where there are more.
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
