//! The conservation check that ends every trial with a `[recorder]`: each acknowledged record is in the database once, in the order of its source.
//!
//! The order is that of a table's record numbers, which each lane of a recorder assigns by itself. A source moves to another lane when it sends more than
//! its share, and later back; record numbers of two lanes have no common order, so the order is checked within each lane.
//!
//! Main functions: [`recorded`], whose comparison is pure, and [`each_row`]. Invariant: every record is checked, and only a bit or two is kept in memory for each.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::conserve_blocks::uploaded;
use super::front::Front;
use super::stage::Current;
use super::watch::Looks;
use super::watch_all::{Together, WatchAll};
use crate::database::Database;
use crate::layout::RECORD_ID;
use crate::load::{Acknowledged, Observed};
use crate::measurement::{RecordedMeasurement, RecorderMeasurement};
use crate::record::number_of_time;
use crate::recorder::writer::writer_of;
use crate::trial::Settings;
use crate::workload::Work;

/// Number of rows requested at a time.
const PAGE_ROWS: usize = 20_000;
const TIME: &str = "time_ns";

/// Returns the figures of [`RecordedMeasurement`] for the records of a trial whose measured phase began at `begun`.
///
/// # Errors
/// Fails if the recorder or the database cannot be queried.
pub fn recorded(
    settings: &Settings,
    work: &Work,
    observed: &Observed,
    begun: Instant,
    front: Option<(&Front, WatchAll)>,
    current: &Current,
) -> anyhow::Result<RecordedMeasurement> {
    let acknowledged = observed.acknowledged.iter().map(Acknowledged::count).sum();
    let unknown = observed.acknowledged.iter().map(Acknowledged::count_unknown).sum();
    let mut recorded = RecordedMeasurement { acknowledged, unknown, ..RecordedMeasurement::default() };
    // The engine's clock and this one agree at the start of the measured phase.
    let since = |time_ns: u64| time_ns as i128 - i128::from(observed.measure_ns);
    let after = |time_ns: u64| begun + Duration::from_nanos(u64::try_from(since(time_ns)).unwrap_or(0));
    let last = |pick: fn(&Acknowledged) -> u64| observed.acknowledged.iter().map(pick).max().unwrap_or(0);
    let ended = after(last(|source| source.last_intended_ns));
    let uploads = front.as_ref().and_then(|(front, _)| Some((front.uploads.as_ref()?.sent(), *front)));
    let (table, column) = match front.as_ref().and_then(|(front, _)| front.tables.as_ref()) {
        Some(tables) => (tables.records.clone(), TIME),
        None if uploads.is_some() => Default::default(),
        None => (work.record_table().context("the layout has no table of records")?.to_owned(), RECORD_ID),
    };
    if let Some((front, watch)) = front {
        let waits = settings.uploaded().is_some_and(|blocks| !blocks.process);
        let patience = if waits { 0.0 } else { settings.load.drain_s };
        let seen = watch.finish(acknowledged, Duration::from_secs_f64(patience))?;
        recorded.is_kept_waiting = waits;
        recorded.answer_max_s = Some(seen.longest_answer().as_secs_f64());
        recorded.unanswered = seen.unanswered();
        recorded.protection = front.opened.as_ref().and_then(|session| session.protection());
        recorded.committed = seen.committed();
        recorded.spooled = seen.spooled(acknowledged + unknown);
        recorded.quarantined = seen.quarantined();
        recorded.buffer_s = seen.stored_at().map_or(0.0, |at| at.saturating_duration_since(ended).as_secs_f64());
        recorded.spooled_max = seen.spooled_max();
        recorded.parts_moved = seen.parts_moved();
        let measured = Duration::from_secs_f64(observed.measured_s.max(1e-9));
        recorded.stored_per_s = seen.committed_between(begun, begun + measured) / measured.as_secs_f64();
        let each = each_recorder(front, &seen, begun, measured);
        recorded.memory_max_bytes = each.iter().map(|one| one.memory_max_bytes).sum();
        recorded.recorders = if each.len() > 1 { each } else { Vec::new() };
    } else {
        let done = after(last(|source| source.last_done_ns));
        recorded.committed = acknowledged;
        recorded.stored_per_s =
            observed.tally.carried as f64 * f64::from(settings.workload.batch) / observed.measured_s.max(1e-9);
        recorded.buffer_s = done.saturating_duration_since(ended).as_secs_f64();
    }
    if let Some((sent, front)) = uploads {
        recorded.block_bytes = sent.acknowledged_bytes as f64 / (sent.acknowledged.len() as f64).max(1.0);
        recorded.blocks_per_s = Some(observed.tally.carried_in_shares / observed.measured_s.max(1e-9));
        uploaded(&sent, front, current, &mut recorded)?;
        return Ok(recorded);
    }
    let mut check = Check::new(&observed.acknowledged, settings.record.per_measurement);
    let is_number = column == RECORD_ID;
    each_row(current.database()?, &table, column, |id, value| {
        let (number, writer) =
            if is_number { (u64::try_from(value).ok(), 0) } else { (number_of_time(value), writer_of(id)) };
        check.take(number, writer);
    })?;
    check.fill(&mut recorded);
    Ok(recorded)
}

/// Returns the figures of each recorder, in the order of their numbers.
fn each_recorder(front: &Front, seen: &Together, begun: Instant, measured: Duration) -> Vec<RecorderMeasurement> {
    let (ended, measured_s) = (begun + measured, measured.as_secs_f64());
    let figures = |(looks, pid): (&Looks, Option<u32>)| RecorderMeasurement {
        committed: looks.last.committed,
        stored_per_s: looks.committed_between(begun, ended) / measured_s,
        recorder_cpu: looks.cpu_s_between(begun, ended) / measured_s,
        memory_max_bytes: pid.and_then(largest_memory_bytes).unwrap_or(0),
        parts: looks.last.parts_held,
    };
    seen.recorders.iter().zip(front.pids()).map(figures).collect()
}

/// Returns the peak resident memory of a process, in bytes.
fn largest_memory_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Calls `each` with the number and one column of every row of a table, in the order of the numbers.
///
/// # Errors
/// Fails if the database cannot be read, or a row has no number.
pub fn each_row(
    database: &dyn Database,
    table: &str,
    column: &str,
    mut each: impl FnMut(i64, i64),
) -> anyhow::Result<()> {
    let (mut session, dialect) = (database.connect()?, database.dialect());
    let [table, id, column] = [table, RECORD_ID, column].map(|name| dialect.quote(name));
    let mut above = i64::MIN;
    loop {
        let sql = format!("SELECT {id}, {column} FROM {table} WHERE {id} > {above} ORDER BY {id} LIMIT {PAGE_ROWS}");
        let rows = session.query(&sql)?;
        for row in &rows {
            let number = |place: usize| row.get(place).and_then(|cell| cell.as_ref()?.parse::<i64>().ok());
            above = number(0).context("a row without a number")?;
            each(above, number(1).unwrap_or(i64::MIN));
        }
        if rows.len() < PAGE_ROWS {
            return Ok(());
        }
    }
}

/// Compares the records in the database with the acknowledged ones.
struct Check {
    first: u64,
    /// State of each record, from `first` on.
    states: Vec<State>,
    per_measurement: u64,
    /// Newest record of each source so far, by source and the lane that stored it.
    newest: HashMap<(u64, i64), u64>,
    found: u64,
    surplus: u64,
    out_of_order: u64,
    must: u64,
    met: u64,
}

/// The state of a record in the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was never sent.
    Unsent,
    /// It was acknowledged and must be there.
    Must,
    /// Its outcome is unknown: it may be there.
    May,
    /// It was found.
    Found,
}

impl Check {
    fn new(sources: &[Acknowledged], per_measurement: u64) -> Self {
        let runs = || sources.iter().flat_map(|source| source.stored.iter().chain(source.unknown.iter().cloned()));
        let first = runs().map(|run| run.start).min().unwrap_or(0);
        let end = runs().map(|run| run.end).max().unwrap_or(first);
        let mut states = vec![State::Unsent; (end - first) as usize];
        let mut mark = |run: &Range<u64>, state: State| {
            states[(run.start - first) as usize..(run.end - first) as usize].fill(state);
        };
        for source in sources {
            source.unknown.iter().for_each(|run| mark(run, State::May));
            source.stored.iter().for_each(|run| mark(&run, State::Must));
        }
        let must = sources.iter().map(Acknowledged::count).sum();
        Check {
            first,
            states,
            per_measurement: per_measurement.max(1),
            newest: HashMap::new(),
            found: 0,
            surplus: 0,
            out_of_order: 0,
            must,
            met: 0,
        }
    }

    /// Adds a record that was found and the lane that stored it; `None` stands for a record that cannot have been sent.
    fn take(&mut self, number: Option<u64>, writer: i64) {
        self.found += 1;
        let place = number.and_then(|number| usize::try_from(number.checked_sub(self.first)?).ok());
        let Some((number, state)) = number.zip(place.and_then(|place| self.states.get_mut(place))) else {
            self.surplus += 1;
            return;
        };
        match state {
            State::Must => self.met += 1,
            State::May => {}
            State::Unsent | State::Found => self.surplus += 1,
        }
        *state = State::Found;
        let newest = self.newest.entry((number / self.per_measurement, writer)).or_insert(number);
        self.out_of_order += u64::from(number < *newest);
        *newest = number.max(*newest);
    }

    fn fill(&self, recorded: &mut RecordedMeasurement) {
        recorded.found = self.found;
        recorded.missing = self.must - self.met;
        recorded.surplus = self.surplus;
        recorded.out_of_order = self.out_of_order;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(numbers: &[u64]) -> (u64, u64, u64, u64) {
        checked_by(&numbers.iter().map(|number| (*number, 0)).collect::<Vec<_>>())
    }

    /// Checks numbers together with the lanes that stored them.
    fn checked_by(numbers: &[(u64, i64)]) -> (u64, u64, u64, u64) {
        let kept =
            |stored: Range<u64>| Acknowledged { stored: std::iter::once(stored).collect(), ..Acknowledged::default() };
        let sources = [kept(10..14), Acknowledged { unknown: std::iter::once(24..25).collect(), ..kept(20..24) }];
        let mut check = Check::new(&sources, 10);
        numbers.iter().for_each(|(number, writer)| check.take(Some(*number), *writer));
        let mut recorded = RecordedMeasurement::default();
        check.fill(&mut recorded);
        (recorded.found, recorded.missing, recorded.surplus, recorded.out_of_order)
    }

    #[test]
    fn every_record_is_asked_for_once_and_in_its_sources_order() {
        assert_eq!(checked(&[10, 20, 11, 12, 21, 22, 13, 23]), (8, 0, 0, 0));
        assert_eq!(checked(&[10, 20, 11, 12, 21, 22, 13, 23, 24]), (9, 0, 0, 0), "nobody knows of 24");
        assert_eq!(checked(&[10, 20, 11, 21, 22, 13, 23]), (7, 1, 0, 0), "12 is lost");
        assert_eq!(checked(&[10, 20, 11, 12, 21, 22, 13, 23, 23, 14, 99]), (11, 0, 3, 0), "twice, and never sent");
        assert_eq!(checked(&[10, 20, 12, 11, 21, 22, 13, 23]), (8, 0, 0, 1), "11 behind 12");
    }

    #[test]
    fn a_source_that_moved_to_another_lane_has_an_order_in_each() {
        let stored = [(12, 1), (13, 1), (20, 1), (10, 2), (11, 2), (21, 2), (22, 2), (23, 2)];
        assert_eq!(checked_by(&stored), (8, 0, 0, 0));
        let stored = [(12, 1), (13, 1), (20, 1), (11, 2), (10, 2), (21, 2), (23, 2), (22, 2)];
        assert_eq!(checked_by(&stored), (8, 0, 0, 2));
    }
}
