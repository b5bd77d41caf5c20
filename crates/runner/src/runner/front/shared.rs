//! Waits until the recorders of a trial have shared the parts of their stream. Main function: [`await_parts`].
//!
//! Invariant: no load begins before each part has a recorder, and no recorder has more than its share.

use std::time::Duration;

use anyhow::bail;

use super::Front;
use crate::runner::watch::{Look, look};
use crate::server::{interrupted, wait_until};

/// Longest time in which recorders share the parts: several leases, on a machine that is busy.
const SHARED_WITHIN: Duration = Duration::from_secs(120);

/// Waits until all parts of the stream have a recorder and are dealt out evenly.
///
/// # Errors
/// Fails if a recorder ends, or if the parts are not shared in time.
pub(super) fn await_parts(front: &Front) -> anyhow::Result<()> {
    let mut seen: Vec<Look> = Vec::new();
    let is_shared = wait_until(SHARED_WITHIN, || {
        // A recorder that does not answer now may do so at the next look.
        seen = front.watched().filter_map(|http| look(http).ok()).collect();
        interrupted() || front.failure().is_some() || are_shared(&seen, front.recorders.len())
    });
    if let Some(why) = front.failure() {
        bail!("{why}");
    }
    if interrupted() {
        bail!("interrupted while the recorders shared the stream");
    }
    if !is_shared {
        let held: Vec<String> = seen.iter().map(|look| look.parts_held.to_string()).collect();
        let (held, within_s) = (held.join(", "), SHARED_WITHIN.as_secs());
        bail!(
            "the recorders did not share the stream within {within_s} s: they have {held} of its parts; see that other programs leave them CPU time"
        );
    }
    Ok(())
}

/// Returns whether all parts have a recorder, and no recorder has more than its share, rounded up.
fn are_shared(seen: &[Look], count: usize) -> bool {
    let parts = seen.first().map_or(0, |look| look.parts);
    let share = parts.div_ceil(count.max(1) as u64);
    let held: u64 = seen.iter().map(|look| look.parts_held).sum();
    seen.len() == count && parts > 0 && held == parts && seen.iter().all(|look| look.parts_held <= share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::watch::read_page;

    fn seen(held: &[u64], parts: u64) -> Vec<Look> {
        let page = |held: &u64| {
            format!(
                "loadline_acknowledged_rows_total 0\nloadline_committed_rows_total 0\nloadline_spooled_rows 0\nloadline_quarantined_rows 0\n\
                 loadline_stream_parts {parts}\nloadline_stream_parts_held {held}\n"
            )
        };
        held.iter().map(|held| read_page(&page(held), std::time::Instant::now()).unwrap()).collect()
    }

    #[test]
    fn parts_are_shared_once_each_has_a_recorder_and_none_has_more_than_its_share() {
        assert!(are_shared(&seen(&[16], 16), 1) && are_shared(&seen(&[8, 8], 16), 2));
        assert!(are_shared(&seen(&[6, 6, 4], 16), 3) && are_shared(&seen(&[2, 2, 0], 4), 3));
        assert!(!are_shared(&seen(&[16, 0], 16), 2), "the first one has not given up its surplus");
        assert!(!are_shared(&seen(&[8, 7], 16), 2), "one part is free");
        assert!(!are_shared(&seen(&[8], 16), 2), "one of them did not answer");
        assert!(!are_shared(&seen(&[0], 0), 1), "the stream is not there yet");
    }
}
