//! The addresses of ClickHouse servers in `database.url`.

use crate::database::http::url::UrlForm;

/// Addresses with the port of the HTTP interface, which is 8123, or 8443 with TLS. The database is `default` by default.
pub(super) const FORM: UrlForm = UrlForm {
    scheme: "clickhouse",
    scheme_of_tls: "clickhouses",
    port: 8123,
    port_of_tls: 8443,
    database: "database",
    user: Some("user"),
    needs_database: false,
};
