//! Splits a statement into tokens: words and marks.
//!
//! Main function: [`tokens_of`]. Invariant: it runs in time proportional to the text's length, and panics on no text.

/// The rules by which a database reads texts, names and parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grammar {
    /// Whether a backslash in a text escapes the next letter.
    pub has_backslashes: bool,
    /// Whether double quotes enclose a text instead of a name.
    pub has_double_quoted_texts: bool,
    /// Whether a question mark is a parameter.
    pub has_question_marks: bool,
    /// Whether `$1` is a parameter and `$tag$` begins a text.
    pub has_dollars: bool,
}

impl Grammar {
    /// The grammar of PostgreSQL.
    pub const POSTGRES: Grammar = Grammar {
        has_backslashes: false,
        has_double_quoted_texts: false,
        has_question_marks: false,
        has_dollars: true,
    };
    /// The grammar of MySQL and MariaDB.
    pub const MYSQL: Grammar =
        Grammar { has_backslashes: true, has_double_quoted_texts: true, has_question_marks: true, has_dollars: false };
    /// The grammar of SQLite.
    pub const SQLITE: Grammar = Grammar {
        has_backslashes: false,
        has_double_quoted_texts: false,
        has_question_marks: true,
        has_dollars: false,
    };
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An unquoted name or keyword.
    Word,
    /// A quoted name.
    Name,
    /// A number without a sign.
    Number,
    /// A quoted text.
    Text,
    /// A parameter, with its number if it has one.
    Parameter(Option<u32>),
    /// Any other mark.
    Mark,
}

/// A word or a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// The kind of the token.
    pub kind: Kind,
    /// The text of the token as written.
    pub text: &'a str,
    /// The number of brackets open around the token; a bracket itself counts as outside.
    pub depth: u16,
    /// Whether white space or a comment precedes the token.
    pub is_apart: bool,
}

impl Token<'_> {
    /// Returns whether the token is this keyword, in any case.
    pub fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Returns whether the token is this mark.
    pub fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }

    /// Returns whether the token is a comparison operator.
    pub fn is_comparison(&self) -> bool {
        self.kind == Kind::Mark && matches!(self.text, "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" | "<=>" | "==")
    }

    /// Returns a name without its quotes, or a word as written.
    pub fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_owned()),
            Kind::Name => {
                let quote = self.text.chars().next()?;
                let inner = self.text.get(1..self.text.len().saturating_sub(1))?;
                Some(inner.replace(&format!("{quote}{quote}"), &quote.to_string()))
            }
            _ => None,
        }
    }
}

const MARKS: [&str; 14] = ["<=>", "->>", "#>>", "<=", ">=", "<>", "!=", "==", "::", "||", "->", "#>", "@>", "<@"];

/// Returns the tokens of a text, without comments.
pub fn tokens_of(sql: &str, grammar: Grammar) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut depth, mut is_apart) = (0, 0_u16, false);
    while let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) {
        let gap = length_of_gap(rest);
        if gap > 0 {
            at += gap;
            is_apart = true;
            continue;
        }
        let (kind, length) = next(rest, grammar);
        let text = &rest[..length];
        if kind == Kind::Mark && text == ")" {
            depth = depth.saturating_sub(1);
        }
        tokens.push(Token { kind, text, depth, is_apart });
        if kind == Kind::Mark && text == "(" {
            depth = depth.saturating_add(1);
        }
        at += length;
        is_apart = false;
    }
    tokens
}

/// Returns the length of the white space or comment at the start.
pub fn length_of_gap(rest: &str) -> usize {
    if rest.starts_with("--") {
        return rest.find('\n').map_or(rest.len(), |end| end + 1);
    }
    if let Some(comment) = rest.strip_prefix("/*") {
        return comment.find("*/").map_or(rest.len(), |end| end + 4);
    }
    rest.chars().next().filter(|letter| letter.is_whitespace()).map_or(0, char::len_utf8)
}

/// Returns the kind and length of the token at the start.
fn next(rest: &str, grammar: Grammar) -> (Kind, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        '\'' => (Kind::Text, quoted(rest, 0, grammar.has_backslashes)),
        '"' if grammar.has_double_quoted_texts => (Kind::Text, quoted(rest, 0, grammar.has_backslashes)),
        '"' | '`' => (Kind::Name, quoted(rest, 0, false)),
        'e' | 'E' if rest[1..].starts_with('\'') && grammar.has_dollars => (Kind::Text, quoted(rest, 1, true)),
        '?' if grammar.has_question_marks => (Kind::Parameter(None), 1),
        '$' if grammar.has_dollars => dollar(rest),
        '0'..='9' => (Kind::Number, length_of_number(rest)),
        '.' if rest[1..].starts_with(|next: char| next.is_ascii_digit()) => (Kind::Number, length_of_number(rest)),
        _ if first.is_alphanumeric() || first == '_' || first == '@' => (Kind::Word, length_of_word(rest)),
        _ => match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            Some(mark) => (Kind::Mark, mark.len()),
            None => (Kind::Mark, first.len_utf8()),
        },
    }
}

/// Returns the length of the quoted part that begins at a place; the rest of the text if the quote is not closed.
fn quoted(rest: &str, from: usize, has_backslashes: bool) -> usize {
    let bytes = rest.as_bytes();
    let quote = bytes[from];
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if has_backslashes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    // A backslash may have skipped past the end, or into the middle of a letter.
    (at.min(bytes.len())..=bytes.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(bytes.len())
}

fn dollar(rest: &str) -> (Kind, usize) {
    let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        return (Kind::Parameter(rest[1..=digits].parse().ok()), 1 + digits);
    }
    let word = rest[1..].find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(rest.len() - 1);
    let tag = &rest[..1 + word];
    match rest[tag.len()..].strip_prefix('$') {
        Some(body) => {
            let end = format!("{tag}$");
            let length = body.find(&end).map_or(rest.len(), |found| tag.len() + 1 + found + end.len());
            (Kind::Text, length)
        }
        None => (Kind::Mark, 1),
    }
}

fn length_of_number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    if rest.starts_with("0x") || rest.starts_with("0X") {
        return 2 + bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    }
    let mut at = bytes.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let digits = bytes[(at + 1 + sign).min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    at
}

fn length_of_word(rest: &str) -> usize {
    rest.find(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '@' | '$'))).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(sql: &str, grammar: Grammar) -> Vec<&str> {
        tokens_of(sql, grammar).iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_marks_and_values_are_told_apart() {
        assert_eq!(
            texts("SELECT a.b, 'it''s' -- c\n FROM t/* x */WHERE c>=1.5e3 AND d::date<>$12", Grammar::POSTGRES),
            [
                "SELECT", "a", ".", "b", ",", "'it''s'", "FROM", "t", "WHERE", "c", ">=", "1.5e3", "AND", "d", "::",
                "date", "<>", "$12"
            ]
        );
        let kinds = |sql, grammar| tokens_of(sql, grammar).iter().map(|token| token.kind).collect::<Vec<_>>();
        assert_eq!(kinds("\"a\" `b` ?", Grammar::MYSQL), [Kind::Text, Kind::Name, Kind::Parameter(None)]);
        assert_eq!(kinds("\"a\" ? $1", Grammar::POSTGRES), [Kind::Name, Kind::Mark, Kind::Parameter(Some(1))]);
        assert_eq!(kinds(r"'a\'b' E'\'' $x$ ' $x$", Grammar::POSTGRES)[0], Kind::Text);
        assert_eq!(texts(r"'a\'b'", Grammar::MYSQL), [r"'a\'b'"]);
        assert_eq!(texts("$x$ ' $x$ 1", Grammar::POSTGRES), ["$x$ ' $x$", "1"]);
        let depths: Vec<u16> = tokens_of("f(a, (b))", Grammar::MYSQL).iter().map(|token| token.depth).collect();
        assert_eq!(depths, [0, 0, 1, 1, 1, 2, 1, 0]);
        assert_eq!(tokens_of("\"a\"\"b\"", Grammar::POSTGRES)[0].name().as_deref(), Some("a\"b"));
    }

    proptest! {
        #[test]
        fn all_of_a_text_is_taken_and_nothing_panics(sql in "[a-z'\"`$?\\\\() 0-9.eé/*-]{0,60}", which in 0..3_usize) {
            let grammar = [Grammar::POSTGRES, Grammar::MYSQL, Grammar::SQLITE][which];
            let tokens = tokens_of(&sql, grammar);
            prop_assert!(tokens.iter().all(|token| !token.text.is_empty() && sql.contains(token.text)));
            tokens.iter().for_each(|token| drop(token.name()));
        }
    }
}
