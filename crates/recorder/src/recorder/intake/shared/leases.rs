//! Leases of parts, in a bucket of the NATS server that forgets a key once it was not renewed for the time of the lease. Main type: [`Leases`].
//!
//! A key for each part has the recorder that has it; it is made only where there is none, and renewed only by the one who made it. A key for each recorder
//! that can write says that it is there. The bucket is a key-value bucket of NATS, which its tools show.
//!
//! Invariant: by the recorder's own clock a lease ends no later than by the server's, because it is counted from before it was asked for.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream};
use futures_util::StreamExt;

use super::balance::Seen;
use crate::layout::recorded::hash_hex;
use crate::recorder::access::random_token;
use crate::recorder::config::NatsConfig;

/// The header with which a key is written only if its last change has this number.
const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
/// The most keys of the bucket that are looked at.
const KEYS_MAX: usize = 10_000;

/// A lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lease {
    /// The number of the change that made or renewed it.
    pub revision: u64,
    /// The time until which it lasts.
    pub until: Instant,
}

/// The leases of the recorders that share a stream.
pub(super) struct Leases {
    context: Context,
    bucket: Stream,
    /// How the bucket is made, and made again if the server has forgotten it.
    wanted: Config,
    /// The beginning of the subjects of all keys.
    prefix: String,
    /// This recorder's name among them, different at each start.
    pub own: String,
    lasts: Duration,
    memory: Mutex<Memory>,
}

/// What is remembered of the bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Memory {
    /// The number of its last change.
    last: u64,
    /// The time before which nothing is taken, because the bucket has forgotten who has what.
    not_before: Option<Instant>,
}

impl Memory {
    /// Notes a change that was made. Answers to several may come in another order.
    fn note_change(&mut self, number: u64) {
        self.last = self.last.max(number);
    }

    /// Notes the number of the bucket's last change, as the server says when all answers are here.
    fn note_last(&mut self, last: u64, now: Instant, lasts: Duration) {
        if last < self.last {
            self.not_before = Some(now + lasts);
        }
        self.last = last;
    }
}

impl Leases {
    /// Opens the bucket, and creates it if there is none.
    pub(super) async fn open(
        context: &Context,
        config: &NatsConfig,
        lasts: Duration,
        replicas: usize,
    ) -> Result<Self, String> {
        // Both names may have a `-`; the hash tells `a-b` and `c` from `a` and `b-c`.
        let (stream, group) = (&config.stream, &config.consumer);
        let name = format!("loadline-{stream}-{group}-{}", &hash_hex(&[stream, group])[..8]);
        let prefix = format!("$KV.{name}.");
        let wanted = Config {
            name: format!("KV_{name}"),
            description: Some("leases of recorders that share a stream".to_owned()),
            subjects: vec![format!("{prefix}>")],
            max_messages_per_subject: 1,
            max_age: lasts,
            duplicate_window: lasts.min(Duration::from_secs(120)),
            discard: DiscardPolicy::New,
            storage: StorageType::Memory,
            num_replicas: replicas,
            ..Config::default()
        };
        let bucket = context.get_or_create_stream(wanted.clone()).await;
        let bucket = bucket.map_err(|error| format!("the bucket {name:?} with the leases cannot be made: {error}"))?;
        let found = bucket.cached_info().config.max_age;
        if found != lasts {
            let (found, wanted) = (found.as_secs_f64(), lasts.as_secs_f64());
            return Err(format!(
                "intake.nats.lease is {wanted} s, and the leases in bucket {name:?} last {found} s; write the same for all recorders, or remove the bucket \
                 while none of them runs"
            ));
        }
        let own = random_token()?.chars().take(16).collect();
        Ok(Leases { context: context.clone(), bucket, wanted, prefix, own, lasts, memory: Mutex::default() })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the bucket again: a server that is started again has none.
    async fn make_again(&self) -> Result<(), String> {
        let made = self.context.get_or_create_stream(self.wanted.clone()).await;
        made.map(drop).map_err(|error| format!("the bucket with the leases cannot be made again: {error}"))
    }

    /// Writes a key, if its last change is the expected one; 0 for none. Returns `None` if it is not.
    async fn write(&self, key: &str, expected: Option<u64>) -> Result<Option<Lease>, String> {
        match self.try_to_write(key, expected).await {
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                self.make_again().await?;
                self.try_to_write(key, expected).await.map_err(|error| error.to_string())
            }
            written => written.map_err(|error| error.to_string()),
        }
    }

    async fn try_to_write(&self, key: &str, expected: Option<u64>) -> Result<Option<Lease>, PublishError> {
        let until = Instant::now() + self.lasts;
        let mut headers = HeaderMap::new();
        if let Some(expected) = expected {
            headers.insert(EXPECTED, expected.to_string().as_str());
        }
        let subject = format!("{}{key}", self.prefix);
        let sent = self.context.publish_with_headers(subject, headers, self.own.clone().into()).await?;
        match sent.await {
            Ok(written) => {
                self.memory().note_change(written.sequence);
                Ok(Some(Lease { revision: written.sequence, until }))
            }
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Says that this recorder can write; returns the number of the change.
    pub(super) async fn show(&self) -> Result<u64, String> {
        Ok(self.write(&format!("able.{}", self.own), None).await?.map_or(0, |lease| lease.revision))
    }

    /// Takes the lease of a part; `None` if somebody has it, or may have it.
    pub(super) async fn take(&self, part: u32) -> Result<Option<Lease>, String> {
        if self.memory().not_before.is_some_and(|not_before| Instant::now() < not_before) {
            return Ok(None);
        }
        self.write(&format!("part.{part}"), Some(0)).await
    }

    /// Renews the lease of a part; `None` if it is lost. One that still lasts and that the server has forgotten is made again.
    pub(super) async fn renew(&self, part: u32, revision: u64, lasts: bool) -> Result<Option<Lease>, String> {
        let key = format!("part.{part}");
        if let Some(lease) = self.write(&key, Some(revision)).await? {
            return Ok(Some(lease));
        }
        // The answer to the renewal before may have been lost.
        match self.bucket.get_last_raw_message_by_subject(&format!("{}{key}", self.prefix)).await {
            Ok(last) if last.payload == self.own.as_bytes() => self.write(&key, Some(last.sequence)).await,
            Ok(_) => Ok(None),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound && lasts => {
                self.write(&key, Some(0)).await
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Gives a key back: whoever looks next finds it free. If that does not reach the server, the key ends by itself.
    pub(super) async fn give(&self, revision: u64) {
        let _ = self.bucket.delete_message(revision).await;
    }

    /// Returns which parts are taken, and how many recorders can write.
    pub(super) async fn look(&self) -> Result<Seen, String> {
        let keys = format!("{}>", self.prefix);
        let listed = match self.bucket.info_with_subjects(&keys).await {
            Ok(listed) => listed,
            Err(_) => {
                self.make_again().await?;
                self.bucket.info_with_subjects(&keys).await.map_err(|error| error.to_string())?
            }
        };
        let (last, mut listed) = (listed.info.state.last_sequence, listed.take(KEYS_MAX));
        self.memory().note_last(last, Instant::now(), self.lasts);
        let (mut writing, mut taken) = (0, BTreeSet::new());
        while let Some(listed) = listed.next().await {
            let (subject, _) = listed.map_err(|error| error.to_string())?;
            let Some(key) = subject.strip_prefix(&self.prefix) else { continue };
            match key.split_once('.') {
                Some(("part", part)) => taken.extend(part.parse::<u32>().ok()),
                Some(("able", _)) => writing += 1,
                _ => {}
            }
        }
        Ok(Seen { writing, taken })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_that_was_emptied_is_noticed_and_then_left_alone_for_a_lease() {
        let (now, lasts) = (Instant::now(), Duration::from_secs(10));
        let mut memory = Memory::default();
        for last in [0, 5, 5, 9] {
            memory.note_last(last, now, lasts);
            assert_eq!(memory.not_before, None, "it grows");
        }
        [12, 11, 10].into_iter().for_each(|number| memory.note_change(number));
        memory.note_last(12, now, lasts);
        assert_eq!(memory.not_before, None, "answers came in another order");
        // After a restart the numbers begin anew.
        memory.note_change(1);
        memory.note_last(2, now, lasts);
        assert_eq!(memory.not_before, Some(now + lasts));
        memory.note_last(3, now + lasts, lasts);
        assert_eq!((memory.last, memory.not_before), (3, Some(now + lasts)), "it grows again");
    }
}
