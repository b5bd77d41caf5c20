//! The durability level of a QuestDB server, from its settings. Main function: [`level`].

use crate::database::LevelSettings;
use crate::database::level::{Known, Level};

/// No setting was shown to give `power-cut`: with `sync`, too, the server did not start on what a disk had kept whose power was cut, for the sake of a file of its web console.
pub(super) const LEVELS: [LevelSettings; 1] = [(Level::Crash, &[("cairo.commit.mode", "nosync")])];

/// Returns the level of the tables that loadline makes, which have a log of their writes. The files of the log are mapped into the server's memory, so that what it has written there
/// is the operating system's, also if the server is killed.
pub(super) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    match known.value("cairo.commit.mode")?.as_str() {
        "sync" | "nosync" | "async" => Some(Level::Crash),
        _ => None,
    }
}
