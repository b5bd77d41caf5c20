//! The recorder's configuration: the settings of `loadline record CONFIG.toml`.
//!
//! Main type: [`Config`]. Invariant: a configuration that was read without errors can be started; all errors of a file are reported at
//! once, each with line, value and remedy.

mod access;
mod blocks;
mod database;
mod intake;
mod limits;
mod listening;
mod log;
mod metrics;
mod nats;
mod processing;
mod query;
mod read;
mod retention;
mod rows;
mod table;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::recorder::access::Grant;
use crate::recorder::line::LineBounds;
use crate::recorder::log::LogConfig;
use crate::trial::DatabaseSettings;

pub use blocks::{BlocksConfig, FtpConfig, InboxConfig, RateLimits};
pub use metrics::MetricsConfig;
pub use nats::{BucketConfig, ForwardConfig, NatsConfig, NatsServer, SharedConfig, StoreConfig};
pub use processing::{ImagesConfig, OfficeConfig, ProcessingConfig};
pub use query::QueryConfig;
pub use read::read;
pub use retention::RetentionConfig;
pub use table::RECORDER_FILE;

/// All settings, with their defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `[database]`
    pub database: DatabaseSettings,
    /// `[layout]`
    pub layout: LayoutConfig,
    /// `[spool]`
    pub spool: SpoolConfig,
    /// `[quarantine]`: the most bytes that refused records may take with their reasons.
    pub quarantine_bound_bytes: u64,
    /// `[intake]`
    pub intake: IntakeConfig,
    /// `[[access]]`: the senders, besides those with one of an intake's `tokens`.
    pub access: Vec<Grant>,
    /// `[limits]`: the bounds of a line.
    pub limits: LineBounds,
    /// `[schema]`
    pub schema: SchemaConfig,
    /// `[writer]`
    pub writer: WriterConfig,
    /// `[ready]`: how long the oldest record may wait while the recorder reports that it is ready.
    pub ready_within: Duration,
    /// `[admission]`
    pub admission: AdmissionConfig,
    /// `[inbox]`
    pub inbox: InboxConfig,
    /// `[processing]`: `None` if blocks are processed elsewhere, or there are none.
    pub processing: Option<ProcessingConfig>,
    /// `[forward]`: `None` if blocks are processed from this inbox, or there are none.
    pub forward: Option<ForwardConfig>,
    /// `[office]`
    pub office: Option<OfficeConfig>,
    /// `[log]`
    pub log: LogConfig,
    /// `[metrics]`: `None` if the intakes answer `/metrics` themselves.
    pub metrics: Option<MetricsConfig>,
    /// `[query]`: `None` if questions are not answered.
    pub query: Option<QueryConfig>,
    /// `[retention]`: `None` if readings are kept for ever.
    pub retention: Option<RetentionConfig>,
}

impl Config {
    /// Returns whether measurement data are accepted, which requires a database.
    pub fn takes_lines(&self) -> bool {
        self.intake.http.is_some() || self.intake.tcp.is_some() || self.intake.nats.is_some()
    }

    /// Returns whether blocks are accepted.
    pub fn takes_blocks(&self) -> bool {
        self.intake.ftp.is_some() || self.intake.put.is_some() || self.intake.store.is_some()
    }
}

/// `[layout]`: how measurements become tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutConfig {
    /// The name of a [`Shape`](crate::layout::recorded::Shape).
    pub name: String,
    /// The fields that `star-hot` keeps in the main table.
    pub hot: Vec<String>,
    /// True if new tables get an index on source and time.
    pub time_index: bool,
}

/// `[spool]`: the durable queue in front of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolConfig {
    /// The directory of the spool.
    pub path: PathBuf,
    /// The most bytes that entries may take.
    pub bound_bytes: u64,
    /// How long message ids are remembered, to recognise duplicates.
    pub remember: Duration,
    /// True if bodies are compressed while they wait.
    pub compress: bool,
}

/// `[intake]`: the ways in which data come in, and how much memory requests may use.
#[derive(Debug, Clone, PartialEq)]
pub struct IntakeConfig {
    /// The most bytes that all requests may hold in memory.
    pub memory_bytes: u64,
    /// The most bytes of one request, after decompression.
    pub request_bytes: u64,
    /// True if the good lines of a batch that also has bad ones are stored.
    pub keeps_good_lines: bool,
    /// True if intakes that speak HTTP answer `/metrics`; false if `[metrics]` has an address for it.
    pub shows_metrics: bool,
    /// `[intake.http]`
    pub http: Option<ListenConfig>,
    /// `[intake.tcp]`
    pub tcp: Option<ListenConfig>,
    /// `[intake.nats]`
    pub nats: Option<NatsConfig>,
    /// `[intake.blocks]`
    pub blocks: BlocksConfig,
    /// `[intake.ftp]`
    pub ftp: Option<FtpConfig>,
    /// `[intake.put]`
    pub put: Option<ListenConfig>,
    /// `[intake.store]`
    pub store: Option<StoreConfig>,
}

/// Settings of an intake that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenConfig {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The tokens of one sender without restrictions.
    pub tokens: Vec<String>,
    /// True if other machines may connect without TLS.
    pub is_insecure: bool,
    /// Certificate and key for TLS.
    pub tls: Option<TlsConfig>,
    /// Maximum number of connections at a time.
    pub connections: u32,
    /// The most connections of one address; `None` for half of all, with no bound for this machine's own.
    pub connections_per_address: Option<u32>,
    /// How long a client may take for one request.
    pub patience: Duration,
}

#[cfg(test)]
impl ListenConfig {
    /// Returns the settings for listening on this machine only, without tokens.
    pub fn here(connections: u32) -> Self {
        ListenConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tokens: Vec::new(),
            is_insecure: false,
            tls: None,
            connections,
            connections_per_address: None,
            patience: Duration::from_secs(30),
        }
    }
}

/// Files for TLS, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authority that must have signed a client's certificate; `None` if clients need no certificate.
    pub client_authority: Option<PathBuf>,
}

/// What happens to fields and tags that a measurement did not have before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewColumns {
    /// They become new columns of the tables.
    Add,
    /// They are stored in the JSON column of the table.
    Json,
    /// The record is refused.
    Refuse,
}

/// `[schema]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaConfig {
    /// What happens to new columns.
    pub new_columns: NewColumns,
    /// The most columns up to which a table is extended.
    pub columns_max: u32,
    /// The most measurements for which tables are created.
    pub measurements_max: u32,
    /// The most identities that are kept in memory.
    pub identities_max: u32,
    /// How often the stored ends of measurements are updated.
    pub ends_every: Duration,
}

/// `[writer]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterConfig {
    /// The number of writers, each with a connection; a source's records always go through the same one.
    pub count: u32,
    /// Maximum number of rows per transaction.
    pub batch: u32,
    /// How long to wait for a batch to become full.
    pub within: Duration,
    /// Maximum time for which the recorder continues to write when it is asked to stop.
    pub drain: Duration,
    /// How long a server may take to answer a statement before its connection is given up.
    pub statement_timeout: Duration,
    /// How long an entry stays in the spool, at least, after the commit in a database that may forget what it commits; `None` if
    /// such a database is refused.
    pub keep: Option<Duration>,
}

/// `[admission]`
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionConfig {
    /// The file of a run with a fit.
    pub model: Option<PathBuf>,
    /// The quantile of commit time that is bounded, between 0 and 1.
    pub quantile: f64,
    /// The bound on that quantile.
    pub below: Duration,
}
