//! Reads files that users name, up to a size limit, and says where a user's cache is. Main functions: [`read`], [`read_text`], [`text_of`] and [`cache_directory`].
//!
//! A file that is a device, or a dump named by mistake, must not take all memory before its error is reported.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Largest size of a file that people write, in bytes: a study, a configuration, keys.
pub const WRITTEN_MOST: u64 = 16 << 20;
/// Largest size of a file that programs write for others to read, in bytes: logs, tables, traces, blocks.
pub const MADE_MOST: u64 = 1 << 30;

/// Returns the bytes of a file that has at most `most` bytes.
///
/// # Errors
/// When it cannot be read or has more.
pub fn read(path: impl AsRef<Path>, most: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let most = most >> 20;
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} MiB, and no more are read")));
    }
    Ok(bytes)
}

/// Returns the text of a file that has at most `most` bytes.
///
/// # Errors
/// As for [`read`], and when it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>, most: u64) -> Result<String, Error> {
    text_of(read(path, most)?)
        .map_err(|line| Error::new(ErrorKind::InvalidData, format!("line {line} is not UTF-8 text")))
}

/// Converts bytes to text.
///
/// # Errors
/// The line, from 1, in which the bytes are not UTF-8.
pub fn text_of(bytes: Vec<u8>) -> Result<String, usize> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    })
}

/// Environment variable with the directory of the cache; `off` keeps nothing.
pub const CACHE_VARIABLE: &str = "LOADLINE_CACHE";

/// Returns the directory in which this user keeps data for later runs: `$LOADLINE_CACHE`, else `loadline` in `$XDG_CACHE_HOME` or `~/.cache`; `None` if it is switched off or
/// there is no place for it.
pub fn cache_directory() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match std::env::var_os(CACHE_VARIABLE) {
        Some(value) if value == "off" => None,
        Some(value) if !value.is_empty() => Some(PathBuf::from(value)),
        _ => Some(absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?.join("loadline")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_given_up() {
        let error = read("/dev/zero", WRITTEN_MOST).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 16 MiB, and no more are read");
        assert!(read_text("/dev/null", 0).unwrap().is_empty());
    }

    #[test]
    fn bytes_that_are_no_text_are_told_with_their_line() {
        assert_eq!(text_of("zwölf\n".into()), Ok("zwölf\n".to_owned()));
        assert_eq!(text_of(b"a\nb\n\xff\nc".to_vec()), Err(3));
        assert_eq!(text_of(b"\xff".to_vec()), Err(1));
    }
}
