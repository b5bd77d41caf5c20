//! The entry of a database in the registry.

use anyhow::bail;

use crate::database::{self, Entry};
use crate::trial::DatabaseSettings;

/// The registry's entry of the database that settings name.
///
/// # Errors
/// A sentence, when there is none.
pub fn entry_of(settings: &DatabaseSettings) -> anyhow::Result<&'static Entry> {
    match database::find(&settings.name) {
        Some(entry) => Ok(entry),
        None => bail!("unknown database \"{}\"", settings.name),
    }
}
