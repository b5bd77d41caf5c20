//! VictoriaMetrics's own settings: the flags of its program, which those of a study are checked against.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::fault::{Fault, fault};

/// Checks that a server's program has the flags of a study.
///
/// # Errors
/// The first flag that it does not have, with the command that prints those that it has.
pub(super) fn check(binary: &Path, config: &BTreeMap<String, String>) -> Result<(), Fault> {
    if config.is_empty() {
        return Ok(());
    }
    let program = binary.display();
    let out = Command::new(binary).arg("-help").output().map_err(
        |error| fault!("{program} -help cannot be executed: {error}"; "set database.binary to a victoria-metrics that can"),
    )?;
    let printed = [out.stdout, out.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let known = names(&printed);
    match config.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, value)) => Err(
            fault!("database.config has \"{name}\" = \"{value}\", and VictoriaMetrics has no such flag"; "{program} -help prints those that it has; write them without the dash, as in \"memory.allowedBytes\""),
        ),
        None => Ok(()),
    }
}

/// Returns the names of the flags that are printed: each begins a line, behind two spaces and a dash.
fn names(printed: &str) -> Vec<&str> {
    printed.lines().filter_map(|line| line.strip_prefix("  -")?.split_whitespace().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_prints_are_names() {
        let printed =
            "victoria-metrics is a store\n\n  -memory.allowedBytes size\n    \tAllowed - size\n  -tls\n    \t-x\n";
        assert_eq!(names(printed), ["memory.allowedBytes", "tls"]);
    }
}
