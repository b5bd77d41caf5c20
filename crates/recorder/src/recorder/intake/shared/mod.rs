//! A NATS stream that several recorders share in parts: each part has one recorder at a time, so that each source keeps its order.
//!
//! `stream` is the stream and the consumers of its parts, `leases` says which recorder has which part, `balance` decides which parts a recorder gives up and
//! takes, and `part` brings the messages of one part to its lane. Main type: [`SHARED`].
//!
//! Invariant: a part counts in this recorder's share of the load line only while its lease lasts and its row of the ledger belongs to this recorder, so that
//! nobody else can write it.

mod balance;
mod leases;
mod part;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::task::JoinHandle;

use super::nats::FETCH_BYTES_MAX;
use super::{Entry, Running, Surroundings};
use crate::layout::recorded::hash_hex;
use crate::recorder::clock;
use crate::recorder::config::{NatsConfig, SharedConfig};
use crate::recorder::hold::Hold;
use crate::recorder::log;
use crate::recorder::part_lanes::PartLanes;
use balance::{Able, Moves, Seen, balance};
use leases::Leases;
use part::{Ended, Part};
use stream::Source;

/// How often in the time of a lease it is renewed.
const RENEWALS: u32 = 5;
/// How long a part that could not be worked on is left to others, and to this recorder.
const PAUSE: Duration = Duration::from_secs(2);
/// How many leases a recorder takes no part after it had to give all of them up.
const HOLD_OFF: u32 = 3;
/// The least number of bytes that are fetched at a time.
const FETCH_BYTES_MIN: usize = 256 << 10;
/// How long parts may take to be given up when the recorder stops.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);

/// Registry entry.
pub(super) static SHARED: Entry = Entry {
    name: "nats",
    start: |surroundings| {
        let config = surroundings.config.nats.clone()?;
        let shared = config.shared?;
        Some(start(config, shared, surroundings))
    },
};

/// Starts taking in the parts that this recorder gets.
fn start(config: NatsConfig, shared: SharedConfig, surroundings: &Surroundings) -> Result<Running, String> {
    let Some(lanes) = surroundings.parts.clone() else {
        return Err("a shared stream needs a server as its database".to_owned());
    };
    let surroundings = surroundings.clone();
    let task = tokio::spawn(async move {
        while !surroundings.stop.is_asked() {
            if let Err(reason) = take_part(&config, shared, &lanes, &surroundings).await {
                log::warning("waiting for NATS", &[("url", &config.server.shown()), ("reason", &reason)]);
                tokio::time::sleep(PAUSE).await;
            }
        }
    });
    Ok(Running { name: "nats", address: None, anteroom: None, certificates: Vec::new(), task })
}

/// A part that this recorder has.
struct Own {
    hold: Arc<Hold>,
    revision: u64,
    is_leaving: Arc<AtomicBool>,
    work: JoinHandle<Ended>,
    /// Since when the database has not taken what was to be written; `None` while it does.
    failing_since: Option<Instant>,
}

/// The recorder as one of those that share the stream.
struct Member<'a> {
    config: &'a NatsConfig,
    shared: SharedConfig,
    source: Source,
    leases: Leases,
    lanes: &'a Arc<PartLanes>,
    surroundings: &'a Surroundings,
    own: BTreeMap<u32, Own>,
    /// Parts that are not taken before this time.
    paused: BTreeMap<u32, Instant>,
    /// The change that said that this recorder can write, while that holds.
    shown: Option<u64>,
    /// The time before which it takes no part.
    held_off: Option<Instant>,
    /// The part at which it begins to look for free ones.
    first: u32,
    was_told: Option<String>,
}

async fn take_part(
    config: &NatsConfig,
    shared: SharedConfig,
    lanes: &Arc<PartLanes>,
    surroundings: &Surroundings,
) -> Result<(), String> {
    let source = stream::open(config, shared).await?;
    let leases = Leases::open(&source.context, config, shared.lease, source.replicas).await?;
    let first = u32::from_str_radix(&hash_hex(&[&leases.own])[..8], 16).unwrap_or(0);
    if let Some(publisher) = &surroundings.publisher {
        publisher.connect(source.client.clone(), source.context.clone());
    }
    let facts = [("stream", &*config.stream), ("group", &*config.consumer), ("recorder", &*leases.own)];
    log::info("sharing a stream of NATS", &facts);
    let (own, paused) = (BTreeMap::new(), BTreeMap::new());
    let (shown, held_off, was_told) = (None, None, None);
    let mut member =
        Member { config, shared, source, leases, lanes, surroundings, own, paused, shown, held_off, first, was_told };
    let mut every = tokio::time::interval(shared.lease / RENEWALS);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !surroundings.stop.is_asked() {
        member.turn().await;
        tokio::select! {
            _ = every.tick() => {}
            () = stopped(surroundings) => {}
        }
    }
    member.leave().await;
    Ok(())
}

async fn stopped(surroundings: &Surroundings) {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    while !surroundings.stop.is_asked() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Member<'_> {
    /// Renews what this recorder has, and gives up and takes parts.
    async fn turn(&mut self) {
        self.renew().await;
        self.bury().await;
        let able = self.able();
        let outcome = self.balance(able).await;
        match outcome {
            Ok(()) => self.was_told = None,
            Err(reason) => {
                // Leases end by themselves if this lasts.
                if self.was_told.as_ref() != Some(&reason) {
                    let url = self.config.server.shown();
                    log::warning(
                        "the leases of the stream's parts cannot be seen",
                        &[("url", &url), ("reason", &reason)],
                    );
                }
                self.was_told = Some(reason);
            }
        }
    }

    /// Renews the leases of all parts at once.
    async fn renew(&mut self) {
        let leases = &self.leases;
        let lasting = self.own.iter().filter(|(_, own)| !own.work.is_finished());
        let renewed = lasting
            .map(|(part, own)| async move { (*part, leases.renew(*part, own.revision, own.hold.is_valid()).await) });
        for (part, renewed) in join_all(renewed).await {
            let Some(own) = self.own.get_mut(&part) else { continue };
            match renewed {
                Ok(Some(lease)) => {
                    own.revision = lease.revision;
                    own.hold.extend(lease.until);
                }
                Ok(None) => own.hold.end(),
                // The next try may reach the server; until the lease is over by this recorder's clock the part is its own.
                Err(_) => {}
            }
        }
    }

    /// Forgets parts whose work has ended, and gives their leases back.
    async fn bury(&mut self) {
        let over: Vec<u32> = self.own.iter().filter(|(_, own)| own.work.is_finished()).map(|(part, _)| *part).collect();
        for part in over {
            let Some(own) = self.own.remove(&part) else { continue };
            let ended =
                own.work.await.unwrap_or_else(|error| Ended { reason: Some(error.to_string()), is_quiet: true });
            let counts = &self.surroundings.meter.shared;
            self.lanes.close(&own.hold);
            if ended.is_quiet {
                self.leases.give(own.revision).await;
            }
            let number = part.to_string();
            match ended.reason {
                None => {
                    counts.given.add(1);
                    log::info("gave up a part of the stream", &[("part", &number)]);
                }
                Some(reason) => {
                    counts.lost.add(1);
                    self.paused.insert(part, Instant::now() + PAUSE);
                    log::warning("lost a part of the stream", &[("part", &number), ("reason", &reason)]);
                }
            }
        }
        self.paused.retain(|_, until| *until > Instant::now());
    }

    /// Returns whether this recorder can write, as far as its parts show.
    fn able(&mut self) -> Able {
        let now = Instant::now();
        for own in self.own.values_mut() {
            let is_failing = self.lanes.is_failing(&own.hold);
            own.failing_since = if is_failing { own.failing_since.or(Some(now)) } else { None };
        }
        if self.held_off.is_some_and(|until| until > now) {
            return Able::No;
        }
        self.held_off = None;
        let since = self.own.values().map(|own| own.failing_since).min().flatten();
        match since.map(|since| now - since) {
            // The first moments of a part do not count.
            None => Able::Yes,
            Some(lasts) if lasts < self.shared.lease / 2 => Able::Yes,
            Some(lasts) if lasts < self.shared.lease => Able::NotNow,
            Some(_) => Able::No,
        }
    }

    async fn balance(&mut self, able: Able) -> Result<(), String> {
        if able == Able::Yes {
            self.shown = Some(self.leases.show().await?);
        } else if let Some(shown) = self.shown.take() {
            self.leases.give(shown).await;
        }
        let mut seen = self.leases.look().await?;
        self.surroundings.meter.shared.recorders.set(u64::from(seen.writing));
        if seen.writing == 0 {
            // Nobody could do better.
            self.held_off = None;
        }
        let parts: BTreeSet<u32> = self.own.keys().copied().collect();
        let staying = self.own.iter().filter(|(_, own)| !own.is_leaving.load(Ordering::Relaxed));
        let staying: BTreeSet<u32> = staying.map(|(part, _)| *part).collect();
        // Those that are being given up are nobody's to take yet.
        seen.taken.extend(parts.iter().chain(self.paused.keys()));
        let Moves { give, take } = balance(self.shared.partitions, &seen, &staying, able, self.first);
        self.give(&give, able, &seen);
        for part in take {
            self.take(part).await?;
        }
        Ok(())
    }

    fn give(&mut self, parts: &[u32], able: Able, seen: &Seen) {
        if !parts.is_empty() && able == Able::No && self.held_off.is_none() {
            let (others, parts) = (seen.writing.to_string(), parts.len().to_string());
            log::warning(
                "the database does not take what this recorder writes; other recorders of the stream get its parts",
                &[("parts", &parts), ("others", &others)],
            );
            self.held_off = Some(Instant::now() + HOLD_OFF * self.shared.lease);
        }
        for own in parts.iter().filter_map(|part| self.own.get(part)) {
            own.is_leaving.store(true, Ordering::Relaxed);
            if able == Able::No {
                own.hold.end();
            }
        }
    }

    /// Takes a free part, unless another recorder is faster.
    async fn take(&mut self, part: u32) -> Result<(), String> {
        let Some(lease) = self.leases.take(part).await? else { return Ok(()) };
        let hold = Arc::new(Hold::new(part, lease.until, clock::machine()));
        let lane = match self.lanes.open(&self.source.ledger, &hold) {
            Ok(lane) => lane,
            Err(reason) => {
                self.leases.give(lease.revision).await;
                return Err(reason);
            }
        };
        let share = self.surroundings.config.memory_bytes / u64::from(self.shared.partitions);
        let fetch_bytes = usize::try_from(share).unwrap_or(FETCH_BYTES_MAX);
        let is_leaving = Arc::new(AtomicBool::new(false));
        let work = Part {
            hold: Arc::clone(&hold),
            is_leaving: Arc::clone(&is_leaving),
            source: self.source.clone(),
            surroundings: self.surroundings.clone(),
            fetch_bytes: fetch_bytes.clamp(FETCH_BYTES_MIN, FETCH_BYTES_MAX),
        };
        let work = tokio::spawn(work.work(lane));
        self.surroundings.meter.shared.taken.add(1);
        log::info("took a part of the stream", &[("part", &part.to_string())]);
        self.own.insert(part, Own { hold, revision: lease.revision, is_leaving, work, failing_since: None });
        Ok(())
    }

    /// Gives everything up in order, so that others need not wait for the leases to end.
    async fn leave(&mut self) {
        if let Some(shown) = self.shown.take() {
            self.leases.give(shown).await;
        }
        self.own.values().for_each(|own| own.is_leaving.store(true, Ordering::Relaxed));
        let begun = Instant::now();
        while !self.own.is_empty() {
            if begun.elapsed() > LEAVE_WITHIN {
                self.own.values().for_each(|own| own.hold.end());
            }
            self.bury().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
