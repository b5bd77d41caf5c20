//! Messages on stderr while trials run, and errors as sentences.
//!
//! Main functions: [`note()`] and [`sentence`]. Invariant: text from a record, a server or a study never controls the terminal.

use std::borrow::Cow;

use crate::recorder::log::{self, Level};

/// Prints a line to stderr.
pub fn note(line: &str) {
    log::say(Level::Warning, &printable(line));
}

/// Returns text with its control characters escaped, including those that change the writing direction, but not line ends and tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character.escape_default().to_string())
}

/// Returns JSON with the same characters escaped; they occur only within strings, where JSON's own escapes apply.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    escaped(text, |character| format!("\\u{:04x}", u32::from(character)))
}

/// Returns whether a character controls a terminal instead of being shown.
pub fn is_command(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_command(character) {
            true => shown.push_str(&escape(character)),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Returns an error with its causes, `outermost: cause: ...`; a cause that the text before it already contains is not repeated.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn what_commands_a_terminal_is_escaped_and_all_else_is_as_it_was() {
        let sent = "Zürich\t5 µs\n\x1b]0;title\x07\x1b[2J\r\u{9b}31m\u{202e}x\x7f";
        assert_eq!(printable(sent), "Zürich\t5 µs\n\\u{1b}]0;title\\u{7}\\u{1b}[2J\\r\\u{9b}31m\\u{202e}x\\u{7f}");
        assert!(matches!(printable("5 ± 1 %\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_commands_a_terminal_is_escaped_in_json_and_means_the_same() {
        let sent = "a\u{7f}\u{9b}31m\u{202e}\x1bb".to_owned();
        let text = serde_json::to_string_pretty(&[&sent]).unwrap();
        let shown = printable_json(&text);
        assert_eq!(shown, "[\n  \"a\\u007f\\u009b31m\\u202e\\u001bb\"\n]");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [sent]);
    }

    #[test]
    fn causes_are_told_once() {
        let disk = || std::io::Error::from_raw_os_error(28);
        let told = anyhow!("cannot write x: {}; free some room", disk());
        assert_eq!(sentence(&Err::<(), _>(disk()).context(told.to_string()).unwrap_err()), told.to_string());
        assert_eq!(
            sentence(&Err::<(), _>(told).context("load.cpus").unwrap_err())[..24],
            "load.cpus: cannot write ".to_owned()
        );
    }
}
