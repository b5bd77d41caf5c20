//! Names and strings with their escapes. Main type: [`Text`].

use std::borrow::Cow;

/// Text as it was sent, including escapes.
///
/// A backslash escapes the characters that are special in its place; before any other character it stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    raw: &'a [u8],
    escapes: Escapes,
}

/// The characters that a backslash escapes in a text. One byte, because a batch has a text for each name and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// Nothing: the text has no backslash that could escape anything.
    None,
    /// Commas and spaces, in the name of a measurement.
    InMeasurement,
    /// Commas, equals signs and spaces, in keys and in the values of tags.
    InKey,
    /// Quotes and backslashes, in a string.
    InString,
}

impl Escapes {
    /// Returns whether a backslash escapes this character.
    pub(super) fn are_of(self, character: u8) -> bool {
        match self {
            Escapes::None => false,
            Escapes::InMeasurement => matches!(character, b',' | b' '),
            Escapes::InKey => matches!(character, b',' | b'=' | b' '),
            Escapes::InString => matches!(character, b'"' | b'\\'),
        }
    }
}

impl<'a> Text<'a> {
    /// Creates a text from its raw form and what backslashes escape in it: nothing if it has no backslash.
    pub(super) fn new(raw: &'a [u8], escapes: Escapes) -> Self {
        Text { raw, escapes }
    }

    /// Returns the text as it was sent.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Returns the text without escapes; borrowed if there are none.
    pub fn resolve(&self) -> Cow<'a, str> {
        if self.escapes == Escapes::None {
            return String::from_utf8_lossy(self.raw);
        }
        let mut out = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some((&byte, behind)) = rest.split_first() {
            let escaped = behind.first().filter(|next| byte == b'\\' && self.escapes.are_of(**next));
            match escaped {
                Some(next) => {
                    out.push(*next);
                    rest = &behind[1..];
                }
                None => {
                    out.push(byte);
                    rest = behind;
                }
            }
        }
        match String::from_utf8(out) {
            Ok(text) => Cow::Owned(text),
            Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_must_be_escaped_loses_its_backslash() {
        let resolve = |raw: &'static str, escapes| Text::new(raw.as_bytes(), escapes).resolve().into_owned();
        assert_eq!(resolve(r"a\ b\,c\=d\n", Escapes::InKey), r"a b,c=d\n");
        assert_eq!(resolve(r"a\ b\,c\=d", Escapes::InMeasurement), r"a b,c\=d");
        assert_eq!(resolve(r#"say \"so\" \\ \x"#, Escapes::InString), r#"say "so" \ \x"#);
        assert_eq!(resolve(r"a\ b", Escapes::None), r"a\ b");
        assert_eq!(resolve("a\\", Escapes::InKey), "a\\");
    }
}
