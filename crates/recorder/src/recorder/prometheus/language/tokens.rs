//! The words of a question. Main function: [`tokens`].

/// A word with its place: the number of its first character, from 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    /// The place.
    pub(super) place: usize,
    /// The word.
    pub(super) token: Token,
}

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name of a metric, a label, a function.
    Word(String),
    /// A text in quotes, with its escapes resolved.
    Text(String),
    /// A number or a duration, as it is written.
    Number(String),
    /// Punctuation or an operator.
    Sign(&'static str),
}

const SIGNS: [&str; 19] =
    ["=~", "!~", "!=", "==", "{", "}", "(", ")", "[", "]", ",", "=", "+", "-", "*", "/", "@", ":", "<"];

/// Returns the words of a question.
///
/// # Errors
/// The place and a sentence.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, (usize, String)> {
    let (mut found, mut rest, mut place) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let (token, bytes) = if first.is_whitespace() {
            (None, first.len_utf8())
        } else if first == '#' {
            (None, rest.find('\n').unwrap_or(rest.len()))
        } else if first.is_ascii_alphabetic() || first == '_' || (first == ':' && begins_name(rest)) {
            let bytes = length(rest, |c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
            (Some(Token::Word(rest[..bytes].to_owned())), bytes)
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            let bytes = length(rest, |c| c.is_ascii_alphanumeric() || c == '.');
            (Some(Token::Number(rest[..bytes].to_owned())), bytes)
        } else if matches!(first, '"' | '\'' | '`') {
            let (text, bytes) = quoted(rest, first).map_err(|says| (place, says))?;
            (Some(Token::Text(text)), bytes)
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Some(Token::Sign(sign)), sign.len())
        } else {
            return Err((place, format!("unexpected character: {first:?}")));
        };
        found.extend(token.map(|token| Placed { place, token }));
        place += rest[..bytes].chars().count();
        rest = &rest[bytes..];
    }
    Ok(found)
}

/// Returns whether a colon begins a metric's name.
fn begins_name(text: &str) -> bool {
    text[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':')
}

fn length(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// Returns the text behind a quote, and its length with both quotes.
fn quoted(text: &str, quote: char) -> Result<(String, usize), String> {
    let mut out = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Ok((out, at + 1)),
            '\\' if quote != '`' => match letters.next().map(|(_, escaped)| escaped) {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(escaped @ ('\\' | '"' | '\'')) => out.push(escaped),
                Some(other) => {
                    return Err(format!("the escape \\{other} is not known; there are \\n, \\t, \\r, \\\\ and \\\""));
                }
                None => break,
            },
            letter => out.push(letter),
        }
    }
    Err("unterminated quoted string".to_owned())
}
