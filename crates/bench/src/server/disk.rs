//! Free space on file systems.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns how many bytes a user without privileges may still write to the file system of `path`.
///
/// # Errors
/// Returns the operating system's error, for instance when the path does not exist.
pub fn free_disk_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: statvfs consists of integers, for which zero is valid.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte and the structure may be written to, both during the call.
    match unsafe { libc::statvfs(path.as_ptr(), &mut answer) } {
        0 => Ok(answer.f_bavail as u64 * answer.f_frsize as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_room_agrees_with_df() {
        let output =
            std::process::Command::new("df").args(["--output=avail", "--block-size=1", "/tmp"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let expected: f64 = text.lines().nth(1).unwrap().trim().parse().unwrap();
        let bytes = free_disk_bytes(Path::new("/tmp")).unwrap() as f64;
        // Other programs write at the same time.
        assert!((bytes - expected).abs() < 4e9, "{bytes} {expected}");
        assert!(free_disk_bytes(Path::new("/nowhere")).is_err());
    }
}
