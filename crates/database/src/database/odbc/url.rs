//! `database.url` of a database behind an ODBC driver: `odbc://` and a connection string, as in `odbc://DSN=shop;UID=me`.
//!
//! Invariant: the connection string that is kept for messages has no password.

use crate::database::Endpoint;
use crate::written::attributes::{attributes, without_passwords};

/// The form of the address, for messages.
const FORM: &str = "write odbc:// and a connection string, as in odbc://DSN=shop;UID=me or odbc://Driver=PostgreSQL Unicode;Server=db.example;Database=shop;UID=me";
/// Longest connection string, in characters: driver managers and drivers have buffers of a fixed size.
const LENGTH_MOST: usize = 1_000;

/// Reads an address. The endpoint has the connection string, without the password, as the name of its database.
///
/// # Errors
/// A sentence that names the wrong part, without the password, and the form.
pub fn read_url(url: &str) -> Result<Endpoint, String> {
    let string =
        url.strip_prefix("odbc://").ok_or_else(|| format!("the address does not begin with odbc://; {FORM}"))?;
    if string.chars().count() > LENGTH_MOST || string.contains(['\0', '\n', '\r']) {
        return Err(format!("the connection string has more than {LENGTH_MOST} characters, or several lines; {FORM}"));
    }
    let all = attributes(string);
    if let Some(nameless) = all.iter().position(|attribute| attribute.name.is_empty()) {
        return Err(format!("attribute {} of the connection string has no name; {FORM}", nameless + 1));
    }
    let is_named = |name: &str| all.iter().any(|one| one.name.eq_ignore_ascii_case(name) && !one.value.is_empty());
    if !["DSN", "Driver", "FileDSN"].into_iter().any(is_named) {
        return Err(format!("the connection string has neither DSN nor Driver; {FORM}"));
    }
    let password = all.iter().find(|attribute| attribute.is_password());
    let password = password.map_or(String::new(), |attribute| attribute.value.clone());
    Ok(Endpoint { database: without_passwords(string), password, ..Endpoint::default() })
}

/// Returns the connection string for the driver, with the password.
pub(super) fn with_password(string: &str, password: &str) -> String {
    let special = |letter: char| matches!(letter, ';' | '{' | '}' | '=' | ' ');
    match password {
        "" => string.to_owned(),
        plain if !plain.contains(special) => format!("{string};PWD={plain}"),
        other => format!("{string};PWD={{{}}}", other.replace('}', "}}")),
    }
}

/// Returns whether a connection string has an attribute of one of these names.
pub(super) fn has(string: &str, names: &[&str]) -> bool {
    attributes(string).iter().any(|attribute| names.iter().any(|name| attribute.name.eq_ignore_ascii_case(name)))
}

/// Returns whether a connection string names a driver of SQLite.
fn is_of_sqlite(string: &str) -> bool {
    let mut drivers = attributes(string).into_iter().filter(|attribute| attribute.name.eq_ignore_ascii_case("Driver"));
    drivers.any(|driver| driver.value.to_lowercase().contains("sqlite"))
}

/// Returns whether an address names a driver of SQLite. What is behind a data source is not known before it is opened.
pub(super) fn is_of_sqlite_address(url: &str) -> bool {
    url.strip_prefix("odbc://").is_some_and(is_of_sqlite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_is_a_connection_string_and_a_password() {
        let endpoint = read_url("odbc://Driver={PostgreSQL Unicode};PWD={a;b}}c};UID=me").unwrap();
        assert_eq!(endpoint.database, "Driver={PostgreSQL Unicode};UID=me");
        assert_eq!(endpoint.password, "a;b}c");
        assert_eq!(
            with_password(&endpoint.database, &endpoint.password),
            "Driver={PostgreSQL Unicode};UID=me;PWD={a;b}}c}"
        );
        assert_eq!(with_password("DSN=shop", "plain"), "DSN=shop;PWD=plain");
        assert_eq!(with_password("DSN=shop", ""), "DSN=shop");
        assert!(is_of_sqlite("driver=SQLite3;Database=a") && !is_of_sqlite("DSN=sqlite"));
        assert!(has("DSN=shop;Option=2", &["OPTIONS", "OPTION"]) && !has("DSN=OPTION", &["OPTION"]));
    }

    #[test]
    fn a_wrong_address_is_explained_without_its_password() {
        for (url, part) in [
            ("postgres://me:secret@host/d", "odbc://"),
            ("odbc://UID=me;PWD=secret", "neither DSN nor Driver"),
            ("odbc://DSN=;PWD=secret", "neither DSN nor Driver"),
            ("odbc://DSN=a;=secret", "attribute 2"),
            ("odbc://DSN=a\nPWD=secret", "several lines"),
        ] {
            let error = read_url(url).unwrap_err();
            assert!(error.contains(part) && error.contains(FORM) && !error.contains("secret"), "{url}: {error}");
        }
        assert!(read_url(&format!("odbc://DSN={}", "a".repeat(1_000))).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_addresses_never_panic(rest in "\\PC{0,40}") {
            let _ = read_url(&format!("odbc://{rest}"));
        }
    }
}
