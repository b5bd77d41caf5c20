//! The durability level of a ClickHouse server, from its settings. Main function: [`level`].

use super::Engine;
use crate::database::LevelSettings;
use crate::database::level::{Known, Level};

/// Versions before 21 have none of these settings and sync nothing; they accept those values that say so.
pub(super) const LEVELS: [LevelSettings; 3] = [
    (
        Level::PowerCut,
        &[
            ("async_insert", "0"),
            ("fsync_after_insert", "1"),
            ("fsync_part_directory", "1"),
            ("min_rows_to_fsync_after_merge", "1"),
        ],
    ),
    (Level::Crash, &[("async_insert", "0"), ("fsync_after_insert", "0")]),
    (Level::Nothing, &[("async_insert", "1"), ("wait_for_async_insert", "0")]),
];

/// Returns the level of tables of the study's engine. A new part is complete in the operating system's memory when it is acknowledged, and is synced only where that is asked for; the part that
/// a merge makes of it must then be synced, too.
pub(super) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    match Engine::of(known.settings)? {
        Engine::MergeTree => {}
        Engine::Memory => return Some(Level::Nothing),
        // What a crash in the middle of an append leaves is not stated.
        Engine::Log => return None,
    }
    let is_on = |name: &str| known.value(name).map(|value| ["1", "true"].contains(&value.as_str()));
    if is_on("async_insert")? && !is_on("wait_for_async_insert")? {
        return Some(Level::Nothing);
    }
    let is_synced = is_on("fsync_after_insert")?
        && is_on("fsync_part_directory")?
        && known.value("min_rows_to_fsync_after_merge")?.parse::<u64>().ok()? > 0;
    Some(if is_synced { Level::PowerCut } else { Level::Crash })
}
