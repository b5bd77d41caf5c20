//! Statistics that the database reports about itself during the measurement.
//!
//! Main type: [`Telling`]. Invariant: nothing waits for it: a database that does not answer reports nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::database::instruments::Instrument;
use crate::database::{Database, Session};
use crate::measurement::Told;

/// Largest number of readings kept; then every second one is dropped and the interval doubles.
const READINGS_MOST: usize = 600;
/// Interval between two checks for the end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A reading: its time, and the numbers of the answer.
type Reading = (Instant, Vec<Option<f64>>);

/// A thread that queries the database until it is stopped.
pub(super) struct Telling {
    instruments: Vec<&'static Instrument>,
    readings: Arc<Mutex<Vec<Reading>>>,
    stop: Arc<AtomicBool>,
}

impl Telling {
    /// Starts the queries; returns `None` if the database has no statistics or does not report them.
    pub fn begin(database: &dyn Database, interval: Duration) -> Option<Self> {
        let alternatives = database.dialect().instruments();
        if alternatives.is_empty() {
            return None;
        }
        let mut session = database.connect().ok()?;
        if let Some(sql) = database.dialect().read_only() {
            session.run(sql).ok()?;
        }
        let mut answers = |instrument: &&Instrument| is_told(&mut *session, instrument);
        let instruments: Vec<&'static Instrument> =
            alternatives.iter().filter_map(|alternatives| alternatives.iter().find(&mut answers)).collect();
        if instruments.is_empty() {
            return None;
        }
        let (readings, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (kept, seen, asked) = (Arc::clone(&readings), Arc::clone(&stop), instruments.clone());
        let ask = move || ask(&mut *session, &asked, interval, (&kept, &seen));
        std::thread::Builder::new().name("telling".to_owned()).spawn(ask).ok()?;
        Some(Telling { instruments, readings, stop })
    }

    /// Stops and returns the readings, with times relative to `begun`.
    pub fn finish(self, begun: Instant) -> Told {
        let readings = std::mem::take(&mut *self.readings.lock().unwrap_or_else(PoisonError::into_inner));
        let since = |at: Instant| match at.checked_duration_since(begun) {
            Some(after) => after.as_secs_f64(),
            None => -(begun - at).as_secs_f64(),
        };
        let mut figures = Vec::new();
        let mut first = 0;
        for instrument in &self.instruments {
            figures.extend(instrument.figures.iter().map(|(name, how)| ((*name).to_owned(), how.from(first))));
            first += instrument.numbers();
        }
        Told { figures, readings: readings.into_iter().map(|(at, numbers)| (since(at), numbers)).collect() }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        // The thread ends when its query is answered or its connection breaks.
        self.stop.store(true, Ordering::Release);
    }
}

fn ask(
    session: &mut dyn Session,
    instruments: &[&'static Instrument],
    mut interval: Duration,
    (kept, stop): (&Mutex<Vec<Reading>>, &AtomicBool),
) {
    let mut next = Instant::now();
    while !stop.load(Ordering::Acquire) {
        let now = Instant::now();
        if now < next {
            std::thread::sleep((next - now).min(LOOK_EVERY));
            continue;
        }
        let mut row = Vec::new();
        for instrument in instruments {
            let Some(numbers) = numbers(session, instrument) else { return };
            row.extend(numbers);
        }
        // The counters were read at some time between query and answer.
        let at = now + now.elapsed() / 2;
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((at, row));
        if kept.len() >= READINGS_MOST {
            let mut place = 0;
            kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            interval *= 2;
        }
        drop(kept);
        while next <= now {
            next += interval;
        }
    }
}

/// Returns whether the server has what an instrument reads, and answers the query.
fn is_told(session: &mut dyn Session, instrument: &Instrument) -> bool {
    let is_there = instrument.is_there.is_none_or(|sql| session.query(sql).is_ok_and(|rows| !rows.is_empty()));
    is_there && numbers(session, instrument).is_some()
}

/// Returns the current numbers of an instrument; `None` if the answer does not have the expected form.
fn numbers(session: &mut dyn Session, instrument: &Instrument) -> Option<Vec<Option<f64>>> {
    let rows = session.query(instrument.sql).ok()?;
    let row = rows.into_iter().next()?;
    let number =
        |value: Option<String>| value.and_then(|text| text.parse::<f64>().ok()).filter(|number| number.is_finite());
    let mut numbers: Vec<Option<f64>> = row.into_iter().map(number).collect();
    numbers.resize(instrument.numbers(), None);
    Some(numbers)
}
