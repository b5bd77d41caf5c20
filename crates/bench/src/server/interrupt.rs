//! Ctrl-C and its relatives: the first one is noted, so that servers are stopped in order; the second one ends at once.
//!
//! Invariant: the handler does nothing but what may be done in a signal handler.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static RELOAD: AtomicBool = AtomicBool::new(false);

/// Whether the user, or whoever started loadline, asked it to stop since [`install_signal_handlers`].
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// From now on SIGINT, SIGTERM and SIGHUP set the flag of [`interrupted`] instead of ending loadline; the next one after that
/// ends it at once. A signal that is ignored, as SIGHUP under `nohup`, stays so.
pub fn install_signal_handlers() {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().for_each(|signal| install(signal, note));
}

/// As [`install_signal_handlers`], but SIGHUP sets the flag of [`take_reload`], under `nohup` too: reading again ends nothing.
pub fn install_signal_handlers_with_reload() {
    [libc::SIGINT, libc::SIGTERM].into_iter().for_each(|signal| install(signal, note));
    exchange(libc::SIGHUP, note_reload as *const () as usize);
}

/// Whether somebody sent SIGHUP since the last call.
pub fn take_reload() -> bool {
    RELOAD.swap(false, Ordering::Relaxed)
}

/// Installs a handler, unless the signal is ignored.
fn install(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    if exchange(signal, libc::SIG_IGN) != libc::SIG_IGN {
        exchange(signal, handler as *const () as usize);
    }
}

/// Installs what is to happen at a signal; what happened before.
fn exchange(signal: libc::c_int, what: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: all zero bytes are a valid sigaction: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut before = action;
    action.sa_sigaction = what;
    // Interrupted reads and writes go on; those that wait for events return and look at the flag.
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: both structures are valid during the call, and the handlers only do what is allowed in one.
    unsafe { libc::sigaction(signal, &action, &mut before) };
    before.sa_sigaction
}

/// The handler of SIGHUP where there is something to be read again.
extern "C" fn note_reload(_: libc::c_int) {
    RELOAD.store(true, Ordering::Relaxed);
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
