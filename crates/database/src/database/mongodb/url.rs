//! The addresses of servers in `database.url`: `mongodb://user:password@host:port/database`, as MongoDB's own programs write them, with a part of their options.
//!
//! Invariant: an error never repeats the password.

use super::Concern;
use crate::database::Endpoint;
use crate::database::address::{decoded, host_and_port};
use crate::database::tls::{TlsMode, TlsOption, TlsParts};

/// MongoDB's default port.
const PORT: u16 = 27017;
const FORM: &str = "the form is mongodb://user:password@host:port/database?authSource=admin&w=1&journal=true&tls=true";
/// The database that knows users, where the address names none.
const AUTH_SOURCE: &str = "admin";

/// The options of an address that are no parts of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// The database that knows the user.
    pub auth_source: String,
    /// What a write waits for.
    pub concern: Concern,
}

impl Default for Options {
    fn default() -> Self {
        Options { auth_source: AUTH_SOURCE.to_owned(), concern: Concern::default() }
    }
}

/// Returns the endpoint that an address names. The port is 27017 by default.
///
/// # Errors
/// A sentence that names the wrong part and the correct form.
pub fn read_url(url: &str) -> Result<Endpoint, String> {
    read(url).map(|(endpoint, _)| endpoint).map_err(|what| format!("{what}; {FORM}"))
}

/// Returns the options of an address; the usual ones of no address.
pub(super) fn options_of(url: Option<&str>) -> Options {
    url.and_then(|url| read(url).ok()).map_or_else(Options::default, |(_, options)| options)
}

fn read(url: &str) -> Result<(Endpoint, Options), String> {
    let (scheme, rest) = url.split_once("://").ok_or("there is no ://")?;
    if scheme != "mongodb" {
        return Err(format!("{scheme}:// is not mongodb://, and names of services are not looked up"));
    }
    let (rest, given) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (account, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    if place.contains(',') {
        return Err("loadline measures one server; name the primary alone".to_owned());
    }
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let place = host_and_port(place, PORT)?;
    if place.0.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let (mut tls, mut options) = (TlsParts::default(), Options::default());
    for option in given.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decoded(value, name)?;
        let is_true = || match value.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("{name}={value} is neither true nor false")),
        };
        match (name, TlsOption::of(name)) {
            ("authSource", _) => options.auth_source = value,
            ("authMechanism", _) if value == "SCRAM-SHA-256" => {}
            ("w", _) => options.concern.set_copies(&value)?,
            ("journal", _) => options.concern.is_journaled = is_true()?,
            ("directConnection", _) => drop(is_true()?),
            // As MongoDB's own programs understand it.
            ("tls" | "ssl", _) if is_true()? => tls.set(TlsOption::Mode, name, "verify-full")?,
            ("tls" | "ssl", _) => {}
            (_, Some(of_tls)) if of_tls != TlsOption::ChannelBinding => tls.set(of_tls, name, &value)?,
            _ => {
                let known = "authSource, w, journal, tls, directConnection, sslmode, sslrootcert, sslcert and sslkey";
                return Err(format!("the option {name:?} is not known; there are {known}"));
            }
        }
    }
    let endpoint = Endpoint {
        tcp: Some(place),
        user: decoded(user, "user")?,
        password: decoded(password, "password")?,
        database: decoded(path, "database")?,
        tls: tls.tls(TlsMode::Disable)?,
        ..Endpoint::default()
    };
    if endpoint.database.is_empty() {
        return Err("the database is missing".to_owned());
    }
    if endpoint.database.len() > 63 || endpoint.database.contains(['/', '\\', '.', ' ', '"', '$', '\0']) {
        return Err(format!("{:?} cannot be the name of a database", endpoint.database));
    }
    // A connection begins with TLS or without it: nothing is negotiated first.
    if matches!(endpoint.tls.mode, TlsMode::Allow | TlsMode::Prefer) {
        return Err("sslmode is disable, require, verify-ca or verify-full here".to_owned());
    }
    Ok((endpoint, options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_parts_are_read() {
        let endpoint = read_url("mongodb://ann:p%40ss@db.example:27018/shop").unwrap();
        assert_eq!(endpoint.tcp, Some(("db.example".into(), 27018)));
        assert_eq!((&*endpoint.user, &*endpoint.password, &*endpoint.database), ("ann", "p@ss", "shop"));
        assert_eq!(read_url("mongodb://[::1]/a").unwrap().tcp, Some(("::1".into(), 27017)));
        let options = options_of(Some("mongodb://h/d?authSource=d&w=majority&journal=false"));
        let concern = Concern { copies: "majority".to_owned(), is_journaled: false };
        assert_eq!(options, Options { auth_source: "d".to_owned(), concern });
        assert_eq!(options_of(Some("mongodb://h/d")), options_of(None));
        let mode = |options: &str| read_url(&format!("mongodb://h/d?{options}")).unwrap().tls.mode;
        assert_eq!([mode(""), mode("tls=true")], [TlsMode::Disable, TlsMode::VerifyFull]);
        assert_eq!(mode("tls=true&sslmode=require"), TlsMode::Require);
    }

    #[test]
    fn errors_name_the_part_and_not_the_password() {
        for (url, part) in [
            ("localhost", "://"),
            ("mongodb+srv://a:secret@h/d", "mongodb+srv://"),
            ("mongodb://a:secret@h", "database"),
            ("mongodb://a:secret@/d", "host"),
            ("mongodb://a:secret@h,i/d", "one server"),
            ("mongodb://a:secret@h:99999/d", "port"),
            ("mongodb://a:secret%4@h/d", "password"),
            ("mongodb://a:secret@h/a.b", "name of a database"),
            ("mongodb://a:secret@h/d?w=0", "w=0"),
            ("mongodb://a:secret@h/d?journal=1", "journal"),
            ("mongodb://a:secret@h/d?sslmode=prefer", "sslmode"),
            ("mongodb://a:secret@h/d?replicaSet=r", "replicaSet"),
            ("mongodb://a:secret@h/d?authMechanism=PLAIN", "authMechanism"),
        ] {
            let error = read_url(url).unwrap_err();
            assert!(error.contains(part) && error.contains(FORM) && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_addresses_never_panic(rest in "\\PC{0,40}") {
            let _ = read_url(&format!("mongodb://{rest}"));
        }
    }
}
