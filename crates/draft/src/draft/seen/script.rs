//! Reads SQL files: statements separated by `;`.
//!
//! Main function: [`read`].

use super::collector::{Call, STATEMENT_BYTES_MOST, Takes};
use super::lines::Lines;
use crate::draft::sql::{Grammar, tokens_of};

/// Takes in an SQL file, and returns the number of statements.
pub fn read(lines: &mut Lines<'_>, collector: &mut dyn Takes) -> std::io::Result<u64> {
    let (mut text, mut taken, mut looked_at) = (String::new(), 0, 0);
    while let Some(line) = lines.next()? {
        // Commands of psql, and the DELIMITER command of mysql.
        let is_command = line.starts_with('\\') || line.to_ascii_uppercase().starts_with("DELIMITER ");
        if is_command && text.trim().is_empty() {
            continue;
        }
        text += &line;
        text.push('\n');
        // The text is examined again only after it has grown by an eighth, so that all examinations together take linear time.
        let has_end = line.trim_end().ends_with(';') && text.len() >= looked_at + looked_at / 8;
        if has_end {
            looked_at = text.len();
        }
        if (has_end && is_closed(&text, collector.grammar())) || text.len() > STATEMENT_BYTES_MOST {
            taken += take(&text, collector);
            text.clear();
            looked_at = 0;
        }
    }
    Ok(taken + take(&text, collector))
}

/// Returns whether no quoted text is open at the end: a `;` within one ends no statement.
fn is_closed(text: &str, grammar: Grammar) -> bool {
    tokens_of(text, grammar).last().is_some_and(|token| token.is_mark(";"))
}

fn take(text: &str, collector: &mut dyn Takes) -> u64 {
    let mut taken = 0;
    for sql in statements_of(text, collector.grammar()) {
        collector.take(&Call { sql, ..Call::default() });
        taken += 1;
    }
    taken
}

/// Returns the statements of a text, without the `;` between them.
pub fn statements_of(text: &str, grammar: Grammar) -> Vec<&str> {
    let mut statements = Vec::new();
    let (mut from, mut is_any) = (0, false);
    for token in tokens_of(text, grammar) {
        let at = token.text.as_ptr() as usize - text.as_ptr() as usize;
        if token.is_mark(";") {
            if is_any {
                statements.push(text[from..at].trim());
            }
            (from, is_any) = (at + 1, false);
        } else {
            if !is_any {
                from = at;
            }
            is_any = true;
        }
    }
    if is_any {
        statements.push(text[from..].trim());
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_divided_where_no_quotes_are() {
        let texts = statements_of("-- one\nSELECT ';' ; ;SELECT 2", Grammar::POSTGRES);
        assert_eq!(texts, ["SELECT ';'", "SELECT 2"]);
        assert_eq!(statements_of(" \n-- none", Grammar::MYSQL), [""; 0]);
    }
}
