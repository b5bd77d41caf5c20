//! Levels in words. Main function: [`show_levels`].

use serde_json::Value;

use super::Levels;

/// Returns the value of a level as a study states it: text without its quotes.
pub fn level_text(level: &Value) -> String {
    match level {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Shows the value of a level for people: as [`level_text`], with a word for empty text.
pub fn show_level(level: &Value) -> String {
    Some(level_text(level)).filter(|text| !text.is_empty()).unwrap_or_else(|| "none".to_owned())
}

/// Shows levels for people: `layout.name = star, load.clients = 4`; `the only case` when nothing varies.
pub fn show_levels(levels: &Levels) -> String {
    if levels.is_empty() {
        return "the only case".to_owned();
    }
    levels.iter().map(|(setting, level)| format!("{setting} = {}", show_level(level))).collect::<Vec<_>>().join(", ")
}
