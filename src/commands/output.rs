//! What commands print.
//!
//! Main function: [`print()`]. Invariant: results go to stdout; a reader that stops early, such as `head`, is no error.

use std::io::Write;

use serde::Serialize;

/// Prints text to stdout.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // Nothing is left to do when nobody listens any more.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints one JSON document to stdout.
pub fn print_json(document: &impl Serialize) {
    let text = serde_json::to_string_pretty(document).expect("what commands print is plain data and has a JSON form");
    print(&format!("{text}\n"));
}

/// A borderless table for the terminal, the first row its header; empty without rows.
pub fn table(rows: Vec<Vec<String>>) -> String {
    let mut rows = rows.into_iter();
    let Some(header) = rows.next() else { return String::new() };
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header);
    table.add_rows(rows);
    let lines: Vec<String> = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    lines.concat()
}
