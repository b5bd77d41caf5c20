//! The attributes of an ODBC connection string, as in `DSN=shop;UID=me;PWD={a;b}`. Main function: [`attributes`].
//!
//! Invariant: every byte of a value belongs to its attribute, so that a password is removed whole.

use std::ops::Range;

/// An attribute of a connection string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Name, without the spaces around it.
    pub name: &'a str,
    /// Value, without the spaces and the braces around it; two closing braces in it stand for one.
    pub value: String,
    /// Place of the value in the text, with its braces.
    pub place: Range<usize>,
}

impl Attribute<'_> {
    /// Returns whether the value is a password.
    pub fn is_password(&self) -> bool {
        ["PWD", "PASSWORD"].iter().any(|name| self.name.eq_ignore_ascii_case(name))
    }
}

/// Returns the attributes of a connection string. A part without `=` is an attribute whose value is empty.
pub fn attributes(text: &str) -> Vec<Attribute<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = at + text[at..].find(['=', ';']).unwrap_or(text.len() - at);
        let name = text[at..end].trim();
        let from = if text[end..].starts_with('=') { end + 1 } else { end };
        let to = from + length_of_value(&text[from..]);
        if !name.is_empty() || from < to {
            found.push(Attribute { name, value: plain(&text[from..to]), place: from..to });
        }
        at = to + 1;
    }
    found
}

/// Returns a connection string without its passwords.
pub fn without_passwords(text: &str) -> String {
    let kept = attributes(text).into_iter().filter(|attribute| !attribute.is_password());
    let shown = kept.map(|attribute| match &text[attribute.place.clone()] {
        "" => attribute.name.to_owned(),
        value => format!("{}={value}", attribute.name),
    });
    shown.collect::<Vec<_>>().join(";")
}

/// Returns the length of the value at the start of a text: up to a `;` that is not within braces.
fn length_of_value(text: &str) -> usize {
    let start = text.len() - text.trim_start().len();
    let mut at = start;
    if text[start..].starts_with('{') {
        let mut rest = start + 1;
        at = loop {
            let Some(closing) = text[rest..].find('}').map(|place| rest + place) else { break text.len() };
            if !text[closing + 1..].starts_with('}') {
                break closing + 1;
            }
            rest = closing + 2;
        };
    }
    at + text[at..].find(';').unwrap_or(text.len() - at)
}

fn plain(value: &str) -> String {
    let value = value.trim();
    match value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(inner) => inner.replace("}}", "}"),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_have_names_and_values_with_and_without_braces() {
        let found = attributes(" Driver = {SQLite 3} ;Database=/tmp/a b.db;;PWD={a;}}b};trusted;Empty=");
        let pairs: Vec<_> = found.iter().map(|attribute| (attribute.name, attribute.value.as_str())).collect();
        let right =
            [("Driver", "SQLite 3"), ("Database", "/tmp/a b.db"), ("PWD", "a;}b"), ("trusted", ""), ("Empty", "")];
        assert_eq!(pairs, right);
        assert!(attributes("").is_empty() && attributes(";;").is_empty());
    }

    #[test]
    fn a_connection_string_loses_its_passwords_and_nothing_else() {
        for (text, right) in [
            ("DSN=shop;UID=me;PWD=secret", "DSN=shop;UID=me"),
            ("DSN=shop;pwd={se;cr}}et};UID=me", "DSN=shop;UID=me"),
            ("Password = secret;DSN={my shop}", "DSN={my shop}"),
            ("DSN=shop;PWD={secret", "DSN=shop"),
            ("DSN=shop", "DSN=shop"),
        ] {
            assert_eq!(without_passwords(text), right);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_texts_never_panic(text in "\\PC{0,40}", near in "[=;{} aPWD]{0,30}") {
            let _ = (without_passwords(&text), without_passwords(&near));
        }
    }
}
