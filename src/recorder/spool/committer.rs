//! Group commit: one thread that writes the spool, with one sync for all that came while the last one took its time.
//!
//! Main types: [`Committer`], which starts and ends the thread, and [`CommitterHandle`], which others speak to it with.
//!
//! Invariant: an answer is sent after the sync of what it answers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{mpsc, oneshot};

use super::file::Group;
use super::quarantine::Refusal;
use super::{Apart, ApartLanes, Counts, Entry, LaneNews, LaneOpening, Offer, SpoolError, SpoolFile, Stored};
use crate::recorder::log;

/// Requests that may wait for the thread.
const QUEUE_MAX: usize = 4_096;
/// A group is closed behind this many bytes.
const GROUP_BYTES: u64 = 16 << 20;

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

enum Request {
    Append(Offer, oneshot::Sender<Result<Stored, SpoolError>>),
    Settle { lane: u32, through: i64 },
    Quarantine(Vec<Refused>, oneshot::Sender<Result<(), SpoolError>>),
    Note(u32, LaneNews, oneshot::Sender<Noted>),
    SetApart(Vec<Apart>, oneshot::Sender<Result<(), SpoolError>>),
    Rejoin(u32, oneshot::Sender<Result<(), SpoolError>>),
}

/// What everybody may look at.
#[derive(Debug, Default)]
struct State {
    counts: Counts,
    /// Sequence of the newest entry that is durable.
    newest: i64,
    /// What waits apart.
    apart: Arc<ApartLanes>,
    /// Why the last group was not stored, where the disk was full.
    full: Option<String>,
    broken: Option<SpoolError>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
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
        shared.lock().counts = file.counts();
        // A file that cannot be read here fails with the first entry.
        shared.lock().apart = Arc::new(file.apart().unwrap_or_default());
        let for_thread = Arc::clone(&shared);
        let work = move || {
            Worker {
                file,
                receiver,
                shared: for_thread,
                next_forget: Instant::now(),
                was_told_of_ids: false,
                unsettled: BTreeMap::new(),
            }
            .work()
        };
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
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommitterHandle {
    /// Stores an offer; comes back when it is durable.
    ///
    /// # Errors
    /// [`SpoolError::Full`]; [`SpoolError::Unknown`] when the disk failed under it, and [`SpoolError::Broken`] for ever after.
    pub async fn append(&self, offer: Offer) -> Result<Stored, SpoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Append(offer, answer)).await.map_err(|_| ended())?;
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
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A number for what was never in the spool, where quarantine wants that of an entry: below 0, and another one each time.
pub(crate) fn unspooled_number() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let next = |last: i64| (-now_ns()).min(last - 1);
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))).map_or(-now_ns(), next)
}

struct Worker {
    file: SpoolFile,
    receiver: mpsc::Receiver<Request>,
    shared: Arc<Shared>,
    next_forget: Instant,
    was_told_of_ids: bool,
    /// What could not be settled yet because the disk was full, by lane.
    unsettled: BTreeMap<u32, i64>,
}

type Appended = Result<Stored, SpoolError>;
type Noted = Result<LaneOpening, SpoolError>;

/// What is to be answered after the sync.
#[derive(Default)]
struct Answers {
    appended: Vec<(oneshot::Sender<Appended>, Appended)>,
    done: Vec<oneshot::Sender<Result<(), SpoolError>>>,
    noted: Vec<(oneshot::Sender<Noted>, Noted)>,
}

impl Worker {
    fn work(mut self) {
        while let Some(first) = self.receiver.blocking_recv() {
            let mut answers = Answers::default();
            match self.group(first, &mut answers) {
                Ok(()) => answers.send(),
                Err(error) => {
                    self.shared.lock().full = Some(error.to_string());
                    answers.fail(&error);
                    if let SpoolError::Broken(_) = error {
                        self.end(error);
                        return;
                    }
                }
            }
        }
    }

    /// Makes one group of what waits, and syncs it.
    fn group(&mut self, first: Request, answers: &mut Answers) -> Result<(), SpoolError> {
        let now = Instant::now();
        let (before, was_half_quarantine) = (self.file.counts(), self.file.is_half_quarantine());
        let (mut newest, mut changes_apart) = (0, false);
        let mut group = self.file.begin()?;
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Settle { lane, through } => {
                    let known = self.unsettled.entry(lane).or_insert(through);
                    *known = through.max(*known);
                }
                request => {
                    changes_apart |= matches!(request, Request::SetApart(..) | Request::Rejoin(..));
                    take(request, &mut group, answers, &mut newest)?;
                }
            }
            let is_full = group.counts().acknowledged - before.acknowledged > 200_000
                || group.counts().spooled_bytes.saturating_sub(before.spooled_bytes) > GROUP_BYTES;
            next = if is_full { None } else { self.receiver.try_recv().ok() };
        }
        let too_many = group.remembers_too_much();
        if too_many && !self.was_told_of_ids {
            self.was_told_of_ids = true;
            let remedy = "raise spool.bound, a quarter of which ids of messages may take";
            log::warning("ids of messages are forgotten before spool.remember is over", &[("remedy", remedy)]);
        }
        if too_many || now >= self.next_forget {
            let forgotten = group.forget_messages()?;
            let pause = if forgotten > 0 { Duration::from_millis(100) } else { Duration::from_secs(10) };
            self.next_forget = now + pause;
        }
        for (lane, through) in &self.unsettled {
            group.settle(*lane, *through)?;
        }
        group.commit()?;
        self.unsettled.clear();
        if self.file.is_half_quarantine() && !was_half_quarantine {
            let remedy = "look at it with --quarantine list, and replay or discard it";
            log::warning("the quarantine takes half of spool.bound", &[("remedy", remedy)]);
        }
        let apart = if changes_apart { Some(Arc::new(self.file.apart()?)) } else { None };
        let (after, mut state) = (self.file.counts(), self.shared.lock());
        state.apart = apart.unwrap_or_else(|| Arc::clone(&state.apart));
        // Records that were never spooled are counted there only.
        state.counts.acknowledged += after.acknowledged - before.acknowledged;
        state.counts.committed += after.committed - before.committed;
        state.full = None;
        let (acknowledged, committed) = (state.counts.acknowledged, state.counts.committed);
        state.counts = Counts { acknowledged, committed, ..after };
        state.newest = state.newest.max(newest);
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Refuses everything from now on, what waits included.
    fn end(&mut self, error: SpoolError) {
        self.shared.lock().broken = Some(error.clone());
        self.shared.changed.notify_all();
        self.receiver.close();
        while let Some(request) = self.receiver.blocking_recv() {
            let mut answers = Answers::default();
            match request {
                // Nothing of it was begun.
                Request::Append(_, answer) => drop(answer.send(Err(error.clone()))),
                Request::Quarantine(_, answer) | Request::SetApart(_, answer) | Request::Rejoin(_, answer) => {
                    answers.done.push(answer);
                }
                Request::Note(_, _, answer) => answers.noted.push((answer, Err(error.clone()))),
                Request::Settle { .. } => {}
            }
            answers.fail(&error);
        }
    }
}

fn take(request: Request, group: &mut Group<'_>, answers: &mut Answers, newest: &mut i64) -> Result<(), SpoolError> {
    match request {
        Request::Append(offer, answer) => {
            // Beyond the bound one offer is refused and the others of the group are not; a disk that is full refuses all.
            let outcome = if group.has_room_for(&offer) {
                match group.append(&offer) {
                    Ok(stored) => Ok(stored),
                    Err(error) => {
                        answers.appended.push((answer, Err(error.clone())));
                        return Err(error);
                    }
                }
            } else {
                group.append(&offer)
            };
            if let Ok(Stored::New(sequence)) = outcome {
                *newest = (*newest).max(sequence);
            }
            answers.appended.push((answer, outcome));
        }
        // Noted by the caller.
        Request::Settle { .. } => {}
        Request::Quarantine(refused, answer) => {
            answers.done.push(answer);
            for Refused { entry, refusal, is_spooled } in &refused {
                if *is_spooled {
                    group.quarantine(entry, refusal, now_ns())?;
                } else {
                    group.quarantine_unspooled(entry, refusal, now_ns())?;
                }
            }
        }
        Request::Note(lane, news, answer) => {
            let noted = group.note(lane, &news);
            let failed = noted.as_ref().err().cloned();
            answers.noted.push((answer, noted));
            failed.map_or(Ok(()), Err)?;
        }
        Request::SetApart(apart, answer) => {
            // One after the other, so that what does not fit is found before anything of it is done.
            let bytes: u64 =
                apart.iter().filter(|apart| !apart.is_spooled).map(|apart| apart.entry.offer.stored_bytes()).sum();
            if !group.has_room_for_bytes(bytes) {
                let _ = answer.send(Err(SpoolError::Full("what is to wait apart does not fit".to_owned())));
                return Ok(());
            }
            answers.done.push(answer);
            apart.iter().try_for_each(|apart| group.set_apart(apart))?;
        }
        Request::Rejoin(lane, answer) => {
            answers.done.push(answer);
            group.rejoin(lane)?;
        }
    }
    Ok(())
}

impl Answers {
    fn send(self) {
        // Whoever asked may have gone away meanwhile.
        self.appended.into_iter().for_each(|(answer, outcome)| drop(answer.send(outcome)));
        self.done.into_iter().for_each(|answer| drop(answer.send(Ok(()))));
        self.noted.into_iter().for_each(|(answer, noted)| drop(answer.send(noted)));
    }

    /// The group was not made durable, as far as is known: a sync that failed may have brought it to the disk all the same.
    fn fail(self, error: &SpoolError) {
        let of_offers = match error {
            SpoolError::Broken(reason) => SpoolError::Unknown(reason.clone()),
            error => error.clone(),
        };
        self.appended.into_iter().for_each(|(answer, _)| drop(answer.send(Err(of_offers.clone()))));
        self.done.into_iter().for_each(|answer| drop(answer.send(Err(error.clone()))));
        self.noted.into_iter().for_each(|(answer, _)| drop(answer.send(Err(error.clone()))));
    }
}
