//! Group commit: one thread that writes the spool, with one sync for all that came while the last one took its time.
//!
//! Main types: [`Committer`], which starts and ends the thread, and [`CommitterHandle`], which others speak to it with.
//!
//! Invariant: an answer is sent after the sync of what it answers.

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod caught;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};

use super::quarantine::{Clearing, Portion, Refusal, Span};
use super::worker::Worker;
use super::{
    Apart, ApartLanes, Counts, Deferred, Entry, LaneNews, LaneOpening, Offer, QuarantineView, SpoolError, SpoolFile,
    Stored, holder_of,
};
use crate::recorder::pulse::Pulse;

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use caught::Caught;

/// Requests that may wait for the thread.
const QUEUE_MAX: usize = 4_096;

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
}

/// The thread that writes.
#[derive(Debug)]
pub struct Committer {
    thread: JoinHandle<()>,
}

/// Speaks to the thread; the thread ends when the last one is dropped.
#[derive(Clone)]
pub struct CommitterHandle {
    requests: mpsc::Sender<Request>,
    shared: Arc<Shared>,
}

impl Committer {
    /// Starts the thread over an opened file.
    pub fn start(file: SpoolFile) -> (Committer, CommitterHandle) {
        let (requests, receiver) = mpsc::channel(QUEUE_MAX);
        let shared = Arc::new(Shared::default());
        let worker = Worker::new(file, receiver, Arc::clone(&shared));
        let work = move || worker.work();
        let thread = std::thread::Builder::new().name("spool".to_owned()).spawn(work);
        let thread = thread.expect("the system has a thread left for the spool");
        (Committer { thread }, CommitterHandle { requests, shared })
    }

    /// Waits until the thread has ended, after the last handle was dropped.
    pub fn join(self) {
        // A panic of the thread has been printed; what it had not answered was not acknowledged.
        let _ = self.thread.join();
    }
}

impl Shared {
    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommitterHandle {
    /// Stores an offer; comes back when it is durable. That of a source that sends more than its share waits in another lane than its own.
    ///
    /// # Errors
    /// [`SpoolError::Full`]; [`SpoolError::Unknown`] when the disk failed under it, and [`SpoolError::Broken`] for ever after.
    pub async fn append(&self, offer: Offer, is_greedy: bool) -> Result<Placed, SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Append { offer, is_greedy, answer }).await.map_err(|_| ended())?;
        // A thread that ended in a panic may have stored it.
        answered.await.unwrap_or_else(|_| Err(SpoolError::Unknown("its thread has ended".to_owned())))
    }

    /// Forgets what is known to be committed or quarantined; with the next sync, not before this comes back.
    ///
    /// # Errors
    /// [`SpoolError::Broken`] when the thread has ended.
    pub fn settle(&self, lane: u32, through: i64) -> Result<(), SpoolError> {
        self.requests.blocking_send(Request::Settle { lane, through }).map_err(|_| ended())
    }

    /// Keeps refused records; comes back when they are durable.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn quarantine(&self, refused: Vec<Refused>) -> Result<(), SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.blocking_send(Request::Quarantine(refused, answer)).map_err(|_| ended())?;
        answered.blocking_recv().unwrap_or_else(|_| Err(self.broken().unwrap_or_else(ended)))
    }

    /// Notes what a lane has found out about its opening; comes back when that is durable, with what the lane shows to the ledger then.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn note(&self, lane: u32, news: LaneNews) -> Result<LaneOpening, SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.blocking_send(Request::Note(lane, news, answer)).map_err(|_| ended())?;
        answered.blocking_recv().unwrap_or_else(|_| Err(self.broken().unwrap_or_else(ended)))
    }

    /// Takes records out of their entries, to wait apart; comes back when that is durable.
    ///
    /// # Errors
    /// [`SpoolError::Full`], nothing was done then; or as the disk fails.
    pub fn set_apart(&self, apart: Vec<Apart>) -> Result<(), SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.blocking_send(Request::SetApart(apart, answer)).map_err(|_| ended())?;
        answered.blocking_recv().unwrap_or_else(|_| Err(self.broken().unwrap_or_else(ended)))
    }

    /// The measurements that wait in a lane go with all others again, if nothing waits there.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn rejoin(&self, lane: u32) -> Result<(), SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.blocking_send(Request::Rejoin(lane, answer)).map_err(|_| ended())?;
        answered.blocking_recv().unwrap_or_else(|_| Err(self.broken().unwrap_or_else(ended)))
    }

    /// Takes refused records out of their entries, to wait for room in quarantine; comes back when that is durable.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn defer(&self, deferred: Vec<Deferred>) -> Result<(), SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.blocking_send(Request::Defer(deferred, answer)).map_err(|_| ended())?;
        answered.blocking_recv().unwrap_or_else(|_| Err(self.broken().unwrap_or_else(ended)))
    }

    /// Replays or discards the next records of a span; comes back when that is durable. What is replayed leaves half of the spool to others.
    ///
    /// # Errors
    /// As the disk fails.
    pub async fn clear(&self, what: Clearing, span: Span) -> Result<Portion, SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Clear(what, span, answer)).await.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(self.broken().unwrap_or_else(ended)))
    }

    /// How the quarantine is shared.
    pub fn quarantine_view(&self) -> Arc<QuarantineView> {
        Arc::clone(&self.shared.lock().quarantine)
    }

    /// Why nothing more is taken in from a sender, if it holds more of the quarantine than its share.
    pub fn why_closed(&self, sender: &str, source: &str) -> Option<String> {
        if !self.shared.closes_any.load(Ordering::Relaxed) {
            return None;
        }
        self.quarantine_view().why_closed(&holder_of(sender, source))
    }

    /// The lane in which the records of each measurement wait, of those that do.
    pub fn apart(&self) -> Arc<ApartLanes> {
        Arc::clone(&self.shared.lock().apart)
    }

    /// Why nothing can be stored at present, if that is so: the disk is full.
    pub fn full(&self) -> Option<String> {
        self.shared.lock().full.clone()
    }

    /// Tries to store something that changes nothing, to find out whether the disk is still full.
    pub fn try_again(&self) {
        // Where many requests wait, the next one finds out.
        let _ = self.requests.try_send(Request::Rejoin(u32::MAX, oneshot::channel().0));
    }

    /// As [`CommitterHandle::quarantine`], for tasks.
    ///
    /// # Errors
    /// As the disk fails.
    pub async fn quarantine_async(&self, refused: Vec<Refused>) -> Result<(), SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Quarantine(refused, answer)).await.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(self.broken().unwrap_or_else(ended)))
    }

    /// The counters as of the last sync.
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts
    }

    /// What reads the counters without keeping the thread alive.
    pub fn counts_reader(&self) -> impl Fn() -> Counts + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.lock().counts
    }

    /// The counters after the thread has done everything that it was asked to. This must be the last handle.
    pub fn into_last_counts(self, committer: Committer) -> Counts {
        let shared = Arc::clone(&self.shared);
        drop(self);
        committer.join();
        shared.lock().counts
    }

    /// Counts records that were committed without having been spooled.
    pub fn count_unspooled(&self, committed: u64) {
        let mut state = self.shared.lock();
        state.counts.acknowledged += committed;
        state.counts.committed += committed;
    }

    /// Whether the thread has done nothing for this long. It moves when it is asked for something, and this asks.
    pub fn is_stuck(&self, within: Duration) -> bool {
        // Where many requests wait, it moves with each of them.
        let _ = self.requests.try_send(Request::Look);
        self.shared.pulse.is_stuck(within)
    }

    /// Why nothing is acknowledged any more, if that is so.
    pub fn broken(&self) -> Option<SpoolError> {
        self.shared.lock().broken.clone()
    }

    /// Waits until an entry behind this sequence is durable, or the time is over; the newest sequence known.
    pub fn wait_for_more(&self, after: i64, within: Duration) -> i64 {
        let state = self.shared.lock();
        let waits = |state: &mut State| state.newest <= after && state.broken.is_none();
        match self.shared.changed.wait_timeout_while(state, within, waits) {
            Ok((state, _)) => state.newest,
            Err(_) => after,
        }
    }

    /// Wakes those that wait.
    pub fn wake(&self) {
        self.shared.changed.notify_all();
    }
}

fn ended() -> SpoolError {
    SpoolError::Broken("its thread has ended".to_owned())
}

/// Nanoseconds since 1970.
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A number for what was never in the spool, where quarantine wants that of an entry: below 0, and another one each time.
pub fn unspooled_number() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let next = |last: i64| (-now_ns()).min(last - 1);
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))).map_or(-now_ns(), next)
}
