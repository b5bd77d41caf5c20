//! Quotations of text from a client, a database or a file in reasons, errors and logs, always short. Main function: [`quoted`].

use std::borrow::Cow;
use std::io::Write;

/// Largest number of characters that are quoted of untrusted text.
const QUOTED_MAX: usize = 200;
/// Smallest number of characters that shortening must save.
const SPARED_MIN: usize = 40;

/// Shortens an untrusted text to a length at which it can still be recognised.
pub fn quoted(text: &str) -> Cow<'_, str> {
    shortened(text, QUOTED_MAX)
}

/// Quotes a text in quotation marks, with control characters written as in source code. The bound applies to the shown form: an escaped character counts
/// as many characters as its escape has.
pub fn in_quotes(text: &str) -> String {
    let mut shown = String::from("\"");
    let (mut characters, mut rest) = (0, text.chars());
    while let Some(character) = rest.next() {
        // Within quotation marks an apostrophe needs no escape.
        let is_plain = character == '\'';
        let width = if is_plain { 1 } else { character.escape_debug().count() };
        if characters + width > QUOTED_MAX {
            let more = 1 + rest.count();
            return format!("{shown}…\" ({more} characters more)");
        }
        characters += width;
        if is_plain { shown.push(character) } else { shown.extend(character.escape_debug()) }
    }
    shown.push('"');
    shown
}

/// Returns the first characters of a text, and the number of the others.
pub fn shortened(text: &str, characters_max: usize) -> Cow<'_, str> {
    // Most texts are short, which their number of bytes shows.
    if text.len() <= characters_max + SPARED_MIN {
        return Cow::Borrowed(text);
    }
    let more = text.chars().count().saturating_sub(characters_max);
    if more <= SPARED_MIN {
        return Cow::Borrowed(text);
    }
    let end = text.char_indices().nth(characters_max).map_or(text.len(), |(end, _)| end);
    Cow::Owned(format!("{}… ({more} characters more)", &text[..end]))
}

/// Writes a text as a JSON string.
pub fn write_json_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain_from = 0;
    for (place, byte) in text.iter().enumerate() {
        if *byte < 0x20 || matches!(byte, b'"' | b'\\') {
            out.extend_from_slice(&text[plain_from..place]);
            plain_from = place + 1;
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
                // Writing into a vector cannot fail.
                control => drop(write!(out, "\\u{control:04x}")),
            }
        }
    }
    out.extend_from_slice(&text[plain_from..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_between_characters() {
        assert_eq!(quoted("short"), "short");
        assert_eq!(quoted(&"ä".repeat(240)), "ä".repeat(240));
        let cut = quoted(&"ä".repeat(100_000)).into_owned();
        assert_eq!(cut, "ä".repeat(200) + "… (99800 characters more)");
    }

    #[test]
    fn what_is_in_quotation_marks_is_bounded_as_it_is_shown() {
        for text in ["", "oulu", "O'Neill", "a \"b\" \\ c\n", "ä", "\u{202e}x"] {
            assert_eq!(in_quotes(text), format!("{text:?}"));
        }
        // A character that is shown as six counts as six.
        assert_eq!(in_quotes(&"\u{18}".repeat(500)), format!("\"{}…\" (467 characters more)", "\\u{18}".repeat(33)));
        assert_eq!(in_quotes(&"a".repeat(200)), format!("\"{}\"", "a".repeat(200)));
        assert_eq!(in_quotes(&"a".repeat(201)), format!("\"{}…\" (1 characters more)", "a".repeat(200)));
    }
}
