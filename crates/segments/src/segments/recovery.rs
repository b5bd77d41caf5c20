//! What is missing in the segments of a log. Main types: [`Judge`], which holds segments against each other and against the mark, and [`Recovered`], what came of it.
//!
//! Invariant: a row is counted as damaged only where something on the disk says that it was durable once, and every row of which that is said is found or counted.

use std::collections::BTreeMap;

use crate::segments::footer::Footer;
use crate::segments::frame::{FrameHeader, HEADER_BYTES, Position};
use crate::segments::mark::{GivenUp, Mark};
use crate::segments::scan::{Ends, Scan, Through};

/// Gaps that are told one by one.
const GAPS_MAX: usize = 100;
/// Numbers that are looked at for a segment that is gone.
const NUMBERS_MAX: usize = 100_000;

/// What is found while a log is opened, in the order in which it was appended.
#[derive(Debug)]
pub enum Found<'a> {
    /// A frame as it was appended.
    Frame(&'a FrameHeader, &'a [u8]),
    /// A frame that was on the disk once, and of whose body this is left.
    Damaged(&'a FrameHeader, &'a [u8]),
}

/// Frames that are not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Where they were, or where the first of their segment was.
    pub position: Position,
    /// Number of the first of them. No other frame of the log ever has it, while at the position another one may come to stand.
    pub first: u64,
    /// How many.
    pub frames: u64,
    /// Rows that they acknowledged.
    pub rows: u64,
    /// Whether they were durable once. Those that are not certain may be what a crash left of a group that nobody was told of.
    pub is_certain: bool,
}

/// What opening a log has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Frames that were durable once and are damaged or gone.
    pub damaged_frames: u64,
    /// Rows that they acknowledged.
    pub damaged_rows: u64,
    /// Frames of which nobody can tell whether they were ever durable: the end of a group that was being written in a crash, or damage to it.
    pub uncertain_frames: u64,
    /// Their rows.
    pub uncertain_rows: u64,
    /// The first hundred gaps.
    pub gaps: Vec<Gap>,
    /// Rows that were acknowledged since the log was made, damaged ones included and uncertain ones not.
    pub rows: u64,
    /// The newest sequence that was ever used, as far as is known.
    pub last: u64,
    /// The newest note that can be read.
    pub note: Option<Vec<u8>>,
    /// Whether the log was closed in order.
    pub is_clean: bool,
    /// Whether there were segments and no mark that can be read.
    pub is_mark_lost: bool,
    /// Segments that are shorter than they were made, have no header any more, or are gone and were not given up. What was at the end of the log may be missing then without
    /// being counted. The next opening does not count the shorter ones again.
    pub hurt_segments: u64,
    /// The first hundred of them that are there.
    pub hurt: Vec<u64>,
}

impl Recovered {
    /// Where the log goes on.
    pub(crate) fn end(&self) -> Through {
        Through::new(self.last, self.rows)
    }
}

/// A segment that was not given up.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// Where it begins.
    pub begin: Through,
    /// Where it ends, without what never came to the disk; of the one that is appended to, where it was when it was begun.
    pub end: Through,
}

/// How far a segment goes, and what of it is missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Judged {
    /// Its end, missing frames included.
    pub end: Through,
    /// How far it was known to be durable.
    pub certain: Through,
    /// Frames behind that which are not there.
    pub missing: u64,
    /// Their rows.
    pub missing_rows: u64,
    /// Whether what stands behind the segment may still tell that they were there.
    is_open: bool,
}

impl Judged {
    /// The footer that says so, once everything that is there is on the disk.
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

/// Goes through the segments in the order of their numbers.
pub struct Judge<'a> {
    all: &'a [Ends],
    mark: Option<&'a Mark>,
    /// The end of those before, without rows that never came to the disk; none where nothing is known of it.
    before: Option<Through>,
    /// The number behind the last one.
    next_number: u64,
    kept: BTreeMap<u64, Kept>,
    /// One for each segment, in their order.
    judged: Vec<Judged>,
    /// The place and number of the last one that said anything.
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
        // A crash may leave one that was being made, of which no mark speaks.
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

    /// Judges the segment at a place. What is there of it is shown in its order.
    pub fn segment(&mut self, place: usize, scan: &Scan, mut show: impl FnMut(&FrameHeader, bool)) {
        let ends = self.all[place];
        if scan.is_silent(&ends) {
            // It says nothing: what it had, if anything, is what is missing between those around it.
            let end = self.before.map(|before| self.past_given_up(before, ends.number)).unwrap_or_default();
            self.kept.insert(ends.number, Kept { begin: end, end });
            self.judged.push(Judged::default());
            return;
        }
        let start = self.start(&ends, scan);
        let followers = &self.all[place + 1..];
        let next = followers.first().filter(|next| next.number == ends.number + 1).and_then(|next| next.header);
        // Of a segment without any epoch nothing is known but what stands around it.
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
            // An epoch that begins leaves out the rows that never came to the disk.
            (None, Some(next)) if Some(next.epoch) == scan.epoch => Through::new(next.first - 1, next.rows),
            (None, Some(next)) => Through::new(next.first - 1, next.rows.max(through.rows)),
            // What was given up behind it was durable too.
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
                // How many frames more are gone than had never come nobody can tell: one at least.
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

    /// Where a segment begins; what is missing before it is noted.
    fn start(&mut self, ends: &Ends, scan: &Scan) -> Through {
        let expected = self.before.map(|before| self.past_given_up(before, ends.number));
        let own = ends.header.map(|header| Through::new(header.first.saturating_sub(1), header.rows));
        let first = scan.frames.first().map(|(first, _)| Through::new(first.sequence - 1, first.rows_before));
        // Without its header the end of the one before is where it begins, if only what was given up stands between them.
        let is_next =
            self.given_up_between(self.next_number, ends.number).count() as u64 == ends.number - self.next_number;
        let start = own.or(expected.filter(|_| is_next)).or(first).or(expected).unwrap_or_default();
        if let Some(expected) = expected {
            self.between(expected, start, ends.number);
        }
        start
    }

    /// Notes what is missing between two segments that are there, or behind the last one: segments that are gone are kept until they are given up, so that every opening tells of them.
    fn between(&mut self, from: Through, to: Through, number: u64) {
        let is_given_up = |number: &u64| self.mark.is_some_and(|mark| mark.is_given_up(*number));
        let is_there = |number: &u64| self.all.binary_search_by_key(number, |ends| ends.number).is_ok();
        let mut missing = (self.next_number..number).filter(|number| !is_given_up(number));
        // One that is there and says nothing is gone only where no other one is.
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
            // Those behind it that were given up are counted apart.
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
        // Without a mark nobody knows whether they were given up.
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

    /// What is missing was the end of the last segment, and goes with it: its footer says so from now on.
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

    /// Those behind a segment that say nothing stand where it ends.
    fn move_silent(&mut self, segment: u64, end: Through) {
        let silent: Vec<u64> = self.kept.range(segment + 1..).map(|(number, _)| *number).collect();
        for silent in silent {
            let place = self.past_given_up_from(end, segment, silent);
            self.kept.insert(silent, Kept { begin: place, end: place });
        }
    }

    /// What stands behind the last segment counts so many of its rows that were taken for such as had never come to the disk: they had. How many frames
    /// they were in nobody can tell where they are not all of them: one at least.
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

    /// The end of the segments before `number` that were given up, behind those that are there.
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

    /// How far a segment was known to be on the disk.
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

    /// Notes the gaps of a segment, of which so many frames and rows were not there when its footer was written or the next epoch began; those of which nobody knows more.
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
        // More is missing than had never come: which of them nobody can tell.
        self.recovered.damaged_frames += lost;
        self.recovered.damaged_rows += lost_rows;
        self.recovered.uncertain_frames += frames - lost;
        self.recovered.uncertain_rows += rows - lost_rows;
        (frames - lost, rows - lost_rows)
    }

    /// What there was behind the last segment, and what all of it comes to.
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

/// The gaps of a segment.
struct Gaps {
    certain: Through,
    segment: u64,
    found: Vec<Gap>,
    /// Frames and rows of those that are not certain.
    uncertain: (u64, u64),
}

impl Gaps {
    /// Notes that everything behind `from` up to `to` is missing.
    fn between(&mut self, from: Through, to: Through, offset: u32) {
        if to.sequence <= from.sequence {
            return;
        }
        // What was known to be durable may end within the gap.
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
