//! The settings of SQLite because of which it may lose commits. Main function: [`weaknesses`].
//!
//! Invariant: the time for which SQLite may lose a commit has no bound: what is not synced at the commit is synced at an unknown time.

use crate::database::durability::{Lasts, Weakness};
use crate::database::level::{Known, Level};
use crate::database::{DatabaseError, LevelSettings, Session};

/// `normal` loses the last commits in a power failure and keeps the file intact; `off` could also damage the file.
pub(in crate::database) const LEVELS: [LevelSettings; 3] = [
    (Level::PowerCut, &[("journal_mode", "wal"), ("synchronous", "full")]),
    (Level::Crash, &[("journal_mode", "wal"), ("synchronous", "normal")]),
    (Level::Nothing, &[("journal_mode", "memory"), ("synchronous", "off")]),
];

/// Returns the settings of the connection because of which commits may be lost.
pub(super) fn weaknesses(session: &mut dyn Session) -> Result<Vec<Weakness>, DatabaseError> {
    let (journal, synchronous) = (value(session, "journal_mode")?, value(session, "synchronous")?);
    Ok(of_settings(&journal, &synchronous))
}

/// Sets `synchronous` to `extra` where needed: a removed rollback journal may come back after a power failure and undo the commit, unless
/// its directory is synced, which `extra` does. Returns the change.
pub(super) fn harden(session: &mut dyn Session) -> Result<Option<String>, DatabaseError> {
    if (value(session, "journal_mode")?.as_str(), value(session, "synchronous")?.as_str()) != ("delete", "2") {
        return Ok(None);
    }
    session.run("PRAGMA synchronous = extra")?;
    Ok((value(session, "synchronous")? == "3").then(|| "synchronous = extra".to_owned()))
}

fn value(session: &mut dyn Session, name: &str) -> Result<String, DatabaseError> {
    let rows = session.query(&format!("PRAGMA {name}"))?;
    let first = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
    Ok(first.unwrap_or_default().to_lowercase())
}

fn of_settings(journal: &str, synchronous: &str) -> Vec<Weakness> {
    let mut found = Vec::new();
    let mut add = |name: &str, value: &str, loses, remedy: &str| {
        let (setting, value) = (format!("SQLite's {name}"), value.to_owned());
        found.push(Weakness { setting, value, loses, remedy: remedy.to_owned(), lasts: Lasts::Always });
    };
    if ["off", "memory"].contains(&journal) {
        let remedy = "leave database.config.journal_mode out for a new file, or set it to wal";
        add("journal_mode", journal, "a crash in the midst of a transaction damages the file", remedy);
    }
    let name = ["off", "normal", "full", "extra"].into_iter().zip(["0", "1", "2", "3"]);
    let name = name.into_iter().find(|(_, number)| *number == synchronous).map_or(synchronous, |(name, _)| name);
    let (loses, remedy) = ("a crash of the machine loses the last commits", "leave database.config.synchronous out");
    match name {
        "off" | "normal" => add("synchronous", name, loses, remedy),
        "full" if journal == "delete" => {
            add("synchronous", "full, with journal_mode delete", loses, "set database.config.synchronous = \"extra\"");
        }
        _ => {}
    }
    found
}

/// The server is this process itself; what it has written is in the operating system's cache when the process dies.
pub(in crate::database) fn level(known: &Known<'_>, _: bool) -> Option<Level> {
    let (journal, synchronous) = (known.value("journal_mode")?, known.value("synchronous")?);
    let is_full = ["2", "full"].contains(&synchronous.as_str());
    let is_extra = ["3", "extra"].contains(&synchronous.as_str());
    Some(match journal.as_str() {
        // A half-written transaction cannot be undone after a crash.
        "off" | "memory" => Level::Nothing,
        // A removed journal may come back after a power failure, unless its directory is synced too.
        "delete" if is_extra => Level::PowerCut,
        "delete" => Level::Crash,
        _ if is_full || is_extra => Level::PowerCut,
        _ => Level::Crash,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_whether_a_commit_survives_is_known() {
        for (journal, synchronous) in [("wal", "2"), ("wal", "3"), ("truncate", "2"), ("persist", "2"), ("delete", "3")]
        {
            assert_eq!(of_settings(journal, synchronous), [], "{journal} {synchronous}");
        }
        for (journal, synchronous) in [("wal", "1"), ("wal", "0"), ("memory", "2"), ("off", "3"), ("delete", "2")] {
            let found = of_settings(journal, synchronous);
            assert!(found.len() == 1 && found[0].lasts == Lasts::Always, "{journal} {synchronous}: {found:?}");
        }
    }
}
