//! The entry of a database in the registry, and how the database is opened and reached.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use super::notes::sentence;
use crate::database::recipe::Reach;
use crate::database::{self, Database, Endpoint, Entry, Session, SessionLimits, Target, TargetSession};
use crate::server::interrupted;
use crate::study::Patience;
use crate::trial::DatabaseSettings;

/// Returns the registry's entry of the database that the settings name.
///
/// # Errors
/// Fails with a sentence if there is none.
pub fn entry_of(settings: &DatabaseSettings) -> anyhow::Result<&'static Entry> {
    match database::find(&settings.name) {
        Some(entry) => Ok(entry),
        None => bail!("unknown database \"{}\"", settings.name),
    }
}

/// Opens a target. With a `Patience`, its connections wait no longer than that, and not at all once loadline is told to end.
pub fn open_within_limits(
    entry: &Entry,
    settings: &DatabaseSettings,
    endpoint: Option<&Endpoint>,
    patience: Option<Patience>,
) -> anyhow::Result<Arc<dyn Target>> {
    let mut target = entry.open(settings, endpoint)?;
    limit(&mut *target, patience);
    Ok(Arc::from(target))
}

/// Opens a target that speaks SQL, as [`open_within_limits`] does.
pub fn open_sql_within_limits(
    entry: &Entry,
    settings: &DatabaseSettings,
    endpoint: Option<&Endpoint>,
    patience: Option<Patience>,
) -> anyhow::Result<Arc<dyn Database>> {
    let mut database = entry.open_sql(settings, endpoint)?;
    limit(&mut *database, patience);
    Ok(Arc::from(database))
}

fn limit(target: &mut dyn Target, patience: Option<Patience>) {
    if let Some(Patience(seconds)) = patience {
        target.set_limits(Arc::new(SessionLimits::of_trials(Duration::from_secs_f64(seconds), interrupted)));
    }
}

/// Returns a target as a database that speaks SQL.
///
/// # Errors
/// Fails with a sentence if the target does not speak SQL.
pub fn as_database(target: &dyn Target) -> anyhow::Result<&dyn Database> {
    target.sql().with_context(|| format!("{} speaks no SQL", target.name()))
}

/// Returns a connection as a session that takes SQL.
///
/// # Errors
/// Fails with a sentence if the connection takes no SQL.
pub fn as_session(session: &mut dyn TargetSession) -> anyhow::Result<&mut dyn Session> {
    session.sql().context("it takes no SQL")
}

/// Returns the endpoint with the kind of socket that `database.socket` chooses; a private server offers both. A link carries TCP only.
pub fn reached_by(endpoint: &Endpoint, settings: &DatabaseSettings, reach: &Reach) -> Endpoint {
    let mut endpoint = endpoint.clone();
    match settings.socket.as_deref() {
        _ if reach.namespace.is_some() => endpoint.unix = None,
        Some("tcp") => endpoint.unix = None,
        _ => endpoint.tcp = endpoint.tcp.filter(|_| endpoint.unix.is_none()),
    }
    endpoint
}

/// Returns an error of a database that is not loadline's own, with the setting that names the database.
pub fn at_its_place(error: anyhow::Error, settings: &DatabaseSettings) -> anyhow::Error {
    match (&settings.url, &settings.path) {
        (Some(url), _) => anyhow!("database.url = \"{url}\": {}", sentence(&error)),
        (None, Some(path)) => error.context(format!("database.path = \"{path}\"")),
        (None, None) => error,
    }
}
