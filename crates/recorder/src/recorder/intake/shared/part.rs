//! A part of a shared stream, from the server to its lane: messages in their order, each acknowledged after its commit. Main type: [`Part`].
//!
//! Invariant: the first message that cannot be stored ends the part. It is opened again behind the last one that is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::{AckKind, Message};

use super::super::Surroundings;
use super::super::door::{Begun, PartMessage};
use super::super::nats::{fetch, incoming};
use super::super::publisher;
use super::stream::Source;
use crate::recorder::hold::Hold;
use crate::recorder::part_lanes::PartLane;

/// How long the lane may take to end after its last message is answered.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A part that this recorder has.
pub(super) struct Part {
    pub hold: Arc<Hold>,
    /// Set to have the part given up in order.
    pub is_leaving: Arc<AtomicBool>,
    pub source: Source,
    pub surroundings: Surroundings,
    /// The most bytes that are fetched at a time.
    pub fetch_bytes: usize,
}

/// How the work on a part has ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The reason, unless it was given up in order.
    pub reason: Option<String>,
    /// Whether nothing of it can be on its way to the database any more.
    pub is_quiet: bool,
}

impl Part {
    /// Works until the part is given up or lost, or a message cannot be stored.
    pub(super) async fn work(self, lane: PartLane) -> Ended {
        let PartLane { handle, thread } = lane;
        let worked = tokio::select! {
            worked = self.take_in(&handle) => worked,
            () = self.lost() => Err("another recorder has it, or may have it".to_owned()),
        };
        drop(handle);
        if worked.is_err() {
            self.hold.end();
        }
        let is_quiet = thread.ended(ENDS_WITHIN).await;
        self.hold.end();
        if is_quiet && worked.is_ok() {
            // A consumer that is left is removed by the next holder.
            let _ = self.source.remove_consumers(self.hold.part()).await;
        }
        Ended { reason: worked.err(), is_quiet }
    }

    /// Waits until the hold is over.
    async fn lost(&self) {
        const LOOK_EVERY: Duration = Duration::from_millis(50);
        while self.hold.is_valid() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    async fn take_in(&self, lane: &crate::recorder::writer::DirectHandle) -> Result<(), String> {
        let Some(through) = self.opened().await else {
            return if self.is_leaving() { Ok(()) } else { Err("its row of the ledger was not taken".to_owned()) };
        };
        let consumer = self.source.consumer(self.hold.part(), through).await?;
        let (mut delivered, mut last, mut is_large) = (0, through, false);
        while !self.is_leaving() {
            let (messages, error) = fetch(&consumer, is_large, self.fetch_bytes).await?;
            is_large = messages.is_empty() && error.is_some();
            let mut begun = Vec::with_capacity(messages.len());
            for message in messages {
                let place = message.info().map_err(|error| error.to_string())?;
                let (in_consumer, number) = (place.consumer_sequence, i64::try_from(place.stream_sequence));
                let number = number.map_err(|error| error.to_string())?;
                if in_consumer != delivered + 1 {
                    return Err(format!("message {in_consumer} of its consumer came behind {delivered}"));
                }
                delivered = in_consumer;
                if number > last {
                    last = number;
                    let received = Instant::now();
                    let taken = self.begin(&message, number, received, lane).await?;
                    begun.push((message, received, Some(taken)));
                } else if number <= through {
                    // It was stored before this recorder had the part.
                    begun.push((message, Instant::now(), None));
                }
            }
            self.finish(begun).await?;
            match error {
                Some(reason) if !reason.contains("MaxBytes") => return Err(reason),
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits until the part's row is taken, or it is to be given up before that.
    async fn opened(&self) -> Option<i64> {
        const LOOK_EVERY: Duration = Duration::from_millis(200);
        loop {
            if let Ok(opened) = tokio::time::timeout(LOOK_EVERY, self.hold.opened()).await {
                return opened;
            }
            if self.is_leaving() {
                return None;
            }
        }
    }

    async fn begin(
        &self,
        message: &Message,
        number: i64,
        received: Instant,
        lane: &crate::recorder::writer::DirectHandle,
    ) -> Result<Begun, String> {
        let incoming = publisher::incoming(incoming(message, received, Some(&self.source.ledger)), message);
        let message = PartMessage { incoming, number };
        let begun = self.surroundings.direct_door.begin_message(message, lane).await;
        begun.map_err(|refused| format!("message {number} cannot be stored: {refused:?}"))
    }

    /// Waits for the commits of messages in their order, and acknowledges each.
    async fn finish(&self, begun: Vec<(Message, Instant, Option<Begun>)>) -> Result<(), String> {
        for (message, received, begun) in begun {
            if let Some(begun) = begun {
                let outcome = begun.finish().await;
                self.surroundings.direct_door.count(&outcome, received);
                outcome.map_err(|refused| format!("a message is not stored: {refused:?}"))?;
            }
            // Without it, the message is delivered to the next holder, which finds it in the ledger.
            message.ack_with(AckKind::Ack).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
