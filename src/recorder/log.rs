//! Structured logs on stderr: one line an event, `time=… level=… event="…" key="…"`, which people and programs read.
//!
//! Main functions: [`info`], [`warning`], [`error`], and [`never_wait`], behind which no caller waits for whoever reads stderr: lines go through a
//! bounded queue to a thread of their own. Invariant: lines that find no room are counted, and the log says how many they were.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use super::log_queue::Queue;
use super::quote::shortened;
use crate::units::show_utc;

/// Characters of a value at most: whoever composed it has shortened what came from outside, and this is for what was forgotten.
const VALUE_CHARACTERS_MAX: usize = 2_000;

/// The queue, once there is one.
static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Something that operators may want to know.
pub fn info(event: &str, facts: &[(&str, &str)]) {
    say(&line_now("info", event, facts));
}

/// Something that they should look at.
pub fn warning(event: &str, facts: &[(&str, &str)]) {
    say(&line_now("warning", event, facts));
}

/// Something that they must look at.
pub fn error(event: &str, facts: &[(&str, &str)]) {
    say(&line_now("error", event, facts));
}

/// Writes a line, with its end, to stderr, in the order of the log's own.
pub fn say(line: &str) {
    match QUEUE.get() {
        Some(queue) => queue.push(line.to_owned()),
        // Nothing is left to do when nobody listens any more.
        None => drop(std::io::stderr().lock().write_all(line.as_bytes())),
    }
}

/// From now on nobody waits for whoever reads stderr; panics are told the same way. At the end [`flush`] is needed.
pub fn never_wait() {
    // The thread must not hold the lock of stderr, which others would wait for.
    let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned().map(File::from) else { return };
    let queue = QUEUE.get_or_init(Queue::default);
    let write = move |line: &str| write_all(&stderr, line.as_bytes());
    let work =
        move || queue.work(&write, &|dropped| line_now("warning", "log lines were dropped", &[("lines", dropped)]));
    if std::thread::Builder::new().name("log".to_owned()).spawn(work).is_ok() {
        std::panic::set_hook(Box::new(|panic| error("panic", &[("what", &panic.to_string())])));
    } else {
        queue.close();
    }
}

/// Waits until everything is written, but no longer than this.
pub fn flush(within: Duration) {
    if let Some(queue) = QUEUE.get() {
        queue.flush(within);
    }
}

/// Lines that were dropped because nobody took those before them.
pub fn dropped() -> u64 {
    QUEUE.get().map_or(0, Queue::dropped)
}

fn write_all(mut to: &File, mut bytes: &[u8]) {
    const PAUSE: Duration = Duration::from_millis(20);
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A pipe of a program that never waits either.
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            // Nothing is left to do when nobody listens any more.
            Err(_) => return,
        }
    }
}

fn line_now(level: &str, event: &str, facts: &[(&str, &str)]) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    line(&show_utc(now.as_secs()), level, event, facts)
}

fn line(time: &str, level: &str, event: &str, facts: &[(&str, &str)]) -> String {
    let mut line = format!("time={time} level={level} event={event:?}");
    for (key, value) in facts {
        line += &format!(" {key}={:?}", shortened(value, VALUE_CHARACTERS_MAX));
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
