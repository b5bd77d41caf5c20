//! What the thread that writes the spool is asked for, and what everybody may look at. Main types: [`Request`] and [`Shared`].

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::counts::Counts;
use super::quarantine::{Clearing, Portion, Span};
use super::{
    Apart, ApartLanes, Asked, Deferred, Entry, LaneNews, LaneOpening, Offer, QuarantineView, Refusal, SpoolError,
    Stored, WasKept,
};
use crate::recorder::pulse::Pulse;

/// What became of an offer, and the lane in which it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Whether it was new.
    pub stored: Stored,
    /// Its own lane, or that of a greedy source.
    pub lane: u32,
}

pub(super) type Appended = Result<Placed, SpoolError>;

/// A record that the database refused, with its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The entry; its body is not read.
    pub entry: Arc<Entry>,
    /// The record and the reason.
    pub refusal: Refusal,
    /// Whether the entry is in the spool; if not, it is acknowledged by being quarantined.
    pub is_spooled: bool,
}

pub(super) enum Request {
    Append {
        offer: Offer,
        is_greedy: bool,
        answer: oneshot::Sender<Appended>,
    },
    Settle {
        lane: u32,
        through: i64,
    },
    Quarantine(Vec<Refused>, oneshot::Sender<Result<(), SpoolError>>),
    Note(u32, LaneNews, oneshot::Sender<Result<LaneOpening, SpoolError>>),
    /// Which records of these messages came here before.
    WereKept(Vec<Asked>, oneshot::Sender<Result<Vec<WasKept>, SpoolError>>),
    SetApart(Vec<Apart>, oneshot::Sender<Result<(), SpoolError>>),
    Rejoin(u32, oneshot::Sender<Result<(), SpoolError>>),
    Defer(Vec<Deferred>, oneshot::Sender<Result<(), SpoolError>>),
    Clear(Clearing, Span, oneshot::Sender<Result<Portion, SpoolError>>),
    /// Nothing is to be done; that it was taken is the answer.
    Look,
}

/// What everybody may look at.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) counts: Counts,
    /// Sequence of the newest entry that is durable.
    pub(super) newest: i64,
    /// What waits apart.
    pub(super) apart: Arc<ApartLanes>,
    /// Why the last group was not stored, where the disk was full.
    pub(super) full: Option<String>,
    pub(super) broken: Option<SpoolError>,
    /// How the quarantine is shared.
    pub(super) quarantine: Arc<QuarantineView>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) changed: Condvar,
    pub(super) pulse: Pulse,
    /// Whether the door is closed for anybody, so that most requests need not ask who it is.
    pub(super) closes_any: AtomicBool,
    /// Whether ids of messages are remembered, so that most who ask for some need not.
    pub(super) has_ids: AtomicBool,
    /// When the thread was asked last to look after what is not asked for.
    looked: Mutex<Option<Instant>>,
}

impl Shared {
    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the last look was asked for so long ago; if so, one is asked for now.
    pub(super) fn is_look_due(&self, now: Instant, after: Duration) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = looked.is_none_or(|looked| now.saturating_duration_since(looked) >= after);
        if is_due {
            *looked = Some(now);
        }
        is_due
    }
}
