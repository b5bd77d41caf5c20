//! What goes together with sources that have a rate each, and with a recorder in front of the database.

use super::Rules;
use crate::study::blocks::check_blocks;
use crate::study::load::LENGTHS;
use crate::trial::{Arrivals, Length, Settings};

impl Rules<'_> {
    /// Clients that are sources, each with a start and an end of its own.
    pub(super) fn sources(&mut self) {
        let load = &self.settings.load;
        let is_sources = load.arrivals == Arrivals::Sources;
        if !is_sources {
            if load.source_rate_per_s.is_some() {
                let remedy = "write arrivals = \"sources\", or leave it out";
                self.refuse(
                    &["load.source_rate"],
                    format!("load.source_rate is given and clients are no sources; {remedy}"),
                );
            }
            return;
        }
        let keys = ["load.arrivals", "load.source_rate"];
        if load.source_rate_per_s.is_none() && self.root.find("load.source_rate").is_none() {
            let remedy = "write how many results each source has per second, as in source_rate = 20";
            self.refuse(&keys, format!("load.arrivals is \"sources\" and load.source_rate is missing; {remedy}"));
        }
        if self.root.find("load.rate").is_some() {
            let remedy = "the rate of all is that of one times load.clients; leave load.rate out";
            self.refuse(&["load.rate"], format!("load.rate is given and load.arrivals is \"sources\"; {remedy}"));
        }
        if !matches!(load.length, Length::Seconds(_)) {
            let remedy = "state how long all are active together, as in duration = \"10s\"";
            self.refuse(&LENGTHS[..2], format!("sources end by time and not by a number of operations; {remedy}"));
        }
        if self.settings.workload.name != "write" {
            let name = &self.settings.workload.name;
            let message = format!("load.arrivals is \"sources\" and workload.name is \"{name}\"; sources write");
            self.refuse(&["workload.name", "load.arrivals"], message);
        }
    }

    /// What a recorder can be in front of, and what it is given.
    pub(super) fn recorder(&mut self) {
        let workload = &self.settings.workload;
        if self.settings.recorded().is_none() {
            if self.settings.recorder.is_some() && workload.name != "write" {
                let message =
                    format!("[recorder] is given and workload.name is \"{}\"; records are written", workload.name);
                self.refuse(&["recorder.path", "workload.name"], message);
            }
            for (keys, message) in check_blocks(self.settings, false) {
                self.refuse(keys, message);
            }
            return;
        }
        let is_named = self.root.find("record.table").is_some();
        for (keys, message) in check_blocks(self.settings, is_named) {
            self.refuse(keys, message);
        }
        let Some(recorder) = self.settings.recorded() else { return };
        let is_upload = recorder.path.is_upload();
        let path = recorder.path.name();
        let Settings { database, record, layout, workload, load, background, .. } = self.settings;
        let mut wrong: Vec<(&str, String)> = Vec::new();
        if workload.name != "write" || background.is_some() || workload.evolve_s.is_some() {
            let what = "a recorder takes records in and answers nothing else; take workload.name = \"write\" alone";
            wrong.push(("workload.name", what.to_owned()));
        }
        if record.rows > 0 || record.existing {
            wrong.push(("record.rows", "the recorder makes its own tables, which are empty; leave it out".to_owned()));
        }
        if ["wisconsin", "usertable"].contains(&record.type_name.as_str()) {
            let what = format!("records of {} have a key and no source; take another type", record.type_name);
            wrong.push(("record.type", what));
        }
        let is_layout = is_upload || ["wide", "star", "star-hot", "json", "eav"].contains(&layout.name.as_str());
        if !is_layout || !layout.indexes.is_empty() {
            let what = "the recorder has the layouts wide, star, star-hot, json and eav, without further indexes";
            wrong.push(("layout.name", what.to_owned()));
        }
        if layout.tables_per_client {
            wrong.push((
                "layout.tables",
                "the recorder names its tables after the measurement; leave it out".to_owned(),
            ));
        }
        if load.statements_as_text {
            wrong.push(("load.statements", "a recorder gets records and no statements; leave it out".to_owned()));
        }
        if load.pipeline {
            let what = "a recorder gets records and no transactions, and itself takes as few round trips as it can; leave it out";
            wrong.push(("load.pipeline", what.to_owned()));
        }
        if load.connects_each_time && !is_upload {
            wrong.push(("load.connect", "sources keep their connections to a recorder; leave it out".to_owned()));
        }
        if database.name == "simulated" || database.path.is_some() {
            let what = "the database must be a private one, or a server that database.url names";
            wrong.push(("database.name", what.to_owned()));
        }
        if database.engine.as_ref().is_some_and(|engine| !engine.eq_ignore_ascii_case("innodb")) {
            wrong.push(("database.engine", "a recorder needs transactions; take innodb".to_owned()));
        }
        if database.name == "sqlite" && recorder.writers > 1 {
            let what =
                format!("recorder.writers is {} and SQLite takes one writer at a time; take 1", recorder.writers);
            wrong.push(("recorder.writers", what));
        }
        for (setting, what) in wrong {
            self.refuse(&[setting, "recorder.path"], format!("recorder.path is \"{path}\": {what}"));
        }
    }
}
