//! `[database]`: the database, and how a private server of it is started. Main type: [`DatabaseSettings`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `[database]`: the database, and how a private server of it is started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DatabaseSettings {
    /// Name in the registry.
    pub name: String,
    /// Storage engine, where the database has several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub engine: Option<String>,
    /// Address of an existing server, without password; `None` for a private server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub url: Option<String>,
    /// Address of the watcher on the machine of that server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub watch: Option<String>,
    /// File of an embedded database; `None` for a private one in the run directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// Server binary; `None` for the installed one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub binary: Option<String>,
    /// Base directory of an unpacked server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<String>,
    /// How clients reach a private server: `unix` (default) or `tcp`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub socket: Option<String>,
    /// Protection of the connections to a private server: `verify` is TLS with a certificate that its clients know; `None` for no protection.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tls: Option<String>,
    /// Encryption of the private server's files: `aes128` or `aes256`; `None` for no encryption.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub encryption: Option<String>,
    /// Largest memory of the private server, including the page cache of its files, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bytes: Option<u64>,
    /// CPUs that the private server is pinned to, as in `0` or `0,2-3`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpus: Option<String>,
    /// Number of nodes of the private server; `None` for the database's own number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nodes: Option<u32>,
    /// When replicas get what was written: `synchronous`, before it is acknowledged; `None` for later.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replication: Option<String>,
    /// Nodes that are read from: `replica`; `None` for the primary.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub read_from: Option<String>,
    /// Nodes that clients connect to, where all take writes: `all`, in turn; `None` for the first one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connect_to: Option<String>,
    /// Where a client connects again whose node does not admit it: `other`, to another node; `None` for the same one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reconnect_to: Option<String>,
    /// What acknowledged writes must survive: `power-cut`, `crash` or `none`; the settings for it are in `config`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub durability: Option<String>,
    /// The private server's own settings, as text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub config: BTreeMap<String, String>,
}
