//! Parts of the addresses of servers: host, port, and percent-encoded text such as `%40`.
//!
//! Invariant: no message repeats text that may be a password.

/// Reads the host and the port of an address. An IPv6 address is in brackets, which are removed; the host may be empty.
///
/// # Errors
/// A description of the error.
pub fn host_and_port(place: &str, usual_port: u16) -> Result<(String, u16), String> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("the address has a [ without its ]")?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                // The text may be a password that contains an @.
                None => {
                    return Err(format!(
                        "the address has something else than a port behind its ]; write [{host}]:{usual_port}"
                    ));
                }
            }
        }
        None => match place.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(
                    "the address has more than one colon behind the @; put an IPv6 address in brackets".to_owned()
                );
            }
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    Ok((decoded(host, "host")?, port.map_or(Ok(usual_port), read_port)?))
}

/// Reads the number of a port. Messages do not repeat words: where the `@` was forgotten, they are the password.
///
/// # Errors
/// A description of the error.
pub fn read_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port @ 1..) => Ok(port),
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(format!("the address has the port {text:?}; a port is a number from 1 to 65535"))
        }
        _ => Err(
            "the address has a word where a port is expected; write user:password@host:port, with / in a password as \
                  %2F"
            .to_owned(),
        ),
    }
}

/// Decodes percent-encoding. `part` names the text, for messages.
///
/// # Errors
/// A description of the error.
pub fn decoded(text: &str, part: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(format!("the {part} in the address has a % without two hexadecimal digits; write %25 for %"));
        };
        bytes.push((high * 16 + low) as u8);
        rest = &tail[2..];
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(format!("the {part} in the address is not UTF-8 text without zeros")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        let read = |place| host_and_port(place, 5432).unwrap();
        assert_eq!(read("db.example:6543"), ("db.example".to_owned(), 6543));
        assert_eq!(read("[::1]"), ("::1".to_owned(), 5432));
        assert_eq!(read("[::1]:9"), ("::1".to_owned(), 9));
        assert_eq!(read("%2Ftmp"), ("/tmp".to_owned(), 5432));
        assert_eq!(read(""), (String::new(), 5432));
        for (place, part) in [
            ("host:0", "1 to 65535"),
            ("host:70000", "70000"),
            ("host:secret", "a word"),
            ("host:", "1 to 65535"),
            ("::1", "brackets"),
            ("[::1", "]"),
            ("[::1]secret", "[::1]:5432"),
            ("host%2", "host"),
        ] {
            let error = host_and_port(place, 5432).unwrap_err();
            assert!(error.contains(part) && !error.contains("secret"), "{place}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back_and_nothing_panics(text in "\\PC{0,40}") {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            prop_assert_eq!(decoded(&encoded, "part"), Ok(text.clone()));
            let _ = (decoded(&text, "part"), host_and_port(&text, 1));
        }
    }
}
