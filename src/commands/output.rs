//! What commands print.
//!
//! Main functions: [`print()`] and [`print_json`]. Invariants: results go to stdout, all else to stderr; a reader that stops early,
//! such as `head`, is no error; what a record, a server or a study brought with it never commands the terminal.

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

/// Says on stderr why the program ends.
pub fn give_up(message: &str) {
    log::say(Level::Error, &printable(&format!("loadline: {message}")));
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
