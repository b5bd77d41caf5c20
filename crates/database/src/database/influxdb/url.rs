//! The addresses of InfluxDB servers in `database.url`: `influxdb://user:password@host:port/database`, or `influxdbs://` for TLS. `http://` and `https://` are read in the same way.
//!
//! Invariant: an error never repeats the password.

use crate::database::Endpoint;
use crate::database::address::{decoded, host_and_port};
use crate::database::tls::{TlsMode, TlsOption, TlsParts};

/// The default port of the HTTP interface, with TLS and without it.
const PORT: u16 = 8086;
const FORM: &str = "the form is influxdb://user:password@host:port/database with the port of the HTTP interface, or influxdbs:// for TLS";

/// Returns the endpoint that an address names. The port is 8086 by default.
///
/// # Errors
/// A sentence that names the wrong part and the correct form.
pub fn read_url(url: &str) -> Result<Endpoint, String> {
    read(url).map_err(|what| format!("{what}; {FORM}"))
}

fn read(url: &str) -> Result<Endpoint, String> {
    let (scheme, rest) = url.split_once("://").ok_or("there is no ://")?;
    let is_tls = match scheme {
        "influxdb" | "http" => false,
        "influxdbs" | "https" => true,
        _ => return Err(format!("{scheme}:// is not influxdb://, influxdbs://, http:// or https://")),
    };
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (account, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let place = host_and_port(place, PORT)?;
    if place.0.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let mut endpoint = Endpoint {
        tcp: Some(place),
        user: decoded(user, "user")?,
        password: decoded(password, "password")?,
        database: decoded(path.trim_end_matches('/'), "name of the database")?,
        ..Endpoint::default()
    };
    let mut tls = TlsParts::default();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decoded(value, name)?;
        match (name, TlsOption::of(name)) {
            ("db", _) => endpoint.database = value,
            (_, Some(of_tls)) if of_tls != TlsOption::ChannelBinding => tls.set(of_tls, name, &value)?,
            _ => {
                return Err(format!(
                    "the option {name:?} is not known; there are db, sslmode, sslrootcert, sslcert and sslkey"
                ));
            }
        }
    }
    if endpoint.database.is_empty() {
        return Err("the name of the database is missing".to_owned());
    }
    if endpoint.user.contains(':') {
        return Err("the user has a colon, which HTTP does not send".to_owned());
    }
    // A server has TLS on its port or not: nothing is negotiated first.
    endpoint.tls = tls.tls(if is_tls { TlsMode::Require } else { TlsMode::Disable })?;
    match (is_tls, endpoint.tls.mode) {
        (true, TlsMode::Disable | TlsMode::Allow | TlsMode::Prefer) => {
            Err(format!("{scheme}:// is TLS, and sslmode says something else"))
        }
        (false, mode) if mode != TlsMode::Disable => {
            Err("TLS is asked for, and the address does not begin with influxdbs:// or https://".to_owned())
        }
        _ => Ok(endpoint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_parts_are_read() {
        let endpoint = read_url("influxdb://ann:p%40ss:w@db.example:8087/shop").unwrap();
        assert_eq!(endpoint.tcp, Some(("db.example".into(), 8087)));
        assert_eq!((&*endpoint.user, &*endpoint.password, &*endpoint.database), ("ann", "p@ss:w", "shop"));
        let endpoint = read_url("http://localhost/?db=shop").unwrap();
        assert_eq!((endpoint.tcp, endpoint.unix), (Some(("localhost".into(), 8086)), None));
        assert_eq!((&*endpoint.user, &*endpoint.database), ("", "shop"));
    }

    #[test]
    fn tls_is_where_the_scheme_says_so() {
        let mode = |url: &str| read_url(url).unwrap().tls.mode;
        assert_eq!(mode("influxdb://h/d"), TlsMode::Disable);
        assert_eq!(mode("influxdbs://h/d"), TlsMode::Require);
        assert_eq!(mode("https://h/d?sslmode=verify-full&sslrootcert=/ca.pem"), TlsMode::VerifyFull);
        assert!(read_url("influxdb://h/d?sslmode=require").unwrap_err().contains("https://"));
        assert!(read_url("https://h/d?sslmode=disable").unwrap_err().contains("something else"));
    }

    #[test]
    fn errors_name_the_part_and_not_the_password() {
        for (url, part) in [
            ("localhost", "://"),
            ("mysql://a:secret@h/d", "mysql://"),
            ("influxdb://:secret@/0", "host"),
            ("influxdb://a:secret/0", "port"),
            ("influxdb://a:secret@h", "name of the database"),
            ("influxdb://a:secret%4@h/d", "password"),
            ("influxdb://a%3Ab:secret@h/d", "colon"),
            ("influxdb://a:secret@h/d?size=1", "size"),
        ] {
            let error = read_url(url).unwrap_err();
            assert!(error.contains(part) && error.contains(FORM) && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_addresses_never_panic(rest in "\\PC{0,40}") {
            let _ = read_url(&format!("influxdb://{rest}"));
        }
    }
}
