//! The output of commands.
//!
//! Main functions: [`print()`] and [`print_json`]. Invariants: results go to stdout, everything else to stderr; a reader that stops early,
//! such as `head`, is no error; text from a record, a server or a study never controls the terminal.

use std::io::Write;

use serde::Serialize;

use super::{Failure, Refusal, screen};
use crate::recorder::log::{self, Level};
use crate::report::terminal::WIDTH;
use crate::runner::notes::{is_command, printable_json};

pub use crate::runner::notes::{note, printable, sentence};

/// Prints text to stdout.
///
/// # Errors
/// [`Failure::Broken`] if it cannot be written, unless the reader has gone.
pub fn print(text: &str) -> Result<(), Failure> {
    write(&printable(text))
}

/// Prints a report to stdout, with warnings in red if the output shows colours.
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

/// Reports on stderr why the program ends.
pub fn give_up(message: &str) {
    log::say(Level::Error, &printable(&format!("loadline: {message}")));
}

/// Version of the JSON documents of commands; raised when the meaning of a member changes.
pub const DOCUMENT_VERSION: u32 = 1;

/// A document in its printed form: its version first.
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

/// Returns a document in its printed form.
pub fn document(content: &impl Serialize) -> String {
    let document = Document { version: DOCUMENT_VERSION, content };
    let text = serde_json::to_string_pretty(&document).expect("what commands print is an object and has a JSON form");
    format!("{}\n", printable_json(&text))
}

/// Reports why a request is wrong: on stderr, and for programs as a document on stdout.
pub fn refuse(refusal: &Refusal, is_json: bool) {
    if is_json {
        print_refusal(refusal);
    }
    give_up(&refusal.to_string());
}

/// Reports the result of clap: wrong arguments, or the text of help and version.
pub fn refuse_arguments(error: &clap::Error) {
    let is_json = std::env::args_os().any(|argument| argument == "--json");
    if is_json && error.use_stderr() {
        print_refusal(&Refusal::of_arguments(error));
    }
    let plain = error.render().to_string();
    if error.use_stderr() && plain.contains(is_command) {
        // The message may quote an argument with control characters.
        log::say(Level::Error, printable(&plain).trim_end());
        return;
    }
    // If it cannot be written, the exit status still tells.
    let _ = error.print();
}

fn print_refusal(refusal: &Refusal) {
    #[derive(Serialize)]
    struct Refused<'a> {
        error: &'a Refusal,
    }
    // If it cannot be written, the exit status still tells.
    let _ = print_json(&Refused { error: refusal });
}

/// Returns a borderless table for the terminal, with the first row as header; cells are wrapped if a row exceeds [`WIDTH`] columns.
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
