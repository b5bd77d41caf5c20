//! Facts about a server and its machine. Main functions: `facts` and `watched`.

use std::path::PathBuf;
use std::time::Duration;

use super::agents::Muster;
use super::entry::at_its_place;
use crate::database::{self, Entry, Target};
use crate::fault::{Fault, fault};
use crate::monitor::{self, Remote, WatchAddress, read_address};
use crate::trial::DatabaseSettings;
use crate::units::show_bytes;

/// Settings of embedded databases that decide which writes they keep, and those that decide how much they carry. A database has some of them.
const OF_EMBEDDED: [(&str, &str); 6] = [
    ("journal_mode", "PRAGMA journal_mode"),
    ("synchronous", "PRAGMA synchronous"),
    ("fsync_mode", "SELECT current_setting('fsync_mode')"),
    ("threads", "SELECT current_setting('threads')"),
    ("memory_limit", "SELECT current_setting('memory_limit')"),
    ("checkpoint_threshold", "SELECT current_setting('checkpoint_threshold')"),
];

/// Returns the server's version, its program if loadline started it, the settings that its recipe lists, and its machine if that is watched.
///
/// # Errors
/// Fails if the server cannot be connected to or the watcher of its machine cannot be reached.
pub(super) fn facts(
    entry: &Entry,
    target: &dyn Target,
    program: Option<PathBuf>,
    (settings, muster): (&DatabaseSettings, Option<&Muster>),
) -> anyhow::Result<Vec<(String, String)>> {
    let mut facts = told(entry, target, program).map_err(|error| at_its_place(error, settings))?;
    facts.extend(
        settings.memory_bytes.map(|bytes| ("memory".to_owned(), format!("at most {}", show_bytes(bytes as f64)))),
    );
    let remote = watched(settings, muster, monitor::INTERVAL)?;
    facts.extend(remote.map(|remote| ("machine".to_owned(), remote.host.to_string())));
    Ok(facts)
}

fn told(entry: &Entry, target: &dyn Target, program: Option<PathBuf>) -> anyhow::Result<Vec<(String, String)>> {
    let mut session = target.open()?;
    let mut facts = vec![("version".to_owned(), session.version()?)];
    facts.extend(session.protection().map(|protection| ("connections".to_owned(), protection)));
    facts.extend(program.map(|program| ("program".to_owned(), program.display().to_string())));
    let of_entry = || entry.recipe.map_or(&OF_EMBEDDED[..], |recipe| recipe.facts());
    let (asked, is_behind) = target.facts().map_or_else(|| (of_entry(), false), |behind| (behind, true));
    // What a driver says of versions includes its own.
    for (name, query) in asked.iter().filter(|(name, _)| !is_behind || *name != "version") {
        // A setting that this version does not have is left out.
        facts.extend(session.fact(query).map(|value| ((*name).to_owned(), value)));
    }
    Ok(facts)
}

/// Connects to the watcher of a remote server's machine, if `database.watch` names one.
///
/// # Errors
/// Fails with a sentence if the watcher cannot be reached or queried.
pub(super) fn watched(
    database: &DatabaseSettings,
    muster: Option<&Muster>,
    interval: Duration,
) -> anyhow::Result<Option<Remote>> {
    let Some(watch) = &database.watch else { return Ok(None) };
    let of_watch = |fault: Fault| anyhow::Error::new(fault.about(format!("database.watch: {watch}")));
    let address = read_address(watch).map_err(of_watch)?;
    let token = std::env::var(WATCH_TOKEN).unwrap_or_default();
    let processes = processes_of(&database.name);
    let remote = match (address, muster) {
        (WatchAddress::Direct(address), _) => Remote::connect(&address, &token, processes, interval),
        (WatchAddress::Named(name), Some(muster)) => {
            muster.watched(&name).and_then(|stream| Remote::over(stream, &token, processes, interval))
        }
        (WatchAddress::Named(_), None) => Err(fault!("no NATS server is named"; "add --nats URL")),
    };
    remote.map(Some).map_err(of_watch)
}

/// Environment variable with the token for a watcher.
pub const WATCH_TOKEN: &str = "LOADLINE_WATCH_TOKEN";

/// Returns the names of a server's processes.
pub(super) fn processes_of(database: &str) -> &'static [&'static str] {
    database::find(database).map_or(&[], |entry| entry.processes)
}
