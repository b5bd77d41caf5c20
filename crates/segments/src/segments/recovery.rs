//! Determines what is missing in the segments of a log. Main types: [`Judge`], which compares segments with each other and with the mark, and [`Recovered`], the result.
//!
//! Invariant: a row is counted as damaged only where something on the disk shows that it was durable once, and every row shown to have been durable is found or counted.

use std::collections::BTreeMap;

use crate::segments::footer::Footer;
use crate::segments::frame::{FrameHeader, HEADER_BYTES, Position};
use crate::segments::mark::{GivenUp, Mark};
use crate::segments::scan::{Ends, Scan, Through};

/// Maximum number of gaps reported individually.
const GAPS_MAX: usize = 100;
/// Maximum number of segment numbers examined in search of a missing segment.
const NUMBERS_MAX: usize = 100_000;

/// A frame found while a log is opened; frames come in the order in which they were appended.
#[derive(Debug)]
pub enum Found<'a> {
    /// An intact frame and its body.
    Frame(&'a FrameHeader, &'a [u8]),
    /// A damaged frame that was on the disk once, and what is left of its body.
    Damaged(&'a FrameHeader, &'a [u8]),
}

/// A run of consecutive frames that are missing or damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Position of a damaged frame, of the frame behind missing ones, or of the end of the file; of a missing segment, where its first frame was.
    pub position: Position,
    /// Sequence of the first of these frames. No other frame of the log ever has it, whereas another frame may later stand at the position.
    pub first: u64,
    /// Number of frames.
    pub frames: u64,
    /// Number of rows that these frames acknowledge.
    pub rows: u64,
    /// Whether the frames were durable once. If not certain, they may be the remains of a group that a crash interrupted before anybody was told of it.
    pub is_certain: bool,
}

/// The result of opening a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Number of frames that were durable once and are damaged or missing.
    pub damaged_frames: u64,
    /// Number of rows that the damaged frames acknowledge.
    pub damaged_rows: u64,
    /// Number of missing frames that may never have been durable: the end of a group that was being written in a crash, or damage to it.
    pub uncertain_frames: u64,
    /// Number of rows that the uncertain frames acknowledge.
    pub uncertain_rows: u64,
    /// The first 100 gaps.
    pub gaps: Vec<Gap>,
    /// Number of rows acknowledged since the log was created, including damaged rows and excluding uncertain ones.
    pub rows: u64,
    /// The highest sequence ever used, as far as is known.
    pub last: u64,
    /// The newest readable note; `None` without a readable mark.
    pub note: Option<Vec<u8>>,
    /// Whether the log was closed in order.
    pub is_clean: bool,
    /// Whether there were segments but no readable mark.
    pub is_mark_lost: bool,
    /// Number of segments that are shorter than when created, have lost their header, or are missing without having been given up. Frames at the end of the log may be missing then
    /// without being counted. The next opening does not count the shorter segments again.
    pub hurt_segments: u64,
    /// Numbers of the first 100 of these segments that exist.
    pub hurt: Vec<u64>,
}

impl Recovered {
    /// Returns the point where the log continues.
    pub(crate) fn end(&self) -> Through {
        Through::new(self.last, self.rows)
    }
}

/// A segment that was not given up.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// The point where the segment begins.
    pub begin: Through,
    /// The point where it ends, without rows that never reached the disk; for the current segment, the point where it began.
    pub end: Through,
}

/// The extent of a segment, and what is missing in it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Judged {
    /// The end of the segment, missing frames included.
    pub end: Through,
    /// The point up to which the segment was known to be durable.
    pub certain: Through,
    /// Number of missing frames behind `certain`.
    pub missing: u64,
    /// Number of rows that the missing frames acknowledge.
    pub missing_rows: u64,
    /// Whether segments behind this one may still show that the missing frames were durable.
    is_open: bool,
}

impl Judged {
    /// Returns the footer that records this judgement, to be written once every frame that is left is on the disk.
    pub fn footer(&self, number: u64, epoch: u64) -> Footer {
        let certain = if (self.missing, self.missing_rows) == (0, 0) { self.end } else { self.certain };
        Footer {
            number,
            epoch,
            last: self.end.sequence,
            rows: self.end.rows,
            certain: certain.sequence,
            certain_rows: certain.rows,
            missing: self.missing,
            missing_rows: self.missing_rows,
        }
    }
}

/// Judges the segments in the order of their numbers.
pub struct Judge<'a> {
    all: &'a [Ends],
    mark: Option<&'a Mark>,
    /// End of the segments judged so far, without rows that never reached the disk; `None` while it is unknown.
    before: Option<Through>,
    /// The number after that of the last judged segment.
    next_number: u64,
    kept: BTreeMap<u64, Kept>,
    /// One entry for each segment, in their order.
    judged: Vec<Judged>,
    /// Index and number of the last segment that is not silent.
    last: Option<(usize, u64)>,
    recovered: Recovered,
}

impl<'a> Judge<'a> {
    pub fn new(all: &'a [Ends], mark: Option<&'a Mark>) -> Self {
        let recovered = Recovered {
            note: mark.map(|mark| mark.note.clone()),
            is_mark_lost: mark.is_none() && !all.is_empty(),
            ..Recovered::default()
        };
        // A crash may leave a segment that was being created, which no mark mentions.
        let is_hurt = |ends: &&Ends| match ends.header {
            Some(header) => header.bytes > ends.bytes && mark.is_none_or(|mark| mark.newest >= ends.number),
            None => mark.is_some_and(|mark| mark.newest >= ends.number),
        };
        let is_there = |number: u64| all.iter().any(|ends| ends.number == number);
        let newest_is_gone = mark
            .is_some_and(|mark| mark.newest >= mark.first && !mark.is_given_up(mark.newest) && !is_there(mark.newest));
        let hurt_segments = all.iter().filter(is_hurt).count() as u64 + u64::from(newest_is_gone);
        let hurt = all.iter().filter(is_hurt).map(|ends| ends.number).take(GAPS_MAX).collect();
        let recovered = Recovered { hurt_segments, hurt, ..recovered };
        let before = mark.map(|mark| Through::new(mark.first_sequence.saturating_sub(1), mark.first_rows));
        let next_number = mark.map_or(0, |mark| mark.first);
        Judge { all, mark, before, next_number, kept: BTreeMap::new(), judged: Vec::new(), last: None, recovered }
    }

    /// Judges the segment at index `place`, and passes its frames to `show` in order, each with whether it is whole.
    pub fn segment(&mut self, place: usize, scan: &Scan, mut show: impl FnMut(&FrameHeader, bool)) {
        let ends = self.all[place];
        if scan.is_silent(&ends) {
            // The segment is silent: whatever it held is missing between its neighbours.
            let end = self.before.map(|before| self.past_given_up(before, ends.number)).unwrap_or_default();
            self.kept.insert(ends.number, Kept { begin: end, end });
            self.judged.push(Judged::default());
            return;
        }
        let start = self.start(&ends, scan);
        let followers = &self.all[place + 1..];
        let next = followers.first().filter(|next| next.number == ends.number + 1).and_then(|next| next.header);
        // Of a segment without an epoch, nothing is known except what surrounds it.
        let is_last_of_epoch = match scan.epoch {
            Some(_) => !followers.iter().any(|later| later.epoch() == scan.epoch),
            None => followers.is_empty(),
        };
        let certain = self.certain(&ends, scan, is_last_of_epoch);
        let mut gaps = Gaps { certain, segment: ends.number, found: Vec::new(), uncertain: (0, 0) };
        let mut through = start;
        for (header, is_whole) in &scan.frames {
            let before = Through::new(header.sequence - 1, header.rows_before);
            gaps.between(through, before, header.position.offset);
            through = Through::new(header.sequence, header.rows_through());
            if !is_whole {
                gaps.between(before, through, header.position.offset);
            }
            if *is_whole || header.sequence <= certain.sequence {
                show(header, *is_whole);
            }
        }
        let end = match (ends.footer, next) {
            (Some(footer), _) => Through::new(footer.last, footer.rows),
            // The first header of a new epoch does not count the rows that never reached the disk.
            (None, Some(next)) if Some(next.epoch) == scan.epoch => Through::new(next.first - 1, next.rows),
            (None, Some(next)) => Through::new(next.first - 1, next.rows.max(through.rows)),
            // Segments given up behind it were durable, too.
            (None, None) if is_last_of_epoch => {
                self.given_up_between(ends.number, u64::MAX).fold(certain, |certain, one| {
                    Through::new(
                        certain.sequence.saturating_sub(one.frames.into()),
                        certain.rows.saturating_sub(one.rows.into()),
                    )
                })
            }
            (None, None) => through,
        };
        if end.sequence > through.sequence {
            gaps.between(through, end, (HEADER_BYTES as u64).max(ends.bytes).min(u32::MAX.into()) as u32);
            through = end;
        }
        let never_came = match (ends.footer, next.filter(|next| Some(next.epoch) != scan.epoch)) {
            (Some(footer), _) => Some((footer.missing, footer.missing_rows)),
            (None, Some(next)) => {
                // It is unknown how many more frames are gone than had never reached the disk: at least one.
                let rows = through.rows.saturating_sub(next.rows);
                Some((if gaps.uncertain.1 > rows { gaps.uncertain.0 - 1 } else { u64::MAX }, rows))
            }
            (None, None) => None,
        };
        let (missing, missing_rows) = self.note(gaps, never_came);
        let end = Through::new(through.sequence, through.rows.saturating_sub(missing_rows));
        self.kept.insert(ends.number, Kept { begin: start, end: end.max(start) });
        self.before = Some(end);
        self.next_number = ends.number + 1;
        let certain = if certain.sequence > through.sequence { through } else { certain };
        let is_open = never_came.is_none() && missing > 0;
        self.last = Some((place, ends.number));
        self.judged.push(Judged { end: through, certain, missing, missing_rows, is_open });
    }

    /// Returns the point where a segment begins, and notes what is missing before it.
    fn start(&mut self, ends: &Ends, scan: &Scan) -> Through {
        let expected = self.before.map(|before| self.past_given_up(before, ends.number));
        let own = ends.header.map(|header| Through::new(header.first.saturating_sub(1), header.rows));
        let first = scan.frames.first().map(|(first, _)| Through::new(first.sequence - 1, first.rows_before));
        // Without its header, a segment begins where the one before it ends, if all segments between them were given up.
        let is_next =
            self.given_up_between(self.next_number, ends.number).count() as u64 == ends.number - self.next_number;
        let start = own.or(expected.filter(|_| is_next)).or(first).or(expected).unwrap_or_default();
        if let Some(expected) = expected {
            self.between(expected, start, ends.number);
        }
        start
    }

    /// Notes what is missing between two segments that exist, or behind the last one. Missing segments are kept until they are given up, so that every opening reports them.
    fn between(&mut self, from: Through, to: Through, number: u64) {
        let is_given_up = |number: &u64| self.mark.is_some_and(|mark| mark.is_given_up(*number));
        let is_there = |number: &u64| self.all.binary_search_by_key(number, |ends| ends.number).is_ok();
        let mut missing = (self.next_number..number).filter(|number| !is_given_up(number));
        // A silent segment counts as gone only if no segment in between is missing.
        let first = missing.next();
        let gone = first
            .filter(|number| !is_there(number))
            .or_else(|| missing.take(NUMBERS_MAX).find(|number| !is_there(number)))
            .or(first);
        let gone = gone.unwrap_or(number);
        if to.sequence <= from.sequence {
            self.were_there(to.rows.saturating_sub(from.rows));
            return;
        }
        let mut first = from.sequence + 1;
        if gone < number {
            // Segments given up behind the missing one are counted separately.
            let begin = self.before.map_or(from, |before| self.past_given_up(before, gone));
            first = begin.sequence + 1;
            let missing = Through::new(to.sequence - from.sequence, to.rows.saturating_sub(from.rows));
            let end = Through::new(begin.sequence + missing.sequence, begin.rows + missing.rows);
            self.kept.insert(gone, Kept { begin, end });
            self.move_silent(gone, end);
        } else {
            self.was_longer(from, to);
        }
        let (frames, rows) = (to.sequence - from.sequence, to.rows.saturating_sub(from.rows));
        // Without a mark it is unknown whether the segments were given up.
        let is_certain = self.mark.is_some() || gone == number;
        let told = if is_certain {
            (&mut self.recovered.damaged_frames, &mut self.recovered.damaged_rows)
        } else {
            (&mut self.recovered.uncertain_frames, &mut self.recovered.uncertain_rows)
        };
        *told.0 += frames;
        *told.1 += rows;
        if self.recovered.gaps.len() < GAPS_MAX {
            let position = Position { segment: gone, offset: HEADER_BYTES as u32 };
            self.recovered.gaps.push(Gap { position, first, frames, rows, is_certain });
        }
    }

    /// Adds the missing frames to the last segment, whose end they were: its footer counts them from now on.
    fn was_longer(&mut self, from: Through, to: Through) {
        let Some((place, segment)) = self.last else { return };
        let longer = |end: Through| {
            Through::new(end.sequence + to.sequence - from.sequence, end.rows + to.rows.saturating_sub(from.rows))
        };
        if let Some(judged) = self.judged.get_mut(place) {
            judged.end = longer(judged.end);
        }
        if let Some(kept) = self.kept.get_mut(&segment) {
            kept.end = longer(kept.end);
            let end = kept.end;
            self.move_silent(segment, end);
        }
    }

    /// Moves the silent segments behind a segment to where that segment ends.
    fn move_silent(&mut self, segment: u64, end: Through) {
        let silent: Vec<u64> = self.kept.range(segment + 1..).map(|(number, _)| *number).collect();
        for silent in silent {
            let place = self.past_given_up_from(end, segment, silent);
            self.kept.insert(silent, Kept { begin: place, end: place });
        }
    }

    /// Counts missing rows of the last segment as damaged instead of uncertain: the segments behind it count these rows, so they had reached the disk. How many
    /// frames held them is known only if they are all of the missing rows; otherwise it is at least one.
    fn were_there(&mut self, rows: u64) {
        let Some((place, segment)) = self.last else { return };
        let is_it = |judged: &&mut Judged| judged.is_open && rows > 0 && rows <= judged.missing_rows;
        let Some(judged) = self.judged.get_mut(place).filter(is_it) else { return };
        let is_all = rows == judged.missing_rows;
        let frames = if is_all { judged.missing } else { 1 };
        judged.missing -= frames;
        judged.missing_rows -= rows;
        judged.is_open = false;
        self.recovered.uncertain_frames -= frames;
        self.recovered.uncertain_rows -= rows;
        self.recovered.damaged_frames += frames;
        self.recovered.damaged_rows += rows;
        if let Some(kept) = self.kept.get_mut(&segment) {
            kept.end.rows += rows;
            let end = kept.end;
            self.move_silent(segment, end);
            let own = self.recovered.gaps.iter_mut().filter(|gap| is_all && gap.position.segment == segment);
            own.for_each(|gap| gap.is_certain = true);
        }
    }

    /// Returns the point behind the given-up segments that lie between the last judged segment and `number`, counted from `before`.
    fn past_given_up(&self, before: Through, number: u64) -> Through {
        self.past_given_up_from(before, self.next_number, number)
    }

    fn past_given_up_from(&self, before: Through, first: u64, number: u64) -> Through {
        self.given_up_between(first, number).fold(before, |through, GivenUp { frames, rows, .. }| {
            Through::new(through.sequence + u64::from(*frames), through.rows + u64::from(*rows))
        })
    }

    fn given_up_between(&self, first: u64, number: u64) -> impl Iterator<Item = &GivenUp> {
        let given_up = self.mark.map_or(&[][..], |mark| &mark.given_up);
        given_up.iter().filter(move |one| (first..number).contains(&one.number))
    }

    /// Returns the point up to which a segment was known to be on the disk.
    fn certain(&self, ends: &Ends, scan: &Scan, is_last_of_epoch: bool) -> Through {
        if let Some(footer) = ends.footer {
            return Through::new(footer.certain, footer.certain_rows);
        }
        if !is_last_of_epoch {
            return Through::new(u64::MAX, u64::MAX);
        }
        let marked = self.mark.filter(|mark| Some(mark.epoch) == scan.epoch);
        let marked = marked.map(|mark| Through::new(mark.durable, mark.rows)).unwrap_or_default();
        if marked.sequence > scan.durable.sequence { marked } else { scan.durable }
    }

    /// Notes the gaps of a segment and returns the frames and rows that stay uncertain. `never_came` is what was missing when its footer was written or the next epoch began.
    fn note(&mut self, gaps: Gaps, never_came: Option<(u64, u64)>) -> (u64, u64) {
        let (frames, rows) = gaps.uncertain;
        let (old, old_rows) = never_came.unwrap_or((frames, rows));
        let (lost, lost_rows) = (frames.saturating_sub(old), rows.saturating_sub(old_rows));
        for gap in gaps.found {
            if gap.is_certain {
                self.recovered.damaged_frames += gap.frames;
                self.recovered.damaged_rows += gap.rows;
            }
            if self.recovered.gaps.len() < GAPS_MAX {
                self.recovered.gaps.push(gap);
            }
        }
        // More is missing than had never reached the disk; which frames these are is unknown.
        self.recovered.damaged_frames += lost;
        self.recovered.damaged_rows += lost_rows;
        self.recovered.uncertain_frames += frames - lost;
        self.recovered.uncertain_rows += rows - lost_rows;
        (frames - lost, rows - lost_rows)
    }

    /// Notes what is missing behind the last segment; returns the kept segments, the judgement of each segment, and the result.
    pub fn finish(mut self) -> (BTreeMap<u64, Kept>, Vec<Judged>, Recovered) {
        let durable = self.mark.map(|mark| Through::new(mark.durable, mark.rows)).unwrap_or_default();
        let end = self.before.unwrap_or_default();
        let end = self.past_given_up(end, u64::MAX);
        let newest = self.mark.map(|mark| mark.newest).max(self.all.last().map(|ends| ends.number)).unwrap_or(0);
        let behind = newest.saturating_add(1).max(self.next_number);
        self.between(end, durable, behind);
        let end = end.max(durable);
        let of_last = self.all.last().and_then(Ends::epoch);
        let is_clean = |mark: &Mark| mark.is_clean && of_last.is_none_or(|epoch| epoch == mark.epoch);
        (self.recovered.last, self.recovered.rows) = (end.sequence, end.rows);
        self.recovered.is_clean = self.mark.is_some_and(is_clean);
        (self.kept, self.judged, self.recovered)
    }
}

/// The gaps of one segment.
struct Gaps {
    certain: Through,
    segment: u64,
    found: Vec<Gap>,
    /// Frames and rows in gaps that are not certain.
    uncertain: (u64, u64),
}

impl Gaps {
    /// Notes that all frames behind `from` up to `to` are missing.
    fn between(&mut self, from: Through, to: Through, offset: u32) {
        if to.sequence <= from.sequence {
            return;
        }
        // The part known to be durable may end within the gap.
        let middle = match self.certain {
            certain if certain.sequence <= from.sequence => from,
            certain if certain.sequence >= to.sequence => to,
            certain => certain,
        };
        for (from, to, is_certain) in [(from, middle, true), (middle, to, false)] {
            let (frames, rows) = (to.sequence - from.sequence, to.rows.saturating_sub(from.rows));
            if frames > 0 {
                let position = Position { segment: self.segment, offset };
                self.found.push(Gap { position, first: from.sequence + 1, frames, rows, is_certain });
                self.uncertain = match is_certain {
                    true => self.uncertain,
                    false => (self.uncertain.0 + frames, self.uncertain.1 + rows),
                };
            }
        }
    }
}
