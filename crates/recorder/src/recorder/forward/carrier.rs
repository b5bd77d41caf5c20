//! The way of one block: it is put into the bucket and stays under way until the receiver has answered. Main function: [`carry`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use ring::digest::{Context, SHA256};

use super::shared::{Shared, pause};
use crate::recorder::bucket::{Name, Says, Trouble, digest_of};
use crate::recorder::inbox::{InboxError, Waiting};
use crate::recorder::log;
use crate::recorder::writer::Backoff;

/// How often an object is read of which no hint has arrived.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The end of a block's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    /// The block is durable in the other inbox, and removed from this one.
    Done,
    /// The receiver has refused it, for now.
    Refused,
    /// Forwarding was stopped; the block still waits.
    Stopped,
}

/// The next step.
enum Next {
    End(Carried),
    Wait,
}

/// A block under way.
struct Carrier {
    shared: Arc<Shared>,
    waiting: Waiting,
    name: Name,
    text: String,
    begun: Instant,
    /// True if the block was refused before, and is put again in spite of that answer.
    is_again: bool,
    /// How often a put was attempted since this carrier began.
    attempts: u32,
}

/// Brings a block to the other inbox.
pub(super) async fn carry(shared: Arc<Shared>, waiting: Waiting, name: Name, is_again: bool) -> Carried {
    let text = name.text();
    let call = shared.call_me(&text);
    let mut carrier =
        Carrier { shared: Arc::clone(&shared), waiting, name, text, begun: Instant::now(), is_again, attempts: 0 };
    let seed = carrier.name.arrived_ns.unsigned_abs();
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5), seed);
    let carried = loop {
        if shared.stop.is_asked() {
            break Carried::Stopped;
        }
        match carrier.step().await {
            Ok(next) => {
                shared.note_success(false);
                backoff.reset();
                match next {
                    Next::End(carried) => break carried,
                    Next::Wait => wait(&shared, &call).await,
                }
            }
            Err(Trouble::Changed) => pause(&shared.stop, Duration::from_millis(20)).await,
            Err(trouble) => {
                shared.note_trouble(&trouble);
                pause(&shared.stop, backoff.wait()).await;
            }
        }
    };
    shared.hang_up(&carrier.text);
    carried
}

/// Waits for a hint about the object, or until it is time to read it.
async fn wait(shared: &Shared, call: &tokio::sync::Notify) {
    let until = Instant::now() + LOOK_EVERY;
    while !shared.stop.is_asked() && Instant::now() < until {
        if tokio::time::timeout(Duration::from_millis(100), call.notified()).await.is_ok() {
            return;
        }
    }
}

impl Carrier {
    /// Reads the state of the object, and does what follows from it.
    async fn step(&mut self) -> Result<Next, Trouble> {
        let Some(meta) = self.shared.bucket.look(&self.text).await? else {
            return self.put(0).await;
        };
        match meta.says() {
            // An object of another size is not this block.
            Says::Block if meta.bytes() == self.waiting.bytes => Ok(Next::Wait),
            Says::Block | Says::Nothing => self.put(meta.sequence()).await,
            Says::Stored(digest) if digest == self.digest().await? => self.let_go().await,
            Says::Stored(_) => {
                log::warning("the other end has stored something else under this name", &[("block", &self.text)]);
                self.put(meta.sequence()).await
            }
            Says::Refused(_) if std::mem::take(&mut self.is_again) => self.put(meta.sequence()).await,
            Says::Refused(reason) => {
                self.shared.meter.refused.add(1);
                log::warning("a block is refused and put again later", &[("block", &self.text), ("reason", &reason)]);
                Ok(Next::End(Carried::Refused))
            }
        }
    }

    async fn put(&mut self, replaces: u64) -> Result<Next, Trouble> {
        // This cannot fail: the semaphore is never closed.
        let _turn = self.shared.puts.acquire().await;
        if self.attempts > 0 || replaces > 0 || self.waiting.arrived_ns < self.shared.began_ns {
            self.shared.bucket.clear_chunks(&self.name).await?;
        }
        let attempt = format!("{:x}-{}", self.shared.began_ns, self.attempts);
        self.attempts += 1;
        let meter = &self.shared.meter;
        let put = self.shared.bucket.put(&self.name, &self.waiting, &attempt, replaces).await;
        match put {
            Ok(()) => {
                self.shared.note_success(true);
                meter.put.add(1);
                meter.put_again.add(u64::from(replaces > 0 || self.attempts > 1));
                Ok(Next::Wait)
            }
            Err(trouble) => {
                // A bucket full of incomplete objects would block everybody. If this fails too, the next attempt clears them.
                let _ = self.shared.bucket.clear_chunks(&self.name).await;
                Err(trouble)
            }
        }
    }

    /// Returns the digest of the block as it is on the disk now.
    async fn digest(&self) -> Result<String, Trouble> {
        let waiting = self.waiting.clone();
        let read = move || -> Result<String, InboxError> {
            let mut hash = Context::new(&SHA256);
            waiting.each_part(|part| hash.update(part))?;
            Ok(digest_of(hash))
        };
        on_disk(read).await
    }

    /// The receiver has the block: removes it here, and then its object from the bucket.
    async fn let_go(&mut self) -> Result<Next, Trouble> {
        let (taking, waiting) = (Arc::clone(&self.shared.taking), self.waiting.clone());
        on_disk(move || taking.settle(&waiting)).await?;
        self.shared.note_success(true);
        let meter = &self.shared.meter;
        meter.forwarded.add(1);
        meter.bytes.add(self.waiting.bytes);
        meter.times.add(self.begun.elapsed());
        // What is left in the bucket is removed once the bucket can be reached again.
        if let Err(trouble) = self.shared.bucket.clear(&self.name).await {
            self.shared.note_trouble(&trouble);
        }
        Ok(Next::End(Carried::Done))
    }
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InboxError> + Send + 'static,
) -> Result<T, Trouble> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|_| Trouble::Away("it is stopping".to_owned()))?;
    done.map_err(|error| Trouble::Away(error.to_string()))
}
