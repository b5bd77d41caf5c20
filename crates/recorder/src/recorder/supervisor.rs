//! The supervisor, such as systemd, which started the recorder and is told its state by datagrams (`sd_notify`). Main type: [`Supervisor`].
//!
//! Invariant: nobody waits for the supervisor, and without one nothing is sent.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use super::quote::shortened;

/// How long a datagram may wait for room in the supervisor's socket.
const SEND_MAX: Duration = Duration::from_millis(200);
/// The most characters of a status.
const STATUS_CHARACTERS_MAX: usize = 200;

/// The supervisor, if there is one.
#[derive(Debug, Default)]
pub struct Supervisor {
    to: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Returns the supervisor that the environment names; one that is absent if it names none.
    ///
    /// # Errors
    /// A sentence with the variable, its value and a remedy.
    pub fn from_environment() -> Result<Self, String> {
        let text = |name: &str| std::env::var(name).ok();
        let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Ok(Supervisor::default());
        };
        let to = open(&name).map_err(|reason| {
            let remedy = "it is set by systemd for units of Type=notify; unset it where there is none";
            format!("NOTIFY_SOCKET is {name:?}: {reason}; {remedy}")
        })?;
        let watchdog = watchdog(text("WATCHDOG_USEC").as_deref(), text("WATCHDOG_PID").as_deref(), std::process::id())?;
        Ok(Supervisor { to: Some(to), watchdog })
    }

    /// Returns whether there is a supervisor.
    pub fn is_there(&self) -> bool {
        self.to.is_some()
    }

    /// Returns the time within which it expects signs of life; `None` if it expects none.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells that data are accepted, from now on or again.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\n{}", status_line(status)));
    }

    /// Tells that the configuration is being read again; [`Supervisor::ready`] ends that.
    pub fn reloading(&self) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us()));
    }

    /// Tells that the recorder stops, and may take this long.
    pub fn stopping(&self, status: &str, within: Duration) {
        let within_us = within.as_micros();
        self.tell(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={within_us}\n{}", status_line(status)));
    }

    /// Tells the status, in a line.
    pub fn status(&self, status: &str) {
        self.tell(&status_line(status));
    }

    /// Gives a sign of life: all parts move.
    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.to {
            // A supervisor that misses one hears the next, or considers the recorder stuck, as it should.
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

fn open(name: &OsStr) -> Result<(UnixDatagram, SocketAddr), String> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => return Err("it must be a path from the root, or an abstract name behind @".to_owned()),
    };
    let open = || {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_MAX))?;
        Ok((socket, address?))
    };
    open().map_err(|error: std::io::Error| error.to_string())
}

/// Returns the interval of signs of life that the environment asks for, if it asks this process or any.
fn watchdog(us: Option<&str>, pid: Option<&str>, own_pid: u32) -> Result<Option<Duration>, String> {
    let Some(us) = us.filter(|_| pid.is_none_or(|pid| pid.parse() == Ok(own_pid))) else { return Ok(None) };
    match us.parse() {
        Ok(us @ 1..) => Ok(Some(Duration::from_micros(us))),
        _ => Err(format!("WATCHDOG_USEC is {us:?}; it must be a whole number of microseconds, or unset")),
    }
}

/// Returns a status as one line of bounded length.
fn status_line(status: &str) -> String {
    let one_line: String = status.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("STATUS={}", shortened(&one_line, STATUS_CHARACTERS_MAX))
}

/// Returns the time of the clock with which systemd compares, in microseconds.
fn monotonic_us() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is that of a time on this stack, which the call fills.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) } != 0 {
        return 0;
    }
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_is_another_processes_where_it_says_so() {
        assert_eq!(watchdog(None, None, 7), Ok(None));
        assert_eq!(watchdog(Some("2000000"), None, 7), Ok(Some(Duration::from_secs(2))));
        assert_eq!(watchdog(Some("2000000"), Some("7"), 7), Ok(Some(Duration::from_secs(2))));
        assert_eq!(watchdog(Some("2000000"), Some("8"), 7), Ok(None));
        assert!(watchdog(Some("often"), None, 7).unwrap_err().contains("WATCHDOG_USEC is \"often\""));
        assert!(watchdog(Some("0"), None, 7).is_err());
    }

    #[test]
    fn a_status_is_one_line_and_names_are_abstract_or_from_the_root() {
        assert_eq!(status_line("two\nREADY=1"), "STATUS=two READY=1");
        assert!(status_line(&"x".repeat(9_999)).len() < 300);
        assert!(open(OsStr::new("notify")).is_err() && open(OsStr::new("/run/notify")).is_ok());
        assert!(open(OsStr::new("@loadline-test")).is_ok());
    }
}
