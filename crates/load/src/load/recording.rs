//! Recording: the raw times of every operation go from the load threads to a file while the trial runs.
//!
//! Main types: [`Recording`] (one per trial, with the thread that writes) and [`Recorder`] (one per load thread).
//! Invariants: nothing is dropped while the file can be written; memory is bounded, because blocks come from a pool. If
//! the disk does not keep up, the pool is empty and a load thread waits for a block; the time waited is reported.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ending::{Ending, Times};
use crate::operation::{KindNames, OperationKind};
use crate::store::{Sample, SampleBlock, SampleOutcome, SampleWriter, StoreError};

/// Number of samples that a load thread collects before it passes them on: 64 KiB.
const BLOCK_SAMPLES: usize = 2_048;
/// Number of blocks in addition to one for each load thread: those that may be on their way to the disk, 4 MiB.
const BLOCKS_UNDER_WAY: usize = 64;

/// The recording of a trial.
#[derive(Debug)]
pub struct Recording {
    pool: Arc<Pool>,
    full: Sender<SampleBlock>,
    writer: JoinHandle<Result<Written, StoreError>>,
    names: Arc<KindNames>,
}

/// The result of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Written {
    /// Number of operations in the file.
    pub samples: u64,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Time for which load threads waited for the disk, all together, in seconds.
    pub waited_s: f64,
}

impl Recording {
    /// Starts the thread that writes to a file, whose header is written already.
    ///
    /// # Errors
    /// When the system cannot start another thread.
    pub fn start(mut file: SampleWriter, names: KindNames) -> std::io::Result<Self> {
        let pool = Arc::new(Pool::default());
        let (full, blocks) = channel();
        let own = Arc::clone(&pool);
        let work = move || write_all(&mut file, &blocks, &own);
        let writer = std::thread::Builder::new().name("samples".to_owned()).spawn(work)?;
        Ok(Recording { pool, full, writer, names: Arc::new(names) })
    }

    /// Makes a recorder for one load thread, whose trial begins at `start_ns` by the engine's clock.
    pub fn recorder(&self, start_ns: u64) -> Recorder {
        self.pool.state().most += 1;
        Recorder {
            pool: Arc::clone(&self.pool),
            full: self.full.clone(),
            block: SampleBlock::default(),
            kinds: Vec::new(),
            names: Arc::clone(&self.names),
            start_ns,
        }
    }

    /// Waits until everything is on disk; every recorder must have been dropped.
    ///
    /// # Errors
    /// When a block could not be written. The file then ends before it.
    pub fn finish(self) -> Result<Written, StoreError> {
        drop(self.full);
        let written = match self.writer.join() {
            Ok(written) => written?,
            Err(_) => return Err(StoreError::from_panic("the thread that writes samples")),
        };
        Ok(Written { waited_s: self.pool.state().waited.as_secs_f64(), ..written })
    }
}

/// Writes blocks until all recorders are dropped. After an error, further blocks are received and not written, so that nobody waits.
fn write_all(file: &mut SampleWriter, blocks: &Receiver<SampleBlock>, pool: &Pool) -> Result<Written, StoreError> {
    let _open = Open(pool);
    let mut outcome = Ok(());
    for block in blocks {
        if outcome.is_ok() {
            outcome = file.write(&block);
        }
        pool.give(block);
    }
    outcome.and_then(|()| file.finish())?;
    Ok(Written { samples: file.samples, bytes: file.bytes, waited_s: 0.0 })
}

/// Keeps the pool open: while this value exists, blocks come back; afterwards nobody waits for one.
struct Open<'a>(&'a Pool);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.state().most = usize::MAX;
        self.0.given.notify_all();
    }
}

/// Free blocks, to be filled.
#[derive(Debug)]
struct Pool {
    state: Mutex<PoolState>,
    given: Condvar,
}

#[derive(Debug)]
struct PoolState {
    free: Vec<SampleBlock>,
    /// Number of blocks that exist, and that may exist.
    made: usize,
    most: usize,
    /// Total time for which threads waited for a block.
    waited: Duration,
}

impl Default for Pool {
    fn default() -> Self {
        let state = PoolState { free: Vec::new(), made: 0, most: BLOCKS_UNDER_WAY, waited: Duration::ZERO };
        Pool { state: Mutex::new(state), given: Condvar::new() }
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        // Each change is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an empty block; waits for one if all are in use.
    fn take(&self) -> SampleBlock {
        let mut state = self.state();
        loop {
            if let Some(block) = state.free.pop() {
                return block;
            }
            if state.made < state.most {
                state.made += 1;
                return SampleBlock { kinds: Vec::new(), samples: Vec::with_capacity(BLOCK_SAMPLES) };
            }
            let begun = Instant::now();
            state = self.given.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waited += begun.elapsed();
        }
    }

    fn give(&self, mut block: SampleBlock) {
        block.samples.clear();
        block.kinds.clear();
        self.state().free.push(block);
        self.given.notify_one();
    }
}

/// Collects the samples of one load thread; passes on the remaining ones when it is dropped.
#[derive(Debug)]
pub struct Recorder {
    pool: Arc<Pool>,
    full: Sender<SampleBlock>,
    block: SampleBlock,
    kinds: Vec<OperationKind>,
    names: Arc<KindNames>,
    start_ns: u64,
}

impl Recorder {
    /// Records an operation that ended, or was given up.
    #[inline]
    pub fn record(
        &mut self,
        client: u32,
        kind: OperationKind,
        times: Times,
        is_measured: bool,
        outcome: SampleOutcome,
    ) {
        if self.block.samples.len() == self.block.samples.capacity() {
            self.turn();
        }
        let kind = self.kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        });
        self.block.samples.push(Sample {
            intended_ns: times.intended_ns.saturating_sub(self.start_ns),
            sent_ns: times.sent_ns.saturating_sub(self.start_ns),
            done_ns: times.done_ns.saturating_sub(self.start_ns),
            client,
            kind: kind as u16,
            outcome,
            is_measured,
        });
    }

    /// Passes the block on, and takes an empty one.
    fn turn(&mut self) {
        self.hand_over();
        self.block = self.pool.take();
    }

    fn hand_over(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        if !block.samples.is_empty() {
            block.kinds.extend(self.kinds.iter().map(|kind| self.names.name(*kind)));
            // The receiver is gone only after a panic, which the end of the recording reports.
            let _ = self.full.send(block);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl From<&Ending<'_>> for SampleOutcome {
    fn from(ending: &Ending<'_>) -> Self {
        match ending {
            Ending::Completed { empty: false } => SampleOutcome::Completed,
            Ending::Completed { empty: true } => SampleOutcome::Empty,
            Ending::Failed(_) => SampleOutcome::Failed,
            Ending::Abandoned => SampleOutcome::Abandoned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_for_the_disk_once_all_blocks_are_under_way_and_no_earlier() {
        let pool = Arc::new(Pool::default());
        let taken: Vec<SampleBlock> = (0..BLOCKS_UNDER_WAY).map(|_| pool.take()).collect();
        assert_eq!(pool.state().waited, Duration::ZERO);
        let own = Arc::clone(&pool);
        let waiting = std::thread::spawn(move || own.take());
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished(), "memory is bounded");
        taken.into_iter().for_each(|block| pool.give(block));
        waiting.join().unwrap();
        assert!(pool.state().waited > Duration::ZERO, "what was waited is told");
    }
}
