//! The audit file: one line of JSON for each access, synced before the access is answered. Main type: [`Audit`].

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::recorder::spool::now_ns;
use crate::units::show_utc_ms;

/// Characters of a request that are kept.
const REQUEST_MAX: usize = 1_000;

/// The file, and why it cannot be written any more.
#[derive(Debug)]
pub(super) struct Audit {
    path: PathBuf,
    state: Mutex<(File, Option<String>)>,
}

/// An access.
pub(super) struct Access<'a> {
    /// Who; none without a known token.
    pub(super) reader: Option<&'a str>,
    pub(super) peer: SocketAddr,
    pub(super) request: String,
    pub(super) status: u16,
    /// The records that were given out.
    pub(super) numbers: &'a [i64],
}

impl Audit {
    /// Opens the file behind its last line; a torn one is ended, so that the next begins on its own.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let open = || {
            let mut file = File::options().create(true).read(true).append(true).open(path)?;
            if file.seek(SeekFrom::End(0))? > 0 {
                let mut last = [0];
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
                if last != *b"\n" {
                    file.write_all(b"\n")?;
                }
            }
            file.sync_all()?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(parent)?.sync_all()?;
            Ok(file)
        };
        let file = open().map_err(|error: std::io::Error| format!("office.audit: {}: {error}", path.display()))?;
        Ok(Audit { path: path.to_owned(), state: Mutex::new((file, None)) })
    }

    /// Writes a line; when this comes back it is on the disk. Once it failed nothing is written any more: what is on the disk is not known.
    pub(super) fn write(&self, access: &Access<'_>) -> Result<(), String> {
        let request: String = access.request.chars().take(REQUEST_MAX).collect();
        let line = json!({
            "time": show_utc_ms(now_ns()), "reader": access.reader, "peer": access.peer.to_string(), "request": request,
            "status": access.status, "violations": access.numbers,
        });
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, failure) = &mut *state;
        if let Some(failure) = failure {
            return Err(failure.clone());
        }
        let written = file.write_all(format!("{line}\n").as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|error| {
            let reason = format!("the audit file {} cannot be written: {error}", self.path.display());
            failure.insert(reason).clone()
        })
    }

    /// Why nothing is written any more, if that is so.
    pub(super) fn failure(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_access_is_a_line_also_behind_a_torn_one() {
        let path = std::env::temp_dir().join(format!("loadline-audit-{}", std::process::id()));
        std::fs::write(&path, "{\"torn").unwrap();
        let access = |request: &str| Access {
            reader: Some("desk"),
            peer: "127.0.0.1:1".parse().unwrap(),
            request: request.to_owned(),
            status: 200,
            numbers: &[7],
        };
        let audit = Audit::open(&path).unwrap();
        audit.write(&access("GET /a\nb")).unwrap();
        audit.write(&access(&"x".repeat(5_000))).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "{\"torn"));
        let line: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!((&line["reader"], &line["request"]), (&json!("desk"), &json!("GET /a\nb")));
        assert!(lines[2].len() < 1_300 && Audit::open(Path::new("/nowhere/at/all")).is_err());
    }

    #[test]
    fn a_disk_that_is_full_ends_the_access() {
        let audit = Audit {
            path: "/dev/full".into(),
            state: Mutex::new((File::options().write(true).open("/dev/full").unwrap(), None)),
        };
        let peer = "127.0.0.1:1".parse().unwrap();
        let access = Access { reader: None, peer, request: String::new(), status: 200, numbers: &[] };
        assert!(audit.write(&access).unwrap_err().contains("/dev/full"));
        assert!(audit.failure().is_some());
    }
}
