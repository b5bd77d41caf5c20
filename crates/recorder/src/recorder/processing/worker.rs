//! The loop of the processing: moves batch after batch from the inbox into the database. Main type: [`Worker`].
//!
//! While one batch waits for the disk and the database, the next is opened, so that one core is never idle.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Meter;
use super::batch::{Judged, Rules, open_all};
use super::conclude::{Concluded, Concluding, Trouble, image_trouble, trouble};
use super::dates::Dates;
use super::images::{ImageError, Images};
use super::keys::Keys;
use super::tables::Form;
use crate::block::{Limits, Opener};
use crate::database::Database;
use crate::recorder::config::ProcessingConfig;
use crate::recorder::inbox::{Taking, Waiting};
use crate::recorder::log;
use crate::recorder::stop::Stop;
use crate::recorder::writer::Backoff;

/// How often an empty inbox is read.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bytes of the blocks of a batch above which no further block is added.
const BATCH_BYTES: u64 = 16 << 20;

/// The most blocks in one listing: each listing reads all names of the inbox.
const LISTED_MAX: usize = 4_096;

/// All that processing needs.
pub(super) struct Worker {
    opening: Opening,
    concluding: Concluding,
    /// Blocks that waited at the last listing; they may be gone by now.
    listed: VecDeque<Waiting>,
    /// The batch that was opened while the last one was concluded.
    ahead: Option<Batch>,
    backoff: Backoff,
    stop: Arc<Stop>,
    waits: bool,
}

/// The keys and rules for opening blocks.
struct Opening {
    keys: Keys,
    openers: Vec<Opener>,
    images: Arc<Images>,
    dates: Dates,
}

/// Blocks, and the result of opening each.
struct Batch {
    waiting: Vec<Waiting>,
    judged: Vec<Judged>,
}

impl Opening {
    fn open(&mut self, waiting: Vec<Waiting>) -> Result<Batch, ImageError> {
        let now_ns = Dates::now_ns().map_err(ImageError::Wait)?;
        let rules = Rules { signers: &self.keys.signers, dates: self.dates, now_ns };
        let judged = open_all(&waiting, &mut self.openers, &rules, &self.images)?;
        Ok(Batch { waiting, judged })
    }
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
        let images = Arc::new(Images::open(settings)?);
        let with = (taking, Arc::clone(&images));
        Ok(Worker {
            opening: Opening { keys, openers, images, dates: settings.dates },
            concluding: Concluding::new(form, settings.batch as usize, with, database, meter),
            listed: VecDeque::new(),
            ahead: None,
            backoff: Backoff::new(Duration::from_millis(50), Duration::from_secs(5), u64::from(std::process::id())),
            stop,
            waits: false,
        })
    }

    /// Works until a stop is asked for.
    ///
    /// # Errors
    /// The reason why nothing can be promised any more.
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
                    self.forget();
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

    /// Forgets blocks that were listed or opened before, which cannot be trusted any more.
    fn forget(&mut self) {
        self.listed.clear();
        self.ahead = None;
    }

    /// Returns the next listed blocks, in order of arrival: not too many, and not too large in all.
    fn next(&mut self) -> Vec<Waiting> {
        let most = self.concluding.most();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < most && bytes < BATCH_BYTES {
            let Some(waiting) = self.listed.pop_front() else { break };
            bytes += waiting.bytes;
            batch.push(waiting);
        }
        batch
    }

    /// Processes one batch; returns how many blocks were concluded.
    fn round(&mut self) -> Result<usize, Trouble> {
        self.opening.keys.refresh();
        self.concluding.connect()?;
        let batch = match self.ahead.take() {
            Some(batch) => batch,
            None => {
                if self.listed.is_empty() {
                    self.listed = self.concluding.taking.next(LISTED_MAX).map_err(trouble)?.into();
                }
                let waiting = self.next();
                if waiting.is_empty() {
                    return Ok(0);
                }
                self.opening.open(waiting).map_err(image_trouble)?
            }
        };
        if self.conclude(&batch)? == Concluded::OneByOne {
            self.forget();
        }
        Ok(batch.judged.iter().filter(|judged| !matches!(judged, Judged::Unread(_))).count())
    }

    /// Concludes a batch and opens the next meanwhile, from blocks that are listed already: a new listing would contain those again that are
    /// being concluded.
    fn conclude(&mut self, batch: &Batch) -> Result<Concluded, Trouble> {
        let waiting = if self.concluding.most() > 1 { self.next() } else { Vec::new() };
        let (opening, concluding) = (&mut self.opening, &mut self.concluding);
        let waiting = Mutex::new(Some(waiting).filter(|waiting| !waiting.is_empty()));
        let taken = || waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let has_waiting = waiting.lock().is_ok_and(|waiting| waiting.is_some());
        let (concluded, mut ahead) = std::thread::scope(|scope| {
            let open = || taken().map(|waiting| opening.open(waiting));
            let begin = || std::thread::Builder::new().name("opening".to_owned()).spawn_scoped(scope, open);
            let ahead = has_waiting.then(begin).and_then(Result::ok);
            let concluded = concluding.conclude(&batch.waiting, &batch.judged);
            let lost = |_| Some(Err(ImageError::Broken("a worker panicked".to_owned())));
            (concluded, ahead.and_then(|ahead| ahead.join().unwrap_or_else(lost)))
        });
        // The system gave no thread.
        if let Some(waiting) = taken() {
            ahead = Some(self.opening.open(waiting));
        }
        self.ahead = ahead.transpose().map_err(image_trouble)?;
        concluded
    }
}
