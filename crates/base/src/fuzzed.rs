//! What a target of fuzzing is, and what all of them assert. There for tests and for `fuzz/run` only (`cfg(fuzzing)`).
//!
//! Main type: [`Target`]. A target stands in a file `fuzzed.rs` beside what it reads, so that nothing becomes public for it; [`crate::fuzzing`] has the
//! list.

mod mutated;
mod script;

use std::cell::Cell;
use std::io::Write;
use std::os::unix::net::UnixStream;

pub use mutated::Mutator;
pub use script::{Script, heard};

/// Something that reads bytes of others.
pub struct Target {
    /// Its name, for `fuzz/run`.
    pub name: &'static str,
    /// Reads them, and panics where something does not hold.
    pub run: fn(&[u8]),
    /// Bytes to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that are worth trying.
    pub words: &'static [&'static str],
    /// What may be allocated at a time: so many bytes, and so many for each byte of the input.
    pub memory: (usize, usize),
    /// Whether its work grows no faster than the input, whatever comes.
    pub is_linear: bool,
}

thread_local! {
    /// Whether a target runs on this thread.
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// A line of the log that a target caused is bytes of others, too.
const LOG_LINE_BYTES_MAX: usize = 16 << 10;

impl Target {
    /// Gives it bytes.
    ///
    /// # Panics
    /// Where something does not hold.
    pub fn try_with(&self, input: &[u8]) {
        IS_RUNNING.set(true);
        (self.run)(input);
        IS_RUNNING.set(false);
    }
}

/// Takes a line of the log where a target has caused it, so that nobody is told.
pub fn takes_log(line: &str) -> bool {
    if IS_RUNNING.get() {
        assert_told(line.trim_end_matches('\n'), LOG_LINE_BYTES_MAX);
    }
    IS_RUNNING.get()
}

/// Asserts what holds of every sentence that somebody is told about what came: it is no longer than this, and does nothing to a terminal.
pub fn assert_told(sentence: &str, bytes_max: usize) {
    assert_short(sentence, bytes_max);
    assert!(!sentence.chars().any(char::is_control), "a control character is told: {sentence:?}");
}

/// As [`assert_told`], of sentences that go to a screen only, where control characters are shown and not sent.
pub fn assert_short(sentence: &str, bytes_max: usize) {
    assert!(sentence.len() <= bytes_max, "{} bytes are told: {:.300}", sentence.len(), sentence);
}

/// Seeds of texts.
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A socket on which the server has said everything, and its own end of it.
pub fn said_by_a_server(bytes: &[u8]) -> Option<(UnixStream, UnixStream)> {
    let (ours, mut theirs) = UnixStream::pair().ok()?;
    theirs.set_nonblocking(true).ok()?;
    theirs.write_all(&bytes[..bytes.len().min(64 << 10)]).ok()?;
    theirs.shutdown(std::net::Shutdown::Write).ok()?;
    Some((ours, theirs))
}
