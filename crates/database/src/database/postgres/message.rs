//! Messages of PostgreSQL's protocol, version 3: finding them in the server's output, and writing the client's.
//!
//! Invariant: [`read`] returns whole messages only, and never more than was received.

use crate::database::DatabaseError;

/// The maximum length of a message that the server accepts or sends, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 0x3fff_ffff;

/// Ends a pipeline: the statements before it are one transaction, unless they opened one themselves.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// Asks for the answers so far, without ending the transaction.
pub const FLUSH: [u8; 5] = [b'H', 0, 0, 0, 4];

/// Ends the data of a COPY.
pub const COPY_DONE: [u8; 5] = [b'c', 0, 0, 0, 4];

/// Executes the unnamed portal to its end.
pub const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

/// Fails a COPY whose data the server waits for, and ends the pipeline.
pub const COPY_FAIL_AND_SYNC: [u8; 11] = [b'f', 0, 0, 0, 5, 0, b'S', 0, 0, 0, 4];

/// A message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'input> {
    /// The kind of message.
    pub tag: u8,
    /// The bytes that follow the length.
    pub body: &'input [u8],
}

impl Message<'_> {
    /// Returns the length of the whole message in bytes.
    pub fn length(&self) -> usize {
        self.body.len() + 5
    }

    /// Returns whether the server may send the message at any time, independent of requests.
    pub fn is_unasked(&self) -> bool {
        matches!(self.tag, b'N' | b'S' | b'A')
    }
}

/// Returns the message at the start of the input; `None` while it is incomplete.
///
/// # Errors
/// [`DatabaseError::Lost`] when the length is impossible: the bytes are not PostgreSQL's protocol.
#[inline]
pub fn read(input: &[u8]) -> Result<Option<Message<'_>>, DatabaseError> {
    let Some((&[tag, a, b, c, d], rest)) = input.split_first_chunk::<5>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
        return Err(broken(&format!("a message of kind {tag:#04x} states a length of {length} bytes")));
    }
    Ok(rest.get(..length - 4).map(|body| Message { tag, body }))
}

/// Returns the error for bytes that are not PostgreSQL's protocol.
#[cold]
pub fn broken(what: &str) -> DatabaseError {
    DatabaseError::Lost(format!("the server does not keep to PostgreSQL's protocol: {what}"))
}

/// Appends a message; `fill` appends the bytes that follow the length. A message with tag 0 has no tag, as the first one
/// of a connection.
pub fn write(out: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    if tag != 0 {
        out.push(tag);
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    set_length(out, start);
}

/// Writes the length at `start`, which counts everything from there on.
#[inline]
pub fn set_length(out: &mut [u8], start: usize) {
    debug_assert!(out.len() - start <= MESSAGE_BYTES_MAX, "callers refuse longer messages");
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a text and its terminating zero. Zeros within it are omitted, as the protocol cannot carry them.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

/// Takes a text with its terminating zero off the front; `None` when there is no zero.
pub fn take_text<'body>(body: &mut &'body [u8]) -> Option<&'body [u8]> {
    let end = body.iter().position(|byte| *byte == 0)?;
    let text = &body[..end];
    *body = &body[end + 1..];
    Some(text)
}

/// Takes a 16-bit integer off the front.
#[inline]
pub fn take_i16(body: &mut &[u8]) -> Option<i16> {
    let (bytes, rest) = body.split_first_chunk()?;
    *body = rest;
    Some(i16::from_be_bytes(*bytes))
}

/// Takes a 32-bit integer off the front.
#[inline]
pub fn take_i32(body: &mut &[u8]) -> Option<i32> {
    let (bytes, rest) = body.split_first_chunk()?;
    *body = rest;
    Some(i32::from_be_bytes(*bytes))
}

/// Takes a value off the front: its length in 32 bits, -1 for null, then its bytes. The outer `None` is a malformed value.
#[inline]
pub fn take_value<'body>(body: &mut &'body [u8]) -> Option<Option<&'body [u8]>> {
    match take_i32(body)? {
        -1 => Some(None),
        length => {
            let (value, rest) = body.split_at_checked(usize::try_from(length).ok()?)?;
            *body = rest;
            Some(Some(value))
        }
    }
}

/// The content of an ErrorResponse.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// ERROR, FATAL or PANIC.
    pub severity: String,
    /// SQLSTATE, five characters.
    pub code: String,
    /// The message.
    pub message: String,
    /// The function of the server that raised the error.
    pub routine: String,
}

impl ServerError {
    /// Reads the body of an ErrorResponse. Missing fields stay empty.
    pub fn read(mut body: &[u8]) -> Self {
        let mut error = ServerError::default();
        while let Some((&kind, rest)) = body.split_first() {
            body = rest;
            let Some(text) = (kind != 0).then(|| take_text(&mut body)).flatten() else {
                break;
            };
            let text = || String::from_utf8_lossy(text).into_owned();
            match kind {
                // `V` is never translated, unlike `S`, and follows it.
                b'S' | b'V' => error.severity = text(),
                b'C' => error.code = text(),
                b'M' => error.message = text(),
                b'R' => error.routine = text(),
                _ => {}
            }
        }
        error
    }

    /// Returns whether the server closes the connection after the error.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
            || self.code.starts_with("08")
            || matches!(self.code.as_str(), "57P01" | "57P02" | "57P03")
    }
}

impl ServerError {
    /// Returns whether the error says that a prepared statement reads columns whose type has changed.
    fn is_of_changed_columns(&self) -> bool {
        self.code == "0A000" && self.routine == "RevalidateCachedQuery"
    }
}

impl From<ServerError> for DatabaseError {
    fn from(error: ServerError) -> Self {
        if error.is_of_changed_columns() {
            return DatabaseError::Lost(format!(
                "the columns of a table have other types than when its statements were prepared; they are prepared anew ({})",
                error.code
            ));
        }
        if error.is_fatal() {
            return DatabaseError::Lost(format!("{} ({})", error.message, error.code));
        }
        DatabaseError::refused(error.code, error.message)
    }
}

/// Returns the types of the columns in a RowDescription, as type OIDs; `None` when it is malformed.
pub(super) fn column_types(mut body: &[u8]) -> Option<Vec<u32>> {
    let count = take_i16(&mut body)?;
    let mut column = || {
        take_text(&mut body)?;
        // The table and its column; then the type; then its size, modifier and format.
        body = body.get(6..)?;
        let oid = take_i32(&mut body)?;
        body = body.get(8..)?;
        Some(oid as u32)
    };
    (0..count).map(|_| column()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error_response(fields: &[(u8, &str)]) -> Vec<u8> {
        let mut body: Vec<u8> = Vec::new();
        for (kind, text) in fields {
            body.push(*kind);
            write_text(&mut body, text);
        }
        body.push(0);
        body
    }

    #[test]
    fn a_message_is_handed_out_only_when_whole() {
        let mut bytes = Vec::new();
        write(&mut bytes, b'C', |out| write_text(out, "SELECT 1"));
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]), Ok(None), "{length} bytes");
        }
        bytes.push(b'Z');
        let message = read(&bytes).unwrap().unwrap();
        assert_eq!((message.tag, message.body, message.length()), (b'C', &b"SELECT 1\0"[..], bytes.len() - 1));
    }

    #[test]
    fn impossible_lengths_are_told() {
        for length in [0, 3, 0x4000_0000, u32::MAX] {
            let mut bytes = vec![b'D'];
            bytes.extend(length.to_be_bytes());
            assert!(matches!(read(&bytes), Err(DatabaseError::Lost(_))), "{length}");
        }
    }

    #[test]
    fn errors_that_end_the_connection_are_losses_and_others_refusals() {
        let read = |severity, code| -> DatabaseError {
            let fields = [(b'S', "FEHLER"), (b'V', severity), (b'C', code), (b'M', "why"), (b'L', "12")];
            ServerError::read(&error_response(&fields)).into()
        };
        assert_eq!(read("ERROR", "23505"), DatabaseError::refused("23505", "why"));
        assert_eq!(read("FATAL", "57P01"), DatabaseError::Lost("why (57P01)".into()));
        assert_eq!(read("FATAL", "53300"), DatabaseError::Lost("why (53300)".into()));
        assert_eq!(read("ERROR", "08006"), DatabaseError::Lost("why (08006)".into()));
        assert_eq!(ServerError::read(b""), ServerError::default());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some(message)) = read(&bytes) {
                prop_assert!(message.length() <= bytes.len());
            }
            ServerError::read(&bytes);
            let mut rest = &bytes[..];
            while take_value(&mut rest).is_some() {}
            take_text(&mut rest);
        }
    }
}
