//! Records what was really appended to a log, and which frames may be gone. Main type: [`Truth`].

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryDisk;
use crate::segments::disk::Disk;
use crate::segments::frame::{FrameHeader, HEADER_BYTES};
use crate::segments::log::segment_name;
use crate::segments::recovery::Recovered;

/// A false statement of the log, with what led to it.
pub type Told = String;

/// A frame that was appended.
#[derive(Debug, Clone)]
pub struct Appended {
    pub header: FrameHeader,
    pub body: Vec<u8>,
    /// Whether its commit returned; if not, nobody was told of the frame.
    is_acknowledged: bool,
    /// Whether a mark, a close or another opening followed.
    is_sure: bool,
}

/// A range of bytes in a file that differ from what was written.
pub struct Damage {
    pub segment: u64,
    pub from: usize,
    pub to: usize,
}

/// A frame lost to damage.
#[derive(Debug)]
struct Lost {
    segment: u64,
    rows: u64,
    is_sure: bool,
}

/// All frames that were appended and not given up.
#[derive(Default)]
pub struct Truth {
    pub appended: BTreeMap<u64, Appended>,
    lost: Vec<Lost>,
    /// Number of rows lost in given-up segments that cannot be told apart from rows of another segment.
    of_either: u64,
    /// Number of rows acknowledged.
    rows: u64,
    /// Numbers of the segments that were damaged.
    hit: BTreeSet<u64>,
    /// Whether anything was ever damaged.
    pub is_damaged: bool,
}

impl Truth {
    /// Records an appended frame.
    pub fn append(&mut self, header: FrameHeader, body: Vec<u8>) -> Result<(), Told> {
        let one = Appended { header, body, is_acknowledged: false, is_sure: false };
        match self.appended.insert(header.sequence, one) {
            Some(old) if old.is_acknowledged => Err(format!("sequence {} was given twice", header.sequence)),
            _ => Ok(()),
        }
    }

    /// Records that the commit of all appended frames returned.
    pub fn acknowledge(&mut self) {
        for one in self.appended.values_mut().filter(|one| !one.is_acknowledged) {
            one.is_acknowledged = true;
            self.rows += u64::from(one.header.rows);
        }
    }

    /// Records that the disk now shows every acknowledged frame to have been durable.
    pub fn make_sure(&mut self) {
        self.appended.values_mut().filter(|one| one.is_acknowledged).for_each(|one| one.is_sure = true);
    }

    /// Records that a segment was given up and, if it was missing, the missing segments behind it up to `next`.
    pub fn forget(&mut self, disk: &MemoryDisk, number: u64, was_there: bool, next: u64) {
        let next = if was_there { number + 1 } else { next };
        let is_of_it = |segment: u64| (number..next).contains(&segment);
        let is_readable = self.appended.values().any(|one| one.header.position.segment == number);
        let is_there = |number: u64| disk.names().is_ok_and(|names| names.contains(&segment_name(number)));
        let is_beside_damage =
            [number - 1, number + 1].iter().any(|beside| !is_there(*beside) || self.hit.contains(beside));
        if !is_readable || is_beside_damage {
            self.of_either += self.rows_lost(|segment| segment == number);
        }
        self.appended.retain(|_, one| !one.is_acknowledged || one.header.position.segment != number);
        let segments = self.appended.values().map(|one| one.header.position.segment);
        let readable = segments.filter(|segment| *segment > number).min();
        if !is_readable {
            // Nothing of the segment can be read: its frames cannot be told apart from frames missing at the end of the segment before and at the beginning of the one behind.
            let before = self.lost.iter().map(|one| one.segment).filter(|segment| *segment < number).max();
            let is_beside = |one: &&mut Lost| [before, readable].contains(&Some(one.segment));
            self.lost.iter_mut().filter(is_beside).for_each(|one| one.is_sure = false);
        }
        if !was_there {
            // The first of several unreadable segments stands for all of them.
            let with_it = next..readable.unwrap_or(u64::MAX);
            self.of_either += self.rows_lost(|segment| with_it.contains(&segment));
            self.lost.retain(|one| !with_it.contains(&one.segment));
        }
        self.lost.retain(|one| !is_of_it(one.segment));
    }

    fn rows_lost(&self, is_one: impl Fn(u64) -> bool) -> u64 {
        self.lost.iter().filter(|one| is_one(one.segment)).map(|one| one.rows).sum()
    }

    /// Compares what an opening showed and reported with what was appended; returns the number of frames it lost to damage.
    pub fn compare(
        &mut self,
        found: &[(FrameHeader, Vec<u8>)],
        recovered: &Recovered,
        damages: &[Damage],
    ) -> Result<u64, Told> {
        let last = self.accept(found)?;
        let is_found = |sequence: u64| found.binary_search_by_key(&sequence, |(header, _)| header.sequence).is_ok();
        let is_missing = |one: &&Appended| one.is_acknowledged && !is_found(one.header.sequence);
        let mut missing: Vec<Appended> = self.appended.values().filter(is_missing).cloned().collect();
        // Earlier damage in this segment or in the header of the next one may have hit what proved the frames durable.
        let was_hit = |segment: u64| self.hit.contains(&segment) || self.hit.contains(&(segment + 1));
        missing.iter_mut().for_each(|one| one.is_sure &= !was_hit(one.header.position.segment));
        // If header and first frame are gone and then the footer, the epoch is no longer known.
        let is_hit = |one: &Appended, damage: &Damage| {
            one.is_hit(damage) || damage.segment == one.header.position.segment && self.hit.contains(&damage.segment)
        };
        if let Some(one) = missing.iter().find(|one| !damages.iter().any(|damage| is_hit(one, damage))) {
            return Err(format!("frame {} is gone, and nothing of it was damaged", one.header.sequence));
        }
        self.hit.extend(damages.iter().map(|damage| damage.segment));
        // A second damage may have hit what proved the first.
        let is_hit_again = |one: &&mut Lost| damages.iter().any(|damage| damage.segment == one.segment);
        self.lost.iter_mut().filter(is_hit_again).for_each(|one| one.is_sure = false);
        self.judge(&missing, last, recovered)?;
        self.rows = recovered.rows;
        self.lost.extend(missing.iter().map(|one| Lost {
            segment: one.header.position.segment,
            rows: one.header.rows.into(),
            is_sure: one.is_sure,
        }));
        self.appended.retain(|sequence, _| is_found(*sequence));
        self.make_sure();
        Ok(missing.len() as u64)
    }

    /// Checks that every frame shown was appended like this and comes in order; returns the last sequence.
    fn accept(&mut self, found: &[(FrameHeader, Vec<u8>)]) -> Result<u64, Told> {
        let mut last = 0;
        for (header, body) in found {
            if header.sequence <= last {
                return Err(format!("frame {} comes behind {last}", header.sequence));
            }
            last = header.sequence;
            let known = self.appended.get_mut(&header.sequence);
            let Some(known) = known.filter(|known| known.header == *header && known.body == *body) else {
                return Err(format!("frame {} was not appended like this, or was given up", header.sequence));
            };
            if !known.is_acknowledged {
                // It was unknown whether the frame's group was durable; it is known now.
                known.is_acknowledged = true;
                self.rows += u64::from(header.rows);
            }
        }
        Ok(last)
    }

    /// Checks that missing rows are counted, all surely durable ones as damaged, and no others.
    fn judge(&self, missing: &[Appended], last: u64, recovered: &Recovered) -> Result<(), Told> {
        let rows_of = |is_one: &dyn Fn(&Appended) -> bool| -> u64 {
            missing.iter().filter(|one| is_one(one)).map(|one| u64::from(one.header.rows)).sum()
        };
        let (gone, surely_gone) = (rows_of(&|_| true), rows_of(&|one| one.is_sure));
        // If the end of the log is gone and nothing shows that it was there, it cannot be counted.
        let silent = rows_of(&|one| !one.is_sure && one.header.sequence > last);
        let lost = self.rows_lost(|_| true);
        let surely_lost: u64 = self.lost.iter().filter(|one| one.is_sure).map(|one| one.rows).sum();
        let said = (recovered.damaged_rows, recovered.uncertain_rows);
        let is_too_little = said.0 < surely_gone + surely_lost || said.0 + said.1 + silent < gone;
        if is_too_little || said.0 > gone + lost + self.of_either {
            let before = &self.lost;
            return Err(format!(
                "{gone} rows are gone, {surely_gone} of them were durable; before: {before:?}; said is {recovered:?}"
            ));
        }
        if recovered.rows > self.rows || recovered.rows + (gone - surely_gone) < self.rows {
            return Err(format!("{} rows were acknowledged, said is {recovered:?}", self.rows));
        }
        if !self.is_damaged && recovered.damaged_frames > 0 {
            return Err(format!("nothing ever was damaged, and said is {recovered:?}"));
        }
        Ok(())
    }
}

impl Appended {
    fn is_hit(&self, damage: &Damage) -> bool {
        let from = self.header.position.offset as usize;
        let to = from + HEADER_BYTES + self.header.length as usize;
        damage.segment == self.header.position.segment && damage.from < to && from < damage.to
    }
}
