//! Structured logs on stderr: one line an event, `time=… level=… event="…" key="…"`, which people and programs read.

use std::io::Write;
use std::time::SystemTime;

use crate::units::show_utc;

/// Something that operators may want to know.
pub fn info(event: &str, facts: &[(&str, &str)]) {
    write("info", event, facts);
}

/// Something that they should look at.
pub fn warning(event: &str, facts: &[(&str, &str)]) {
    write("warning", event, facts);
}

/// Something that they must look at.
pub fn error(event: &str, facts: &[(&str, &str)]) {
    write("error", event, facts);
}

fn write(level: &str, event: &str, facts: &[(&str, &str)]) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let line = line(&show_utc(now.as_secs()), level, event, facts);
    // Nothing is left to do when nobody listens any more.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

fn line(time: &str, level: &str, event: &str, facts: &[(&str, &str)]) -> String {
    let mut line = format!("time={time} level={level} event={event:?}");
    for (key, value) in facts {
        line += &format!(" {key}={value:?}");
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_it_tells() {
        let line = line("T", "info", "it \"is\"", &[("reason", "two\nlines")]);
        assert_eq!(line, "time=T level=info event=\"it \\\"is\\\"\" reason=\"two\\nlines\"\n");
    }
}
