//! Opens a log: reads all segments, writes the footers that are missing, and begins an epoch. Main function: [`Log::open`].

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::segments::disk::Disk;
use crate::segments::footer::Footer;
use crate::segments::frame::{FrameHeader, HEADER_BYTES, SegmentHeader, stored_bytes};
use crate::segments::log::{BODY_MAX, Log, LogError, Settings, segment_name, segment_number};
use crate::segments::mark::{self, GIVEN_UP_MAX, Mark, Marks};
use crate::segments::recovery::{Found, Judge, Kept, Recovered};
use crate::segments::scan::{Ends, Scan};

/// Maximum number of bytes read of a segment, whatever its header says.
const SEGMENT_MAX: u64 = BODY_MAX + (1 << 20);

impl Log {
    /// Opens the log on a disk, or creates one. Every frame found is passed to `show` in the order in which it was appended, and is durable when this returns. `epoch` is
    /// a random number that was never used before and that is unknown to the senders of what is appended.
    ///
    /// # Errors
    /// [`LogError::Broken`] if the disk cannot be read or written. [`LogError::NoRoom`] if there is no log and no room for one. A full disk is no error if
    /// there is a log.
    pub fn open(
        disk: Arc<dyn Disk>,
        settings: Settings,
        epoch: u64,
        show: &mut dyn FnMut(Found<'_>),
    ) -> Result<(Log, Recovered), LogError> {
        let broken = |error: io::Error| match error.kind() {
            io::ErrorKind::StorageFull => LogError::NoRoom(error.to_string()),
            _ => LogError::Broken(error.to_string()),
        };
        let names = disk.names().map_err(broken)?;
        let (marks, mark) = Marks::open(&*disk, names.iter().any(|name| name == mark::NAME)).map_err(broken)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment_number(name)).collect();
        numbers.sort_unstable();
        // A power cut can bring back removed files.
        let is_given_up = |number: &u64| mark.as_ref().is_some_and(|mark| mark.is_given_up(*number));
        let mut unused: Vec<u64> = numbers.iter().copied().filter(is_given_up).collect();
        numbers.retain(|number| !is_given_up(number));
        // The names of the segments may not have reached the disk yet, if the process that created them failed.
        disk.sync().map_err(broken)?;
        let all = numbers.iter().map(|number| ends(&*disk, *number)).collect::<io::Result<Vec<_>>>().map_err(broken)?;
        let (kept, recovered, silent) = look_through(&*disk, &all, mark.as_ref(), show).map_err(broken)?;
        let end = recovered.end();
        let newest_number = numbers.last().copied().max(mark.as_ref().map(|mark| mark.newest)).unwrap_or(0);
        let given_up = mark.iter().flat_map(|mark| &mark.given_up).map(|one| (one.number, *one)).collect();
        let mut log = Log {
            disk,
            settings,
            marks,
            epoch,
            current: None,
            next_number: newest_number + 1,
            buffer: Vec::new(),
            newest: end,
            durable: end,
            kept,
            given_up,
            sealed: newest_number,
            note: Vec::new(),
            broken: None,
        };
        // These segments were being created when a crash came. No mark mentions them, and they never held a frame.
        let never_used = silent.into_iter().filter(|number| mark.as_ref().is_some_and(|mark| mark.newest < *number));
        let never_used: Vec<u64> = never_used.take(GIVEN_UP_MAX.saturating_sub(log.given_up.len())).collect();
        log.leave_out(&never_used);
        // If the newest segment is gone and nothing tells what it held, this opening has reported it.
        let is_told = |number: &u64| {
            *number > 0
                && !numbers.contains(number)
                && !log.kept.contains_key(number)
                && !mark.as_ref().is_some_and(|mark| mark.is_given_up(*number))
        };
        let told = Some(newest_number).filter(is_told).filter(|_| log.given_up.len() < GIVEN_UP_MAX);
        log.leave_out(told.as_slice());
        unused.extend(never_used);
        // From here on the mark belongs to this epoch; what it recorded about the last epoch is in the footers. Files are removed only now: the mark read above may have been
        // visible without being on the disk.
        log.write_mark_twice(recovered.note.as_deref().unwrap_or_default(), false)?;
        unused.iter().try_for_each(|number| log.disk.remove(&segment_name(*number))).map_err(broken)?;
        Ok((log, recovered))
    }
}

/// Passes the whole frames of the existing segments to `show`, in the order in which they were appended, and changes nothing. It may be called while another process appends:
/// frames that this process is writing or giving up at the moment may be missing.
///
/// # Errors
/// Any error of the disk.
pub fn look(disk: &dyn Disk, show: &mut dyn FnMut(&FrameHeader, &[u8])) -> io::Result<()> {
    let mut seen = 0;
    loop {
        // Frames of a segment that is given up meanwhile have been copied into a segment begun later.
        let mut numbers: Vec<u64> =
            disk.names()?.iter().filter_map(|name| segment_number(name)).filter(|number| *number > seen).collect();
        numbers.sort_unstable();
        let Some(last) = numbers.last() else { return Ok(()) };
        seen = *last;
        for number in numbers {
            look_at(disk, number, show)?;
        }
    }
}

/// Does the same as [`look`] for one segment.
///
/// # Errors
/// Any error of the disk.
pub fn look_at(disk: &dyn Disk, number: u64, show: &mut dyn FnMut(&FrameHeader, &[u8])) -> io::Result<()> {
    let found = ends(disk, number).and_then(|ends| Ok((ends, disk.open(&segment_name(number))?)));
    let (ends, file) = match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let mut bytes = vec![0; ends.bytes.min(SEGMENT_MAX) as usize];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    for (header, _) in Scan::of(&ends, &bytes, &[]).frames.iter().filter(|(_, is_whole)| *is_whole) {
        let body = header.position.offset as usize + HEADER_BYTES;
        show(header, bytes.get(body..body + header.length as usize).unwrap_or_default());
    }
    Ok(())
}

fn ends(disk: &dyn Disk, number: u64) -> io::Result<Ends> {
    let file = disk.open(&segment_name(number))?;
    let bytes = file.bytes()?;
    let read = |offset: u64| -> io::Result<[u8; HEADER_BYTES]> {
        let mut header = [0; HEADER_BYTES];
        file.read_at(&mut header, offset)?;
        Ok(header)
    };
    let header =
        SegmentHeader::decoded(&read(0)?, number).filter(|header| header.bytes <= SEGMENT_MAX && header.first > 0);
    let mut ends = Ends { number, header, footer: None, bytes };
    if let Some(place) = ends.footer_at() {
        let is_own = |footer: &Footer| {
            header.is_none_or(|header| header.epoch == footer.epoch && footer.last + 1 >= header.first)
        };
        ends.footer = Footer::decoded(&read(place)?, number).filter(is_own);
    }
    Ok(ends)
}

/// Passes all frames to `show`, makes them durable, and writes the missing footers. Returns the kept segments, the result, and the numbers of silent segments.
fn look_through(
    disk: &dyn Disk,
    all: &[Ends],
    mark: Option<&Mark>,
    show: &mut dyn FnMut(Found<'_>),
) -> io::Result<(BTreeMap<u64, Kept>, Recovered, Vec<u64>)> {
    let mut epochs: Vec<u64> = all.iter().filter_map(Ends::epoch).chain(mark.map(|mark| mark.epoch)).collect();
    epochs.sort_unstable();
    epochs.dedup();
    let sealed = mark.map_or(0, |mark| mark.sealed);
    let mut judge = Judge::new(all, mark);
    let (mut bytes, mut footers, mut silent) = (Vec::new(), Vec::new(), Vec::new());
    for (place, ends) in all.iter().enumerate() {
        let file = disk.open(&segment_name(ends.number))?;
        // A segment that is shorter than it was created is read as it will be when its footer is written.
        let length = ends.header.map_or(ends.bytes, |header| header.bytes).min(SEGMENT_MAX);
        bytes.clear();
        bytes.resize(length as usize, 0);
        let read = file.read_at(&mut bytes, 0)?;
        let scan = Scan::of(ends, &bytes, &epochs);
        silent.extend(scan.is_silent(ends).then_some(ends.number));
        if (ends.footer.is_none() || ends.number > sealed) && scan.epoch.is_some() {
            // Whoever receives a frame may pass it on: it must not be gone after the next power cut. A sync that failed before may have left pages in memory
            // that count as clean and never reached the disk, so they are written again.
            let end =
                scan.frames.last().map_or(HEADER_BYTES as u64, |(last, _)| end_of(last.position.offset, last.length));
            file.write_at(&bytes[..(end as usize).min(read)], 0)?;
            if let (Some(footer), Some(place)) = (ends.footer, ends.footer_at()) {
                file.write_at(&footer.encoded(), place)?;
            }
            file.sync()?;
        }
        judge.segment(place, &scan, |header, is_whole| {
            let body = header.position.offset as usize + HEADER_BYTES;
            let end = (body + header.length as usize).min(bytes.len());
            let body = bytes.get(body..end).unwrap_or_default();
            show(if is_whole { Found::Frame(header, body) } else { Found::Damaged(header, body) });
        });
        if let (None, Some(footer_at), Some(epoch)) = (ends.footer, ends.footer_at(), scan.epoch) {
            let end = scan.frames.last().map_or(0, |(last, _)| end_of(last.position.offset, last.length));
            // Without a header, the footer is searched for at the end of the file, wherever that is: a file that was cut there gets longer.
            let longer = ends.header.is_none().then(|| end.max(ends.bytes));
            let place_of_footer = Some(footer_at).filter(|footer_at| end <= *footer_at).or(longer);
            footers.extend(place_of_footer.map(|footer_at| (place, footer_at, epoch)));
        }
    }
    let (kept, judged, recovered) = judge.finish();
    for (place, footer_at, epoch) in footers {
        let number = all[place].number;
        let file = disk.open(&segment_name(number))?;
        match file.write_at(&judged[place].footer(number, epoch).encoded(), footer_at) {
            // A file that is shorter than it was created cannot grow on a full disk; the next opening judges the segment again.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            written => written.and_then(|()| file.sync())?,
        }
    }
    Ok((kept, recovered, silent))
}

fn end_of(offset: u32, length: u32) -> u64 {
    u64::from(offset) + stored_bytes(length.into())
}
