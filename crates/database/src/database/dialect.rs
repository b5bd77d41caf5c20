//! Dialects: how each database writes the statements that are neutral to it.

mod document;
mod records;

pub use document::path;

use super::instruments::Alternatives;
use crate::record::{Cells, ColumnKind};
use crate::statement::{Comparison, Hints, Limit, SchemaChange, Select, Statement, Table, TableColumn};

pub use crate::statement::{parameters_of, parts_around_parameters};

/// Statements around a deletion whose rows must not be left in the database's files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Erasing {
    /// Before it.
    pub before: Vec<String>,
    /// After its commit.
    pub after: Vec<String>,
}

/// The ways in which databases' SQL differs.
pub trait Dialect: Send + Sync {
    /// A name in the quotes of the database.
    fn quote(&self, name: &str) -> String;

    /// The type of a column.
    fn column_type(&self, kind: ColumnKind) -> String;

    /// The type of a column of whole numbers that the database fills itself, each larger than those before.
    fn numbered_type(&self) -> String;

    /// The place of the value with this number, from 0: `?` or `$1`.
    fn placeholder(&self, number: usize) -> String;

    /// A text as a literal.
    fn literal(&self, text: &str) -> String {
        format!("'{}'", text.replace('\'', "''"))
    }

    /// The expression of a JSON document (a quoted column) with members set, in the way of the standard's functions; each member
    /// is its name, the type of its value and the value's place.
    fn document_with(&self, document: &str, members: &[(&str, ColumnKind, String)]) -> String {
        document::with(|text| self.literal(text), document, members)
    }

    /// The expression of a JSON document without a member.
    fn document_without(&self, document: &str, member: &str) -> String {
        format!("json_remove({document}, {})", self.literal(&document::path(member)))
    }

    /// The expression of the value of a JSON document's member, of this type.
    fn member_of(&self, document: &str, member: &str, _kind: ColumnKind) -> String {
        format!("json_extract({document}, {})", self.literal(&document::path(member)))
    }

    /// The value of a text, of this type.
    fn value_of_text(&self, text: &str, kind: ColumnKind) -> String {
        records::value_of_text(text, kind, "BIGINT", "DOUBLE PRECISION")
    }

    /// What stands behind a query whose rows are kept from others until the transaction ends; empty where transactions that
    /// write keep all others out.
    fn row_lock(&self) -> &'static str {
        " FOR UPDATE"
    }

    /// The ways of changing a table while it is in use, the best first; one that the database refuses is followed by the next. With
    /// an algorithm, which is one that the database has, that is the only way.
    fn schema_change(&self, change: &SchemaChange, _algorithm: Option<&str>) -> Vec<String> {
        vec![schema_change_text(
            self.quote(change.table()),
            change,
            |name| self.quote(name),
            |kind| self.column_type(kind),
        )]
    }

    /// What a connection executes before it deletes what must not be left in the files of these tables, and after it, as far as the database can be
    /// told so; nothing by default.
    fn erasing(&self, _tables: &[&str]) -> Erasing {
        Erasing::default()
    }

    /// What stands behind the closing parenthesis of CREATE TABLE, as in ` ENGINE=InnoDB`; empty by default.
    fn table_suffix(&self) -> String {
        String::new()
    }

    /// Whether foreign keys are to be declared.
    fn has_foreign_keys(&self) -> bool {
        true
    }

    /// How tables are joined in the order in which they are named; none where that cannot be asked for.
    fn straight_join(&self) -> Option<StraightJoin> {
        None
    }

    /// Whether a query can say if the query cache is to keep its answer.
    fn has_query_cache(&self) -> bool {
        false
    }

    /// The statement that tells the plan of a query whose parameters have their values written in.
    fn explain(&self, query: &str) -> String {
        format!("EXPLAIN {query}")
    }

    /// What a row of that plan says, on one line; all its columns by default.
    fn plan_line(&self, row: &[Option<String>]) -> String {
        row.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The statement that makes the database look at a table's content, so that its plans do not depend on when it did so by
    /// itself; none where there is no such thing.
    fn analyse(&self, _table: &str) -> Option<String> {
        None
    }

    /// Queries for one number, the bytes that these tables take on the disk with their indexes. The first that is answered with a number
    /// counts; none where the database does not tell.
    fn table_bytes(&self, _tables: &[&str]) -> Vec<String> {
        Vec::new()
    }

    /// The statement after which the connection changes nothing any more; none where there is no such thing.
    fn read_only(&self) -> Option<&'static str> {
        None
    }

    /// What the server tells of itself while it works; nothing by default.
    fn instruments(&self) -> &'static [Alternatives] {
        &[]
    }

    /// Whether several statements, or the rows of one, can be undone together. Where they cannot, a refused request may
    /// leave its first rows.
    fn has_transactions(&self) -> bool {
        true
    }
}

/// How a database can be told to join tables in the order in which they are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StraightJoin {
    /// `SELECT STRAIGHT_JOIN`.
    SelectOption,
    /// `CROSS JOIN` with conditions.
    CrossJoin,
}

/// CREATE TABLE and CREATE INDEX statements for a table, in order.
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
    if let (true, Some(key)) = (table.numbered, table.primary_key.first()) {
        parts.insert(0, format!("{} {}", dialect.quote(key), dialect.numbered_type()));
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
    let mut sql =
        vec![format!("CREATE TABLE {} ({}){}", dialect.quote(&table.name), parts.join(", "), dialect.table_suffix())];
    sql.extend(table.indexes.iter().map(|index| {
        let name = index_name(&table.name, index);
        format!("CREATE INDEX {} ON {} ({})", dialect.quote(&name), dialect.quote(&table.name), columns(index))
    }));
    sql
}

/// What an index of a table over these columns is called.
pub fn index_name(table: &str, columns: &[String]) -> String {
    format!("{table}_{}", columns.join("_"))
}

/// DROP TABLE IF EXISTS.
pub fn drop_table(dialect: &dyn Dialect, table: &str) -> String {
    format!("DROP TABLE IF EXISTS {}", dialect.quote(table))
}

/// The text of a statement. An insert has `rows` lists of values; the other statements ignore `rows`.
pub fn statement_text(dialect: &dyn Dialect, statement: &Statement, rows: usize) -> String {
    match statement {
        Statement::Insert { table, columns } => {
            let names: Vec<_> = columns.iter().map(|column| dialect.quote(&column.name)).collect();
            let mut values = Vec::with_capacity(rows);
            for row in 0..rows {
                let places: Vec<_> =
                    (0..columns.len()).map(|column| dialect.placeholder(row * columns.len() + column)).collect();
                values.push(format!("({})", places.join(", ")));
            }
            format!("INSERT INTO {} ({}) VALUES {}", dialect.quote(table), names.join(", "), values.join(", "))
        }
        Statement::Update { table, set, key } => {
            let equals = equalities(dialect, set, 0).join(", ");
            format!("UPDATE {} SET {equals}{}", dialect.quote(table), where_key(dialect, key, set.len()))
        }
        Statement::Delete { table, key } => {
            format!("DELETE FROM {}{}", dialect.quote(table), where_key(dialect, key, 0))
        }
        Statement::UpdateCases { table, by, set, cases, key } => update_cases(dialect, table, (by, set), cases, key),
        Statement::UpdateDocument { table, document, set, key } => {
            let members: Vec<_> = (0..)
                .zip(set)
                .map(|(number, member)| (member.name.as_str(), member.kind, dialect.placeholder(number)))
                .collect();
            let document = dialect.quote(document);
            let made = dialect.document_with(&document, &members);
            format!("UPDATE {} SET {document} = {made}{}", dialect.quote(table), where_key(dialect, key, set.len()))
        }
        Statement::ReduceDocument { table, document, member, key } => {
            let document = dialect.quote(document);
            let made = dialect.document_without(&document, member);
            format!("UPDATE {} SET {document} = {made}{}", dialect.quote(table), where_key(dialect, key, 0))
        }
        Statement::SelectMember { table, document, member, key } => {
            let value = dialect.member_of(&dialect.quote(document), &member.name, member.kind);
            format!("SELECT {value} FROM {}{}", dialect.quote(table), where_key(dialect, key, 0))
        }
        Statement::SelectGroups { table, columns, key } => select_groups(dialect, table, columns, key),
        Statement::Select(select) => select_text(dialect, select, &|number| dialect.placeholder(number)),
        Statement::SelectRecords(select) => records::text(dialect, select, &|number| dialect.placeholder(number)),
        Statement::Sql { sql, .. } => with_placeholders(dialect, sql),
    }
}

/// `column = ?` for each column, whose values are numbered from `first` on.
fn equalities(dialect: &dyn Dialect, columns: &[TableColumn], first: usize) -> Vec<String> {
    let equal = |(number, column): (usize, &TableColumn)| {
        format!("{} = {}", dialect.quote(&column.name), dialect.placeholder(number))
    };
    (first..).zip(columns).map(equal).collect()
}

fn where_key(dialect: &dyn Dialect, key: &[TableColumn], first: usize) -> String {
    format!(" WHERE {}", equalities(dialect, key, first).join(" AND "))
}

/// As listing A.8 of Lindfors and Lind Oros (KTH, 2018) has it.
fn update_cases(
    dialect: &dyn Dialect,
    table: &str,
    (by, set): (&TableColumn, &TableColumn),
    cases: &[String],
    key: &[TableColumn],
) -> String {
    let (by, set) = (dialect.quote(&by.name), dialect.quote(&set.name));
    let literals: Vec<_> = cases.iter().map(|case| dialect.literal(case)).collect();
    let mut sql = format!("UPDATE {} SET {set} = CASE {by}", dialect.quote(table));
    for (number, literal) in literals.iter().enumerate() {
        sql += &format!(" WHEN {literal} THEN {}", dialect.placeholder(number));
    }
    format!("{sql} END{} AND {by} IN ({})", where_key(dialect, key, cases.len()), literals.join(", "))
}

fn select_groups(dialect: &dyn Dialect, table: &str, columns: &[String], key: &TableColumn) -> String {
    let (table, key) = (dialect.quote(table), dialect.quote(&key.name));
    let columns: Vec<_> = columns.iter().map(|column| format!("{table}.{}", dialect.quote(column))).collect();
    let groups = dialect.quote("first_groups");
    format!(
        "SELECT {} FROM (SELECT DISTINCT {key} FROM {table} WHERE {key} >= {} ORDER BY {key} LIMIT {}) AS {groups} \
         JOIN {table} ON {table}.{key} = {groups}.{key} ORDER BY {table}.{key}",
        columns.join(", "),
        dialect.placeholder(0),
        dialect.placeholder(1),
    )
}

/// Changes of the schema in the words that most databases have.
pub(super) fn schema_change_text(
    table: String,
    change: &SchemaChange,
    quote: impl Fn(&str) -> String,
    column_type: impl Fn(ColumnKind) -> String,
) -> String {
    match change {
        SchemaChange::AddColumn { column, default, .. } => {
            let of_null = if column.nullable { "" } else { " NOT NULL" };
            let default =
                default.as_ref().map_or(String::new(), |text| format!(" DEFAULT '{}'", text.replace('\'', "''")));
            let (name, kind) = (quote(&column.name), column_type(column.kind));
            format!("ALTER TABLE {table} ADD COLUMN {name} {kind}{of_null}{default}")
        }
        SchemaChange::DropColumn { column, .. } => format!("ALTER TABLE {table} DROP COLUMN {}", quote(column)),
        SchemaChange::AddIndex { name, column, .. } => {
            format!("CREATE INDEX {} ON {table} ({})", quote(name), quote(column))
        }
        SchemaChange::DropIndex { name, .. } => format!("DROP INDEX {}", quote(name)),
    }
}

/// The text of a query with its values, which stand in `cells` from `first` on, in the places of its parameters: for plans, never
/// to be measured. None for statements that are no queries of a layout's.
pub fn query_with_values(dialect: &dyn Dialect, statement: &Statement, cells: &Cells, first: usize) -> Option<String> {
    let value = |number: usize| match cells.to_json(cells.get(first + number)) {
        serde_json::Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        serde_json::Value::Null => "NULL".to_owned(),
        plain => plain.to_string(),
    };
    match statement {
        Statement::Select(select) => Some(select_text(dialect, select, &value)),
        Statement::SelectRecords(select) => Some(records::text(dialect, select, &value)),
        _ => None,
    }
}

fn select_text(dialect: &dyn Dialect, select: &Select, value: &dyn Fn(usize) -> String) -> String {
    let column = |column: &crate::statement::ColumnRef| {
        format!("{}.{}", dialect.quote(&column.table), dialect.quote(&column.column))
    };
    let columns: Vec<_> = select.columns.iter().map(column).collect();
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

/// A table of a query, or the latest of its rows under the same name.
fn source(dialect: &dyn Dialect, select: &Select, table: &str) -> String {
    let name = dialect.quote(table);
    match select.window.as_ref().filter(|window| window.table == table) {
        Some(window) => format!("{} AS {name}", latest(&name, "*", &dialect.quote(&window.by), window.rows)),
        None => name,
    }
}

/// The rows of a table with the highest numbers, as a table.
fn latest(table: &str, columns: &str, by: &str, rows: u64) -> String {
    format!("(SELECT {columns} FROM {table} ORDER BY {by} DESC LIMIT {rows})")
}

/// SELECT with what the database is told about the query.
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

/// A text with the database's placeholders for its parameters.
fn with_placeholders(dialect: &dyn Dialect, sql: &str) -> String {
    let parts = parts_around_parameters(sql);
    let mut out = parts[0].clone();
    for (number, part) in parts[1..].iter().enumerate() {
        out += &dialect.placeholder(number);
        out += part;
    }
    out
}
