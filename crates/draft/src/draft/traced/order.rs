//! Puts a trace in order, and writes its file.
//!
//! Main type: [`Traced`]. The times in a log are those of its entries, often in whole milliseconds or seconds, and its statements are in
//! the order of their ends. Statements with equal times are spread evenly over the unit of time; each begins earlier by its duration, but
//! not before the previous statement of its session has ended.

use std::io::Write;

use super::{Told, Tracer};
use crate::operation::KindNames;
use crate::trace::{Does, End, Event, Head, Named, Sum, VERSION};

/// The contents of a trace, in order.
#[derive(Debug)]
pub struct Traced {
    tracer: Tracer,
    /// Beginnings, in microseconds from the first, with indices of statements in the tracer.
    order: Vec<(u64, u32)>,
    /// The resolution of the log's times, in microseconds.
    pub unit_us: u64,
    /// The greatest number of concurrent sessions.
    pub at_once: usize,
}

/// The reason for which there is no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracedError {
    /// The log has more than a trace can hold.
    TooMuch,
    /// No statement that could be sent was found.
    Nothing,
    /// The log does not record the sessions of statements.
    NoSessions,
    /// The log covers these databases, not a single one.
    Databases(Vec<String>),
}

impl Tracer {
    /// Puts the statements in order.
    ///
    /// # Errors
    /// When no trace can be made of them.
    pub fn finish(mut self) -> Result<Traced, TracedError> {
        if self.databases.len() > 1 {
            return Err(TracedError::Databases(self.databases.into_iter().collect()));
        }
        if self.is_full {
            return Err(TracedError::TooMuch);
        }
        if !self.told.iter().any(|told| !self.statements[usize::from(told.statement)].does.is_control()) {
            return Err(TracedError::Nothing);
        }
        if self.is_without_sessions {
            return Err(TracedError::NoSessions);
        }
        self.end_transactions();
        let unit_us = unit_of(&self.told);
        let spread = spread(&self.told, unit_us);
        // The end of the last statement of each session.
        let mut free_ns = vec![i64::MIN; self.sessions.len()];
        let mut order: Vec<(i64, u32)> = Vec::with_capacity(self.told.len());
        for (place, (told, log_ns)) in (0..).zip(self.told.iter().zip(spread)) {
            let free_ns = &mut free_ns[told.session as usize];
            let start_ns = log_ns.saturating_sub(i64::from(told.lead_us) * 1_000).max(*free_ns);
            *free_ns = start_ns.saturating_add(i64::from(told.took_us) * 1_000);
            order.push((start_ns, place));
        }
        order.sort_unstable();
        let first_ns = order.first().map_or(0, |(start_ns, _)| *start_ns);
        let from_first =
            |(start_ns, place): (i64, u32)| (start_ns.saturating_sub(first_ns).max(0) as u64 / 1_000, place);
        let order: Vec<(u64, u32)> = order.into_iter().map(from_first).collect();
        name_apart(&mut self);
        let at_once = at_once(&self.told, &order, self.sessions.len());
        Ok(Traced { tracer: self, order, unit_us, at_once })
    }

    /// Ends transactions that are still open at the end of the log, so that the next user of the connection is not within one.
    fn end_transactions(&mut self) {
        let mut lasts: Vec<Option<Told>> = vec![None; self.sessions.len()];
        for told in &self.told {
            lasts[told.session as usize] = Some(*told);
        }
        for (session, last) in lasts.into_iter().enumerate() {
            if let Some(last) = last.filter(|_| self.sessions[session].is_inside) {
                self.control("ROLLBACK", Does::Ends, Told { lead_us: 0, took_us: 0, ..last });
            }
        }
    }
}

/// Returns the resolution of the log's times: a second, a millisecond or a microsecond.
fn unit_of(told: &[Told]) -> u64 {
    let is_whole = |unit: i64| told.iter().all(|told| told.log_us % unit == 0);
    [1_000_000, 1_000].into_iter().find(|unit| is_whole(*unit)).unwrap_or(1) as u64
}

/// Returns the times of the log in nanoseconds, with equal times spread over their unit in the order of the log.
fn spread(told: &[Told], unit_us: u64) -> Vec<i64> {
    let mut counts: std::collections::HashMap<i64, (u32, u32)> = std::collections::HashMap::new();
    told.iter().for_each(|told| counts.entry(told.log_us).or_default().0 += 1);
    let unit_ns = if unit_us > 1 { unit_us as f64 * 1e3 } else { 0.0 };
    let place = |told: &Told| {
        let (count, passed) = counts.entry(told.log_us).or_default();
        *passed += 1;
        let within_ns = (unit_ns * (f64::from(*passed) - 0.5) / f64::from((*count).max(1))) as i64;
        told.log_us.saturating_mul(1_000).saturating_add(within_ns)
    };
    told.iter().map(place).collect()
}

/// Returns the greatest number of concurrent sessions, each counted from its first statement to its last.
fn at_once(told: &[Told], order: &[(u64, u32)], sessions: usize) -> usize {
    let mut left = vec![0_u64; sessions];
    told.iter().for_each(|told| left[told.session as usize] += 1);
    let mut is_open = vec![false; sessions];
    let (mut open, mut most) = (0_usize, 0);
    for (_, place) in order {
        let session = told[*place as usize].session as usize;
        if !std::mem::replace(&mut is_open[session], true) {
            open += 1;
            most = most.max(open);
        }
        left[session] -= 1;
        if left[session] == 0 {
            open -= 1;
        }
    }
    most
}

/// Gives each statement a unique name.
fn name_apart(tracer: &mut Tracer) {
    let mut taken = std::collections::HashMap::<String, u32>::new();
    for statement in &mut tracer.statements {
        let count = taken.entry(statement.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            statement.name = format!("{} {count}", statement.name);
        }
        debug_assert!(!KindNames::is_taken(&statement.name));
    }
}

impl Traced {
    /// Returns the number of statements that ran.
    pub fn events(&self) -> usize {
        self.order.len()
    }

    /// Returns the number of distinct statements.
    pub fn statements(&self) -> usize {
        self.tracer.statements.len()
    }

    /// Returns the number of sessions.
    pub fn sessions(&self) -> usize {
        self.tracer.sessions.len()
    }

    /// Returns the time from the first statement to the last, in seconds.
    pub fn seconds(&self) -> f64 {
        self.order.last().map_or(0.0, |(at_us, _)| *at_us as f64 / 1e6)
    }

    /// Returns the number of statements that change or lock rows.
    pub fn writes(&self) -> usize {
        let tracer = &self.tracer;
        tracer.told.iter().filter(|told| tracer.statements[usize::from(told.statement)].does == Does::Writes).count()
    }

    /// Returns the reasons for omissions, with the number of statements omitted for each.
    pub fn left_out(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.tracer.left_out.iter().map(|(what, count)| (*what, *count))
    }

    /// Writes the trace.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, from: &[String], written: &str, file: &mut dyn Write) -> std::io::Result<()> {
        let mut lines = Lines { file, sum: Sum::default() };
        let head = Head { loadline_trace: VERSION, from: from.to_vec(), written: written.to_owned() };
        lines.put(&serde_json::to_vec(&head)?)?;
        let tracer = &self.tracer;
        for (number, statement) in (0..).zip(&tracer.statements) {
            let (name, sql, does) = (statement.name.clone(), statement.sql.clone(), statement.does);
            lines.put(&serde_json::to_vec(&Named { statement: number, name, sql, does })?)?;
        }
        let mut line = Vec::new();
        for (at_us, place) in &self.order {
            let Told { session, statement, values_at, values_bytes, .. } = tracer.told[*place as usize];
            let values = &tracer.values[values_at as usize..][..values_bytes as usize];
            line.clear();
            Event { at_us: *at_us, session, statement, values_at }.write(values, &mut line)?;
            lines.put(&line)?;
        }
        let end = End { events: self.order.len() as u64, sum: lines.sum.shown() };
        lines.put(&serde_json::to_vec(&end)?)?;
        lines.file.flush()
    }
}

/// Writes the lines of a file, and computes their checksum.
struct Lines<'f> {
    file: &'f mut dyn Write,
    sum: Sum,
}

impl Lines<'_> {
    fn put(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.sum.add(line);
        self.file.write_all(line)?;
        self.file.write_all(b"\n")
    }
}
