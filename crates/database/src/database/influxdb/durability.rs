//! The durability level of an InfluxDB server, from its settings. Main function: [`level`].

use crate::database::LevelSettings;
use crate::database::level::{Known, Level};

/// No setting was shown to give `power-cut`: the log of writes is synced, but neither the folder of its files nor the file of series, and the server did not start on what a disk had kept whose power was
/// cut.
pub(super) const LEVELS: [LevelSettings; 1] = [(Level::Crash, &[("data.wal-fsync-delay", "0s")])];

/// Returns the level: a write is in the log before it is acknowledged. With a delay, it waits for the sync that ends it.
pub(super) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    known.value("data.wal_fsync_delay").map(|_| Level::Crash)
}
