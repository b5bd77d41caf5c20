//! A log of segments: acknowledged rows wait here until they are stored for good. The log loses exactly what is damaged, and reports how much that is.
//!
//! Main types: [`Log`], to which one thread appends frames and which makes them durable; [`Recovered`], the result of opening it; [`Reader`], with which
//! other threads read frames; [`Disk`], the storage below.
//!
//! # On the disk
//!
//! All numbers are little-endian; all checksums are CRC-32C. A log is a directory with one file for each segment and the file `mark`.
//!
//! `segment-NNNNNNNNNN` has a fixed size and is preallocated; NNNNNNNNNN is its number, from 1, never used twice. It is
//!
//! - a header of 72 bytes: `checksum u32` of the other 68, `magic u32`, `number u64`, `epoch u64`, `first u64` (the sequence of its first frame), `rows u64` (acknowledged
//!   before it), `bytes u64` (its size), zeros;
//! - frames, each at a multiple of 8: a header of 72 bytes and a body. `checksum u32` of the other 68, `body checksum u32`, `length u32` of the body, `rows u32` that this
//!   frame acknowledges, `tag u32` and `kind u8` (the caller's), three zeros, `epoch u64`, `sequence u64`, `rows before u64` (acknowledged by all frames before it),
//!   `durable u64` (the newest sequence known to be on the disk when the frame was written), `durable rows u64` (acknowledged through that sequence), `position u64` (number of the
//!   segment × 2^32 + offset);
//! - a footer in its last 72 bytes, once nothing more is appended: `checksum u32`, `magic u32`, `number u64`, `epoch u64`, `last u64` (the sequence of its last frame), `rows u64`
//!   (acknowledged before or in it), `certain u64` (sequences up to this one were known to be on the disk), `certain rows u64`, `missing u64` and `missing rows u64` (of frames
//!   behind `certain` that had never reached the disk).
//!
//! `mark` has two slots of 16 KiB that are written in turns, the older one each time: `checksum u32` of the rest up to the end of its list and note, `magic u32`,
//! `generation u64`, `epoch u64`, `durable u64`, `rows u64` (acknowledged through `durable`), `first u64` (the lowest number of a segment that was not given up), its first
//! sequence and the rows before it as `u64`, `newest u64` (the highest number ever used), `sealed u64` (segments up to this number have their footers on the disk), `clean u8`,
//! three zeros, the number `u32` of segments above `first` that were given up, the length `u32` of the caller's note, zeros up to 96 bytes; then each of those as `number u64`,
//! `frames u32`, `rows u32`, and the note.
//!
//! # What is known after damage
//!
//! A frame whose body does not match its checksum is lost alone. Behind a damaged header, the next frame is searched for at every multiple of 8: it must have the right checksum,
//! the segment's epoch (a random number that no sender knows) and its own position. `rows before` of the frame behind a gap tells how many rows the gap held.
//!
//! A gap counts as damage if its frames were known to be durable, because a later frame of the same epoch, the footer, the mark, or the header of the
//! next segment says so. Otherwise it may be the remains of a group that a crash interrupted before anybody was told of it: an epoch begins with each opening, and the opening
//! records in the footers of the epoch before what was missing at its end.
//!
//! # Invariants
//!
//! A segment that existed when the log was opened is never appended to, and nothing in it is changed. Where a footer is missing, the frames are written once
//! more as they are, because it is unknown whether they ever reached the disk, and then the footer. A write or sync that fails ends the log ([`LogError::Broken`]): only a new
//! one, which reads what is really on the disk, continues.

mod disk;
mod footer;
mod frame;
mod log;
mod mark;
mod opening;
mod reader;
mod recovery;
mod scan;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;

#[cfg(test)]
mod tests;

pub use disk::{Directory, Disk, DiskFile};
pub use frame::{FrameHeader, Position, stored_bytes};
pub use log::{Log, LogError, Settings};
pub use mark::NOTE_MAX;
pub use opening::{look, look_at};
pub use reader::{ReadError, Reader};
pub use recovery::{Found, Gap, Recovered};
