//! The archive within a block: a tar of exactly two plain files. Main functions: [`read`] and [`write()`].
//!
//! Only the necessary part of the format is known: headers of 512 bytes with name, size and checksum (POSIX ustar, and GNU's as long as names
//! are short). Links, directories, long names and extensions are refused, so a name never decides where anything is written.

use super::{BlockError, IMAGE_NAME, RECORD_NAME};

const RECORD_BYTES: usize = 512;

/// Returns the two files of an archive: the record and the image.
pub(super) fn read(bytes: &[u8]) -> Result<(&[u8], &[u8]), BlockError> {
    let (mut record, mut image) = (None, None);
    let mut at = 0;
    loop {
        let header = bytes.get(at..at + RECORD_BYTES).ok_or_else(|| wrong("it is cut off"))?;
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let (name, size) = entry(header)?;
        let begin = at + RECORD_BYTES;
        let end = begin.checked_add(size).ok_or_else(|| wrong("a size is too large"))?;
        let content = bytes.get(begin..end).ok_or_else(|| wrong("it is cut off"))?;
        let place = match name.strip_prefix("./").unwrap_or(name) {
            RECORD_NAME => &mut record,
            IMAGE_NAME => &mut image,
            other => {
                return Err(wrong(format!("there is {other:?} in it; there must be {RECORD_NAME} and {IMAGE_NAME}")));
            }
        };
        if place.replace(content).is_some() {
            return Err(wrong(format!("{name} is in it twice")));
        }
        at = end.next_multiple_of(RECORD_BYTES);
    }
    if bytes[at..].iter().any(|byte| *byte != 0) {
        return Err(wrong("there is something behind its end"));
    }
    match (record, image) {
        (Some(record), Some(image)) => Ok((record, image)),
        (None, _) => Err(wrong(format!("{RECORD_NAME} is missing"))),
        (_, None) => Err(wrong(format!("{IMAGE_NAME} is missing"))),
    }
}

/// Returns name and size of an entry.
fn entry(header: &[u8]) -> Result<(&str, usize), BlockError> {
    if octal(&header[148..156]) != Some(checksum(header)) {
        return Err(wrong("the checksum of a header is wrong"));
    }
    if &header[257..262] != b"ustar" {
        return Err(wrong("it is no tar of POSIX or GNU; make it with tar --format=ustar"));
    }
    let name = text(&header[..100]).ok_or_else(|| wrong("a name is no text"))?;
    let has_prefix = &header[257..263] == b"ustar\0" && header[345] != 0;
    match header[156] {
        b'0' | 0 if !has_prefix => {}
        kind => {
            let kind = char::from(kind);
            return Err(wrong(format!(
                "entry {name:?} of type {kind:?} is no plain file; make it with tar --format=ustar"
            )));
        }
    }
    let size = octal(&header[124..136]).and_then(|size| usize::try_from(size).ok());
    Ok((name, size.ok_or_else(|| wrong("a size is no number"))?))
}

/// Returns an archive of both files.
pub(super) fn write(record: &[u8], image: &[u8], unix_s: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(record.len() + image.len() + 4 * RECORD_BYTES);
    for (name, content) in [(RECORD_NAME, record), (IMAGE_NAME, image)] {
        let mut header = [0; RECORD_BYTES];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, name);
        put(100, "0000644\0");
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{:011o}\0", content.len()));
        put(136, &format!("{:011o}\0", unix_s & 0o77_777_777_777));
        put(156, "0");
        put(257, "ustar\x0000");
        let sum = checksum(&header);
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(RECORD_BYTES), 0);
    }
    out.resize(out.len() + 2 * RECORD_BYTES, 0);
    out
}

/// Returns the sum of a header's bytes, with those of the checksum itself counted as spaces.
fn checksum(header: &[u8]) -> u64 {
    let byte = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { u64::from(b' ') } else { u64::from(*byte) };
    header.iter().enumerate().map(byte).sum()
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = text(field)?.trim_matches(' ');
    u64::from_str_radix(text, 8).ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field.split(|byte| *byte == 0).next()?).ok()
}

fn wrong(what: impl Into<String>) -> BlockError {
    BlockError::Archive(what.into())
}
