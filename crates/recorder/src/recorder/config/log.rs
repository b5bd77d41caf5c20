//! Reads `[log]`: the format of the log's lines, and the level from which lines are written.

use crate::recorder::log::{Level, LogConfig};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting};

/// `[log]`
pub static LOG: Part = Part {
    name: "log",
    help: "The format of log lines, and which lines are written.",
    settings: &[
        Setting::new(
            "format",
            Kind::OneOf(&["text", JSON]),
            Absent::Text("text"),
            "Whether a line is text or a JSON object.",
        ),
        Setting::new(
            "level",
            Kind::Listed(|| Level::NAMES.map(|(name, _)| name).to_vec()),
            Absent::Text("info"),
            "The lowest level of the lines to write.",
        ),
    ],
};

const JSON: &str = "json";

pub(super) fn read_log(root: &Table, errors: &mut Errors) -> LogConfig {
    let section = Section::open(root, &LOG, errors);
    let named = section.find("level", errors);
    let level = Level::NAMES.into_iter().find(|(name, _)| Some(*name) == named);
    let is_json = section.find("format", errors) == Some(JSON);
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
