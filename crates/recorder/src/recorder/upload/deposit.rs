//! From the bytes of an upload to a durable block: paced, bounded in size and time, and discarded unless it came whole.
//! Main function: [`Blocks::deposit`].

use std::io;
use std::time::{Duration, Instant};

use super::{Blocks, Why};
use crate::recorder::inbox::{Acknowledged, InboxError, Upload, check_name};

/// Bytes that are written at a time; an upload has a buffer of this size.
const STEP_BYTES: usize = 128 << 10;
/// How long a block may wait for its turn when blocks come too fast; then it is refused.
const TURN_WITHIN: Duration = Duration::from_secs(1);

/// The source of an upload's bytes.
pub trait Body: Send {
    /// Appends bytes that have arrived, at most as many as fit without growing the buffer; returns their number, 0 at the end.
    fn read(&mut self, buffer: &mut Vec<u8>) -> impl Future<Output = io::Result<usize>> + Send;

    /// Returns when the block arrived at the inbox that it comes from; `None` if it comes from no other inbox.
    fn arrived_ns(&self) -> Option<i64> {
        None
    }
}

/// The length that the sender announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Nothing: the end of the stream is the end of the block.
    Unknown,
    /// At least this number of bytes (`ALLO`).
    AtLeast(u64),
    /// Exactly this number of bytes.
    Exactly(u64),
}

/// The reason why a block is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// The inbox refuses it.
    #[error("{0}")]
    Inbox(#[from] InboxError),
    /// Blocks come too fast; the time to wait.
    #[error("more blocks per second than are let in; send again in {} s", .0.as_secs_f64().ceil())]
    TooFast(Duration),
    /// It did not arrive whole.
    #[error("the block did not arrive whole, nothing is stored: {0}")]
    Cut(String),
    /// It did not arrive in time.
    #[error("the block arrived too slowly, nothing is stored: {0}")]
    Slow(String),
    /// The recorder is stopping.
    #[error("the recorder is stopping; send again later")]
    Stopping,
}

impl NotTaken {
    fn why(&self) -> Why {
        match self {
            NotTaken::Inbox(InboxError::Name(_)) => Why::Name,
            NotTaken::Inbox(InboxError::Exists(_)) => Why::Exists,
            NotTaken::Inbox(InboxError::TooLarge(_)) => Why::Large,
            NotTaken::Inbox(InboxError::Full(_)) => Why::Full,
            NotTaken::Inbox(InboxError::Broken(_) | InboxError::Unusable { .. }) | NotTaken::Stopping => Why::Broken,
            NotTaken::TooFast(_) => Why::Rate,
            NotTaken::Cut(_) => Why::Cut,
            NotTaken::Slow(_) => Why::Slow,
        }
    }
}

impl Blocks {
    /// Checks whether a block may be sent, before its sender sends it; waits up to one second for its turn.
    ///
    /// # Errors
    /// The reason why it may not.
    pub async fn admit(&self, camera: &str, name: &str, announced: Option<u64>) -> Result<(), NotTaken> {
        let admitted = self.try_to_admit(camera, name, announced).await;
        admitted.inspect_err(|refusal| self.meter.refuse(refusal.why()))
    }

    async fn try_to_admit(&self, camera: &str, name: &str, announced: Option<u64>) -> Result<(), NotTaken> {
        check_name(name)?;
        let bytes_max = self.receiving.inbox().bounds().block;
        if announced.is_some_and(|bytes| bytes > bytes_max) {
            return Err(InboxError::TooLarge(bytes_max).into());
        }
        let (receiving, asked) = (self.receiving.clone(), camera.to_owned());
        blocking(move || receiving.ask(&asked)).await??;
        let wait = self.rates.take_block(camera, TURN_WITHIN).map_err(NotTaken::TooFast)?;
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Stores a block that was admitted. `patience` is how long no bytes may arrive. Dropping the future discards what has arrived.
    ///
    /// # Errors
    /// The reason why it is not stored.
    pub async fn deposit(
        &self,
        camera: &str,
        name: &str,
        expected: Expected,
        patience: Duration,
        body: &mut impl Body,
    ) -> Result<Acknowledged, NotTaken> {
        let begun = Instant::now();
        let deposited = self.try_to_deposit(camera, name, expected, patience, body).await;
        match deposited {
            Ok((acknowledged, bytes)) => {
                let count = if acknowledged == Acknowledged::New { &self.meter.accepted } else { &self.meter.again };
                count.add(1);
                self.meter.bytes.add(bytes);
                self.meter.times.add(begun.elapsed());
                Ok(acknowledged)
            }
            Err(refusal) => {
                self.meter.refuse(refusal.why());
                Err(refusal)
            }
        }
    }

    async fn try_to_deposit(
        &self,
        camera: &str,
        name: &str,
        expected: Expected,
        patience: Duration,
        body: &mut impl Body,
    ) -> Result<(Acknowledged, u64), NotTaken> {
        let (receiving, own, named) = (self.receiving.clone(), camera.to_owned(), name.to_owned());
        let mut upload = blocking(move || receiving.begin(&own, &named)).await??;
        let mut buffer = Vec::with_capacity(STEP_BYTES);
        let mut waited = Duration::ZERO;
        let mut bytes = 0;
        loop {
            let begun = Instant::now();
            let read = match tokio::time::timeout(patience, body.read(&mut buffer)).await {
                Ok(read) => read.map_err(|error| NotTaken::Cut(error.to_string()))?,
                Err(_) => return Err(NotTaken::Slow(format!("nothing came for {} s", patience.as_secs_f64()))),
            };
            waited += begun.elapsed();
            bytes += read as u64;
            if read > 0 && waited > patience && (bytes as f64) < self.slowest_per_s * waited.as_secs_f64() {
                let slowest = crate::units::show_bytes(self.slowest_per_s);
                return Err(NotTaken::Slow(format!("less than {slowest} per second")));
            }
            if read == 0 || buffer.len() == buffer.capacity() {
                (upload, buffer) = write(upload, buffer).await?;
            }
            if read == 0 {
                break;
            }
            let pause = self.rates.take_bytes(camera, read);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        if bytes == 0 {
            return Err(NotTaken::Cut("it is empty, and no block is".to_owned()));
        }
        let is_whole = match expected {
            Expected::Unknown => true,
            Expected::AtLeast(least) => bytes >= least,
            Expected::Exactly(exactly) => bytes == exactly,
        };
        match expected {
            Expected::AtLeast(announced) | Expected::Exactly(announced) if !is_whole => {
                return Err(NotTaken::Cut(format!("{bytes} bytes came and {announced} were announced")));
            }
            _ => {}
        }
        if let Some(arrived_ns) = body.arrived_ns() {
            upload.set_arrived(arrived_ns);
        }
        let acknowledged = blocking(move || upload.finish()).await??;
        Ok((acknowledged, bytes))
    }
}

/// Writes the content of the buffer and empties it.
async fn write(mut upload: Upload, mut buffer: Vec<u8>) -> Result<(Upload, Vec<u8>), NotTaken> {
    let written = blocking(move || {
        upload.write(&buffer)?;
        buffer.clear();
        Ok::<_, InboxError>((upload, buffer))
    });
    Ok(written.await??)
}

/// Runs work that waits for the disk on a blocking thread, where it holds up nobody else.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, NotTaken> {
    tokio::task::spawn_blocking(work).await.map_err(|_| NotTaken::Stopping)
}
