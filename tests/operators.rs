//! What whoever operates a recorder for years goes by: what the supervisor is told, the log, `/metrics`, the alerts and the unit of systemd. All with
//! the real program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "operators/clients.rs"]
mod clients;
#[path = "operators/exposition.rs"]
mod exposition;
#[path = "operators/files.rs"]
mod files;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[path = "operators/log.rs"]
mod log;
#[path = "operators/metrics.rs"]
mod metrics;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/process.rs"]
mod process;
#[expect(dead_code, reason = "these tests damage spools and copy none")]
#[path = "recorder/spools.rs"]
mod spools;
#[path = "operators/supervised.rs"]
mod supervised;

/// Waits until something is so, however long a busy machine takes.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(240), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
