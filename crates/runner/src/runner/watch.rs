//! Watches one recorder from outside while a trial runs: reads its counters from `/metrics` again and again.
//!
//! Main type: [`Watch`]. Invariant: memory does not grow with the length of a trial; the cost of a look for the recorder is part of the measurement.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use crate::database::Endpoint;
use crate::database::session::dial;

/// Interval between two looks.
pub(super) const EVERY: Duration = Duration::from_millis(50);
/// Largest number of looks kept; beyond it, every second one is dropped.
pub(super) const LOOKS_MAX: usize = 8_192;
/// Largest size of a page of metrics, in bytes.
const PAGE_BYTES_MAX: u64 = 16 << 20;
/// Longest time the recorder may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The counters of a recorder at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Time of the look.
    pub at: Instant,
    /// Number of acknowledged records.
    pub acknowledged: u64,
    /// Number of committed records.
    pub committed: u64,
    /// Number of records in the spool.
    pub spooled: u64,
    /// Number of records in quarantine.
    pub quarantined: u64,
    /// CPU time that the recorder has used, in seconds.
    pub cpu_s: f64,
    /// Parts of the stream that recorders share; 0 without one.
    pub parts: u64,
    /// Of these, parts that this recorder has.
    pub parts_held: u64,
    /// Number of times that this recorder has taken a part.
    pub parts_taken: u64,
    /// Time the recorder took to answer.
    pub took: Duration,
}

/// How reliably and how fast the recorder answered while it was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answers {
    /// Number of requests.
    pub asked: u64,
    /// Number of requests without an answer within ten seconds.
    pub unanswered: u64,
    /// The longest time to an answer.
    pub longest: Duration,
}

/// A thread that reads the counters until it is stopped.
pub struct Watch {
    http: Endpoint,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Vec<Look>, Answers)>>,
}

impl Watch {
    /// Starts the thread.
    pub fn start(http: &Endpoint) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, endpoint) = (Arc::clone(&stop), http.clone());
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(move || looks(&endpoint, &seen)).ok();
        Watch { http: http.clone(), stop, thread }
    }

    /// Reads the counters now.
    ///
    /// # Errors
    /// Fails if the recorder does not answer any more.
    pub fn now(&self) -> anyhow::Result<Look> {
        look(&self.http).context("the recorder does not answer any more")
    }

    /// Ends the thread and returns all looks.
    ///
    /// # Errors
    /// Fails if the recorder does not answer any more.
    pub fn end(mut self) -> anyhow::Result<Looks> {
        self.stop.store(true, Ordering::Relaxed);
        let (looks, answers) = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let last = look(&self.http)?;
        Ok(Looks { looks, answers, last })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that panicked has nothing more to report.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// All looks at a recorder during a trial.
pub struct Looks {
    looks: Vec<Look>,
    /// Statistics of the recorder's answers.
    pub answers: Answers,
    /// The last look.
    pub last: Look,
}

impl Looks {
    #[cfg(test)]
    pub(super) fn of(looks: Vec<Look>, answers: Answers) -> Self {
        Looks { last: looks[looks.len() - 1], looks, answers }
    }

    /// Returns the number of records committed between two times, with linear interpolation between looks.
    pub fn committed_between(&self, from: Instant, to: Instant) -> f64 {
        let committed = |look: &Look| look.committed as f64;
        figure_at(&self.looks, to, committed) - figure_at(&self.looks, from, committed)
    }

    /// Returns the CPU time that the recorder used between two times, in seconds, with linear interpolation between looks.
    pub fn cpu_s_between(&self, from: Instant, to: Instant) -> f64 {
        let cpu_s = |look: &Look| look.cpu_s;
        figure_at(&self.looks, to, cpu_s) - figure_at(&self.looks, from, cpu_s)
    }

    /// Returns the number of parts of the stream that the recorder took while it was watched.
    pub fn parts_taken(&self) -> u64 {
        self.looks.first().map_or(0, |first| self.last.parts_taken.saturating_sub(first.parts_taken))
    }

    /// Returns when the last record was first seen to be committed, with the precision of the interval between looks.
    pub fn stored_at(&self) -> Option<Instant> {
        let done = |look: &&Look| look.committed >= self.last.committed;
        self.looks.iter().find(done).map(|look| look.at)
    }

    /// Returns the number of records in the spool at each look, with its time.
    pub fn spooled(&self) -> impl Iterator<Item = (Instant, u64)> {
        self.looks.iter().map(|look| (look.at, look.spooled))
    }
}

/// Returns a figure at a time, with linear interpolation between looks.
fn figure_at(looks: &[Look], at: Instant, figure: impl Fn(&Look) -> f64) -> f64 {
    let after = looks.partition_point(|look| look.at < at);
    match (after.checked_sub(1).map(|before| &looks[before]), looks.get(after)) {
        (Some(before), Some(after)) => {
            let share = (at - before.at).as_secs_f64() / (after.at - before.at).as_secs_f64().max(1e-9);
            figure(before) + (figure(after) - figure(before)) * share
        }
        (None, Some(one)) | (Some(one), None) => figure(one),
        (None, None) => 0.0,
    }
}

fn looks(http: &Endpoint, stop: &AtomicBool) -> (Vec<Look>, Answers) {
    let (mut looks, mut every, mut answers) = (Vec::new(), EVERY, Answers::default());
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        answers.asked += 1;
        // A recorder that does not answer now may do so at the next look, and must do so at the end.
        match look(http) {
            Ok(look) => {
                answers.longest = answers.longest.max(look.took);
                looks.push(look);
            }
            Err(_) => answers.unanswered += 1,
        }
        if looks.len() >= LOOKS_MAX {
            let mut place = 0;
            looks.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            every *= 2;
        }
        std::thread::sleep(every.saturating_sub(begun.elapsed()));
    }
    (looks, answers)
}

/// Reads the counters once.
///
/// # Errors
/// Fails if the recorder does not answer in time, or without its counters.
pub(super) fn look(http: &Endpoint) -> anyhow::Result<Look> {
    let begun = Instant::now();
    let mut stream: TcpStream = dial(http)?.into();
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: recorder\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.take(PAGE_BYTES_MAX).read_to_string(&mut page)?;
    let at = Instant::now();
    let look = read_page(&page, at).map(|look| Look { took: at - begun, ..look });
    look.ok_or_else(|| anyhow!("the recorder's metrics lack its counters"))
}

/// Reads the counters from the page; `None` if it lacks some.
pub(super) fn read_page(page: &str, at: Instant) -> Option<Look> {
    let figure = |name: &str| -> Option<f64> {
        page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
    };
    let value = |name: &str| figure(&format!("loadline_{name}")).map(|value| value as u64);
    let or_none = |name: &str| value(name).unwrap_or(0);
    let look = Look {
        at,
        acknowledged: 0,
        committed: 0,
        spooled: 0,
        quarantined: 0,
        cpu_s: figure("process_cpu_seconds_total").unwrap_or(0.0),
        parts: or_none("stream_parts"),
        parts_held: or_none("stream_parts_held"),
        parts_taken: or_none("stream_parts_taken_total"),
        took: Duration::ZERO,
    };
    if let Some(uploaded) = value("uploads_acknowledged_total") {
        // Without processing nothing is committed, and everything waits in the inbox.
        return Some(Look {
            acknowledged: uploaded + or_none("uploads_repeated_total"),
            committed: or_none("blocks_committed") + or_none("blocks_replayed"),
            spooled: value("inbox_waiting_blocks")?,
            quarantined: value("inbox_quarantined_blocks")?,
            ..look
        });
    }
    Some(Look {
        acknowledged: value("acknowledged_rows_total")?,
        committed: value("committed_rows_total")?,
        spooled: value("spooled_rows")?,
        quarantined: value("quarantined_rows")?,
        ..look
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_the_page_and_taken_to_grow_evenly() {
        let page = "# TYPE x\nloadline_acknowledged_rows_total 12\nloadline_committed_rows_total 7\nloadline_spooled_rows 4\n\
                    loadline_quarantined_rows 1\n";
        let start = Instant::now();
        let read = read_page(page, start).unwrap();
        assert_eq!((read.acknowledged, read.committed, read.spooled, read.quarantined), (12, 7, 4, 1));
        assert!(read_page("loadline_spooled_rows 4\n", start).is_none());
        let page = "loadline_uploads_acknowledged_total 9\nloadline_uploads_repeated_total 1\nloadline_inbox_waiting_blocks 3\n\
                    loadline_inbox_quarantined_blocks 1\nloadline_blocks_committed 5\nloadline_blocks_replayed 1\n";
        let blocks = read_page(page, start).unwrap();
        assert_eq!((blocks.acknowledged, blocks.committed, blocks.spooled, blocks.quarantined), (10, 6, 3, 1));
        let at = |tenths: u64| start + Duration::from_millis(100 * tenths);
        let looks: Vec<Look> = [(0, 0), (10, 100), (20, 100)]
            .map(|(tenths, committed)| Look { at: at(tenths), committed, cpu_s: tenths as f64 / 50.0, ..read })
            .to_vec();
        let looks = Looks { last: looks[2], looks, answers: Answers::default() };
        assert!((looks.committed_between(at(2), at(15)) - 80.0).abs() < 1e-6);
        assert_eq!(looks.stored_at(), Some(at(10)));
        assert!((looks.cpu_s_between(at(5), at(20)) - 0.3).abs() < 1e-6);
        assert!(looks.spooled().all(|(_, spooled)| spooled == 4));
    }
}
