//! Waits until a server answers, and extracts what its log says when it does not.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use super::process::has_ended;
use crate::database::recipe::{Readiness, Recipe};
use crate::database::{Endpoint, Namespace};

const POLL_EVERY: Duration = Duration::from_millis(20);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The result of waiting for a server.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Ready,
    Exited,
    Refused(String),
    TimedOut,
    Interrupted,
}

/// Waits until the server accepts clients on all its sockets.
pub(super) fn await_server(recipe: &dyn Recipe, endpoint: &Endpoint, child: &Child, patience: Duration) -> Outcome {
    let end = Instant::now() + patience;
    loop {
        match ask_all(recipe, endpoint) {
            Readiness::Ready => return Outcome::Ready,
            Readiness::Refused(reason) => return Outcome::Refused(reason),
            Readiness::Starting | Readiness::Incomplete => {}
        }
        if has_ended(child) {
            return Outcome::Exited;
        }
        if super::interrupted() {
            return Outcome::Interrupted;
        }
        if Instant::now() >= end {
            return Outcome::TimedOut;
        }
        std::thread::sleep(POLL_EVERY);
    }
}

/// Asks all sockets; the server is ready if all of them are.
fn ask_all(recipe: &dyn Recipe, endpoint: &Endpoint) -> Readiness {
    let mut readiness = Readiness::Ready;
    if let Some(path) = &endpoint.unix {
        readiness = UnixStream::connect(path)
            .and_then(|stream| {
                stream.set_read_timeout(Some(ANSWER_WITHIN))?;
                ask(recipe, endpoint, stream)
            })
            .unwrap_or(Readiness::Starting);
    }
    if let (Readiness::Ready, Some((host, port))) = (&readiness, &endpoint.tcp) {
        let inside = endpoint.namespace.as_ref().map(Namespace::enter).transpose();
        readiness = inside
            .and_then(|_inside| TcpStream::connect((host.as_str(), *port)))
            .and_then(|stream| {
                stream.set_read_timeout(Some(ANSWER_WITHIN))?;
                ask(recipe, endpoint, stream)
            })
            .unwrap_or(Readiness::Starting);
    }
    readiness
}

fn ask(recipe: &dyn Recipe, endpoint: &Endpoint, mut stream: impl Read + Write) -> io::Result<Readiness> {
    stream.write_all(&recipe.hello(endpoint))?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..count]);
        match recipe.readiness(&answer) {
            Readiness::Incomplete if count == 0 => return Ok(Readiness::Starting),
            Readiness::Incomplete => {}
            readiness => return Ok(readiness),
        }
    }
}

/// Returns the lines of a log that name an exception by which a program in Java ended; if there are none, the last lines that say what went wrong; if there are none either, the last ones. At most
/// eight lines.
pub(super) fn relevant_lines(log: &str) -> String {
    const TELLING: [&str; 10] =
        ["error", "fatal", "panic", "unknown", "unrecognized", "invalid", "denied", "hint:", "detail:", "no space"];
    let lines: Vec<&str> = log.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let is_telling = |line: &&&str| {
        let line = line.to_lowercase();
        TELLING.iter().any(|word| line.contains(word))
    };
    let exceptions: Vec<&str> = lines.iter().filter(|line| names_exception(line)).copied().collect();
    let telling: Vec<&str> = lines.iter().filter(is_telling).copied().collect();
    let chosen = [&exceptions, &telling].into_iter().find(|found| !found.is_empty()).unwrap_or(&lines);
    let mut out = String::new();
    for line in &chosen[chosen.len().saturating_sub(8)..] {
        out += "\n    ";
        out += line;
    }
    if out.is_empty() { "\n    (its log is empty)".to_owned() } else { out }
}

/// Returns whether a line is the first of an exception or of its cause, as Java prints them: the full name of a class, and behind a colon what it says.
fn names_exception(line: &str) -> bool {
    let name = line.strip_prefix("Caused by: ").unwrap_or(line).split(':').next().unwrap_or_default();
    let is_class =
        name.contains('.') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._$".contains(&byte));
    is_class && (name.ends_with("Exception") || name.ends_with("Error"))
}

/// Returns the log's messages, without time and severity, about settings to which the server gave another value than asked for.
pub(super) fn adjustments<'a>(log: &str, settings: impl Iterator<Item = &'a String>) -> Vec<String> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let names: Vec<String> = settings.map(|name| plain(name)).collect();
    let says_so = |line: &&str| {
        let line = plain(line);
        line.contains("warning") && names.iter().any(|name| line.contains(name))
    };
    let text = |line: &str| {
        let behind = line.to_ascii_lowercase().find("warning").map_or(0, |at| at + "warning".len());
        line[behind..].trim_start_matches([']', ':', ' ']).trim().to_owned()
    };
    log.lines().filter(says_so).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_tell_the_reason_are_chosen() {
        let log = "[Note] Starting\n[ERROR] unknown variable 'foo=1'\n[Note] x\n[ERROR] Aborting\n";
        assert_eq!(relevant_lines(log), "\n    [ERROR] unknown variable 'foo=1'\n    [ERROR] Aborting");
        assert_eq!(relevant_lines("one\n\ntwo\n"), "\n    one\n    two");
        assert_eq!(relevant_lines(""), "\n    (its log is empty)");
        let log = "2026 A server checks no unhandled errors\nio.questdb.Bootstrap$BootstrapException: java.lang.OutOfRange\n\tat \
                   io.questdb.ServerMain.main(ServerMain.java:137)\nCaused by: java.lang.StringIndexOutOfBoundsException: offset 0\n\t... 3 more\nOther: x\n";
        assert_eq!(
            relevant_lines(log),
            "\n    io.questdb.Bootstrap$BootstrapException: java.lang.OutOfRange\n    Caused by: java.lang.StringIndexOutOfBoundsException: offset 0"
        );
        let many: String = (0..100).map(|number| format!("line {number}\n")).collect();
        assert_eq!(relevant_lines(&many).lines().count(), 9);
    }

    #[test]
    fn a_value_that_the_server_changed_is_noticed() {
        let log = "[Warning] option 'innodb-io-capacity': unsigned value 1 adjusted to 100\n[Warning] other\n";
        let name = "innodb_io_capacity".to_owned();
        let found = adjustments(log, [&name].into_iter());
        assert_eq!(found, ["option 'innodb-io-capacity': unsigned value 1 adjusted to 100"]);
        assert!(adjustments(log, [].into_iter()).is_empty());
    }
}
