//! Tries every cut, every changed bit and every lost file of a small log, one after another. Main functions: [`cuts`], [`flips`] and [`losses`].

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{MemoryDisk, Told};
use crate::segments::disk::Disk;
use crate::segments::frame::{FrameHeader, HEADER_BYTES};
use crate::segments::log::{Log, LogError, Settings, segment_number};
use crate::segments::recovery::{Found, Recovered};

const ENTRIES: u32 = 200;
/// Number of entries in a group that is synced together.
const GROUP: u32 = 3;

/// Settings of a small log.
pub const SMALL: Settings = Settings { segment_bytes: 4 << 10 };

/// How a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The log was closed.
    InOrder,
    /// The process was killed, half a dozen groups after the last mark.
    Killed,
}

/// Both ends.
const ENDS: [End; 2] = [End::InOrder, End::Killed];

/// The header and the body of a frame as it was appended.
pub type Frame = (FrameHeader, Vec<u8>);

/// Creates a log of 200 entries, and returns its disk and its frames.
///
/// # Errors
/// None: the disk does not fail.
pub fn small_log(end: End) -> Result<(MemoryDisk, Vec<Frame>), LogError> {
    let disk = MemoryDisk::new(1 << 20);
    let (mut log, _) = Log::open(Arc::new(disk.clone()), SMALL, 77, &mut |_| {})?;
    let mut frames = Vec::new();
    for entry in 0..ENTRIES {
        let body = format!("m,source=s{} value={entry},other={}\n", entry % 7, entry * 31).repeat(entry as usize % 3);
        let header = log.append(1, entry % 4, 1 + entry % 5, &[body.as_bytes()])?;
        frames.push((header, body.into_bytes()));
        if entry % GROUP == GROUP - 1 {
            log.commit()?;
        }
        if entry == ENTRIES - 20 {
            log.commit()?;
            log.mark(b"so far")?;
        }
    }
    log.commit()?;
    if end == End::InOrder {
        log.close(b"the end")?;
    }
    Ok((disk, frames))
}

/// Opens the log on a disk, and returns the frames shown and the result.
///
/// # Errors
/// Any error of the log.
pub fn opened(disk: &MemoryDisk, epoch: u64) -> Result<(Vec<Frame>, Recovered), LogError> {
    let mut found = Vec::new();
    let mut show = |one: Found<'_>| {
        if let Found::Frame(header, body) = one {
            found.push((*header, body.to_vec()));
        }
    };
    let (_, recovered) = Log::open(Arc::new(disk.clone()), SMALL, epoch, &mut show)?;
    Ok((found, recovered))
}

/// Damage done to a copy of a log.
struct Damaged<'a> {
    name: &'a str,
    end: End,
    /// First byte of the file that may differ from what was written; `to` is the end of the range.
    from: usize,
    to: usize,
    what: String,
}

impl Damaged<'_> {
    fn is_hit(&self, (header, _): &Frame) -> bool {
        let begin = header.position.offset as usize;
        let end = begin + HEADER_BYTES + header.length as usize;
        Some(header.position.segment) == segment_number(self.name) && begin < self.to && self.from < end
    }

    /// Opens the copy, and checks that only damaged frames are missing and that they are counted.
    fn check(&self, all: &[Frame], copy: &MemoryDisk) -> Result<(), Told> {
        let told = |why: String| format!("{:?}, {} {}: {why}", self.end, self.name, self.what);
        let (found, recovered) = opened(copy, 78).map_err(|error| told(error.to_string()))?;
        if let Some((header, _)) = found.iter().find(|one| all.get(one.0.sequence as usize - 1) != Some(one)) {
            return Err(told(format!("frame {} is not as it was", header.sequence)));
        }
        let there: BTreeSet<u64> = found.iter().map(|(header, _)| header.sequence).collect();
        let gone: Vec<&Frame> = all.iter().filter(|(header, _)| !there.contains(&header.sequence)).collect();
        if let Some((header, _)) = gone.iter().find(|one| !self.is_hit(one)) {
            return Err(told(format!("frame {} is gone, and nothing of it was damaged", header.sequence)));
        }
        let rows: u64 = gone.iter().map(|(header, _)| u64::from(header.rows)).sum();
        let said = (recovered.damaged_frames, recovered.damaged_rows);
        let (frames, all_rows) = (said.0 + recovered.uncertain_frames, said.1 + recovered.uncertain_rows);
        let is_right = match self.end {
            End::InOrder => said == (gone.len() as u64, rows) && recovered.uncertain_frames == 0,
            End::Killed => {
                // Nothing but the length of the file shows that frames behind every proof of durability were there.
                let last_group = u64::from(ENTRIES - ENTRIES % GROUP);
                let proven = if recovered.hurt_segments > 0 { recovered.last } else { last_group };
                let silent = || gone.iter().filter(|(header, _)| header.sequence > proven);
                let silent_rows: u64 = silent().map(|(header, _)| u64::from(header.rows)).sum();
                let is_counted = |said: u64, silent: u64, gone: u64| said <= gone && said + silent >= gone;
                is_counted(frames, silent().count() as u64, gone.len() as u64)
                    && is_counted(all_rows, silent_rows, rows)
            }
        };
        if !is_right {
            return Err(told(format!("{} frames and {rows} rows are gone, said is {recovered:?}", gone.len())));
        }
        Ok(())
    }

    /// Checks that further openings find the same.
    fn check_again(&self, copy: &MemoryDisk) -> Result<(), Told> {
        let told = |error: LogError| format!("{:?}, {} {}: {error}", self.end, self.name, self.what);
        let first = opened(copy, 79).map_err(told)?;
        let second = opened(copy, 80).map_err(told)?;
        let is_same = first.0 == second.0 && first.1.damaged_rows == second.1.damaged_rows;
        if is_same {
            Ok(())
        } else {
            Err(format!("{:?}, {} {}: {:?}, then {:?}", self.end, self.name, self.what, first.1, second.1))
        }
    }
}

/// Calls `one` for each file of the small log in each of the two ends; returns the sum of the counts.
fn for_each(mut one: impl FnMut(End, &str, &MemoryDisk, &[Frame]) -> Result<u64, Told>) -> Result<u64, Told> {
    let mut count = 0;
    for end in ENDS {
        let (disk, all) = small_log(end).map_err(|error| error.to_string())?;
        let whole = opened(&disk.copied(), 78).map_err(|error| error.to_string())?;
        if whole.0 != all || whole.1.damaged_frames + whole.1.uncertain_frames > 0 {
            return Err(format!("{end:?}: an undamaged log says {:?}", whole.1));
        }
        for name in disk.names().map_err(|error| error.to_string())? {
            count += one(end, &name, &disk, &all)?;
        }
    }
    Ok(count)
}

/// Cuts each file at each byte; returns the number of cuts.
///
/// # Errors
/// A false statement of the log.
pub fn cuts() -> Result<u64, Told> {
    for_each(|end, name, disk, all| {
        let bytes = disk.bytes_of(name).len();
        for from in 0..bytes {
            let copy = disk.copied();
            copy.damage(name, |bytes| bytes.truncate(from));
            let damaged = Damaged { name, end, from, to: bytes, what: format!("cut at {from}") };
            damaged.check(all, &copy)?;
            if from % 61 == 0 {
                damaged.check_again(&copy)?;
            }
        }
        Ok(bytes as u64)
    })
}

/// Flips bits of each file: every bit, or one of each byte. Returns the number of flips.
///
/// # Errors
/// A false statement of the log.
pub fn flips(every_bit: bool) -> Result<u64, Told> {
    for_each(|end, name, disk, all| {
        let bits = disk.bytes_of(name).len() * 8;
        let mut count = 0;
        for bit in (0..bits).filter(|bit| every_bit || bit % 8 == bit / 8 % 8) {
            let copy = disk.copied();
            copy.damage(name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            let damaged = Damaged { name, end, from: bit / 8, to: bit / 8 + 1, what: format!("bit {bit}") };
            damaged.check(all, &copy)?;
            if bit % 499 == 0 {
                damaged.check_again(&copy)?;
            }
            count += 1;
        }
        Ok(count)
    })
}

/// Loses each file in turn; returns the number of losses.
///
/// # Errors
/// A false statement of the log.
pub fn losses() -> Result<u64, Told> {
    for_each(|end, name, disk, all| {
        let copy = disk.copied();
        copy.lose(name);
        let damaged = Damaged { name, end, from: 0, to: usize::MAX, what: "is gone".to_owned() };
        damaged.check(all, &copy)?;
        damaged.check_again(&copy)?;
        Ok(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_cut_at_any_byte_loses_what_was_behind_it_and_counts_it() {
        assert!(cuts().unwrap_or_else(|told| panic!("{told}")) > 80_000);
    }

    #[test]
    fn a_log_in_which_a_bit_is_flipped_loses_what_had_it_and_counts_it() {
        assert!(flips(false).unwrap_or_else(|told| panic!("{told}")) > 80_000);
    }

    #[test]
    fn a_log_without_any_one_of_its_files_says_what_was_in_it() {
        assert!(losses().unwrap_or_else(|told| panic!("{told}")) > 10);
    }
}
