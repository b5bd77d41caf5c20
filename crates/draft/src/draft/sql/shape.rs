//! Computes the shape of a statement: its text with a `?` for each value, and the values.
//!
//! Main function: [`shape_of`]. Invariant: statements that differ only in their values have the same shape.

use super::keyword::is_keyword;
use super::token::{Grammar, Kind, Token, tokens_of};

/// A statement without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The text, with `?` for each value and single spaces.
    pub text: String,
    /// The literal or parameter that stood at each `?`.
    pub literals: Vec<Literal>,
}

/// A literal or parameter of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// A parameter, with its number if it has one.
    Parameter(Option<u32>),
    /// A number, as written.
    Number(String),
    /// A text, without its quotes.
    Text(String),
}

impl Literal {
    /// Returns the literal value; `None` for a parameter.
    pub fn value(&self) -> Option<&str> {
        match self {
            Literal::Parameter(_) => None,
            Literal::Number(text) | Literal::Text(text) => Some(text),
        }
    }
}

impl Shape {
    /// Returns the text with each list of values shortened to one form, so that statements that differ only in the lengths of their
    /// lists have the same key.
    pub fn key(&self) -> String {
        let mut key = self.text.clone();
        for (list, one) in [("?, ?", "?"), ("(?), (?)", "(?)")] {
            while key.contains(list) {
                key = key.replace(list, one);
            }
        }
        key
    }
}

/// Returns the shape of a statement.
pub fn shape_of(sql: &str, grammar: Grammar) -> Shape {
    let mut tokens = tokens_of(sql, grammar);
    while tokens.last().is_some_and(|token| token.is_mark(";")) {
        tokens.pop();
    }
    let mut shape = Shape { text: String::with_capacity(sql.len()), literals: Vec::new() };
    let mut around = vec![Around::default()];
    let mut place = 0;
    while let Some(token) = tokens.get(place) {
        let before = place.checked_sub(1).map(|before| &tokens[before]);
        let is_value = matches!(token.kind, Kind::Number | Kind::Text | Kind::Parameter(_));
        let before_that = place.checked_sub(2).map(|before| &tokens[before]);
        if is_value && !is_structure(token, before, around.last()) {
            shape.put_value(token, (before, before_that), grammar);
        } else if let Some(number) = negative(&tokens, place) {
            put_gap(&mut shape.text, token, (before, before_that));
            shape.text.push('?');
            shape.literals.push(Literal::Number(format!("-{}", number.text)));
            place += 1;
        } else {
            put_gap(&mut shape.text, token, (before, before_that));
            shape.put(token);
        }
        look_around(&mut around, token, (before, before_that));
        place += 1;
    }
    shape
}

/// The state within a bracket, or outside all brackets.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    /// Whether the last keyword was BY: `ORDER BY`, `GROUP BY`.
    is_by: bool,
    /// Whether the bracket belongs to a type, as in `CAST(a AS DECIMAL(10, 2))`, and contains only numbers so far.
    is_length: bool,
}

fn look_around(
    around: &mut Vec<Around>,
    token: &Token<'_>,
    (before, before_that): (Option<&Token<'_>>, Option<&Token<'_>>),
) {
    if token.is_mark("(") {
        let is_named = before.is_some_and(|name| name.kind == Kind::Word);
        let is_type = before_that.is_some_and(|mark| mark.is("as") || mark.is_mark("::"));
        return around.push(Around { is_by: false, is_length: is_named && is_type });
    }
    if token.is_mark(")") && around.len() > 1 {
        around.pop();
        return;
    }
    let Some(own) = around.last_mut() else { return };
    own.is_length &= token.kind == Kind::Number || token.is_mark(",");
    if token.kind == Kind::Word && is_keyword(token.text) && !token.is("asc") && !token.is("desc") {
        own.is_by = token.is("by");
    }
}

impl Shape {
    /// Appends a token; a question mark that is not a parameter is doubled.
    fn put(&mut self, token: &Token<'_>) {
        if token.kind == Kind::Mark { self.text += &token.text.replace('?', "??") } else { self.text += token.text }
    }

    fn put_value(&mut self, token: &Token<'_>, before: (Option<&Token<'_>>, Option<&Token<'_>>), grammar: Grammar) {
        put_gap(&mut self.text, token, before);
        let before = before.0;
        let typed =
            before.filter(|before| is_type_of_literal(before) && !(grammar.has_backslashes && before.is("interval")));
        // Unlike a literal, a parameter cannot stand behind the name of a type.
        match typed {
            Some(name) => {
                let length = self.text.trim_end().len() - name.text.len();
                self.text.truncate(length);
                self.text += &format!("CAST(? AS {})", name.text);
            }
            None => self.text.push('?'),
        }
        self.literals.push(match token.kind {
            Kind::Number => Literal::Number(token.text.to_owned()),
            Kind::Text => Literal::Text(unquoted(token.text, grammar)),
            Kind::Parameter(number) => Literal::Parameter(number),
            _ => Literal::Parameter(None),
        });
    }
}

/// Returns whether a word gives the type of the literal behind it.
fn is_type_of_literal(token: &Token<'_>) -> bool {
    ["date", "time", "timestamp", "timestamptz", "interval"].iter().any(|name| token.is(name))
}

/// Returns whether a value is part of the statement's structure instead of an argument: the path of a JSON value, an interval, the number
/// of a column in `ORDER BY 2`, or the length of a type.
fn is_structure(token: &Token<'_>, before: Option<&Token<'_>>, around: Option<&Around>) -> bool {
    if matches!(token.kind, Kind::Parameter(_)) {
        return false;
    }
    let is_path = before.is_some_and(|mark| ["->", "->>", "#>", "#>>"].iter().any(|path| mark.is_mark(path)));
    let is_interval = before.is_some_and(|word| word.is("interval"));
    let is_number = token.kind == Kind::Number;
    let is_ordinal = before.is_some_and(|before| before.is("by") || before.is_mark(","))
        && around.is_some_and(|around| around.is_by);
    let is_length = around.is_some_and(|around| around.is_length);
    is_path || is_interval || (is_number && (is_ordinal || is_length))
}

/// Returns the number behind a minus sign that belongs to it.
fn negative<'t, 'a>(tokens: &'t [Token<'a>], place: usize) -> Option<&'t Token<'a>> {
    let number = tokens.get(place + 1).filter(|number| number.kind == Kind::Number)?;
    let is_sign = match place.checked_sub(1).map(|before| &tokens[before]) {
        None => false,
        Some(before) => match before.kind {
            Kind::Mark => before.text != ")" && before.text != "]",
            Kind::Word => is_keyword(before.text),
            _ => false,
        },
    };
    (tokens[place].is_mark("-") && is_sign).then_some(number)
}

/// Appends the space before a token: none around dots and casts, and none between a function and its bracket.
fn put_gap(text: &mut String, token: &Token<'_>, (before, before_that): (Option<&Token<'_>>, Option<&Token<'_>>)) {
    let Some(before) = before else { return };
    let is_tight = |token: &Token<'_>| token.is_mark(".") || token.is_mark("::");
    let is_call = token.is_mark("(") && before.kind == Kind::Word && !is_keyword(before.text);
    let is_closing = [",", ")", ";"].iter().any(|mark| token.is_mark(mark));
    // The columns of a table are separated from its name by a space; the bracket of a function is not.
    let is_call = is_call && before_that.is_none_or(|word| !word.is("into") && !word.is_mark("."));
    if is_tight(token) || is_tight(before) || is_closing || is_call || before.is_mark("(") || (before.is_mark("@")) {
        return;
    }
    let is_value = matches!(token.kind, Kind::Number | Kind::Text | Kind::Parameter(_));
    let is_spaced = token.is_apart
        || (is_value && before.kind == Kind::Word)
        || before.is_mark(",")
        || matches!(before.kind, Kind::Text | Kind::Parameter(_));
    if is_spaced || token.is_comparison() || before.is_comparison() {
        text.push(' ');
    }
}

/// Returns a text without its quotes.
fn unquoted(text: &str, grammar: Grammar) -> String {
    if let Some(rest) = text.strip_prefix('$') {
        let tag = rest.find('$').map_or(0, |end| end + 2);
        return text.get(tag..text.len().saturating_sub(tag)).unwrap_or_default().to_owned();
    }
    let has_backslashes = grammar.has_backslashes || text.starts_with(['e', 'E']);
    let quoted = text.trim_start_matches(['e', 'E']);
    let quote = quoted.chars().next().unwrap_or('\'');
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let mut out = String::with_capacity(inner.len());
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if has_backslashes => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('0') => out.push('\0'),
                Some(other) => out.push(other),
                None => {}
            },
            letter if letter == quote => {
                letters.next_if_eq(&quote);
                out.push(quote);
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(sql: &str) -> (String, Vec<String>) {
        let shape = shape_of(sql, Grammar::POSTGRES);
        (shape.text, shape.literals.iter().map(|literal| literal.value().unwrap_or("?").to_owned()).collect())
    }

    #[test]
    fn values_become_parameters() {
        let (text, values) = shape("SELECT *  FROM t\nWHERE a='it''s' AND b >= -5 AND c IN (1,2, 3) LIMIT 10;");
        assert_eq!(text, "SELECT * FROM t WHERE a = ? AND b >= ? AND c IN (?, ?, ?) LIMIT ?");
        assert_eq!(values, ["it's", "-5", "1", "2", "3", "10"]);
        assert_eq!(shape("SELECT a-5 FROM t WHERE b = $2 OR b = $1").0, "SELECT a-? FROM t WHERE b = ? OR b = ?");
        assert_eq!(shape("select $x$a ' b$x$").1, ["a ' b"]);
        assert_eq!(shape("select E'a\\'b\\n'").1, ["a'b\n"]);
    }

    #[test]
    fn what_a_statement_is_stays() {
        for sql in [
            "SELECT a, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC, 1",
            "SELECT CAST(a AS DECIMAL(10, 2)), b::varchar(5) FROM t",
            "SELECT doc->>'name' FROM t",
            "SELECT a FROM t WHERE b > now() - INTERVAL '1 hour'",
        ] {
            assert_eq!(shape(sql), (sql.to_owned(), Vec::new()));
        }
        assert_eq!(shape("SELECT 1 FROM t WHERE d > date '2026-01-01'").0, "SELECT ? FROM t WHERE d > CAST(? AS date)");
        assert_eq!(shape("SELECT a FROM t WHERE doc ? 'x'").0, "SELECT a FROM t WHERE doc ?? ?");
    }

    #[test]
    fn lists_of_any_length_are_one() {
        let key = |sql| shape_of(sql, Grammar::MYSQL).key();
        assert_eq!(key("SELECT a FROM t WHERE b IN (1,2,3)"), key("SELECT a FROM t WHERE b IN (7)"));
        assert_eq!(key("INSERT INTO t (a, b) VALUES (1,2),(3,4)"), key("INSERT INTO t (a, b) VALUES (5, 6)"));
    }

    #[test]
    fn digests_can_be_executed_again() {
        let digest = "SELECT COUNT ( * ) , `a` . `b` FROM `shop` . `a` WHERE `b` BETWEEN ? AND ? LIMIT ?";
        let shape = shape_of(digest, Grammar::MYSQL);
        assert_eq!(shape.text, "SELECT COUNT(*), `a`.`b` FROM `shop`.`a` WHERE `b` BETWEEN ? AND ? LIMIT ?");
        let insert = shape_of("INSERT INTO `t` ( `a` , `b` ) VALUES (?,?)", Grammar::MYSQL);
        assert_eq!(insert.text, "INSERT INTO `t` (`a`, `b`) VALUES (?, ?)");
        assert_eq!(shape_of("INSERT INTO t (a) VALUES (1)", Grammar::MYSQL).text, "INSERT INTO t (a) VALUES (?)");
    }

    proptest! {
        #[test]
        fn a_shape_has_as_many_parameters_as_values(sql in "[a-z'\"`$(), 0-9.=éE?/*-]{0,80}", which in 0..3_usize) {
            let grammar = [Grammar::POSTGRES, Grammar::MYSQL, Grammar::SQLITE][which];
            let shape = shape_of(&sql, grammar);
            let marks = shape.text.matches('?').count();
            prop_assert!(marks >= shape.literals.len());
        }
    }
}
