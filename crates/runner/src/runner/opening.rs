//! How a database is opened: by another process ([`Opening`]), or at an address ([`endpoint_of`]).

use std::env::VarError;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::database::{Endpoint, ReadUrl};
use crate::trial::DatabaseSettings;

/// Environment variable with the password for addresses that contain none.
pub const PASSWORD: &str = "LOADLINE_PASSWORD";

/// The data with which another process opens the database. It contains the password: pass it through a pipe only.
#[derive(Clone, Serialize, Deserialize)]
pub struct Opening {
    /// The settings, with the file of an embedded database.
    pub settings: DatabaseSettings,
    /// The address the server listens on; `None` for an embedded database.
    pub endpoint: Option<Endpoint>,
}

/// Returns the endpoint and password of a server address: the address's own password, else that of `LOADLINE_PASSWORD`.
///
/// # Errors
/// Fails with a sentence if the address or the password cannot be read.
pub fn endpoint_of(url: &str, read_url: ReadUrl) -> anyhow::Result<Endpoint> {
    let endpoint = read_url(url).map_err(anyhow::Error::msg).context("database.url")?;
    if !endpoint.password.is_empty() {
        return Ok(endpoint);
    }
    match std::env::var(PASSWORD) {
        Ok(password) => Ok(Endpoint { password, ..endpoint }),
        Err(VarError::NotPresent) => Ok(endpoint),
        Err(VarError::NotUnicode(_)) => bail!("{PASSWORD} is not UTF-8"),
    }
}
