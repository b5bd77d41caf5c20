//! Progress on stderr, for people: a bar with an estimated end where both outputs are a terminal, else nothing.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::{note, printable};
use crate::measurement::Measurement;
use crate::reason::show_reasons;
use crate::trial::{Levels, Trial};
use crate::units::{show_number, show_seconds};

/// Rows whose filling is worth saying.
const ROWS_SAID_LEAST: u64 = 100_000;

/// The progress of a run.
pub struct Progress {
    bar: ProgressBar,
    /// Length of the trials so far, in seconds, by case.
    lengths_s: BTreeMap<String, f64>,
}

impl Progress {
    /// Progress towards at least this many trials; silent for JSON and where nobody watches.
    pub fn new(trials_least: u64, is_json: bool) -> Self {
        let is_watched = !is_json && std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let target = if is_watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(trials_least), target);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} trials{prefix}  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Progress { bar, lengths_s: BTreeMap::new() }
    }

    /// A trial begins.
    pub fn begin(&self, trial: &Trial) {
        self.bar.set_message(show_levels(&trial.case.levels));
        self.bar.tick();
    }

    /// Rows are being put into the tables of a trial. Said from 100,000 rows on; fewer take no time to speak of.
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

    /// A trial has ended; about `left` more follow.
    pub fn end(&mut self, measurement: &Measurement, left: u64) {
        self.lengths_s.insert(measurement.trial.case.id.clone(), measurement.total_s);
        let mean_s = self.lengths_s.values().sum::<f64>() / self.lengths_s.len() as f64;
        self.bar.inc(1);
        self.bar.set_length(self.bar.position() + left);
        self.bar.set_prefix(format!(", about {} left", show_seconds((mean_s * left as f64).ceil())));
        if !measurement.is_valid() {
            let levels = show_levels(&measurement.trial.case.levels);
            self.say(&format!("invalid: {levels}: {}", show_reasons(&measurement.invalid_because)));
        } else {
            self.bar.set_message(format!(
                "{} · {} operations/s",
                show_levels(&measurement.trial.case.levels),
                show_number(measurement.throughput_per_s())
            ));
        }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        if self.bar.is_hidden() { note(line) } else { self.bar.println(printable(line)) }
    }

    /// A run begins that takes about so long at least, as far as that is known. From now on it is shown that it goes on while something takes long.
    pub fn begin_run(&self, lasts_s: Option<f64>) {
        if let Some(lasts_s) = lasts_s {
            self.bar.set_prefix(format!(", about {} in all", show_seconds(lasts_s.ceil())));
        }
        // The ticker panics where the system has no thread left for it; then the line moves with each trial.
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

/// Levels as people read them: `layout.name=star load.clients=4`.
pub fn show_levels(levels: &Levels) -> String {
    let show = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs: Vec<_> = levels.iter().map(|(setting, level)| format!("{setting}={}", show(level))).collect();
    if pairs.is_empty() { "the only case".to_owned() } else { pairs.join(" ") }
}
