//! `loadline watch`, as written.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::NatsFiles;

/// `watch`
#[derive(Debug, Clone, Args)]
#[group(id = "where", required = true, args = ["listen", "nats"])]
pub struct WatchArguments {
    /// Address to listen on, as in 10.0.0.5:7481. Clients must send the token in the environment variable LOADLINE_WATCH_TOKEN; without it, only
    /// addresses of this machine itself, such as 127.0.0.1, are permitted
    #[arg(long, value_name = "ADDRESS", conflicts_with = "nats")]
    pub listen: Option<SocketAddr>,
    /// Uses TLS with the certificate in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "nats")]
    pub tls_certificate: Option<PathBuf>,
    /// PEM file with the certificate's key
    #[arg(long, value_name = "FILE", requires = "tls_certificate", conflicts_with = "nats")]
    pub tls_key: Option<PathBuf>,
    /// NATS server over which runs read: nats://host:4222, or tls:// for TLS. If LOADLINE_WATCH_TOKEN is set, only runs that know it too may read
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
    /// Name under which runs find it at the NATS server, as in database.watch = "nats:NAME"; without it, the name of this machine
    #[arg(long, value_name = "NAME", requires = "nats")]
    pub name: Option<String>,
    /// What else the NATS server asks for
    #[command(flatten)]
    pub nats_files: NatsFiles,
}
