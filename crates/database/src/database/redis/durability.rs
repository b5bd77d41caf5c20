//! What an acknowledged write survives, by the settings of a server. Main function: [`level`].

use crate::database::level::{Known, Level};

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
