//! Answers of a server in version 2 of Redis's protocol (RESP2): parts of one line each, and byte strings of a given length.
//!
//! Main functions: [`read_part`], for answers that are taken in as they arrive, and [`ask`], which sends a command and waits for its answer.
//!
//! Invariant: no memory is reserved for a length that a server states; an incomplete part costs no more than parsing its first line.

use std::time::Duration;

use crate::database::DatabaseError;
use crate::database::error::shown;
use crate::database::session::{ANSWER_BYTES_MAX, Channel};

/// The maximum bytes of a line; errors of scripts are the longest that servers write.
const LINE_BYTES_MAX: usize = 8 << 10;
/// The maximum depth of nested lists: the answer to SCAN has two.
const DEPTH_MAX: u32 = 4;
/// The maximum number of parts of a kept answer.
const PARTS_MAX: usize = 1 << 20;

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A word such as `OK`.
    Status(&'a [u8]),
    /// The text of an error.
    Error(&'a [u8]),
    /// An integer.
    Number(i64),
    /// A byte string; `None` where there is no value.
    Bytes(Option<&'a [u8]>),
    /// A list, with the number of parts that follow; `None` where there is no list.
    List(Option<u32>),
}

/// Returns the part at the start of the input and its length; `None` while it is incomplete.
///
/// # Errors
/// [`DatabaseError::Lost`] when it is no part of the protocol.
pub(super) fn read_part(input: &[u8]) -> Result<Option<(Part<'_>, usize)>, DatabaseError> {
    let Some((line, length)) = read_line(input)? else { return Ok(None) };
    let Some((kind, text)) = line.split_first() else { return Err(unknown(line)) };
    let number = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    let part = match kind {
        b'+' => Part::Status(text),
        b'-' => Part::Error(text),
        b':' => Part::Number(number().ok_or_else(|| unknown(line))?),
        b'*' => match number() {
            Some(-1) => Part::List(None),
            Some(parts) => Part::List(Some(u32::try_from(parts).map_err(|_| unknown(line))?)),
            None => return Err(unknown(line)),
        },
        b'$' => match number() {
            Some(-1) => Part::Bytes(None),
            Some(bytes @ 0..) if bytes as u64 <= ANSWER_BYTES_MAX as u64 => {
                let end = length + bytes as usize;
                let Some(whole) = input.get(..end + 2) else { return Ok(None) };
                if !whole.ends_with(b"\r\n") {
                    return Err(DatabaseError::Lost(
                        "a value of the server has another length than it says".to_owned(),
                    ));
                }
                return Ok(Some((Part::Bytes(Some(&whole[length..end])), end + 2)));
            }
            _ => return Err(unknown(line)),
        },
        _ => return Err(unknown(line)),
    };
    Ok(Some((part, length)))
}

/// Returns the line at the start of the input without its end, and its length.
fn read_line(input: &[u8]) -> Result<Option<(&[u8], usize)>, DatabaseError> {
    let looked_at = &input[..input.len().min(LINE_BYTES_MAX)];
    match looked_at.iter().position(|byte| *byte == b'\n') {
        Some(end) => {
            let line = looked_at[..end].strip_suffix(b"\r").ok_or_else(|| unknown(&looked_at[..end]))?;
            Ok(Some((line, end + 1)))
        }
        None if looked_at.len() == LINE_BYTES_MAX => Err(unknown(looked_at)),
        None => Ok(None),
    }
}

fn unknown(line: &[u8]) -> DatabaseError {
    let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
    DatabaseError::Lost(format!("the server does not speak Redis's protocol here: {shown:?}"))
}

/// Returns the error for a part where another one must be.
pub(super) fn out_of_step(part: &Part<'_>) -> DatabaseError {
    let what = match part {
        Part::Status(_) => "a word",
        Part::Error(_) => "an error",
        Part::Number(_) => "a number",
        Part::Bytes(_) => "a value",
        Part::List(_) => "a list",
    };
    DatabaseError::Lost(format!("the server answers with {what} where something else must be"))
}

/// The maximum characters of an error that are told; the longest ones of Redis have about 330.
const ERROR_CHARACTERS_MAX: usize = 500;

/// Converts an error, whatever its bytes: its first word is its code, as in `WRONGTYPE Operation against a key`.
pub(super) fn refused(error: &[u8]) -> DatabaseError {
    let text = shown(&String::from_utf8_lossy(error), ERROR_CHARACTERS_MAX);
    match text.split_once(' ') {
        Some((code, message)) if code.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            DatabaseError::refused(code, message)
        }
        _ => DatabaseError::refused("ERR", text),
    }
}

/// An answer that is kept as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// A word.
    Status(String),
    /// An integer.
    Number(i64),
    /// A byte string; `None` where there is no value.
    Bytes(Option<Vec<u8>>),
    /// A list of answers.
    List(Vec<Reply>),
}

impl Reply {
    /// Returns a word or a byte string as text.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Reply::Status(text) => Some(text.clone()),
            Reply::Bytes(Some(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Reply::Number(number) => Some(number.to_string()),
            Reply::Bytes(None) | Reply::List(_) => None,
        }
    }
}

/// Appends a command of these words.
pub(super) fn command(words: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    words.iter().for_each(|word| bulk(word, out));
}

/// Appends a byte string.
pub(super) fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'$');
    number(bytes.len() as i64, out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends an integer.
pub(super) fn number(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    let mut left = value.unsigned_abs();
    loop {
        from -= 1;
        digits[from] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[from..]);
}

/// Sends a command and waits for its answer.
///
/// # Errors
/// [`DatabaseError::Refused`] with the server's error; [`DatabaseError::Lost`] when the connection breaks.
pub(super) fn ask(channel: &mut Channel, words: &[&[u8]]) -> Result<Reply, DatabaseError> {
    if !channel.is_scripted() && (!channel.input().is_empty() || channel.receive_within(Duration::ZERO)?) {
        return Err(DatabaseError::Lost("the server has sent more than it was asked for".to_owned()));
    }
    let mut out = Vec::new();
    command(words, &mut out);
    channel.send(&out)?;
    let mut parts_left = PARTS_MAX;
    receive(channel, DEPTH_MAX, &mut parts_left)
}

/// Returns the next answer. The first error within it becomes its outcome, after all of its parts are read.
fn receive(channel: &mut Channel, depth: u32, parts_left: &mut usize) -> Result<Reply, DatabaseError> {
    *parts_left = parts_left.checked_sub(1).ok_or_else(|| {
        DatabaseError::Lost(format!("an answer of the server has more than {PARTS_MAX} parts, and no more are read"))
    })?;
    loop {
        let (reply, length) = match read_part(channel.input())? {
            None => {
                channel.receive()?;
                continue;
            }
            Some((Part::Status(text), length)) => {
                (Ok(Reply::Status(String::from_utf8_lossy(text).into_owned())), length)
            }
            Some((Part::Error(text), length)) => (Err(refused(text)), length),
            Some((Part::Number(number), length)) => (Ok(Reply::Number(number)), length),
            Some((Part::Bytes(bytes), length)) => (Ok(Reply::Bytes(bytes.map(<[u8]>::to_vec))), length),
            Some((Part::List(None), length)) => (Ok(Reply::List(Vec::new())), length),
            Some((Part::List(Some(parts)), length)) => {
                channel.keep(length)?;
                channel.consume(length);
                return receive_list(channel, parts, depth, parts_left);
            }
        };
        channel.keep(length)?;
        channel.consume(length);
        return reply;
    }
}

fn receive_list(channel: &mut Channel, parts: u32, depth: u32, parts_left: &mut usize) -> Result<Reply, DatabaseError> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(DatabaseError::Lost("an answer of the server has lists within lists without end".to_owned()));
    };
    let (mut list, mut failure) = (Vec::new(), None);
    for _ in 0..parts {
        match receive(channel, depth, parts_left) {
            Ok(reply) => list.push(reply),
            Err(error) if error.is_refusal() => failure = failure.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    failure.map_or(Ok(Reply::List(list)), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_read_whole_and_told_apart() {
        let read = |input: &'static str| read_part(input.as_bytes()).unwrap();
        assert_eq!(read("+OK\r"), None);
        assert_eq!(read("+OK\r\n:"), Some((Part::Status(b"OK"), 5)));
        assert_eq!(read("-ERR no\r\n"), Some((Part::Error(b"ERR no"), 9)));
        assert_eq!(read(":-12\r\n"), Some((Part::Number(-12), 6)));
        assert_eq!(read("$3\r\na\nb\r"), None);
        assert_eq!(read("$3\r\na\nb\r\n+"), Some((Part::Bytes(Some(b"a\nb")), 9)));
        assert_eq!(read("$-1\r\n"), Some((Part::Bytes(None), 5)));
        assert_eq!(read("$0\r\n\r\n"), Some((Part::Bytes(Some(b"")), 6)));
        assert_eq!(read("*2\r\n"), Some((Part::List(Some(2)), 4)));
        assert_eq!(read("*-1\r\n"), Some((Part::List(None), 5)));
    }

    #[test]
    fn what_no_server_says_ends_the_connection() {
        for input in
            ["HTTP/1.1 400\r\n", "$-2\r\n", "$99999999999\r\n", "*x\r\n", ":\r\n", "\r\n", "+OK\n", "$1\r\nabc"]
        {
            assert!(read_part(input.as_bytes()).is_err(), "{input:?}");
        }
        assert_eq!(read_part(&[b'+'; LINE_BYTES_MAX - 1]), Ok(None));
        assert!(read_part(&[b'+'; LINE_BYTES_MAX]).is_err(), "no line is so long");
    }

    #[test]
    fn errors_have_their_first_word_as_code() {
        assert_eq!(refused(b"WRONGTYPE of a key"), DatabaseError::refused("WRONGTYPE", "of a key"));
        assert_eq!(refused(b"it is odd"), DatabaseError::refused("ERR", "it is odd"));
        assert_eq!(refused(b"E\x07R no"), DatabaseError::refused("ERR", "E?R no"));
        assert!(refused(&[b'x'; 100_000]).to_string().len() < 2 * ERROR_CHARACTERS_MAX);
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_the_library_does(value: i64) {
            let mut out = Vec::new();
            number(value, &mut out);
            prop_assert_eq!(out, value.to_string().into_bytes());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some((_, length))) = read_part(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
