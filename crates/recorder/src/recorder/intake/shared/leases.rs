//! Leases of parts, in a bucket of the NATS server that forgets a key once it was not renewed for the time of the lease. Main type: [`Leases`].
//!
//! A key for each part has the recorder that has it; it is made only where there is none, and renewed only by the one who made it. A key for each recorder
//! that can write says that it is there. The bucket is a key-value bucket of NATS, which its tools show.
//!
//! Invariant: by the recorder's own clock a lease ends no later than by the server's, because it is counted from before it was asked for.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
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
    /// The beginning of the subjects of all keys.
    prefix: String,
    /// This recorder's name among them, different at each start.
    pub own: String,
    lasts: Duration,
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
            storage: StorageType::File,
            num_replicas: replicas,
            ..Config::default()
        };
        let bucket = context.get_or_create_stream(wanted).await;
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
        Ok(Leases { context: context.clone(), bucket, prefix, own, lasts })
    }

    /// Writes a key, if its last change is the expected one; 0 for none. Returns `None` if it is not.
    async fn write(&self, key: &str, expected: Option<u64>) -> Result<Option<Lease>, String> {
        let until = Instant::now() + self.lasts;
        let mut headers = HeaderMap::new();
        if let Some(expected) = expected {
            headers.insert(EXPECTED, expected.to_string().as_str());
        }
        let subject = format!("{}{key}", self.prefix);
        let sent = self.context.publish_with_headers(subject, headers, self.own.clone().into()).await;
        let written = match sent {
            Ok(acknowledged) => acknowledged.await,
            Err(error) => Err(error),
        };
        match written {
            Ok(written) => Ok(Some(Lease { revision: written.sequence, until })),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Says that this recorder can write; returns the number of the change.
    pub(super) async fn show(&self) -> Result<u64, String> {
        Ok(self.write(&format!("able.{}", self.own), None).await?.map_or(0, |lease| lease.revision))
    }

    /// Takes the lease of a part; `None` if somebody has it.
    pub(super) async fn take(&self, part: u32) -> Result<Option<Lease>, String> {
        self.write(&format!("part.{part}"), Some(0)).await
    }

    /// Renews the lease of a part; `None` if it is lost.
    pub(super) async fn renew(&self, part: u32, revision: u64) -> Result<Option<Lease>, String> {
        let key = format!("part.{part}");
        if let Some(lease) = self.write(&key, Some(revision)).await? {
            return Ok(Some(lease));
        }
        // The answer to the renewal before may have been lost.
        match self.bucket.get_last_raw_message_by_subject(&format!("{}{key}", self.prefix)).await {
            Ok(last) if last.payload == self.own.as_bytes() => self.write(&key, Some(last.sequence)).await,
            Ok(_) => Ok(None),
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
        let listed = self.bucket.info_with_subjects(format!("{}>", self.prefix)).await;
        let mut listed = match listed {
            Ok(listed) => listed.take(KEYS_MAX),
            Err(error) => return Err(error.to_string()),
        };
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
