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
}
