//! The audit file: one line of JSON for each access, synced before the access is answered, and for each erasure, synced before it begins. Main
//! type: [`Audit`].
//!
//! Invariant: nothing is read or erased without a line. Clients without a token read nothing: they get lines at a bounded rate, and a later line
//! gives the number that was left out.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::json;

use super::strangers::Strangers;
use crate::recorder::clock::now_ns;
use crate::recorder::log;
use crate::units::show_utc_ms;

/// The most characters of a reader's request that are kept; and of a stranger's.
const REQUEST_MAX: usize = 1_000;
const STRANGERS_REQUEST_MAX: usize = 200;

/// The audit file and its state.
#[derive(Debug)]
pub(super) struct Audit {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// True if a line was begun that could not be written whole.
    is_torn: bool,
    /// Why nothing is written any more: after a failed sync it is not known what is on the disk. `None` while lines are written.
    failure: Option<String>,
    /// True if it was logged that the file cannot be written now.
    was_told: bool,
    strangers: Strangers,
}

/// An access.
pub(super) struct Access<'a> {
    /// The reader; `None` without a known token.
    pub(super) reader: Option<&'a str>,
    pub(super) peer: SocketAddr,
    pub(super) request: String,
    pub(super) status: u16,
    /// The numbers of the records that were returned.
    pub(super) numbers: &'a [i64],
}

/// Violations that are erased, or are about to be.
#[derive(Debug, Clone, Copy)]
pub struct Erasure<'a> {
    /// The numbers of the violations.
    pub numbers: &'a [i64],
    /// The person who requests the erasure.
    pub by: &'a str,
    /// The reason.
    pub reason: &'a str,
    /// True if they are erased; false if they are about to be.
    pub is_done: bool,
}

/// Records an erasure in an audit file: which violations, by whom and why. On return, the line is on the disk.
///
/// # Errors
/// A sentence, if the file cannot be written.
pub fn note_erasure(path: &Path, erasure: Erasure<'_>) -> Result<(), String> {
    let audit = Audit::open(path)?;
    let cut = |text: &str| text.chars().take(REQUEST_MAX).collect::<String>();
    let line = json!({
        "time": show_utc_ms(now_ns()), "erases": erasure.numbers, "by": cut(erasure.by), "reason": cut(erasure.reason),
        "done": erasure.is_done,
    });
    let mut state = audit.state.lock().unwrap_or_else(PoisonError::into_inner);
    audit.write_line(&mut state, &line.to_string())
}

impl Audit {
    /// Opens the file at its end; a torn last line is ended, so that the next one begins on its own.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let open = || {
            let mut file = File::options().create(true).read(true).append(true).open(path)?;
            let mut is_torn = false;
            if file.seek(SeekFrom::End(0))? > 0 {
                let mut last = [0];
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
                is_torn = last != *b"\n";
            }
            file.sync_all()?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(parent)?.sync_all()?;
            Ok((file, is_torn))
        };
        let opened = open().map_err(|error: std::io::Error| format!("office.audit: {}: {error}", path.display()));
        let (file, is_torn) = opened?;
        Ok(Audit { path: path.to_owned(), state: Mutex::new(State::new(file, is_torn)) })
    }

    /// Writes a line; on return it is on the disk. After a full disk the next access tries again; after a failed sync nothing
    /// is written any more.
    pub(super) fn write(&self, access: &Access<'_>) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if access.reader.is_none() && !state.strangers.is_written(access.peer.ip(), Instant::now()) {
            return Ok(());
        }
        let left_out = state.strangers.take_left_out();
        let most = if access.reader.is_some() { REQUEST_MAX } else { STRANGERS_REQUEST_MAX };
        let request: String = access.request.chars().take(most).collect();
        let mut line = json!({
            "time": show_utc_ms(now_ns()), "reader": access.reader, "peer": access.peer.to_string(), "request": request,
            "status": access.status, "violations": access.numbers,
        });
        if left_out > 0 {
            line["left_out"] = left_out.into();
        }
        let written = self.write_line(&mut state, &line.to_string());
        if written.is_err() {
            state.strangers.give_back(left_out);
        }
        written
    }

    /// Writes at the end how many strangers were left out since the last line.
    pub(super) fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = state.strangers.take_left_out();
        if left_out > 0 {
            let line = json!({ "time": show_utc_ms(now_ns()), "reader": null, "left_out": left_out });
            // It was logged already that the file cannot be written.
            let _ = self.write_line(&mut state, &line.to_string());
        }
    }

    fn write_line(&self, state: &mut State, line: &str) -> Result<(), String> {
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        let begin = if state.is_torn { "\n" } else { "" };
        let written = state.file.write_all(format!("{begin}{line}\n").as_bytes());
        state.is_torn = written.is_err();
        let is_written = written.is_ok();
        let Err(error) = written.and_then(|()| state.file.sync_data()) else {
            if std::mem::take(&mut state.was_told) {
                log::info("the audit file is written again", &[("path", &self.path.display().to_string())]);
            }
            return Ok(());
        };
        let reason = format!("the audit file {} cannot be written: {error}", self.path.display());
        if is_written {
            state.failure = Some(reason.clone());
        }
        if !std::mem::replace(&mut state.was_told, true) {
            let remedy = if is_written { "restart the recorder" } else { "make room on its disk" };
            log::error("the ticket office answers nobody", &[("reason", &reason), ("remedy", remedy)]);
        }
        Err(reason)
    }

    /// Returns why nothing is written any more; `None` while lines are written.
    pub(super) fn failure(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failure.clone()
    }
}

impl State {
    fn new(file: File, is_torn: bool) -> Self {
        State { file, is_torn, failure: None, was_told: false, strangers: Strangers::new(Instant::now()) }
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
    fn on_a_disk_that_is_full_nobody_reads_until_there_is_room() {
        let path = std::env::temp_dir().join(format!("loadline-audit-full-{}", std::process::id()));
        let full = File::options().write(true).open("/dev/full").unwrap();
        let audit = Audit { path: "/dev/full".into(), state: Mutex::new(State::new(full, false)) };
        let peer = "127.0.0.1:1".parse().unwrap();
        let access = |reader| Access { reader, peer, request: String::new(), status: 200, numbers: &[] };
        assert!(audit.write(&access(Some("desk"))).unwrap_err().contains("/dev/full"));
        for _ in 0..50 {
            let _ = audit.write(&access(None));
        }
        assert_eq!(audit.failure(), None);
        audit.state.lock().unwrap().file = File::options().create(true).append(true).open(&path).unwrap();
        audit.write(&access(Some("desk"))).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!(
            line["left_out"].as_u64(),
            Some(40),
            "10 of 50 strangers were told that the office is out of order: {text}"
        );
    }
}
