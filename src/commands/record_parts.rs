//! The configured parts of a recorder: intake of lines, intake of blocks, processing, forwarding, the ticket office. Main type: [`Parts`].
//!
//! They are stopped in the direction of the data flow, so that each can finish the data it got from the previous one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Failure;
use super::record_model::model_line;
use crate::database::Database;
use crate::queueing::Target;
use crate::recorder::admission::ModelLine;
use crate::recorder::config::{AdmissionConfig, Config};
use crate::recorder::forward::Forwarding;
use crate::recorder::intake::Renewal;
use crate::recorder::metrics_listener::{MetricsListener, Shown};
use crate::recorder::office::Office;
use crate::recorder::processing::{BlockCounts, Form, Processing};
use crate::recorder::prometheus::PrometheusFront;
use crate::recorder::upload::{CameraList, Station};
use crate::recorder::{End, Recorder, log};

/// Reports the rate that holds the load, its origin, and its bound.
pub(super) fn say_line(line: &ModelLine, admission: &AdmissionConfig) {
    let bound = crate::units::show_seconds(admission.below.as_secs_f64());
    let bound = format!("{} of commit times below {bound}", Target::Quantile(admission.quantile));
    let rows = crate::units::show_number(line.rows_per_s);
    let batch = line.batch_rows.to_string();
    let facts = [("rows_per_second", &rows), ("rows_per_transaction", &batch), ("for", &bound), ("from", &line.from)];
    let facts = facts.map(|(name, value)| (name, value.as_str()));
    log::info("the load is held at a line that was measured", &facts);
}

/// The running parts.
#[derive(Default)]
pub(super) struct Parts {
    recorder: Option<Recorder>,
    station: Option<Station>,
    processing: Option<Processing>,
    forwarding: Option<Forwarding>,
    office: Option<Office>,
    query: Option<PrometheusFront>,
    metrics: Option<MetricsListener>,
}

/// The counts at the end of a recorder.
pub(super) struct Ended {
    /// Counts of measurement data.
    pub(super) end: End,
    /// Number of blocks acknowledged; `None` without an intake of blocks.
    pub(super) uploaded: Option<u64>,
    /// Number of blocks forwarded to another inbox; `None` without forwarding.
    pub(super) forwarded: Option<u64>,
    /// Counts of processed blocks; `None` without processing.
    pub(super) blocks: Option<BlockCounts>,
}

impl Parts {
    /// Starts everything that is configured; if a part cannot be started, those already running are stopped.
    pub(super) fn start(config: &Config, database: Option<Arc<dyn Database>>) -> Result<Self, Failure> {
        let mut parts = Parts::default();
        match parts.start_all(config, database) {
            Ok(()) => Ok(parts),
            Err(failure) => {
                parts.stop();
                Err(failure)
            }
        }
    }

    fn start_all(&mut self, config: &Config, database: Option<Arc<dyn Database>>) -> Result<(), Failure> {
        if let Some(database) = &database {
            self.start_readers(config, database)?;
        }
        if config.takes_blocks() {
            self.station = Some(Station::start(config).map_err(Failure::refused)?);
        }
        if let Some(settings) = &config.forward {
            self.forwarding = Some(Forwarding::start(config, settings).map_err(Failure::refused)?);
        }
        self.join_metrics();
        if let Some(settings) = &config.metrics {
            let started = MetricsListener::start(settings, self.shown());
            self.metrics = Some(started.map_err(Failure::refused)?);
        }
        Ok(())
    }

    /// Returns the metrics for a separate address: those that intakes would show, and those of the other parts if there is no intake.
    fn shown(&self) -> Vec<Shown> {
        match (&self.recorder, &self.station) {
            (Some(recorder), _) => vec![Box::new(recorder.metrics_page())],
            (None, Some(station)) => vec![Box::new(station.metrics())],
            (None, None) => {
                let processing = self.processing.iter().map(|processing| Box::new(processing.metrics()) as Shown);
                let forwarding = self.forwarding.iter().map(|forwarding| Box::new(forwarding.metrics()) as Shown);
                let office = self.office.iter().map(|office| Box::new(office.metrics()) as Shown);
                let query = self.query.iter().map(|query| Box::new(query.metrics()) as Shown);
                processing.chain(forwarding).chain(office).chain(query).collect()
            }
        }
    }

    /// Adds the metrics of later parts to those of the part that answers `/metrics`.
    fn join_metrics(&self) {
        match (&self.processing, &self.station, &self.recorder) {
            (Some(processing), Some(station), _) => station.show_also(Box::new(processing.metrics())),
            (Some(processing), None, Some(recorder)) => recorder.show_also(Box::new(processing.metrics())),
            _ => {}
        }
        match (&self.forwarding, &self.station, &self.recorder) {
            (Some(forwarding), Some(station), _) => station.show_also(Box::new(forwarding.metrics())),
            (Some(forwarding), None, Some(recorder)) => recorder.show_also(Box::new(forwarding.metrics())),
            _ => {}
        }
        match (&self.office, &self.station, &self.recorder) {
            (Some(office), Some(station), _) => station.show_also(Box::new(office.metrics())),
            (Some(office), None, Some(recorder)) => recorder.show_also(Box::new(office.metrics())),
            _ => {}
        }
        match (&self.query, &self.station, &self.recorder) {
            (Some(query), Some(station), _) => station.show_also(Box::new(query.metrics())),
            (Some(query), None, Some(recorder)) => recorder.show_also(Box::new(query.metrics())),
            _ => {}
        }
        if let (Some(station), Some(recorder)) = (&self.station, &self.recorder) {
            recorder.show_also(Box::new(station.metrics()));
        }
    }

    fn start_readers(&mut self, config: &Config, database: &Arc<dyn Database>) -> Result<(), Failure> {
        let form = Form::named(&config.layout.name).unwrap_or(Form::Star);
        if config.takes_lines() {
            let line = config.admission.model.as_deref().map(|run| model_line(run, &config.admission)).transpose()?;
            if let Some(line) = &line {
                say_line(line, &config.admission);
            }
            self.recorder = Some(Recorder::start(config, Arc::clone(database), line).map_err(Failure::usage)?);
        }
        if let Some(settings) = &config.processing {
            let started = Processing::start(config, settings, Arc::clone(database));
            self.processing = Some(started.map_err(Failure::refused)?);
        }
        if let Some(settings) = &config.office {
            let started = Office::start(settings, form, Arc::clone(database));
            self.office = Some(started.map_err(Failure::refused)?);
        }
        if let Some(settings) = &config.query {
            let started = PrometheusFront::start(settings, Arc::clone(database));
            self.query = Some(started.map_err(Failure::refused)?);
        }
        Ok(())
    }

    /// Returns the listening addresses, by name.
    pub(super) fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        let lines = self.recorder.iter().flat_map(Recorder::addresses);
        let blocks = self.station.iter().flat_map(Station::addresses);
        let office = self.office.iter().filter_map(|office| Some(("office", office.address()?)));
        let metrics = self.metrics.iter().filter_map(|metrics| Some(("metrics", metrics.address()?)));
        let query = self.query.iter().filter_map(|query| Some(("query", query.address()?)));
        lines.chain(blocks).chain(office).chain(metrics).chain(query).collect()
    }

    /// Returns why the recorder cannot go on, if that is so.
    pub(super) fn failure(&self) -> Option<String> {
        let lines = self.recorder.as_ref().and_then(Recorder::failure);
        let uploads = || self.station.as_ref().and_then(Station::failure);
        let processing = || self.processing.as_ref().and_then(Processing::failure);
        let forwarding = || self.forwarding.as_ref().and_then(Forwarding::failure);
        lines.or_else(uploads).or_else(processing).or_else(forwarding)
    }

    /// Returns whether data is taken in.
    pub(super) fn takes_in(&self) -> bool {
        self.recorder.as_ref().is_none_or(Recorder::takes_in)
    }

    /// Returns the name of a part that made no progress for this long although only it was responsible.
    pub(super) fn stuck(&self, within: Duration) -> Option<String> {
        let uploads = || self.station.as_ref().filter(|station| station.is_stuck(within));
        let lines = self.recorder.as_ref().and_then(|recorder| recorder.stuck(within));
        lines.or_else(|| uploads().map(|_| "all threads of the uploads did nothing".to_owned()))
    }

    /// Returns the status in one line.
    pub(super) fn status(&self) -> String {
        let Some(recorder) = &self.recorder else { return "running".to_owned() };
        let counts = recorder.counts();
        match recorder.why_not_ready() {
            Some(reason) => format!("not ready: {reason}"),
            None => {
                let parts = recorder.stream_parts().map(|(own, all)| format!(" {own} of {all} parts of the stream;"));
                let (parts, waiting, refused) = (parts.unwrap_or_default(), counts.spooled, counts.quarantined);
                format!("taking in;{parts} {waiting} records wait, {refused} are in quarantine")
            }
        }
    }

    /// Returns the part that takes measurement data in.
    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Reads all certificates again without changing anything.
    pub(super) fn read_certificates(&self) -> Result<Vec<Renewal>, String> {
        let lines = self.recorder.iter().map(Recorder::read_certificates);
        let blocks = self.station.iter().map(Station::read_certificates);
        let office = self.office.iter().map(Office::read_certificates);
        let metrics = self.metrics.iter().map(MetricsListener::read_certificates);
        let query = self.query.iter().map(PrometheusFront::read_certificates);
        lines.chain(blocks).chain(office).chain(metrics).chain(query).collect()
    }

    /// Replaces the list of cameras that may upload.
    pub(super) fn renew_cameras(&self, list: CameraList) {
        if let Some(station) = &self.station {
            station.renew_cameras(list);
        }
    }

    /// Replaces the list of readers.
    pub(super) fn renew_readers(&self, readers: &[(String, String)]) {
        if let Some(office) = &self.office {
            office.renew_readers(readers);
        }
    }

    /// Stops all parts and returns their counts.
    pub(super) fn stop(self) -> Ended {
        if let Some(metrics) = self.metrics {
            metrics.stop();
        }
        if let Some(query) = self.query {
            query.stop();
        }
        let uploaded = self.station.map(Station::stop);
        let blocks = self.processing.map(Processing::stop);
        let forwarded = self.forwarding.map(Forwarding::stop);
        let office = self.office.and_then(Office::stop);
        let mut end = self.recorder.map(Recorder::stop).unwrap_or_default();
        end.failures.extend(office);
        Ended { end, uploaded, forwarded, blocks }
    }
}
