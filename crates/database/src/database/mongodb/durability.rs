//! What a write survives, of a server of FerretDB on SQLite; of any other it is not known. Main function: [`level`].

use crate::database::LevelSettings;
use crate::database::level::{Known, Level};

/// The setting of SQLite that decides, in the log of writes in front of it.
pub(super) const SYNCHRONOUS: &str = "synchronous";
/// Its value where a study does not set it.
pub(super) const SYNCHRONOUS_USUAL: &str = "full";

pub(super) const LEVELS: [LevelSettings; 2] =
    [(Level::PowerCut, &[(SYNCHRONOUS, "full")]), (Level::Crash, &[(SYNCHRONOUS, "normal")])];

/// Returns the level of FerretDB on SQLite, whose log of writes is synced at the end of each transaction, or now and then.
pub(super) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    match known.value(SYNCHRONOUS)?.as_str() {
        "full" | "extra" => Some(Level::PowerCut),
        "normal" | "off" => Some(Level::Crash),
        _ => None,
    }
}
