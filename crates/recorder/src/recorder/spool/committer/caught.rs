//! A committer's other end without a disk, for fuzzing: what would be stored is kept in memory. Main type: [`Caught`].

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{CommitterHandle, Placed, QUEUE_MAX, Refused, Request, Shared};
use crate::recorder::clock::machine;
use crate::recorder::spool::{Offer, Stored};

/// What was given to a committer.
pub struct Caught {
    receiver: mpsc::Receiver<Request>,
    /// What was acknowledged as stored.
    pub offers: Vec<Offer>,
    /// What was acknowledged as kept in quarantine.
    pub refused: Vec<Refused>,
}

impl Caught {
    /// A handle, and what is given to it.
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

    /// Acknowledges whatever comes, until nobody is left who could give anything.
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
