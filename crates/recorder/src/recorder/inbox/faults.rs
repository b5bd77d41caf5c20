//! Points where a test makes the disk fail. Main type: [`Faults`]; without a test there are none.

use std::fmt;
use std::io;
use std::sync::Arc;

/// What is about to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Bytes are written into an upload.
    Write,
    /// An upload's file is synced.
    SyncFile,
    /// An upload gets its name among the received ones.
    Name,
    /// Names in a directory are synced.
    SyncDirectory,
    /// A block that is settled is removed.
    Remove,
}

type Hook = dyn Fn(Step) -> io::Result<()> + Send + Sync;

/// Steps that fail.
#[derive(Clone, Default)]
pub struct Faults {
    hook: Option<Arc<Hook>>,
}

impl Faults {
    /// Asks before every step whether it fails.
    pub fn new(hook: impl Fn(Step) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Faults { hook: Some(Arc::new(hook)) }
    }

    /// A step is about to be done.
    ///
    /// # Errors
    /// Whatever the test wants.
    pub(super) fn at(&self, step: Step) -> io::Result<()> {
        self.hook.as_ref().map_or(Ok(()), |hook| hook(step))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Faults({})", if self.hook.is_some() { "some" } else { "none" })
    }
}
