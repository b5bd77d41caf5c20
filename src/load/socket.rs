//! What the transports that make their system calls themselves share.
//!
//! Invariant: a write never waits.

use std::os::fd::RawFd;

/// Bytes read at once; longer answers take several reads.
pub(super) const INPUT_BYTES: usize = 64 * 1024;

/// Whether a call came to nothing and may be made again.
pub(super) fn is_to_be_repeated(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}

/// Lets reads of a descriptor wait, or not.
///
/// # Errors
/// As the kernel answers.
pub(super) fn set_nonblocking(fd: RawFd, is_nonblocking: bool) -> std::io::Result<()> {
    // SAFETY: fcntl with these commands takes no pointer; the descriptor is open.
    let result = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        let flags = if is_nonblocking { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
        libc::fcntl(fd, libc::F_SETFL, flags)
    };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Writes what the socket takes; 0 when its buffer is full.
///
/// # Errors
/// When the connection is broken.
pub(super) fn write(fd: RawFd, from: &[u8]) -> std::io::Result<usize> {
    // SAFETY: the pointer and length are those of a slice of ours.
    let count = unsafe { libc::send(fd, from.as_ptr().cast(), from.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
    if count >= 0 {
        return Ok(count as usize);
    }
    let error = std::io::Error::last_os_error();
    if is_to_be_repeated(&error) { Ok(0) } else { Err(error) }
}
