//! The sources: each sends its records over a connection of its own, request after request, and keeps what was acknowledged in the protocol's own terms.
//!
//! Main type: [`Sources`]. Invariant: a record is sent once, and counts as acknowledged only if the whole answer said so before the next request was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use super::connection::{Connection, Said};
use super::intake::Intake;
use super::judge::Sent;
use crate::load::no_thread;
use crate::random::{Stream, derive};
use crate::record::time_of_number;

/// Name of the measurement that the sources send.
pub const MEASUREMENT: &str = "durability";

/// Number of sources.
pub const SOURCES: usize = 4;
/// The largest number of records in a request.
const LINES_MOST: u64 = 10;
/// Pause before a source connects again, or sends again after a refusal.
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Sources that are sending.
pub struct Sources {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(Vec<Sent>, Option<String>)>>,
}

/// What the sources have sent.
pub struct Answers {
    /// The requests of each source, in their order.
    pub sent: Vec<Vec<Sent>>,
    /// The first answer that refused a request for good, if there was one.
    pub refused: Option<String>,
}

/// Lets all sources begin, each behind the records that it has sent before; answers are timed from `clock`.
///
/// # Errors
/// Fails if there is no thread left for one.
pub fn start(intake: &Intake, seed: u64, clock: Instant, next: [u64; SOURCES]) -> anyhow::Result<Sources> {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut sources = Sources { is_over, threads: Vec::new() };
    for (number, next) in (0..).zip(next) {
        let (intake, is_over) = (intake.clone(), Arc::clone(&sources.is_over));
        let chance = Stream::seeded(derive(seed, number));
        let mut source =
            Source { intake, number, chance, clock, next, sent: Vec::new(), refused: None, connection: None };
        let send = move || {
            while !is_over.load(Ordering::Relaxed) {
                source.send();
            }
            (source.sent, source.refused)
        };
        let thread = std::thread::Builder::new().name("source".to_owned()).spawn(send);
        sources.threads.push(thread.map_err(|error| anyhow!(no_thread("a source", &error)))?);
    }
    Ok(sources)
}

impl Sources {
    /// Tells the sources to end, each after the answer that it waits for, and returns what was sent.
    ///
    /// # Errors
    /// Fails if a source has panicked.
    pub fn finish(mut self) -> anyhow::Result<Answers> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut answers = Answers { sent: Vec::new(), refused: None };
        for thread in std::mem::take(&mut self.threads) {
            let (sent, refused) = thread.join().map_err(|_| anyhow!("a source panicked"))?;
            answers.sent.push(sent);
            answers.refused = answers.refused.or(refused);
        }
        Ok(answers)
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// One source.
struct Source {
    intake: Intake,
    number: u64,
    chance: Stream,
    clock: Instant,
    /// Number of records that it has sent.
    next: u64,
    sent: Vec<Sent>,
    refused: Option<String>,
    connection: Option<Box<dyn Connection>>,
}

impl Source {
    /// Sends one request and keeps what became of it.
    fn send(&mut self) {
        let mut connection = match self.connection.take().map_or_else(|| self.intake.connect(self.number), Ok) {
            Ok(connection) => connection,
            Err(_) => return std::thread::sleep(AGAIN_AFTER),
        };
        let count = 1 + self.chance.below(LINES_MOST);
        let records: Vec<u64> = (self.next..self.next + count).map(|own| own * SOURCES as u64 + self.number).collect();
        self.next += count;
        let answered = connection.send(&lines(self.number, &records), count);
        let now_ns = u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (said, goes_on) = answered.unwrap_or((Said::Later, false));
        let is_acknowledged = said == Said::Acknowledged;
        self.sent.push(Sent { records, acknowledged_ns: is_acknowledged.then_some(now_ns) });
        self.connection = Some(connection).filter(|_| goes_on);
        if let Said::Refused(says) = said {
            self.refused.get_or_insert(says);
        }
        if !is_acknowledged {
            std::thread::sleep(AGAIN_AFTER);
        }
    }
}

/// Returns the lines of records.
fn lines(source: u64, records: &[u64]) -> String {
    let line = |number: &u64| {
        let time_ns = time_of_number(*number);
        format!("{MEASUREMENT},source=s{source} number={number}i {time_ns}\n")
    };
    records.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_source_its_number_and_the_time_of_that_number() {
        let expected =
            [3, 7].map(|number| format!("durability,source=s3 number={number}i {}\n", time_of_number(number))).concat();
        assert_eq!(lines(3, &[3, 7]), expected);
    }
}
