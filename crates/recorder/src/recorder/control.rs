//! The control socket, by which commands reach a running recorder: a private socket `control` in the spool's directory, for replaying or discarding
//! the quarantine while the recorder goes on. Main functions: [`listen`], for the recorder, and [`ask`], for the command.
//!
//! The command sends `replay` or `discard` and a line end. The recorder works in portions, each one transaction of the spool, and sends `portion N` after
//! each, N being the number of records so far; at the end `done N`, or `failed N` and the reason. Only the recorder writes into the spool. So either
//! process may be killed at any time: a portion is done or not, and the records of portions that are not done stay in quarantine.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::log;
use super::spool::{Clearing, CommitterHandle, Span};
use super::stop::Stop;

/// The name of the socket.
const NAME: &str = "control";
/// The name under which the socket is created, until nobody else can reach it.
const NEW_NAME: &str = "control.new";
/// The longest path of a socket that every system accepts, in bytes.
const PATH_BYTES_MAX: usize = 100;
/// How often the recorder checks whether it is to stop.
const LOOK: Duration = Duration::from_millis(200);
/// How long the command may take to send its request, and to accept an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest time for a portion: the recorder's disk may be busy.
const PORTION_PATIENCE: Duration = Duration::from_secs(300);
/// The most bytes of a request.
const ASKED_MAX: u64 = 64;

/// The spool's directory, as the place of the socket.
struct Place {
    directory: PathBuf,
    /// The open directory, by which a long path becomes short.
    _open: Option<File>,
}

impl Place {
    fn of(directory: &Path) -> std::io::Result<Self> {
        if directory.as_os_str().len() + NEW_NAME.len() < PATH_BYTES_MAX {
            return Ok(Place { directory: directory.to_owned(), _open: None });
        }
        let open = File::open(directory)?;
        let short = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        Ok(Place { directory: short, _open: Some(open) })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// The recorder's side of the control socket, until it is dropped.
pub(super) struct Control {
    place: Place,
}

impl Drop for Control {
    fn drop(&mut self) {
        // A command that finds no recorder behind the socket takes the spool's lock.
        let _ = std::fs::remove_file(self.place.path(NAME));
    }
}

/// Listens for commands, in a runtime. A recorder whose socket cannot be created goes on without it.
pub(super) fn listen(
    directory: &Path,
    runtime: &tokio::runtime::Handle,
    spool: CommitterHandle,
    stop: Arc<Stop>,
) -> Option<Control> {
    let _inside = runtime.enter();
    match bind(directory) {
        Ok((control, listener, own)) => {
            runtime.spawn(serve(listener, own, spool, stop));
            Some(control)
        }
        Err(error) => {
            let path = directory.join(NAME).display().to_string();
            let remedy = "stop the recorder to replay or discard its quarantine";
            let facts = [("path", path.as_str()), ("reason", &error.to_string()), ("remedy", remedy)];
            log::warning("commands cannot reach this recorder", &facts);
            None
        }
    }
}

/// Creates the socket; also returns the user id of its owner.
fn bind(directory: &Path) -> std::io::Result<(Control, UnixListener, u32)> {
    let place = Place::of(directory)?;
    let (new, path) = (place.path(NEW_NAME), place.path(NAME));
    // A killed recorder may have left this socket; the spool's lock ensures that no other recorder runs.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&new)?;
    std::fs::set_permissions(&new, Permissions::from_mode(0o600))?;
    let own = std::fs::metadata(&new)?.uid();
    std::fs::rename(&new, &path)?;
    Ok((Control { place }, listener, own))
}

async fn serve(listener: UnixListener, own: u32, spool: CommitterHandle, stop: Arc<Stop>) {
    while !stop.is_asked() {
        let Ok(accepted) = tokio::time::timeout(LOOK, listener.accept()).await else { continue };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(LOOK).await;
            continue;
        };
        // The permissions of the socket keep other users away, except at the moment in which it is created.
        let is_own = stream.peer_cred().is_ok_and(|peer| [own, 0].contains(&peer.uid()));
        if is_own {
            tokio::spawn(answer(stream, spool.clone(), Arc::clone(&stop)));
        }
    }
}

/// Carries out one command. Once the command has disconnected, no further portion begins.
async fn answer(mut stream: UnixStream, spool: CommitterHandle, stop: Arc<Stop>) -> Option<()> {
    let mut asked = String::new();
    let mut from = tokio::io::BufReader::new((&mut stream).take(ASKED_MAX));
    tokio::time::timeout(PATIENCE, from.read_line(&mut asked)).await.ok()?.ok()?;
    let (what, word) = match asked.trim_end() {
        "replay" => (Clearing::Replay, "replayed"),
        "discard" => (Clearing::Discard, "discarded"),
        _ => return say(&mut stream, "failed 0 there are replay and discard").await,
    };
    let (mut rows, mut next) = (0, Some(Span::ALL));
    while let Some(span) = next {
        if stop.is_asked() {
            return say(&mut stream, &format!("failed {rows} the recorder is stopping")).await;
        }
        let portion = match spool.clear(what, span).await {
            Ok(portion) => portion,
            Err(error) => return say(&mut stream, &format!("failed {rows} {error}")).await,
        };
        rows += portion.rows;
        if let Some(reason) = portion.full {
            note(word, rows);
            return say(&mut stream, &format!("failed {rows} {reason}")).await;
        }
        next = portion.next;
        if say(&mut stream, &format!("portion {rows}")).await.is_none() {
            note(word, rows);
            return None;
        }
    }
    note(word, rows);
    say(&mut stream, &format!("done {rows}")).await
}

fn note(word: &str, rows: u64) {
    log::info("what was in quarantine was cleared by a command", &[(word, &rows.to_string())]);
}

async fn say(stream: &mut UnixStream, line: &str) -> Option<()> {
    let line = line.replace('\n', " ") + "\n";
    tokio::time::timeout(PATIENCE, stream.write_all(line.as_bytes())).await.ok()?.ok()
}

/// The answer of a running recorder.
pub(super) enum Answered {
    /// The command is done; the number of records.
    Done(u64),
    /// The command failed after this number of records; the reason.
    Failed(u64, String),
}

/// Sends a command to the recorder that works on a spool; `None` if none can be reached.
///
/// # Errors
/// A sentence if there is a recorder that may not be asked.
pub(super) fn ask(directory: &Path, what: Clearing) -> Result<Option<Answered>, String> {
    let path = directory.join(NAME);
    let place = Place::of(directory).map_err(|error| format!("cannot be opened: {error}"))?;
    let mut stream = match std::os::unix::net::UnixStream::connect(place.path(NAME)) {
        Ok(stream) => stream,
        Err(error) if [ErrorKind::NotFound, ErrorKind::ConnectionRefused].contains(&error.kind()) => return Ok(None),
        Err(error) => {
            let path = path.display();
            return Err(format!("{path} cannot be reached: {error}; run this as the user that the recorder runs as"));
        }
    };
    let word: &[u8] = match what {
        Clearing::Replay => b"replay\n",
        Clearing::Discard => b"discard\n",
    };
    let asked = stream.set_read_timeout(Some(PORTION_PATIENCE)).and_then(|()| stream.write_all(word));
    let (mut rows, mut lines) = (0, BufReader::new(stream).lines());
    if asked.is_ok() {
        while let Some(Ok(line)) = lines.next() {
            let mut words = line.splitn(3, ' ');
            let (kind, number) = (words.next().unwrap_or_default(), words.next().and_then(|word| word.parse().ok()));
            rows = number.unwrap_or(rows);
            match kind {
                "done" => return Ok(Some(Answered::Done(rows))),
                "failed" => return Ok(Some(Answered::Failed(rows, words.next().unwrap_or_default().to_owned()))),
                _ => {}
            }
        }
    }
    let reason = "the recorder has ended, or does not answer any more; the others are in quarantine still: do it again";
    Ok(Some(Answered::Failed(rows, reason.to_owned())))
}
