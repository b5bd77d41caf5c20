//! Reads samples block by block, in the memory of one block.
//!
//! Main type: [`SampleReader`]. Invariant: it returns the longest prefix of whole blocks, and reports when that is not all.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::block::Bytes;
use super::{BLOCK_MARK, BLOCK_SAMPLES_MAX, FIRST_LINE, SampleBlock, SampleHeader};
use crate::store::{StoreError, io};

/// Maximum length in bytes of the header and of a block's payload, so that a damaged length cannot ask for all memory.
const HEADER_BYTES_MAX: usize = 1 << 24;
const SAMPLE_BYTES_MAX: usize = 48;

/// A file of samples that is being read.
#[derive(Debug)]
pub struct SampleReader {
    path: PathBuf,
    file: BufReader<File>,
    /// The header of the file.
    pub header: SampleHeader,
    payload: Vec<u8>,
    samples: u64,
    ending: Option<Result<(), String>>,
}

impl SampleReader {
    /// Opens a file of samples.
    ///
    /// # Errors
    /// When it is not such a file, or was written in a newer format.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = File::open(path).map_err(|error| io(path, error))?;
        let mut file = BufReader::with_capacity(1 << 16, file);
        let damaged = |why: String| StoreError::Damaged { path: path.display().to_string(), line: 1, why };
        let read = |file: &mut BufReader<File>, bytes: &mut [u8]| match file.read_exact(bytes) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(damaged("the file ends within its header".to_owned()))
            }
            other => other.map_err(|error| io(path, error)),
        };
        let mut first = [0; FIRST_LINE.len()];
        read(&mut file, &mut first)?;
        if first != FIRST_LINE {
            return Err(damaged(
                "it does not begin with \"loadline samples 1\"; use the loadline that wrote it".to_owned(),
            ));
        }
        let length = read_number(&mut |bytes| read(&mut file, bytes))? as usize;
        if length > HEADER_BYTES_MAX {
            return Err(damaged(format!("a header of {length} bytes")));
        }
        let mut text = vec![0; length];
        read(&mut file, &mut text)?;
        let checksum = read_number(&mut |bytes| read(&mut file, bytes))?;
        if checksum != crc32fast::hash(&text) {
            return Err(damaged("the header does not agree with its checksum".to_owned()));
        }
        let header = serde_json::from_slice(&text).map_err(|error| damaged(format!("the header: {error}")))?;
        Ok(SampleReader { path: path.to_owned(), file, header, payload: Vec::new(), samples: 0, ending: None })
    }

    /// Reads the next block into `block`; returns false if there is none. A torn or damaged rest ends the samples;
    /// [`SampleReader::note`] reports it.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub fn next_block(&mut self, block: &mut SampleBlock) -> Result<bool, StoreError> {
        if self.ending.is_some() {
            return Ok(false);
        }
        match self.read_block(block) {
            Ok(true) => {
                self.samples += block.samples.len() as u64;
                return Ok(true);
            }
            Ok(false) => self.ending = Some(Ok(())),
            Err(Stop::Damaged(why)) => self.ending = Some(Err(why)),
            Err(Stop::Broken(error)) => return Err(io(&self.path, error)),
        }
        Ok(false)
    }

    /// Returns a note on the file after the last block: how many samples precede a torn or damaged rest; `None` if the file is complete.
    pub fn note(&self) -> Option<String> {
        let Some(Err(why)) = &self.ending else { return None };
        Some(format!("{}: {why}; the {} samples before that are used", self.path.display(), self.samples))
    }

    fn read_block(&mut self, block: &mut SampleBlock) -> Result<bool, Stop> {
        let mut lead = [0; 16];
        self.file.read_exact(&mut lead)?;
        let word = |at: usize| u32::from_le_bytes([lead[at], lead[at + 1], lead[at + 2], lead[at + 3]]);
        let (count, length, checksum) = (word(4) as usize, word(8) as usize, word(12));
        let most = BLOCK_SAMPLES_MAX * SAMPLE_BYTES_MAX;
        if &lead[..4] != BLOCK_MARK || count > BLOCK_SAMPLES_MAX || length > most {
            return Err(Stop::Damaged("a block does not begin as it should".to_owned()));
        }
        self.payload.resize(length, 0);
        self.file.read_exact(&mut self.payload)?;
        let mut found = crc32fast::Hasher::new();
        found.update(&lead[4..12]);
        found.update(&self.payload);
        if found.finalize() != checksum {
            return Err(Stop::Damaged("a block does not agree with its checksum".to_owned()));
        }
        if count > 0 {
            return block.decode(count, &self.payload).map(|()| true).map_err(Stop::Damaged);
        }
        let all = Bytes(&self.payload).varint().map_err(Stop::Damaged)?;
        let missing = || Stop::Damaged(format!("{all} samples were written and {} are there", self.samples));
        if all == self.samples { Ok(false) } else { Err(missing()) }
    }
}

/// The reason why reading ends.
enum Stop {
    Damaged(String),
    Broken(std::io::Error),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == ErrorKind::UnexpectedEof {
            Stop::Damaged("the file is torn: its trial did not end, or the disk was full".to_owned())
        } else {
            Stop::Broken(error)
        }
    }
}

fn read_number(read: &mut dyn FnMut(&mut [u8]) -> Result<(), StoreError>) -> Result<u32, StoreError> {
    let mut bytes = [0; 4];
    read(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}
