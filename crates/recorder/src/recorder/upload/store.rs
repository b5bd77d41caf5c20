//! Blocks that another recorder forwards, fetched from a bucket of a NATS object store. The content of the bucket is trusted as little as any upload:
//! names, sizes and digests are checked here, and the block's own seal in processing.
//!
//! Registry entry: [`STORE`]. Invariant: the answer that a block is stored follows [`Blocks::deposit`], which has made it durable here.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Subscriber;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{Blocks, Body, Entry, Expected, NotTaken, Surroundings};
use crate::recorder::bucket::{Answer, Bucket, Chunks, Meta, Name, Says, Trouble, Unread};
use crate::recorder::config::StoreConfig;
use crate::recorder::inbox::InboxError;
use crate::recorder::intake::Running;
use crate::recorder::meter::Count;
use crate::recorder::metrics::Page;
use crate::recorder::stop::Stop;
use crate::recorder::writer::Backoff;
use crate::recorder::{clock, log};

/// Registry entry.
pub(super) static STORE: Entry = Entry {
    name: "store",
    start: |surroundings| {
        let config = surroundings.config.store.clone()?;
        Some(Ok(start(config, surroundings)))
    },
};

/// How often the whole bucket is listed: hints of new objects may be missed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long to wait for something to do before checking for a stop.
const TICK: Duration = Duration::from_millis(50);
/// The most waiting objects that are remembered; the next listing finds the others.
const PENDING_MAX: usize = 100_000;
/// The most foreign objects that are remembered as reported.
const STRANGERS_MAX: usize = 1_000;

/// The counters.
#[derive(Debug, Default)]
struct Meter {
    fetched: Count,
    refused: Count,
    is_connected: AtomicBool,
}

/// State that is shared by the fetching of all objects.
struct Fetching {
    bucket: Bucket,
    blocks: Arc<Blocks>,
    patience: Duration,
    stop: Arc<Stop>,
    meter: Arc<Meter>,
    /// Objects that wait to be fetched, in order of arrival.
    pending: Mutex<BTreeSet<(i64, String)>>,
    wake: Notify,
}

/// The outcome of fetching an object.
enum Fetched {
    /// It is settled: nothing is left to do.
    Concluded,
    /// It is not a block.
    Stranger,
    /// It is to be tried again; the reason.
    Later(String),
}

fn start(config: StoreConfig, surroundings: &Surroundings) -> Running {
    let (blocks, stop) = (Arc::clone(&surroundings.blocks), Arc::clone(&surroundings.stop));
    let meter = Arc::new(Meter::default());
    let shown = Arc::clone(&meter);
    blocks.show_also(Box::new(move || page(&shown)));
    let task = tokio::spawn(run(config, blocks, stop, meter));
    Running { name: "store", address: None, anteroom: None, certificates: Vec::new(), task }
}

fn page(meter: &Meter) -> String {
    let mut page = Page::default();
    page.counter(
        "store_fetched_total",
        "Objects whose blocks are durable in the inbox, since the start",
        meter.fetched.get(),
    );
    page.counter("store_refused_total", "Objects that were refused: damaged, or not to be stored", meter.refused.get());
    let is_connected = f64::from(u8::from(meter.is_connected.load(Ordering::Relaxed)));
    page.gauge("store_connected", "Whether the bucket could be reached at the last attempt", is_connected);
    page.0
}

/// Fetches until a stop is asked for; trouble is logged once and tried again.
async fn run(config: StoreConfig, blocks: Arc<Blocks>, stop: Arc<Stop>, meter: Arc<Meter>) {
    let seed = u64::from(std::process::id()) ^ clock::now_ns().unsigned_abs();
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5), seed);
    let mut said = None;
    while !stop.is_asked() {
        let reason = match connect(&config, &blocks, &stop, &meter).await {
            Ok((fetching, hints)) => {
                let (url, name) = (&config.bucket.server.shown(), &config.bucket.name);
                log::info("fetching blocks", &[("intake", "store"), ("url", url), ("bucket", name)]);
                (said, backoff) = (None, Backoff::new(Duration::from_millis(100), Duration::from_secs(5), seed));
                meter.is_connected.store(true, Ordering::Relaxed);
                fetch_all(fetching, hints, config.objects as usize).await
            }
            Err(reason) => Err(reason),
        };
        meter.is_connected.store(false, Ordering::Relaxed);
        if let Err(reason) = reason {
            if said.as_ref() != Some(&reason) {
                let url = &config.bucket.server.shown();
                log::warning("fetching blocks waits", &[("intake", "store"), ("url", url), ("reason", &reason)]);
                said = Some(reason);
            }
            let until = Instant::now() + backoff.wait();
            while !stop.is_asked() && Instant::now() < until {
                tokio::time::sleep(TICK).await;
            }
        }
    }
}

async fn connect(
    config: &StoreConfig,
    blocks: &Arc<Blocks>,
    stop: &Arc<Stop>,
    meter: &Arc<Meter>,
) -> Result<(Arc<Fetching>, Subscriber), String> {
    let bucket = Bucket::open(&config.bucket, None).await?;
    let hints = bucket.hints().await?;
    let fetching = Fetching {
        bucket,
        blocks: Arc::clone(blocks),
        patience: config.patience,
        stop: Arc::clone(stop),
        meter: Arc::clone(meter),
        pending: Mutex::default(),
        wake: Notify::new(),
    };
    Ok((Arc::new(fetching), hints))
}

/// Fetches objects, at most `objects` at a time, until a stop is asked for or the server does not answer.
async fn fetch_all(fetching: Arc<Fetching>, hints: Subscriber, objects: usize) -> Result<(), String> {
    let listening = tokio::spawn(listen(Arc::clone(&fetching), hints));
    let fetched = fetch_some(&fetching, objects).await;
    listening.abort();
    fetched
}

async fn fetch_some(fetching: &Arc<Fetching>, objects: usize) -> Result<(), String> {
    let (mut running, mut under_way) = (JoinSet::new(), BTreeSet::new());
    let mut later: HashMap<String, (Instant, Backoff)> = HashMap::new();
    let mut strangers = BTreeSet::new();
    let mut looked: Option<Instant> = None;
    while !fetching.stop.is_asked() {
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            let names = fetching.bucket.names().await.map_err(|trouble| trouble.to_string())?;
            let there: BTreeSet<_> = names.iter().cloned().collect();
            later.retain(|name, _| there.contains(name));
            strangers.retain(|name| there.contains(name));
            names.into_iter().filter(|name| !strangers.contains(name)).for_each(|name| fetching.hear(name));
            looked = Some(Instant::now());
        }
        let now = Instant::now();
        let is_next = |name: &String| {
            !under_way.contains(name) && later.get(name).is_none_or(|(until, _): &(Instant, Backoff)| *until <= now)
        };
        for name in fetching.next(objects - under_way.len(), is_next) {
            under_way.insert(name.clone());
            let fetching = Arc::clone(fetching);
            running.spawn(async move {
                let fetched = fetching.fetch(&name).await;
                fetching.wake.notify_one();
                (name, fetched)
            });
        }
        let _ = tokio::time::timeout(TICK, fetching.wake.notified()).await;
        while let Some(ended) = running.try_join_next() {
            let (name, fetched) = ended.map_err(|error| error.to_string())?;
            under_way.remove(&name);
            match fetched.map_err(|trouble| trouble.to_string())? {
                Fetched::Concluded => drop(later.remove(&name)),
                Fetched::Stranger if strangers.len() < STRANGERS_MAX && strangers.insert(name.clone()) => {
                    let remedy = "it is left alone; keep the bucket for blocks";
                    log::warning("an object is no block of a recorder", &[("object", &name), ("remedy", remedy)]);
                }
                Fetched::Stranger => {}
                Fetched::Later(reason) => {
                    let fresh = || {
                        log::warning("a block is fetched later", &[("object", &name), ("reason", &reason)]);
                        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10), 7);
                        (Instant::now(), backoff)
                    };
                    let (until, backoff) = later.entry(name.clone()).or_insert_with(fresh);
                    *until = Instant::now() + backoff.wait();
                    fetching.hear(name);
                }
            }
        }
    }
    // Uploads under way get the time that a stop allows.
    while running.join_next().await.is_some() {}
    Ok(())
}

/// Notes objects that are put.
async fn listen(fetching: Arc<Fetching>, mut hints: Subscriber) {
    while let Some(hint) = hints.next().await {
        let Some(name) = fetching.bucket.name_of(&hint.subject) else { continue };
        if Meta::read(&name, 0, &hint.payload).says() == Says::Block {
            fetching.hear(name);
            fetching.wake.notify_one();
        }
    }
}

impl Fetching {
    /// Notes an object that may be in the bucket.
    fn hear(&self, name: String) {
        let arrived_ns = Name::parse(&name).map_or(i64::MAX, |name| name.arrived_ns);
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() < PENDING_MAX {
            pending.insert((arrived_ns, name));
        }
    }

    /// Removes and returns the next objects that satisfy `is_next`, at most `most`; the others stay.
    fn next(&self, most: usize, is_next: impl Fn(&String) -> bool) -> Vec<String> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let next = pending.iter().filter(|(_, name)| is_next(name)).take(most).cloned().collect::<Vec<_>>();
        pending.retain(|key| !next.contains(key));
        next.into_iter().map(|(_, name)| name).collect()
    }

    /// Fetches an object and answers it. An error is one of the server.
    async fn fetch(&self, text: &str) -> Result<Fetched, Trouble> {
        let Some(meta) = self.bucket.look(text).await? else { return Ok(Fetched::Concluded) };
        match meta.says() {
            Says::Block => {}
            Says::Nothing => return Ok(Fetched::Stranger),
            Says::Stored(_) | Says::Refused(_) => return Ok(Fetched::Concluded),
        }
        let name = match Name::parse(text) {
            Ok(name) => name,
            Err(reason) => return self.refuse(&meta, text, &reason).await,
        };
        if let Err(refusal) = self.blocks.admit(&name.camera, &name.block, Some(meta.bytes())).await {
            return self.not_taken(&meta, text, &refusal).await;
        }
        let chunks = match self.bucket.read(&meta).await {
            Ok(chunks) => chunks,
            Err(Unread::Damaged(reason)) => return self.refuse(&meta, text, &reason).await,
            Err(Unread::Away(trouble)) => return Err(trouble),
        };
        let mut object = Object { chunks, left: Bytes::new(), arrived_ns: name.arrived_ns, unread: None };
        let expected = Expected::Exactly(meta.bytes());
        let deposited = self.blocks.deposit(&name.camera, &name.block, expected, self.patience, &mut object).await;
        let Object { chunks, unread, .. } = object;
        let fetched = match (deposited, unread) {
            (Ok(_), _) => {
                self.meter.fetched.add(1);
                self.accept(&meta).await
            }
            (Err(_), Some(Unread::Damaged(reason))) => self.refuse(&meta, text, &reason).await,
            (Err(_), Some(Unread::Away(trouble))) => Err(trouble),
            (Err(refusal), None) => self.not_taken(&meta, text, &refusal).await,
        };
        self.bucket.end(chunks).await;
        fetched
    }

    /// Handles a block that the inbox does not accept: for now, or as it is.
    async fn not_taken(&self, meta: &Meta, text: &str, refusal: &NotTaken) -> Result<Fetched, Trouble> {
        match refusal {
            NotTaken::Inbox(InboxError::Name(_) | InboxError::TooLarge(_)) | NotTaken::Cut(_) => {
                self.refuse(meta, text, &refusal.to_string()).await
            }
            // Time helps: for room, for the turn, or because the other block of this name will be processed.
            _ => Ok(Fetched::Later(refusal.to_string())),
        }
    }

    async fn refuse(&self, meta: &Meta, text: &str, reason: &str) -> Result<Fetched, Trouble> {
        match self.bucket.answer(meta, &Answer::Refused(reason.to_owned())).await {
            // Another recorder has answered, and the object is gone: nothing was wrong with it.
            Err(Trouble::Changed) => Ok(Fetched::Concluded),
            Err(trouble @ Trouble::Full(_)) => Ok(Fetched::Later(trouble.to_string())),
            Err(trouble) => Err(trouble),
            Ok(()) => {
                log::warning("an object is refused", &[("object", text), ("reason", reason)]);
                self.meter.refused.add(1);
                Ok(Fetched::Concluded)
            }
        }
    }

    async fn accept(&self, meta: &Meta) -> Result<Fetched, Trouble> {
        match self.bucket.answer(meta, &Answer::Stored).await {
            // Another recorder has answered, or the object was put again: then there is a new hint.
            Ok(()) | Err(Trouble::Changed) => Ok(Fetched::Concluded),
            Err(trouble @ Trouble::Full(_)) => Ok(Fetched::Later(trouble.to_string())),
            Err(trouble) => Err(trouble),
        }
    }
}

/// An object, read as the body of an upload.
struct Object {
    chunks: Chunks,
    left: Bytes,
    arrived_ns: i64,
    /// Why reading stopped before the end; `None` while it goes on.
    unread: Option<Unread>,
}

impl Body for Object {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        while self.left.is_empty() {
            match self.chunks.next().await {
                Ok(Some(chunk)) => self.left = chunk,
                Ok(None) => return Ok(0),
                Err(unread) => {
                    let error = io::Error::other(unread.to_string());
                    self.unread = Some(unread);
                    return Err(error);
                }
            }
        }
        let taken = self.left.split_to(self.left.len().min(buffer.capacity() - buffer.len()));
        buffer.extend_from_slice(&taken);
        Ok(taken.len())
    }

    fn arrived_ns(&self) -> Option<i64> {
        Some(self.arrived_ns)
    }
}
