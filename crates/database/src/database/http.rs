//! Answers of HTTP/1.1, for every target that is reached over HTTP. Main types: [`Reading`] takes an answer in as it arrives; [`read_answer`] takes a short one as a whole.
//!
//! [`request`] writes requests, [`steps`] sends the steps of an operation one after the other, and [`url`] reads the addresses of such stores.
//!
//! Invariant: nothing of the next answer is ever consumed, and no part of an answer is kept here. Heads and chunk sizes are bounded; the caller bounds the body.

pub mod request;
pub mod steps;
pub mod url;

use std::ops::Range;

use super::error::{TOLD_MOST, shown};

/// The maximum bytes of an answer's head; a longer one is invalid.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The maximum bytes of the body of an answer that is read as a whole: such an answer is a sentence.
const BODY_BYTES_MAX: usize = 64 << 10;
/// The maximum bytes of a line with the size of a chunk, or behind the last chunk.
const LINE_BYTES_MAX: usize = 1 << 10;
/// The maximum bytes of all lines behind the last chunk.
const TRAILER_BYTES_MAX: usize = 8 << 10;
/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// The extent of the body.
    pub extent: Extent,
    /// Whether the server closes the connection behind the answer.
    pub closes: bool,
    /// The bytes of the head.
    pub length: usize,
}

/// The extent of an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This many bytes.
    Bytes(u64),
    /// Chunks, each with its size.
    Chunks,
}

/// Reads the head of an answer; returns `None` while it is incomplete.
///
/// # Errors
/// A sentence: it is no answer of HTTP/1.1, or does not end.
pub fn read_head(input: &[u8]) -> Result<Option<Head>, String> {
    let looked_at = &input[..input.len().min(HEAD_BYTES_MAX + 1)];
    let Some(end) = looked_at.windows(4).position(|window| window == b"\r\n\r\n") else {
        let is_too_long = input.len() > HEAD_BYTES_MAX;
        return if is_too_long { Err("the answer's head does not end".to_owned()) } else { Ok(None) };
    };
    let text = String::from_utf8_lossy(&input[..end]);
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status: u16 = status.ok_or_else(|| format!("\"{}\" is no answer of HTTP/1.1", shown(first, TOLD_MOST)))?;
    let (mut length, mut is_chunked, mut closes) = (None, false, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let told = value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse::<u64>().ok()).flatten();
            let told = told.ok_or("the answer's length is no number")?;
            if length.is_some_and(|other| other != told) {
                return Err("the answer has two lengths".to_owned());
            }
            length = Some(told);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(format!("the answer is encoded as \"{}\", which was not asked for", shown(value, 40)));
            }
            is_chunked = true;
        } else if name.eq_ignore_ascii_case("content-encoding") && !value.eq_ignore_ascii_case("identity") {
            return Err(format!("the answer is encoded as \"{}\", which was not asked for", shown(value, 40)));
        } else if name.eq_ignore_ascii_case("connection") {
            closes |= value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close"));
        }
    }
    // What goes before another answer has no body.
    let has_body = status >= 200;
    let extent = match (length, is_chunked) {
        (Some(_), true) => return Err("the answer has both a length and chunks".to_owned()),
        (None, true) if has_body => Extent::Chunks,
        (Some(length), false) if has_body => Extent::Bytes(length),
        _ => Extent::Bytes(0),
    };
    Ok(Some(Head { status, extent, closes, length: end + 4 }))
}

/// An answer that was read as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The position of its body in the bytes that were read.
    pub body: Range<usize>,
}

/// Reads a short answer, with its length in its head; returns `None` while it is incomplete. An answer that claims to be longer than the maximum is an error.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn read_answer(input: &[u8]) -> Result<Option<HttpAnswer>, String> {
    let Some(Head { status, extent, length: head, .. }) = read_head(input)? else { return Ok(None) };
    let length = match extent {
        Extent::Bytes(length) => usize::try_from(length).unwrap_or(usize::MAX),
        Extent::Chunks => return Err("the answer has chunks, and its length is expected".to_owned()),
    };
    if length > BODY_BYTES_MAX {
        return Err(format!("the answer is said to have {length} bytes, and {BODY_BYTES_MAX} are read at most"));
    }
    let body = head..head + length;
    Ok((input.len() >= body.end).then_some(HttpAnswer { status, body }))
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// The head.
    Head(Head),
    /// The next bytes of the body.
    Body(&'a [u8]),
    /// A piece of framing, which says nothing.
    Framing,
    /// The end of the answer.
    End,
}

/// The progress within an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// The head comes next.
    #[default]
    Head,
    /// This many bytes of a body without chunks come next.
    Body(u64),
    /// The size of a chunk comes next.
    Size,
    /// This many bytes of a chunk come next.
    Chunk(u64),
    /// The line break behind a chunk comes next.
    Break,
    /// A line behind the last chunk comes next; this many bytes of such lines are left.
    Trailer(usize),
}

/// An answer that is taken in as it arrives, of any length.
#[derive(Debug, Default)]
pub struct Reading {
    stage: Stage,
}

impl Reading {
    /// Takes the next part from the beginning of `input`. Returns it with the number of its bytes; `None` while more are needed. Behind [`Part::End`], the next
    /// answer begins.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the answer.
    pub fn take<'a>(&mut self, input: &'a [u8]) -> Result<Option<(Part<'a>, usize)>, String> {
        let (stage, part, consumed) = match self.stage {
            Stage::Head => {
                let Some(head) = read_head(input)? else { return Ok(None) };
                let stage = match head.extent {
                    // Another answer follows one of these.
                    _ if head.status < 200 => Stage::Head,
                    Extent::Bytes(length) => Stage::Body(length),
                    Extent::Chunks => Stage::Size,
                };
                let length = head.length;
                (stage, if head.status < 200 { Part::Framing } else { Part::Head(head) }, length)
            }
            Stage::Body(0) => (Stage::Head, Part::End, 0),
            Stage::Body(left) | Stage::Chunk(left) => {
                if input.is_empty() {
                    return Ok(None);
                }
                let length = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - length as u64;
                let stage = match self.stage {
                    Stage::Chunk(_) if left == 0 => Stage::Break,
                    Stage::Chunk(_) => Stage::Chunk(left),
                    _ => Stage::Body(left),
                };
                (stage, Part::Body(&input[..length]), length)
            }
            Stage::Size => {
                let Some(line) = line(input)? else { return Ok(None) };
                let size = size(line)?;
                let stage = if size == 0 { Stage::Trailer(TRAILER_BYTES_MAX) } else { Stage::Chunk(size) };
                (stage, Part::Framing, line.len() + 2)
            }
            Stage::Break => match input {
                [b'\r', b'\n', ..] => (Stage::Size, Part::Framing, 2),
                [] | [b'\r'] => return Ok(None),
                _ => return Err("a chunk of the answer is longer than it says".to_owned()),
            },
            Stage::Trailer(left) => {
                let Some(line) = line(input)? else { return Ok(None) };
                match left.checked_sub(line.len()) {
                    _ if line.is_empty() => (Stage::Head, Part::End, 2),
                    Some(left) => (Stage::Trailer(left), Part::Framing, line.len() + 2),
                    None => return Err("what follows the answer's last chunk does not end".to_owned()),
                }
            }
        };
        self.stage = stage;
        Ok(Some((part, consumed)))
    }
}

/// Returns the first line, without its line break; `None` while it is incomplete.
fn line(input: &[u8]) -> Result<Option<&[u8]>, String> {
    let looked_at = &input[..input.len().min(LINE_BYTES_MAX)];
    match looked_at.windows(2).position(|window| window == b"\r\n") {
        Some(end) => Ok(Some(&input[..end])),
        None if looked_at.len() < LINE_BYTES_MAX => Ok(None),
        None => Err("a line between two chunks of the answer does not end".to_owned()),
    }
}

/// Reads the size of a chunk from its line; what stands behind a semicolon is passed over.
fn size(line: &[u8]) -> Result<u64, String> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_number = !digits.is_empty() && digits.len() <= 15 && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number);
    text.and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or_else(|| "the size of a chunk is no number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The status, the body and the bytes of the first answer that arrives in pieces of this size; `None` where it is incomplete.
    fn taken(input: &[u8], piece: usize) -> Result<Option<(u16, Vec<u8>, usize)>, String> {
        let (mut reading, mut body, mut status, mut at, mut shown) = (Reading::default(), Vec::new(), 0, 0, 0);
        loop {
            match reading.take(&input[at..shown])? {
                Some((part, consumed)) => {
                    at += consumed;
                    match part {
                        Part::Head(head) => status = head.status,
                        Part::Body(bytes) => body.extend_from_slice(bytes),
                        Part::Framing => {}
                        Part::End => return Ok(Some((status, body, at))),
                    }
                }
                None if shown == input.len() => return Ok(None),
                None => shown = (shown + piece).min(input.len()),
            }
        }
    }

    #[test]
    fn answers_are_read_whole_and_what_follows_stays() {
        let text = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 5\r\nretry-after: 1\r\n\r\nfull.HTTP";
        let answer = read_answer(text).unwrap().unwrap();
        assert_eq!(
            (answer.status, &text[answer.body.clone()], &text[answer.body.end..]),
            (503, &b"full."[..], &b"HTTP"[..])
        );
        for cut in 0..text.len() - 4 {
            assert!(read_answer(&text[..cut]).unwrap().is_none(), "{cut}");
        }
        let empty = read_answer(b"HTTP/1.1 204 No Content\r\ndate: x\r\n\r\n").unwrap().unwrap();
        assert_eq!((empty.status, empty.body.is_empty()), (204, true));
        for length in ["65537", "18446744073709551615", "18446744073709551616", "-1", "+1", "x"] {
            let answer = format!("HTTP/1.1 503 No\r\nContent-Length: {length}\r\n\r\n");
            assert!(read_answer(answer.as_bytes()).is_err(), "{length}");
        }
        assert!(read_answer(b"SSH\x08-2.0\r\n\r\n").is_err_and(|why| why.contains("\"SSH?-2.0\"")));
        assert!(read_answer(&vec![b'x'; HEAD_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn chunks_are_joined_in_pieces_of_any_size() {
        let head = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let text = format!("{head}4;x=y\r\nab\r\n\r\nA\r\n0123456789\r\n0\r\nDate: x\r\n\r\nHTTP");
        for piece in [1, 2, 7, 1_000] {
            let (status, body, length) = taken(text.as_bytes(), piece).unwrap().unwrap();
            assert_eq!((status, &body[..], length), (200, &b"ab\r\n0123456789"[..], text.len() - 4), "{piece}");
        }
        assert_eq!(taken(&text.as_bytes()[..text.len() - 6], 1), Ok(None));
        let sized = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP";
        assert_eq!(taken(sized, 2), Ok(Some((200, b"abc".to_vec(), sized.len() - 4))));
    }

    #[test]
    fn answers_that_could_be_taken_for_others_are_refused() {
        for head in [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        ] {
            assert!(taken(head.as_bytes(), 1_000).is_err(), "{head:?}");
        }
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(taken(format!("{chunked}{}", "0".repeat(LINE_BYTES_MAX)).as_bytes(), 9_999).is_err());
        let endless = format!("{chunked}0\r\n{}", "a: b\r\n".repeat(TRAILER_BYTES_MAX));
        assert!(taken(endless.as_bytes(), 9_999).is_err());
        assert!(read_head(b"HTTP/1.1 200 OK\r\nconnection: Close\r\n\r\n").unwrap().unwrap().closes);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(input in "(HTTP/1.1 200 OK\r\n|Transfer-Encoding: chunked\r\n|Content-Length: 3\r\n|\r\n|[0-3a]\r\n|.)*", piece in 1_usize..9) {
            prop_assert_eq!(taken(input.as_bytes(), piece).ok(), taken(input.as_bytes(), usize::MAX / 2).ok());
        }
    }
}
