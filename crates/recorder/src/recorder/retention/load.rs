//! Decides whether the recorder is near its load line, so that deletions wait. Main types: [`Load`], which looks, and [`Seen`], what it saw, whose judgement is pure.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::recorder::admission::{Gate, Governor};
use crate::recorder::clock::SharedClock;
use crate::recorder::meter::Meter;

/// Records that wait this long for a writer show that the database does not keep up.
const WAITS_MOST: Duration = Duration::from_secs(2);
/// The share of the load line from which on deletions wait.
const LINE_SHARE: f64 = 0.8;
/// The share of `admission.below` from which on deletions wait.
const BELOW_SHARE: f64 = 0.5;
/// The shortest time over which rates and mean times are taken.
const SPAN_LEAST: Duration = Duration::from_millis(200);

/// The recorder's load, as far as deletions depend on it.
pub(super) struct Load {
    governor: Arc<Governor>,
    gate: Arc<Gate>,
    meter: Arc<Meter>,
    clock: SharedClock,
    /// The number of writers that the spool feeds.
    lanes: u32,
    below: Duration,
    since: Mark,
    seen: Seen,
}

/// Counters at the begin of a span.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Instant,
    rows: u64,
    commits: u64,
    commits_s: f64,
}

/// The load of the last span.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Seen {
    /// How long records wait for a writer by now.
    waits: Duration,
    /// Whether requests are turned away.
    is_closed: bool,
    /// Rows committed per second, and the load line; `None` if no model was given.
    rows_per_s: f64,
    line_per_s: Option<f64>,
    /// Mean time of commits, and the bound on their quantile, in seconds; `None` if nothing was committed, or no window keeps the bound.
    commit_s: Option<f64>,
    below_s: f64,
}

impl Seen {
    /// Returns whether the recorder is near its load line.
    pub(super) fn is_near(&self) -> bool {
        let is_late = self.commit_s.is_some_and(|commit_s| commit_s >= BELOW_SHARE * self.below_s);
        let is_at_line = self.line_per_s.is_some_and(|line_per_s| self.rows_per_s >= LINE_SHARE * line_per_s);
        self.is_closed || self.waits >= WAITS_MOST || is_at_line || is_late
    }
}

impl Load {
    pub(super) fn new(
        (governor, gate, meter): (Arc<Governor>, Arc<Gate>, Arc<Meter>),
        clock: SharedClock,
        lanes: u32,
        below: Duration,
    ) -> Self {
        let since = Mark::of(&meter, clock.now());
        Load { governor, gate, meter, clock, lanes, below, since, seen: Seen::default() }
    }

    /// Looks, and returns whether the recorder is near its load line.
    pub(super) fn is_near(&mut self) -> bool {
        let now = self.clock.now();
        let span = now.saturating_duration_since(self.since.at);
        if span >= SPAN_LEAST {
            let mark = Mark::of(&self.meter, now);
            let (commits, view) = (mark.commits - self.since.commits, self.governor.view());
            let mean_s = (mark.commits_s - self.since.commits_s) / commits as f64;
            self.seen = Seen {
                rows_per_s: (mark.rows - self.since.rows) as f64 / span.as_secs_f64(),
                line_per_s: view.rate_per_s,
                // A database that is slower than the bound at any load says nothing about its load.
                commit_s: (commits > 0 && !view.is_out_of_reach).then_some(mean_s),
                below_s: self.below.as_secs_f64(),
                ..self.seen
            };
            self.since = mark;
        }
        self.seen.waits = self.meter.progress.waits_now(0..self.lanes);
        self.seen.is_closed = self.gate.is_closed();
        self.seen.is_near()
    }
}

impl Mark {
    fn of(meter: &Meter, at: Instant) -> Self {
        let (_, commits_s) = meter.commit_times.read();
        Mark { at, rows: meter.rows.get(), commits: meter.commits.get(), commits_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_wait_near_the_load_line_and_while_records_wait() {
        let idle = Seen { below_s: 0.1, ..Seen::default() };
        assert!(!idle.is_near());
        let near = |seen: Seen| seen.is_near();
        assert!(near(Seen { is_closed: true, ..idle }) && near(Seen { waits: Duration::from_secs(2), ..idle }));
        let at = |rows_per_s, line_per_s| Seen { rows_per_s, line_per_s, ..idle };
        assert!(near(at(800.0, Some(1_000.0))) && !near(at(799.0, Some(1_000.0))) && !near(at(1e9, None)));
        assert!(near(Seen { commit_s: Some(0.05), ..idle }) && !near(Seen { commit_s: Some(0.049), ..idle }));
    }
}
