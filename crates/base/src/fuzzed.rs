//! Targets of fuzzing, and the assertions that all of them share. Compiled for tests and for `fuzz/run` only (`cfg(fuzzing)`).
//!
//! Main type: [`Target`]. A target is in a file `fuzzed.rs` beside the code that it tests, so that nothing becomes public for it; [`crate::fuzzing`] has the
//! list.

mod mutated;
mod script;

use std::cell::Cell;
use std::io::Write;
use std::os::unix::net::UnixStream;

pub use mutated::Mutator;
pub use script::{Script, heard};

/// A reader of untrusted bytes.
pub struct Target {
    /// Name of the target, for `fuzz/run`.
    pub name: &'static str,
    /// Reads the bytes, and panics where an invariant does not hold.
    pub run: fn(&[u8]),
    /// Returns the inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that are worth trying in inputs.
    pub words: &'static [&'static str],
    /// Largest size of an allocation: this many bytes, plus this many for each byte of the input.
    pub memory: (usize, usize),
    /// Whether the work grows no faster than the input, for any input.
    pub is_linear: bool,
}

thread_local! {
    /// Whether a target is running on this thread.
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Longest line of the log, in bytes, that a target may cause: such a line can contain untrusted bytes, too.
const LOG_LINE_BYTES_MAX: usize = 16 << 10;

impl Target {
    /// Runs the target with an input.
    ///
    /// # Panics
    /// Where an invariant does not hold.
    pub fn try_with(&self, input: &[u8]) {
        IS_RUNNING.set(true);
        (self.run)(input);
        IS_RUNNING.set(false);
    }
}

/// Checks and swallows a line of the log that a target has caused. Returns whether a target is running on this thread.
pub fn takes_log(line: &str) -> bool {
    if IS_RUNNING.get() {
        assert_told(line.trim_end_matches('\n'), LOG_LINE_BYTES_MAX);
    }
    IS_RUNNING.get()
}

/// Asserts what holds for every message about untrusted bytes: it is at most `bytes_max` long, and has no control characters, which a terminal would obey.
pub fn assert_told(sentence: &str, bytes_max: usize) {
    assert_short(sentence, bytes_max);
    assert!(!sentence.chars().any(char::is_control), "a control character is told: {sentence:?}");
}

/// Asserts the length as [`assert_told`] does, for messages that go to a screen only, where control characters are shown and not sent.
pub fn assert_short(sentence: &str, bytes_max: usize) {
    assert!(sentence.len() <= bytes_max, "{} bytes are told: {:.300}", sentence.len(), sentence);
}

/// Turns texts into seeds.
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Returns a socket on which a server has sent all its bytes, and the server's own end of it.
pub fn said_by_a_server(bytes: &[u8]) -> Option<(UnixStream, UnixStream)> {
    let (ours, mut theirs) = UnixStream::pair().ok()?;
    theirs.set_nonblocking(true).ok()?;
    theirs.write_all(&bytes[..bytes.len().min(64 << 10)]).ok()?;
    theirs.shutdown(std::net::Shutdown::Write).ok()?;
    Some((ours, theirs))
}
