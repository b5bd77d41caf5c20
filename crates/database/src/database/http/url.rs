//! The addresses of servers that are reached over HTTP, in `database.url`: `store://user:password@host:port/database`, or `stores://` for TLS. `http://` and `https://` are read in
//! the same way, because the port is that of the HTTP interface.
//!
//! Invariant: an error never repeats the password.

use crate::database::Endpoint;
use crate::database::address::{decoded, host_and_port};
use crate::database::tls::{TlsMode, TlsOption, TlsParts};

/// The form of a store's addresses.
#[derive(Debug)]
pub struct UrlForm {
    /// The scheme of addresses without TLS.
    pub scheme: &'static str,
    /// The scheme of addresses with TLS.
    pub scheme_of_tls: &'static str,
    /// The default port.
    pub port: u16,
    /// The default port with TLS.
    pub port_of_tls: u16,
    /// The option that names the database.
    pub database: &'static str,
    /// The option that names the user, if there is one.
    pub user: Option<&'static str>,
    /// Whether an address must name a database.
    pub needs_database: bool,
}

impl UrlForm {
    /// Returns the endpoint that an address names.
    ///
    /// # Errors
    /// A sentence that names the wrong part and the correct form.
    pub fn read(&self, url: &str) -> Result<Endpoint, String> {
        self.endpoint(url).map_err(|what| format!("{what}; {}", self.correct()))
    }

    /// Returns a sentence that says how an address is written.
    fn correct(&self) -> String {
        let UrlForm { scheme, scheme_of_tls, .. } = self;
        format!(
            "the form is {scheme}://user:password@host:port/database with the port of the HTTP interface, or {scheme_of_tls}:// for TLS"
        )
    }

    fn endpoint(&self, url: &str) -> Result<Endpoint, String> {
        let UrlForm { scheme: plain, scheme_of_tls, .. } = self;
        let (scheme, rest) = url.split_once("://").ok_or("there is no ://")?;
        let is_tls = scheme == *scheme_of_tls || scheme == "https";
        if !is_tls && scheme != *plain && scheme != "http" {
            return Err(format!("{scheme}:// is not {plain}://, {scheme_of_tls}://, http:// or https://"));
        }
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = account.split_once(':').unwrap_or((account, ""));
        let place = host_and_port(place, if is_tls { self.port_of_tls } else { self.port })?;
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
        let tls = self.options(options, &mut endpoint)?;
        if self.needs_database && endpoint.database.is_empty() {
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
                Err(format!("TLS is asked for, and the address does not begin with {scheme_of_tls}:// or https://"))
            }
            _ => Ok(endpoint),
        }
    }

    /// Reads the options behind the question mark. Returns those of TLS.
    fn options(&self, options: &str, endpoint: &mut Endpoint) -> Result<TlsParts, String> {
        let mut tls = TlsParts::default();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = decoded(value, name)?;
            match TlsOption::of(name) {
                _ if name == self.database => endpoint.database = value,
                _ if Some(name) == self.user => endpoint.user = value,
                Some(of_tls) if of_tls != TlsOption::ChannelBinding => tls.set(of_tls, name, &value)?,
                _ => {
                    let own = [Some(self.database), self.user].into_iter().flatten().collect::<Vec<_>>().join(", ");
                    return Err(format!(
                        "the option {name:?} is not known; there are {own}, sslmode, sslrootcert, sslcert and sslkey"
                    ));
                }
            }
        }
        Ok(tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHOP: UrlForm = UrlForm {
        scheme: "shop",
        scheme_of_tls: "shops",
        port: 81,
        port_of_tls: 444,
        database: "db",
        user: Some("user"),
        needs_database: false,
    };

    #[test]
    fn all_parts_are_read() {
        let endpoint = SHOP.read("shop://ann:p%40ss:w@db.example:8124/shop").unwrap();
        assert_eq!(endpoint.tcp, Some(("db.example".into(), 8124)));
        assert_eq!((&*endpoint.user, &*endpoint.password, &*endpoint.database), ("ann", "p@ss:w", "shop"));
        let endpoint = SHOP.read("http://localhost/?db=shop&user=me").unwrap();
        assert_eq!((endpoint.tcp, endpoint.unix), (Some(("localhost".into(), 81)), None));
        assert_eq!((&*endpoint.user, &*endpoint.password, &*endpoint.database), ("me", "", "shop"));
        assert_eq!(SHOP.read("https://[::1]").unwrap().tcp, Some(("::1".into(), 444)));
    }

    #[test]
    fn tls_is_where_the_scheme_says_so() {
        let mode = |url: &str| SHOP.read(url).unwrap().tls.mode;
        assert_eq!(mode("shop://h"), TlsMode::Disable);
        assert_eq!(mode("shops://h"), TlsMode::Require);
        assert_eq!(mode("https://h?sslmode=verify-full&sslrootcert=/ca.pem"), TlsMode::VerifyFull);
        assert!(SHOP.read("shop://h?sslmode=require").unwrap_err().contains("shops:// or https://"));
        assert!(SHOP.read("https://h?sslmode=disable").unwrap_err().contains("something else"));
    }

    #[test]
    fn errors_name_the_part_and_not_the_password() {
        let other = UrlForm { user: None, needs_database: true, ..SHOP };
        for (form, url, part) in [
            (&SHOP, "localhost", "://"),
            (&SHOP, "mysql://a:secret@h/d", "mysql://"),
            (&SHOP, "shop://:secret@/0", "host"),
            (&SHOP, "shop://a:secret/0", "port"),
            (&SHOP, "shop://a:secret@h:99999", "port"),
            (&SHOP, "shop://a:secret%4@h", "password"),
            (&SHOP, "shop://a%3Ab:secret@h", "colon"),
            (&SHOP, "shop://a:secret@h?size=1", "size\" is not known; there are db, user, sslmode"),
            (&other, "shop://a:secret@h", "name of the database"),
            (&other, "shop://a:secret@h/d?user=me", "user\" is not known; there are db, sslmode"),
        ] {
            let error = form.read(url).unwrap_err();
            let names = error.contains(part) && error.contains(&SHOP.correct());
            assert!(names && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_addresses_never_panic(rest in "\\PC{0,40}") {
            let _ = SHOP.read(&format!("shop://{rest}"));
        }
    }
}
