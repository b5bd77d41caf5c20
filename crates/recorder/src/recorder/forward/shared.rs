//! State that the carriers of all blocks share. Main type: [`Shared`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore};

use super::Meter;
use crate::recorder::bucket::{Bucket, Trouble};
use crate::recorder::inbox::Taking;
use crate::recorder::log;
use crate::recorder::stop::Stop;

/// How often a waiting carrier checks whether it is to stop, and how often the inbox is read while there is room for more blocks.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// State that the carriers of all blocks share.
pub(super) struct Shared {
    pub(super) bucket: Bucket,
    pub(super) taking: Arc<Taking>,
    pub(super) meter: Arc<Meter>,
    pub(super) stop: Arc<Stop>,
    pub(super) puts: Semaphore,
    /// When this forwarding began, in nanoseconds since 1970; the bucket can hold nothing of blocks that arrived later.
    pub(super) began_ns: i64,
    /// The carriers to wake when a hint about their object arrives, by the name of the object.
    pub(super) calls: Mutex<HashMap<String, Arc<Notify>>>,
    /// True if the bucket may hold remains of a block that is not under way.
    pub(super) is_untidy: AtomicBool,
    pub(super) station: String,
    /// The last trouble, once it was logged; `None` while all goes well.
    pub(super) trouble: Mutex<Option<Trouble>>,
}

impl Shared {
    /// Returns the [`Notify`] that wakes the caller from now on when a hint about the object arrives.
    pub(super) fn call_me(&self, name: &str) -> Arc<Notify> {
        let call = Arc::new(Notify::new());
        self.calls().insert(name.to_owned(), Arc::clone(&call));
        call
    }

    pub(super) fn hang_up(&self, name: &str) {
        self.calls().remove(name);
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a failed operation; trouble that lasts is logged once.
    pub(super) fn note_trouble(&self, trouble: &Trouble) {
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            log::warning("forwarding waits", &[("reason", &trouble.to_string())]);
        }
        self.meter.is_connected.store(!matches!(trouble, Trouble::Away(_)), Ordering::Relaxed);
        *known = Some(trouble.clone());
    }

    /// Notes that the server answers again; `has_room` if it also stored something.
    pub(super) fn note_success(&self, has_room: bool) {
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if known.take_if(|trouble| has_room || !matches!(trouble, Trouble::Full(_))).is_some() {
            log::info("forwarding goes on", &[]);
        }
        self.meter.is_connected.store(true, Ordering::Relaxed);
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Waits for `time`, or until a stop is asked for.
pub(super) async fn pause(stop: &Stop, time: Duration) {
    let until = Instant::now() + time;
    while !stop.is_asked() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK_EVERY)).await;
    }
}
