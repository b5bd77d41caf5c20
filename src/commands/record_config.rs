//! Reads the configuration of a recorder for commands, and opens the server that it names. Main function: [`read_config`].

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use super::Failure;
use crate::database::Database;
use crate::file;
use crate::recorder::config::{self, Config};
use crate::runner::entry::entry_of;
use crate::runner::opening::endpoint_of;
use crate::trial::DatabaseSettings;

pub(super) fn read_config(path: &Path) -> Result<Config, Failure> {
    let name = path.display().to_string();
    let text = file::read_text(path, file::WRITTEN_MOST)
        .with_context(|| format!("{name} cannot be read; name a configuration file"))
        .map_err(Failure::usage)?;
    config::read(&text, &name).map_err(Failure::usage)
}

/// Opens the server that `database.url` names; `None` without such a setting.
pub(super) fn open_server(settings: &DatabaseSettings) -> Result<Option<Arc<dyn Database>>, Failure> {
    let entry = entry_of(settings).map_err(Failure::usage)?;
    let (Some(url), Some(read_url)) = (&settings.url, entry.read_url) else { return Ok(None) };
    let endpoint = endpoint_of(url, read_url).map_err(Failure::usage)?;
    Ok(Some(Arc::from(entry.open_sql(settings, Some(&endpoint)).map_err(Failure::usage)?)))
}
