//! The content of one file: the current content is in a file below, and the synced content of blocks that have changed since is kept in memory.
//!
//! Invariants: memory is bounded by the unsynced blocks, each kept at most once; [`Content::cut`] with nothing kept gives exactly what the last sync saw.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of a block, the unit in which a page cache writes back.
pub const BLOCK: u64 = 4096;

/// Bytes of a sector, which a disk writes wholly or not at all.
pub const SECTOR: u64 = 512;

/// Maximum length of a file: 64 GiB. Truncated content is remembered block by block.
pub const LONGEST: u64 = 1 << 36;

/// A block that has changed since the last sync.
#[derive(Debug)]
struct Changed {
    /// The synced content; `None` for zeros, as beyond the end of the synced file.
    before: Option<Box<[u8]>>,
    /// Number of the last write to the block, among all writes of the disk.
    write: u64,
    /// Whether a sync of the block failed: the next successful sync does not write it, as on Linux.
    is_given_up: bool,
}

/// The length of a file after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The length at the last sync.
    Synced,
    /// The length that programs saw last.
    Now,
    /// The length that the kept blocks require.
    Kept,
}

/// The content of a file.
#[derive(Debug)]
pub struct Content {
    file: File,
    length: u64,
    synced_length: u64,
    changed: BTreeMap<u64, Changed>,
}

impl Content {
    /// Creates empty content in an empty file of the disk.
    pub fn new(file: File) -> Self {
        Content { file, length: 0, synced_length: 0, changed: BTreeMap::new() }
    }

    /// Returns the length that programs see, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the number of blocks that a cut may lose.
    pub fn unsynced_blocks(&self) -> usize {
        self.changed.len()
    }

    /// Returns whether the length is that of the last sync.
    pub fn has_synced_length(&self) -> bool {
        self.length == self.synced_length
    }

    /// Reads up to `most` bytes from an offset; fewer at the end of the file.
    ///
    /// # Errors
    ///
    /// The file below cannot be read.
    pub fn read(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let most = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX).min(most);
        let mut bytes = vec![0; most];
        read_whole(&self.file, &mut bytes, offset)?;
        Ok(bytes)
    }

    /// Writes at an offset; `write` is the number of this write among all writes of the disk.
    ///
    /// # Errors
    ///
    /// The file below cannot be read or written.
    pub fn write(&mut self, offset: u64, bytes: &[u8], write: u64) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = end_of(offset, bytes.len() as u64)?;
        self.remember(offset, end, write)?;
        self.file.write_all_at(bytes, offset)?;
        self.length = self.length.max(end);
        Ok(())
    }

    /// Makes a span read as zeros, without changing the length.
    ///
    /// # Errors
    ///
    /// The file below cannot be read or written.
    pub fn clear(&mut self, offset: u64, length: u64, write: u64) -> io::Result<()> {
        let end = end_of(offset, length)?.min(self.length);
        let zeros = vec![0; BLOCK as usize];
        let mut at = offset;
        while at < end {
            let part = (BLOCK - at % BLOCK).min(end - at);
            self.write(at, &zeros[..part as usize], write)?;
            at += part;
        }
        Ok(())
    }

    /// Sets the length: truncated bytes are gone, added bytes read as zeros.
    ///
    /// # Errors
    ///
    /// The file below cannot be read, or its length cannot be set.
    pub fn set_length(&mut self, length: u64, write: u64) -> io::Result<()> {
        end_of(length, 0)?;
        // Content beyond the synced end is not on the disk: there is nothing to lose.
        let known = self.length.min(self.synced_length);
        if length < known {
            self.remember(length, known, write)?;
        }
        self.file.set_len(length)?;
        self.length = length;
        Ok(())
    }

    /// Makes all content safe, except blocks that a failed sync gave up.
    pub fn sync(&mut self) {
        self.changed.retain(|_, block| block.is_given_up);
        self.synced_length = self.length;
    }

    /// Makes a span safe, and the length that it needs, as for a write with `O_DSYNC`.
    pub fn sync_span(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        if length > 0 {
            self.changed.retain(|number, block| {
                let (first, last) = (offset / BLOCK, (end - 1) / BLOCK);
                block.is_given_up || !(first..=last).contains(number)
            });
        }
        self.synced_length = self.synced_length.max(end.min(self.length));
    }

    /// Records a failed sync: every program takes the changed blocks for written, and they are not on the disk.
    pub fn give_up(&mut self) {
        self.changed.values_mut().for_each(|block| block.is_given_up = true);
    }

    /// Cuts the power: of each changed block, only the sectors for which `keeps(block, write, sector)` returns true are as they were last written; the
    /// length becomes what `length` says.
    ///
    /// # Errors
    ///
    /// The file below cannot be read or written.
    pub fn cut(&mut self, length: Length, mut keeps: impl FnMut(u64, u64, u64) -> bool) -> io::Result<()> {
        let (mut kept_end, mut is_all_kept) = (0, true);
        for (number, block) in std::mem::take(&mut self.changed) {
            let mut is_kept = true;
            for sector in 0..BLOCK / SECTOR {
                if block.is_given_up || !keeps(number, block.write, sector) {
                    is_kept = false;
                    let at = (sector * SECTOR) as usize;
                    let before = block.before.as_ref().map_or(&ZEROS[..], |before| &before[at..at + SECTOR as usize]);
                    self.file.write_all_at(before, number * BLOCK + sector * SECTOR)?;
                }
            }
            is_all_kept &= is_kept;
            kept_end = if is_kept { (number + 1) * BLOCK } else { kept_end };
        }
        self.length = match length {
            Length::Now => self.length,
            Length::Synced => self.synced_length,
            Length::Kept if is_all_kept => self.length,
            Length::Kept => self.synced_length.max(kept_end.min(self.length)),
        };
        self.file.set_len(self.length)?;
        self.synced_length = self.length;
        Ok(())
    }

    /// Remembers the synced content of the blocks of a span, unless they have already changed since the last sync.
    fn remember(&mut self, offset: u64, end: u64, write: u64) -> io::Result<()> {
        let first = offset / BLOCK;
        let last = end.saturating_sub(1) / BLOCK;
        for number in first..=last {
            match self.changed.get_mut(&number) {
                Some(block) => {
                    block.write = write;
                    block.is_given_up = false;
                }
                None => {
                    let before = self.synced_block(number)?;
                    self.changed.insert(number, Changed { before, write, is_given_up: false });
                }
            }
        }
        Ok(())
    }

    /// Returns the content that an unchanged block has on the disk; `None` for zeros.
    fn synced_block(&self, number: u64) -> io::Result<Option<Box<[u8]>>> {
        let start = number * BLOCK;
        let there = self.length.min(self.synced_length).saturating_sub(start).min(BLOCK) as usize;
        if there == 0 {
            return Ok(None);
        }
        let mut block = vec![0; BLOCK as usize].into_boxed_slice();
        read_whole(&self.file, &mut block[..there], start)?;
        Ok(Some(block))
    }
}

const ZEROS: [u8; SECTOR as usize] = [0; SECTOR as usize];

fn end_of(offset: u64, length: u64) -> io::Result<u64> {
    let end = offset.checked_add(length).filter(|end| *end <= LONGEST);
    end.ok_or_else(|| io::Error::from_raw_os_error(libc::EFBIG))
}

/// Fills the buffer; a file below that is shorter than it should be is an error, not zeros.
fn read_whole(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    if bytes.is_empty() { Ok(()) } else { file.read_exact_at(bytes, offset) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_base::random::Stream;

    fn content() -> Content {
        let path = std::env::temp_dir().join(format!(
            "loadline-content-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        Content::new(file)
    }

    fn all(content: &Content) -> Vec<u8> {
        content.read(0, usize::MAX).unwrap()
    }

    #[test]
    fn a_cut_gives_what_the_last_sync_saw_whatever_was_done_since() {
        // Compared with a plain vector of bytes and a copy of it at each sync.
        let mut random = Stream::seeded(7);
        for _ in 0..200 {
            let mut content = content();
            let (mut now, mut synced) = (Vec::<u8>::new(), Vec::<u8>::new());
            for write in 0..random.below(40) {
                let offset = random.below(30_000);
                let length = 1 + random.below(9000);
                match random.below(6) {
                    0..=2 => {
                        let bytes: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
                        content.write(offset, &bytes, write).unwrap();
                        let end = (offset + length) as usize;
                        if now.len() < end {
                            now.resize(end, 0);
                        }
                        now[offset as usize..].iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
                    }
                    3 => {
                        content.set_length(offset, write).unwrap();
                        now.resize(offset as usize, 0);
                    }
                    4 => {
                        content.clear(offset, length, write).unwrap();
                        let end = now.len().min((offset + length) as usize);
                        if (offset as usize) < end {
                            now[offset as usize..end].fill(0);
                        }
                    }
                    _ => {
                        content.sync();
                        synced.clone_from(&now);
                    }
                }
                assert_eq!(all(&content), now);
            }
            content.cut(Length::Synced, |_, _, _| false).unwrap();
            assert_eq!(all(&content), synced);
            assert_eq!(content.unsynced_blocks(), 0);
        }
    }

    #[test]
    fn each_sector_is_as_before_or_as_written() {
        let mut content = content();
        content.write(0, &[1; 8192], 1).unwrap();
        content.sync();
        content.write(0, &[2; 8192], 2).unwrap();
        content.cut(Length::Now, |block, _, sector| (block + sector) % 2 == 0).unwrap();
        let sectors: Vec<u8> = all(&content).chunks(512).map(|sector| sector[0]).collect();
        assert_eq!(sectors, [2, 1, 2, 1, 2, 1, 2, 1, 1, 2, 1, 2, 1, 2, 1, 2]);
        assert!(all(&content).chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    }

    #[test]
    fn what_a_failed_sync_gave_up_is_lost_although_a_later_one_succeeds() {
        let mut content = content();
        content.write(0, &[1; 4096], 1).unwrap();
        content.sync();
        content.write(0, &[2; 4096], 2).unwrap();
        content.give_up();
        content.write(4096, &[3; 4096], 3).unwrap();
        content.sync();
        content.cut(Length::Now, |_, _, _| true).unwrap();
        assert_eq!((all(&content)[0], all(&content)[4096]), (1, 3), "the later write was synced");

        content.write(0, &[4; 4096], 4).unwrap();
        content.give_up();
        content.write(0, &[5; 1], 5).unwrap();
        content.sync();
        content.cut(Length::Synced, |_, _, _| false).unwrap();
        assert_eq!(all(&content)[..2], [5, 4], "whoever writes the block again makes it one to be written");
    }

    #[test]
    fn a_write_that_is_synced_by_itself_stays_and_its_neighbours_do_not() {
        let mut content = content();
        content.write(0, &[1; 12_288], 1).unwrap();
        content.sync_span(4096, 4096);
        content.cut(Length::Synced, |_, _, _| false).unwrap();
        assert_eq!(all(&content).len(), 8192);
        assert_eq!((all(&content)[0], all(&content)[4096]), (0, 1));
    }

    #[test]
    fn a_file_that_was_written_in_order_ends_where_the_disk_had_come_to() {
        let mut content = content();
        content.write(0, &[1; 1000], 1).unwrap();
        content.sync();
        for write in 2..=10 {
            content.write(content.length(), &[write as u8; 4096], write).unwrap();
        }
        content.cut(Length::Kept, |_, write, _| write <= 6).unwrap();
        let bytes = all(&content);
        assert_eq!(bytes.len(), 5 * 4096, "the sixth block was written by the seventh write, too");
        assert!(bytes.iter().all(|byte| *byte > 0), "nothing that was never written is there");
    }

    #[test]
    fn a_long_file_that_holds_little_costs_little() {
        let mut content = content();
        content.set_length(LONGEST, 1).unwrap();
        content.write(1 << 35, &[1; 10], 2).unwrap();
        assert_eq!(content.unsynced_blocks(), 1);
        assert!(content.write(LONGEST - 9, &[1; 10], 3).is_err(), "a file has an end");
    }
}
