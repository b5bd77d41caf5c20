//! Addresses of existing servers, as in `mysql://user:password@host:port/database?socket=/path`.
//!
//! Invariant: an error never repeats the password.

use crate::database::Endpoint;
use crate::database::address::{decoded, host_and_port};
use crate::database::tls::{Tls, TlsMode, TlsOption, TlsParts};

const PORT: u16 = 3306;
const FORM: &str =
    "the form is mysql://user:password@host:port/database, or mysql://user@localhost/database?socket=/path";

/// Reads an address. Characters with a special meaning in addresses are written as `%40`.
///
/// # Errors
/// A sentence that names the wrong part and the correct form.
pub fn read_url(url: &str) -> Result<Endpoint, String> {
    read(url).map_err(|what| format!("{what}; {FORM}"))
}

fn read(url: &str) -> Result<Endpoint, String> {
    let (scheme, rest) = url.split_once("://").ok_or("there is no ://")?;
    if !["mysql", "mariadb"].contains(&scheme) {
        return Err(format!("{scheme}:// is not mysql:// or mariadb://"));
    }
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').ok_or("the name of the database is missing")?;
    let (account, place) = authority.rsplit_once('@').ok_or("the user before @ is missing")?;
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let place = host_and_port(place, PORT)?;
    if place.0.is_empty() {
        return Err("the host behind @ is missing".to_owned());
    }
    let mut endpoint = Endpoint {
        unix: None,
        tcp: Some(place),
        namespace: None,
        user: decoded(user, "user")?,
        password: decoded(password, "password")?,
        database: decoded(database, "name of the database")?,
        tls: Tls::default(),
    };
    if endpoint.user.is_empty() {
        return Err("the user before @ is missing".to_owned());
    }
    if endpoint.database.is_empty() || endpoint.database.contains('/') {
        return Err("the name of the database is missing".to_owned());
    }
    let mut tls = TlsParts::default();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name, TlsOption::of(name)) {
            ("socket", _) if !value.is_empty() => {
                endpoint.unix = Some(decoded(value, "path of the socket")?.into());
                endpoint.tcp = None;
            }
            ("connect-timeout" | "charset" | "collation" | "statement-cache-capacity", _) => {}
            (_, Some(of_tls)) if of_tls != TlsOption::ChannelBinding => {
                tls.set(of_tls, name, &decoded(value, name)?)?;
            }
            _ => {
                return Err(format!(
                    "the option {name:?} is not known; there are socket, ssl-mode, ssl-ca, ssl-cert and ssl-key"
                ));
            }
        }
    }
    endpoint.tls = tls.tls(TlsMode::Prefer)?;
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_parts_are_read() {
        let endpoint = read_url("mysql://ann:p%40ss:w@db.example:3307/measure").unwrap();
        assert_eq!(endpoint.tcp, Some(("db.example".into(), 3307)));
        assert_eq!((&*endpoint.user, &*endpoint.password, &*endpoint.database), ("ann", "p@ss:w", "measure"));
        let endpoint = read_url("mariadb://root@localhost/test?socket=/run/my%20sql.sock").unwrap();
        assert_eq!(endpoint.unix, Some("/run/my sql.sock".into()));
        assert_eq!(endpoint.tcp, None);
        assert_eq!(read_url("mysql://a@[::1]/d").unwrap().tcp, Some(("::1".into(), 3306)));
        assert_eq!(read_url("mysql://a@[::1]:9/d").unwrap().tcp, Some(("::1".into(), 9)));
    }

    #[test]
    fn errors_name_the_part_and_not_the_password() {
        for (url, part) in [
            ("localhost", "://"),
            ("postgres://a:secret@h/d", "postgres://"),
            ("mysql://h/d", "user"),
            ("mysql://:secret@h/d", "user"),
            ("mysql://a:secret@h", "database"),
            ("mysql://a:secret@h/", "database"),
            ("mysql://a:secret@/d", "host"),
            ("mysql://a:secret@h:99999/d", "99999"),
            ("mysql://a:secret%4@h/d", "password"),
            ("mysql://a:secret@h/d?ssl=true", "ssl"),
            ("mysql://a:secret@[::1/d", "]"),
        ] {
            let error = read_url(url).unwrap_err();
            assert!(error.contains(part) && error.contains(FORM) && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in ".{0,40}") {
            let _ = read_url(&text);
            let _ = read_url(&format!("mysql://{text}"));
        }
    }
}
