//! The end of a batch: good blocks are committed, bad ones are quarantined, and only then the inbox removes either. Main
//! type: [`Concluding`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ring::digest::{SHA256, digest};

use super::Meter;
use super::batch::{Good, Judged, hex};
use super::images::{Image, ImageError, Images};
use super::store::{Known, New, Replay, Store};
use super::tables::Form;
use crate::database::{Database, DatabaseError};
use crate::recorder::inbox::{InboxError, Taking, Waiting};
use crate::recorder::log;
use crate::recorder::writer::{Meaning, is_duplicate, meaning};

/// Concludes batches with the inbox, the images and the database.
pub(super) struct Concluding {
    pub(super) taking: Taking,
    pub(super) images: Arc<Images>,
    pub(super) meter: Arc<Meter>,
    form: Form,
    batch: usize,
    database: Arc<dyn Database>,
    store: Option<Store>,
    /// The number of blocks that still go one by one, because the database refused one of the last batch.
    singles: usize,
}

/// The outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concluded {
    /// Each of its blocks is stored, quarantined or left for later.
    Whole,
    /// None is stored: the database refuses one of them, and they are to come one by one.
    OneByOne,
}

/// The reason why a batch failed.
pub(super) enum Trouble {
    /// It is tried again later.
    Wait(String),
    /// Nothing can be promised any more.
    Broken(String),
}

/// The fate of a block that is whole.
enum Fate {
    /// It is stored with this batch.
    New(Known),
    /// The same record came before, with another upload.
    Replayed(String),
    /// This very upload is concluded; only its removal was lost.
    Committed,
    /// The number belongs to another record.
    Conflict,
    /// It is new, and dated too far away.
    Untimely(String),
}

impl Concluding {
    pub(super) fn new(
        form: Form,
        batch: usize,
        (taking, images): (Taking, Arc<Images>),
        database: Arc<dyn Database>,
        meter: Arc<Meter>,
    ) -> Self {
        Concluding { taking, images, meter, form, batch, database, store: None, singles: 0 }
    }

    /// Returns the most blocks that the next batch may have.
    pub(super) fn most(&self) -> usize {
        if self.singles > 0 { 1 } else { self.batch }
    }

    /// Connects to the database if there is no connection yet.
    pub(super) fn connect(&mut self) -> Result<(), Trouble> {
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

    /// Commits the good blocks, quarantines the bad ones, and only then removes either from the inbox.
    pub(super) fn conclude(&mut self, waiting: &[Waiting], judged: &[Judged]) -> Result<Concluded, Trouble> {
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
        let images = Arc::clone(&self.images);
        let naming = images.keep(new_images(&new)).map_err(image_trouble)?;
        let committed = self.commit(&new, &replays);
        drop(naming);
        match committed {
            Ok(()) => {}
            Err(error) if waiting.len() > 1 && meaning(&error) == Meaning::Record => {
                // One of them is to blame; alone it will be found.
                self.singles = waiting.len();
                return Ok(Concluded::OneByOne);
            }
            // Two equal keys are the work of another processing; the next attempt finds what it has stored.
            Err(error) if meaning(&error) == Meaning::Record && !is_duplicate(&error) => {
                let reason = format!("database: {error}");
                self.singles = self.singles.saturating_sub(1);
                waiting.iter().try_for_each(|waiting| self.quarantine(waiting, &reason))?;
                return Ok(Concluded::Whole);
            }
            Err(error) => return Err(self.database_trouble(&error)),
        }
        self.singles = self.singles.saturating_sub(1);
        self.meter.committed.fetch_add(new.len() as u64, Ordering::Relaxed);
        self.meter.replayed.fetch_add(replays.len() as u64, Ordering::Relaxed);
        for ((waiting, judged), fate) in waiting.iter().zip(judged).zip(&fates) {
            self.let_go(waiting, judged, fate.as_ref())?;
        }
        Ok(Concluded::Whole)
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

    /// Decides the fate of each good block, from what is stored and what stands before it in the batch.
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
                None if good.untimely.is_some() => Fate::Untimely(good.untimely.clone().unwrap_or_default()),
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
            (Judged::Good(_), Some(Fate::Untimely(reason))) => self.quarantine(waiting, reason),
            (Judged::Good(_), _) => {
                self.meter.bytes.fetch_add(waiting.bytes, Ordering::Relaxed);
                self.taking.settle(waiting).map_err(trouble)
            }
            // The block stays, holds up no other, and is read again later; if it is gone there was nothing to do.
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

    /// After any error the connection is made anew: the database rolls back what it had begun, and what was committed is found again.
    fn database_trouble(&mut self, error: &DatabaseError) -> Trouble {
        self.store = None;
        self.meter.is_connected.store(false, Ordering::Relaxed);
        Trouble::Wait(format!("the database: {error}"))
    }
}

/// Returns the images of new records, with their hashes.
fn new_images<'a>(new: &'a [(&Good, &Known)]) -> impl Iterator<Item = (&'a Image, &'a str)> {
    new.iter().map(|(good, _)| (&good.image, good.image_sha256.as_str()))
}

pub(super) fn trouble(error: InboxError) -> Trouble {
    match error {
        InboxError::Broken(reason) => Trouble::Broken(reason),
        other => Trouble::Wait(other.to_string()),
    }
}

pub(super) fn image_trouble(error: ImageError) -> Trouble {
    match error {
        ImageError::Wait(reason) => Trouble::Wait(reason),
        ImageError::Broken(reason) => Trouble::Broken(reason),
    }
}
