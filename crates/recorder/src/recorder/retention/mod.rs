//! Retention: readings that are older than they are kept are deleted, in small transactions beside recording. Main type: [`Retention`], the thread.
//!
//! A `Worker` looks for old readings every now and then (`pass`), by the index on source and time (`tables`). It deletes some at a time, rests in between, and waits
//! while the recorder is near its load line (`load`). Each transaction counts what it deletes in the database (`counted`), so that
//! acknowledged = committed + spooled + quarantined + retired, whatever ends.
//!
//! Invariant: nothing is deleted that is newer than the bound, and no bound is taken from a clock that is not believed (`right_time`).

mod counted;
mod gauges;
mod load;
mod pass;
mod right_time;
mod tables;
mod worker;

pub use self::tables::finding;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use self::gauges::Gauges;
use self::load::Load;
use self::worker::Worker;
use super::admission::{Gate, Governor};
use super::clock::SharedClock;
use super::config::{Config, RetentionConfig};
use super::meter::Meter;
use super::stop::Stop;
use crate::database::{Database, SessionLimits};

/// The file in the spool's directory that says that readings were retired once, so that they are counted without `[retention]` too.
const MARK: &str = "retention";

/// The thread that deletes old readings.
pub struct Retention {
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
    page: Option<Arc<Gauges>>,
    meter: Arc<Meter>,
}

/// The parts of the recorder that deletions depend on.
pub struct Beside {
    /// The database from which they delete.
    pub database: Arc<dyn Database>,
    /// The counters.
    pub meter: Arc<Meter>,
    /// The governor, which knows the load line.
    pub governor: Arc<Governor>,
    /// The gate in front of the spool.
    pub gate: Arc<Gate>,
    /// The names by which the ledger knows this recorder.
    pub recorders: BTreeSet<String>,
    /// The clock.
    pub clock: SharedClock,
}

impl Retention {
    /// Starts the thread; `None` if nothing is to be deleted, and never was.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(config: &Config, beside: Beside) -> std::io::Result<Option<Self>> {
        let mark = config.spool.path.join(MARK);
        match &config.retention {
            Some(retention) => note(&mark, retention)?,
            None if mark.exists() => {}
            None => return Ok(None),
        }
        let (stop, gauges) = (Arc::new(Stop::by(SharedClock::clone(&beside.clock))), Arc::new(Gauges::default()));
        let Beside { database, meter, governor, gate, recorders, clock } = beside;
        let for_limits = Arc::clone(&stop);
        let limits = SessionLimits::new("", config.writer.statement_timeout, Box::new(move || for_limits.over_at()));
        let parts = (governor, gate, Arc::clone(&meter));
        let worker = Worker {
            config: config.retention.clone(),
            database,
            limits: Arc::new(limits),
            recorders,
            load: Load::new(parts, SharedClock::clone(&clock), config.writer.count, config.admission.below),
            clock,
            stop: Arc::clone(&stop),
            meter: Arc::clone(&meter),
            gauges: Arc::clone(&gauges),
            state: worker::State::default(),
        };
        let thread = std::thread::Builder::new().name("retention".to_owned()).spawn(move || worker.run())?;
        let page = config.retention.is_some().then_some(gauges);
        Ok(Some(Retention { stop, thread, page, meter }))
    }

    /// Returns the function that writes its part of `/metrics`; `None` without `[retention]`.
    pub fn page(&self) -> Option<impl Fn() -> String + Send + Sync + 'static> {
        let (gauges, meter) = (Arc::clone(self.page.as_ref()?), Arc::clone(&self.meter));
        Some(move || gauges.page(&meter))
    }

    /// Ends the thread; a transaction under way is undone or finished.
    pub fn stop(self) {
        self.stop.ask(Duration::ZERO);
        // One that ended in a panic deletes nothing any more.
        let _ = self.thread.join();
    }
}

/// Writes the mark, with what a reader of the directory wants to know.
fn note(mark: &Path, config: &RetentionConfig) -> std::io::Result<()> {
    let keep = config.keep.map_or("for ever".to_owned(), |keep| crate::units::show_seconds(keep.as_secs_f64()));
    std::fs::write(mark, format!("[retention] was set; readings were kept {keep}\n"))
}
