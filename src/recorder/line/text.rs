//! Names and strings with their escapes. Main type: [`Text`].

use std::borrow::Cow;

/// Text as it was sent, escapes included.
///
/// A backslash escapes what it must in its place; before any other character it is a backslash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    raw: &'a [u8],
    /// The characters that a backslash escapes here; empty where none was used.
    escapable: &'static [u8],
}

/// What a backslash escapes in the name of a measurement.
pub(super) const IN_MEASUREMENT: &[u8] = b", ";
/// What a backslash escapes in keys and in the values of tags.
pub(super) const IN_KEY: &[u8] = b",= ";
/// What a backslash escapes in a string.
pub(super) const IN_STRING: &[u8] = b"\"\\";

impl<'a> Text<'a> {
    /// Text that was sent as `raw`; `escapable` as above, empty where there is no escape in it.
    pub(super) fn new(raw: &'a [u8], escapable: &'static [u8]) -> Self {
        Text { raw, escapable }
    }

    /// As it was sent.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The text itself, without escapes. Borrowed where there were none.
    pub fn resolve(&self) -> Cow<'a, str> {
        if self.escapable.is_empty() {
            return String::from_utf8_lossy(self.raw);
        }
        let mut out = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some((&byte, behind)) = rest.split_first() {
            let escaped = behind.first().filter(|next| byte == b'\\' && self.escapable.contains(next));
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
        let resolve = |raw: &'static str, escapable| Text::new(raw.as_bytes(), escapable).resolve().into_owned();
        assert_eq!(resolve(r"a\ b\,c\=d\n", IN_KEY), r"a b,c=d\n");
        assert_eq!(resolve(r"a\ b\,c\=d", IN_MEASUREMENT), r"a b,c\=d");
        assert_eq!(resolve(r#"say \"so\" \\ \x"#, IN_STRING), r#"say "so" \ \x"#);
        assert_eq!(resolve(r"a\ b", &[]), r"a\ b");
        assert_eq!(resolve("a\\", IN_KEY), "a\\");
    }
}
