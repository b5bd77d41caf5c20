//! The addresses of QuestDB's servers in `database.url`: `questdb://user:password@host:port/qdb`, with the port of the protocol of PostgreSQL.
//!
//! Invariant: an error never repeats the password.

use crate::database::Endpoint;
use crate::database::postgres;

/// The default port of the protocol of PostgreSQL.
const PORT: u16 = 8812;
/// The name of the only database.
const DATABASE: &str = "qdb";
const FORM: &str =
    "the form is questdb://user:password@host:port/qdb with the port of the protocol of PostgreSQL, usually 8812";

/// Returns the endpoint that an address names. The port is 8812 by default; what may follow a question mark is as with PostgreSQL.
///
/// # Errors
/// A sentence that names the wrong part and the correct form.
pub fn read_url(url: &str) -> Result<Endpoint, String> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("there is no ://; {FORM}"))?;
    if scheme != "questdb" {
        return Err(format!("{scheme}:// is not questdb://; {FORM}"));
    }
    let (place, options) = rest.split_once('?').map_or((rest, ""), |(place, options)| (place, options));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // The colons of an address in brackets are none in front of a port.
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    let port = if behind.contains(':') { String::new() } else { format!(":{PORT}") };
    let path = if path.trim_end_matches('/').is_empty() { DATABASE } else { path };
    let options = if options.is_empty() { String::new() } else { format!("?{options}") };
    let endpoint = postgres::read_url(&format!("postgres://{authority}{port}/{path}{options}"));
    let endpoint = endpoint.map_err(|what| format!("{}; {FORM}", what.replace("postgres://", "questdb://")))?;
    if endpoint.unix.is_some() {
        return Err(format!("the server has no unix socket; {FORM}"));
    }
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::tls::TlsMode;
    use proptest::prelude::*;

    #[test]
    fn all_parts_are_read() {
        let endpoint = read_url("questdb://ann:p%40ss:w@db.example:8813/other?sslmode=require").unwrap();
        assert_eq!(endpoint.tcp, Some(("db.example".into(), 8813)));
        assert_eq!((&*endpoint.user, &*endpoint.password, &*endpoint.database), ("ann", "p@ss:w", "other"));
        assert_eq!(endpoint.tls.mode, TlsMode::Require);
        let endpoint = read_url("questdb://admin@localhost").unwrap();
        assert_eq!((endpoint.tcp, &*endpoint.database), (Some(("localhost".into(), 8812)), "qdb"));
        assert_eq!(read_url("questdb://a@[::1]/").unwrap().tcp, Some(("::1".into(), 8812)));
    }

    #[test]
    fn errors_name_the_part_and_not_the_password() {
        for (url, part) in [
            ("localhost", "://"),
            ("postgres://a:secret@h", "postgres://"),
            ("questdb://a:secret@/qdb", "host"),
            ("questdb://h/qdb", "user"),
            ("questdb://a:secret@h:99999", "port"),
            ("questdb://a:secret@h?size=1", "size"),
            ("questdb://a:secret@h?host=/tmp", "unix socket"),
        ] {
            let error = read_url(url).unwrap_err();
            assert!(error.contains(part) && error.contains(FORM) && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_addresses_never_panic(rest in "\\PC{0,40}") {
            let _ = read_url(&format!("questdb://{rest}"));
        }
    }
}
