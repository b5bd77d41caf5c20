//! Processing: acknowledged blocks are verified, decrypted, checked and stored, apart from their intake.
//!
//! Main type: [`Processing`]. The path of a block: `worker` takes a batch from the inbox, `batch` opens each block with the keys of `keys`, and
//! `conclude` decides the fate of each: `images` makes the images durable, `store` commits all records of the batch in one transaction, and
//! then the blocks are settled. The next batch is opened meanwhile.
//!
//! Invariant: a block leaves the inbox only when its record is committed, when the same record was committed before, or for quarantine, unchanged.
//! An image is durable before its record is committed. A record is identified by camera and sequence and is stored once. An erased record
//! (`erase`) leaves its camera and sequence, so that it is not stored again.

mod batch;
mod conclude;
mod dates;
mod erase;
mod images;
mod keys;
mod store;
pub mod tables;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::config::{Config, ProcessingConfig};
use super::durability;
use super::inbox::{Inbox, Taking};
use super::log;
use super::metrics::Page;
use super::stop::Stop;
use crate::database::Database;

pub use dates::Dates;
pub use erase::{EraseError, Erased, Erasing};
pub(super) use images::{decrypted, read_kept};
pub use images::{encrypted_image_path, image_path};
pub(super) use keys::read_key;
pub use tables::Form;

/// Counts of blocks by outcome: of all there ever were, as far as the database knows, and of those since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct BlockCounts {
    /// Stored records.
    pub committed: u64,
    /// Blocks whose record was stored before, from another upload.
    pub replayed: u64,
    /// Blocks that wait in the inbox.
    pub waiting: u64,
    /// Blocks in quarantine.
    pub quarantined: u64,
    /// Blocks sent to quarantine since the start.
    pub quarantined_since: u64,
    /// Bytes of blocks processed since the start.
    pub bytes_since: u64,
}

/// The counters.
#[derive(Debug, Default)]
struct Meter {
    committed: AtomicU64,
    replayed: AtomicU64,
    quarantined: AtomicU64,
    bytes: AtomicU64,
    is_connected: AtomicBool,
}

/// A running processing.
#[derive(Debug)]
pub struct Processing {
    thread: Option<JoinHandle<()>>,
    stop: Arc<Stop>,
    inbox: Inbox,
    meter: Arc<Meter>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Processing {
    /// Starts the processing. The database need not answer yet.
    ///
    /// # Errors
    /// A sentence about what cannot be started; nothing runs then.
    pub fn start(config: &Config, settings: &ProcessingConfig, database: Arc<dyn Database>) -> Result<Self, String> {
        durability::check(&database, None, config.writer.statement_timeout)?;
        let inbox = Inbox::open(&config.inbox.path, config.inbox.bounds).map_err(|error| error.to_string())?;
        let taking = Taking::start(&inbox).map_err(|error| error.to_string())?;
        let form = Form::named(&config.layout.name).unwrap_or(Form::Star);
        let (meter, stop) = (Arc::new(Meter::default()), Arc::new(Stop::default()));
        let mut worker = worker::Worker::new(settings, form, taking, database, Arc::clone(&meter), Arc::clone(&stop))?;
        let failure = Arc::new(Mutex::new(None));
        let for_thread = Arc::clone(&failure);
        let work = move || {
            if let Err(reason) = worker.run() {
                log::error("processing has ended", &[("reason", &reason)]);
                *for_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            }
        };
        let thread = std::thread::Builder::new().name("processing".to_owned()).spawn(work);
        let thread = thread.map_err(|error| format!("processing cannot be started: {error}"))?;
        Ok(Processing { thread: Some(thread), stop, inbox, meter, failure })
    }

    /// Returns why it cannot go on; `None` while it can.
    pub fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_gone = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        failure.or_else(|| is_gone.then(|| "processing ended in a panic".to_owned()))
    }

    /// Returns the counters. Those of the inbox are read from the folder.
    pub fn counts(&self) -> BlockCounts {
        counts(&self.meter, &self.inbox)
    }

    /// Returns the function that writes its part of `/metrics`.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let (meter, inbox) = (Arc::clone(&self.meter), self.inbox.clone());
        move || page(&counts(&meter, &inbox), meter.is_connected.load(Ordering::Relaxed))
    }

    /// Stops after the batch that is under way; the rest waits in the inbox.
    pub fn stop(mut self) -> BlockCounts {
        self.stop.ask(Duration::ZERO);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed; the blocks of its batch still wait.
            let _ = thread.join();
        }
        self.counts()
    }
}

fn counts(meter: &Meter, inbox: &Inbox) -> BlockCounts {
    let seen = inbox.counts().unwrap_or_default();
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    BlockCounts {
        committed: read(&meter.committed),
        replayed: read(&meter.replayed),
        waiting: seen.waiting,
        quarantined: seen.quarantined,
        quarantined_since: read(&meter.quarantined),
        bytes_since: read(&meter.bytes),
    }
}

fn page(counts: &BlockCounts, is_connected: bool) -> String {
    let mut page = Page::default();
    page.gauge("blocks_committed", "Blocks whose record is stored, ever", counts.committed as f64);
    page.gauge("blocks_replayed", "Blocks whose record was stored before, ever", counts.replayed as f64);
    page.gauge("blocks_waiting", "Acknowledged blocks that wait for processing", counts.waiting as f64);
    page.gauge("blocks_quarantined", "Acknowledged blocks in quarantine", counts.quarantined as f64);
    page.counter("blocks_refused_total", "Blocks sent to quarantine since the start", counts.quarantined_since);
    page.counter("blocks_processed_bytes_total", "Bytes of blocks processed since the start", counts.bytes_since);
    let is_connected = f64::from(u8::from(is_connected));
    page.gauge("blocks_database_connected", "Whether the processing is connected to its database", is_connected);
    page.0
}
