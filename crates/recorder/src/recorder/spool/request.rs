//! Requests to the thread that writes the spool, and the state that it shares with everybody. Main types: [`Request`] and [`Shared`].

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

/// The result of an offer, and the lane in which it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Whether the offer was new.
    pub stored: Stored,
    /// The offer's own lane, or that of a greedy source.
    pub lane: u32,
}

pub(super) type Appended = Result<Placed, SpoolError>;

/// A record that the database refused, with its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The record's entry; its body is not read.
    pub entry: Arc<Entry>,
    /// The record's number and the reason.
    pub refusal: Refusal,
    /// Whether the entry is in the spool; if not, being quarantined acknowledges the record.
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
    /// Asks which records of these messages came here before.
    WereKept(Vec<Asked>, oneshot::Sender<Result<Vec<WasKept>, SpoolError>>),
    SetApart(Vec<Apart>, oneshot::Sender<Result<(), SpoolError>>),
    Rejoin(u32, oneshot::Sender<Result<(), SpoolError>>),
    Defer(Vec<Deferred>, oneshot::Sender<Result<(), SpoolError>>),
    Clear(Clearing, Span, oneshot::Sender<Result<Portion, SpoolError>>),
    /// Asks for nothing; that the thread takes it is the answer.
    Look,
}

/// State that every holder of a handle may read.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) counts: Counts,
    /// The sequence of the newest durable entry.
    pub(super) newest: i64,
    /// The lane of each measurement whose records wait apart.
    pub(super) apart: Arc<ApartLanes>,
    /// Why the last group was not stored; `None` unless the disk was full.
    pub(super) full: Option<String>,
    pub(super) broken: Option<SpoolError>,
    /// How the quarantine is shared among senders.
    pub(super) quarantine: Arc<QuarantineView>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) changed: Condvar,
    pub(super) pulse: Pulse,
    /// Whether any sender is closed out, so that most requests need not ask which.
    pub(super) closes_any: AtomicBool,
    /// Whether message ids are remembered, so that most callers need not ask for them.
    pub(super) has_ids: AtomicBool,
    /// When the thread was last asked to do its periodic work.
    looked: Mutex<Option<Instant>>,
}

impl Shared {
    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the last look was requested at least this long ago; if so, counts one as requested now.
    pub(super) fn is_look_due(&self, now: Instant, after: Duration) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = looked.is_none_or(|looked| now.saturating_duration_since(looked) >= after);
        if is_due {
            *looked = Some(now);
        }
        is_due
    }
}
