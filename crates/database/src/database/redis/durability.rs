//! What an acknowledged write survives, by the settings of a server. Main function: [`level`].

use crate::database::LevelSettings;
use crate::database::level::{Known, Level};

/// `everysec`, the usual one, is none of them: it may lose two seconds in a crash of the server.
pub(super) const LEVELS: [LevelSettings; 3] = [
    (Level::PowerCut, &[("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")]),
    (Level::Crash, &[("appendonly", "yes"), ("appendfsync", "no"), ("no-appendfsync-on-rewrite", "no")]),
    (Level::Nothing, &[("appendonly", "no")]),
];

/// A log of commands, or snapshots now and then.
pub(super) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    if known.value("appendonly")? == "no" {
        return Some(Level::Nothing);
    }
    Some(match known.value("appendfsync")?.as_str() {
        // While the log is rewritten it may be told not to sync.
        "always" if known.is("no_appendfsync_on_rewrite", &["no"]) => Level::PowerCut,
        // Written before it is answered, and synced when the system likes.
        "always" | "no" => Level::Crash,
        // While a sync takes long, what is answered may wait up to two seconds in the server's memory.
        "everysec" => Level::Nothing,
        _ => return None,
    })
}
