//! The end of what an embedded database executes when loadline is told to end. Main type: [`Watch`].

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::SessionLimits;

/// How often a thread looks whether loadline was told to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A thread that interrupts what a database executes when loadline is told to end.
pub(super) struct Watch {
    is_over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the thread, which calls `interrupt`. Returns `None` when the system has no thread left: what is executed then is waited for.
    pub(super) fn start(limits: &Arc<SessionLimits>, interrupt: impl Fn() + Send + 'static) -> Option<Self> {
        let is_over = Arc::new((Mutex::new(false), Condvar::new()));
        let (of_thread, limits) = (Arc::clone(&is_over), Arc::clone(limits));
        let work = move || {
            let (is_over, changed) = &*of_thread;
            let mut over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
            while !*over {
                let is_told = limits.is_told_to_end();
                if is_told {
                    interrupt();
                }
                // What is executed afterwards removes what was made, and has some time for that.
                let pause = if is_told { limits.last() } else { LOOK_EVERY };
                over = changed.wait_timeout(over, pause).unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        let thread = std::thread::Builder::new().name("interrupts".to_owned()).spawn(work).ok()?;
        Some(Watch { is_over, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.is_over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.is_over.1.notify_all();
        // A thread that panicked has nothing more to do.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
