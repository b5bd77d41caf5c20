//! Group commit: one thread that writes the spool, with one sync for all requests that came during the previous sync.
//!
//! Main types: [`Committer`], which starts and ends the thread, and [`CommitterHandle`], through which others send it requests.
//!
//! Invariant: an answer is sent after the sync of the change that it confirms.

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod caught;
#[cfg(any(test, feature = "simulated"))]
mod here;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::counts::Counts;
use super::quarantine::{Clearing, Portion, Span};
use super::request::{Placed, Refused, Request, Shared, State};
use super::worker::Worker;
use super::{
    Apart, ApartLanes, Asked, Deferred, LaneNews, LaneOpening, Offer, QuarantineView, SpoolError, SpoolFile, WasKept,
    holder_of,
};
use crate::recorder::clock::SharedClock;

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use caught::Caught;
#[cfg(any(test, feature = "simulated"))]
use here::Here;

/// The channel for the answer to a request.
type Answering<T> = oneshot::Sender<Result<T, SpoolError>>;

/// How often the thread is woken for its periodic work.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// The most requests that may wait for the thread.
const QUEUE_MAX: usize = 4_096;

/// The thread that writes the spool.
#[derive(Debug)]
pub struct Committer {
    thread: JoinHandle<()>,
}

/// A handle to the thread; the thread ends when the last handle is dropped.
#[derive(Clone)]
pub struct CommitterHandle {
    requests: mpsc::Sender<Request>,
    shared: Arc<Shared>,
    compresses: bool,
    clock: SharedClock,
    /// The stand-in that does the thread's work where there is no thread.
    #[cfg(any(test, feature = "simulated"))]
    here: Option<Here>,
}

impl Committer {
    /// Starts the thread for an open spool.
    ///
    /// # Errors
    /// Returns an error if the system cannot start another thread.
    pub fn start(file: SpoolFile) -> std::io::Result<(Committer, CommitterHandle)> {
        let (handle, worker) = CommitterHandle::over(file);
        let thread = std::thread::Builder::new().name("spool".to_owned()).spawn(move || worker.work())?;
        Ok((Committer { thread }, handle))
    }

    /// Waits until the thread has ended, after the last handle was dropped.
    pub fn join(self) {
        // A panic of the thread has been printed; what it had not answered was not acknowledged.
        let _ = self.thread.join();
    }
}

impl CommitterHandle {
    /// Returns a handle, and the worker that does what the handle asks for.
    fn over(file: SpoolFile) -> (CommitterHandle, Worker) {
        let (requests, receiver) = mpsc::channel(QUEUE_MAX);
        let shared = Arc::new(Shared::default());
        let (compresses, clock) = (file.compresses, SharedClock::clone(&file.clock));
        let worker = Worker::new(file, receiver, Arc::clone(&shared));
        let handle = CommitterHandle {
            requests,
            shared,
            compresses,
            clock,
            #[cfg(any(test, feature = "simulated"))]
            here: None,
        };
        (handle, worker)
    }

    /// Sends a request, and waits for room in the queue.
    fn ask(&self, request: Request) -> Result<(), SpoolError> {
        let asked = self.requests.blocking_send(request).map_err(|_| ended());
        self.work_here();
        asked
    }

    async fn ask_async(&self, request: Request) -> Result<(), SpoolError> {
        let asked = self.requests.send(request).await.map_err(|_| ended());
        self.work_here();
        asked
    }

    /// Sends a request if there is room in the queue. A full queue does not matter: the requests in it wake the thread as well.
    fn ask_if_room(&self, request: Request) {
        let _ = self.requests.try_send(request);
        self.work_here();
    }

    /// Sends a request, and waits for the answer.
    fn answer<T>(&self, ask: impl FnOnce(Answering<T>) -> Request) -> Result<T, SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.ask(ask(answer))?;
        answered.blocking_recv().unwrap_or_else(|_| Err(self.broken().unwrap_or_else(ended)))
    }

    async fn answer_async<T>(&self, ask: impl FnOnce(Answering<T>) -> Request) -> Result<T, SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.ask_async(ask(answer)).await?;
        answered.await.unwrap_or_else(|_| Err(self.broken().unwrap_or_else(ended)))
    }

    #[cfg(any(test, feature = "simulated"))]
    fn work_here(&self) {
        if let Some(here) = &self.here {
            here.work();
        }
    }

    #[cfg(not(any(test, feature = "simulated")))]
    fn work_here(&self) {}

    /// Stores an offer, and returns when it is durable. An offer of a source that sends more than its share waits in another lane than the source's own.
    ///
    /// # Errors
    /// [`SpoolError::Full`]; [`SpoolError::Unknown`] if the disk failed while the offer was written, and [`SpoolError::Broken`] for ever after.
    pub async fn append(&self, offer: Offer, is_greedy: bool) -> Result<Placed, SpoolError> {
        // Each caller compresses its own offer, so that this does not hold up the one thread that writes.
        let offer = if self.compresses { offer.packed() } else { offer };
        let (answer, answered) = oneshot::channel();
        self.ask_async(Request::Append { offer, is_greedy, answer }).await?;
        // A thread that ended in a panic may have stored the offer.
        answered.await.unwrap_or_else(|_| Err(SpoolError::Unknown("its thread has ended".to_owned())))
    }

    /// Forgets entries that are known to be committed or quarantined. They are forgotten with the next sync, which may be after this returns.
    ///
    /// # Errors
    /// [`SpoolError::Broken`] if the thread has ended.
    pub fn settle(&self, lane: u32, through: i64) -> Result<(), SpoolError> {
        self.ask(Request::Settle { lane, through })
    }

    /// Keeps refused records, and returns when they are durable.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn quarantine(&self, refused: Vec<Refused>) -> Result<(), SpoolError> {
        self.answer(|answer| Request::Quarantine(refused, answer))
    }

    /// Notes what a lane has found out about its opening; returns, when that is durable, what the lane then shows to the ledger.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn note(&self, lane: u32, news: LaneNews) -> Result<LaneOpening, SpoolError> {
        self.answer(|answer| Request::Note(lane, news, answer))
    }

    /// Takes records out of their entries, to wait apart, and returns when that is durable.
    ///
    /// # Errors
    /// [`SpoolError::Full`] if nothing was done for want of room; otherwise the error of the disk.
    pub fn set_apart(&self, apart: Vec<Apart>) -> Result<(), SpoolError> {
        self.answer(|answer| Request::SetApart(apart, answer))
    }

    /// Returns which records of these messages, none of which was ever in the spool, reached it when they were sent before.
    ///
    /// # Errors
    /// [`SpoolError::Broken`] if the thread has ended.
    pub fn were_kept(&self, messages: Vec<Asked>) -> Result<Vec<WasKept>, SpoolError> {
        self.answer(|answer| Request::WereKept(messages, answer))
    }

    /// Returns whether the spool remembers any message ids.
    pub fn has_ids(&self) -> bool {
        self.shared.has_ids.load(Ordering::Relaxed)
    }

    /// Lets the measurements that wait in a lane go with all others again, if nothing waits there.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn rejoin(&self, lane: u32) -> Result<(), SpoolError> {
        self.answer(|answer| Request::Rejoin(lane, answer))
    }

    /// Takes refused records out of their entries, to wait for room in quarantine, and returns when that is durable.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn defer(&self, deferred: Vec<Deferred>) -> Result<(), SpoolError> {
        self.answer(|answer| Request::Defer(deferred, answer))
    }

    /// Replays or discards the next records of a span, and returns when that is durable. A replay leaves half of the spool to others.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub async fn clear(&self, what: Clearing, span: Span) -> Result<Portion, SpoolError> {
        self.answer_async(|answer| Request::Clear(what, span, answer)).await
    }

    /// Returns how the quarantine is shared among senders.
    pub fn quarantine_view(&self) -> Arc<QuarantineView> {
        Arc::clone(&self.shared.lock().quarantine)
    }

    /// Returns why nothing more is taken in from a sender, if it holds more than its share of the quarantine; `None` otherwise.
    pub fn why_closed(&self, sender: &str, source: &str) -> Option<String> {
        if !self.shared.closes_any.load(Ordering::Relaxed) {
            return None;
        }
        self.quarantine_view().why_closed(&holder_of(sender, source))
    }

    /// Returns the lane of each measurement whose records wait apart.
    pub fn apart(&self) -> Arc<ApartLanes> {
        Arc::clone(&self.shared.lock().apart)
    }

    /// Returns why nothing can be stored at present because the disk is full; `None` if it is not.
    pub fn full(&self) -> Option<String> {
        self.shared.lock().full.clone()
    }

    /// Asks the thread for a write that changes nothing, to find out whether the disk is still full.
    pub fn try_again(&self) {
        self.ask_if_room(Request::Rejoin(u32::MAX, oneshot::channel().0));
    }

    /// Async form of [`CommitterHandle::quarantine`].
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub async fn quarantine_async(&self, refused: Vec<Refused>) -> Result<(), SpoolError> {
        self.answer_async(|answer| Request::Quarantine(refused, answer)).await
    }

    /// Returns the counters as of the last sync.
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts
    }

    /// Returns a function that reads the counters without keeping the thread alive.
    pub fn counts_reader(&self) -> impl Fn() -> Counts + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.lock().counts
    }

    /// Returns the counters after the thread has done everything that it was asked to. This must be the last handle.
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

    /// Returns whether the thread has done nothing for this long. The thread works only on request, so this sends one.
    pub fn is_stuck(&self, within: Duration) -> bool {
        self.ask_if_room(Request::Look);
        self.shared.pulse.is_stuck(within)
    }

    /// Returns why nothing is acknowledged any more; `None` while the spool works.
    pub fn broken(&self) -> Option<SpoolError> {
        self.shared.lock().broken.clone()
    }

    /// Waits until an entry behind this sequence is durable or the time is over, and returns the newest sequence known.
    pub fn wait_for_more(&self, after: i64, within: Duration) -> i64 {
        // While no entries come, the thread has yet to write its marks.
        if self.shared.is_look_due(self.clock.now(), LOOK_AFTER) {
            self.ask_if_room(Request::Look);
        }
        let waits = |state: &mut State| state.newest <= after && state.broken.is_none();
        let mut state = self.shared.lock();
        let is_waiting = waits(&mut state);
        drop(state);
        if is_waiting && self.clock.pass(within) {
            return self.shared.lock().newest;
        }
        let state = self.shared.lock();
        match self.shared.changed.wait_timeout_while(state, within, waits) {
            Ok((state, _)) => state.newest,
            Err(_) => after,
        }
    }

    /// Wakes all threads that wait for entries.
    pub fn wake(&self) {
        self.shared.changed.notify_all();
    }
}

fn ended() -> SpoolError {
    SpoolError::Broken("its thread has ended".to_owned())
}
