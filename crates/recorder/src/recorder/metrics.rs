//! The page `/metrics`, in the text format of Prometheus. Main function: [`text`].

use std::fmt::Write;
use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};

use super::admission::Gate;
use super::admission::governor::View;
use super::hold::Holds;
use super::meter::{Meter, TIME_BOUNDS_S, Times};
use super::progress::{Cause, Waiting};
use super::sources::Sent;
use super::spool::{Counts, QuarantineView};

/// The data that the page shows.
pub struct Shown<'a> {
    /// The parts of a shared stream; `None` without one.
    pub holds: Option<Arc<Holds>>,
    /// The counters of the conservation of records.
    pub counts: Counts,
    /// The bound of the spool in bytes.
    pub bound_bytes: u64,
    /// How the quarantine is shared between sources.
    pub quarantine: &'a QuarantineView,
    /// All other counters.
    pub meter: &'a Meter,
    /// The state of the governor.
    pub view: View,
    /// The gate.
    pub gate: &'a Gate,
    /// Rows committed per second recently, to express the buffer in seconds.
    pub rows_per_s: f64,
    /// True if nothing is acknowledged any more.
    pub is_broken: bool,
    /// The oldest waiting record of each cause.
    pub waiting: Vec<Waiting>,
    /// Number of measurements whose records wait apart.
    pub apart: usize,
    /// True if `/ready` reports ready.
    pub is_ready: bool,
}

/// A page that is being written.
#[derive(Debug, Default)]
pub(super) struct Page(pub(super) String);

impl Page {
    pub(super) fn head(&mut self, name: &str, kind: &str, says: &str) {
        // Writing to a string never fails.
        let _ = write!(self.0, "# HELP loadline_{name} {says}\n# TYPE loadline_{name} {kind}\n");
    }

    fn one(&mut self, name: &str, kind: &str, says: &str, value: f64) {
        self.head(name, kind, says);
        let _ = match value.is_infinite() {
            true => writeln!(self.0, "loadline_{name} +Inf"),
            false => writeln!(self.0, "loadline_{name} {value}"),
        };
    }

    pub(super) fn counter(&mut self, name: &str, says: &str, value: u64) {
        self.one(name, "counter", says, value as f64);
    }

    pub(super) fn gauge(&mut self, name: &str, says: &str, value: f64) {
        self.one(name, "gauge", says, value);
    }

    pub(super) fn times(&mut self, name: &str, says: &str, times: &Times) {
        self.head(name, "histogram", says);
        let (classes, sum_s) = times.read();
        let mut count = 0;
        for (class, in_class) in classes.iter().enumerate() {
            count += in_class;
            let bound = TIME_BOUNDS_S.get(class).map_or("+Inf".to_owned(), ToString::to_string);
            let _ = writeln!(self.0, "loadline_{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let _ = write!(self.0, "loadline_{name}_sum {sum_s}\nloadline_{name}_count {count}\n");
    }
}

/// Adds what the ledger reports.
fn ledger(page: &mut Page, meter: &Meter) {
    page.gauge(
        "kept_rows",
        "Spooled records that are committed and kept, because the database may forget them",
        meter.kept_rows.get() as f64,
    );
    page.counter(
        "rewritten_rows_total",
        "Records written again, because the database forgot them",
        meter.rewritten.get(),
    );
    page.counter("database_forgot_total", "Times that the database had forgotten commits", meter.forgotten.get());
    page.counter(
        "spool_copies_total",
        "Times that a writer found what a copy of its spool, or a newer state of it, had written",
        meter.copies.get(),
    );
}

/// Adds how full the quarantine is, and which sources hold most of it.
fn quarantine(page: &mut Page, counts: &Counts, view: &QuarantineView) {
    page.gauge("quarantined_bytes", "Bytes of what is in quarantine", counts.quarantined_bytes as f64);
    page.gauge("quarantine_bound_bytes", "The most bytes that may be in quarantine", view.bound_bytes() as f64);
    let is_half = u8::from(is_half(counts, view));
    page.gauge("quarantine_half_full", "Whether half of its bound is used", f64::from(is_half));
    let closed = view.closed().count() as f64;
    page.gauge("quarantine_closed_senders", "Senders that hold more of it than their share, and are refused", closed);
    page.gauge("deferred_rows", "Spooled records that wait for room in quarantine", counts.deferred as f64);
    page.gauge(
        "deferred_bytes",
        "Bytes of spooled records that wait for room in quarantine",
        counts.deferred_bytes as f64,
    );
    page.head(
        "quarantine_held_bytes",
        "gauge",
        "Bytes that those hold who hold most of it, what waits for room included",
    );
    for (holder, held) in &view.largest {
        let _ = writeln!(page.0, "loadline_quarantine_held_bytes{{who=\"{}\"}} {}", escaped(holder), held.all_bytes());
    }
}

fn is_half(counts: &Counts, view: &QuarantineView) -> bool {
    counts.quarantined_bytes > 0 && counts.quarantined_bytes >= view.bound_bytes() / 2
}

/// Returns the same numbers for `/ready`; `None` if the quarantine is empty.
pub fn quarantine_facts(counts: &Counts, view: &QuarantineView) -> Option<Value> {
    if counts.quarantined == 0 && counts.deferred == 0 {
        return None;
    }
    let largest = view.largest.first();
    let mut facts = json!({
        "rows": counts.quarantined, "bytes": counts.quarantined_bytes, "bound_bytes": view.bound_bytes(), "deferred_rows": counts.deferred,
        "holds_most": largest.map(|(holder, held)| json!({ "who": holder, "rows": held.rows, "bytes": held.all_bytes() })),
        "closed_senders": view.closed().count(),
    });
    if is_half(counts, view) {
        facts["warning"] =
            "half of quarantine.bound is used; look at it with --quarantine list, and replay or discard it".into();
    }
    Some(facts)
}

/// Returns the page.
pub fn text(shown: &Shown<'_>) -> String {
    let Shown { counts, meter, .. } = shown;
    let mut page = Page(String::with_capacity(8 << 10));
    page.counter(
        "acknowledged_rows_total",
        "Records acknowledged: committed + spooled + quarantined + retired",
        counts.acknowledged,
    );
    // Where records are retired it falls, which is no counter.
    let kind = if counts.retired == 0 { "counter" } else { "gauge" };
    let says = "Records known to be committed in the database, and not retired";
    page.one("committed_rows_total", kind, says, counts.committed as f64);
    page.counter("retired_rows_total", "Records deleted from the database because of their age", counts.retired);
    page.gauge("spooled_rows", "Records that wait in the spool", counts.spooled as f64);
    page.gauge(
        "quarantined_rows",
        "Records that the database refused, kept with their reasons",
        counts.quarantined as f64,
    );
    quarantine(&mut page, counts, shown.quarantine);
    page.gauge(
        "damaged_rows",
        "Records in quarantine whose entry was damaged in the spool",
        meter.damaged.get() as f64,
    );
    page.gauge("spooled_entries", "Requests of which records wait in the spool", counts.entries as f64);
    page.gauge("spooled_bytes", "Bytes of what waits in the spool", counts.spooled_bytes as f64);
    page.gauge("spool_bound_bytes", "The most bytes that may wait", shown.bound_bytes as f64);
    ledger(&mut page, meter);
    let waiting = counts.spooled.saturating_sub(meter.kept_rows.get());
    let buffer_s = if waiting == 0 { 0.0 } else { waiting as f64 / shown.rows_per_s.max(1e-9) };
    page.gauge("buffer_seconds", "How long what waits takes at the rate of the last seconds", buffer_s.min(1e9));
    page.gauge("committed_rows_per_second", "Records committed per second lately", shown.rows_per_s);
    page.counter("commits_total", "Transactions committed", meter.commits.get());
    page.counter("prepared_batches_total", "Batches bound while others were committed", meter.prepared.get());
    page.times("commit_seconds", "From the start of a transaction to the answer to its COMMIT", &meter.commit_times);
    page.times(
        "acknowledgement_seconds",
        "From a request's arrival to its acknowledgement",
        &meter.acknowledgement_times,
    );
    page.counter("acknowledged_requests_total", "Requests acknowledged", meter.acknowledged_requests.get());
    page.counter("refused_requests_total", "Requests refused because of what they are", meter.refused_requests.get());
    page.counter("turned_away_requests_total", "Requests that were asked to come again later", meter.turned_away.get());
    page.counter("duplicate_requests_total", "Requests recognised as sent before", meter.duplicates.get());
    page.counter("bad_lines_total", "Lines that are no points", meter.bad_lines.get());
    page.counter("database_retries_total", "Times that the database had to be tried again", meter.retries.get());
    page.counter("database_connections_total", "Connections made to the database", meter.connections.get());
    page.gauge("writers_connected", "Writers that are connected", meter.lanes_connected.get() as f64);
    page.gauge("memory_request_bytes", "Bytes reserved for requests in memory", meter.memory_bytes.get() as f64);
    add_admission(&mut page, shown);
    page.gauge("spool_broken", "Whether a failed sync ended acknowledgement", f64::from(u8::from(shown.is_broken)));
    page.gauge("ready", "Whether /ready says 200", f64::from(u8::from(shown.is_ready)));
    add_waiting(&mut page, shown);
    add_shared(&mut page, shown);
    add_labelled(&mut page, meter);
    page.0 += &meter.strangers.page();
    page.0
}

/// Adds what limits how much is written, and what comes in.
fn add_admission(page: &mut Page, shown: &Shown<'_>) {
    let view = &shown.view;
    page.gauge("admission_window_rows", "Rows of the next transaction at most", f64::from(view.window_rows));
    page.gauge(
        "admission_rate_rows_per_second",
        "Rows a second that the model permits, or +Inf",
        view.rate_per_s.unwrap_or(f64::INFINITY),
    );
    page.gauge("admission_model_stale", "Whether the model was found stale", f64::from(u8::from(view.is_stale)));
    page.gauge(
        "admission_out_of_reach",
        "Whether no window keeps admission.below",
        f64::from(u8::from(view.is_out_of_reach)),
    );
    page.gauge(
        "admission_gate_closed",
        "Whether requests are turned away for lack of room",
        f64::from(u8::from(shown.gate.is_closed())),
    );
}

/// Adds the parts of a shared stream; all figures are 0 if there is none.
fn add_shared(page: &mut Page, shown: &Shown<'_>) {
    let (parts, open) = shown.holds.as_ref().map_or((0, 0), |holds| (holds.parts(), holds.open()));
    let counts = &shown.meter.shared;
    page.gauge("stream_parts", "Parts of the shared stream", f64::from(parts));
    page.gauge("stream_parts_held", "Parts that this recorder may write now, and no other", f64::from(open));
    page.gauge("stream_recorders", "Recorders of the shared stream that can write", counts.recorders.get() as f64);
    page.counter("stream_published_requests_total", "Requests brought into the stream", counts.published.get());
    page.counter("stream_parts_taken_total", "Parts taken", counts.taken.get());
    page.counter("stream_parts_given_total", "Parts given up in order", counts.given.get());
    page.counter("stream_parts_lost_total", "Parts lost, or given up because of an error", counts.lost.get());
}

/// Adds how long records wait, by cause.
fn add_waiting(page: &mut Page, shown: &Shown<'_>) {
    page.head("oldest_waiting_seconds", "gauge", "How long the oldest record waits, by what it waits for");
    for cause in [Cause::Queue, Cause::Database, Cause::Measurement, Cause::Share] {
        let age_s =
            shown.waiting.iter().find(|waiting| waiting.cause == cause).map_or(0.0, |found| found.age.as_secs_f64());
        let _ = writeln!(page.0, "loadline_oldest_waiting_seconds{{reason=\"{}\"}} {age_s}", cause.name());
    }
    page.gauge(
        "measurements_apart",
        "Measurements that the database refuses while it takes others; their records wait apart",
        shown.apart as f64,
    );
    page.counter(
        "measurements_set_apart_total",
        "Times that a measurement's records were set apart",
        shown.meter.set_apart.get(),
    );
}

/// Adds the metrics with labels: weak settings, and sources.
fn add_labelled(page: &mut Page, meter: &Meter) {
    page.head("database_may_forget", "gauge", "A setting because of which the database may forget what it commits");
    for (setting, value) in meter.weaknesses.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let (setting, value) = (escaped(setting), escaped(value));
        let _ = writeln!(page.0, "loadline_database_may_forget{{setting=\"{setting}\",value=\"{value}\"}} 1");
    }
    add_sources(page, &meter.sources.read());
}

/// Adds the sources that send most, and all others together.
fn add_sources(page: &mut Page, sources: &[(String, Sent)]) {
    let names: Vec<_> = sources.iter().map(|(source, _)| escaped(source)).collect();
    page.head("source_lag_seconds", "gauge", "From arrival to commit of a source's newest committed record");
    for (source, lag) in names.iter().zip(sources).filter_map(|(source, (_, sent))| Some((source, sent.lag?))) {
        let _ = writeln!(page.0, "loadline_source_lag_seconds{{source=\"{source}\"}} {}", lag.as_secs_f64());
    }
    let says = "Bytes of line protocol that were acknowledged, of those who send most and of all others";
    page.head("source_bytes_total", "counter", says);
    for (source, (_, sent)) in names.iter().zip(sources) {
        let _ = writeln!(page.0, "loadline_source_bytes_total{{source=\"{source}\"}} {}", sent.bytes);
    }
    let says = "Records that were acknowledged, of those who send most and of all others";
    page.head("source_rows_total", "counter", says);
    for (source, (_, sent)) in names.iter().zip(sources) {
        let _ = writeln!(page.0, "loadline_source_rows_total{{source=\"{source}\"}} {}", sent.rows);
    }
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_comment_or_a_name_with_a_number() {
        let meter = Meter::default();
        meter.sources.note_sent("a \"b\"\n", 7, 1);
        meter.sources.note_lag("a \"b\"\n", std::time::Duration::from_millis(20));
        meter.commit_times.add(std::time::Duration::from_millis(3));
        let gate =
            Gate::new(Box::new(|| 0.0), Box::new(|| std::time::Duration::ZERO), crate::recorder::clock::machine());
        let view = View { window_rows: 64, rate_per_s: None, is_stale: false, is_out_of_reach: false };
        let counts = Counts { acknowledged: 5, committed: 2, spooled: 2, quarantined: 1, ..Counts::default() };
        let page = text(&Shown {
            holds: None,
            counts,
            bound_bytes: 9,
            quarantine: &QuarantineView::default(),
            meter: &meter,
            view,
            gate: &gate,
            rows_per_s: 0.5,
            is_broken: false,
            waiting: Vec::new(),
            apart: 0,
            is_ready: true,
        });
        for line in page.lines().filter(|line| !line.starts_with("# ")) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("loadline_") && (value == "+Inf" || value.parse::<f64>().is_ok()), "{line}");
        }
        assert!(page.contains("loadline_buffer_seconds 4\n"), "{page}");
        assert!(page.contains("loadline_commit_seconds_bucket{le=\"0.005\"} 1\n"));
        assert!(page.contains("{source=\"a \\\"b\\\"\\n\"} 0.02"));
    }
}
