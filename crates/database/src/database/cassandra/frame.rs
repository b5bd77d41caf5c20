//! Frames of version 4 of Cassandra's protocol: a header of nine bytes and a body of the length that it states.
//!
//! Main functions: [`read_frame`], for answers that are taken in as they arrive; [`Body`], which takes a body apart; [`ask`], which sends a message and waits for its
//! answer.
//!
//! Invariant: no memory is reserved for a length that a server states; an incomplete frame costs no more than looking at its header.

use std::time::Duration;

use crate::database::DatabaseError;
use crate::database::session::{ANSWER_BYTES_MAX, Channel};

/// The version of the protocol in the header of a request.
const VERSION: u8 = 4;
/// The version of the protocol in the header of an answer.
const ANSWER_VERSION: u8 = 0x84;
/// The length of a header in bytes.
pub(super) const HEADER_BYTES: usize = 9;
/// The flag of an answer whose body begins with warnings.
const WARNINGS: u8 = 0x08;
/// The stream of requests besides those of a load.
pub(super) const OWN_STREAM: i16 = 0;
/// The maximum characters of a server's message that are kept.
const MESSAGE_MAX: usize = 1_000;

/// The kinds of messages, by the number in their header.
pub(super) mod opcode {
    pub const ERROR: u8 = 0x00;
    pub const STARTUP: u8 = 0x01;
    pub const READY: u8 = 0x02;
    pub const AUTHENTICATE: u8 = 0x03;
    pub const OPTIONS: u8 = 0x05;
    pub const SUPPORTED: u8 = 0x06;
    pub const QUERY: u8 = 0x07;
    pub const RESULT: u8 = 0x08;
    pub const PREPARE: u8 = 0x09;
    pub const EXECUTE: u8 = 0x0a;
    pub const BATCH: u8 = 0x0d;
    pub const AUTH_CHALLENGE: u8 = 0x0e;
    pub const AUTH_RESPONSE: u8 = 0x0f;
    pub const AUTH_SUCCESS: u8 = 0x10;
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// The kind of message, one of [`opcode`].
    pub opcode: u8,
    /// The stream of the request that it answers.
    pub stream: i16,
    /// What the message says, without warnings.
    pub body: &'a [u8],
}

/// Returns the frame at the start of the input and its length in bytes; `None` while it is incomplete.
///
/// # Errors
/// [`DatabaseError::Lost`] when it is no frame of the protocol, or one that was not asked for.
pub(super) fn read_frame(input: &[u8]) -> Result<Option<(Frame<'_>, usize)>, DatabaseError> {
    let Some((version, _)) = input.split_first() else { return Ok(None) };
    // A server of another version names it in its refusal, in a form that all versions share.
    if !(0x83..=0x85).contains(version) {
        return Err(broken("does not speak Cassandra's protocol here"));
    }
    let Some(header) = input.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let [_, flags, high, low, opcode, length @ ..] = *header;
    if *version != ANSWER_VERSION && opcode != opcode::ERROR {
        return Err(broken("answers in another version of the protocol"));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > ANSWER_BYTES_MAX {
        let most = ANSWER_BYTES_MAX >> 20;
        return Err(DatabaseError::Lost(format!(
            "the server sends a message of more than {most} MiB, and none is read"
        )));
    }
    if flags & !WARNINGS != 0 {
        return Err(broken("sends something with an answer that was not asked for"));
    }
    let Some(whole) = input.get(HEADER_BYTES..HEADER_BYTES + length) else { return Ok(None) };
    let mut body = Body(whole);
    if flags & WARNINGS != 0 {
        for _ in 0..body.short()? {
            body.string()?;
        }
    }
    let frame = Frame { opcode, stream: i16::from_be_bytes([high, low]), body: body.0 };
    Ok(Some((frame, HEADER_BYTES + length)))
}

/// What is left of the body of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Body<'a>(pub &'a [u8]);

impl<'a> Body<'a> {
    /// Takes this many bytes.
    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], DatabaseError> {
        let (taken, left) =
            self.0.split_at_checked(bytes).ok_or_else(|| broken("sends a message that ends too early"))?;
        self.0 = left;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], DatabaseError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| broken("sends a message that ends too early"))
    }

    pub(super) fn short(&mut self) -> Result<u16, DatabaseError> {
        Ok(u16::from_be_bytes(self.chunk()?))
    }

    pub(super) fn int(&mut self) -> Result<i32, DatabaseError> {
        Ok(i32::from_be_bytes(self.chunk()?))
    }

    /// Takes a number that counts something.
    pub(super) fn count(&mut self) -> Result<u32, DatabaseError> {
        u32::try_from(self.int()?).map_err(|_| broken("sends a number below zero where something is counted"))
    }

    /// Takes bytes with their length in front, as a short.
    pub(super) fn short_bytes(&mut self) -> Result<&'a [u8], DatabaseError> {
        let length = self.short()?;
        self.take(length.into())
    }

    /// Takes a text.
    pub(super) fn string(&mut self) -> Result<&'a str, DatabaseError> {
        std::str::from_utf8(self.short_bytes()?).map_err(|_| broken("sends a text that is not UTF-8"))
    }

    /// Takes a value; `None` where there is none.
    pub(super) fn value(&mut self) -> Result<Option<&'a [u8]>, DatabaseError> {
        match self.int()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| broken("sends a value with a length below zero"))?;
                self.take(length).map(Some)
            }
        }
    }

    /// Checks that nothing is left.
    pub(super) fn end(self) -> Result<(), DatabaseError> {
        if self.0.is_empty() { Ok(()) } else { Err(broken("sends a message that is longer than what it says")) }
    }
}

/// Returns the error for a server that does this.
pub(super) fn broken(does: &str) -> DatabaseError {
    DatabaseError::Lost(format!("the server {does}"))
}

/// Returns the error for an answer where another one must be.
pub(super) fn out_of_step(frame: &Frame<'_>) -> DatabaseError {
    DatabaseError::Lost(format!("the server answers with message {:#04x} where something else must be", frame.opcode))
}

/// What the server says when it does not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// The number of the error.
    pub code: i32,
    /// The server's sentence.
    pub message: String,
}

/// The codes of errors after which nobody knows whether a write is stored: an error inside the server, a write that timed out or failed on a node, and one whose
/// condition is unknown.
const UNKNOWN_OUTCOMES: [i32; 4] = [0x0000, 0x1100, 0x1500, 0x1700];
/// The code of a refused user or password.
pub(super) const BAD_CREDENTIALS: i32 = 0x0100;

impl Said {
    /// Takes an error apart. What some codes add to it is not needed.
    pub(super) fn of(body: &[u8]) -> Result<Self, DatabaseError> {
        let mut body = Body(body);
        let code = body.int()?;
        let told = String::from_utf8_lossy(body.short_bytes()?);
        let message = told.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(MESSAGE_MAX);
        Ok(Said { code, message: message.collect() })
    }

    /// Returns the error of a request that reads or writes.
    pub(super) fn outcome(self, writes: bool) -> DatabaseError {
        match writes && UNKNOWN_OUTCOMES.contains(&self.code) {
            true => DatabaseError::Lost(format!(
                "closed by the client, because nobody knows whether its write is stored: {} ({:#06x})",
                self.message, self.code
            )),
            false => DatabaseError::refused(format!("{:#06x}", self.code), self.message),
        }
    }
}

/// Appends a header whose length is set by [`end_frame`]; returns where the frame begins.
pub(super) fn begin_frame(opcode: u8, stream: i16, out: &mut Vec<u8>) -> usize {
    let from = out.len();
    let [high, low] = stream.to_be_bytes();
    out.extend_from_slice(&[VERSION, 0, high, low, opcode, 0, 0, 0, 0]);
    from
}

/// Sets the length of the frame that begins there. Returns whether it is one that the protocol can state.
pub(super) fn end_frame(from: usize, out: &mut [u8]) -> bool {
    /// The longest body that the protocol allows.
    const BODY_BYTES_MAX: usize = 256 << 20;
    let length = out.len() - from - HEADER_BYTES;
    out[from + 5..from + HEADER_BYTES].copy_from_slice(&(length as u32).to_be_bytes());
    length <= BODY_BYTES_MAX
}

/// Appends bytes with their length in front, as a short. They are shorter than 64 KiB.
pub(super) fn short_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends bytes with their length in front, as an int.
pub(super) fn long_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a map of texts.
pub(super) fn string_map(pairs: &[(&str, &str)], out: &mut Vec<u8>) {
    out.extend_from_slice(&(pairs.len() as u16).to_be_bytes());
    for (name, value) in pairs {
        short_bytes(name.as_bytes(), out);
        short_bytes(value.as_bytes(), out);
    }
}

/// An answer that is kept as a whole.
#[derive(Debug)]
pub(super) struct Kept {
    /// The kind of message.
    pub opcode: u8,
    /// What the message says.
    pub body: Vec<u8>,
}

/// Sends a message and waits for its answer, which is an error only as [`Kept`].
///
/// # Errors
/// [`DatabaseError::Lost`] when the connection breaks.
pub(super) fn ask(channel: &mut Channel, opcode: u8, body: &[u8]) -> Result<Kept, DatabaseError> {
    if !channel.is_scripted() && (!channel.input().is_empty() || channel.receive_within(Duration::ZERO)?) {
        return Err(broken("has sent more than it was asked for"));
    }
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
    let from = begin_frame(opcode, OWN_STREAM, &mut out);
    out.extend_from_slice(body);
    end_frame(from, &mut out);
    channel.send(&out)?;
    loop {
        if let Some((frame, length)) = read_frame(channel.input())? {
            if frame.stream != OWN_STREAM {
                return Err(broken("answers to something that it was not asked"));
            }
            let kept = Kept { opcode: frame.opcode, body: frame.body.to_vec() };
            channel.consume(length);
            return Ok(kept);
        }
        channel.receive()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(flags: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
        let mut out = vec![0x84, flags, 0, 7, opcode];
        long_bytes(body, &mut out);
        out
    }

    #[test]
    fn frames_are_read_whole_and_warnings_passed_over() {
        let whole = answer(WARNINGS, opcode::RESULT, b"\0\x01\0\x02ab\0\0\0\x01");
        for length in 0..whole.len() {
            assert_eq!(read_frame(&whole[..length]), Ok(None), "{length}");
        }
        let frame = Frame { opcode: opcode::RESULT, stream: 7, body: b"\0\0\0\x01" };
        assert_eq!(read_frame(&whole), Ok(Some((frame, whole.len()))));
    }

    #[test]
    fn what_no_server_says_ends_the_connection() {
        let long = [0x84, 0, 0, 0, opcode::RESULT, 0xff, 0xff, 0xff, 0xff];
        let compressed = answer(1, opcode::RESULT, b"");
        let short = answer(WARNINGS, opcode::RESULT, b"\0\x09");
        let other = [0x85, 0, 0, 0, opcode::READY, 0, 0, 0, 0];
        for input in [&b"HTTP/1.1 400"[..], b"\x04", &long, &compressed, &short, &other] {
            assert!(read_frame(input).is_err(), "{input:?}");
        }
        // A refusal may be in another version.
        assert!(matches!(read_frame(b"\x85\0\0\0\0\0\0\0\0"), Ok(Some(_))));
    }

    #[test]
    fn an_unknown_outcome_of_a_write_ends_the_connection() {
        let said = |code: i32| Said { code, message: "it took long".to_owned() };
        assert!(said(0x1100).outcome(true).is_lost());
        assert_eq!(said(0x1100).outcome(false), DatabaseError::refused("0x1100", "it took long"));
        assert_eq!(said(0x2200).outcome(true), DatabaseError::refused("0x2200", "it took long"));
        assert_eq!(Said::of(b"\0\0\x22\0\0\x03a\nb").unwrap().message, "a b", "nothing moves a terminal");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some((frame, length))) = read_frame(&bytes) {
                prop_assert!(length <= bytes.len() && frame.body.len() <= length);
            }
            let _ = Said::of(&bytes);
        }
    }
}
