//! What an acknowledged write to DuckDB survives. Main function: [`level`].

use crate::database::LevelSettings;
use crate::database::level::{Known, Level};

/// DuckDB has one level by its documentation: the log is synced at each commit.
pub(super) const LEVELS: [LevelSettings; 1] = [(Level::PowerCut, &[])];

/// From version 2 on, `fsync_mode` says whether files are synced; versions before always sync them.
pub(super) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    Some(if known.is("fsync_mode", &["none"]) { Level::Crash } else { Level::PowerCut })
}
