//! Reads frames from their segments. Main type: [`Reader`].

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::segments::disk::{Disk, DiskFile};
use crate::segments::frame::{FrameHeader, HEADER_BYTES, Position};
use crate::segments::log::segment_name;

/// Maximum number of files kept open.
const OPEN_MAX: usize = 8;

/// Why a frame was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The segment is no longer there.
    #[error("its segment was given up")]
    Gone,
    /// The frame differs from what was written; this is what is left of its body.
    #[error("its checksum is wrong")]
    Damaged(Vec<u8>),
    /// The disk failed.
    #[error("{0}")]
    Disk(String),
}

/// Reads frames from any number of threads, while another thread appends.
pub struct Reader {
    disk: Arc<dyn Disk>,
    open: Mutex<BTreeMap<u64, Arc<dyn DiskFile>>>,
}

impl Reader {
    /// Creates a reader of the log on this disk.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Reader { disk, open: Mutex::new(BTreeMap::new()) }
    }

    /// Reads the body of a durable frame.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read(&self, header: &FrameHeader) -> Result<Vec<u8>, ReadError> {
        let (found, body) = self.bytes(header.position, header.length)?;
        let is_same = FrameHeader::decoded(&found, header.position, header.epoch) == Some(*header);
        if is_same && header.has_body(&body) { Ok(body) } else { Err(ReadError::Damaged(body)) }
    }

    /// Reads the body, `length` bytes long, of the durable frame of `epoch` at `position`.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read_at(&self, position: Position, length: u32, epoch: u64) -> Result<Vec<u8>, ReadError> {
        let (header, body) = self.bytes(position, length)?;
        let is_whole = FrameHeader::decoded(&header, position, epoch).is_some_and(|header| header.has_body(&body));
        if is_whole { Ok(body) } else { Err(ReadError::Damaged(body)) }
    }

    /// Returns the header and the body of a frame as they are on the disk, unchecked.
    fn bytes(&self, position: Position, length: u32) -> Result<(Vec<u8>, Vec<u8>), ReadError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ReadError::Gone,
            _ => ReadError::Disk(error.to_string()),
        };
        let file = self.file(position.segment).map_err(failed)?;
        let mut bytes = vec![0; HEADER_BYTES + length as usize];
        let read = file.read_at(&mut bytes, position.offset.into()).map_err(failed)?;
        bytes.truncate(read);
        let body = bytes.split_off(bytes.len().min(HEADER_BYTES));
        Ok((bytes, body))
    }

    /// Closes the file of a segment that was given up, so that its room is free.
    pub fn forget(&self, segment: u64) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&segment);
    }

    fn file(&self, segment: u64) -> io::Result<Arc<dyn DiskFile>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(&segment) {
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(&segment_name(segment))?;
        if open.len() >= OPEN_MAX {
            // The oldest segment is read first, so it is closed first.
            open.pop_first();
        }
        open.insert(segment, Arc::clone(&file));
        Ok(file)
    }
}
