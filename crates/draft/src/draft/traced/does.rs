//! Classifies a statement for a replay, and names it.
//!
//! Main functions: [`doing`], [`name_of`].

use crate::draft::sql::{Grammar, Kind, Token, is_keyword, locks, tokens_of, verb_of};
use crate::operation::KindNames;
use crate::trace::Does;

/// The role of a statement in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// The statement is part of the trace.
    Traced(Does),
    /// The statement sets whether statements of its session begin transactions by themselves from then on.
    Chains(bool),
    /// The statement is left out.
    Else,
}

/// Returns the role of a statement.
pub fn doing(sql: &str, grammar: Grammar) -> Doing {
    if let Some(verb) = verb_of(sql) {
        let reads = verb == "select" && !locks(&tokens_of(sql, grammar));
        return Doing::Traced(if reads { Does::Reads } else { Does::Writes });
    }
    /// The most words needed to classify a statement.
    const WORDS: usize = 4;
    let tokens = tokens_of(sql, grammar);
    let words: Vec<String> = tokens.iter().take(WORDS).map(|token| token.text.to_ascii_lowercase()).collect();
    let word = |place: usize| words.get(place).map_or("", String::as_str);
    match (word(0), word(1)) {
        ("begin", _) | ("start", "transaction") => Doing::Traced(Does::Begins),
        ("rollback", "to") | ("savepoint" | "release", _) => Doing::Traced(Does::Marks),
        ("rollback", _) if word(2) == "to" => Doing::Traced(Does::Marks),
        // The second phase of a two-phase commit may come from another session.
        ("commit" | "rollback", "prepared") => Doing::Else,
        ("commit" | "rollback" | "end" | "abort", _) => Doing::Traced(Does::Ends),
        ("set", _) => chains(&words).map_or(Doing::Else, Doing::Chains),
        _ => Doing::Else,
    }
}

/// Returns whether `SET autocommit = 0` or the like makes statements begin transactions; `None` for other settings.
fn chains(words: &[String]) -> Option<bool> {
    let place = words.iter().position(|word| word.trim_start_matches('@') == "autocommit")?;
    let value = words[place + 1..].iter().find(|word| !["=", ":="].contains(&word.as_str()))?;
    match value.as_str() {
        "0" | "off" | "false" => Some(true),
        "1" | "on" | "true" => Some(false),
        _ => None,
    }
}

/// Returns the name of a statement in results: its verb and its table.
pub fn name_of(sql: &str, does: Does, grammar: Grammar) -> String {
    /// The most letters of a name.
    const LETTERS: usize = 40;
    if does.is_control() {
        let words = sql.split_whitespace().take(2).collect::<Vec<_>>().join(" ").to_ascii_lowercase();
        return plain(&words, LETTERS);
    }
    let tokens = tokens_of(sql, Grammar { has_question_marks: true, ..grammar });
    let verb = verb_of(sql).unwrap_or("statement");
    let is_before_table = |token: &Token<'_>| ["from", "into", "update", "table"].iter().any(|word| token.is(word));
    let behind = tokens.iter().position(is_before_table).map_or(&[][..], |place| &tokens[place + 1..]);
    let is_name = |token: &&Token<'_>| match token.kind {
        Kind::Name => true,
        Kind::Word => !is_keyword(token.text),
        _ => false,
    };
    let first = behind.first().filter(is_name);
    // The part behind the dot of a name with a schema.
    let second = behind.get(2).filter(is_name).filter(|_| behind.get(1).is_some_and(|dot| dot.is_mark(".")));
    let table = second.or(first).and_then(Token::name).unwrap_or_default();
    // The first column compared stands before the comparison, and behind its table and a dot if these are written.
    let conditions = tokens.iter().position(|token| token.is("where")).map_or(&[][..], |place| &tokens[place + 1..]);
    let compares =
        |next: &Token<'_>| next.is_comparison() || ["in", "between", "like", "is"].iter().any(|word| next.is(word));
    let by = conditions.windows(2).find(|pair| is_name(&&pair[0]) && compares(&pair[1]));
    let by = by.and_then(|pair| pair[0].name());
    let name = format!("{verb} {table}{}", by.map_or(String::new(), |by| format!(" by {by}")));
    plain(name.trim_end(), LETTERS)
}

/// Returns a name of plain letters that is none of loadline's own words.
fn plain(text: &str, letters: usize) -> String {
    let name: String =
        text.chars().filter(|letter| letter.is_alphanumeric() || "_- ".contains(*letter)).take(letters).collect();
    let name = name.trim().to_owned();
    if name.is_empty() || KindNames::is_taken(&name) { format!("{name} statement").trim().to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_statements_do_is_told_by_their_words() {
        for (sql, expected) in [
            ("SELECT 1", Doing::Traced(Does::Reads)),
            ("select a from t for update", Doing::Traced(Does::Writes)),
            ("INSERT INTO t VALUES (1)", Doing::Traced(Does::Writes)),
            ("begin isolation level serializable", Doing::Traced(Does::Begins)),
            ("/* x */ START TRANSACTION READ ONLY", Doing::Traced(Does::Begins)),
            ("COMMIT", Doing::Traced(Does::Ends)),
            ("ROLLBACK", Doing::Traced(Does::Ends)),
            ("rollback work to savepoint a", Doing::Traced(Does::Marks)),
            ("ROLLBACK TO a", Doing::Traced(Does::Marks)),
            ("RELEASE SAVEPOINT a", Doing::Traced(Does::Marks)),
            ("COMMIT PREPARED 'x'", Doing::Else),
            ("SET autocommit=0", Doing::Chains(true)),
            ("SET @@session.autocommit = ON", Doing::Else),
            ("set @@autocommit = on", Doing::Chains(false)),
            ("SET NAMES utf8", Doing::Else),
            ("CREATE TABLE t (a int)", Doing::Else),
            ("", Doing::Else),
        ] {
            assert_eq!(doing(sql, Grammar::MYSQL), expected, "{sql}");
        }
    }

    #[test]
    fn names_say_what_is_done_to_which_table() {
        for (sql, name) in [
            ("SELECT * FROM orders WHERE id = ?", "select orders by id"),
            ("SELECT a FROM shop.\"Order Items\" o WHERE o.item IN (?)", "select Order Items by item"),
            ("INSERT INTO orders (a) VALUES (?)", "insert orders"),
            ("UPDATE orders SET a = ? WHERE b BETWEEN ? AND ?", "update orders by b"),
            ("SELECT count(*) FROM (SELECT 1) x", "select statement"),
            ("SELECT ?", "select statement"),
        ] {
            assert_eq!(name_of(sql, Does::Reads, Grammar::POSTGRES), name, "{sql}");
        }
        assert_eq!(name_of("START TRANSACTION READ ONLY", Does::Begins, Grammar::MYSQL), "start transaction");
    }
}
