//! Settings of what lies around load and database: a link between them, a recorder in between, writers to the disk and another load
//! beside them.

use serde::{Deserialize, Serialize};

use super::{Arrivals, Settings, is_default};

/// `[disk]`: writes to the disk that the database's files are on, as fast as it takes them, beside the load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskSettings {
    /// Bytes of a block; 0 where nothing is written.
    pub block_bytes: u64,
    /// When the disk has to have a block.
    pub sync: DiskSync,
    /// Bytes of all files together; they are written again from their start.
    pub file_bytes: u64,
    /// Threads, each with a file of its own; at least 1.
    pub writers: u32,
}

/// When the disk has to have what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskSync {
    /// Each block is synced before the next one.
    #[default]
    Each,
    /// Whenever the operating system likes, and once at the end.
    None,
    /// Each block goes past the page cache; the disk's own cache may hold it.
    Direct,
}

/// Values of [`LinkSettings::tunnel`]: how packets are encrypted and authenticated.
pub const TUNNELS: [&str; 4] = ["3des-sha1", "aes128-sha1", "aes256-sha1", "aes256gcm"];

/// `[link]`: the server runs on another host than the load, on the same machine, behind a link.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinkSettings {
    /// Bits per second in each direction, Ethernet headers included; none for as much as the machine gives.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bits_per_s: Option<f64>,
    /// How long a frame takes in each direction besides, in seconds.
    #[serde(skip_serializing_if = "is_default", default)]
    pub delay_s: f64,
    /// How an IPsec tunnel over it encrypts; none without a tunnel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tunnel: Option<String>,
    /// Hosts that connections are dealt out among, each with a link of its own.
    #[serde(skip_serializing_if = "is_default", default)]
    pub hosts: LinkHosts,
    /// Bits per second of the link that the server has to all of them; none for as much as the machine gives.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_rate_bits_per_s: Option<f64>,
}

/// How many hosts connections come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkHosts {
    /// So many, at least 1.
    Count(u16),
    /// One for each connection.
    Each,
}

impl Default for LinkHosts {
    fn default() -> Self {
        LinkHosts::Count(1)
    }
}

/// `[blocks]`: what is uploaded where `recorder.path` is a way to upload blocks, and what the recorder does with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlocksSettings {
    /// Bytes of a block, approximately where it is a real one.
    pub bytes: u64,
    /// Bytes per second that the recorder takes in at most; none without a limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bytes_per_s: Option<f64>,
    /// Whether blocks are real ones, which the recorder verifies, decrypts and stores; else random bytes, which wait in its inbox.
    pub process: bool,
    /// The most that the recorder's inbox holds, in bytes.
    pub bound_bytes: u64,
}

impl Default for BlocksSettings {
    fn default() -> Self {
        BlocksSettings { bytes: 1 << 20, rate_bytes_per_s: None, process: true, bound_bytes: 4 << 30 }
    }
}

/// `[recorder]`: the path of records from the load to the database.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecorderSettings {
    /// What is on the way.
    pub path: RecorderPath,
    /// Writers of the private recorder, each with a connection to the database.
    pub writers: u32,
    /// Rows in a transaction of a writer at most; without it the recorder's default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub batch: Option<u32>,
    /// How the clients' connections are protected, and those of the recorder to the NATS server: `verify`, by TLS with a certificate that both know; none
    /// without.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tls: Option<String>,
}

/// What is between the load and the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecorderPath {
    /// Nothing.
    #[default]
    Direct,
    /// A private recorder that takes line protocol over HTTP.
    Http,
    /// A private NATS server, and a private recorder that takes messages of its stream.
    Nats,
    /// A private recorder that takes blocks over FTP.
    Ftp,
    /// The same with TLS.
    Ftps,
    /// A private recorder that takes blocks over HTTP PUT.
    Put,
}

impl RecorderPath {
    /// All of them, by the name that studies use.
    pub const ALL: [(RecorderPath, &'static str); 6] = [
        (RecorderPath::Direct, "direct"),
        (RecorderPath::Http, "http"),
        (RecorderPath::Nats, "nats"),
        (RecorderPath::Ftp, "ftp"),
        (RecorderPath::Ftps, "ftps"),
        (RecorderPath::Put, "put"),
    ];

    /// Whether blocks are uploaded on it, rather than records sent.
    pub fn is_upload(self) -> bool {
        !matches!(self, RecorderPath::Direct | RecorderPath::Http | RecorderPath::Nats)
    }

    /// The name in studies.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(path, _)| *path == self).map_or("", |(_, name)| name)
    }

    /// The path of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(path, _)| *path)
    }
}

/// `[background]`: operations that arrive at a stated rate beside the load that the study asks about, by connections of their own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BackgroundSettings {
    /// Name of its workload: `write`, `update`, `select` or `read`.
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
    /// The recorder's settings, where one is in front of the database.
    pub fn recorded(&self) -> Option<&RecorderSettings> {
        self.recorder.as_ref().filter(|recorder| recorder.path != RecorderPath::Direct)
    }

    /// What is uploaded, where blocks are.
    pub fn uploaded(&self) -> Option<BlocksSettings> {
        self.recorded().filter(|recorder| recorder.path.is_upload())?;
        Some(self.blocks.clone().unwrap_or_default())
    }
}
