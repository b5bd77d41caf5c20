//! A reader: asks a database repeatedly what is new in its tables, until the writers have ended and nothing more comes.
//!
//! Main function: [`read_tables`]. Invariant: polls are due at equal intervals from the first one on; a late poll is made at once, and the polls
//! missed in the meantime are left out, because the next answer contains all that they would have shown.

use std::time::Duration;

use super::{Control, Cursor, Sightings, is_over, monotonic};
use crate::database::{DatabaseError, TargetSession};
use crate::load::clock::minimise_timer_slack;
use crate::load::thread_cpu_s;
use crate::record::{Cell, Cells};
use crate::statement::{Expect, Request, Step};

/// Time in nanoseconds without anything new after which a reader ends once the writers have ended.
const QUIET_NS: u64 = 300_000_000;
/// Longest wait for a notification; bounded so that the end is noticed.
const NOTICE_WAIT: Duration = Duration::from_millis(20);
/// Pause in nanoseconds before readers check again whether to begin.
const BEGIN_PAUSE_NS: u64 = 200_000;

/// The way in which a reader finds new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Asks for keys above those seen; keys passed over are asked for again for a limited time.
    ByKey {
        /// That time, in nanoseconds.
        look_back_ns: u64,
    },
    /// Asks for the latest rows.
    Window,
}

/// The task of a reader.
pub struct ReaderTask<'a> {
    /// Fills a request with the question for new rows in a table, after a key if the question has one.
    pub ask: &'a (dyn Fn(u32, u64, &mut Request) + Sync),
    /// Returns the writer of an event and its place among the writer's events, by the event's number.
    pub place_of: &'a (dyn Fn(u64) -> (usize, u64) + Sync),
    /// Returns the writers of a table.
    pub writers_of: &'a (dyn Fn(u32) -> Vec<usize> + Sync),
    /// The tables to read.
    pub tables: Vec<u32>,
    /// The way in which new rows are found.
    pub asking: Asking,
    /// Time from one poll to the next, in nanoseconds; `None` if the database notifies.
    pub every_ns: Option<u64>,
    /// Delay of the first poll after reading begins, in nanoseconds; it differs between the readers of a group.
    pub phase_ns: u64,
    /// Number of values of a row: key, event, start of the write, and more.
    pub width: usize,
    /// Number of rows from which on an answer counts as cut off.
    pub rows_max: usize,
    /// The statement that stores the rows found, and the maximum number of rows that it takes.
    pub results: Option<(u16, usize)>,
    /// Longest time in nanoseconds to continue after the writers' end.
    pub drain_ns: u64,
}

/// Reads until the writers have ended and nothing new comes, and returns the sightings. A failed connection ends it early.
pub fn read_tables(
    session: &mut dyn TargetSession,
    task: &ReaderTask<'_>,
    control: &Control,
    sightings: Sightings,
) -> Sightings {
    minimise_timer_slack();
    let mut reader = Reader {
        session,
        task,
        sightings,
        from_ns: u64::MAX,
        cursors: task
            .tables
            .iter()
            .map(|table| Cursor::new(look_back_ns(task.asking), (task.writers_of)(*table)))
            .collect(),
        request: Request::default(),
        rows: Cells::new(),
        found: Request::default(),
        cpu_from_s: None,
    };
    if let Err(error) = reader.run(control) {
        reader.sightings.error = Some(error.to_string());
    }
    reader.sightings
}

fn look_back_ns(asking: Asking) -> u64 {
    if let Asking::ByKey { look_back_ns } = asking { look_back_ns } else { 0 }
}

struct Reader<'a> {
    session: &'a mut dyn TargetSession,
    task: &'a ReaderTask<'a>,
    sightings: Sightings,
    from_ns: u64,
    cursors: Vec<Cursor>,
    request: Request,
    rows: Cells,
    /// The rows for the result table.
    found: Request,
    /// CPU time of the thread when counting began, in seconds.
    cpu_from_s: Option<f64>,
}

impl Reader<'_> {
    fn run(&mut self, control: &Control) -> Result<(), DatabaseError> {
        while control.from_ns().is_none() && !control.is_stopped() {
            monotonic::sleep_until_ns(monotonic::now_ns() + BEGIN_PAUSE_NS);
        }
        self.from_ns = control.from_ns().unwrap_or(u64::MAX);
        let begun_ns = monotonic::now_ns();
        let mut due_ns = begun_ns + self.task.phase_ns;
        let mut last_new_ns = begun_ns;
        let mut is_counted = false;
        while !control.is_stopped() {
            self.wait(due_ns)?;
            // Rows committed before this moment are in the answers that follow.
            let written_ns = control.written_ns();
            if written_ns.is_some() && !is_counted {
                is_counted = true;
                self.count_cpu();
            }
            let now_ns = monotonic::now_ns();
            if self.cpu_from_s.is_none() && now_ns >= self.from_ns {
                self.cpu_from_s = Some(thread_cpu_s());
            }
            if self.poll()? {
                last_new_ns = monotonic::now_ns();
            }
            let quiet_ns = QUIET_NS + look_back_ns(self.task.asking) + 2 * self.task.every_ns.unwrap_or(0);
            if is_over(written_ns, last_new_ns, monotonic::now_ns(), quiet_ns, self.task.drain_ns) {
                break;
            }
            if let Some(every_ns) = self.task.every_ns {
                let now_ns = monotonic::now_ns();
                due_ns += every_ns;
                if due_ns < now_ns {
                    due_ns += (now_ns - due_ns) / every_ns * every_ns;
                }
            }
        }
        if !is_counted {
            self.count_cpu();
        }
        Ok(())
    }

    fn count_cpu(&mut self) {
        self.sightings.cpu_s = self.cpu_from_s.map_or(0.0, |from_s| thread_cpu_s() - from_s);
    }

    /// Waits until the next poll is due, or the database notifies that there is something new.
    fn wait(&mut self, due_ns: u64) -> Result<(), DatabaseError> {
        match self.task.every_ns {
            Some(_) => monotonic::sleep_until_ns(due_ns),
            // Polls without a notification too, so that a lost one costs only this wait.
            None => {
                let no_notices = || DatabaseError::Unavailable("the database has no notifications".to_owned());
                self.session.sql().ok_or_else(no_notices)?.await_notice(NOTICE_WAIT)?;
            }
        }
        Ok(())
    }

    /// Asks for new rows in each table. Returns whether there were any.
    fn poll(&mut self) -> Result<bool, DatabaseError> {
        let mut is_new = false;
        for place in 0..self.task.tables.len() {
            loop {
                let (found, rows) = self.poll_table(place)?;
                is_new |= found;
                if rows < self.task.rows_max || self.task.asking == Asking::Window {
                    break;
                }
            }
        }
        Ok(is_new)
    }

    fn poll_table(&mut self, place: usize) -> Result<(bool, usize), DatabaseError> {
        let (task, cursor) = (self.task, &mut self.cursors[place]);
        self.request.clear();
        self.rows.clear();
        (task.ask)(task.tables[place], cursor.behind(monotonic::now_ns()), &mut self.request);
        self.session.execute(&self.request, Some(&mut self.rows))?;
        let now_ns = monotonic::now_ns();
        let rows = self.rows.len() / task.width;
        self.sightings.polls += 1;
        self.sightings.rows += rows as u64;
        let (mut is_new, mut lowest, mut highest) = (false, u64::MAX, 0);
        for row in 0..rows {
            let number = |place: usize| match self.rows.get(row * task.width + place) {
                Cell::Int(number) => number.max(0) as u64,
                _ => 0,
            };
            let key = number(0);
            (lowest, highest) = (lowest.min(key), highest.max(key));
            let (event, written_ns) = (number(1), number(2));
            let (writer, own_place) = (task.place_of)(event);
            let is_key_new = match task.asking {
                Asking::ByKey { .. } => cursor.take(key, writer, now_ns),
                Asking::Window => cursor.take_of_window(key),
            };
            if !is_key_new {
                self.sightings.read_again += 1;
                continue;
            }
            is_new = true;
            if self.sightings.take(writer, own_place, written_ns, now_ns, self.from_ns) && task.results.is_some() {
                for value in [u64::from(self.sightings.reader), event, written_ns, now_ns] {
                    self.found.cells.int(value as i64);
                }
            }
        }
        match task.asking {
            Asking::Window if rows > 0 => cursor.window_begins(lowest),
            Asking::ByKey { .. } if rows >= task.rows_max => cursor.cut(highest),
            _ => {}
        }
        self.keep_results()?;
        Ok((is_new, rows))
    }

    /// Writes the rows found into the result table, as the readers of the slides do.
    fn keep_results(&mut self) -> Result<(), DatabaseError> {
        let Some((statement, most)) = self.task.results else { return Ok(()) };
        const COLUMNS: usize = 4;
        let rows = self.found.cells.len() / COLUMNS;
        for first in (0..rows).step_by(most) {
            let count = most.min(rows - first) as u32;
            let expect = Expect::Changed(u64::from(count));
            self.found.steps.push(Step { statement, rows: count, first_cell: (first * COLUMNS) as u32, expect });
        }
        if rows > 0 {
            self.session.execute(&self.found, None)?;
        }
        self.found.clear();
        Ok(())
    }
}
