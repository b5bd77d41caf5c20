//! Dialects: how each database writes the database-neutral statements.

mod document;
mod questions;
mod records;
mod schema;

pub use document::path;
pub use questions::NewestOfEach;
pub use schema::PartitionForm;

use super::instruments::Alternatives;
use crate::record::{Cells, ColumnKind};
use crate::statement::{Comparison, Hints, Limit, SchemaChange, Select, SourceIndex, Statement, Table, TableColumn};

pub(super) use schema::schema_change_text;

pub use crate::statement::{parameters_of, parts_around_parameters};

/// The statements around a deletion whose rows must not remain in the database's files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Erasing {
    /// The statements before the deletion.
    pub before: Vec<String>,
    /// The statements after its commit.
    pub after: Vec<String>,
}

/// The differences between the databases' SQL.
pub trait Dialect: Send + Sync {
    /// Returns a name in the quotes of the database.
    fn quote(&self, name: &str) -> String;

    /// Returns the type of a column.
    fn column_type(&self, kind: ColumnKind) -> String;

    /// Returns the type of an integer column that the database fills itself, each value larger than those before.
    fn numbered_type(&self) -> String;

    /// Returns the name of the sequence that numbers the rows of a table; `None` where the type of the column does that.
    fn sequence_of(&self, _table: &str) -> Option<String> {
        None
    }

    /// Returns the placeholder of the value with this number, from 0: `?` or `$1`.
    fn placeholder(&self, number: usize) -> String;

    /// Returns a text as a literal.
    fn literal(&self, text: &str) -> String {
        format!("'{}'", text.replace('\'', "''"))
    }

    /// Returns the expression of a JSON document (a quoted column) with members set, by the standard's functions. Each member
    /// is its name, the type of its value and the value's placeholder.
    fn document_with(&self, document: &str, members: &[(&str, ColumnKind, String)]) -> String {
        document::with(|text| self.literal(text), document, members)
    }

    /// Returns the expression of a JSON document without a member.
    fn document_without(&self, document: &str, member: &str) -> String {
        format!("json_remove({document}, {})", self.literal(&document::path(member)))
    }

    /// Returns the expression of the value, of this type, of a JSON document's member.
    fn member_of(&self, document: &str, member: &str, _kind: ColumnKind) -> String {
        format!("json_extract({document}, {})", self.literal(&document::path(member)))
    }

    /// Returns the expression of the value, of this type, of a text.
    fn value_of_text(&self, text: &str, kind: ColumnKind) -> String {
        records::value_of_text(text, kind, "BIGINT", "DOUBLE PRECISION")
    }

    /// Returns the suffix of a query whose rows are locked until the transaction ends; empty where a writing transaction
    /// excludes all others.
    fn row_lock(&self) -> &'static str {
        " FOR UPDATE"
    }

    /// Returns the statements that change a table in use, the best first; when the database refuses one, the next is tried. With
    /// an algorithm, which the database must have, it is the only way.
    fn schema_change(&self, change: &SchemaChange, _algorithm: Option<&str>) -> Vec<String> {
        vec![schema_change_text(
            change,
            |name| self.quote(name),
            |kind| self.column_type(kind),
            PartitionForm::default(),
        )]
    }

    /// Returns the statements to execute before and after a deletion whose rows must not remain in the files of these tables, as far as the database
    /// has such statements; none by default.
    fn erasing(&self, _tables: &[&str]) -> Erasing {
        Erasing::default()
    }

    /// Returns how the database writes partitions by time.
    fn partition_form(&self) -> PartitionForm {
        PartitionForm::default()
    }

    /// Returns the text behind the closing parenthesis of CREATE TABLE, as in ` ENGINE=InnoDB`; empty by default.
    fn table_suffix(&self) -> String {
        String::new()
    }

    /// Returns whether foreign keys are to be declared.
    fn has_foreign_keys(&self) -> bool {
        true
    }

    /// Returns how tables are joined in the order in which they are named; `None` where that cannot be requested.
    fn straight_join(&self) -> Option<StraightJoin> {
        None
    }

    /// Returns how the newest reading of each source is asked for, with this index on source and time.
    fn newest_of_each(&self, _index: SourceIndex) -> NewestOfEach {
        NewestOfEach::Join
    }

    /// Returns whether the table of a column keeps its rows in the order of this column, a time in nanoseconds, so that `LATEST ON` and `SAMPLE BY` can be used.
    fn is_ordered_by(&self, _column: &str) -> bool {
        false
    }

    /// Returns what stands behind a table's name where its rows are to be grouped by source, over columns that the index on source and time does not have. Empty by
    /// default: the database decides well whether it groups along the index.
    fn grouping_hint(&self, _index: SourceIndex) -> &'static str {
        ""
    }

    /// Returns the expression by which the value of a column is read: by default the column.
    fn read(&self, column: String) -> String {
        column
    }

    /// Returns the expression of a whole number divided by another one, as a whole number.
    fn divided(&self, number: &str, by: i64) -> String {
        format!("{number} / {by}")
    }

    /// Returns the expression of the number of rows.
    fn count(&self) -> &'static str {
        "COUNT(*)"
    }

    /// Returns the expression of the mean of a column, as a floating-point number.
    fn mean_of(&self, column: &str, _kind: ColumnKind) -> String {
        format!("AVG({column})")
    }

    /// Returns the expression of the sum of a column: a whole number for whole numbers.
    fn sum_of(&self, column: &str, _kind: ColumnKind) -> String {
        format!("SUM({column})")
    }

    /// Returns the expression of a column's value in the first reading by these expressions, the time and where needed the source, or in the last one; `None` where no aggregate gives it, so
    /// that a window function is asked.
    fn end_of(&self, _column: &str, _order: &[&str], _is_last: bool) -> Option<String> {
        None
    }

    /// Returns the expression of a quantile of a column, of a share in millionths; `None` where no aggregate gives it, so that ranks are computed.
    fn quantile_of(&self, _column: &str, _millionths: u32) -> Option<String> {
        None
    }

    /// Returns whether a query can say if the query cache is to keep its answer.
    fn has_query_cache(&self) -> bool {
        false
    }

    /// Returns the statement that shows the plan of a query that contains the values of its parameters.
    fn explain(&self, query: &str) -> String {
        format!("EXPLAIN {query}")
    }

    /// Returns a row of that plan as one line; all its columns by default.
    fn plan_line(&self, row: &[Option<String>]) -> String {
        row.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Returns the statement that makes the database gather statistics of a table, so that its plans do not depend on when it does so
    /// by itself; `None` where there is none.
    fn analyse(&self, _table: &str) -> Option<String> {
        None
    }

    /// Returns queries for the bytes that these tables take on the disk, including their indexes. The first query that is answered with a number
    /// counts; empty where the database does not tell.
    fn table_bytes(&self, _tables: &[&str]) -> Vec<String> {
        Vec::new()
    }

    /// Returns the statement after which the connection can no longer change anything; `None` where there is none.
    fn read_only(&self) -> Option<&'static str> {
        None
    }

    /// Returns the statements after which a session that only deletes disturbs others least: its deletions lock only the rows that they delete, and its commits may
    /// wait for the sync of a later one of another session. None by default.
    fn beside_others(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the query for the columns of a table's whole indexes, in their order: the index, its column's position and its column's name; `None` where the database does
    /// not tell.
    fn index_columns(&self, _table: &str) -> Option<String> {
        None
    }

    /// Returns the server's own measurements of its work; none by default.
    fn instruments(&self) -> &'static [Alternatives] {
        &[]
    }

    /// Returns whether several statements, or the rows of one, can be undone together. Where they cannot, a refused request may
    /// leave its first rows.
    fn has_transactions(&self) -> bool {
        true
    }
}

/// The ways to tell a database to join tables in the order in which they are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StraightJoin {
    /// `SELECT STRAIGHT_JOIN`.
    SelectOption,
    /// `CROSS JOIN` with conditions.
    CrossJoin,
}

/// Returns the CREATE TABLE and CREATE INDEX statements for a table, in order.
pub fn create_table(dialect: &dyn Dialect, table: &Table) -> Vec<String> {
    let columns = |names: &[String]| names.iter().map(|name| dialect.quote(name)).collect::<Vec<_>>().join(", ");
    let mut parts: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let null = if column.nullable { "" } else { " NOT NULL" };
            format!("{} {}{null}", dialect.quote(&column.name), dialect.column_type(column.kind))
        })
        .collect();
    let sequence = dialect.sequence_of(&table.name).filter(|_| table.numbered).map(|name| dialect.quote(&name));
    if let (true, Some(key)) = (table.numbered, table.primary_key.first()) {
        let next = sequence.as_ref().map(|name| format!(" DEFAULT nextval({})", dialect.literal(name)));
        parts.insert(0, format!("{} {}{}", dialect.quote(key), dialect.numbered_type(), next.unwrap_or_default()));
    }
    parts.push(format!("PRIMARY KEY ({})", columns(&table.primary_key)));
    parts.extend(table.unique.iter().map(|unique| format!("UNIQUE ({})", columns(unique))));
    if dialect.has_foreign_keys() {
        parts.extend(table.foreign_keys.iter().map(|key| {
            format!(
                "FOREIGN KEY ({}) REFERENCES {} ({})",
                columns(&key.columns),
                dialect.quote(&key.table),
                columns(&key.references)
            )
        }));
    }
    let mut sql: Vec<String> = sequence.iter().map(|name| format!("CREATE SEQUENCE {name}")).collect();
    let (name, suffix) = (dialect.quote(&table.name), dialect.table_suffix());
    let (partitioned, of_partitions) = schema::partitions(dialect, table);
    sql.push(format!("CREATE TABLE {name} ({}){suffix}{partitioned}", parts.join(", ")));
    sql.extend(of_partitions);
    sql.extend(table.indexes.iter().map(|index| {
        let name = index_name(&table.name, index);
        format!("CREATE INDEX {} ON {} ({})", dialect.quote(&name), dialect.quote(&table.name), columns(index))
    }));
    sql
}

/// Returns the name of a table's index over these columns.
pub fn index_name(table: &str, columns: &[String]) -> String {
    match columns {
        // Names of many columns are longer than names may be.
        [first, second, third, _, ..] => format!("{table}_{first}_{second}_{third}_and_{}_more", columns.len() - 3),
        _ => format!("{table}_{}", columns.join("_")),
    }
}

/// Returns the DROP TABLE IF EXISTS statement for a table.
pub fn drop_table(dialect: &dyn Dialect, table: &str) -> String {
    format!("DROP TABLE IF EXISTS {}", dialect.quote(table))
}

/// Returns the statements that undo those of [`create_table`].
pub fn remove_table(dialect: &dyn Dialect, table: &str) -> Vec<String> {
    let sequence = dialect.sequence_of(table);
    let sequence = sequence.map(|name| format!("DROP SEQUENCE IF EXISTS {}", dialect.quote(&name)));
    std::iter::once(drop_table(dialect, table)).chain(sequence).collect()
}

/// Writes the value with a number, from 0, into a statement: as a placeholder, or as itself.
type Value<'a> = &'a dyn Fn(usize) -> String;

/// Returns the text of a statement. An insert has `rows` lists of values; the other statements ignore `rows`.
pub fn statement_text(dialect: &dyn Dialect, statement: &Statement, rows: usize) -> String {
    text_with(dialect, statement, rows, &|number| dialect.placeholder(number))
}

/// Returns the text of a statement; `value` writes the value with a number, from 0.
pub(super) fn text_with(dialect: &dyn Dialect, statement: &Statement, rows: usize, value: Value<'_>) -> String {
    match statement {
        Statement::Insert { table, columns } => {
            let names: Vec<_> = columns.iter().map(|column| dialect.quote(&column.name)).collect();
            let mut values = Vec::with_capacity(rows);
            for row in 0..rows {
                let places: Vec<_> = (0..columns.len()).map(|column| value(row * columns.len() + column)).collect();
                values.push(format!("({})", places.join(", ")));
            }
            format!("INSERT INTO {} ({}) VALUES {}", dialect.quote(table), names.join(", "), values.join(", "))
        }
        Statement::Update { table, set, key } => {
            let equals = equalities(dialect, set, 0, value).join(", ");
            format!("UPDATE {} SET {equals}{}", dialect.quote(table), where_key(dialect, key, set.len(), value))
        }
        Statement::Delete { table, key } => {
            format!("DELETE FROM {}{}", dialect.quote(table), where_key(dialect, key, 0, value))
        }
        Statement::UpdateCases { table, by, set, cases, key } => {
            update_cases(dialect, table, (by, set), (cases, key), value)
        }
        Statement::UpdateDocument { table, document, set, key } => {
            let members: Vec<_> =
                (0..).zip(set).map(|(number, member)| (member.name.as_str(), member.kind, value(number))).collect();
            let document = dialect.quote(document);
            let made = dialect.document_with(&document, &members);
            format!(
                "UPDATE {} SET {document} = {made}{}",
                dialect.quote(table),
                where_key(dialect, key, set.len(), value)
            )
        }
        Statement::ReduceDocument { table, document, member, key } => {
            let document = dialect.quote(document);
            let made = dialect.document_without(&document, member);
            format!("UPDATE {} SET {document} = {made}{}", dialect.quote(table), where_key(dialect, key, 0, value))
        }
        Statement::SelectMember { table, document, member, key } => {
            let read = dialect.member_of(&dialect.quote(document), &member.name, member.kind);
            format!("SELECT {read} FROM {}{}", dialect.quote(table), where_key(dialect, key, 0, value))
        }
        Statement::SelectGroups { table, columns, key } => select_groups(dialect, table, columns, key, value),
        Statement::Select(select) => select_text(dialect, select, value),
        Statement::SelectRecords(select) => records::text(dialect, select, value),
        Statement::Ask(asking) => questions::text(dialect, asking, value),
        Statement::Sql { sql, .. } => with_placeholders(dialect, sql),
    }
}

/// Returns `column = ?` for each column; the values are numbered from `first` on.
fn equalities(dialect: &dyn Dialect, columns: &[TableColumn], first: usize, value: Value<'_>) -> Vec<String> {
    let equal =
        |(number, column): (usize, &TableColumn)| format!("{} = {}", dialect.quote(&column.name), value(number));
    (first..).zip(columns).map(equal).collect()
}

fn where_key(dialect: &dyn Dialect, key: &[TableColumn], first: usize, value: Value<'_>) -> String {
    format!(" WHERE {}", equalities(dialect, key, first, value).join(" AND "))
}

/// Returns an UPDATE with a CASE for each column, as in listing A.8 of Lindfors and Lind Oros (KTH, 2018).
fn update_cases(
    dialect: &dyn Dialect,
    table: &str,
    (by, set): (&TableColumn, &TableColumn),
    (cases, key): (&[String], &[TableColumn]),
    value: Value<'_>,
) -> String {
    let (by, set) = (dialect.quote(&by.name), dialect.quote(&set.name));
    let literals: Vec<_> = cases.iter().map(|case| dialect.literal(case)).collect();
    let mut sql = format!("UPDATE {} SET {set} = CASE {by}", dialect.quote(table));
    for (number, literal) in literals.iter().enumerate() {
        sql += &format!(" WHEN {literal} THEN {}", value(number));
    }
    format!("{sql} END{} AND {by} IN ({})", where_key(dialect, key, cases.len(), value), literals.join(", "))
}

fn select_groups(
    dialect: &dyn Dialect,
    table: &str,
    columns: &[String],
    key: &TableColumn,
    value: Value<'_>,
) -> String {
    let (table, key) = (dialect.quote(table), dialect.quote(&key.name));
    let columns: Vec<_> = columns.iter().map(|column| format!("{table}.{}", dialect.quote(column))).collect();
    let groups = dialect.quote("first_groups");
    format!(
        "SELECT {} FROM (SELECT DISTINCT {key} FROM {table} WHERE {key} >= {} ORDER BY {key} LIMIT {}) AS {groups} \
         JOIN {table} ON {table}.{key} = {groups}.{key} ORDER BY {table}.{key}",
        columns.join(", "),
        value(0),
        value(1),
    )
}

/// Returns the text of a query with its values, which are in `cells` from `first` on, in place of its parameters: for plans, never
/// for measurements. `None` for statements that are not queries of a layout.
pub fn query_with_values(dialect: &dyn Dialect, statement: &Statement, cells: &Cells, first: usize) -> Option<String> {
    let value = |number: usize| match cells.to_json(cells.get(first + number)) {
        serde_json::Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        serde_json::Value::Null => "NULL".to_owned(),
        plain => plain.to_string(),
    };
    match statement {
        Statement::Select(select) => Some(select_text(dialect, select, &value)),
        Statement::SelectRecords(select) => Some(records::text(dialect, select, &value)),
        Statement::Ask(asking) => Some(questions::text(dialect, asking, &value)),
        _ => None,
    }
}

fn select_text(dialect: &dyn Dialect, select: &Select, value: &dyn Fn(usize) -> String) -> String {
    let column = |column: &crate::statement::ColumnRef| {
        format!("{}.{}", dialect.quote(&column.table), dialect.quote(&column.column))
    };
    let columns: Vec<_> = select.columns.iter().map(|read| dialect.read(column(read))).collect();
    let straight = dialect.straight_join().filter(|_| select.hints.straight_join);
    let words = select_words(dialect, select.hints);
    let mut sql = format!("{words} {} FROM {}", columns.join(", "), source(dialect, select, &select.from));
    let join_word = if straight == Some(StraightJoin::CrossJoin) { "CROSS JOIN" } else { "JOIN" };
    for join in &select.joins {
        let on: Vec<_> = join.on.iter().map(|(left, right)| format!("{} = {}", column(left), column(right))).collect();
        sql += &format!(" {join_word} {} ON {}", source(dialect, select, &join.table), on.join(" AND "));
    }
    for (number, condition) in select.conditions.iter().enumerate() {
        let word = if number == 0 { "WHERE" } else { "AND" };
        sql += &format!(" {word} {} {} {}", column(&condition.column), comparison(condition.comparison), value(number));
    }
    for (number, (by, descending)) in select.order.iter().enumerate() {
        let word = if number == 0 { " ORDER BY" } else { "," };
        sql += &format!("{word} {}{}", column(by), if *descending { " DESC" } else { "" });
    }
    match select.limit {
        None => {}
        Some(Limit::Fixed(rows)) => sql += &format!(" LIMIT {rows}"),
        Some(Limit::Bound) => sql += &format!(" LIMIT {}", value(select.conditions.len())),
    }
    if select.for_update {
        sql += dialect.row_lock();
    }
    sql
}

/// Returns a table of a query, or the latest of its rows under the same name.
fn source(dialect: &dyn Dialect, select: &Select, table: &str) -> String {
    let name = dialect.quote(table);
    match select.window.as_ref().filter(|window| window.table == table) {
        Some(window) => format!("{} AS {name}", latest(&name, "*", &dialect.quote(&window.by), window.rows)),
        None => name,
    }
}

/// Returns the rows of a table with the highest numbers, as a subquery.
fn latest(table: &str, columns: &str, by: &str, rows: u64) -> String {
    format!("(SELECT {columns} FROM {table} ORDER BY {by} DESC LIMIT {rows})")
}

/// Returns SELECT with the query's hints to the database.
fn select_words(dialect: &dyn Dialect, hints: Hints) -> String {
    let is_told = hints.straight_join && dialect.straight_join() == Some(StraightJoin::SelectOption);
    let join = if is_told { " STRAIGHT_JOIN" } else { "" };
    let cache = match hints.cache.filter(|_| dialect.has_query_cache()) {
        None => "",
        Some(true) => " SQL_CACHE",
        Some(false) => " SQL_NO_CACHE",
    };
    format!("SELECT{join}{cache}")
}

fn comparison(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

/// Returns a text with the database's placeholders for its parameters.
fn with_placeholders(dialect: &dyn Dialect, sql: &str) -> String {
    let parts = parts_around_parameters(sql);
    let mut out = parts[0].clone();
    for (number, part) in parts[1..].iter().enumerate() {
        out += &dialect.placeholder(number);
        out += part;
    }
    out
}
