//! What an acknowledged write survives, by the settings of the database behind the driver. Main function: [`level`].

use crate::database::level::{Known, Level};
use crate::database::{mysql, postgres, sqlite};

/// Returns the level by the settings that the system told, as its own target has it; `None` where it did not tell them.
pub(super) fn level(known: &Known<'_>, makes_tables: bool) -> Option<Level> {
    if known.value("journal_mode").is_some() {
        sqlite::level(known, makes_tables)
    } else if known.value("synchronous_commit").is_some() {
        postgres::level(known, makes_tables)
    } else {
        // Tables that loadline makes there are InnoDB's.
        mysql::level(known, makes_tables)
    }
}
