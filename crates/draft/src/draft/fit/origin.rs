//! Finds the table columns from which the columns of views come.
//!
//! Main function: [`with_origins`]. Invariant: the rows of a view are never queried, since that may scan whole tables: the values of its
//! columns are those of the table columns that it shows.

use crate::draft::catalogue::Catalogue;
use crate::draft::sql::{ColumnPlace, Grammar, Kind, Known, Role, Scope, Token, tokens_of};

/// The most tokens of a statement, or of a view's definition.
pub const TOKENS_MOST: usize = 10_000;
/// The deepest nesting of views that is followed.
pub const VIEWS_MOST: u32 = 8;

/// The catalogue, its names, and the grammar of statements.
#[derive(Clone, Copy)]
pub struct Views<'v> {
    pub catalogue: &'v Catalogue,
    pub known: &'v [Known],
    pub grammar: Grammar,
}

/// Returns the roles of parameters, with each column of a view replaced by the table column that it shows.
pub fn with_origins(views: Views<'_>, roles: &[Role]) -> Vec<Role> {
    let of = |role: &Role| match role {
        Role::Compared { column, how, is_plain } => {
            Role::Compared { column: origin(views, *column, VIEWS_MOST), how: *how, is_plain: *is_plain }
        }
        Role::Stored(column) => Role::Stored(origin(views, *column, VIEWS_MOST)),
        other => other.clone(),
    };
    roles.iter().map(of).collect()
}

/// Returns the column that a view shows as this one; the column itself if it belongs to no view or is computed.
fn origin(views: Views<'_>, column: ColumnPlace, depth: u32) -> ColumnPlace {
    let table = &views.catalogue.tables[column.table];
    let Some(definition) = table.definition.as_deref().filter(|_| depth > 0) else { return column };
    let tokens = tokens_of(definition, views.grammar);
    if tokens.len() > TOKENS_MOST {
        return column;
    }
    let Some(select) = tokens.iter().position(|token| token.is("select")) else { return column };
    let tokens = &tokens[select..];
    let scope = Scope::of(tokens, views.known);
    let shown = shown_as(tokens, &table.columns[column.column].name);
    let found = match shown {
        Shown::Column(qualifier, name) => scope.column(qualifier.as_deref(), &name, tokens[0].depth, views.known),
        Shown::Computed => None,
    };
    match found.filter(|found| *found != column) {
        Some(found) => origin(views, found, depth - 1),
        None => column,
    }
}

/// The expression that a view shows under a name.
#[derive(Debug, PartialEq)]
enum Shown {
    /// A column: the name or alias of its table, if given, and its own name.
    Column(Option<String>, String),
    /// Any other expression.
    Computed,
}

/// Returns the expression in the list of a SELECT for the column of this name.
fn shown_as(tokens: &[Token<'_>], name: &str) -> Shown {
    let depth = tokens[0].depth;
    let end = tokens.iter().position(|token| token.is("from") && token.depth == depth).unwrap_or(tokens.len());
    let list = tokens.get(1..end).unwrap_or_default();
    for part in list.split(|token| token.is_mark(",") && token.depth == depth) {
        let part = if part.first().is_some_and(|word| word.is("all")) { &part[1..] } else { part };
        let is_named = |token: &Token<'_>| token.name().is_some_and(|own| own.eq_ignore_ascii_case(name));
        let (value, is_it) = match part {
            [value @ .., word, alias] if word.is("as") => (value, is_named(alias)),
            [value @ .., last] => (if is_dotted(part) { part } else { value }, is_named(last)),
            [] => continue,
        };
        if !is_it {
            continue;
        }
        return match (is_dotted(value), value) {
            (true, [.., table, _, column]) => {
                column.name().map_or(Shown::Computed, |own| Shown::Column(table.name(), own))
            }
            (true, [column]) => column.name().map_or(Shown::Computed, |own| Shown::Column(None, own)),
            _ => Shown::Computed,
        };
    }
    // `SELECT *` names none of its columns.
    Shown::Column(None, name.to_owned())
}

/// Returns whether the tokens are a single name, or names separated by dots.
fn is_dotted(tokens: &[Token<'_>]) -> bool {
    tokens.len() % 2 == 1
        && tokens.iter().enumerate().all(|(place, token)| match place % 2 {
            0 => matches!(token.kind, Kind::Word | Kind::Name),
            _ => token.is_mark("."),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str, name: &str) -> Shown {
        shown_as(&tokens_of(sql, Grammar::POSTGRES), name)
    }

    #[test]
    fn a_view_shows_columns_under_names_of_its_own() {
        let sql = " SELECT c.country, o.customer AS buyer, sum(o.total) AS total, plain, lower(c.name), o.a + 1 AS b, s.o.d AS e FROM t AS o";
        let column = |table: Option<&str>, name: &str| Shown::Column(table.map(str::to_owned), name.to_owned());
        assert_eq!(shown(sql, "country"), column(Some("c"), "country"));
        assert_eq!(shown(sql, "BUYER"), column(Some("o"), "customer"));
        assert_eq!(shown(sql, "total"), Shown::Computed);
        assert_eq!(shown(sql, "plain"), column(None, "plain"));
        assert_eq!(shown(sql, "b"), Shown::Computed);
        assert_eq!(shown(sql, "e"), column(Some("o"), "d"));
        assert_eq!(shown("SELECT * FROM t WHERE a IN (SELECT b FROM u)", "id"), column(None, "id"));
        assert_eq!(shown("SELECT a FROM t", "other"), column(None, "other"));
    }
}
