//! Reading a connection: first the line that shows a token, then batches, each within its bounds of time and memory.
//!
//! Invariant: before the token is known to be right, nothing is taken of the memory that all requests share, and no more than [`HEAD_BYTES_MAX`] is
//! read.

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;

use super::super::door::LONG_BYTES;
use super::super::framing::{batch_end, head};
use super::{Came, Connection, SILENCE};
use crate::recorder::access::TokenHash;
use crate::recorder::clock::now_ns;
use crate::recorder::line::whole_lines;

/// The longest first line of a connection that needs a token, in bytes.
const HEAD_BYTES_MAX: usize = 4 << 10;
/// Bytes read at a time: of that line, within a batch, and while there is no batch.
const HEAD_STEP_BYTES: usize = 512;
const STEP_BYTES: usize = 64 << 10;
const IDLE_STEP_BYTES: usize = 2 << 10;
/// How long whole lines may wait while others follow them.
const AGE_MAX: Duration = Duration::from_secs(5);
/// How often a connection checks the time.
const LOOK: Duration = Duration::from_millis(200);

impl Connection<'_> {
    /// Reads the first line if a token is needed; returns whether it shows a known one.
    pub(super) async fn shows_a_token(&mut self) -> bool {
        if self.surroundings.live.senders("tcp").are_all() {
            return true;
        }
        let mut piece = [0; HEAD_STEP_BYTES];
        let mut searched = 0;
        let mut is_at_end = false;
        while !is_at_end && !self.input[searched..].contains(&b'\n') {
            searched = self.input.len();
            if searched >= HEAD_BYTES_MAX {
                let reason =
                    format!("error the first line must show a token and have at most {HEAD_BYTES_MAX} bytes\n");
                self.say(&reason).await;
                return false;
            }
            // A silent client may stay until others need the place; one that has begun to send may not take its time.
            if searched > 0 && self.first.elapsed() > self.config.patience {
                self.place.count_slow();
                self.say("error the first line took longer than intake.tcp.patience to arrive\n").await;
                return false;
            }
            let room = HEAD_STEP_BYTES.min(HEAD_BYTES_MAX - searched);
            match tokio::time::timeout(LOOK, self.stream.read(&mut piece[..room])).await {
                Ok(Ok(0)) if searched == 0 => return false,
                Ok(Ok(0)) => is_at_end = true,
                Ok(Ok(read)) => self.append(&piece[..read]),
                Ok(Err(_)) => return false,
                Err(_) if self.surroundings.stop.is_asked() => return false,
                Err(_) => {}
            }
        }
        self.token = head(&self.input).filter(|(key, _)| *key == "token").last().map(|(_, token)| TokenHash::of(token));
        if let Err(reason) = self.sender() {
            self.say(&format!("error {reason}\n")).await;
            return false;
        }
        true
    }

    fn append(&mut self, bytes: &[u8]) {
        (self.last, self.last_ns) = (Instant::now(), now_ns());
        if self.input.is_empty() {
            self.first = self.last;
        }
        self.input.extend_from_slice(bytes);
    }

    /// Reads more input, or returns what is to be done meanwhile.
    pub(super) async fn read_more(&mut self) -> Came {
        // A connection may be idle for long, and there may be many.
        let mut chunk = vec![0; if self.input.is_empty() { IDLE_STEP_BYTES } else { STEP_BYTES }];
        let read = loop {
            match tokio::time::timeout(LOOK, self.stream.read(&mut chunk)).await {
                Ok(Ok(0)) => return Came::End,
                Ok(Ok(read)) => break read,
                Ok(Err(_)) => return Came::Cut("the connection broke"),
                Err(_) if self.surroundings.stop.is_asked() => return Came::Cut("the recorder was stopped"),
                // A client may be silent between its batches, not within one.
                Err(_) if self.is_late() => return self.end_what_is_late(),
                Err(_) if self.last.elapsed() > SILENCE => {
                    if self.input.len() > self.looked_at
                        && let Some(end) = self.whole()
                    {
                        return Came::Lines(end, true);
                    }
                }
                Err(_) => {}
            }
        };
        self.append(&chunk[..read]);
        self.make_room().await
    }

    /// Returns whether the present input takes longer than it may, however slowly it arrives.
    fn is_late(&self) -> bool {
        !self.input.is_empty() && self.first.elapsed() > self.config.patience
    }

    /// Ends late input: whole lines are stored, and what follows them gets time of its own; anything else is cut off.
    fn end_what_is_late(&mut self) -> Came {
        if let Some(end) = self.whole() {
            return Came::Lines(end, false);
        }
        self.place.count_slow();
        match self.has_id() {
            true => Came::Refused("busy 1 the batch took longer than intake.tcp.patience to arrive\n".to_owned()),
            false => Came::Cut("intake.tcp.patience was over"),
        }
    }

    /// Reserves memory for the input. If there is too much of it, whole lines are stored first.
    async fn make_room(&mut self) -> Came {
        let (bytes, most) = (self.input.len() as u64, self.surroundings.config.request_bytes);
        if bytes > most {
            let refusal = format!("error the batch has more than {most} bytes\n");
            return self.whole().map_or(Came::Refused(refusal), |end| Came::Lines(end, false));
        }
        let busy = || "busy 1 no memory left\n".to_owned();
        match &mut self.memory {
            Some(memory) => {
                if self.surroundings.door.reserve_more(memory, bytes).is_err() {
                    return self.whole().map_or_else(|| Came::Refused(busy()), |end| Came::Lines(end, false));
                }
            }
            None => loop {
                match self.surroundings.door.reserve(bytes).await {
                    Ok(memory) => break self.memory = Some(memory),
                    // A client that does not ask cannot be told to come again.
                    Err(_) if self.is_asked() || self.surroundings.stop.is_asked() => return Came::Refused(busy()),
                    // The time of waiting is not the client's.
                    Err(_) => self.first = Instant::now(),
                }
            },
        }
        // A batch that is whole by now has come in time.
        if self.is_late() && batch_end(&self.input, 0).is_none() {
            return self.end_what_is_late();
        }
        // Input without whole lines is searched again when it is twice as long, so that the work stays linear.
        match self.first.elapsed() > AGE_MAX && self.input.len() >= 2 * self.looked_at {
            true => self.whole().map_or(Came::Bytes, |end| Came::Lines(end, false)),
            false => Came::Bytes,
        }
    }

    /// Returns whether the client waits for an answer to the input.
    fn is_asked(&self) -> bool {
        self.has_id() || batch_end(&self.input, 0).is_some()
    }

    /// Returns how many bytes of the input can be stored unasked: whole lines of a batch without an id; `None` if there are none.
    pub(super) fn whole(&mut self) -> Option<usize> {
        self.looked_at = self.input.len();
        if self.has_id() {
            return None;
        }
        // Long work must not block the network threads.
        let end = match self.input.len() > LONG_BYTES {
            true => tokio::task::block_in_place(|| whole_lines(&self.input)),
            false => whole_lines(&self.input),
        };
        Some(end).filter(|end| *end > 0)
    }
}
