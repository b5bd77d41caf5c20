//! Durations of a run's servers, tables and trials, noted for the plans of later studies.
//!
//! Main types: [`Took`], [`Noted`]. Invariant: a failed or interrupted part is not noted.

use std::time::{Duration, Instant};

use super::paces;
use crate::measurement::Measurement;
use crate::study::pace::{Pace, Paces};
use crate::study::plan::private_server;
use crate::study::subject::{Subject, operations_of};

/// Durations of setting up a database and filling its tables, since they were last taken.
#[derive(Debug)]
pub struct Took {
    /// Whether the database was set up since then.
    is_new: bool,
    paces: Vec<Pace>,
}

impl Default for Took {
    /// Returns the value for a database that was set up now.
    fn default() -> Self {
        Took { is_new: true, paces: Vec::new() }
    }
}

impl Took {
    /// Adds something that began at `begun` and ends now.
    pub fn add(&mut self, subject: Subject, amount: u64, begun: Instant) {
        self.paces.push(Pace { subject, amount, lasted_s: begun.elapsed().as_secs_f64() });
    }
}

/// Everything a run has noted, written at its end.
pub struct Noted {
    paces: Paces,
    trial_begun: Instant,
}

impl Default for Noted {
    /// Returns the value for a run that begins now.
    fn default() -> Self {
        Noted { paces: Paces::default(), trial_begun: Instant::now() }
    }
}

impl Noted {
    /// Notes that a trial begins; its database is set up if it is not there yet.
    pub fn begin(&mut self) {
        self.trial_begun = Instant::now();
    }

    /// Adds the trial that began last, with the time of setting up its database, which is not part of its measurement.
    pub fn take_in(&mut self, measurement: &Measurement, took: Option<&mut Took>) {
        let Some(took) = took else { return };
        let Took { is_new, paces } = std::mem::replace(took, Took { is_new: false, paces: Vec::new() });
        let settings = &measurement.trial.case.settings;
        let filled_s: f64 = paces.iter().map(|pace| pace.lasted_s).sum();
        paces.into_iter().for_each(|pace| self.paces.add(pace));
        let setting_up_s =
            self.trial_begun.elapsed().saturating_sub(Duration::from_secs_f64(measurement.total_s)).as_secs_f64();
        if is_new && let Some(server) = private_server(&settings.database) {
            self.paces.add(Pace { subject: Subject::start(&server), amount: 1, lasted_s: setting_up_s });
        }
        // The figures of a trial that was not carried out do not apply to another.
        if measurement.completed() == 0 || measurement.trial.sought.is_some() {
            return;
        }
        let around_s = measurement.total_s - filled_s - settings.load.warmup_s - measurement.measured_s;
        self.paces.add(Pace { subject: Subject::around(settings), amount: 1, lasted_s: around_s });
        if let Some((subject, amount)) = Subject::operations(settings).zip(operations_of(settings)) {
            let each_s = measurement.measured_s / measurement.completed() as f64;
            self.paces.add(Pace { subject, amount, lasted_s: each_s * amount as f64 });
        }
    }

    /// Keeps all notes for later plans, which guess if they cannot be kept.
    pub fn keep(self) {
        paces::keep(self.paces);
    }
}
