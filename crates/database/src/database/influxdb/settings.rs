//! InfluxDB's own settings: those of a study are checked against the server's program, and given to it as environment variables.
//!
//! The server passes over settings that it does not know, in its file as in its environment. `influxd config` prints all that it knows.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::exchange::{Lines, ask};
use crate::database::DatabaseError;
use crate::database::error::{TOLD_MOST, shown};
use crate::database::session::Channel;
use crate::fault::{Fault, fault};

/// Returns the environment variable of a setting: `data.wal-fsync-delay` is `INFLUXDB_DATA_WAL_FSYNC_DELAY`.
pub(super) fn variable(name: &str) -> String {
    format!("INFLUXDB_{}", name.replace(['.', '-'], "_").to_uppercase())
}

/// Checks that a server's program knows the settings of a study and can read their values.
///
/// # Errors
/// The first setting that it does not know, with the command that prints those that it knows; or its own words.
pub(super) fn check(binary: &Path, config: &BTreeMap<String, String>) -> Result<(), Fault> {
    if config.is_empty() {
        return Ok(());
    }
    let program = binary.display();
    let mut command = Command::new(binary);
    command.args(["config", "-config", "/dev/null"]).env("HOME", "/");
    command.envs(config.iter().map(|(name, value)| (variable(name), value)));
    let out = command.output().map_err(
        |error| fault!("{program} config cannot be executed: {error}"; "set database.binary to an influxd that can"),
    )?;
    let printed = String::from_utf8_lossy(&out.stdout);
    let known = names(&printed);
    for (name, value) in config {
        if out.status.success() && !known.iter().any(|known| known == name) {
            return Err(
                fault!("database.config has \"{name}\" = \"{value}\", and InfluxDB has no such setting"; "{program} config prints those that it has; write them with their section, as in \"data.wal-fsync-delay\""),
            );
        }
    }
    if out.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&out.stderr);
    let told = told.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    Err(
        fault!("InfluxDB cannot read database.config: {}", shown(told, TOLD_MOST); "{program} config prints values of the right form"),
    )
}

/// Returns the names of the settings that are printed, with their sections. Sections that can be there several times are for other protocols.
fn names(printed: &str) -> Vec<String> {
    let (mut names, mut section) = (Vec::new(), Some(String::new()));
    for line in printed.lines().map(str::trim) {
        match (line.strip_prefix('['), line.split_once(" = ")) {
            (Some(head), _) => {
                let head = head.strip_suffix(']').filter(|head| !head.starts_with('['));
                section = head.map(|head| format!("{head}."));
            }
            (None, Some((name, _))) => names.extend(section.as_ref().map(|section| format!("{section}{name}"))),
            _ => {}
        }
    }
    names
}

/// Returns the value of a setting as the server tells it; `None` where it does not.
///
/// # Errors
/// The server's error.
pub(super) fn value(channel: &mut Channel, lines: &Lines, name: &str) -> Result<Option<String>, DatabaseError> {
    let (section, own) = name.split_once('.').unwrap_or(("", name));
    let told = ask(channel, lines, "SHOW DIAGNOSTICS")?;
    let of_section = format!("config-{section}");
    let found = told.iter().filter(|series| [&*of_section, section].contains(&&*series.name));
    let value = found.filter_map(|series| series.value(own)).next();
    Ok(value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_prints_are_names_in_sections() {
        let printed = "reporting-enabled = false\n\n[data]\n  dir = \"/x\"\n  wal-fsync-delay = \"0s\"\n\n[[udp]]\n  enabled = false\n\n[tls]\n  min-version = \"\"\n";
        assert_eq!(names(printed), ["reporting-enabled", "data.dir", "data.wal-fsync-delay", "tls.min-version"]);
        assert_eq!(variable("data.wal-fsync-delay"), "INFLUXDB_DATA_WAL_FSYNC_DELAY");
    }
}
