//! Writers' records: stamps events with the start of each write, and keeps which of them were acknowledged.
//!
//! Main types: [`Stamper`], a source of writes for one client, and [`Ledger`], the acknowledged events of all of them.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Control, Intervals, monotonic};
use crate::load::Source;
use crate::operation::Operation;
use crate::statement::Request;

/// The acknowledged events of one writer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Acknowledged {
    /// Places of the acknowledged events that count.
    pub counted: Intervals,
    /// Number of all acknowledged events, those of the warm-up included.
    pub all: u64,
}

/// The acknowledged events of each writer.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Vec<Acknowledged>>>);

impl Ledger {
    /// Makes a ledger of this many writers.
    pub fn new(writers: u32) -> Self {
        Ledger(Arc::new(Mutex::new(vec![Acknowledged::default(); writers as usize])))
    }

    /// Returns the events acknowledged to the writers that have ended.
    pub fn read(&self) -> Vec<Acknowledged> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Fills a request with the write of consecutive events and the time at which it begins.
pub type Fill = dyn FnMut(&mut Request, u64) -> Operation + Send;

/// One writer: a source of writes, each stamped when it begins.
pub struct Stamper {
    writer: usize,
    fill: Box<Fill>,
    control: Arc<Control>,
    ledger: Ledger,
    /// Number of events begun. `running` is the write under way: the places of its first and last event, and its start.
    begun: u64,
    running: Option<(u64, u64, u64)>,
    own: Acknowledged,
}

impl Stamper {
    /// Makes the writer with this number.
    pub fn new(writer: u32, fill: Box<Fill>, control: Arc<Control>, ledger: Ledger) -> Self {
        let own = Acknowledged::default();
        Stamper { writer: writer as usize, fill, control, ledger, begun: 0, running: None, own }
    }
}

impl Source for Stamper {
    fn next(&mut self, request: &mut Request) -> Operation {
        let written_ns = monotonic::now_ns();
        let operation = (self.fill)(request, written_ns);
        let events = operation.records();
        self.running = Some((self.begun, self.begun + events - 1, written_ns));
        self.begun += events;
        operation
    }

    fn done(&mut self, succeeded: bool, _: &mut Request) -> Option<Operation> {
        if let (Some((first, last, written_ns)), true) = (self.running.take(), succeeded) {
            self.own.all += last - first + 1;
            if self.control.from_ns().is_some_and(|from_ns| written_ns >= from_ns) {
                self.own.counted.insert_range(first, last);
            }
        }
        None
    }
}

impl Drop for Stamper {
    fn drop(&mut self) {
        let mut ledger = self.ledger.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = ledger.get_mut(self.writer) {
            *place = std::mem::take(&mut self.own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_acknowledged_and_begun_in_the_measured_phase_counts() {
        let (control, ledger) = (Arc::new(Control::default()), Ledger::new(2));
        let fill = |_: &mut Request, _| Operation::Insert { first: 0, records: 5 };
        let mut writer = Stamper::new(1, Box::new(fill), Arc::clone(&control), ledger.clone());
        let mut request = Request::default();
        let mut write = |succeeded| {
            writer.next(&mut request);
            writer.done(succeeded, &mut request);
        };
        write(true);
        control.begin(monotonic::now_ns());
        write(true);
        write(false);
        write(true);
        writer.next(&mut request);
        drop(writer);
        let acknowledged = ledger.read();
        assert_eq!(acknowledged[0], Acknowledged::default());
        assert_eq!(Vec::from(acknowledged[1].counted.clone()), [(5, 9), (15, 19)]);
        assert_eq!(acknowledged[1].all, 15);
    }
}
