//! The addresses of VictoriaMetrics servers in `database.url`. Main function: [`read`].

use crate::database::Endpoint;
use crate::database::http::url::UrlForm;

/// Addresses with the port of the HTTP interface, which is 8428 with TLS and without it.
const FORM: UrlForm = UrlForm {
    scheme: "victoriametrics",
    scheme_of_tls: "victoriametricss",
    port: 8428,
    port_of_tls: 8428,
    database: "db",
    user: None,
    needs_database: false,
};

/// Returns the endpoint that an address names.
///
/// # Errors
/// A sentence that names the wrong part and the correct form.
pub(super) fn read(url: &str) -> Result<Endpoint, String> {
    let endpoint = FORM.read(url)?;
    match endpoint.database.is_empty() {
        true => Ok(endpoint),
        false => Err(format!(
            "\"{}\" names a database, and VictoriaMetrics has one store and no databases; the form is victoriametrics://user:password@host:port",
            endpoint.database
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_place_and_no_database() {
        let endpoint = read("victoriametrics://me:secret@h").unwrap();
        assert_eq!((endpoint.tcp, &*endpoint.user), (Some(("h".to_owned(), 8428)), "me"));
        let refused = read("victoriametrics://me:secret@h/shop").unwrap_err();
        assert!(refused.contains("\"shop\" names a database") && !refused.contains("secret"), "{refused}");
    }
}
