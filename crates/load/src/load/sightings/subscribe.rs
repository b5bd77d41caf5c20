//! Subscribers: readers that receive events as they are published, and the historian that stores them.
//!
//! Main functions: [`read_messages`] and [`store_messages`]. Invariant: events that the server cannot deliver are not
//! asked for again; they are missing in the sightings, and so counted as lost.

use std::time::Duration;

use super::{Control, Sightings, is_over, monotonic};
use crate::database::nats::{Subscriber, decode};
use crate::database::{DatabaseError, TargetSession};
use crate::load::clock::minimise_timer_slack;
use crate::load::thread_cpu_s;
use crate::record::{Cell, Cells};
use crate::statement::Request;

/// Longest wait for a message; bounded so that the end is noticed.
const PATIENCE: Duration = Duration::from_millis(10);
/// Time in nanoseconds without anything new after which a subscriber ends once the writers have ended.
const QUIET_NS: u64 = 300_000_000;

/// The task of a subscriber.
pub struct SubscriberTask<'a> {
    /// Returns the writer of an event and its place among the writer's events, by the event's number.
    pub place_of: &'a (dyn Fn(u64) -> (usize, u64) + Sync),
    /// Subscribes again after the server has cut the subscriber off because it could not keep up.
    pub open: &'a (dyn Fn() -> Result<Subscriber, DatabaseError> + Sync),
    /// Longest time in nanoseconds to continue after the writers' end.
    pub drain_ns: u64,
}

/// Counts the events seen, and the CPU time of the thread while writers wrote.
struct Counting<'a> {
    task: &'a SubscriberTask<'a>,
    control: &'a Control,
    sightings: Sightings,
    last_new_ns: u64,
    cpu_from_s: Option<f64>,
    is_counted: bool,
}

impl<'a> Counting<'a> {
    fn new(task: &'a SubscriberTask<'a>, control: &'a Control, sightings: Sightings) -> Self {
        minimise_timer_slack();
        let last_new_ns = monotonic::now_ns();
        Counting { task, control, sightings, last_new_ns, cpu_from_s: None, is_counted: false }
    }

    /// Returns whether the subscriber has finished; called at each turn.
    fn is_over(&mut self) -> bool {
        let now_ns = monotonic::now_ns();
        let written_ns = self.control.written_ns();
        if self.cpu_from_s.is_none() && self.control.from_ns().is_some_and(|from_ns| now_ns >= from_ns) {
            self.cpu_from_s = Some(thread_cpu_s());
        }
        if written_ns.is_some() && !std::mem::replace(&mut self.is_counted, true) {
            self.sightings.cpu_s = self.cpu_from_s.map_or(0.0, |from_s| thread_cpu_s() - from_s);
        }
        if written_ns.is_none() {
            self.is_counted = false;
        }
        self.control.is_stopped() || is_over(written_ns, self.last_new_ns, now_ns, QUIET_NS, self.task.drain_ns)
    }

    /// Notes rows that were seen now; each begins with the event's number and the start of its write.
    fn take(&mut self, rows: &Cells, count: u32, width: u32) {
        let now_ns = monotonic::now_ns();
        // Events that came before counting began belong to the first moment of the warm-up.
        let from_ns = self.control.from_ns().unwrap_or(u64::MAX);
        self.sightings.rows += u64::from(count);
        for row in 0..count as usize {
            let number = |place: usize| match rows.get(row * width as usize + place) {
                Cell::Int(number) => number.max(0) as u64,
                _ => 0,
            };
            let (writer, place) = (self.task.place_of)(number(0));
            if self.sightings.take(writer, place, number(1), now_ns, from_ns) {
                self.last_new_ns = now_ns;
            }
        }
    }

    /// Waits for a message. Returns whether one came. A subscriber that was cut off subscribes again, and has lost the events published in between.
    fn receive(&mut self, subscriber: &mut Subscriber, patience: Duration) -> Result<bool, DatabaseError> {
        match subscriber.receive(patience) {
            Err(DatabaseError::Lost(_)) => {
                *subscriber = (self.task.open)()?;
                self.sightings.cut_off += 1;
                Ok(false)
            }
            Ok(true) => {
                self.sightings.polls += 1;
                Ok(true)
            }
            other => other,
        }
    }

    fn finish(mut self, outcome: Result<(), DatabaseError>) -> Sightings {
        self.sightings.error = outcome.err().map(|error| error.to_string());
        self.sightings
    }
}

/// Returns the error for a message that does not have the expected form.
fn damaged() -> DatabaseError {
    DatabaseError::Lost("a message is damaged".to_owned())
}

/// Receives messages until the writers have ended and nothing new comes, and returns the sightings.
pub fn read_messages(
    subscriber: &mut Subscriber,
    task: &SubscriberTask<'_>,
    control: &Control,
    sightings: Sightings,
) -> Sightings {
    let mut counting = Counting::new(task, control, sightings);
    let mut rows = Cells::new();
    let mut run = || -> Result<(), DatabaseError> {
        while !counting.is_over() {
            if counting.receive(subscriber, PATIENCE)? {
                rows.clear();
                let (count, width) = decode(subscriber.message(), &mut rows).ok_or_else(damaged)?;
                counting.take(&rows, count, width);
            }
        }
        Ok(())
    };
    let outcome = run();
    counting.finish(outcome)
}

/// Stores messages of one table until the writers have ended and nothing new comes: all that have arrived, up to
/// `rows_max` rows, in one transaction. Returns when events were stored, as sightings.
pub fn store_messages(
    subscriber: &mut Subscriber,
    session: &mut dyn TargetSession,
    insert: &dyn Fn(u32, &mut Request),
    rows_max: u32,
    task: &SubscriberTask<'_>,
    control: &Control,
    sightings: Sightings,
) -> Sightings {
    let mut counting = Counting::new(task, control, sightings);
    let mut request = Request::default();
    let mut run = || -> Result<(), DatabaseError> {
        while !counting.is_over() {
            request.clear();
            let (mut rows, mut width) = (0, 0);
            let mut patience = PATIENCE;
            while rows < rows_max && counting.receive(subscriber, patience)? {
                let count;
                (count, width) = decode(subscriber.message(), &mut request.cells).ok_or_else(damaged)?;
                rows += count;
                // Takes what has arrived already, without waiting any longer.
                patience = Duration::ZERO;
            }
            if rows > 0 {
                insert(rows, &mut request);
                session.execute(&request, None)?;
                counting.take(&request.cells, rows, width);
            }
        }
        Ok(())
    };
    let outcome = run();
    counting.finish(outcome)
}
