//! Texts as they stand in the registry and in SQL. Main functions: [`literal`], [`encoded`] and [`decoded`].

/// Returns ASCII text as an SQL literal.
pub(super) fn literal(text: &str) -> String {
    // Backslashes have a meaning in MySQL; text with one, or that is not ASCII, must be written in another way.
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns text for the registry: percent-encoded where a database might interpret it.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'\\' | b'\'' | b'%' | b'?' | 0..=31 | 127..=255 => out.push_str(&format!("%{byte:02x}")),
            plain => out.push(char::from(plain)),
        }
    }
    out
}

/// Returns the text that [`encoded`] was given.
pub(super) fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (byte, hex) {
            (b'%', Some(value)) => {
                out.push(value);
                rest = &behind[2..];
            }
            _ => {
                out.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_survive_the_registry(name in "(?s).{0,40}") {
            let stored = encoded(&name);
            prop_assert!(stored.is_ascii() && !stored.contains(['\\', '\'', '?']), "{stored}");
            prop_assert_eq!(decoded(&stored), name);
        }
    }
}
