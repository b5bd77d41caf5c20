//! Progress on stderr, for people: a bar with an estimated end if both outputs are a terminal, else nothing.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::{note, printable};
use crate::measurement::Measurement;
use crate::reason::show_reasons;
use crate::trial::{Levels, Trial};
use crate::units::{show_number, show_seconds};

/// Smallest number of rows for which filling is reported.
const ROWS_SAID_LEAST: u64 = 100_000;

/// The progress of a run.
pub struct Progress {
    bar: ProgressBar,
    /// Duration of the last trial of each case so far, in seconds.
    lengths_s: BTreeMap<String, f64>,
}

impl Progress {
    /// Creates the progress of at least this many trials; silent for JSON and without a terminal.
    pub fn new(trials_least: u64, is_json: bool) -> Self {
        let is_watched = !is_json && std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let target = if is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(trials_least), target);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} trials{prefix}  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Progress { bar, lengths_s: BTreeMap::new() }
    }

    /// Shows that a trial begins.
    pub fn begin(&self, trial: &Trial) {
        self.bar.set_message(show_levels(&trial.case.levels));
        self.bar.tick();
    }

    /// Shows that a trial's tables are being filled, for 100,000 rows or more; fewer take hardly any time.
    pub fn filling(&self, trial: &Trial, rows: u64, of: u64) {
        if of < ROWS_SAID_LEAST {
            return;
        }
        self.bar.set_message(if rows < of {
            format!("filling {} of {} rows", show_number(rows as f64), show_number(of as f64))
        } else {
            show_levels(&trial.case.levels)
        });
    }

    /// Shows that a trial has ended and about `left` more follow.
    pub fn end(&mut self, measurement: &Measurement, left: u64) {
        self.lengths_s.insert(measurement.trial.case.id.clone(), measurement.total_s);
        let mean_s = self.lengths_s.values().sum::<f64>() / self.lengths_s.len() as f64;
        self.bar.inc(1);
        self.bar.set_length(self.bar.position() + left);
        self.bar.set_prefix(format!(", about {} left", show_seconds((mean_s * left as f64).ceil())));
        if !measurement.is_valid() {
            let levels = show_levels(&measurement.trial.case.levels);
            let what = if measurement.trial.lost_attempt.is_some() { "lost, and driven once more" } else { "invalid" };
            self.say(&format!("{what}: {levels}: {}", show_reasons(&measurement.invalid_because)));
        } else {
            self.bar.set_message(format!(
                "{} · {} operations/s",
                show_levels(&measurement.trial.case.levels),
                show_number(measurement.throughput_per_s())
            ));
        }
    }

    /// Prints a line that stays on the screen.
    pub fn say(&self, line: &str) {
        if self.bar.is_hidden() { note(line) } else { self.bar.println(printable(line)) }
    }

    /// Shows that a run begins that takes about `lasts_s` seconds or more, if that is known. From now on the bar moves even while one step takes long.
    pub fn begin_run(&self, lasts_s: Option<f64>) {
        if let Some(lasts_s) = lasts_s {
            self.bar.set_prefix(format!(", about {} in all", show_seconds(lasts_s.ceil())));
        }
        // The ticker panics if the system has no thread left for it; in that case the bar moves with each trial only.
        let has_thread = || std::thread::Builder::new().spawn(|| ()).is_ok();
        if !self.bar.is_hidden() && has_thread() {
            self.bar.enable_steady_tick(Duration::from_millis(500));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Returns levels as people read them: `layout.name=star load.clients=4`.
pub fn show_levels(levels: &Levels) -> String {
    let show = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs: Vec<_> = levels.iter().map(|(setting, level)| format!("{setting}={}", show(level))).collect();
    if pairs.is_empty() { "the only case".to_owned() } else { pairs.join(" ") }
}
