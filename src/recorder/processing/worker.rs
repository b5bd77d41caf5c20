//! The loop of the processing: batch after batch from the inbox into the database. Main type: [`Worker`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ring::digest::{SHA256, digest};

use super::Meter;
use super::batch::{Good, Judged, hex, open_all};
use super::images::{ImageError, Images};
use super::keys::Keys;
use super::store::{Known, New, Replay, Store};
use super::tables::Form;
use crate::block::{Limits, Opener};
use crate::database::{Database, DatabaseError};
use crate::recorder::config::ProcessingConfig;
use crate::recorder::inbox::{InboxError, Taking, Waiting};
use crate::recorder::log;
use crate::recorder::stop::Stop;
use crate::recorder::writer::{Backoff, Meaning, is_duplicate, meaning};

/// How often an empty inbox is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bytes of the blocks of one batch, beyond which no further block is taken into it.
const BATCH_BYTES: u64 = 32 << 20;

/// Blocks that are looked up at once: each look reads all names of the inbox.
const LISTED_MAX: usize = 4_096;

/// Everything that processing needs.
pub(super) struct Worker {
    keys: Keys,
    openers: Vec<Opener>,
    images: Images,
    form: Form,
    batch: usize,
    taking: Taking,
    /// Blocks that waited when the inbox was last looked at; a hint, not a promise.
    listed: VecDeque<Waiting>,
    database: Arc<dyn Database>,
    store: Option<Store>,
    /// How many blocks go one by one, because the database refuses one of the last batch.
    singles: usize,
    backoff: Backoff,
    meter: Arc<Meter>,
    stop: Arc<Stop>,
    waits: bool,
}

/// Why a batch came to nothing.
enum Trouble {
    /// It is tried again later.
    Wait(String),
    /// Nothing can be promised any more.
    Broken(String),
}

/// What is to be done with a block that is whole.
enum Fate {
    /// Stored with this batch.
    New(Known),
    /// The same record came before, with another upload.
    Replayed(String),
    /// This very upload is concluded; only its removal was lost.
    Committed,
    /// The number belongs to another record.
    Conflict,
}

impl Worker {
    pub(super) fn new(
        settings: &ProcessingConfig,
        form: Form,
        taking: Taking,
        database: Arc<dyn Database>,
        meter: Arc<Meter>,
        stop: Arc<Stop>,
    ) -> Result<Self, String> {
        let keys = Keys::read(&settings.identity, &settings.signers)?;
        let opener = || Opener::new(keys.identities.clone(), Limits::default()).map_err(|error| error.to_string());
        let openers = (0..settings.workers.max(1)).map(|_| opener()).collect::<Result<_, _>>()?;
        Ok(Worker {
            openers,
            images: Images::open(&settings.images)?,
            form,
            batch: settings.batch as usize,
            taking,
            listed: VecDeque::new(),
            database,
            store: None,
            singles: 0,
            backoff: Backoff::new(Duration::from_millis(50), Duration::from_secs(5), u64::from(std::process::id())),
            meter,
            stop,
            waits: false,
            keys,
        })
    }

    /// Works until it is asked to stop.
    ///
    /// # Errors
    /// What nothing can be promised after.
    pub(super) fn run(&mut self) -> Result<(), String> {
        while !self.stop.is_asked() {
            match self.round() {
                Ok(0) => {
                    self.went_well();
                    self.stop.wait(LOOK_EVERY);
                }
                Ok(_) => self.went_well(),
                Err(Trouble::Wait(reason)) => {
                    if !self.waits {
                        log::warning("processing waits", &[("reason", &reason)]);
                    }
                    self.waits = true;
                    self.listed.clear();
                    self.stop.wait(self.backoff.wait());
                }
                Err(Trouble::Broken(reason)) => return Err(reason),
            }
        }
        Ok(())
    }

    fn went_well(&mut self) {
        self.backoff.reset();
        if std::mem::take(&mut self.waits) {
            log::info("processing goes on", &[]);
        }
    }

    /// The next blocks in order of arrival: not too many, and not too large in all.
    fn next(&mut self) -> Result<Vec<Waiting>, Trouble> {
        if self.listed.is_empty() {
            self.listed = self.taking.next(LISTED_MAX).map_err(trouble)?.into();
        }
        let most = if self.singles > 0 { 1 } else { self.batch };
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < most && bytes < BATCH_BYTES {
            let Some(waiting) = self.listed.pop_front() else { break };
            bytes += waiting.bytes;
            batch.push(waiting);
        }
        Ok(batch)
    }

    /// One batch; how many blocks were concluded.
    fn round(&mut self) -> Result<usize, Trouble> {
        self.keys.refresh();
        self.connect()?;
        let waiting = self.next()?;
        if waiting.is_empty() {
            return Ok(0);
        }
        let judged = open_all(&waiting, &mut self.openers, &self.keys.signers, &self.images).map_err(image_trouble)?;
        self.conclude(&waiting, &judged)?;
        Ok(judged.iter().filter(|judged| !matches!(judged, Judged::Unread(_))).count())
    }

    fn connect(&mut self) -> Result<(), Trouble> {
        if self.store.is_none() {
            let opened = Store::open(&*self.database, self.form, self.batch);
            let (store, stored) = opened.map_err(|error| Trouble::Wait(format!("the database: {error}")))?;
            self.meter.committed.store(stored.records, Ordering::Relaxed);
            self.meter.replayed.store(stored.replays, Ordering::Relaxed);
            self.meter.is_connected.store(true, Ordering::Relaxed);
            self.store = Some(store);
        }
        Ok(())
    }

    /// Commits what is good, quarantines what is bad, and only then lets go of either.
    fn conclude(&mut self, waiting: &[Waiting], judged: &[Judged]) -> Result<(), Trouble> {
        let fates = self.fates(waiting, judged)?;
        let mut new: Vec<(&Good, &Known)> = Vec::new();
        let mut replays = Vec::new();
        for (judged, fate) in judged.iter().zip(&fates) {
            match (judged, fate) {
                (Judged::Good(good), Some(Fate::New(known))) => new.push((good, known)),
                (Judged::Good(good), Some(Fate::Replayed(upload))) => {
                    let violation = &good.violation;
                    replays.push(Replay { upload, camera: &violation.camera, sequence: violation.sequence });
                }
                _ => {}
            }
        }
        let images = new.iter().map(|(good, _)| (&good.image, good.image_sha256.as_str()));
        self.images.keep(images).map_err(image_trouble)?;
        match self.commit(&new, &replays) {
            Ok(()) => {}
            Err(error) if waiting.len() > 1 && meaning(&error) == Meaning::Record => {
                // One of them is to blame; alone it will be found.
                self.singles = waiting.len();
                self.listed.clear();
                return Ok(());
            }
            // Two equal keys are the work of another processing; the next look finds what it has stored.
            Err(error) if meaning(&error) == Meaning::Record && !is_duplicate(&error) => {
                let reason = format!("database: {error}");
                self.singles = self.singles.saturating_sub(1);
                return waiting.iter().try_for_each(|waiting| self.quarantine(waiting, &reason));
            }
            Err(error) => return Err(self.database_trouble(&error)),
        }
        self.singles = self.singles.saturating_sub(1);
        self.meter.committed.fetch_add(new.len() as u64, Ordering::Relaxed);
        self.meter.replayed.fetch_add(replays.len() as u64, Ordering::Relaxed);
        for ((waiting, judged), fate) in waiting.iter().zip(judged).zip(&fates) {
            self.let_go(waiting, judged, fate.as_ref())?;
        }
        Ok(())
    }

    fn commit(&mut self, new: &[(&Good, &Known)], replays: &[Replay<'_>]) -> Result<(), DatabaseError> {
        let records = new.iter().map(|(good, known)| New {
            violation: &good.violation,
            known,
            image_sha256: &good.image_sha256,
            image_bytes: good.image_bytes,
            image: &good.image,
        });
        let records: Vec<_> = records.collect();
        let Some(store) = &mut self.store else { return Err(DatabaseError::Lost("not connected".to_owned())) };
        store.commit(&records, replays)
    }

    /// What is to be done with each good block, after what is stored and what stands before it in the batch.
    fn fates(&mut self, waiting: &[Waiting], judged: &[Judged]) -> Result<Vec<Option<Fate>>, Trouble> {
        let mut before: HashMap<(&str, u64), Known> = HashMap::new();
        let mut fates = Vec::with_capacity(judged.len());
        for (waiting, judged) in waiting.iter().zip(judged) {
            let Judged::Good(good) = judged else {
                fates.push(None);
                continue;
            };
            let upload = hex(digest(&SHA256, waiting.id().as_bytes()).as_ref());
            let key = (good.violation.camera.as_str(), good.violation.sequence);
            let known = match before.get(&key) {
                Some(known) => Some(known.clone()),
                None => self.find(key)?,
            };
            fates.push(Some(match known {
                None => {
                    let known = Known { digest: good.digest.clone(), upload };
                    before.insert(key, known.clone());
                    Fate::New(known)
                }
                Some(known) if known.digest != good.digest => Fate::Conflict,
                Some(known) if known.upload == upload || self.is_replay(&upload)? => Fate::Committed,
                Some(_) => Fate::Replayed(upload),
            }));
        }
        Ok(fates)
    }

    fn find(&mut self, (camera, sequence): (&str, u64)) -> Result<Option<Known>, Trouble> {
        let Some(store) = &mut self.store else { return Err(Trouble::Wait("not connected".to_owned())) };
        store.find(camera, sequence).map_err(|error| self.database_trouble(&error))
    }

    fn is_replay(&mut self, upload: &str) -> Result<bool, Trouble> {
        let Some(store) = &mut self.store else { return Err(Trouble::Wait("not connected".to_owned())) };
        store.is_replay(upload).map_err(|error| self.database_trouble(&error))
    }

    fn let_go(&mut self, waiting: &Waiting, judged: &Judged, fate: Option<&Fate>) -> Result<(), Trouble> {
        match (judged, fate) {
            (Judged::Bad(reason), _) => self.quarantine(waiting, reason),
            (Judged::Good(good), Some(Fate::Conflict)) => {
                let sequence = good.violation.sequence;
                let reason = format!("sequence {sequence} of camera {} is stored with other content", waiting.camera);
                self.quarantine(waiting, &reason)
            }
            (Judged::Good(_), _) => {
                self.meter.bytes.fetch_add(waiting.bytes, Ordering::Relaxed);
                self.taking.settle(waiting).map_err(trouble)
            }
            // It stays, holds up no other, and is looked at again; if it is gone there was nothing to do.
            (Judged::Unread(reason), _) => {
                if waiting.path.exists() {
                    log::error("a block cannot be read", &[("reason", reason)]);
                }
                Ok(())
            }
        }
    }

    fn quarantine(&mut self, waiting: &Waiting, reason: &str) -> Result<(), Trouble> {
        let facts = [("camera", waiting.camera.as_str()), ("name", &waiting.name), ("reason", reason)];
        log::warning("a block goes to quarantine", &facts);
        self.taking.quarantine(waiting, reason).map_err(trouble)?;
        self.meter.quarantined.fetch_add(1, Ordering::Relaxed);
        self.meter.bytes.fetch_add(waiting.bytes, Ordering::Relaxed);
        Ok(())
    }

    /// After any error the connection is made anew: what it had begun is undone by the database, and what was committed is found again.
    fn database_trouble(&mut self, error: &DatabaseError) -> Trouble {
        self.store = None;
        self.meter.is_connected.store(false, Ordering::Relaxed);
        Trouble::Wait(format!("the database: {error}"))
    }
}

fn trouble(error: InboxError) -> Trouble {
    match error {
        InboxError::Broken(reason) => Trouble::Broken(reason),
        other => Trouble::Wait(other.to_string()),
    }
}

fn image_trouble(error: ImageError) -> Trouble {
    match error {
        ImageError::Wait(reason) => Trouble::Wait(reason),
        ImageError::Broken(reason) => Trouble::Broken(reason),
    }
}
