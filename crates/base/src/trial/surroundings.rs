//! Settings of the surroundings of load and database: a link between them, a recorder in between, writers to the disk and another load
//! beside them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Arrivals, Settings, is_default};

/// `[disk]`: writes to the disk of the database's files beside the load, as fast as the disk accepts them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskSettings {
    /// Bytes of a block; 0 where nothing is written.
    pub block_bytes: u64,
    /// When a block must be on the disk.
    pub sync: DiskSync,
    /// Bytes of all files together; the files are overwritten from their start.
    pub file_bytes: u64,
    /// Number of threads, each with its own file; at least 1.
    pub writers: u32,
}

/// When written data must be on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskSync {
    /// Each block is synced before the next one.
    #[default]
    Each,
    /// Data are synced when the operating system likes, and once at the end.
    None,
    /// Each block bypasses the page cache; the disk's own cache may hold it.
    Direct,
}

/// Values of [`LinkSettings::tunnel`]: the encryption and authentication of packets.
pub const TUNNELS: [&str; 4] = ["3des-sha1", "aes128-sha1", "aes256-sha1", "aes256gcm"];

/// `[link]`: a link between the load and the server, which run as separate hosts on the same machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinkSettings {
    /// Bits per second in each direction, Ethernet headers included; `None` for no limit but the machine's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bits_per_s: Option<f64>,
    /// Additional delay of each frame in each direction, in seconds.
    #[serde(skip_serializing_if = "is_default", default)]
    pub delay_s: f64,
    /// Encryption of an IPsec tunnel over the link; `None` without a tunnel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tunnel: Option<String>,
    /// Hosts over which the connections are distributed, each with its own link.
    #[serde(skip_serializing_if = "is_default", default)]
    pub hosts: LinkHosts,
    /// Bits per second of the server's link, which all hosts share; `None` for no limit but the machine's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_rate_bits_per_s: Option<f64>,
}

/// The number of hosts from which connections come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkHosts {
    /// This many hosts, at least 1.
    Count(u16),
    /// One host for each connection.
    Each,
}

impl Default for LinkHosts {
    fn default() -> Self {
        LinkHosts::Count(1)
    }
}

/// `[blocks]`: the blocks that are uploaded where `recorder.path` is a way to upload blocks, and their treatment by the recorder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlocksSettings {
    /// Bytes of a block; approximate for a real block.
    pub bytes: u64,
    /// Largest number of bytes per second that the recorder takes in; `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bytes_per_s: Option<f64>,
    /// Whether blocks are real, so that the recorder verifies, decrypts and stores them; otherwise they are random bytes, which wait in its inbox.
    pub process: bool,
    /// Capacity of the recorder's inbox, in bytes.
    pub bound_bytes: u64,
}

impl Default for BlocksSettings {
    fn default() -> Self {
        BlocksSettings { bytes: 1 << 20, rate_bytes_per_s: None, process: true, bound_bytes: 4 << 30 }
    }
}

/// Largest number of recorders of a trial.
pub const RECORDERS_MAX: u16 = 8;

/// `[recorder]`: the path of records from the load to the database.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecorderSettings {
    /// The kind of path.
    pub path: RecorderPath,
    /// Number of private recorders, over which the clients are dealt out; `None` for one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub count: Option<u32>,
    /// What acknowledged records wait in until they are stored.
    #[serde(skip_serializing_if = "is_default", default)]
    pub through: RecorderBuffer,
    /// Parts of the shared stream, each with a writer of its own; `None` for the recorder's default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parts: Option<u32>,
    /// Whether each recorder, the clients and the database have a host of their own.
    #[serde(skip_serializing_if = "is_default", default)]
    pub has_own_hosts: bool,
    /// Writers of each private recorder, each with its own connection to the database; 1 where a stream has parts.
    pub writers: u32,
    /// Largest number of rows in a transaction of a writer; `None` for the recorder's default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub batch: Option<u32>,
    /// Protection of the clients' connections, and of those from the recorder to the NATS server: `verify` is TLS with a certificate that both ends know;
    /// `None` for no protection.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tls: Option<String>,
}

/// What acknowledged records wait in until they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecorderBuffer {
    /// The spool of the recorder that took them in.
    #[default]
    Spool,
    /// A stream of a private NATS server, which all recorders of the trial share in parts.
    Stream,
}

impl RecorderBuffer {
    /// Returns the name in studies.
    pub fn name(self) -> &'static str {
        match self {
            RecorderBuffer::Spool => "spool",
            RecorderBuffer::Stream => "stream",
        }
    }
}

impl RecorderSettings {
    /// Returns the number of recorders, at least 1.
    pub fn recorders(&self) -> u32 {
        self.count.unwrap_or(1)
    }

    /// Returns whether the recorders share a stream.
    pub fn is_shared(&self) -> bool {
        self.through == RecorderBuffer::Stream
    }
}

/// The path between the load and the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecorderPath {
    /// No recorder in between.
    #[default]
    Direct,
    /// A private recorder that accepts line protocol over HTTP.
    Http,
    /// A private NATS server, and a private recorder that consumes the messages of its stream.
    Nats,
    /// A private recorder that accepts blocks over FTP.
    Ftp,
    /// A private recorder that accepts blocks over FTP with TLS.
    Ftps,
    /// A private recorder that accepts blocks over HTTP PUT.
    Put,
}

impl RecorderPath {
    /// All paths with their names in studies.
    pub const ALL: [(RecorderPath, &'static str); 6] = [
        (RecorderPath::Direct, "direct"),
        (RecorderPath::Http, "http"),
        (RecorderPath::Nats, "nats"),
        (RecorderPath::Ftp, "ftp"),
        (RecorderPath::Ftps, "ftps"),
        (RecorderPath::Put, "put"),
    ];

    /// Returns whether the path uploads blocks, rather than sending records.
    pub fn is_upload(self) -> bool {
        !matches!(self, RecorderPath::Direct | RecorderPath::Http | RecorderPath::Nats)
    }

    /// Returns the name in studies.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(path, _)| *path == self).map_or("", |(_, name)| name)
    }

    /// Returns the path with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(path, _)| *path)
    }
}

/// `[background]`: operations that arrive at a given rate beside the load that the study asks about, over their own connections.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BackgroundSettings {
    /// Name of the workload: `write`, `update`, `select` or `read`.
    pub workload: String,
    /// Connections, at least 1.
    pub clients: u32,
    /// Arrival process: Poisson or constant.
    pub arrivals: Arrivals,
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// Records per transaction, at least 1.
    pub batch: u32,
}

impl Settings {
    /// Returns the recorder's settings, where a recorder is in front of the database.
    pub fn recorded(&self) -> Option<&RecorderSettings> {
        self.recorder.as_ref().filter(|recorder| recorder.path != RecorderPath::Direct)
    }

    /// Returns whether recorders, clients and database have a host each.
    pub fn has_recorders_on_hosts(&self) -> bool {
        self.recorded().is_some_and(|recorder| recorder.has_own_hosts)
    }

    /// Returns the link between the hosts of a trial; `None` if everything is on this machine's own.
    pub fn linked(&self) -> Option<Cow<'_, LinkSettings>> {
        let unlimited = || self.has_recorders_on_hosts().then(|| Cow::Owned(LinkSettings::default()));
        self.link.as_ref().map(Cow::Borrowed).or_else(unlimited)
    }

    /// Returns the settings of uploaded blocks, where blocks are uploaded.
    pub fn uploaded(&self) -> Option<BlocksSettings> {
        self.recorded().filter(|recorder| recorder.path.is_upload())?;
        Some(self.blocks.clone().unwrap_or_default())
    }
}
