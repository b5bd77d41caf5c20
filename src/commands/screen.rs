//! The terminal of the output: its width, and whether it shows colours.
//!
//! Main functions: [`width`], [`coloured`]. Invariant: output to a file or a pipe has a fixed width and no colours.

use std::io::IsTerminal;

use crate::report::terminal::WIDTH;

/// Smallest width in columns that is used; narrower output cannot be read.
const WIDTH_LEAST: u16 = 40;
const RED: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";

/// Returns the width of the terminal in columns: that of `COLUMNS`, else that of the terminal; 120 if the output is no terminal.
pub fn width() -> u16 {
    if !std::io::stdout().is_terminal() {
        return WIDTH;
    }
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    said.or_else(columns).unwrap_or(WIDTH).max(WIDTH_LEAST)
}

fn columns() -> Option<u16> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes a winsize to the structure, which lives as long as the call.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(size.ws_col)
}

/// Returns the report with its warnings in red, if the output is a terminal and `NO_COLOR` does not forbid it.
pub fn coloured(text: &str) -> String {
    let is_forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_forbidden || !std::io::stdout().is_terminal() { text.to_owned() } else { with_red(text) }
}

fn with_red(text: &str) -> String {
    let red = |line: &str| match line.split_once(':') {
        Some((word @ ("INVALID" | "REHEARSAL"), rest)) => format!("{RED}{word}{PLAIN}:{rest}"),
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(red).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_red_and_nothing_else_is() {
        let text = "study: is it INVALID?\nINVALID: 1 of 2 trials\n  reason: x\n";
        assert_eq!(with_red(text), "study: is it INVALID?\n\x1b[1;31mINVALID\x1b[0m: 1 of 2 trials\n  reason: x\n");
    }
}
