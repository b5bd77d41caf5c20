//! What deletions show on `/metrics`. Main type: [`Gauges`].

use crate::recorder::meter::{Count, Meter, Times};
use crate::recorder::metrics::Page;

/// The counters of retention, besides that of the recorder's own retired records.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    /// Retired records that others have written: other recorders, an earlier spool, or, where a commit is the acknowledgement, the recorder before it was started.
    pub(super) of_others: Count,
    /// Times of transactions that delete.
    pub(super) step_times: Times,
    /// Looks for old readings that came to an end.
    pub(super) passes: Count,
    /// Number of times that deletions waited because the recorder was near its load line.
    pub(super) yields: Count,
    /// 1 while the clock is not believed.
    pub(super) is_held: Count,
    /// Measurements whose tables lack the index.
    pub(super) without_index: Count,
    /// Measurements whose readings the database does not delete, as of the last look.
    pub(super) refused: Count,
    /// How much older than permitted the oldest reading was that the last look found, in milliseconds.
    pub(super) behind_ms: Count,
}

impl Gauges {
    /// Returns their part of the page.
    pub(super) fn page(&self, meter: &Meter) -> String {
        let mut page = Page::default();
        page.counter(
            "retired_rows_of_others_total",
            "Records that were deleted because of their age and that are not among the recorder's own: others wrote them, or they are not counted any more",
            self.of_others.get(),
        );
        page.times("retention_step_seconds", "Transactions that delete old records", &self.step_times);
        page.counter("retention_passes_total", "Looks for old records that came to an end", self.passes.get());
        page.counter(
            "retention_yields_total",
            "Times that deletions waited because the recorder was near its load line",
            self.yields.get(),
        );
        let gauge = |count: &Count| count.get() as f64;
        page.gauge(
            "retention_held",
            "Whether nothing is deleted because the clock of the machine has jumped ahead",
            gauge(&self.is_held),
        );
        page.gauge(
            "retention_measurements_without_index",
            "Measurements of which nothing is deleted because a table lacks the index",
            gauge(&self.without_index),
        );
        page.gauge(
            "retention_measurements_refused",
            "Measurements of which the database did not delete old records at the last look",
            gauge(&self.refused),
        );
        page.gauge(
            "retention_behind_seconds",
            "How much older than permitted the oldest record was that the last look found",
            gauge(&self.behind_ms) / 1_000.0,
        );
        page.counter(
            "written_rows_total",
            "Records committed since the start, including those retired since",
            meter.rows.get(),
        );
        page.0
    }
}
