//! A committer's work, done by the caller instead of a thread: nothing runs beside it, so the same requests have the same results. Main type: [`Here`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CommitterHandle;
use crate::recorder::spool::SpoolFile;
use crate::recorder::spool::worker::Worker;

/// Writes a spool without a thread.
#[derive(Clone)]
pub(super) struct Here {
    worker: Arc<Mutex<Option<Worker>>>,
}

impl Here {
    /// Does everything that was asked for.
    pub(super) fn work(&self) {
        if let Some(worker) = &mut *self.lock() {
            worker.work_off();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Worker>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommitterHandle {
    /// Returns a handle over an open spool that does the work itself, within each call.
    pub fn here(file: SpoolFile) -> Self {
        let (handle, worker) = CommitterHandle::over(file);
        CommitterHandle { here: Some(Here { worker: Arc::new(Mutex::new(Some(worker))) }), ..handle }
    }

    /// Ends the spool: in order, or as a kill of the process does, with nothing noted. Afterwards every handle gets the error that it has ended.
    pub fn end(&self, in_order: bool) {
        let worker = self.here.as_ref().and_then(|here| here.lock().take());
        match worker {
            Some(worker) if !in_order => worker.abandon(),
            worker => drop(worker),
        }
    }
}
