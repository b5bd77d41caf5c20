//! The intake's end of the inbox. Main type: [`Receiving`].

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::usage::{self, Usage};
use super::{Inbox, InboxError, Upload, check_camera, check_name, misplaced, unusable};
use crate::recorder::clock::now_ns;
use crate::recorder::lock::Lock;

/// How often to check that the folder is still in its place, while nothing is acknowledged.
const LOOK_AFTER: Duration = Duration::from_millis(500);

/// Receives uploads. Cheap to clone; the intake lives as long as the last clone or upload.
#[derive(Debug, Clone)]
pub struct Receiving {
    pub(super) inbox: Inbox,
    pub(super) shared: Arc<Shared>,
}

/// State that all uploads of an intake share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The prefix of its unfinished files.
    id: String,
    next: AtomicU64,
    usage: Mutex<Usage>,
    broken: Mutex<Option<InboxError>>,
    acknowledged: AtomicU64,
    lock: Lock,
    /// When the place of the folder was last checked.
    looked: Mutex<Instant>,
}

impl Receiving {
    /// Starts a new intake. Unfinished uploads of intakes that are gone are removed.
    ///
    /// # Errors
    /// [`InboxError::Unusable`] if the folder cannot be read or written.
    pub fn start(inbox: &Inbox) -> Result<Self, InboxError> {
        // Only one intake starts at a time, so that a free lock is that of an intake that is gone, and not of one that starts.
        let path = inbox.path().join("intakes").join("starting");
        let _starting = Lock::wait(&path).map_err(|error| unusable(&path, &error))?;
        remove_leftovers(inbox)?;
        let id = format!("{:x}-{:x}", std::process::id(), now_ns());
        let path = inbox.path().join("intakes").join(format!("{id}.lock"));
        let lock = Lock::try_take(&path).map_err(|error| unusable(&path, &error))?;
        let lock = lock.ok_or_else(|| unusable(&path, &"it is locked although it is new"))?;
        let shared = Shared {
            id,
            next: AtomicU64::new(0),
            usage: Mutex::default(),
            broken: Mutex::default(),
            acknowledged: AtomicU64::new(0),
            lock,
            looked: Mutex::new(Instant::now()),
        };
        Ok(Receiving { inbox: inbox.clone(), shared: Arc::new(shared) })
    }

    /// Begins an upload. Blocks the thread, as all functions here.
    ///
    /// # Errors
    /// If a name is not allowed, there is no room, or the inbox is broken.
    pub fn begin(&self, camera: &str, name: &str) -> Result<Upload, InboxError> {
        check_camera(camera)?;
        check_name(name)?;
        if let Some(broken) = self.broken() {
            return Err(broken);
        }
        self.usage().ask(&self.inbox, camera)?;
        self.inbox.make_directory(&self.inbox.incoming(camera))?;
        self.inbox.make_directory(&self.inbox.received(camera))?;
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let part = self.inbox.incoming(camera).join(format!("{}-{number}.part", self.shared.id));
        Upload::new(self.clone(), camera, name, part)
    }

    /// Returns the inbox.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// Checks whether an upload would be accepted now, so that it can be refused before it is sent.
    ///
    /// # Errors
    /// The reason why it would not.
    pub fn ask(&self, camera: &str) -> Result<(), InboxError> {
        check_camera(camera)?;
        self.broken().map_or(Ok(()), Err)?;
        self.usage().ask(&self.inbox, camera)
    }

    /// Returns why nothing is acknowledged any more; `None` while blocks are.
    pub fn broken(&self) -> Option<InboxError> {
        let is_due = {
            let mut looked = self.shared.looked.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = looked.elapsed() >= LOOK_AFTER;
            if is_due {
                *looked = Instant::now();
            }
            is_due
        };
        if is_due && let Err(error) = self.check_place() {
            return Some(error);
        }
        self.shared.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks that the folder is still in its place: blocks stored in another one would never be found.
    pub(super) fn check_place(&self) -> Result<(), InboxError> {
        if self.shared.lock.is_in_place() { Ok(()) } else { Err(self.set_broken(misplaced(&self.inbox))) }
    }

    /// Returns the number of blocks acknowledged since this intake started.
    pub fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::Relaxed)
    }

    pub(super) fn count_acknowledged(&self) {
        self.shared.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn usage(&self) -> MutexGuard<'_, Usage> {
        self.shared.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the inbox as broken: from now on nothing is acknowledged.
    pub(super) fn set_broken(&self, reason: String) -> InboxError {
        let mut broken = self.shared.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.get_or_insert(InboxError::Broken(reason)).clone()
    }
}

/// Removes the unfinished uploads of intakes whose lock is free or missing, and those locks.
fn remove_leftovers(inbox: &Inbox) -> Result<(), InboxError> {
    let intakes = inbox.path().join("intakes");
    let mut alive = BTreeSet::new();
    for name in usage::names(&intakes)? {
        let Some(id) = name.strip_suffix(".lock") else { continue };
        let path = intakes.join(&name);
        match Lock::try_take(&path).map_err(|error| unusable(&path, &error))? {
            Some(_held) => remove(&path)?,
            None => drop(alive.insert(id.to_owned())),
        }
    }
    for camera in usage::names(&inbox.cameras())? {
        let incoming = inbox.incoming(&camera);
        for part in usage::names(&incoming)? {
            if part.rsplit_once('-').is_none_or(|(id, _)| !alive.contains(id)) {
                remove(&incoming.join(part))?;
            }
        }
    }
    Ok(())
}

fn remove(path: &std::path::Path) -> Result<(), InboxError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unusable(path, &error)),
        _ => Ok(()),
    }
}
