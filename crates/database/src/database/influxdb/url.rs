//! The addresses of InfluxDB servers in `database.url`.

use crate::database::http::url::UrlForm;

/// Addresses with the port of the HTTP interface, which is 8086 with TLS and without it.
pub(super) const FORM: UrlForm = UrlForm {
    scheme: "influxdb",
    scheme_of_tls: "influxdbs",
    port: 8086,
    port_of_tls: 8086,
    database: "db",
    user: None,
    needs_database: true,
};
