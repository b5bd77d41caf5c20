//! The durability level of a Redis server, from its settings. Main function: [`level`].

use crate::database::LevelSettings;
use crate::database::level::{Known, Level};

/// The default `everysec` is not among them: it may lose two seconds of writes in a crash of the server.
pub(super) const LEVELS: [LevelSettings; 3] = [
    (Level::PowerCut, &[("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")]),
    (Level::Crash, &[("appendonly", "yes"), ("appendfsync", "no"), ("no-appendfsync-on-rewrite", "no")]),
    (Level::Nothing, &[("appendonly", "no")]),
];

/// Returns the level of a server with an append-only log, or with occasional snapshots.
pub(super) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    if known.value("appendonly")? == "no" {
        return Some(Level::Nothing);
    }
    Some(match known.value("appendfsync")?.as_str() {
        // During a rewrite of the log, the server may be set not to sync.
        "always" if known.is("no_appendfsync_on_rewrite", &["no"]) => Level::PowerCut,
        // Written before the answer, and synced when the operating system decides.
        "always" | "no" => Level::Crash,
        // While a sync takes long, acknowledged writes may wait up to two seconds in the server's memory.
        "everysec" => Level::Nothing,
        _ => return None,
    })
}
