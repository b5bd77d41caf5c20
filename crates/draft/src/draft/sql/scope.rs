//! Resolves the tables that a statement names, and the column to which a name in it refers.
//!
//! Main type: [`Scope`].

use super::keyword::is_keyword;
use super::seat::{Seat, Seats};
use super::token::{Kind, Token};

/// A table of the database: its schema, its name and its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The schema; empty if the database has only one.
    pub schema: String,
    /// The name of the table.
    pub name: String,
    /// The names of the columns, in order.
    pub columns: Vec<String>,
}

/// A column, by the index of its table and its index within the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ColumnPlace {
    /// The index of the table.
    pub table: usize,
    /// The index of the column within the table.
    pub column: usize,
}

/// The tables that a statement names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    named: Vec<Named>,
    /// Names behind FROM and the like that match no table.
    pub unknown: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    alias: String,
    table: usize,
    depth: u16,
}

impl Scope {
    /// Resolves the names in a statement against the tables of the database.
    pub fn of(tokens: &[Token<'_>], known: &[Known]) -> Self {
        let mut scope = Scope::default();
        let own = names_of_parts(tokens);
        let seats = Seats::of(tokens);
        let mut place = 0;
        while place < tokens.len() {
            if introduces_table(tokens, place, &seats) {
                place = scope.take(tokens, place + 1, known, &own);
            } else {
                place += 1;
            }
        }
        scope
    }

    /// Reads tables separated by commas, and returns the place behind them.
    fn take(&mut self, tokens: &[Token<'_>], mut place: usize, known: &[Known], own: &[String]) -> usize {
        loop {
            while tokens.get(place).is_some_and(|token| {
                token.is("only") || token.is("ignore") || token.is("lateral") || begins_joined(tokens, place)
            }) {
                place += 1;
            }
            let Some((schema, name, behind)) = dotted(tokens, place) else { return place };
            let depth = tokens[place].depth;
            let is_function = tokens.get(behind).is_some_and(|token| token.is_mark("(")) && !is_into(tokens, place);
            place = behind;
            let mut alias = place;
            if tokens.get(alias).is_some_and(|token| token.is("as")) {
                alias += 1;
            }
            let word = tokens.get(alias).filter(|token| token.kind != Kind::Word || !is_keyword(token.text));
            let alias = word.and_then(Token::name);
            place += usize::from(alias.is_some());
            let found = known.iter().position(|table| is_called(table, schema.as_deref(), &name));
            match found {
                Some(table) => {
                    self.named.push(Named {
                        alias: alias.unwrap_or_else(|| name.clone()).to_lowercase(),
                        table,
                        depth,
                    });
                }
                None if is_function || own.iter().any(|part| part.eq_ignore_ascii_case(&name)) => {}
                None => self.unknown.push(schema.map_or(name.clone(), |schema| format!("{schema}.{name}"))),
            }
            match tokens.get(place) {
                Some(token) if token.is_mark(",") && token.depth == depth => place += 1,
                _ => return place,
            }
        }
    }

    /// Returns the indices of the tables, each once, in the order in which they are named.
    pub fn tables(&self) -> Vec<usize> {
        let mut tables = Vec::new();
        for named in &self.named {
            if !tables.contains(&named.table) {
                tables.push(named.table);
            }
        }
        tables
    }

    /// Returns the column to which a name at a given depth refers.
    pub fn column(&self, qualifier: Option<&str>, name: &str, depth: u16, known: &[Known]) -> Option<ColumnPlace> {
        let of = |named: &Named| {
            let columns = &known[named.table].columns;
            let column = columns.iter().position(|column| column.eq_ignore_ascii_case(name))?;
            Some(ColumnPlace { table: named.table, column })
        };
        if let Some(qualifier) = qualifier {
            let qualifier = qualifier.to_lowercase();
            return self.named.iter().filter(|named| named.alias == qualifier).find_map(of);
        }
        // The table at the nearest depth takes precedence.
        let mut near: Vec<&Named> = self.named.iter().collect();
        near.sort_by_key(|named| named.depth.abs_diff(depth));
        near.into_iter().find_map(of)
    }
}

fn is_called(table: &Known, schema: Option<&str>, name: &str) -> bool {
    let is_schema = schema.is_none_or(|schema| table.schema.is_empty() || table.schema.eq_ignore_ascii_case(schema));
    is_schema && table.name.eq_ignore_ascii_case(name)
}

/// Returns the names that the statement gives to its own parts: `WITH name AS (...)`.
fn names_of_parts(tokens: &[Token<'_>]) -> Vec<String> {
    let is_part = |window: &&[Token<'_>]| window[1].is("as") && window[2].is_mark("(");
    tokens.windows(3).filter(is_part).filter_map(|window| window[0].name()).collect()
}

/// Returns whether tables are named behind this word.
fn introduces_table(tokens: &[Token<'_>], place: usize, seats: &Seats) -> bool {
    let token = &tokens[place];
    let before = place.checked_sub(1).map(|before| &tokens[before]);
    if token.is("from") {
        return before.is_none_or(|word| !word.is("distinct")) && !is_in_call(tokens, seats.at(place));
    }
    let is_first = before.is_none() || before.is_some_and(|word| word.is_mark("(") || word.is_mark(")"));
    token.is("join") || token.is("into") || token.is("straight_join") || (token.is("update") && is_first)
}

/// Returns whether this bracket encloses joined tables, as in `FROM (a JOIN b ON ...)`, and not a query.
fn begins_joined(tokens: &[Token<'_>], place: usize) -> bool {
    let is_query = |token: &Token<'_>| ["select", "with", "values", "table"].iter().any(|word| token.is(word));
    tokens[place].is_mark("(") && tokens.get(place + 1).is_some_and(|inner| !is_query(inner))
}

/// Returns whether a FROM stands within a function call, as in `EXTRACT(hour FROM a)`, so that its bracket contains no query.
fn is_in_call(tokens: &[Token<'_>], seat: Seat) -> bool {
    let Some(open) = seat.open else { return false };
    let is_query = tokens.get(open + 1).is_some_and(|word| word.is("select") || word.is("with") || word.is("delete"));
    let is_name = |name: &Token<'_>| name.kind == Kind::Word && !is_keyword(name.text);
    !is_query && open.checked_sub(1).is_some_and(|name| is_name(&tokens[name]))
}

fn is_into(tokens: &[Token<'_>], place: usize) -> bool {
    place.checked_sub(1).is_some_and(|before| tokens[before].is("into"))
}

/// Returns a name, the schema before it if there is one, and the place behind it.
fn dotted(tokens: &[Token<'_>], place: usize) -> Option<(Option<String>, String, usize)> {
    let first = tokens.get(place).filter(|token| token.kind != Kind::Word || !is_keyword(token.text))?.name()?;
    let second = tokens.get(place + 1).filter(|token| token.is_mark(".")).and_then(|_| tokens.get(place + 2)?.name());
    Some(match second {
        Some(second) => (Some(first), second, place + 3),
        None => (None, first, place + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::super::token::{Grammar, tokens_of};
    use super::*;

    fn known() -> Vec<Known> {
        let table = |name: &str, columns: &[&str]| Known {
            schema: "public".to_owned(),
            name: name.to_owned(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        };
        vec![table("orders", &["id", "customer_id"]), table("customers", &["id", "email"])]
    }

    fn scope(sql: &str) -> (Vec<usize>, Vec<String>) {
        let scope = Scope::of(&tokens_of(sql, Grammar::POSTGRES), &known());
        (scope.tables(), scope.unknown)
    }

    #[test]
    fn tables_are_found_where_statements_name_them() {
        let none = Vec::<String>::new();
        assert_eq!(scope("SELECT * FROM orders o, customers WHERE 1=1"), (vec![0, 1], none.clone()));
        assert_eq!(
            scope("SELECT * FROM public.orders AS o LEFT JOIN \"customers\" c ON true"),
            (vec![0, 1], none.clone())
        );
        assert_eq!(scope("UPDATE orders SET id = 1"), (vec![0], none.clone()));
        assert_eq!(
            scope("INSERT INTO orders(id) VALUES (1) ON CONFLICT DO UPDATE SET id = 1"),
            (vec![0], none.clone())
        );
        assert_eq!(scope("SELECT extract(hour FROM id), substring(id FROM 2) FROM orders"), (vec![0], none.clone()));
        assert_eq!(
            scope("WITH a AS (SELECT 1) SELECT * FROM a JOIN generate_series(1,2) g ON true"),
            (vec![], none.clone())
        );
        assert_eq!(scope("SELECT * FROM pg_catalog.pg_class"), (vec![], vec!["pg_catalog.pg_class".to_owned()]));
        assert_eq!(scope("SELECT id FROM orders FOR UPDATE"), (vec![0], none.clone()));
        assert_eq!(scope("SELECT 1 FROM ((orders o JOIN customers c ON o.id = c.id))"), (vec![0, 1], none.clone()));
        assert_eq!(scope("SELECT 1 FROM (SELECT id FROM customers) AS a"), (vec![1], none.clone()));
        assert_eq!(scope("SELECT a IS DISTINCT FROM b FROM orders"), (vec![0], none));
    }

    #[test]
    fn names_are_columns_of_the_nearest_table_or_of_the_one_that_is_named() {
        let sql = "SELECT * FROM orders o WHERE customer_id IN (SELECT id FROM customers)";
        let known = known();
        let scope = Scope::of(&tokens_of(sql, Grammar::POSTGRES), &known);
        assert_eq!(scope.column(None, "id", 0, &known), Some(ColumnPlace { table: 0, column: 0 }));
        assert_eq!(scope.column(None, "ID", 1, &known), Some(ColumnPlace { table: 1, column: 0 }));
        assert_eq!(scope.column(Some("O"), "customer_id", 1, &known), Some(ColumnPlace { table: 0, column: 1 }));
        assert_eq!(scope.column(Some("x"), "id", 0, &known), None);
    }
}
