//! The addresses of PostgreSQL servers in `database.url`: `postgres://user:password@host:port/database`, or with
//! `?host=/socket/directory` for a unix socket, and with the TLS settings that libpq and sqlx know.

use crate::database::Endpoint;
use crate::database::address::{decoded, host_and_port, read_port};
use crate::database::tls::{TlsMode, TlsOption, TlsParts};

/// PostgreSQL's default port.
const PORT: u16 = 5432;

/// The form of the address, for messages.
const FORM: &str = "postgres://user:password@host:port/database";

/// Returns the endpoint that an address names. The port is 5432 and the database is named like the user by default.
///
/// # Errors
/// A sentence that names the error in the address, without the password, and the remedy.
pub fn read_url(url: &str) -> Result<Endpoint, String> {
    let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let rest = rest.ok_or_else(|| format!("the address does not begin with postgres://; write {FORM}"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A password may contain an unencoded `@`; a host cannot.
    let (who, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    let (host, port) = host_and_port(place, PORT)?;
    let mut parts = Parts {
        user: decoded(user, "user")?,
        password: decoded(password, "password")?,
        host,
        port,
        database: decoded(path, "database")?,
        tls: TlsParts::default(),
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        parts.set(key, decoded(value, key)?)?;
    }
    parts.endpoint()
}

/// The parts of an address before they are checked.
struct Parts {
    user: String,
    password: String,
    host: String,
    port: u16,
    database: String,
    tls: TlsParts,
}

impl Parts {
    fn set(&mut self, key: &str, value: String) -> Result<(), String> {
        match key {
            "host" => self.host = value,
            "port" => self.port = read_port(&value)?,
            "user" => self.user = value,
            "password" => self.password = value,
            "dbname" => self.database = value,
            "application_name"
            | "connect_timeout"
            | "fallback_application_name"
            | "gssencmode"
            | "keepalives"
            | "keepalives_idle"
            | "keepalives_interval"
            | "keepalives_count"
            | "statement-cache-capacity"
            | "target_session_attrs"
            | "tcp_user_timeout" => {}
            _ => match TlsOption::of(key) {
                Some(option) => self.tls.set(option, key, &value)?,
                None => {
                    return Err(format!(
                        "the address has the unknown setting {key:?}; known are host, port, user, password, dbname, sslmode, sslrootcert, sslcert, sslkey and \
                         channel_binding"
                    ));
                }
            },
        }
        Ok(())
    }

    fn endpoint(self) -> Result<Endpoint, String> {
        if self.user.is_empty() {
            return Err(format!("the address names no user; write {FORM}"));
        }
        if self.host.is_empty() {
            return Err(format!("the address names no host; write {FORM}, or ?host=/directory for a unix socket"));
        }
        let database = if self.database.is_empty() { self.user.clone() } else { self.database };
        let tls = self.tls.tls(TlsMode::Prefer)?;
        let endpoint = Endpoint { user: self.user, password: self.password, database, tls, ..Endpoint::default() };
        Ok(if self.host.starts_with('/') {
            let socket = format!("{}/.s.PGSQL.{}", self.host.trim_end_matches('/'), self.port);
            Endpoint { unix: Some(socket.into()), ..endpoint }
        } else {
            Endpoint { tcp: Some((self.host, self.port)), ..endpoint }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_address_is_read_and_decoded() {
        let endpoint = read_url("postgres://me:p%40ss%2f:x@db.example:6543/my%20data").unwrap();
        assert_eq!(endpoint.tcp, Some(("db.example".into(), 6543)));
        assert_eq!((endpoint.unix, endpoint.user.as_str()), (None, "me"));
        assert_eq!((endpoint.password.as_str(), endpoint.database.as_str()), ("p@ss/:x", "my data"));
    }

    #[test]
    fn what_is_left_out_has_defaults() {
        let endpoint = read_url("postgresql://me@[::1]").unwrap();
        assert_eq!(endpoint.tcp, Some(("::1".into(), 5432)));
        assert_eq!((endpoint.password.as_str(), endpoint.database.as_str()), ("", "me"));
    }

    #[test]
    fn a_directory_is_a_unix_socket() {
        let url = "postgres:///data?host=/var/run/postgresql&port=5433&user=me&sslmode=disable";
        let endpoint = read_url(url).unwrap();
        assert_eq!(endpoint.unix, Some("/var/run/postgresql/.s.PGSQL.5433".into()));
        assert_eq!((endpoint.tcp, endpoint.database.as_str()), (None, "data"));
        assert_eq!(read_url("postgres://me@%2Ftmp/data").unwrap().unix, Some("/tmp/.s.PGSQL.5432".into()));
    }

    #[test]
    fn a_wrong_address_is_explained_without_its_password() {
        for (url, part) in [
            ("mysql://me:secret@host/data", "postgres://"),
            ("postgres://host/data", "no user"),
            ("postgres://me:secret@/data", "no host"),
            ("postgres://me:secret@host:port/data", "a word"),
            ("postgres://me:secret", "a word"),
            ("postgres://me:secret/2@host/data", "%2F"),
            ("postgres://me:secret@host:0/data", "1 to 65535"),
            ("postgres://me:secret@host:70000/data", "1 to 65535"),
            ("postgres://me:secret@::1/data", "brackets"),
            ("postgres://me:secret@[::1/data", "]"),
            ("postgres://me:secret%2@host/data", "password"),
            ("postgres://me:secret@host/%ff", "UTF-8"),
            ("postgres://me:secret@host/data?sslmode=yes", "verify-full"),
            ("postgres://me:secret@host/data?sslcert=me.pem", "sslkey"),
            ("postgres://me:secret@host/data?option=1", "\"option\""),
        ] {
            let error = read_url(url).unwrap_err();
            assert!(error.contains(part) && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_addresses_never_panic(rest in "\\PC{0,40}") {
            let _ = read_url(&format!("postgres://{rest}"));
        }
    }
}
