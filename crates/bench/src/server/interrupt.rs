//! Handles Ctrl-C and similar signals: the first one is noted, so that servers are stopped in order; the second one ends loadline at once.
//!
//! Invariant: the handler does only what is allowed in a signal handler.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static RELOAD: AtomicBool = AtomicBool::new(false);

/// Returns whether loadline was asked to stop since [`install_signal_handlers`].
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Installs handlers so that SIGINT, SIGTERM and SIGHUP set the flag of [`interrupted`] instead of ending loadline; the
/// next such signal ends it at once. A signal that is ignored, such as SIGHUP under `nohup`, stays ignored.
pub fn install_signal_handlers() {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().for_each(|signal| install(signal, note));
}

/// Does the same as [`install_signal_handlers`], but SIGHUP sets the flag of [`take_reload`], also under `nohup`: reloading ends nothing.
pub fn install_signal_handlers_with_reload() {
    [libc::SIGINT, libc::SIGTERM].into_iter().for_each(|signal| install(signal, note));
    exchange(libc::SIGHUP, note_reload as *const () as usize);
}

/// Returns whether a SIGHUP arrived since the last call.
pub fn take_reload() -> bool {
    RELOAD.swap(false, Ordering::Relaxed)
}

/// Installs a handler, unless the signal is ignored.
fn install(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    if exchange(signal, libc::SIG_IGN) != libc::SIG_IGN {
        exchange(signal, handler as *const () as usize);
    }
}

/// Installs the action for a signal and returns the previous one.
fn exchange(signal: libc::c_int, what: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: all zero bytes are a valid sigaction: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut before = action;
    action.sa_sigaction = what;
    // Interrupted reads and writes continue; calls that wait for events return and check the flag.
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: both structures are valid during the call, and the handlers do only what is allowed in a signal handler.
    unsafe { libc::sigaction(signal, &action, &mut before) };
    before.sa_sigaction
}

/// Handles SIGHUP where there is something to reload.
extern "C" fn note_reload(_: libc::c_int) {
    RELOAD.store(true, Ordering::Relaxed);
}

/// Handles a signal that asks loadline to stop.
extern "C" fn note(signal: libc::c_int) {
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        // SAFETY: signal and raise are async-signal-safe.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}
