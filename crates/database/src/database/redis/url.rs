//! The addresses of Redis servers in `database.url`: `redis://user:password@host:port/number`, `rediss://` for TLS, and
//! `unix:///path/of/socket?db=number`, as Redis's own tools and most clients write them.
//!
//! Invariant: an error never repeats the password.

use crate::database::Endpoint;
use crate::database::address::{decoded, host_and_port};
use crate::database::tls::{TlsMode, TlsOption, TlsParts};

/// Redis's default port.
const PORT: u16 = 6379;
const FORM: &str = "the form is redis://user:password@host:port/number, or unix:///path/of/socket?db=number";

/// Returns the endpoint that an address names. The port is 6379 and the database 0 by default.
///
/// # Errors
/// A sentence that names the wrong part and the correct form.
pub fn read_url(url: &str) -> Result<Endpoint, String> {
    read(url).map_err(|what| format!("{what}; {FORM}"))
}

fn read(url: &str) -> Result<Endpoint, String> {
    let (scheme, rest) = url.split_once("://").ok_or("there is no ://")?;
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').map_or((rest, None), |(authority, path)| (authority, Some(path)));
    let (account, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let mut endpoint =
        Endpoint { user: decoded(user, "user")?, password: decoded(password, "password")?, ..Endpoint::default() };
    match scheme {
        "redis" | "rediss" => {
            let place = host_and_port(place, PORT)?;
            if place.0.is_empty() {
                return Err("the host is missing".to_owned());
            }
            endpoint.tcp = Some(place);
            endpoint.database = decoded(path.unwrap_or(""), "number of the database")?;
        }
        "unix" => {
            if !place.is_empty() {
                return Err("the path of the socket does not begin with a /".to_owned());
            }
            let path = path.filter(|path| !path.is_empty()).ok_or("the path of the socket is missing")?;
            endpoint.unix = Some(format!("/{}", decoded(path, "path of the socket")?).into());
        }
        _ => return Err(format!("{scheme}:// is not redis://, rediss:// or unix://")),
    }
    let mut tls = TlsParts::default();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decoded(value, name)?;
        match (name, TlsOption::of(name)) {
            ("db" | "database", _) => endpoint.database = value,
            ("timeout" | "protocol", _) => {}
            (_, Some(of_tls)) if of_tls != TlsOption::ChannelBinding => tls.set(of_tls, name, &value)?,
            _ => {
                return Err(format!(
                    "the option {name:?} is not known; there are db, sslmode, sslrootcert, sslcert and sslkey"
                ));
            }
        }
    }
    if endpoint.database.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Err(format!("the database {:?} is no number", endpoint.database));
    }
    // A server has separate ports for TLS and plain text: nothing is negotiated first.
    let usual = if scheme == "rediss" { TlsMode::Require } else { TlsMode::Disable };
    endpoint.tls = tls.tls(usual)?;
    match (scheme, endpoint.tls.mode) {
        ("rediss", TlsMode::Disable | TlsMode::Allow | TlsMode::Prefer) => {
            Err("rediss:// is TLS, and sslmode says something else".to_owned())
        }
        ("redis" | "unix", mode) if mode != TlsMode::Disable => {
            Err("TLS is asked for, and the address does not begin with rediss://".to_owned())
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
        let endpoint = read_url("redis://ann:p%40ss:w@db.example:6380/3").unwrap();
        assert_eq!(endpoint.tcp, Some(("db.example".into(), 6380)));
        assert_eq!((&*endpoint.user, &*endpoint.password, &*endpoint.database), ("ann", "p@ss:w", "3"));
        let endpoint = read_url("redis://:secret@localhost").unwrap();
        assert_eq!((&*endpoint.user, &*endpoint.password, &*endpoint.database), ("", "secret", ""));
        assert_eq!(endpoint.tcp, Some(("localhost".into(), 6379)));
        assert_eq!(read_url("redis://[::1]:9/1").unwrap().tcp, Some(("::1".into(), 9)));
        let endpoint = read_url("unix:///run/my%20redis.sock?db=2").unwrap();
        assert_eq!((endpoint.unix, endpoint.tcp), (Some("/run/my redis.sock".into()), None));
        assert_eq!(endpoint.database, "2");
    }

    #[test]
    fn tls_is_where_the_scheme_says_so() {
        let mode = |url: &str| read_url(url).unwrap().tls.mode;
        assert_eq!(mode("redis://h"), TlsMode::Disable);
        assert_eq!(mode("rediss://h"), TlsMode::Require);
        assert_eq!(mode("rediss://h?sslmode=verify-full&sslrootcert=/ca.pem"), TlsMode::VerifyFull);
        assert!(read_url("redis://h?sslmode=require").unwrap_err().contains("rediss://"));
        assert!(read_url("rediss://h?sslmode=disable").unwrap_err().contains("something else"));
    }

    #[test]
    fn errors_name_the_part_and_not_the_password() {
        for (url, part) in [
            ("localhost", "://"),
            ("mysql://a:secret@h", "mysql://"),
            ("redis://:secret@/0", "host"),
            ("redis://a:secret/0", "port"),
            ("redis://a:secret@h:99999", "port"),
            ("redis://a:secret%4@h", "password"),
            ("redis://a:secret@h/shop", "number"),
            ("redis://a:secret@h?size=1", "size"),
            ("unix://run/redis.sock", "begin with a /"),
            ("unix:///", "path"),
        ] {
            let error = read_url(url).unwrap_err();
            assert!(error.contains(part) && error.contains(FORM) && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_addresses_never_panic(rest in "\\PC{0,40}") {
            let _ = read_url(&format!("redis://{rest}"));
            let _ = read_url(&format!("unix://{rest}"));
        }
    }
}
