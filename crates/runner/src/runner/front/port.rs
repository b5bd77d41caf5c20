//! The port that a private recorder chose if its configuration left the port open. Main function: [`port_of`].

use std::time::Duration;

use anyhow::Context;

use crate::server::{Server, wait_until};

/// Longest time between the recorder's first answer and the log line that names its other port.
const SAYS_WITHIN: Duration = Duration::from_secs(20);

/// Returns the port of an intake from the recorder's log: a recorder answers requests before it has logged its other addresses.
///
/// # Errors
/// Fails if the log does not name it in time.
pub(super) fn port_of(recorder: &Server, intake: &str) -> anyhow::Result<u16> {
    awaited(intake, || recorder.log(), || recorder.is_running())
}

fn awaited(intake: &str, log: impl Fn() -> String, is_running: impl Fn() -> bool) -> anyhow::Result<u16> {
    let mut port = None;
    wait_until(SAYS_WITHIN, || {
        // A recorder that has ended writes no more; what it wrote is still read.
        let is_last = !is_running();
        port = port_in(&log(), intake);
        port.is_some() || is_last
    });
    port.with_context(|| format!("the recorder did not say where it listens for {}", intake.to_uppercase()))
}

/// Finds the port of an intake in a log; `None` if no whole line names it.
fn port_in(log: &str, intake: &str) -> Option<u16> {
    let named = format!("intake=\"{intake}\"");
    let line = log.lines().find(|line| line.contains(&named))?;
    let (address, _) = line.split_once("address=\"")?.1.split_once('"')?;
    address.rsplit(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_awaited_until_the_log_says_it_whole() {
        let other = "time=T level=info event=\"taking in\" intake=\"http\" address=\"192.0.2.1:8086\"\n";
        let line = "time=T level=info event=\"taking in\" intake=\"ftp\" address=\"192.0.2.1:40123\"\n";
        let text = format!("{other}{line}");
        let reads = std::cell::Cell::new(0);
        let grows = || {
            reads.set(reads.get() + 1);
            text[..[0, text.len() - 4, text.len()][reads.get().min(3) - 1]].to_owned()
        };
        assert_eq!(awaited("ftp", grows, || true).unwrap(), 40_123);
        assert_eq!(reads.get(), 3, "an empty log, then a part of the line, then all of it");
        assert!(awaited("ftp", String::new, || false).is_err(), "nobody waits for a recorder that has ended");
        assert_eq!(awaited("http", || text.clone(), || false).unwrap(), 8_086);
    }
}
