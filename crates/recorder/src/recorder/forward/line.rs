//! The blocks that are under way, and the choice of the next ones. Main type: [`Line`].

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::Subscriber;
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Meter;
use super::carrier::{Carried, carry};
use super::shared::{LOOK_EVERY, Shared, pause};
use crate::recorder::bucket::{Bucket, Meta, Name, Says, Trouble};
use crate::recorder::config::ForwardConfig;
use crate::recorder::inbox::{Taking, Waiting};
use crate::recorder::log;
use crate::recorder::stop::Stop;
use crate::recorder::writer::Backoff;

/// The most blocks that are put at the same time; all others under way wait for their answers.
const PUTS: usize = 4;
/// The most blocks in one listing: each listing reads all names of the inbox.
const LISTED_MAX: usize = 4_096;
/// How often the bucket is tidied, and the shortest time between two tidyings that seem to be needed.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
const SWEEP_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a block that was refused is put again.
const REFUSED_WAIT_MAX: Duration = Duration::from_secs(60);

/// The blocks that go to the other inbox.
pub(super) struct Line {
    settings: ForwardConfig,
    station: String,
    taking: Arc<Taking>,
    meter: Arc<Meter>,
    stop: Arc<Stop>,
    began_ns: i64,
    listed: VecDeque<Waiting>,
    /// When the bucket was last tidied.
    swept: Option<Instant>,
    under_way: BTreeSet<String>,
    /// The blocks that were refused, with the time at which each is put again.
    refused: HashMap<String, (Instant, Backoff)>,
}

impl Line {
    pub(super) fn new(
        settings: ForwardConfig,
        station: String,
        taking: Arc<Taking>,
        meter: Arc<Meter>,
        stop: Arc<Stop>,
    ) -> Self {
        Line {
            settings,
            station,
            taking,
            meter,
            stop,
            began_ns: crate::recorder::clock::now_ns(),
            listed: VecDeque::new(),
            swept: None,
            under_way: BTreeSet::new(),
            refused: HashMap::new(),
        }
    }

    /// Works until a stop is asked for.
    pub(super) async fn run(mut self) {
        let Some((bucket, hints)) = self.connect().await else { return };
        let shared = Arc::new(Shared {
            bucket,
            taking: Arc::clone(&self.taking),
            meter: Arc::clone(&self.meter),
            stop: Arc::clone(&self.stop),
            puts: Semaphore::new(PUTS),
            began_ns: self.began_ns,
            calls: Mutex::default(),
            is_untidy: AtomicBool::new(true),
            station: self.station.clone(),
            trouble: Mutex::default(),
        });
        let listening = tokio::spawn(listen(Arc::clone(&shared), hints));
        let mut carriers = JoinSet::new();
        while !self.stop.is_asked() {
            self.watch(&shared).await;
            self.fill(&shared, &mut carriers).await;
            // A carrier that ends makes room for the next block.
            if let Ok(Some(ended)) = tokio::time::timeout(LOOK_EVERY, carriers.join_next()).await {
                self.take_note(ended);
                while let Some(ended) = carriers.try_join_next() {
                    self.take_note(ended);
                }
            } else if carriers.is_empty() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        listening.abort();
        while carriers.join_next().await.is_some() {}
    }

    /// Connects, for as long as it takes; `None` if a stop is asked for before.
    async fn connect(&self) -> Option<(Bucket, Subscriber)> {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5), seed());
        let mut said = None;
        while !self.stop.is_asked() {
            let opened = match Bucket::open(&self.settings.bucket, Some(self.settings.bound)).await {
                Ok(bucket) => bucket.hints().await.map(|hints| (bucket, hints)),
                Err(reason) => Err(reason),
            };
            match opened {
                Ok(opened) => {
                    let (url, name) = (&self.settings.bucket.server.shown(), &self.settings.bucket.name);
                    log::info("forwarding", &[("url", url), ("bucket", name), ("station", &self.station)]);
                    self.meter.is_connected.store(true, Ordering::Relaxed);
                    return Some(opened);
                }
                Err(reason) if said.as_ref() != Some(&reason) => {
                    let url = &self.settings.bucket.server.shown();
                    log::warning("forwarding waits", &[("url", url), ("reason", &reason)]);
                    said = Some(reason);
                }
                Err(_) => {}
            }
            pause(&self.stop, backoff.wait()).await;
        }
        None
    }

    /// After trouble: creates the bucket again if the server has lost it. Once all goes well: removes what was left in it.
    async fn watch(&mut self, shared: &Shared) {
        if matches!(shared.trouble(), Some(Trouble::Away(_))) {
            shared.is_untidy.store(true, Ordering::Relaxed);
            match shared.bucket.ensure(Some(self.settings.bound)).await {
                Ok(()) => shared.note_success(false),
                Err(reason) => {
                    shared.note_trouble(&Trouble::Away(reason));
                    pause(&self.stop, Duration::from_secs(1)).await;
                }
            }
            return;
        }
        let since = self.swept.map(|swept| swept.elapsed());
        let is_untidy = || shared.is_untidy.load(Ordering::Relaxed);
        if since.is_none_or(|since| since >= SWEEP_EVERY || (since >= SWEEP_PAUSE && is_untidy())) {
            shared.is_untidy.store(false, Ordering::Relaxed);
            self.swept = Some(Instant::now());
            if let Err(trouble) = self.sweep(shared).await {
                shared.note_trouble(&trouble);
            }
        }
    }

    /// Removes the remains of this inbox's blocks from the bucket: answers for blocks that are gone, where removing the answer failed, and chunks that
    /// belong to no object, because a put was interrupted or a killed server has forgotten their removal.
    async fn sweep(&self, shared: &Shared) -> Result<(), Trouble> {
        let mut known: BTreeSet<String> = BTreeSet::new();
        known.extend(self.under_way.iter().filter_map(|text| Name::parse(text).ok()).map(|name| name.id()));
        for text in shared.bucket.names().await? {
            let Some(name) = Name::parse(&text).ok().filter(|name| name.station == self.station) else { continue };
            let is_here = self.taking.has(&name.camera, &name.block, name.arrived_ns);
            if !self.under_way.contains(&text) && !is_here {
                let answered = shared.bucket.look(&text).await?.map(|meta| meta.says());
                if matches!(answered, Some(Says::Stored(_))) {
                    shared.bucket.clear(&name).await?;
                    continue;
                }
            }
            known.insert(name.id());
        }
        for id in shared.bucket.ids_of(&self.station).await? {
            if !known.contains(&id) {
                shared.bucket.clear_id(&id).await?;
            }
        }
        Ok(())
    }

    /// Gives waiting blocks to carriers, up to the most that may be under way.
    async fn fill(&mut self, shared: &Arc<Shared>, carriers: &mut JoinSet<(String, Carried)>) {
        if self.under_way.len() >= self.settings.objects as usize {
            return;
        }
        if self.listed.is_empty() {
            self.list(shared).await;
        }
        while self.under_way.len() < self.settings.objects as usize {
            let Some(waiting) = self.listed.pop_front() else { break };
            let name = Name::new(&self.station, &waiting);
            let text = name.text();
            if self.under_way.contains(&text) {
                continue;
            }
            let is_again = self.refused.contains_key(&text);
            self.under_way.insert(text.clone());
            let shared = Arc::clone(shared);
            carriers.spawn(async move { (text, carry(shared, waiting, name, is_again).await) });
        }
        self.meter.under_way.set(self.under_way.len() as u64);
        self.meter.refusals_waiting.set(self.refused.len() as u64);
    }

    /// Lists the waiting blocks, except those that are under way or wait to be put again.
    async fn list(&mut self, shared: &Shared) {
        let taking = Arc::clone(&self.taking);
        let listed = tokio::task::spawn_blocking(move || taking.next(usize::MAX)).await;
        let listed = match listed {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => return shared.note_trouble(&Trouble::Away(error.to_string())),
            Err(_) => return,
        };
        let now = Instant::now();
        let name = |waiting: &Waiting| Name::new(&self.station, waiting).text();
        if !self.refused.is_empty() {
            let there: BTreeSet<_> = listed.iter().map(name).collect();
            self.refused.retain(|refused, _| there.contains(refused));
        }
        let is_next = |waiting: &Waiting| {
            let name = name(waiting);
            !self.under_way.contains(&name) && self.refused.get(&name).is_none_or(|(until, _)| *until <= now)
        };
        let next: VecDeque<_> = listed.into_iter().filter(is_next).take(LISTED_MAX).collect();
        self.listed = next;
    }

    fn take_note(&mut self, ended: Result<(String, Carried), tokio::task::JoinError>) {
        let Ok((name, carried)) = ended else {
            // The panic was printed already. The block still waits; which one it was is not known, so all may be tried again.
            self.under_way.clear();
            return;
        };
        self.under_way.remove(&name);
        match carried {
            Carried::Done => drop(self.refused.remove(&name)),
            Carried::Stopped => {}
            Carried::Refused => {
                let first = Duration::from_millis(100);
                let fresh = || (Instant::now(), Backoff::new(first, REFUSED_WAIT_MAX, seed()));
                let (until, backoff) = self.refused.entry(name).or_insert_with(fresh);
                *until = Instant::now() + backoff.wait();
            }
        }
    }
}

/// Wakes the carriers of objects that are answered.
async fn listen(shared: Arc<Shared>, mut hints: Subscriber) {
    while let Some(hint) = hints.next().await {
        let Some(name) = shared.bucket.name_of(&hint.subject) else { continue };
        // The hint of a put wakes nobody.
        let is_put = Meta::read(&name, 0, &hint.payload).says() == Says::Block;
        match shared.calls().get(&name) {
            _ if is_put => {}
            Some(call) => call.notify_one(),
            None if name.starts_with(&shared.station) => shared.is_untidy.store(true, Ordering::Relaxed),
            None => {}
        }
    }
}

fn seed() -> u64 {
    u64::from(std::process::id()) ^ crate::recorder::clock::now_ns().unsigned_abs()
}
