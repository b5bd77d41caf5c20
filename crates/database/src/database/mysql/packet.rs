//! Packets: the framing of the protocol. Main type: [`Message`], one whole message at the front of the input.
//!
//! A message of 16 MiB - 1 bytes or more is split into several packets, the last of them shorter (or empty).
//!
//! Invariant: nothing here panics or allocates beyond the message, whatever bytes arrive.

use std::borrow::Cow;

/// The maximum bytes of one packet's payload; a packet of this length is continued by the next.
pub const PAYLOAD_MAX: usize = 0xff_ffff;

const HEADER: usize = 4;

/// One whole message, with the headers of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    raw: &'a [u8],
    first: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads the message at the front of the input; `None` while it is incomplete.
    #[inline]
    pub fn at_front_of(input: &'a [u8]) -> Option<Message<'a>> {
        let length = payload_length(input)?;
        let first = input.get(HEADER..HEADER + length)?;
        let mut end = HEADER + length;
        let mut last = length;
        while last == PAYLOAD_MAX {
            last = payload_length(input.get(end..)?)?;
            end += HEADER + last;
        }
        Some(Message { raw: input.get(..end)?, first })
    }

    /// Returns the number of bytes that the message takes in the input.
    #[inline]
    pub fn length(&self) -> usize {
        self.raw.len()
    }

    /// Returns the payload of the first packet, which is all of it unless [`Message::is_long`].
    #[inline]
    pub fn first(&self) -> &'a [u8] {
        self.first
    }

    /// Returns whether the message consists of several packets.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.first.len() == PAYLOAD_MAX
    }

    /// Returns the whole payload; copied into one piece when the message is long.
    pub fn payload(&self) -> Cow<'a, [u8]> {
        if !self.is_long() {
            return Cow::Borrowed(self.first);
        }
        let mut joined = Vec::with_capacity(self.raw.len());
        for packet in self.raw.chunks(HEADER + PAYLOAD_MAX) {
            joined.extend_from_slice(&packet[HEADER..]);
        }
        Cow::Owned(joined)
    }

    /// Returns the sequence number of the last packet.
    pub fn sequence(&self) -> u8 {
        self.raw.chunks(HEADER + PAYLOAD_MAX).last().map_or(0, |packet| packet[3])
    }
}

#[inline]
fn payload_length(input: &[u8]) -> Option<usize> {
    let header: [u8; HEADER] = input.get(..HEADER)?.try_into().ok()?;
    Some((u32::from_le_bytes(header) & 0xff_ffff) as usize)
}

/// Reserves a header; the payload must be appended next and then closed with [`end`].
#[inline]
pub fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; HEADER]);
    at
}

/// Writes the header of the message begun at `at`, whose first packet has this sequence number; a long message is split into packets.
#[inline]
pub fn end(out: &mut Vec<u8>, at: usize, sequence: u8) {
    let length = out.len() - at - HEADER;
    if length < PAYLOAD_MAX {
        write_header(out, at, length, sequence);
    } else {
        cut(out, at, sequence);
    }
}

/// Inserts the headers of the second packet and those after it, from the back.
#[cold]
fn cut(out: &mut Vec<u8>, at: usize, sequence: u8) {
    let length = out.len() - at - HEADER;
    let further = length / PAYLOAD_MAX;
    out.resize(out.len() + further * HEADER, 0);
    for packet in (1..=further).rev() {
        let from = at + HEADER + packet * PAYLOAD_MAX;
        let part = (length - packet * PAYLOAD_MAX).min(PAYLOAD_MAX);
        let to = from + packet * HEADER;
        out.copy_within(from..from + part, to);
        write_header(out, to - HEADER, part, sequence.wrapping_add(packet as u8));
    }
    write_header(out, at, PAYLOAD_MAX, sequence);
}

#[inline]
fn write_header(out: &mut [u8], at: usize, length: usize, sequence: u8) {
    let header = (length as u32) | u32::from(sequence) << 24;
    out[at..at + HEADER].copy_from_slice(&header.to_le_bytes());
}

/// Appends a COM_QUERY: a statement as text.
pub fn query(out: &mut Vec<u8>, sql: &str) {
    command(out, 0x03, sql.as_bytes());
}

/// Appends a command with its data.
pub fn command(out: &mut Vec<u8>, code: u8, data: &[u8]) {
    let at = begin(out);
    out.push(code);
    out.extend_from_slice(data);
    end(out, at, 0);
}

/// Appends a length-encoded integer.
#[inline]
pub fn length(out: &mut Vec<u8>, length: usize) {
    match length {
        0..=250 => out.push(length as u8),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => out.extend_from_slice(&((length as u32) << 8 | 0xfd).to_le_bytes()),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&(length as u64).to_le_bytes());
        }
    }
}

/// Takes values from the front of a payload; `None` where the payload is too short.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// Takes the next bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes the next bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// Takes one byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|bytes| bytes[0])
    }

    /// Takes a 2-byte integer.
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Takes a 4-byte integer.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Takes a length-encoded integer; also `None` for the marker of a null.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        Some(match self.u8()? {
            small @ 0..=250 => u64::from(small),
            0xfc => u64::from(self.u16()?),
            0xfd => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xfe => u64::from_le_bytes(self.array()?),
            _ => return None,
        })
    }

    /// Takes bytes preceded by their length.
    #[inline]
    pub fn counted(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.bytes(usize::try_from(count).ok()?)
    }

    /// Takes the bytes up to a zero byte, which is skipped; all remaining bytes when there is none.
    pub fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let taken = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or(&[]);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_of_every_critical_length_arrive_as_they_were_sent() {
        for length in [0, 1, 250, PAYLOAD_MAX - 1, PAYLOAD_MAX, PAYLOAD_MAX + 1, 2 * PAYLOAD_MAX, 2 * PAYLOAD_MAX + 9] {
            let payload: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
            let mut out = b"before".to_vec();
            let at = begin(&mut out);
            out.extend_from_slice(&payload);
            end(&mut out, at, 254);
            let sent = &out[6..];
            let message = Message::at_front_of(sent).unwrap();
            assert_eq!(message.length(), sent.len(), "{length}");
            assert!(message.payload().as_ref() == payload, "{length}");
            assert_eq!(message.sequence(), 254u8.wrapping_add((length / PAYLOAD_MAX) as u8));
            for missing in [1, 3, 4, 5] {
                assert_eq!(Message::at_front_of(&sent[..sent.len().saturating_sub(missing)]), None, "{length}");
            }
        }
    }

    #[test]
    fn numbers_read_as_they_were_written() {
        for number in [0, 250, 251, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, usize::MAX] {
            let mut out = Vec::new();
            length(&mut out, number);
            let mut fields = Fields(&out);
            assert_eq!(fields.number(), Some(number as u64));
            assert!(fields.0.is_empty());
        }
        assert_eq!(Fields(&[0xfb]).number(), None);
        assert_eq!(Fields(&[3, 1, 2]).counted(), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(message) = Message::at_front_of(&bytes) {
                prop_assert!(message.length() <= bytes.len());
                message.payload();
                message.sequence();
            }
            let mut fields = Fields(&bytes);
            while fields.counted().is_some() {}
            fields.until_zero();
        }
    }
}
