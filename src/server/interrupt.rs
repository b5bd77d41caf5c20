//! Ctrl-C and its relatives: the first one is noted, so that servers are stopped in order; the second one ends at once.
//!
//! Invariant: the handler does nothing but what may be done in a signal handler.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether the user, or whoever started loadline, asked it to stop since [`install_signal_handlers`].
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// From now on SIGINT, SIGTERM and SIGHUP set the flag of [`interrupted`] instead of ending loadline; the next one after that
/// ends it at once. A signal that is ignored, as SIGHUP under `nohup`, stays so.
pub fn install_signal_handlers() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all zero bytes are a valid sigaction: no flags, an empty mask, the default action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let mut before = action;
        action.sa_sigaction = note as extern "C" fn(libc::c_int) as usize;
        // Interrupted reads and writes go on; those that wait for events return and look at the flag.
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: both structures are valid during the calls, and `note` only does what is allowed in a handler.
        unsafe {
            libc::sigaction(signal, std::ptr::null(), &mut before);
            if before.sa_sigaction != libc::SIG_IGN {
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// The handler.
extern "C" fn note(signal: libc::c_int) {
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        // SAFETY: signal and raise are async-signal-safe.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}
