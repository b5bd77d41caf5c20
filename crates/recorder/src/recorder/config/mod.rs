//! The recorder's configuration: what `loadline record CONFIG.toml` is told.
//!
//! Main type: [`Config`]. Invariant: a configuration that was read can be started; all that is wrong with a file is said at
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
mod read;
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
pub use nats::{BucketConfig, ForwardConfig, NatsConfig, NatsServer, StoreConfig};
pub use processing::{ImagesConfig, OfficeConfig, ProcessingConfig};
pub use read::read;
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
    /// `[[access]]`: who may send, besides those with one of an intake's `tokens`.
    pub access: Vec<Grant>,
    /// `[limits]`: how large a line may be.
    pub limits: LineBounds,
    /// `[schema]`
    pub schema: SchemaConfig,
    /// `[writer]`
    pub writer: WriterConfig,
    /// `[ready]`: how long the oldest record may wait where the recorder says that it is ready.
    pub ready_within: Duration,
    /// `[admission]`
    pub admission: AdmissionConfig,
    /// `[inbox]`
    pub inbox: InboxConfig,
    /// `[processing]`: none where blocks are processed elsewhere, or there are none.
    pub processing: Option<ProcessingConfig>,
    /// `[forward]`: none where blocks are processed from this inbox, or there are none.
    pub forward: Option<ForwardConfig>,
    /// `[office]`
    pub office: Option<OfficeConfig>,
    /// `[log]`
    pub log: LogConfig,
    /// `[metrics]`: none where the intakes answer `/metrics` themselves.
    pub metrics: Option<MetricsConfig>,
}

impl Config {
    /// Whether measurement data are taken in, for which there must be a database.
    pub fn takes_lines(&self) -> bool {
        self.intake.http.is_some() || self.intake.tcp.is_some() || self.intake.nats.is_some()
    }

    /// Whether blocks are taken in.
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
}

/// `[spool]`: the durable queue in front of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolConfig {
    /// Its directory.
    pub path: PathBuf,
    /// The most bytes that entries may take.
    pub bound_bytes: u64,
    /// How long the ids of messages are remembered, to recognise duplicates.
    pub remember: Duration,
    /// Whether bodies are compressed while they wait.
    pub compress: bool,
}

/// `[intake]`: what is taken in, and how much of it may be in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct IntakeConfig {
    /// The most bytes of requests in memory.
    pub memory_bytes: u64,
    /// The most bytes in one request, after decompression.
    pub request_bytes: u64,
    /// Whether the good lines of a batch with bad ones are kept.
    pub keeps_good_lines: bool,
    /// Whether intakes that speak HTTP answer `/metrics`; not where `[metrics]` has an address for it.
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

/// An intake that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenConfig {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Tokens of one sender that may do all.
    pub tokens: Vec<String>,
    /// Whether it may be reached from other machines without TLS.
    pub is_insecure: bool,
    /// Certificate and key for TLS.
    pub tls: Option<TlsConfig>,
    /// The most connections at a time.
    pub connections: u32,
    /// The most of one address; none is half of all, and no bound for this machine's own.
    pub connections_per_address: Option<u32>,
    /// How long a client may take for one request.
    pub patience: Duration,
}

#[cfg(test)]
impl ListenConfig {
    /// On this machine, open to all on it.
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
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// Who must have signed the certificate that a client has to show; none where clients need none.
    pub client_authority: Option<PathBuf>,
}

/// What happens to fields and tags that a measurement did not have before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewColumns {
    /// The tables get a column.
    Add,
    /// They go to the table's column of JSON.
    Json,
    /// The record is refused.
    Refuse,
}

/// `[schema]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaConfig {
    /// What happens to new columns.
    pub new_columns: NewColumns,
    /// The most columns of a table that is extended.
    pub columns_max: u32,
    /// The most measurements that tables are made for.
    pub measurements_max: u32,
    /// The most identities kept in memory.
    pub identities_max: u32,
    /// How often the ends of measurements are brought up to date.
    pub ends_every: Duration,
}

/// `[writer]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterConfig {
    /// Writers, each with a connection; a source's records always go through the same one.
    pub count: u32,
    /// The most rows of a transaction.
    pub batch: u32,
    /// How long a batch that is not full is waited for.
    pub within: Duration,
    /// How long the recorder goes on writing when it is asked to stop.
    pub drain: Duration,
    /// How long a server may take to answer a statement before its connection is given up.
    pub statement_timeout: Duration,
    /// How long an entry stays in the spool, at least, after a database has committed it that may forget what it commits; none where
    /// such a database is refused.
    pub keep: Option<Duration>,
}

/// `[admission]`
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionConfig {
    /// A run with a fit.
    pub model: Option<PathBuf>,
    /// The quantile of commit time that is bounded, within 0 and 1.
    pub quantile: f64,
    /// The bound.
    pub below: Duration,
}
