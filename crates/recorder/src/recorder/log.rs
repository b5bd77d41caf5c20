//! Structured logs on stderr: one line an event, as text (`time=… level=… event="…" key="…"`) or as an object of JSON.
//!
//! An **error** means that somebody must act: until then data are not accepted, are lost, or may not be what they seem. A **warning** means that something
//! is not as it should be, which the recorder copes with or which passes by itself. **info** reports an event.
//!
//! Main functions: [`info`], [`warning`], [`error`], and [`never_wait`], after which no caller waits for the reader of stderr: lines go through a
//! bounded queue to a thread of their own. Invariant: lines that find no room are counted, and the log reports their number.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use super::log_queue::Queue;
use super::quote::shortened;
use crate::units::{show_utc, show_utc_ms};

/// The most characters of a value: callers shorten what comes from outside, and this bounds what they forgot.
const VALUE_CHARACTERS_MAX: usize = 2_000;

/// The queue, once [`never_wait`] was called.
static QUEUE: OnceLock<Queue> = OnceLock::new();
/// Whether lines are JSON objects, and the lowest level that is written.
static IS_JSON: AtomicBool = AtomicBool::new(false);
static LEAST: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// The importance of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// An event of normal operation.
    Info,
    /// Something is not as it should be.
    Warning,
    /// Somebody must act.
    Error,
}

/// `[log]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogConfig {
    /// True if each line is a JSON object; false for text.
    pub is_json: bool,
    /// The lowest level that is written.
    pub level: Level,
}

impl Level {
    /// All levels by name.
    pub const NAMES: [(&str, Level); 3] = [("info", Level::Info), ("warning", Level::Warning), ("error", Level::Error)];

    fn name(self) -> &'static str {
        Level::NAMES.iter().find(|(_, level)| *level == self).map_or("", |(name, _)| name)
    }
}

/// Sets the format and level of later lines.
pub fn configure(config: LogConfig) {
    IS_JSON.store(config.is_json, Ordering::Relaxed);
    LEAST.store(config.level as u8, Ordering::Relaxed);
}

/// Writes nothing from now on: in simulations, which break things on purpose, messages help nobody.
#[cfg(any(test, feature = "simulated"))]
pub fn be_silent() {
    LEAST.store(u8::MAX, Ordering::Relaxed);
}

/// Logs an event that operators may want to know.
pub fn info(event: &str, facts: &[(&str, &str)]) {
    tell(Level::Info, event, facts);
}

/// Logs an event that operators should check.
pub fn warning(event: &str, facts: &[(&str, &str)]) {
    tell(Level::Warning, event, facts);
}

/// Logs an event on which operators must act.
pub fn error(event: &str, facts: &[(&str, &str)]) {
    tell(Level::Error, event, facts);
}

/// Writes a sentence in the order of the log's own lines: as it is, or as an event if lines are JSON objects.
pub fn say(level: Level, sentence: &str) {
    match IS_JSON.load(Ordering::Relaxed) {
        true => tell(level, sentence, &[]),
        false => put(&format!("{sentence}\n")),
    }
}

fn tell(level: Level, event: &str, facts: &[(&str, &str)]) {
    if level as u8 >= LEAST.load(Ordering::Relaxed) {
        put(&line_now(level, event, facts));
    }
}

/// Writes a line, with its end, to stderr.
fn put(line: &str) {
    #[cfg(any(test, fuzzing, feature = "fuzzed"))]
    if crate::fuzzed::takes_log(line) {
        return;
    }
    match QUEUE.get() {
        Some(queue) => queue.push(line.to_owned()),
        // If nobody reads stderr any more, nothing is left to do.
        None => drop(std::io::stderr().lock().write_all(line.as_bytes())),
    }
}

/// From now on no caller waits for the reader of stderr, and panics are logged the same way. At the end [`flush`] is needed.
pub fn never_wait() {
    // The thread must not hold the lock of stderr, for which others would wait.
    let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned().map(File::from) else { return };
    let write = move |line: &str| write_all(&stderr, line.as_bytes());
    let work = move || {
        let dropped = |dropped: &str| line_now(Level::Warning, "log lines were dropped", &[("lines", dropped)]);
        QUEUE.get_or_init(Queue::default).work(&write, &dropped);
    };
    // If the system gives no thread for it, lines are written as before.
    if std::thread::Builder::new().name("log".to_owned()).spawn(work).is_ok() {
        QUEUE.get_or_init(Queue::default);
        std::panic::set_hook(Box::new(|panic| error("panic", &[("what", &panic.to_string())])));
    }
}

/// Waits until everything is written, but no longer than `within`.
pub fn flush(within: Duration) {
    if let Some(queue) = QUEUE.get() {
        queue.flush(within);
    }
}

/// Returns the number of lines that were dropped because the reader was too slow.
pub fn dropped() -> u64 {
    QUEUE.get().map_or(0, Queue::dropped)
}

fn write_all(mut to: &File, mut bytes: &[u8]) {
    const PAUSE: Duration = Duration::from_millis(20);
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A pipe that another program has set to non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            // If nobody reads stderr any more, nothing is left to do.
            Err(_) => return,
        }
    }
}

fn line_now(level: Level, event: &str, facts: &[(&str, &str)]) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    if IS_JSON.load(Ordering::Relaxed) {
        let now_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        return object(&show_utc_ms(now_ns), level, event, facts);
    }
    line(&show_utc(now.as_secs()), level, event, facts)
}

fn line(time: &str, level: Level, event: &str, facts: &[(&str, &str)]) -> String {
    let mut line = format!("time={time} level={} event={event:?}", level.name());
    for (key, value) in facts {
        line += &format!(" {key}={:?}", shortened(value, VALUE_CHARACTERS_MAX));
    }
    line + "\n"
}

/// Returns an event as a JSON object. Its facts are in an object of their own, so that no name occurs twice.
fn object(time: &str, level: Level, event: &str, facts: &[(&str, &str)]) -> String {
    let quoted = |text: &str| serde_json::Value::from(shortened(text, VALUE_CHARACTERS_MAX)).to_string();
    let fields: Vec<_> = facts.iter().map(|(key, value)| format!("{}:{}", quoted(key), quoted(value))).collect();
    let (time, level, event, fields) = (quoted(time), quoted(level.name()), quoted(event), fields.join(","));
    format!("{{\"time\":{time},\"level\":{level},\"event\":{event},\"fields\":{{{fields}}}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_it_tells() {
        let line = line("T", Level::Info, "it \"is\"", &[("reason", "two\nlines")]);
        assert_eq!(line, "time=T level=info event=\"it \\\"is\\\"\" reason=\"two\\nlines\"\n");
    }
    #[test]
    fn an_object_is_one_line_of_json_whatever_it_tells() {
        let facts = [("time", "two\nlines"), ("source", "\u{1b}[2J \"ä\" \\")];
        let object = object("2026-11-21T06:20:00.000Z", Level::Error, "it \"is\"", &facts);
        assert_eq!(object.matches('\n').count(), 1, "{object}");
        let read: serde_json::Value = serde_json::from_str(&object).unwrap();
        assert_eq!(read["level"], "error");
        assert_eq!((&read["event"], &read["fields"]["time"]), (&"it \"is\"".into(), &"two\nlines".into()));
        assert_eq!(read["fields"]["source"], "\u{1b}[2J \"ä\" \\");
        assert!(object.starts_with("{\"time\":\"2026-11-21T06:20:00.000Z\",\"level\":\"error\",\"event\":"));
    }
}
