//! The source of a lane's entries: the spool, or the intake itself where the database's own commit is the acknowledgement.
//!
//! Main types: [`Feed`] and [`Direct`], an offer that waits for its commit.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::turns::Waiting;
pub use super::turns::{Direct, DirectAnswer};
use crate::recorder::clock::SharedClock;
use crate::recorder::spool::Offer;

/// The most offers that may wait in front of a lane.
const QUEUE_MAX: usize = 1_024;
/// The most offers that may wait for their turn. A source that held all of these at once would have as many connections.
const WAITING_MAX: usize = 16 * QUEUE_MAX;

/// Gives offers to a lane.
#[derive(Debug, Clone)]
pub struct DirectHandle {
    offers: mpsc::Sender<Direct>,
    clock: SharedClock,
}

impl DirectHandle {
    /// Gives an offer its place in the order of the lane; returns when there is room for it.
    pub async fn begin(&self, offer: Offer, patience: Duration) -> DirectWait {
        self.give(offer, patience, 0).await
    }

    /// As [`begin`](Self::begin), for the lane of a part: the message with this number in the stream. Numbers must rise.
    pub async fn begin_message(&self, offer: Offer, patience: Duration, number: i64) -> DirectWait {
        self.give(offer, patience, number).await
    }

    async fn give(&self, offer: Offer, patience: Duration, number: i64) -> DirectWait {
        let (answer, answered) = oneshot::channel();
        // If the lane has ended, the answer's other side is gone with the offer.
        let _ = self.offers.send(Direct { offer, answer, until: self.clock.now() + patience, number }).await;
        DirectWait(answered)
    }
}

/// The pending answer to an offer.
#[derive(Debug)]
pub struct DirectWait(oneshot::Receiver<DirectAnswer>);

impl DirectWait {
    /// Returns when the offer is committed, or nothing of it is stored.
    pub async fn finish(self) -> DirectAnswer {
        self.0.await.unwrap_or_else(|_| DirectAnswer::Unavailable("the recorder is stopping".to_owned()))
    }
}

/// The source of a lane's entries.
pub enum Feed {
    /// The spool.
    Spool,
    /// The intake.
    Direct(mpsc::Receiver<Direct>, tokio::runtime::Handle),
}

impl Feed {
    /// Returns a feed straight from the intake, and the handle that offers are given to.
    pub fn direct(runtime: tokio::runtime::Handle, clock: SharedClock) -> (Feed, DirectHandle) {
        let (receiver, handle) = queue(clock);
        (Feed::Direct(receiver, runtime), handle)
    }
}

/// Returns the queue of offers for a lane that is fed straight from the intake, and the handle that offers are given to.
pub(super) fn queue(clock: SharedClock) -> (mpsc::Receiver<Direct>, DirectHandle) {
    let (offers, receiver) = mpsc::channel(QUEUE_MAX);
    (receiver, DirectHandle { offers, clock })
}

/// Waits for an offer; returns whether none can come any more.
pub(super) fn wait(
    receiver: &mut mpsc::Receiver<Direct>,
    waiting: &mut Waiting,
    runtime: &tokio::runtime::Handle,
    within: Duration,
) -> bool {
    match runtime.block_on(async { tokio::time::timeout(within, receiver.recv()).await }) {
        Ok(Some(first)) => waiting.add(first),
        Ok(None) => return true,
        Err(_) => {}
    }
    false
}

/// Takes waiting offers, up to this many rows and bytes, each source in its turn.
pub(super) fn take(
    receiver: &mut mpsc::Receiver<Direct>,
    waiting: &mut Waiting,
    rows_max: u64,
    bytes_max: usize,
) -> Vec<Direct> {
    while waiting.len() < WAITING_MAX {
        let Ok(next) = receiver.try_recv() else { break };
        waiting.add(next);
    }
    waiting.take(rows_max, bytes_max)
}
