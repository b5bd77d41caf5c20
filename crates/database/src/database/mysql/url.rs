//! Addresses of existing servers, as in `mysql://user:password@host:port/database?socket=/path`.
//!
//! Invariant: an error never repeats the password.

use crate::database::Endpoint;
use crate::database::tls::{Tls, TlsMode, TlsOption, TlsParts};

const PORT: u16 = 3306;
const FORM: &str =
    "the form is mysql://user:password@host:port/database, or mysql://user@localhost/database?socket=/path";

/// Reads an address. Letters that mean something else there are written as `%40`.
///
/// # Errors
/// A sentence that says which part is wrong and what the form is.
pub fn read_url(url: &str) -> Result<Endpoint, String> {
    let wrong = |what: &str| format!("{what}; {FORM}");
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("there is no ://"))?;
    if !["mysql", "mariadb"].contains(&scheme) {
        return Err(wrong(&format!("{scheme}:// is not mysql:// or mariadb://")));
    }
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').ok_or_else(|| wrong("the name of the database is missing"))?;
    let (account, host) = authority.rsplit_once('@').ok_or_else(|| wrong("the user before @ is missing"))?;
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let mut endpoint = Endpoint {
        unix: None,
        tcp: Some(read_host(host).map_err(|what| wrong(&what))?),
        namespace: None,
        user: decoded(user).ok_or_else(|| wrong("the user is not well encoded"))?,
        password: decoded(password).ok_or_else(|| wrong("the password is not well encoded"))?,
        database: decoded(database).ok_or_else(|| wrong("the name of the database is not well encoded"))?,
        tls: Tls::default(),
    };
    let mut tls = TlsParts::default();
    if endpoint.user.is_empty() {
        return Err(wrong("the user before @ is missing"));
    }
    if endpoint.database.is_empty() || endpoint.database.contains('/') {
        return Err(wrong("the name of the database is missing"));
    }
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("socket", path)) if !path.is_empty() => {
                let path = decoded(path).ok_or_else(|| wrong("the socket's path is not well encoded"))?;
                endpoint.unix = Some(path.into());
                endpoint.tcp = None;
            }
            Some(("connect-timeout" | "charset" | "collation" | "statement-cache-capacity", _)) => {}
            pair => {
                let (name, value) = pair.unwrap_or((option, ""));
                let known = "there are socket, ssl-mode, ssl-ca, ssl-cert and ssl-key";
                let which = TlsOption::of(name)
                    .filter(|which| *which != TlsOption::ChannelBinding)
                    .ok_or_else(|| wrong(&format!("the option {name:?} is not known; {known}")))?;
                let value = decoded(value).ok_or_else(|| wrong(&format!("{name} is not well encoded")))?;
                tls.set(which, name, &value).map_err(|what| wrong(&what))?;
            }
        }
    }
    endpoint.tls = tls.tls(TlsMode::Prefer).map_err(|what| wrong(&what))?;
    Ok(endpoint)
}

fn read_host(text: &str) -> Result<(String, u16), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("the ] behind the address is missing")?;
            (host, port.strip_prefix(':'))
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err("the host behind @ is missing".into());
    }
    let port = match port {
        None => PORT,
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| format!("the port {port:?} is not a number from 1 to 65535"))?,
    };
    Ok((host.to_owned(), port))
}

/// Text with its `%40`s resolved; none when they are cut off or it is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                (high * 16 + low) as u8
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
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
