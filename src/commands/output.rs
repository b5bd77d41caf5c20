//! What commands print.
//!
//! Main functions: [`print()`] and [`note()`]. Invariants: results go to stdout, all else to stderr; a reader that stops early,
//! such as `head`, is no error; what a record, a server or a study brought with it never commands the terminal.

use std::borrow::Cow;
use std::io::Write;

use serde::Serialize;

use super::{Failure, Refusal, screen};
use crate::recorder::log::{self, Level};
use crate::report::terminal::WIDTH;

/// Prints text to stdout.
///
/// # Errors
/// [`Failure::Broken`] when it cannot be written, other than because nobody listens any more.
pub fn print(text: &str) -> Result<(), Failure> {
    write(&printable(text))
}

/// Prints a report to stdout, its warnings in red where that is shown.
///
/// # Errors
/// As [`print()`].
pub fn print_report(text: &str) -> Result<(), Failure> {
    write(&screen::coloured(&printable(text)))
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Broken(format!("what was found cannot be printed: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line to stderr.
pub fn note(line: &str) {
    log::say(Level::Warning, &printable(line));
}

/// Says on stderr why the program ends.
pub fn give_up(message: &str) {
    log::say(Level::Error, &printable(&format!("loadline: {message}")));
}

/// Text with its control characters escaped, but for ends of lines and tabs; those that turn the direction of writing too.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character.escape_default().to_string())
}

/// The same for JSON, in which they can only stand within texts, and are escaped in its own way.
fn printable_json(text: &str) -> Cow<'_, str> {
    escaped(text, |character| format!("\\u{:04x}", u32::from(character)))
}

/// Whether a character commands a terminal rather than being shown by it.
fn is_command(character: char) -> bool {
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

/// An error with its causes, `outermost: cause: ...`; a cause that the text before it tells already is not repeated.
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

/// Version of the documents that commands print; raised when a member would change its meaning.
pub const DOCUMENT_VERSION: u32 = 1;

/// A document as it is printed: its version first.
#[derive(Serialize)]
struct Document<'a, T: Serialize> {
    version: u32,
    #[serde(flatten)]
    content: &'a T,
}

/// Prints one JSON document to stdout: an object, to which its version is added.
///
/// # Errors
/// As [`print()`].
pub fn print_json(content: &impl Serialize) -> Result<(), Failure> {
    write(&document(content))
}

/// A document as it is printed.
pub fn document(content: &impl Serialize) -> String {
    let document = Document { version: DOCUMENT_VERSION, content };
    let text = serde_json::to_string_pretty(&document).expect("what commands print is an object and has a JSON form");
    format!("{}\n", printable_json(&text))
}

/// Says why a request is wrong: on stderr, and for programs as a document on stdout.
pub fn refuse(refusal: &Refusal, is_json: bool) {
    if is_json {
        print_refusal(refusal);
    }
    give_up(&refusal.to_string());
}

/// Says what clap found in the arguments: that they are wrong, or what help and version are.
pub fn refuse_arguments(error: &clap::Error) {
    let is_json = std::env::args_os().any(|argument| argument == "--json");
    if is_json && error.use_stderr() {
        print_refusal(&Refusal::of_arguments(error));
    }
    let plain = error.render().to_string();
    if error.use_stderr() && plain.contains(is_command) {
        // It quotes an argument that would command the terminal.
        log::say(Level::Error, printable(&plain).trim_end());
        return;
    }
    // Whoever does not read it has the exit status.
    let _ = error.print();
}

fn print_refusal(refusal: &Refusal) {
    #[derive(Serialize)]
    struct Refused<'a> {
        error: &'a Refusal,
    }
    // Likewise.
    let _ = print_json(&Refused { error: refusal });
}

/// A borderless table for the terminal, the first row its header; cells of more than [`WIDTH`] columns together are wrapped.
/// Empty without rows.
pub fn table(rows: Vec<Vec<String>>) -> String {
    let mut rows = rows.into_iter();
    let Some(header) = rows.next() else { return String::new() };
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(header);
    table.add_rows(rows);
    let lines: Vec<String> = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    lines.concat()
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
