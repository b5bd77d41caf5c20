//! Writes samples block by block.
//!
//! Main type: [`SampleWriter`]. Invariant: a block is completely in the file before the next one begins.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::block::push_varint;
use super::{BLOCK_MARK, FIRST_LINE, SampleBlock, SampleHeader};
use crate::store::{StoreError, io, to_json};

/// A file of samples that is being written.
#[derive(Debug)]
pub struct SampleWriter {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    payload: Vec<u8>,
    /// Number of samples written.
    pub samples: u64,
    /// Number of bytes written.
    pub bytes: u64,
}

impl SampleWriter {
    /// Creates the file, and its directory if that is missing. A file left by an interrupted trial is replaced.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, header: &SampleHeader) -> Result<Self, StoreError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| io(parent, error))?;
        }
        let file = File::create(path).map_err(|error| io(path, error))?;
        let mut writer = SampleWriter {
            path: path.to_owned(),
            file,
            buffer: FIRST_LINE.to_vec(),
            payload: Vec::new(),
            samples: 0,
            bytes: 0,
        };
        let text = to_json(header, path)?;
        writer.buffer.extend((text.len() as u32).to_le_bytes());
        writer.buffer.extend_from_slice(&text);
        writer.buffer.extend(crc32fast::hash(&text).to_le_bytes());
        writer.flush()?;
        Ok(writer)
    }

    /// Appends a block; an empty block is left out.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, block: &SampleBlock) -> Result<(), StoreError> {
        if block.samples.is_empty() {
            return Ok(());
        }
        self.payload.clear();
        block.encode(&mut self.payload);
        self.push_block(block.samples.len() as u32)?;
        self.samples += block.samples.len() as u64;
        Ok(())
    }

    /// Marks the file as complete. It is on disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        self.payload.clear();
        push_varint(&mut self.payload, self.samples);
        self.push_block(0)?;
        self.file.sync_data().map_err(|error| io(&self.path, error))
    }

    fn push_block(&mut self, count: u32) -> Result<(), StoreError> {
        self.buffer.clear();
        self.buffer.extend_from_slice(BLOCK_MARK);
        self.buffer.extend(count.to_le_bytes());
        self.buffer.extend((self.payload.len() as u32).to_le_bytes());
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&self.buffer[BLOCK_MARK.len()..]);
        checksum.update(&self.payload);
        self.buffer.extend(checksum.finalize().to_le_bytes());
        self.buffer.extend_from_slice(&self.payload);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.bytes += self.buffer.len() as u64;
        self.file.write_all(&self.buffer).map_err(|error| io(&self.path, error))
    }
}
