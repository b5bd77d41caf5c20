//! Putting a block into a bucket, in parts, so that a large one is never in memory as a whole. Main function: [`Bucket::put`].

use std::fs::File;
use std::io::Read;

use bytes::Bytes;
use futures_util::future::join_all;
use ring::digest::{Context, SHA256};

use super::{Bucket, CHUNK_BYTES, HEAD_BYTES, Meta, Name, Trouble, digest_of};
use crate::recorder::inbox::Waiting;

/// The most chunks that are on their way at the same time.
const CHUNKS_AT_ONCE: usize = 8;

impl Bucket {
    /// Puts a block; `attempt` is a word that no other put of it has, `replaces` the sequence number of its present metadata (0: there are none). After
    /// a failure its chunks remain.
    ///
    /// # Errors
    /// The reason of the failure.
    pub async fn put(&self, name: &Name, waiting: &Waiting, attempt: &str, replaces: u64) -> Result<(), Trouble> {
        let id = format!("{}.{attempt}", name.id());
        let subject = format!("$O.{}.C.{id}", self.name);
        let payload_max = self.client.server_info().max_payload;
        let chunk_bytes = CHUNK_BYTES.min(payload_max.saturating_sub(HEAD_BYTES).max(1));
        let (mut hash, mut bytes, mut chunks) = (Context::new(&SHA256), 0, 0);
        let unreadable = |error: &dyn std::fmt::Display| Trouble::Away(format!("a block cannot be read: {error}"));
        let mut file = waiting.open().map_err(|error| unreadable(&error))?;
        loop {
            let (back, read) = blocking(move || read_part(file, chunk_bytes)).await?;
            file = back;
            let part = read.map_err(|error| unreadable(&error))?;
            if part.is_empty() {
                break;
            }
            let mut acknowledgements = Vec::with_capacity(part.len());
            for chunk in part {
                hash.update(&chunk);
                bytes += chunk.len();
                chunks += 1;
                let published = self.context.publish(subject.clone(), chunk).await;
                acknowledgements.push(published.map_err(|error| self.trouble(&error))?.into_future());
            }
            for acknowledged in join_all(acknowledgements).await {
                acknowledged.map_err(|error| self.trouble(&error))?;
            }
        }
        if bytes as u64 != waiting.bytes {
            return Err(unreadable(&format!("{} has other {bytes} bytes", waiting.path.display())));
        }
        let info = Meta::put(name, &self.name, &id, bytes, chunks, digest_of(hash));
        self.publish_meta(&info.name, &info, replaces).await
    }
}

/// Reads the next chunks of a file; none at its end.
fn read_part(mut file: File, chunk_bytes: usize) -> (File, std::io::Result<Vec<Bytes>>) {
    let mut part = Vec::with_capacity(chunk_bytes);
    let read = (&mut file).take((CHUNKS_AT_ONCE * chunk_bytes) as u64).read_to_end(&mut part);
    let mut part = Bytes::from(part);
    let mut chunks = Vec::new();
    while !part.is_empty() {
        chunks.push(part.split_to(part.len().min(chunk_bytes)));
    }
    (file, read.map(|_| chunks))
}

/// Runs work that waits for the disk on a blocking thread, where it holds up nobody else.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Trouble::Away("it is stopping".to_owned()))
}
