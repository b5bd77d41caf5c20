//! The addresses of Cassandra's servers in `database.url`: `cassandra://user:password@host:port/keyspace`. ScyllaDB has the same.
//!
//! Invariant: an error never repeats the password.

use super::Consistency;
use crate::database::Endpoint;
use crate::database::address::{decoded, host_and_port};
use crate::database::tls::{TlsMode, TlsOption, TlsParts};

/// Cassandra's default port.
const PORT: u16 = 9042;
const FORM: &str = "the form is cassandra://user:password@host:port/keyspace?consistency=local_quorum&sslmode=require";

/// Returns the endpoint that an address names. The port is 9042 by default.
///
/// # Errors
/// A sentence that names the wrong part and the correct form.
pub fn read_url(url: &str) -> Result<Endpoint, String> {
    read(url).map(|(endpoint, _)| endpoint).map_err(|what| format!("{what}; {FORM}"))
}

/// Returns the consistency that an address asks for; that of a valid address without one, and of no address, is the usual one.
pub(super) fn consistency_of(url: Option<&str>) -> Consistency {
    url.and_then(|url| read(url).ok()).map_or(Consistency::LocalQuorum, |(_, consistency)| consistency)
}

fn read(url: &str) -> Result<(Endpoint, Consistency), String> {
    let (scheme, rest) = url.split_once("://").ok_or("there is no ://")?;
    if !matches!(scheme, "cassandra" | "scylla") {
        return Err(format!("{scheme}:// is not cassandra://"));
    }
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (account, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let place = host_and_port(place, PORT)?;
    if place.0.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let (mut tls, mut consistency) = (TlsParts::default(), Consistency::LocalQuorum);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decoded(value, name)?;
        match (name, TlsOption::of(name)) {
            ("consistency", _) => {
                consistency = Consistency::of_name(&value).ok_or_else(|| {
                    let known: Vec<&str> = Consistency::ALL.iter().map(|(name, _)| *name).collect();
                    format!("consistency={value} is not known; it is {}", known.join(", "))
                })?;
            }
            (_, Some(of_tls)) if of_tls != TlsOption::ChannelBinding => tls.set(of_tls, name, &value)?,
            _ => {
                let known = "consistency, sslmode, sslrootcert, sslcert and sslkey";
                return Err(format!("the option {name:?} is not known; there are {known}"));
            }
        }
    }
    let endpoint = Endpoint {
        tcp: Some(place),
        user: decoded(user, "user")?,
        password: decoded(password, "password")?,
        database: decoded(path, "keyspace")?,
        tls: tls.tls(TlsMode::Disable)?,
        ..Endpoint::default()
    };
    if endpoint.database.is_empty() {
        return Err("the keyspace is missing".to_owned());
    }
    // A connection begins with TLS or without it: nothing is negotiated first.
    if matches!(endpoint.tls.mode, TlsMode::Allow | TlsMode::Prefer) {
        return Err("sslmode is disable, require, verify-ca or verify-full here".to_owned());
    }
    Ok((endpoint, consistency))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_parts_are_read() {
        let (endpoint, consistency) = read("cassandra://ann:p%40ss:w@db.example:9043/shop?consistency=ALL").unwrap();
        assert_eq!(endpoint.tcp, Some(("db.example".into(), 9043)));
        assert_eq!((&*endpoint.user, &*endpoint.password, &*endpoint.database), ("ann", "p@ss:w", "shop"));
        assert_eq!((consistency, endpoint.tls.mode), (Consistency::All, TlsMode::Disable));
        let (endpoint, consistency) = read("scylla://[::1]/shop?sslmode=require").unwrap();
        assert_eq!(endpoint.tcp, Some(("::1".into(), 9042)));
        assert_eq!((consistency, endpoint.tls.mode), (Consistency::LocalQuorum, TlsMode::Require));
        assert_eq!(consistency_of(Some("cassandra://h/k?consistency=one")), Consistency::One);
        assert_eq!(consistency_of(None), Consistency::LocalQuorum);
    }

    #[test]
    fn errors_name_the_part_and_not_the_password() {
        for (url, part) in [
            ("localhost", "://"),
            ("mysql://a:secret@h/k", "mysql://"),
            ("cassandra://:secret@/k", "host"),
            ("cassandra://a:secret@h", "keyspace"),
            ("cassandra://a:secret/k", "port"),
            ("cassandra://a:secret%4@h/k", "password"),
            ("cassandra://a:secret@h/k?consistency=most", "local_quorum"),
            ("cassandra://a:secret@h/k?sslmode=prefer", "sslmode"),
            ("cassandra://a:secret@h/k?size=1", "size"),
        ] {
            let error = read_url(url).unwrap_err();
            assert!(error.contains(part) && error.contains(FORM) && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_addresses_never_panic(rest in "\\PC{0,40}") {
            let _ = read_url(&format!("cassandra://{rest}"));
        }
    }
}
