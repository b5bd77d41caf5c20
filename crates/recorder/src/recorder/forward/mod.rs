//! Forwarding: brings the blocks of this inbox, through a bucket of a NATS object store, to the inbox of the recorder that processes them.
//!
//! Main type: [`Forwarding`]. `line` finds blocks and gives each to a `carrier`, which puts it into the bucket until the receiver answers that it has
//! the block, and then removes the block here.
//!
//! Invariant: a block leaves the inbox only when a block of the same digest is durable in the other one. The number of blocks under way is bounded, and
//! none of their state need be remembered: after a restart it is found in the bucket.

mod carrier;
mod line;
mod shared;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::config::{Config, ForwardConfig};
use super::inbox::{Inbox, Taking};
use super::meter::{Count, Times};
use super::metrics::Page;
use super::stop::Stop;

use line::Line;

/// Number of threads that read and remove files.
const DISK_THREADS: usize = 8;
/// How long messages to the server may still take after a stop.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The counters.
#[derive(Debug, Default)]
struct Meter {
    forwarded: Count,
    bytes: Count,
    put: Count,
    put_again: Count,
    refused: Count,
    under_way: Count,
    refusals_waiting: Count,
    times: Times,
    is_connected: AtomicBool,
}

/// A running forwarding.
#[derive(Debug)]
pub struct Forwarding {
    runtime: tokio::runtime::Runtime,
    task: tokio::task::JoinHandle<()>,
    stop: Arc<Stop>,
    taking: Arc<Taking>,
    meter: Arc<Meter>,
}

impl Forwarding {
    /// Starts forwarding. The NATS server need not answer yet.
    ///
    /// # Errors
    /// A sentence about what cannot be started; nothing runs then.
    pub fn start(config: &Config, settings: &ForwardConfig) -> Result<Self, String> {
        let inbox = Inbox::open(&config.inbox.path, config.inbox.bounds).map_err(|error| error.to_string())?;
        let taking = Arc::new(Taking::start(&inbox).map_err(|error| error.to_string())?);
        let station = taking.station().map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(DISK_THREADS)
            .thread_name("forward")
            .enable_all()
            .build()
            .map_err(|error| format!("forwarding cannot be started: {error}"))?;
        let (meter, stop) = (Arc::new(Meter::default()), Arc::new(Stop::default()));
        let line = Line::new(settings.clone(), station, Arc::clone(&taking), Arc::clone(&meter), Arc::clone(&stop));
        let task = runtime.spawn(line.run());
        Ok(Forwarding { runtime, task, stop, taking, meter })
    }

    /// Returns why forwarding cannot go on; `None` while it can.
    pub fn failure(&self) -> Option<String> {
        let is_over = self.task.is_finished().then(|| "forwarding ended in a panic".to_owned());
        is_over.or_else(|| self.taking.broken().map(|broken| broken.to_string()))
    }

    /// Returns the function that writes its part of `/metrics`.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let (meter, inbox) = (Arc::clone(&self.meter), self.taking.inbox().clone());
        move || page(&meter, &inbox)
    }

    /// Stops and returns how many blocks were forwarded; the rest waits in the inbox.
    pub fn stop(self) -> u64 {
        self.stop.ask(Duration::ZERO);
        let _ = self.runtime.block_on(async { tokio::time::timeout(LAST_WORDS, self.task).await });
        self.runtime.shutdown_timeout(LAST_WORDS);
        self.meter.forwarded.get()
    }
}

fn page(meter: &Meter, inbox: &Inbox) -> String {
    let mut page = Page::default();
    page.counter(
        "forwarded_blocks_total",
        "Blocks that are durable in the other inbox, since the start",
        meter.forwarded.get(),
    );
    page.counter("forwarded_bytes_total", "Bytes of them", meter.bytes.get());
    page.counter("forward_puts_total", "Objects put into the bucket", meter.put.get());
    page.counter(
        "forward_puts_again_total",
        "Objects put again: lost, damaged or refused before",
        meter.put_again.get(),
    );
    page.counter("forward_refusals_total", "Answers that a block is not taken", meter.refused.get());
    page.gauge("forward_under_way", "Blocks that are being put or wait for an answer", meter.under_way.get() as f64);
    page.gauge(
        "forward_refused_blocks",
        "Blocks that were refused and are put again later",
        meter.refusals_waiting.get() as f64,
    );
    let waiting = inbox.counts().unwrap_or_default().waiting;
    page.gauge(
        "forward_waiting_blocks",
        "Acknowledged blocks that are not known to be in the other inbox",
        waiting as f64,
    );
    let is_connected = f64::from(u8::from(meter.is_connected.load(Ordering::Relaxed)));
    page.gauge("forward_connected", "Whether the bucket could be reached at the last attempt", is_connected);
    page.times(
        "forward_seconds",
        "From a block's turn to the answer that it is durable in the other inbox",
        &meter.times,
    );
    page.0
}
