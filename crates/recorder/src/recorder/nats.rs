//! Connecting to a configured NATS server. Main function: [`connect`].

use async_nats::{Client, ConnectOptions};

use super::config::NatsServer;

/// Connects; the connection is restored by itself when it breaks.
///
/// # Errors
/// The error of the first attempt.
pub(super) async fn connect(server: &NatsServer) -> Result<Client, String> {
    let mut options = ConnectOptions::new();
    if let Some(authority) = &server.authority {
        options = options.add_root_certificates(authority.clone()).require_tls(true);
    }
    if let Some(tls) = &server.tls {
        options = options.add_client_certificate(tls.certificate.clone(), tls.key.clone()).require_tls(true);
    }
    if let Some(token) = &server.token {
        options = options.token(token.clone());
    }
    options.connect(&server.url).await.map_err(|error| server.without_secrets(&error.to_string()))
}
