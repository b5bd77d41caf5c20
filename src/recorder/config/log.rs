//! Reads `[log]`: what the lines of the log look like, and which are said.

use crate::recorder::log::{Level, LogConfig};
use crate::study::place::Errors;
use crate::study::section::Section;
use crate::study::tree::Table;

pub(super) fn read_log(root: &Table, errors: &mut Errors) -> LogConfig {
    let section = Section::open(root, "log", &["format", "level"], errors);
    let is_json = section.one_of("format", &["text", "json"], errors) == Some("json");
    let named = section.one_of("level", &Level::NAMES.map(|(name, _)| name), errors);
    let level = Level::NAMES.into_iter().find(|(name, _)| Some(*name) == named);
    LogConfig { is_json, level: level.map_or(Level::Info, |(_, level)| level) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::config::read;

    #[test]
    fn format_and_level_are_read_and_what_is_wrong_is_said() {
        let said = |log: &str| {
            let intake = "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n";
            read(&format!("[log]\n{log}\n{intake}"), "c.toml")
                .map(|config| config.log)
                .map_err(|errors| errors.to_string())
        };
        assert_eq!(said(""), Ok(LogConfig { is_json: false, level: Level::Info }));
        assert_eq!(said("format = \"json\"\nlevel = \"error\""), Ok(LogConfig { is_json: true, level: Level::Error }));
        assert!(
            said("format = \"jsn\"")
                .unwrap_err()
                .contains("c.toml:2: unknown log.format \"jsn\"; did you mean \"json\"?")
        );
        assert!(said("level = \"loud\"").unwrap_err().contains("c.toml:2: unknown log.level \"loud\""));
    }
}
