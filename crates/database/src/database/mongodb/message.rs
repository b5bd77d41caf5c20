//! Messages of MongoDB's protocol, all of the kind OP_MSG: a header, flags, and sections with a document or a sequence of documents.
//!
//! Main functions: [`read_message`], for answers that are taken in as they arrive; [`command`], which appends one; [`ask`], which sends a command and waits for its answer.
//!
//! Invariant: no memory is reserved for a length that a server states; an incomplete message costs no more than looking at its header.

use std::time::Duration;

use super::bson::{self, Document, Value, broken};
use crate::database::DatabaseError;
use crate::database::session::{ANSWER_BYTES_MAX, Channel};

/// The length of a header: those of the message, of itself and of what it answers, and the kind.
pub(super) const HEADER_BYTES: usize = 16;
/// The kind OP_MSG.
const OP_MSG: u32 = 2013;
/// The length of the flags, and that of the kind of a section.
const FLAG_BYTES: usize = 4;
const SECTION_BYTES: usize = 1;
/// The kinds of sections: a document, and a sequence of documents.
const BODY: u8 = 0;
const SEQUENCE: u8 = 1;
/// The maximum characters of a server's message that are kept.
const MESSAGE_MAX: usize = 1_000;

/// The number of commands besides those of a load, which have others.
const OWN_NUMBER: u32 = 0;

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Message<'a> {
    /// The number of the command that it answers.
    pub answers: u32,
    /// What the message says.
    pub body: Document<'a>,
}

/// Returns the message at the start of the input and its length in bytes; `None` while it is incomplete.
///
/// # Errors
/// [`DatabaseError::Lost`] when it is no message of the protocol, or one that was not asked for.
pub(super) fn read_message(input: &[u8]) -> Result<Option<(Message<'_>, usize)>, DatabaseError> {
    let Some(header) = input.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if number(12) != OP_MSG {
        return Err(broken("does not speak MongoDB's protocol here"));
    }
    let length = number(0) as usize;
    if length > ANSWER_BYTES_MAX {
        let most = ANSWER_BYTES_MAX >> 20;
        return Err(DatabaseError::Lost(format!(
            "the server sends a message of more than {most} MiB, and none is read"
        )));
    }
    let from = HEADER_BYTES + FLAG_BYTES + SECTION_BYTES;
    if length < from {
        return Err(broken("sends a message that is shorter than its header"));
    }
    let Some(whole) = input.get(..length) else { return Ok(None) };
    // A checksum, or messages without a question.
    if whole[HEADER_BYTES..HEADER_BYTES + FLAG_BYTES] != [0; FLAG_BYTES] {
        return Err(broken("sends something with an answer that was not asked for"));
    }
    if whole[from - SECTION_BYTES] != BODY {
        return Err(broken("answers with something else than a document"));
    }
    Ok(Some((Message { answers: number(8), body: Document::whole(&whole[from..])? }, length)))
}

/// Appends the beginning of a message; returns its offset, for [`end_message`].
pub(super) fn begin_message(number: u32, out: &mut Vec<u8>) -> usize {
    let from = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&OP_MSG.to_le_bytes());
    out.extend_from_slice(&[0; FLAG_BYTES]);
    from
}

/// Sets the length of the message that begins at an offset.
pub(super) fn end_message(from: usize, out: &mut [u8]) {
    let length = (out.len() - from) as u32;
    out[from..from + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends the section with the command itself; `fill` appends its members but the database.
pub(super) fn body(database: &str, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    out.push(BODY);
    let from = bson::begin(out);
    fill(out);
    bson::text("$db", database.as_bytes(), out);
    bson::end(from, out);
}

/// Appends the beginning of a section with documents; returns its offset, for [`end_sequence`].
pub(super) fn begin_sequence(name: &str, out: &mut Vec<u8>) -> usize {
    out.push(SEQUENCE);
    let from = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    from
}

/// Sets the length of the section that begins at an offset.
pub(super) fn end_sequence(from: usize, out: &mut [u8]) {
    end_message(from, out);
}

/// Appends a command; `fill` appends its members but the database.
pub(super) fn command(number: u32, database: &str, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let from = begin_message(number, out);
    body(database, out, fill);
    end_message(from, out);
}

/// Sends a command and passes its answer to a function.
///
/// # Errors
/// [`DatabaseError::Refused`] with the server's error; [`DatabaseError::Lost`] when the connection breaks.
pub(super) fn ask<T>(
    channel: &mut Channel,
    database: &str,
    fill: impl FnOnce(&mut Vec<u8>),
    read: impl FnOnce(Document<'_>) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    if !channel.is_scripted() && (!channel.input().is_empty() || channel.receive_within(Duration::ZERO)?) {
        return Err(broken("has sent more than it was asked for"));
    }
    let mut out = Vec::new();
    command(OWN_NUMBER, database, &mut out, fill);
    channel.ask(&named(&out));
    channel.send(&out)?;
    loop {
        if let Some((message, length)) = read_message(channel.input())? {
            if message.answers != OWN_NUMBER {
                return Err(broken("answers to something that it was not asked"));
            }
            let outcome = refusal(message.body).and_then(|refused| match refused {
                Some(refused) => Err(refused.error()),
                None => read(message.body),
            });
            channel.consume(length);
            return outcome;
        }
        channel.receive()?;
    }
}

/// Returns a command as messages name it: by its first member, which is its name, and what that is about.
fn named(message: &[u8]) -> String {
    let body = message.get(HEADER_BYTES + FLAG_BYTES + SECTION_BYTES..).unwrap_or_default();
    let Some(Ok(first)) = Document::whole(body).ok().and_then(|body| body.members().next()) else {
        return String::new();
    };
    let name = String::from_utf8_lossy(first.name);
    match first.value.shown(MESSAGE_MAX) {
        Some(about) => format!("{name} {about}"),
        None => name.into_owned(),
    }
}

/// What the server says when it does not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// The number of the error.
    pub code: i64,
    /// The server's sentence.
    pub message: String,
}

impl Said {
    /// Takes an error apart, which has its code and message under these names.
    pub(super) fn of(document: Document<'_>) -> Result<Self, DatabaseError> {
        let code = document.get("code")?.and_then(Value::whole).unwrap_or_default();
        let message = document.get("errmsg")?.and_then(|value| value.shown(MESSAGE_MAX)).unwrap_or_default();
        Ok(Said { code, message })
    }

    /// Returns the error of a request that changed nothing.
    pub(super) fn error(self) -> DatabaseError {
        DatabaseError::refused(self.code.to_string(), self.message)
    }
}

/// Returns the error in an answer; `None` where the command was carried out.
///
/// # Errors
/// [`DatabaseError::Lost`] where the answer does not say whether it was.
pub(super) fn refusal(body: Document<'_>) -> Result<Option<Said>, DatabaseError> {
    match body.get("ok")?.and_then(Value::whole) {
        Some(1) => Ok(None),
        Some(0) => Said::of(body).map(Some),
        _ => Err(broken("does not say whether it has done what it was asked")),
    }
}

/// Returns an answer as a server sends it.
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub(super) fn answer(answers: u32, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    let from = begin_message(0, &mut out);
    out[from + 8..from + 12].copy_from_slice(&answers.to_le_bytes());
    out.push(BODY);
    let start = bson::begin(&mut out);
    fill(&mut out);
    bson::end(start, &mut out);
    end_message(from, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_answer_is_read_when_it_is_whole() {
        let mut input = answer(7, |out| bson::double("ok", 1.0, out));
        for length in 0..input.len() {
            assert_eq!(read_message(&input[..length]), Ok(None));
        }
        let whole = input.len();
        input.extend_from_slice(b"next");
        let (message, length) = read_message(&input).unwrap().unwrap();
        assert_eq!((message.answers, length), (7, whole));
        assert_eq!(refusal(message.body), Ok(None));
    }

    #[test]
    fn what_no_server_says_ends_the_connection() {
        let right = answer(7, |out| bson::double("ok", 1.0, out));
        let changed = |at: usize, byte: u8| {
            let mut wrong = right.clone();
            wrong[at] = byte;
            wrong
        };
        for wrong in [changed(12, 0), changed(16, 2), changed(18, 1), changed(20, 1), changed(3, 0x7f), changed(0, 20)]
        {
            assert!(read_message(&wrong).is_err(), "{wrong:?}");
        }
        assert!(read_message(b"HTTP/1.1 400 Bad Request").is_err());
        let silent = answer(7, |out| bson::int32("n", 1, out));
        let (message, _) = read_message(&silent).unwrap().unwrap();
        assert!(refusal(message.body).is_err(), "it does not say whether it has done it");
    }

    #[test]
    fn a_command_is_named_with_what_it_is_about() {
        let named_by = |fill: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            command(OWN_NUMBER, "d", &mut out, fill);
            named(&out)
        };
        assert_eq!(named_by(&|out| bson::text("create", b"t\x1b", out)), "create t ");
        assert_eq!(named_by(&|out| bson::int32("buildInfo", 1, out)), "buildInfo");
        assert_eq!(named(b"nothing"), "");
    }

    #[test]
    fn errors_have_their_code_and_sentence() {
        let refused = answer(0, |out| {
            bson::double("ok", 0.0, out);
            bson::text("errmsg", b"no\nway", out);
            bson::int32("code", 26, out);
        });
        let (message, _) = read_message(&refused).unwrap().unwrap();
        let said = refusal(message.body).unwrap().unwrap();
        assert_eq!(said.error(), DatabaseError::refused("26", "no way"), "nothing moves a terminal");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut input = answer(0, |out| out.extend_from_slice(&bytes));
            input.extend_from_slice(&bytes);
            if let Ok(Some((message, length))) = read_message(&input) {
                prop_assert!(length <= input.len());
                let _ = refusal(message.body);
            }
        }
    }
}
