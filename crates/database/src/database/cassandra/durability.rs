//! The durability level of a Cassandra server, from its settings. Main function: [`level`].

use super::tables::DURABLE_WRITES;
use crate::database::LevelSettings;
use crate::database::level::{Known, Level};

/// No setting gives the level between: what is not synced is not marked as valid in the log either, and is passed over when the log is read.
pub(super) const LEVELS: [LevelSettings; 2] =
    [(Level::PowerCut, &[("commitlog_sync", "batch")]), (Level::Nothing, &[("commitlog_sync", "periodic")])];

/// Returns the level of one node.
pub(super) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    if known.is(DURABLE_WRITES, &["false"]) {
        return Some(Level::Nothing);
    }
    match known.value("commitlog_sync")?.as_str() {
        // Both answer when the log is synced; a group waits for others to be synced with it.
        "batch" | "group" => Some(Level::PowerCut),
        // Answers at once, and syncs every ten seconds.
        "periodic" => Some(Level::Nothing),
        _ => None,
    }
}
