//! What the carriers of all blocks have in common. Main type: [`Shared`].

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

/// How often whoever waits looks whether it is to stop, and how often the inbox is looked at while there is room for more blocks.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What the carriers of all blocks have in common.
pub(super) struct Shared {
    pub(super) bucket: Bucket,
    pub(super) taking: Arc<Taking>,
    pub(super) meter: Arc<Meter>,
    pub(super) stop: Arc<Stop>,
    pub(super) puts: Semaphore,
    /// When this forwarding began: of blocks that came later, nothing can be in the bucket.
    pub(super) began_ns: i64,
    /// Who is to be woken when something is said about an object.
    pub(super) calls: Mutex<HashMap<String, Arc<Notify>>>,
    /// Whether something may be left in the bucket of a block that is not under way.
    pub(super) is_untidy: AtomicBool,
    pub(super) station: String,
    /// Why it does not go on, once that was said.
    pub(super) trouble: Mutex<Option<Trouble>>,
}

impl Shared {
    /// From now on, who is woken when something is said about an object.
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

    /// Something came to nothing: it is said once.
    pub(super) fn note_trouble(&self, trouble: &Trouble) {
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            log::warning("forwarding waits", &[("reason", &trouble.to_string())]);
        }
        self.meter.is_connected.store(!matches!(trouble, Trouble::Away(_)), Ordering::Relaxed);
        *known = Some(trouble.clone());
    }

    /// The server answers again; `has_room` when it took something in.
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

/// Waits, as long as it is not stopped.
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
