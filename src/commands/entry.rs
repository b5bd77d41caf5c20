//! The entry of a database in the registry, and how the database is opened and reached.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};

use super::output::sentence;
use crate::database::recipe::Reach;
use crate::database::{self, Database, Endpoint, Entry, SessionLimits};
use crate::server::interrupted;
use crate::study::Patience;
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

/// Opens a database. With a patience its connections wait no longer than that, and not at all once loadline is told to end.
pub fn open_within_limits(
    entry: &Entry,
    settings: &DatabaseSettings,
    endpoint: Option<&Endpoint>,
    patience: Option<Patience>,
) -> anyhow::Result<Arc<dyn Database>> {
    let mut database = (entry.open)(settings, endpoint)?;
    if let Some(Patience(seconds)) = patience {
        database.set_limits(Arc::new(SessionLimits::of_trials(Duration::from_secs_f64(seconds), interrupted)));
    }
    Ok(Arc::from(database))
}

/// A private server offers both kinds of socket; `database.socket` chooses. A link carries TCP only.
pub fn reached_by(endpoint: &Endpoint, settings: &DatabaseSettings, reach: &Reach) -> Endpoint {
    let mut endpoint = endpoint.clone();
    match settings.socket.as_deref() {
        _ if reach.namespace.is_some() => endpoint.unix = None,
        Some("tcp") => endpoint.unix = None,
        _ => endpoint.tcp = endpoint.tcp.filter(|_| endpoint.unix.is_none()),
    }
    endpoint
}

/// An error of a database that is not loadline's own, with the setting that names it.
pub fn at_its_place(error: anyhow::Error, settings: &DatabaseSettings) -> anyhow::Error {
    match (&settings.url, &settings.path) {
        (Some(url), _) => anyhow!("database.url = \"{url}\": {}", sentence(&error)),
        (None, Some(path)) => error.context(format!("database.path = \"{path}\"")),
        (None, None) => error,
    }
}
