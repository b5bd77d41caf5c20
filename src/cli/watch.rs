//! `loadline watch`, as written.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// `watch`
#[derive(Debug, Clone, Args)]
pub struct WatchArguments {
    /// Address to listen on, as in 10.0.0.5:7481. Clients must send the token in the environment variable LOADLINE_WATCH_TOKEN; without it, only
    /// addresses of this machine itself, such as 127.0.0.1, are permitted
    #[arg(long, value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Uses TLS with the certificate in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// PEM file with the certificate's key
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
}
