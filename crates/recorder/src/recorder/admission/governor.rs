//! Holds the load at the line. Main type: [`Governor`], which paces all lanes.
//!
//! With a model, the window is the batch that the model was measured with, and the rate its load line. Commit times are compared with what
//! the model expects at the rate of that second. If they are longer, the model is stale: the line stays the upper limit, and the window
//! adapts below it. Without a model, the adaptive window alone holds the bound. Recorders that share a stream share the line: each has the share of the
//! rate that it has of the stream's parts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::limit::{LEAST_ROWS, Limit, Reach, TIMES_LEAST};
use super::rate::{Bucket, Residuals, Ticket};
use crate::recorder::clock::SharedClock;
use crate::recorder::config::AdmissionConfig;
use crate::recorder::hold::Holds;
use crate::recorder::log;
use crate::recorder::pace::Pace;
use crate::recorder::stop::Stop;

/// The load line of a fitted model of this database.
pub struct ModelLine {
    /// The rows of the operations that the model was fitted to.
    pub batch_rows: u32,
    /// The load line, in rows a second.
    pub rows_per_s: f64,
    /// Mean response time in seconds at a rate of rows a second; infinite beyond capacity.
    pub mean_s: Box<dyn Fn(f64) -> f64 + Send>,
    /// The origin of the line, for people.
    pub from: String,
}

/// Paces the lanes.
pub struct Governor {
    state: Mutex<State>,
    begun: Instant,
    clock: SharedClock,
    /// The parts of the shared stream that this recorder has; `None` if it shares none.
    holds: Option<Arc<Holds>>,
}

/// How long rows wait at most before it is looked whether the recorder has another share of the rate.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The longest wait of rows; a rate that makes rows wait for longer is looked at again then.
const LONGEST: Duration = Duration::from_secs(3_600);
/// The shortest wait; less may be rounded to nothing, in which no time passes.
const SHORTEST: Duration = Duration::from_micros(1);

/// The governor's state. Time is one of its inputs.
pub(super) struct State {
    limit: Limit,
    line: Option<ModelLine>,
    bucket: Option<Bucket>,
    residuals: Residuals,
    second: Second,
}

/// Observations of the present second.
#[derive(Debug, Default)]
struct Second {
    begun_s: f64,
    rows: u64,
    commits: u32,
    sum_s: f64,
}

/// The governor's state as it is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// The most rows of the next transaction.
    pub window_rows: u32,
    /// The permitted rate in rows a second; `None` if no model limits it.
    pub rate_per_s: Option<f64>,
    /// Whether the model was found stale.
    pub is_stale: bool,
    /// Whether no window keeps the bound.
    pub is_out_of_reach: bool,
}

impl Governor {
    /// Returns a governor for transactions of at most `batch` rows.
    pub fn new(config: &AdmissionConfig, batch: u32, line: Option<ModelLine>, clock: SharedClock) -> Self {
        Governor { state: Mutex::new(State::new(config, batch, line)), begun: clock.now(), clock, holds: None }
    }

    /// Returns a governor that has only the share of the rate that this recorder has of a stream's parts.
    #[must_use]
    pub fn sharing(self, holds: Option<Arc<Holds>>) -> Self {
        Governor { holds, ..self }
    }

    /// Returns the present state.
    pub fn view(&self) -> View {
        let (view, share) = (self.lock().view(), self.share());
        View { rate_per_s: view.rate_per_s.map(|rate_per_s| rate_per_s * share), ..view }
    }

    fn share(&self) -> f64 {
        self.holds.as_ref().map_or(1.0, |holds| holds.share())
    }

    fn now_s(&self) -> f64 {
        self.clock.since(self.begun).as_secs_f64()
    }

    /// Returns how long the rows of a ticket must still wait, in seconds.
    fn wait_s(&self, ticket: Ticket) -> f64 {
        let share = self.share();
        let (mut state, now_s) = (self.lock(), self.now_s());
        state.set_share(share, now_s);
        state.wait_s(ticket, now_s)
    }

    /// Replaces the bound and the model's line, after the configuration was read again.
    pub fn reconfigure(&self, config: &AdmissionConfig, batch: u32, line: Option<ModelLine>) {
        let mut state = self.lock();
        let before = state.bucket.take();
        *state = State::new(config, batch, line);
        if let Some(before) = before {
            state.bucket = state.bucket.take().map(|bucket| bucket.after(&before));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pace for Governor {
    fn batch_rows(&self, most: u32) -> u32 {
        self.view().window_rows.clamp(1, most)
    }

    fn wait(&self, rows: u64, stop: &Stop) {
        let share = self.share();
        let ticket = {
            let (mut state, now_s) = (self.lock(), self.now_s());
            state.set_share(share, now_s);
            state.take(rows, now_s)
        };
        let Some(ticket) = ticket else { return };
        let most_s = if self.holds.is_some() { LOOK_EVERY.as_secs_f64() } else { f64::MAX };
        loop {
            let wait_s = self.wait_s(ticket).min(most_s);
            let wait = Duration::try_from_secs_f64(wait_s).unwrap_or(LONGEST);
            if wait_s <= 0.0 || stop.wait(wait.max(SHORTEST)) {
                return;
            }
        }
    }

    fn observe(&self, rows: u64, took: Duration) {
        let now_s = self.now_s();
        self.lock().observe(rows, took.as_secs_f64(), now_s);
    }
}

impl State {
    pub(super) fn new(config: &AdmissionConfig, batch: u32, line: Option<ModelLine>) -> Self {
        let bucket = line.as_ref().map(|line| Bucket::new(line.rows_per_s, line.batch_rows));
        let limit = Limit::new(batch, config.quantile, config.below.as_secs_f64());
        State { limit, line, bucket, residuals: Residuals::default(), second: Second::default() }
    }

    pub(super) fn view(&self) -> View {
        let (is_stale, is_out_of_reach) = (self.residuals.is_stale(), self.limit.is_out_of_reach());
        let window_rows = match self.line.as_ref().filter(|_| !is_stale) {
            Some(line) => line.batch_rows,
            None => self.limit.rows(),
        };
        // A database that is slower than measured does not carry more than was measured.
        let rate_per_s = self.line.as_ref().map(|line| line.rows_per_s);
        View { window_rows, rate_per_s, is_stale, is_out_of_reach }
    }

    fn set_share(&mut self, share: f64, now_s: f64) {
        self.bucket.iter_mut().for_each(|bucket| bucket.set_share(share, now_s));
    }

    /// Takes the turn of these rows; `None` if they need not wait.
    pub(super) fn take(&mut self, rows: u64, now_s: f64) -> Option<Ticket> {
        self.bucket.as_mut().map(|bucket| bucket.take(rows, now_s))
    }

    /// Returns how long the rows of a ticket must still wait, in seconds.
    pub(super) fn wait_s(&mut self, ticket: Ticket, now_s: f64) -> f64 {
        self.bucket.as_mut().map_or(0.0, |bucket| bucket.wait_s(ticket, now_s))
    }

    pub(super) fn observe(&mut self, rows: u64, took_s: f64, now_s: f64) {
        let reach = self.limit.observe(rows, took_s);
        if let Some(reach) = reach.filter(|_| self.line.is_none() || self.residuals.is_stale()) {
            say(reach);
        }
        self.observe_model(rows, took_s, now_s);
    }

    fn observe_model(&mut self, rows: u64, took_s: f64, now_s: f64) {
        let Some(line) = &self.line else { return };
        let second = &mut self.second;
        // Fewer rows than the model's operations have take less time, and say nothing about the model.
        if rows * 2 >= u64::from(line.batch_rows) {
            second.rows += rows;
            second.commits += 1;
            second.sum_s += took_s;
        }
        let lasted_s = now_s - second.begun_s;
        if lasted_s < 1.0 {
            return;
        }
        if second.commits > 0 {
            let expected_s = (line.mean_s)(second.rows as f64 / lasted_s);
            let was_stale = self.residuals.is_stale();
            self.residuals.observe(second.sum_s / f64::from(second.commits), expected_s);
            match (was_stale, self.residuals.is_stale()) {
                (false, true) => {
                    let shown = crate::units::show_seconds;
                    let (observed, expected) = (shown(second.sum_s / f64::from(second.commits)), shown(expected_s));
                    log::warning(
                        "commits take longer than was measured; transactions are made smaller, and the line stays the most that is written",
                        &[("observed", &observed), ("expected", &expected)],
                    );
                }
                (true, false) => log::info("commits take as long as was measured again", &[]),
                _ => {}
            }
        }
        *second = Second { begun_s: now_s, ..Second::default() };
    }
}

fn say(reach: Reach) {
    match reach {
        Reach::Lost(least_s) => {
            let (rows, takes) = (LEAST_ROWS.to_string(), crate::units::show_seconds(least_s));
            let instead = crate::units::show_seconds(TIMES_LEAST * least_s);
            let remedy = "raise admission.below, or give the database a faster disk; until then transactions may take as long as \"instead\" says";
            log::warning(
                "no window keeps admission.below: the smallest transaction takes longer",
                &[("rows", &rows), ("takes", &takes), ("instead", &instead), ("remedy", remedy)],
            );
        }
        Reach::Found => log::info("admission.below is kept again", &[]),
    }
}
