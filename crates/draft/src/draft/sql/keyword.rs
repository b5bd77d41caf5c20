//! Keywords, as far as they are needed to distinguish names from other words.

use super::token::{Token, length_of_gap};

/// Words that, unquoted, cannot be names of tables, columns or functions.
const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "ANY",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CONFLICT",
    "CROSS",
    "DELETE",
    "DESC",
    "DISTINCT",
    "DO",
    "DUPLICATE",
    "ELSE",
    "END",
    "ESCAPE",
    "EXCEPT",
    "EXISTS",
    "FETCH",
    "FOR",
    "FORCE",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IGNORE",
    "ILIKE",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTO",
    "IS",
    "JOIN",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOCK",
    "NATURAL",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "ONLY",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "REGEXP",
    "REPLACE",
    "RETURNING",
    "RIGHT",
    "RLIKE",
    "SELECT",
    "SET",
    "SOME",
    "STRAIGHT_JOIN",
    "THEN",
    "UNION",
    "UPDATE",
    "USE",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
    "XOR",
];

/// Returns whether an unquoted word cannot be a name.
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word.to_ascii_uppercase().as_str()).is_ok()
}

/// Returns the verb of a statement that a study can contain: `select`, `insert`, `update` or `delete`; `None` for any other statement.
pub fn verb_of(sql: &str) -> Option<&'static str> {
    // Brackets and comments may stand before the verb.
    let mut rest = sql;
    loop {
        let gap = length_of_gap(rest) + usize::from(rest.starts_with('('));
        if gap == 0 {
            break;
        }
        rest = rest.get(gap..).unwrap_or_default();
    }
    if !rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        return None;
    }
    let mut words =
        rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').filter(|word| !word.is_empty());
    let verb = |word: &str| match word.to_ascii_lowercase().as_str() {
        "select" | "values" | "table" => Some("select"),
        "insert" => Some("insert"),
        "replace" => Some("replace"),
        "update" => Some("update"),
        "delete" => Some("delete"),
        _ => None,
    };
    let first = words.next()?;
    if !first.eq_ignore_ascii_case("with") {
        return verb(first);
    }
    let writes = ["insert", "update", "delete"];
    Some(words.filter_map(verb).find(|verb| writes.contains(verb)).unwrap_or("select"))
}

/// Returns whether a query locks the rows that it finds.
pub fn locks(tokens: &[Token<'_>]) -> bool {
    let is_lock =
        |pair: &[Token<'_>]| pair[0].is("for") && ["update", "share", "no", "key"].iter().any(|how| pair[1].is(how));
    tokens.windows(2).any(is_lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_so_that_it_can_be_searched() {
        assert!(KEYWORDS.is_sorted());
        assert!(
            is_keyword("where") && is_keyword("ALL") && is_keyword("xor") && !is_keyword("count") && !is_keyword("id")
        );
    }

    #[test]
    fn statements_are_told_by_what_they_do() {
        for (sql, verb) in [
            ("select 1", Some("select")),
            ("(SELECT 1)", Some("select")),
            ("WITH a AS (SELECT 1) SELECT * FROM a", Some("select")),
            ("WITH a AS (SELECT 1) DELETE FROM t", Some("delete")),
            ("insert into t values (1)", Some("insert")),
            (" -- a\n/* b */ ((select 1))", Some("select")),
            ("'select'", None),
            ("SET x = 1", None),
            ("BEGIN", None),
            ("", None),
        ] {
            assert_eq!(verb_of(sql), verb, "{sql}");
        }
    }
}
