//! A bucket of a NATS object store, which carries blocks from the inbox of one recorder to the inbox of another.
//!
//! Main types: [`Bucket`], the connection; [`Name`], the name of an upload in the bucket; [`Meta`], the metadata of an object; [`Chunks`], an object
//! that is being read.
//!
//! The store's own form is kept, so that its other clients can look at it: the bytes of an object are messages of the subject
//! `$O.<bucket>.C.<id>`, and its name, size, chunks and SHA-256 one message of `$O.<bucket>.M.<name in base64>`, which comes last and replaces the one
//! before. Beyond that:
//!
//! - An object's id is `<station>.<hash of its name>.<attempt>`. Chunks of a failed attempt can be found by the name alone, and the remains of one
//!   attempt never get into another.
//! - The receiver answers by deleting the object in the store's own way, with the outcome in the object's metadata. An answer belongs to one
//!   put: it is refused if the object was put again meanwhile.
//!
//! Invariant: nothing in the bucket is relied on. A block is removed from the sender's inbox only when the answer says that a block with
//! exactly its digest is durable in the receiver's inbox; whatever the store loses is put again.

mod chunks;
mod object;
mod put;

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::connection::State;
use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_ROLLUP};
use async_nats::jetstream::context::{GetStreamErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::object_store::{self, ObjectInfo};
use async_nats::jetstream::stream::{Config, DiscardPolicy, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, Subscriber};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use futures_util::StreamExt;

use super::config::BucketConfig;
use super::{log, nats};

pub use chunks::{Chunks, Unread};
pub use object::{Answer, Meta, Name, Says, digest_of};

/// How long the server may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Bytes of a chunk, as other clients of the store use.
const CHUNK_BYTES: usize = 128 << 10;
/// The most bytes that a message has besides its chunk.
const HEAD_BYTES: usize = 4 << 10;
/// The most names in one listing.
const NAMES_MAX: usize = 100_000;

/// The reason why an operation failed. Every operation is tried again later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// There is no room in the bucket.
    #[error("{0}")]
    Full(String),
    /// Another client changed the object first; it has to be read again.
    #[error("the object was changed meanwhile")]
    Changed,
    /// The server does not answer, or not as it should.
    #[error("{0}")]
    Away(String),
}

/// A bucket. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Bucket {
    name: String,
    client: Client,
    context: Context,
    stream: Stream,
}

impl Bucket {
    /// Connects to a bucket; a missing one is created if `make_bytes` gives its size.
    ///
    /// # Errors
    /// A sentence that names the server, or says what is wrong with the bucket.
    pub async fn open(config: &BucketConfig, make_bytes: Option<u64>) -> Result<Self, String> {
        let client = nats::connect(&config.server).await?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(ANSWER_WITHIN);
        let stream = find(&context, &config.name, make_bytes).await?;
        check(&stream.cached_info().config, &config.name)?;
        Ok(Bucket { name: config.name.clone(), client, context, stream })
    }

    /// Checks that the bucket exists; if the server has lost it, it is created again when `make_bytes` gives its size.
    ///
    /// # Errors
    /// As [`Bucket::open`].
    pub async fn ensure(&self, make_bytes: Option<u64>) -> Result<(), String> {
        find(&self.context, &self.name, make_bytes).await.map(drop)
    }

    /// Subscribes to the objects that are put or answered; may miss some.
    ///
    /// # Errors
    /// A sentence.
    pub async fn hints(&self) -> Result<Subscriber, String> {
        self.client.subscribe(format!("$O.{}.M.>", self.name)).await.map_err(|error| error.to_string())
    }

    /// Returns the object that a hint is about; `None` if the hint is about something else.
    pub fn name_of(&self, subject: &str) -> Option<String> {
        let encoded = subject.strip_prefix("$O.")?.strip_prefix(self.name.as_str())?.strip_prefix(".M.")?;
        String::from_utf8(URL_SAFE.decode(encoded).ok()?).ok()
    }

    /// Returns the names of all objects, including the answered ones.
    ///
    /// # Errors
    /// [`Trouble::Away`]
    pub async fn names(&self) -> Result<Vec<String>, Trouble> {
        let subjects = self.subjects(format!("$O.{}.M.>", self.name)).await?;
        let mut names: Vec<_> = subjects.iter().filter_map(|subject| self.name_of(subject)).collect();
        names.sort();
        Ok(names)
    }

    /// Returns the subjects that have messages.
    async fn subjects(&self, filter: String) -> Result<Vec<String>, Trouble> {
        self.reach()?;
        let away = |error: &dyn std::fmt::Display| Trouble::Away(error.to_string());
        let found = self.stream.info_with_subjects(filter).await;
        let mut found = found.map_err(|error| away(&error))?.take(NAMES_MAX);
        let mut subjects = Vec::new();
        while let Some(subject) = found.next().await {
            subjects.push(subject.map_err(|error| away(&error))?.0);
        }
        Ok(subjects)
    }

    /// Returns the metadata of an object. Asks the stream's leader, because a replica may lag behind.
    ///
    /// # Errors
    /// [`Trouble::Away`]
    pub async fn look(&self, name: &str) -> Result<Option<Meta>, Trouble> {
        self.reach()?;
        match self.stream.get_last_raw_message_by_subject(&self.meta_subject(name)).await {
            Ok(message) => Ok(Some(Meta::read(name, message.sequence, &message.payload))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(Trouble::Away(error.to_string())),
        }
    }

    /// Checks that the server is connected; otherwise a request would wait until its time is over.
    fn reach(&self) -> Result<(), Trouble> {
        match self.client.connection_state() {
            State::Disconnected => Err(Trouble::Away("the NATS server cannot be reached".to_owned())),
            State::Connected | State::Pending => Ok(()),
        }
    }

    /// Writes the outcome of an object for the client that put it. If the bucket is full, the object's chunks make room for that.
    ///
    /// # Errors
    /// [`Trouble::Changed`] if the object was put again or answered by another client.
    pub async fn answer(&self, meta: &Meta, answer: &Answer) -> Result<(), Trouble> {
        let answered = meta.answered(answer);
        match self.publish_meta(&meta.info.name, &answered, meta.sequence).await {
            Err(Trouble::Full(_)) => {
                self.purge(format!("$O.{}.C.{}", self.name, meta.info.nuid)).await?;
                self.publish_meta(&meta.info.name, &answered, meta.sequence).await
            }
            answered => answered,
        }
    }

    /// Removes the metadata and all chunks of an object.
    ///
    /// # Errors
    /// [`Trouble::Away`]
    pub async fn clear(&self, name: &Name) -> Result<(), Trouble> {
        self.clear_chunks(name).await?;
        self.purge(self.meta_subject(&name.text())).await
    }

    /// Removes the chunks of all attempts to put an object.
    ///
    /// # Errors
    /// [`Trouble::Away`]
    pub async fn clear_chunks(&self, name: &Name) -> Result<(), Trouble> {
        self.clear_id(&name.id()).await
    }

    /// As [`Bucket::clear_chunks`], for an object of which only the id is known.
    ///
    /// # Errors
    /// [`Trouble::Away`]
    pub async fn clear_id(&self, id: &str) -> Result<(), Trouble> {
        self.purge(format!("$O.{}.C.{id}.*", self.name)).await
    }

    /// Returns the prefixes of the ids of a station's chunks, each as [`Name::id`] returns it.
    ///
    /// # Errors
    /// [`Trouble::Away`]
    pub async fn ids_of(&self, station: &str) -> Result<BTreeSet<String>, Trouble> {
        let before = format!("$O.{}.C.", self.name);
        let subjects = self.subjects(format!("{before}{station}.>")).await?;
        let id = |subject: &String| Some(subject.strip_prefix(&before)?.rsplit_once('.')?.0.to_owned());
        Ok(subjects.iter().filter_map(id).collect())
    }

    async fn purge(&self, subject: String) -> Result<(), Trouble> {
        let purged = self.stream.purge().filter(subject).await;
        purged.map(drop).map_err(|error| Trouble::Away(error.to_string()))
    }

    fn meta_subject(&self, name: &str) -> String {
        format!("$O.{}.M.{}", self.name, URL_SAFE.encode(name))
    }

    /// Publishes the metadata of an object if its current metadata have the number `replaces` (0: there are none).
    async fn publish_meta(&self, name: &str, info: &ObjectInfo, replaces: u64) -> Result<(), Trouble> {
        let payload = serde_json::to_vec(info).map_err(|error| Trouble::Away(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(NATS_ROLLUP, "sub");
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, replaces.to_string().as_str());
        let published = self.context.publish_with_headers(self.meta_subject(name), headers, payload.into()).await;
        let acknowledged = published.map_err(|error| self.trouble(&error))?.await;
        acknowledged.map(drop).map_err(|error| self.trouble(&error))
    }

    /// Returns the [`Trouble`] for a message that the server did not accept.
    fn trouble(&self, error: &PublishError) -> Trouble {
        if error.kind() == PublishErrorKind::WrongLastSequence {
            return Trouble::Changed;
        }
        let refusal = error.source().and_then(|source| source.downcast_ref::<jetstream::Error>());
        let is_full = |refusal: &jetstream::Error| {
            let code = refusal.error_code();
            [ErrorCode::STREAM_STORE_FAILED, ErrorCode::INSUFFICIENT_RESOURCES].contains(&code)
                || refusal.to_string().contains("exceeded")
        };
        match refusal.filter(|refusal| is_full(refusal)) {
            Some(refusal) => {
                let remedy = "it empties when its blocks are fetched; make it larger if that does not keep up";
                Trouble::Full(format!("bucket \"{}\" has no room ({refusal}); {remedy}", self.name))
            }
            None => Trouble::Away(error.to_string()),
        }
    }
}

/// Finds the stream of a bucket, or creates it with `make_bytes`.
async fn find(context: &Context, name: &str, make_bytes: Option<u64>) -> Result<Stream, String> {
    let stream_name = format!("OBJ_{name}");
    let error = match context.get_stream(&stream_name).await {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    let is_missing = matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND);
    match make_bytes {
        Some(bytes) if is_missing => {
            let config = object_store::Config {
                bucket: name.to_owned(),
                description: Some("blocks between two recorders of loadline".to_owned()),
                max_bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
                num_replicas: 1,
                ..object_store::Config::default()
            };
            let made = context.create_object_store(config).await;
            made.map_err(|error| format!("bucket \"{name}\" cannot be made: {}", with_source(&error)))?;
            log::info("a bucket was made", &[("bucket", name)]);
            context.get_stream(&stream_name).await.map_err(|error| error.to_string())
        }
        None if is_missing => Err(format!("there is no bucket \"{name}\" yet; the recorder that forwards makes it")),
        _ => Err(format!("bucket \"{name}\": {error}; is the server started with JetStream (-js)?")),
    }
}

fn with_source(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// Checks that a stream is configured as a bucket must be, and logs settings beyond that.
fn check(config: &Config, name: &str) -> Result<(), String> {
    if !config.allow_rollup || config.sealed || config.deny_purge || config.deny_delete {
        let remedy = "remove it, or name another";
        return Err(format!("\"{name}\" is no bucket that objects can be put into and removed from; {remedy}"));
    }
    if config.discard != DiscardPolicy::New && config.max_bytes > 0 {
        let note = "when it is full it discards what has not been fetched, and that is put again";
        log::warning("the bucket does not refuse when it is full", &[("bucket", name), ("note", note)]);
    }
    Ok(())
}
