//! The bytes of an object, chunk by chunk. Main type: [`Chunks`].
//!
//! Invariant: the end is only returned once exactly the bytes of the object's size and digest have arrived.

use std::collections::VecDeque;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use bytes::Bytes;
use futures_util::StreamExt;
use ring::digest::{Context, SHA256};

use super::{ANSWER_WITHIN, Bucket, Meta, Trouble, digest_of};

/// The most chunks that are fetched at a time.
const CHUNKS_AT_ONCE: usize = 8;

/// An object that is being read.
pub struct Chunks {
    consumer: PullConsumer,
    fetched: VecDeque<Bytes>,
    chunks_left: u64,
    bytes_left: u64,
    hash: Option<Context>,
    digest: String,
}

/// The reason why reading an object stops.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// Its content does not match its metadata, and never will.
    #[error("the object is damaged: {0}")]
    Damaged(String),
    /// It is to be tried again.
    #[error("{0}")]
    Away(#[from] Trouble),
}

impl Bucket {
    /// Begins to read an object.
    ///
    /// # Errors
    /// [`Unread::Damaged`] if its chunks are missing, or its metadata cannot be checked.
    pub async fn read(&self, meta: &Meta) -> Result<Chunks, Unread> {
        let damaged = |what: &str| Unread::Damaged(what.to_owned());
        let id = meta.id().ok_or_else(|| damaged("its id is none"))?;
        let digest = meta.info.digest.clone().ok_or_else(|| damaged("it has no digest"))?;
        let config = pull::Config {
            description: Some("reads one object".to_owned()),
            ack_policy: AckPolicy::None,
            filter_subject: format!("$O.{}.C.{id}", self.name),
            inactive_threshold: 3 * ANSWER_WITHIN,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let consumer = self.stream.create_consumer(config).await;
        let consumer = consumer.map_err(|error| Trouble::Away(error.to_string()))?;
        let there = consumer.cached_info().num_pending;
        let chunks = Chunks {
            consumer,
            fetched: VecDeque::new(),
            chunks_left: there,
            bytes_left: meta.bytes(),
            hash: Some(Context::new(&SHA256)),
            digest,
        };
        if there != meta.info.chunks as u64 {
            self.end(chunks).await;
            return Err(Unread::Damaged(format!("{there} of its {} chunks are there", meta.info.chunks)));
        }
        Ok(chunks)
    }

    /// Deletes the reader's consumer on the server, which would otherwise expire later.
    pub async fn end(&self, chunks: Chunks) {
        let _ = self.stream.delete_consumer(&chunks.consumer.cached_info().name).await;
    }
}

impl Chunks {
    /// Returns the next bytes; `None` at the end.
    ///
    /// # Errors
    /// The reason why no more bytes come before the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Unread> {
        if self.fetched.is_empty() && self.chunks_left > 0 {
            self.fetch().await?;
        }
        let Some(chunk) = self.fetched.pop_front() else { return self.finish().map(|()| None) };
        let bytes = chunk.len() as u64;
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or_else(|| Unread::Damaged("it is larger than it says".to_owned()))?;
        if let Some(hash) = &mut self.hash {
            hash.update(&chunk);
        }
        Ok(Some(chunk))
    }

    fn finish(&mut self) -> Result<(), Unread> {
        if self.bytes_left > 0 {
            return Err(Unread::Damaged("it is smaller than it says".to_owned()));
        }
        match self.hash.take().map(digest_of) {
            Some(digest) if digest != self.digest => Err(Unread::Damaged("its bytes have another digest".to_owned())),
            _ => Ok(()),
        }
    }

    async fn fetch(&mut self) -> Result<(), Unread> {
        let away = |reason: &dyn std::fmt::Display| Unread::Away(Trouble::Away(reason.to_string()));
        let asked = self.consumer.fetch().max_messages(CHUNKS_AT_ONCE).expires(ANSWER_WITHIN).messages();
        let mut messages = asked.await.map_err(|error| away(&error))?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(|error| away(&error))?;
            self.fetched.push_back(message.message.payload);
        }
        let fetched = self.fetched.len() as u64;
        self.chunks_left = self.chunks_left.saturating_sub(fetched);
        match fetched {
            0 => Err(away(&"the server does not send the rest of an object")),
            _ => Ok(()),
        }
    }
}
