//! Points where a test makes the disk fail. Main type: [`Faults`]; without a test there are none.

use std::fmt;
use std::io;
use std::sync::Arc;

/// A step on the disk that may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Writing bytes into an upload.
    Write,
    /// Syncing the file of an upload.
    SyncFile,
    /// Giving an upload its name among the received ones.
    Name,
    /// Syncing the names in a directory.
    SyncDirectory,
    /// Removing a settled block.
    Remove,
}

type Hook = dyn Fn(Step) -> io::Result<()> + Send + Sync;

/// The steps that fail.
#[derive(Clone, Default)]
pub struct Faults {
    hook: Option<Arc<Hook>>,
}

impl Faults {
    /// Creates faults from a function that decides before every step whether it fails.
    pub fn new(hook: impl Fn(Step) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Faults { hook: Some(Arc::new(hook)) }
    }

    /// Reports a step that is about to be done.
    ///
    /// # Errors
    /// The error that the test injects.
    pub(super) fn at(&self, step: Step) -> io::Result<()> {
        self.hook.as_ref().map_or(Ok(()), |hook| hook(step))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Faults({})", if self.hook.is_some() { "some" } else { "none" })
    }
}
