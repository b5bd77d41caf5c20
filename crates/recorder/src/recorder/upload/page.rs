//! The part of `/metrics` about uploads. Main function: [`text`].

use std::fmt::Write;

use super::Blocks;
use crate::recorder::metrics::Page;

/// Returns the part of the page about uploads.
pub(super) fn text(blocks: &Blocks) -> String {
    let meter = &blocks.meter;
    let mut page = Page::default();
    page.counter("uploads_acknowledged_total", "Blocks acknowledged since the start, new ones", meter.accepted.get());
    page.counter(
        "uploads_repeated_total",
        "Blocks acknowledged that waited already, with the same content",
        meter.again.get(),
    );
    page.counter("uploads_bytes_total", "Bytes of the blocks that were acknowledged", meter.bytes.get());
    page.head("uploads_refused_total", "counter", "Blocks and clients that were not taken in, by reason");
    for (reason, count) in meter.refused() {
        let _ = writeln!(page.0, "loadline_uploads_refused_total{{reason=\"{reason}\"}} {count}");
    }
    page.gauge("upload_connections", "Connections of uploading clients that are open", meter.open.get() as f64);
    page.times("upload_seconds", "From the turn of a block's first byte to its acknowledgement", &meter.times);
    let is_broken = blocks.receiving.broken().is_some();
    page.gauge("inbox_broken", "Whether a failed sync ended acknowledgement", f64::from(u8::from(is_broken)));
    let bounds = blocks.receiving.inbox().bounds();
    page.gauge("inbox_bound_bytes", "The most bytes that the inbox may hold", bounds.all as f64);
    if let Ok(counts) = blocks.receiving.inbox().counts() {
        page.gauge("inbox_incoming_blocks", "Uploads that are not acknowledged yet", counts.incoming as f64);
        page.gauge("inbox_waiting_blocks", "Acknowledged blocks that wait for processing", counts.waiting as f64);
        page.gauge("inbox_waiting_bytes", "Bytes of them", counts.waiting_bytes as f64);
        page.gauge("inbox_quarantined_blocks", "Acknowledged blocks in quarantine", counts.quarantined as f64);
        page.gauge("inbox_bytes", "Bytes of everything in the inbox", counts.bytes as f64);
    }
    page.0 + &blocks.also()
}
