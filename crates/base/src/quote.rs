//! What came from a client, a database or a file, as it stands in reasons, errors and logs: short, whatever it was. Main function: [`quoted`].

use std::borrow::Cow;

/// Characters of what somebody else sent that are quoted.
const QUOTED_MAX: usize = 200;
/// A text of so many characters is not worth shortening by less.
const SPARED_MIN: usize = 40;

/// What somebody else sent, in so many characters that it can be recognised.
pub fn quoted(text: &str) -> Cow<'_, str> {
    shortened(text, QUOTED_MAX)
}

/// The same in quotation marks, with control characters written as in source code. The bound is for what is shown: an escaped character counts
/// as many as it is written with.
pub fn in_quotes(text: &str) -> String {
    let mut shown = String::from("\"");
    let (mut characters, mut rest) = (0, text.chars());
    while let Some(character) = rest.next() {
        // Within quotation marks an apostrophe means nothing.
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

/// The first characters of a text, and how many more there were.
pub fn shortened(text: &str, characters_max: usize) -> Cow<'_, str> {
    // Mostly it is short, and the bytes say so.
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
