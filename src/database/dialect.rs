//! Dialects: how each database writes the statements that are neutral to it.

use crate::record::ColumnKind;
use crate::statement::{Comparison, Limit, Select, Statement, Table, TableColumn};

pub use crate::statement::parameter_places;

/// The ways in which databases' SQL differs.
pub trait Dialect: Send + Sync {
    /// A name in the quotes of the database.
    fn quote(&self, name: &str) -> String;

    /// The type of a column.
    fn column_type(&self, kind: ColumnKind) -> String;

    /// The place of the value with this number, from 0: `?` or `$1`.
    fn placeholder(&self, number: usize) -> String;

    /// What stands behind the closing parenthesis of CREATE TABLE, as in ` ENGINE=InnoDB`; empty by default.
    fn table_suffix(&self) -> String {
        String::new()
    }

    /// Whether foreign keys are to be declared.
    fn has_foreign_keys(&self) -> bool {
        true
    }

    /// Whether several statements, or the rows of one, can be undone together. Where they cannot, a refused request may
    /// leave its first rows.
    fn has_transactions(&self) -> bool {
        true
    }
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
        let name = format!("{}_{}", table.name, index.join("_"));
        format!("CREATE INDEX {} ON {} ({})", dialect.quote(&name), dialect.quote(&table.name), columns(index))
    }));
    sql
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
            let mut places = 0..;
            let mut equal =
                |name: &str| format!("{} = {}", dialect.quote(name), dialect.placeholder(places.next().unwrap_or(0)));
            let set: Vec<_> = set.iter().map(|column| equal(&column.name)).collect();
            let key: Vec<_> = key.iter().map(|column| equal(&column.name)).collect();
            format!("UPDATE {} SET {} WHERE {}", dialect.quote(table), set.join(", "), key.join(" AND "))
        }
        Statement::Delete { table, key } => {
            let equal = |(number, column): (usize, &TableColumn)| {
                format!("{} = {}", dialect.quote(&column.name), dialect.placeholder(number))
            };
            let key: Vec<_> = key.iter().enumerate().map(equal).collect();
            format!("DELETE FROM {} WHERE {}", dialect.quote(table), key.join(" AND "))
        }
        Statement::Select(select) => select_text(dialect, select),
        Statement::Sql { sql, .. } => with_placeholders(dialect, sql),
    }
}

fn select_text(dialect: &dyn Dialect, select: &Select) -> String {
    let column = |column: &crate::statement::ColumnRef| {
        format!("{}.{}", dialect.quote(&column.table), dialect.quote(&column.column))
    };
    let columns: Vec<_> = select.columns.iter().map(column).collect();
    let mut sql = format!("SELECT {} FROM {}", columns.join(", "), dialect.quote(&select.from));
    for join in &select.joins {
        let on: Vec<_> = join.on.iter().map(|(left, right)| format!("{} = {}", column(left), column(right))).collect();
        sql += &format!(" JOIN {} ON {}", dialect.quote(&join.table), on.join(" AND "));
    }
    for (number, condition) in select.conditions.iter().enumerate() {
        let word = if number == 0 { "WHERE" } else { "AND" };
        sql += &format!(
            " {word} {} {} {}",
            column(&condition.column),
            comparison(condition.comparison),
            dialect.placeholder(number)
        );
    }
    for (number, (by, descending)) in select.order.iter().enumerate() {
        let word = if number == 0 { " ORDER BY" } else { "," };
        sql += &format!("{word} {}{}", column(by), if *descending { " DESC" } else { "" });
    }
    match select.limit {
        None => {}
        Some(Limit::Fixed(rows)) => sql += &format!(" LIMIT {rows}"),
        Some(Limit::Bound) => sql += &format!(" LIMIT {}", dialect.placeholder(select.conditions.len())),
    }
    sql
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

/// Replaces each `?` that stands outside quotes and comments by the database's placeholder.
fn with_placeholders(dialect: &dyn Dialect, sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 8);
    let mut last = 0;
    for (number, place) in parameter_places(sql).into_iter().enumerate() {
        out += &sql[last..place];
        out += &dialect.placeholder(number);
        last = place + 1;
    }
    out + &sql[last..]
}
