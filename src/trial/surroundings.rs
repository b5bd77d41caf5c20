//! Settings of what lies around load and database: a link between them, a recorder in between, writers to the disk and another load
//! beside them.

use serde::{Deserialize, Serialize};

use super::{Arrivals, is_default};

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
}

impl RecorderPath {
    /// All of them, by the name that studies use.
    pub const ALL: [(RecorderPath, &'static str); 3] =
        [(RecorderPath::Direct, "direct"), (RecorderPath::Http, "http"), (RecorderPath::Nats, "nats")];

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
