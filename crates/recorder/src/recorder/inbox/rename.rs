//! Renaming without ever replacing another file: [`rename_new`].

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Renames a file to a name that does not exist yet.
///
/// # Errors
/// `AlreadyExists` if the name exists; otherwise the error of the system.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (from_text, to_text) = (text(from)?, text(to)?);
    // SAFETY: both are texts that end with a NUL and live until the call has ended.
    let renamed = unsafe {
        libc::renameat2(libc::AT_FDCWD, from_text.as_ptr(), libc::AT_FDCWD, to_text.as_ptr(), libc::RENAME_NOREPLACE)
    };
    if renamed == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Network file systems do not support it; there a link does the same in two steps.
        Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        _ => Err(error),
    }
}
