//! The shape of a statement: its text with a `?` for each value, and the values.
//!
//! Main function: [`shape_of`]. Invariant: statements that differ in their values alone have one shape.

use super::keyword::is_keyword;
use super::token::{Grammar, Kind, Token, tokens_of};

/// A statement without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The text, with `?` for each value and single spaces.
    pub text: String,
    /// What stood at each `?`.
    pub literals: Vec<Literal>,
}

/// What stood at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// A parameter, and its number where it has one.
    Parameter(Option<u32>),
    /// A number, as it is written.
    Number(String),
    /// A text, without quotes.
    Text(String),
}

impl Literal {
    /// The value that it says; none for a parameter.
    pub fn value(&self) -> Option<&str> {
        match self {
            Literal::Parameter(_) => None,
            Literal::Number(text) | Literal::Text(text) => Some(text),
        }
    }
}

impl Shape {
    /// The text with lists of values of any length made one: statements that differ in how many values their lists have are told apart by
    /// nothing else.
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

/// The shape of a statement; of a digest of MySQL's too, whose lists `(...)` become as long as `list` says.
pub fn shape_of(sql: &str, grammar: Grammar) -> Shape {
    let mut tokens = tokens_of(sql, grammar);
    while tokens.last().is_some_and(|token| token.is_mark(";")) {
        tokens.pop();
    }
    let mut shape = Shape { text: String::with_capacity(sql.len()), literals: Vec::new() };
    let mut place = 0;
    while let Some(token) = tokens.get(place) {
        let before = place.checked_sub(1).map(|before| &tokens[before]);
        let is_value = matches!(token.kind, Kind::Number | Kind::Text | Kind::Parameter(_));
        if is_value && !is_structure(&tokens, place) {
            shape.put_value(token, before, grammar);
        } else if let Some(number) = negative(&tokens, place) {
            put_gap(&mut shape.text, token, before);
            shape.text.push('?');
            shape.literals.push(Literal::Number(format!("-{}", number.text)));
            place += 1;
        } else {
            put_gap(&mut shape.text, token, before);
            shape.put(token);
        }
        place += 1;
    }
    shape
}

impl Shape {
    /// A question mark of the text's own is written twice.
    fn put(&mut self, token: &Token<'_>) {
        if token.kind == Kind::Mark { self.text += &token.text.replace('?', "??") } else { self.text += token.text }
    }

    fn put_value(&mut self, token: &Token<'_>, before: Option<&Token<'_>>, grammar: Grammar) {
        put_gap(&mut self.text, token, before);
        let typed =
            before.filter(|before| is_type_of_literal(before) && !(grammar.has_backslashes && before.is("interval")));
        // A parameter cannot stand behind the name of a type as a literal can.
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

/// Whether a word says the type of the literal behind it.
fn is_type_of_literal(token: &Token<'_>) -> bool {
    ["date", "time", "timestamp", "timestamptz", "interval"].iter().any(|name| token.is(name))
}

/// Whether a value is a part of what the statement is, and no value that it is asked with.
fn is_structure(tokens: &[Token<'_>], place: usize) -> bool {
    let token = &tokens[place];
    if matches!(token.kind, Kind::Parameter(_)) {
        return false;
    }
    let before = |by: usize| place.checked_sub(by).map(|place| &tokens[place]);
    let is_path = before(1).is_some_and(|mark| ["->", "->>", "#>", "#>>"].iter().any(|path| mark.is_mark(path)));
    let is_interval = before(1).is_some_and(|word| word.is("interval"));
    if is_path || is_interval {
        return true;
    }
    token.kind == Kind::Number && (is_ordinal(tokens, place) || is_length_of_type(tokens, place))
}

/// Whether a number counts the columns of the answer: `ORDER BY 2`.
fn is_ordinal(tokens: &[Token<'_>], place: usize) -> bool {
    let depth = tokens[place].depth;
    let mut own =
        tokens[..place].iter().rev().take_while(|token| token.depth >= depth).filter(|token| token.depth == depth);
    let Some(before) = own.next() else { return false };
    if before.is("by") {
        return true;
    }
    let clause = own.find(|token| {
        token.is("by") || (token.kind == Kind::Word && is_keyword(token.text) && !token.is("asc") && !token.is("desc"))
    });
    before.is_mark(",") && clause.is_some_and(|clause| clause.is("by"))
}

/// Whether a number says how long a type is: `CAST(a AS DECIMAL(10, 2))`, `a::varchar(5)`.
fn is_length_of_type(tokens: &[Token<'_>], place: usize) -> bool {
    let depth = tokens[place].depth;
    let Some(open) = tokens[..place].iter().rposition(|token| token.depth < depth) else { return false };
    let inner = &tokens[open + 1..place];
    let is_list = inner.iter().all(|token| token.kind == Kind::Number || token.is_mark(","));
    let marks = |by: usize| open.checked_sub(by).map(|place| &tokens[place]);
    is_list
        && marks(1).is_some_and(|name| name.kind == Kind::Word)
        && marks(2).is_some_and(|mark| mark.is("as") || mark.is_mark("::"))
}

/// The number behind a minus that is its sign.
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

/// The space before a token: none around dots and casts, and none between a function and its bracket.
fn put_gap(text: &mut String, token: &Token<'_>, before: Option<&Token<'_>>) {
    let Some(before) = before else { return };
    let is_tight = |token: &Token<'_>| token.is_mark(".") || token.is_mark("::");
    let is_call = token.is_mark("(") && before.kind == Kind::Word && !is_keyword(before.text);
    let is_closing = [",", ")", ";"].iter().any(|mark| token.is_mark(mark));
    // A table's columns stand apart from its name; of a function nothing may.
    let is_call = is_call && !text.trim_end_matches(before.text).trim_end().to_ascii_uppercase().ends_with("INTO");
    if is_tight(token) || is_tight(before) || is_closing || is_call || before.is_mark("(") || (before.is_mark("@")) {
        return;
    }
    let is_spaced = token.is_apart || before.is_mark(",") || matches!(before.kind, Kind::Text | Kind::Parameter(_));
    if is_spaced || token.is_comparison() || before.is_comparison() {
        text.push(' ');
    }
}

/// A text without its quotes.
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
