//! Reads frames where they stand. Main type: [`Reader`].

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::segments::disk::{Disk, DiskFile};
use crate::segments::frame::{FrameHeader, HEADER_BYTES, Position};
use crate::segments::log::segment_name;

/// Files that are kept open.
const OPEN_MAX: usize = 8;

/// Why a frame was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Its segment is not there any more.
    #[error("its segment was given up")]
    Gone,
    /// It is not what was written; this is left of its body.
    #[error("its checksum is wrong")]
    Damaged(Vec<u8>),
    /// The disk failed.
    #[error("{0}")]
    Disk(String),
}

/// Reads from any number of threads, beside the one that appends.
pub struct Reader {
    disk: Arc<dyn Disk>,
    open: Mutex<BTreeMap<u64, Arc<dyn DiskFile>>>,
}

impl Reader {
    /// A reader of the log on this disk.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Reader { disk, open: Mutex::new(BTreeMap::new()) }
    }

    /// The body of a frame that is durable.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read(&self, header: &FrameHeader) -> Result<Vec<u8>, ReadError> {
        let (found, body) = self.bytes(header.position, header.length)?;
        let is_same = FrameHeader::decoded(&found, header.position, header.epoch) == Some(*header);
        if is_same && header.has_body(&body) { Ok(body) } else { Err(ReadError::Damaged(body)) }
    }

    /// The body, of so many bytes, of a durable frame of an epoch that stands somewhere.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read_at(&self, position: Position, length: u32, epoch: u64) -> Result<Vec<u8>, ReadError> {
        let (header, body) = self.bytes(position, length)?;
        let is_whole = FrameHeader::decoded(&header, position, epoch).is_some_and(|header| header.has_body(&body));
        if is_whole { Ok(body) } else { Err(ReadError::Damaged(body)) }
    }

    /// The header and the body of a frame as they are.
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

    /// Forgets a segment that was given up, so that its room is free.
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
            // What waits longest is read first.
            open.pop_first();
        }
        open.insert(segment, Arc::clone(&file));
        Ok(file)
    }
}
