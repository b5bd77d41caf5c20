//! Appends to a log and makes it durable. Main type: [`Log`].

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::segments::disk::{Disk, DiskFile};
use crate::segments::footer::Footer;
use crate::segments::frame::{FrameHeader, HEADER_BYTES, Position, SegmentHeader, stored_bytes};
use crate::segments::mark::{self, GIVEN_UP_MAX, GivenUp, Mark, Marks};
use crate::segments::recovery::Kept;
use crate::segments::scan::Through;

/// Maximum length of a body in bytes.
pub const BODY_MAX: u64 = 1 << 30;
/// Number of possible segment numbers: positions have 32 bits for them.
const NUMBERS: u64 = 1 << 32;
/// Sizes of segments are multiples of this many bytes.
const PAGE_BYTES: u64 = 4_096;

/// Settings of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Size of a segment in bytes. A segment for a longer frame has the size that the frame needs.
    pub segment_bytes: u64,
}

/// Why a log did not carry out a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// There is no room for another segment. Nothing was changed, and the request can be repeated.
    #[error("there is no room for another segment of the log: {0}")]
    NoRoom(String),
    /// The body is longer than a frame can be. Nothing was changed.
    #[error("a frame of {0} bytes is longer than a log takes")]
    TooLong(u64),
    /// The disk failed. It is unknown whether frames appended since the last commit are durable; this log can no longer be used.
    #[error("the log's disk failed: {0}")]
    Broken(String),
}

/// The segment being appended to.
pub struct Current {
    number: u64,
    file: Arc<dyn DiskFile>,
    /// Offset of the first byte that is not written yet.
    offset: u64,
    /// Offset of the footer.
    footer_at: u64,
}

/// A log that is open for appending by one thread.
pub struct Log {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) settings: Settings,
    pub(crate) marks: Marks,
    pub(crate) epoch: u64,
    pub(crate) current: Option<Current>,
    pub(crate) next_number: u64,
    /// Encoded frames of the current group that are not written yet.
    pub(crate) buffer: Vec<u8>,
    /// Sequence of the newest frame, and the rows through it.
    pub(crate) newest: Through,
    /// Sequence of the newest frame known to be on the disk, and the rows through it.
    pub(crate) durable: Through,
    /// Segments that were not given up, including the current one and missing ones.
    pub(crate) kept: BTreeMap<u64, Kept>,
    /// Segments above the first kept one that were given up.
    pub(crate) given_up: BTreeMap<u64, GivenUp>,
    /// Segments up to this number have their footers on the disk.
    pub(crate) sealed: u64,
    /// The caller's newest note.
    pub(crate) note: Vec<u8>,
    pub(crate) broken: Option<String>,
}

impl Log {
    /// Makes room for frames with bodies of these lengths, so that appending them finds it. Assumes that no appended frame waits for its commit.
    ///
    /// # Errors
    /// [`LogError::NoRoom`] and [`LogError::TooLong`]: nothing was changed. [`LogError::Broken`].
    pub fn make_room(&mut self, lengths: impl Iterator<Item = u64>) -> Result<(), LogError> {
        self.check()?;
        let mut needed = 0;
        for length in lengths {
            if length > BODY_MAX {
                return Err(LogError::TooLong(length));
            }
            needed += stored_bytes(length);
        }
        if needed == 0 || self.has_room(needed) {
            return Ok(());
        }
        self.finish_segment()?;
        self.begin_segment(needed)
    }

    fn has_room(&self, needed: u64) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.offset + self.buffer.len() as u64 + needed <= current.footer_at)
    }

    /// Appends a frame, which is durable after the next [`Log::commit`]. The body may be passed in parts.
    ///
    /// # Errors
    /// [`LogError::NoRoom`] and [`LogError::TooLong`]: earlier frames are unaffected, unless the disk refused room for them (see [`Log::commit`]). [`LogError::Broken`].
    pub fn append(&mut self, kind: u8, tag: u32, rows: u32, body: &[&[u8]]) -> Result<FrameHeader, LogError> {
        self.check()?;
        let length: u64 = body.iter().map(|part| part.len() as u64).sum();
        if length > BODY_MAX {
            return Err(LogError::TooLong(length));
        }
        let needed = stored_bytes(length);
        if !self.has_room(needed) {
            self.finish_segment()?;
            self.begin_segment(needed)?;
        }
        let Some(current) = &self.current else { return Err(LogError::NoRoom("none was made".to_owned())) };
        let offset = (current.offset + self.buffer.len() as u64) as u32;
        let body_checksum = body.iter().fold(0, |checksum, part| crc32c::crc32c_append(checksum, part));
        let header = FrameHeader {
            position: Position { segment: current.number, offset },
            length: length as u32,
            rows,
            tag,
            kind,
            epoch: self.epoch,
            sequence: self.newest.sequence + 1,
            rows_before: self.newest.rows,
            durable: self.durable.sequence,
            durable_rows: self.durable.rows,
            body_checksum,
        };
        let begin = self.buffer.len();
        self.buffer.extend_from_slice(&header.encoded());
        body.iter().for_each(|part| self.buffer.extend_from_slice(part));
        self.buffer.resize(begin + needed as usize, 0);
        self.newest = Through::new(header.sequence, header.rows_through());
        Ok(header)
    }

    /// Makes all appended frames durable, and returns the newest durable sequence.
    ///
    /// # Errors
    /// [`LogError::NoRoom`] if the disk has no room although it was reserved: frames appended since the last commit are forgotten then.
    /// [`LogError::Broken`].
    pub fn commit(&mut self) -> Result<u64, LogError> {
        self.check()?;
        let Some(current) = self.current.as_mut().filter(|_| !self.buffer.is_empty()) else {
            return Ok(self.durable.sequence);
        };
        let (file, written) = (Arc::clone(&current.file), current.file.write_at(&self.buffer, current.offset));
        if let Err(error) = self.without_room(written) {
            self.buffer.clear();
            self.newest = self.durable;
            return Err(error);
        }
        self.guard(file.sync())?;
        if let Some(current) = &mut self.current {
            current.offset += self.buffer.len() as u64;
        }
        self.buffer.clear();
        self.durable = self.newest;
        Ok(self.durable.sequence)
    }

    /// Finishes the current segment, so that it can be given up. All appended frames are durable then.
    ///
    /// # Errors
    /// As for [`Log::commit`].
    pub fn finish_segment(&mut self) -> Result<(), LogError> {
        self.commit()?;
        let Some(current) = self.current.take() else { return Ok(()) };
        // Everything that the footer covers is on the disk before the footer is written.
        let footer = Footer {
            number: current.number,
            epoch: self.epoch,
            last: self.durable.sequence,
            rows: self.durable.rows,
            certain: self.durable.sequence,
            certain_rows: self.durable.rows,
            missing: 0,
            missing_rows: 0,
        };
        let written = current.file.write_at(&footer.encoded(), current.footer_at);
        let (file, number) = (Arc::clone(&current.file), current.number);
        if let Err(no_room) = self.without_room(written) {
            self.current = Some(current);
            return Err(no_room);
        }
        self.guard(file.sync())?;
        self.sealed = number;
        if let Some(kept) = self.kept.get_mut(&number) {
            kept.end = self.durable;
        }
        Ok(())
    }

    /// Creates a segment with room for `needed` bytes of frames.
    fn begin_segment(&mut self, needed: u64) -> Result<(), LogError> {
        let bytes = self.settings.segment_bytes.max(needed + 2 * HEADER_BYTES as u64).next_multiple_of(PAGE_BYTES);
        let number = self.next_number;
        if number >= NUMBERS {
            return self.guard(Err(io::Error::other("its segments have used up all numbers")));
        }
        let file = match self.disk.create(&segment_name(number), bytes) {
            Ok(file) => file,
            Err(error) if can_be_tried_again(&error) => return Err(LogError::NoRoom(error.to_string())),
            Err(error) => return self.guard(Err(error)),
        };
        let begin = self.newest;
        let header = SegmentHeader { number, epoch: self.epoch, first: begin.sequence + 1, rows: begin.rows, bytes };
        let begun = file.write_at(&header.encoded(), 0);
        if let Err(error) = self.without_room(begun) {
            return self.not_begun(number, error);
        }
        self.next_number += 1;
        let begun = file.sync().and_then(|()| self.disk.sync());
        self.guard(begun)?;
        self.kept.insert(number, Kept { begin, end: begin });
        // Without a mark, nobody would notice if the segment went missing.
        if let Err(error) = self.write_mark(false) {
            self.kept.remove(&number);
            return self.not_begun(number, error);
        }
        let footer_at = bytes - HEADER_BYTES as u64;
        self.current = Some(Current { number, file, offset: HEADER_BYTES as u64, footer_at });
        Ok(())
    }

    /// Removes a segment that could not be begun, and returns the error.
    fn not_begun(&mut self, number: u64, error: LogError) -> Result<(), LogError> {
        // After a disk failure the content of the disk is unknown: the segment stays as it is.
        if let LogError::Broken(_) = error {
            return Err(error);
        }
        let removed = self.disk.remove(&segment_name(number));
        self.guard(removed)?;
        Err(error)
    }

    /// Gives up a segment: its frames are no longer wanted, and its room is free afterwards. Until then, each opening reports one that is damaged or missing. Returns false for
    /// the current segment, for one that is not kept, and while too many segments above the first kept one are given up; the call can be repeated then.
    ///
    /// # Errors
    /// [`LogError::NoRoom`]: nothing was changed. [`LogError::Broken`].
    pub fn give_up(&mut self, number: u64, note: &[u8]) -> Result<bool, LogError> {
        self.check()?;
        let is_current = self.current.as_ref().is_some_and(|current| current.number == number);
        let is_first = self.kept.keys().next() == Some(&number);
        let Some(kept) = self.kept.get(&number).filter(|_| !is_current) else { return Ok(false) };
        if !is_first && self.given_up.len() >= GIVEN_UP_MAX {
            return Ok(false);
        }
        let (frames, rows) = (kept.end.sequence - kept.begin.sequence, kept.end.rows - kept.begin.rows);
        let one = GivenUp { number, frames: clamped(frames), rows: clamped(rows) };
        let before = (*kept, self.given_up.clone());
        self.kept.remove(&number);
        self.given_up.insert(number, one);
        let first = self.kept.keys().next().copied().unwrap_or(self.next_number);
        self.given_up.retain(|number, _| *number > first);
        if let Err(error) = self.write_mark_twice(note, false) {
            self.kept.insert(number, before.0);
            self.given_up = before.1;
            return Err(error);
        }
        match self.disk.remove(&segment_name(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => self.guard(Err(error)),
            _ => Ok(true),
        }
    }

    /// Gives up segments without counting any frames for them. The next mark records it.
    pub(crate) fn leave_out(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.kept.remove(number);
            self.given_up.insert(*number, GivenUp { number: *number, frames: 0, rows: 0 });
        }
        let first = self.kept.keys().next().copied().unwrap_or(self.next_number);
        self.given_up.retain(|number, _| *number > first);
    }

    /// Records how far the log is durable, together with a note for the next opening; the record is durable when this returns. Without it, the frames of the last group
    /// before a crash are not known to have been durable if they are damaged.
    ///
    /// # Errors
    /// As for [`Log::commit`].
    pub fn mark(&mut self, note: &[u8]) -> Result<(), LogError> {
        self.check()?;
        self.keep_note(note);
        self.write_mark(false)
    }

    /// Makes everything durable, and records that nothing follows.
    ///
    /// # Errors
    /// [`LogError::Broken`].
    pub fn close(mut self, note: &[u8]) -> Result<(), LogError> {
        self.finish_segment()?;
        self.write_mark_twice(note, true)
    }

    fn keep_note(&mut self, note: &[u8]) {
        self.note = note[..note.len().min(mark::NOTE_MAX)].to_vec();
    }

    fn mark_with(&self, is_clean: bool) -> Mark {
        let (first, kept) =
            self.kept.iter().next().map_or((self.next_number, self.newest), |(first, kept)| (*first, kept.begin));
        Mark {
            generation: 0,
            epoch: self.epoch,
            durable: self.durable.sequence,
            rows: self.durable.rows,
            first,
            first_sequence: kept.sequence + 1,
            first_rows: kept.rows,
            newest: self.next_number - 1,
            sealed: self.sealed,
            is_clean,
            given_up: self.given_up.values().copied().collect(),
            note: self.note.clone(),
        }
    }

    pub(crate) fn write_mark_twice(&mut self, note: &[u8], is_clean: bool) -> Result<(), LogError> {
        self.keep_note(note);
        self.write_mark(is_clean)?;
        self.write_mark(is_clean)
    }

    fn write_mark(&mut self, is_clean: bool) -> Result<(), LogError> {
        let written = self.marks.write(&self.mark_with(is_clean));
        self.without_room(written)?;
        let synced = self.marks.sync();
        self.guard(synced)
    }

    /// Returns the newest sequence known to be on the disk.
    pub fn durable(&self) -> u64 {
        self.durable.sequence
    }

    /// Returns the number of rows that all frames acknowledge, including frames that are not committed yet.
    pub fn rows(&self) -> u64 {
        self.newest.rows
    }

    /// Returns the number of the current segment; `None` if there is none.
    pub fn current(&self) -> Option<u64> {
        self.current.as_ref().map(|current| current.number)
    }

    /// Returns the numbers of the segments that were not given up, ascending. The first of several consecutive missing segments represents all of them.
    pub fn segments(&self) -> impl Iterator<Item = u64> {
        self.kept.keys().copied()
    }

    /// Returns the size of a segment in bytes.
    ///
    /// # Errors
    /// Any error of the disk.
    pub fn bytes_of(&self, number: u64) -> io::Result<u64> {
        self.disk.open(&segment_name(number))?.bytes()
    }

    /// Returns the disk that holds the log.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    fn check(&self) -> Result<(), LogError> {
        self.broken.as_ref().map_or(Ok(()), |reason| Err(LogError::Broken(reason.clone())))
    }

    /// Evaluates a write: if it found no room, although some was reserved, nothing was written; any other error of the disk ends the log.
    fn without_room(&mut self, written: io::Result<()>) -> Result<(), LogError> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Err(LogError::NoRoom(error.to_string())),
            written => self.guard(written),
        }
    }

    /// Ends the log on an error of the disk.
    fn guard<T>(&mut self, outcome: io::Result<T>) -> Result<T, LogError> {
        outcome.map_err(|error| {
            let reason = error.to_string();
            self.broken = Some(reason.clone());
            LogError::Broken(reason)
        })
    }
}

fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the name of a segment's file.
pub fn segment_name(number: u64) -> String {
    format!("segment-{number:010}")
}

/// Returns the number in the name of a segment's file; `None` for other names.
pub fn segment_number(name: &str) -> Option<u64> {
    let number: u64 = name.strip_prefix("segment-")?.parse().ok()?;
    (number > 0 && number < NUMBERS && segment_name(number) == name).then_some(number)
}

/// Returns whether creating a file failed for a reason that may pass. Existing files are unaffected.
fn can_be_tried_again(error: &io::Error) -> bool {
    let is_of_descriptors = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
    is_of_descriptors
        || matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_segments_are_told_from_others() {
        assert_eq!(segment_name(12), "segment-0000000012");
        assert_eq!(segment_number("segment-0000000012"), Some(12));
        for other in [
            "segment-12",
            "segment-0000000000",
            "segment-4294967296",
            "mark",
            "segment-00000000x1",
            "segment-0000000012~",
        ] {
            assert_eq!(segment_number(other), None, "{other}");
        }
    }
}
