//! The thread that writes the spool: it makes one group of the waiting requests, syncs it, and answers. Main type: [`Worker`].
//!
//! Invariant: an answer is sent after the sync of the change that it confirms.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::counts::Counts;
use super::greedy::GreedySources;
use super::group::Group;
use super::quarantine::Portion;
use super::request::{Appended, Placed, Refused, Request, Shared};
use super::{LaneOpening, Offer, SpoolError, SpoolFile, Stored};
use crate::recorder::log;

/// A group is closed once it has this many bytes.
const GROUP_BYTES: u64 = 16 << 20;
/// The shortest pause between two attempts to free segments; each looks at all of them.
const TIDY_PAUSE: Duration = Duration::from_millis(20);
/// The pause between two attempts to forget ids.
const FORGET_PAUSE: Duration = Duration::from_secs(10);
/// The most senders that one message of the log names.
const SAID_MAX: usize = 5;

pub(super) struct Worker {
    file: SpoolFile,
    receiver: mpsc::Receiver<Request>,
    shared: Arc<Shared>,
    next_forget: Instant,
    was_told_of_ids: bool,
    greedy: GreedySources,
    /// How far each lane is to be settled, where that could not be done yet because the disk was full.
    unsettled: BTreeMap<u32, i64>,
    /// When segments were freed last.
    tidied: Instant,
    /// The number of lanes that sources are assigned to.
    lanes: u32,
}

type Cleared = Result<Portion, SpoolError>;
type Noted = Result<LaneOpening, SpoolError>;

/// The answers to send after the sync.
#[derive(Default)]
struct Answers {
    appended: Vec<(oneshot::Sender<Appended>, Appended)>,
    done: Vec<oneshot::Sender<Result<(), SpoolError>>>,
    noted: Vec<(oneshot::Sender<Noted>, Noted)>,
    cleared: Vec<(oneshot::Sender<Cleared>, Cleared)>,
}

impl Worker {
    pub(super) fn new(mut file: SpoolFile, receiver: mpsc::Receiver<Request>, shared: Arc<Shared>) -> Self {
        shared.lock().counts = file.counts();
        shared.lock().apart = Arc::new(file.apart());
        let (lanes, now) = (file.lanes(), file.clock.now());
        let greedy = file.greedy.take().unwrap_or_default();
        let worker = Worker {
            file,
            receiver,
            shared,
            next_forget: now,
            was_told_of_ids: false,
            greedy,
            unsettled: BTreeMap::new(),
            tidied: now,
            lanes,
        };
        worker.shared.has_ids.store(worker.file.ids.len() > 0, Ordering::Relaxed);
        worker.show_quarantine();
        if worker.file.is_half_quarantine() {
            worker.warn_of_half();
        }
        worker
    }

    pub(super) fn work(mut self) {
        self.shared.pulse.beat();
        while let Some(first) = self.receiver.blocking_recv() {
            self.turn(first);
        }
    }

    /// Does everything that was asked for, and waits for no further request.
    #[cfg(any(test, feature = "simulated"))]
    pub(super) fn work_off(&mut self) {
        while let Ok(first) = self.receiver.try_recv() {
            self.turn(first);
        }
    }

    /// Ends as a kill of the process does: nothing is noted.
    #[cfg(any(test, feature = "simulated"))]
    pub(super) fn abandon(self) {
        self.file.abandon();
    }

    /// Makes a group of the first request and of those that wait behind it. If the spool breaks, no further request is received.
    fn turn(&mut self, first: Request) {
        self.shared.pulse.beat();
        if let Request::Look = first {
            self.tidy_or_end();
            return;
        }
        let mut answers = Answers::default();
        match self.group(first, &mut answers) {
            Ok(()) => {
                answers.send();
                if self.file.clock.since(self.tidied) >= TIDY_PAUSE {
                    self.tidy_or_end();
                }
            }
            Err(error) => {
                let before = self.shared.lock().full.replace(error.to_string());
                if let (SpoolError::Full(reason), None) = (&error, before) {
                    let remedy =
                        "make room on the disk of spool.path; what waits is written meanwhile, and its room given back";
                    log::error(
                        "the spool finds no room on its disk; nothing is taken in",
                        &[("reason", reason), ("remedy", remedy)],
                    );
                }
                answers.fail(&error);
                if let SpoolError::Broken(_) = error {
                    self.end(error);
                }
            }
        }
    }

    fn tidy_or_end(&mut self) {
        self.tidied = self.file.clock.now();
        if let Err(error) = self.file.tidy() {
            self.end(error);
        }
    }

    /// Makes one group of the waiting requests, and syncs it.
    fn group(&mut self, first: Request, answers: &mut Answers) -> Result<(), SpoolError> {
        let now = self.file.clock.now();
        let (before, was_half_quarantine) = (self.file.counts(), self.file.is_half_quarantine());
        let mut changes_apart = false;
        let mut group = self.file.begin()?;
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Look => {}
                Request::Settle { lane, through } => {
                    let known = self.unsettled.entry(lane).or_insert(through);
                    *known = through.max(*known);
                }
                request => {
                    changes_apart |= matches!(request, Request::SetApart(..) | Request::Rejoin(..));
                    take(request, &mut group, &mut self.greedy, answers, self.lanes)?;
                }
            }
            let is_full = group.counts().acknowledged.saturating_sub(before.acknowledged) > 200_000
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
            group.forget_messages()?;
            self.next_forget = now + FORGET_PAUSE;
        }
        for (lane, through) in &self.unsettled {
            group.settle(*lane, *through)?;
        }
        group.bring_back(self.lanes)?;
        let (newest, changes_quarantine) = (group.newest(), group.changes_quarantine());
        group.commit()?;
        for (lane, through) in std::mem::take(&mut self.unsettled) {
            self.greedy.settled(lane, through);
        }
        let was_full = self.shared.lock().full.is_some();
        let full = if was_full { self.file.why_no_room()? } else { None };
        if was_full && full.is_none() {
            log::info("the spool finds room on its disk again", &[]);
        }
        if self.file.is_half_quarantine() && !was_half_quarantine {
            self.warn_of_half();
        }
        let apart = if changes_apart { Some(Arc::new(self.file.apart())) } else { None };
        if changes_quarantine {
            self.show_quarantine();
        }
        self.shared.has_ids.store(self.file.ids.len() > 0, Ordering::Relaxed);
        let (after, mut state) = (self.file.counts(), self.shared.lock());
        state.apart = apart.unwrap_or_else(|| Arc::clone(&state.apart));
        // Records that were never spooled are counted only in the shared counters. Discarded records are counted nowhere any more.
        state.counts.acknowledged =
            (state.counts.acknowledged + after.acknowledged).saturating_sub(before.acknowledged);
        state.counts.committed += after.committed - before.committed;
        state.full = full;
        let (acknowledged, committed) = (state.counts.acknowledged, state.counts.committed);
        state.counts = Counts { acknowledged, committed, ..after };
        state.newest = state.newest.max(newest);
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    fn warn_of_half(&self) {
        let remedy = "look at it with --quarantine list, and replay or discard it";
        let view = self.file.quarantine_view();
        let holds_most = view.largest.first().map_or("nobody", |(holder, _)| holder);
        log::warning(
            "the quarantine takes half of quarantine.bound",
            &[("holds_most", holds_most), ("remedy", remedy)],
        );
    }

    /// Publishes how the quarantine is shared, and logs which senders are no longer taken in from, or are again.
    fn show_quarantine(&self) {
        let view = Arc::new(self.file.quarantine_view());
        let before = std::mem::replace(&mut self.shared.lock().quarantine, Arc::clone(&view));
        self.shared.closes_any.store(view.closes_any(), Ordering::Relaxed);
        let newly = view.closed().filter(|(holder, _)| before.why_closed(holder).is_none());
        for (holder, _) in newly.take(SAID_MAX) {
            let reason = view.why_closed(holder).unwrap_or_default();
            log::warning("the door is closed for a sender", &[("who", holder), ("reason", &reason)]);
        }
        let reopened = before.closed().filter(|(holder, _)| view.why_closed(holder).is_none());
        for (holder, _) in reopened.take(SAID_MAX) {
            log::info("the door is open for a sender again", &[("who", holder)]);
        }
    }

    /// Refuses every request from now on, including those that wait.
    fn end(&mut self, error: SpoolError) {
        self.shared.lock().broken = Some(error.clone());
        self.shared.changed.notify_all();
        self.receiver.close();
        while let Some(request) = self.receiver.blocking_recv() {
            let mut answers = Answers::default();
            match request {
                // The offer was not begun.
                Request::Append { answer, .. } => drop(answer.send(Err(error.clone()))),
                Request::Quarantine(_, answer)
                | Request::SetApart(_, answer)
                | Request::Rejoin(_, answer)
                | Request::Defer(_, answer) => answers.done.push(answer),
                Request::Clear(_, _, answer) => answers.cleared.push((answer, Err(error.clone()))),
                Request::Note(_, _, answer) => answers.noted.push((answer, Err(error.clone()))),
                Request::WereKept(_, answer) => drop(answer.send(Err(error.clone()))),
                Request::Settle { .. } | Request::Look => {}
            }
            answers.fail(&error);
        }
    }
}

fn take(
    request: Request,
    group: &mut Group<'_>,
    greedy: &mut GreedySources,
    answers: &mut Answers,
    lanes: u32,
) -> Result<(), SpoolError> {
    match request {
        Request::Append { offer, is_greedy, answer } => {
            // Beyond the bound one offer is refused and the others of the group are not; a full disk refuses all.
            let has_room = group.has_room_for(&offer);
            let placed = append(offer, is_greedy, group, greedy);
            let failed = placed.as_ref().err().filter(|_| has_room).cloned();
            answers.appended.push((answer, placed));
            failed.map_or(Ok(()), Err)?;
        }
        // The caller handles these.
        Request::Settle { .. } | Request::Look => {}
        Request::Quarantine(refused, answer) => {
            answers.done.push(answer);
            let now_ns = group.day_ns();
            for Refused { entry, refusal, is_spooled } in &refused {
                if *is_spooled {
                    group.quarantine(entry, refusal, now_ns)?;
                } else {
                    group.quarantine_unspooled(entry, refusal, now_ns)?;
                }
            }
        }
        Request::Note(lane, news, answer) => {
            let noted = group.note(lane, &news);
            let failed = noted.as_ref().err().cloned();
            answers.noted.push((answer, noted));
            failed.map_or(Ok(()), Err)?;
        }
        Request::WereKept(messages, answer) => {
            // This changes nothing, so the answer need not wait for the sync.
            let _ = answer.send(Ok(messages.iter().map(|asked| group.was_kept(asked)).collect()));
        }
        Request::SetApart(apart, answer) => {
            // One after the other, so that a lack of room is found before anything is done.
            let bytes: u64 =
                apart.iter().filter(|apart| !apart.is_spooled).map(|apart| apart.entry.offer.stored_bytes()).sum();
            // Records that are in the spool already take no more room elsewhere in it.
            if bytes > 0 && !group.has_room_for_bytes(bytes) {
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
        Request::Defer(deferred, answer) => {
            answers.done.push(answer);
            deferred.iter().try_for_each(|deferred| group.defer(deferred))?;
        }
        Request::Clear(what, span, answer) => {
            let cleared = group.clear(what, span, (lanes, group.half_of_bound()));
            let failed = cleared.as_ref().err().cloned();
            answers.cleared.push((answer, cleared));
            failed.map_or(Ok(()), Err)?;
        }
    }
    Ok(())
}

/// Stores an offer, in its own lane or in that of a greedy source.
fn append(mut offer: Offer, is_greedy: bool, group: &mut Group<'_>, greedy: &mut GreedySources) -> Appended {
    let behind = greedy.lane_for(&offer.source, is_greedy);
    offer.lane = behind.unwrap_or(offer.lane);
    let stored = group.append(&offer)?;
    if let (Stored::New(sequence), Some(lane)) = (stored, behind) {
        greedy.note(&offer.source, lane, sequence);
    }
    Ok(Placed { stored, lane: offer.lane })
}

impl Answers {
    fn send(self) {
        // A caller may have gone away meanwhile.
        self.appended.into_iter().for_each(|(answer, outcome)| drop(answer.send(outcome)));
        self.done.into_iter().for_each(|answer| drop(answer.send(Ok(()))));
        self.noted.into_iter().for_each(|(answer, noted)| drop(answer.send(noted)));
        self.cleared.into_iter().for_each(|(answer, cleared)| drop(answer.send(cleared)));
    }

    /// Answers a group that, as far as is known, was not made durable: a sync that failed may have brought it to the disk all the same.
    fn fail(self, error: &SpoolError) {
        let of_offers = match error {
            SpoolError::Broken(reason) => SpoolError::Unknown(reason.clone()),
            error => error.clone(),
        };
        self.appended.into_iter().for_each(|(answer, _)| drop(answer.send(Err(of_offers.clone()))));
        self.done.into_iter().for_each(|answer| drop(answer.send(Err(error.clone()))));
        self.noted.into_iter().for_each(|(answer, _)| drop(answer.send(Err(error.clone()))));
        self.cleared.into_iter().for_each(|(answer, _)| drop(answer.send(Err(error.clone()))));
    }
}
