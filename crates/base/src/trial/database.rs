//! `[database]`: which database, and how a private server of it is started. Main type: [`DatabaseSettings`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `[database]`: which database, and how a private server of it is started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DatabaseSettings {
    /// Name in the registry.
    pub name: String,
    /// Storage engine, where the database has several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub engine: Option<String>,
    /// An existing server, as an address without password; without it a private one is started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub url: Option<String>,
    /// Who watches the machine of that server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub watch: Option<String>,
    /// Database file of an embedded database; without it a private one in the run directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// Server binary; without it the one installed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub binary: Option<String>,
    /// Base directory of an unpacked server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<String>,
    /// How clients reach a private server: `unix` (default) or `tcp`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub socket: Option<String>,
    /// How connections to a private server are protected: `verify`, by TLS with a certificate that its clients know; none without.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tls: Option<String>,
    /// How the private server encrypts its files: `aes128` or `aes256`; none without encryption.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub encryption: Option<String>,
    /// The most memory that the private server may take, with the page cache of its files, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bytes: Option<u64>,
    /// CPUs that the private server is pinned to, as in `0` or `0,2-3`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpus: Option<String>,
    /// What acknowledged writes are to survive: `power-cut`, `crash` or `none`; the settings that give it are among `config`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub durability: Option<String>,
    /// The private server's own settings, as text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub config: BTreeMap<String, String>,
}
