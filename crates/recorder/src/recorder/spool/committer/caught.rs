//! The receiving end of a committer without a disk, for fuzzing: offers are kept in memory. Main type: [`Caught`].

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{CommitterHandle, Placed, QUEUE_MAX, Refused, Request, Shared};
use crate::recorder::clock::machine;
use crate::recorder::spool::{Offer, Stored};

/// Collects what is given to a committer.
pub struct Caught {
    receiver: mpsc::Receiver<Request>,
    /// Offers that were acknowledged as stored.
    pub offers: Vec<Offer>,
    /// Records that were acknowledged as kept in quarantine.
    pub refused: Vec<Refused>,
}

impl Caught {
    /// Returns a handle, and the collector of what is given to it.
    pub fn new() -> (CommitterHandle, Caught) {
        let (requests, receiver) = mpsc::channel(QUEUE_MAX);
        let handle = CommitterHandle {
            requests,
            shared: Arc::new(Shared::default()),
            compresses: false,
            clock: machine(),
            #[cfg(any(test, feature = "simulated"))]
            here: None,
        };
        (handle, Caught { receiver, offers: Vec::new(), refused: Vec::new() })
    }

    /// Acknowledges every request until all handles are dropped.
    pub async fn take_all(&mut self) {
        while let Some(request) = self.receiver.recv().await {
            match request {
                Request::Append { offer, answer, .. } => {
                    let lane = offer.lane;
                    self.offers.push(offer);
                    let _ = answer.send(Ok(Placed { stored: Stored::New(self.offers.len() as i64), lane }));
                }
                Request::Quarantine(refused, answer) => {
                    self.refused.extend(refused);
                    let _ = answer.send(Ok(()));
                }
                _ => {}
            }
        }
    }
}
