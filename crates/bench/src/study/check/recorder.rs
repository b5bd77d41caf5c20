//! Checks of sources that have a rate each, and of a recorder in front of the database.

use super::Rules;
use crate::fault::{Fault, fault};
use crate::layout::recorded::Shape;
use crate::study::blocks::check_blocks;
use crate::study::load::LENGTHS;
use crate::trial::{Arrivals, Length, RecorderPath, Settings};

impl Rules<'_> {
    /// Checks clients that are sources, each with its own start and end.
    pub(super) fn sources(&mut self) {
        let load = &self.settings.load;
        let is_sources = load.arrivals == Arrivals::Sources;
        if !is_sources {
            if load.source_rate_per_s.is_some() {
                let remedy = "write arrivals = \"sources\", or leave it out";
                self.refuse(
                    &["load.source_rate"],
                    fault!("load.source_rate is given and clients are no sources"; "{remedy}"),
                );
            }
            return;
        }
        let keys = ["load.arrivals", "load.source_rate"];
        if load.source_rate_per_s.is_none() && self.root.find("load.source_rate").is_none() {
            let remedy = "write how many results each source has per second, as in source_rate = 20";
            self.refuse(&keys, fault!("load.arrivals is \"sources\" and load.source_rate is missing"; "{remedy}"));
        }
        if self.root.find("load.rate").is_some() {
            let remedy = "the rate of all is that of one times load.clients; leave load.rate out";
            self.refuse(&["load.rate"], fault!("load.rate is given and load.arrivals is \"sources\""; "{remedy}"));
        }
        if !matches!(load.length, Length::Seconds(_)) {
            let remedy = "state how long all are active together, as in duration = \"10s\"";
            self.refuse(&LENGTHS[..2], fault!("sources end by time and not by a number of operations"; "{remedy}"));
        }
        if self.settings.workload.name != "write" {
            let name = &self.settings.workload.name;
            let message =
                fault!("load.arrivals is \"sources\" and workload.name is \"{name}\""; "sources write: take \"write\"");
            self.refuse(&["workload.name", "load.arrivals"], message);
        }
    }

    /// Checks what a recorder can be in front of, and its settings.
    pub(super) fn recorder(&mut self) {
        let is_recorded = self.settings.recorded().is_some();
        let workload = &self.settings.workload;
        if !is_recorded && self.settings.recorder.is_some() && workload.name != "write" {
            let what = fault!(
                "[recorder] is given and workload.name is \"{}\"", workload.name; "records are written: take \"write\""
            );
            self.refuse(&["recorder.path", "workload.name"], what);
        }
        let is_named = is_recorded && self.root.find("record.table").is_some();
        for (keys, message) in check_blocks(self.settings, is_named) {
            self.refuse(keys, message);
        }
        self.protected_recorder();
        let Some(recorder) = self.settings.recorded() else { return };
        let is_upload = recorder.path.is_upload();
        let path = recorder.path.name();
        let Settings { database, record, layout, workload, load, background, .. } = self.settings;
        let mut wrong: Vec<(&str, Fault)> = Vec::new();
        if workload.name != "write" || background.is_some() || workload.evolve_s.is_some() {
            let what = fault!(
                "a recorder takes records in and answers nothing else"; "take workload.name = \"write\" alone"
            );
            wrong.push(("workload.name", what));
        }
        if record.rows > 0 || record.existing {
            wrong.push(("record.rows", fault!("the recorder makes its own tables, which are empty"; "leave it out")));
        }
        if ["wisconsin", "usertable"].contains(&record.type_name.as_str()) {
            let what = fault!("records of {} have a key and no source", record.type_name; "take another type");
            wrong.push(("record.type", what));
        }
        let is_layout = is_upload || Shape::named(&layout.name).is_some();
        if !is_layout || !layout.indexes.is_empty() {
            let what = "the recorder has the layouts wide, star, star-hot, json and eav, without further indexes";
            wrong.push(("layout.name", what.into()));
        }
        if layout.tables_per_client {
            wrong
                .push(("layout.tables", fault!("the recorder names its tables after the measurement"; "leave it out")));
        }
        if load.statements_as_text {
            wrong.push(("load.statements", fault!("a recorder gets records and no statements"; "leave it out")));
        }
        if load.pipeline {
            let what = fault!(
                "a recorder gets records and no transactions, and itself takes as few round trips as it can";
                "leave it out"
            );
            wrong.push(("load.pipeline", what));
        }
        if load.connects_each_time && !is_upload {
            wrong.push(("load.connect", fault!("sources keep their connections to a recorder"; "leave it out")));
        }
        if database.name == "simulated" || database.path.is_some() {
            let what = "the database must be a private one, or a server that database.url names";
            wrong.push(("database.name", what.into()));
        }
        if database.engine.as_ref().is_some_and(|engine| !engine.eq_ignore_ascii_case("innodb")) {
            wrong.push(("database.engine", fault!("a recorder needs transactions"; "take innodb")));
        }
        if database.name == "sqlite" && recorder.writers > 1 {
            let what =
                fault!("recorder.writers is {} and SQLite takes one writer at a time", recorder.writers; "take 1");
            wrong.push(("recorder.writers", what));
        }
        for (setting, what) in wrong {
            self.refuse(&[setting, "recorder.path"], what.about(format_args!("recorder.path is \"{path}\"")));
        }
    }

    /// Checks recorders in numbers, the stream that they share, and their hosts.
    pub(super) fn shared_recorders(&mut self) {
        let Some(recorder) = &self.settings.recorder else { return };
        let database = &self.settings.database;
        let (count, is_shared, own_hosts) = (recorder.recorders(), recorder.is_shared(), recorder.has_own_hosts);
        let asked = [
            ("recorder.count", count > 1, format!("recorder.count is {count}")),
            ("recorder.through", is_shared, "recorder.through is \"stream\"".to_owned()),
            ("recorder.hosts", own_hosts, "recorder.hosts is \"own\"".to_owned()),
        ];
        for (key, _, what) in asked.iter().filter(|(_, is_asked, _)| *is_asked) {
            if recorder.path != RecorderPath::Http {
                let path = recorder.path.name();
                let message = fault!("{what} and recorder.path is \"{path}\""; "take path = \"http\", or leave it out");
                self.refuse(&[key, "recorder.path"], message);
            } else if database.name == "sqlite" {
                let remedy = "take a server, as in name = \"postgres\", or leave it out";
                let message = fault!("{what} and database.name is \"sqlite\", which one process writes"; "{remedy}");
                self.refuse(&[key, "database.name"], message);
            }
        }
        let mut wrong: Vec<(&[&str], Fault)> = Vec::new();
        if is_shared && recorder.writers > 1 {
            let what = fault!(
                "recorder.writers is {} and recorder.through is \"stream\"", recorder.writers;
                "each part of the stream has one writer; leave it out, and take recorder.parts"
            );
            wrong.push((&["recorder.writers", "recorder.through"], what));
        }
        match recorder.parts {
            Some(_) if !is_shared => {
                let what = fault!(
                    "recorder.parts is given and recorder.through is \"spool\""; "write through = \"stream\", or leave it out"
                );
                wrong.push((&["recorder.parts", "recorder.through"], what));
            }
            Some(parts) if parts < count => {
                let what = fault!(
                    "recorder.parts is {parts} and recorder.count is {count}"; "each recorder needs a part: write parts = {count} or more"
                );
                wrong.push((&["recorder.parts", "recorder.count"], what));
            }
            _ => {}
        }
        if own_hosts && database.url.is_some() {
            let remedy = "a server elsewhere is on no host of this machine; leave one of them out";
            let what = fault!("recorder.hosts is \"own\" and database.url is given"; "{remedy}");
            wrong.push((&["recorder.hosts", "database.url"], what));
        }
        if own_hosts && database.socket.as_deref() == Some("unix") {
            let remedy = "recorders on hosts of their own reach the database over TCP; leave it out";
            let what = fault!("recorder.hosts is \"own\" and database.socket is \"unix\""; "{remedy}");
            wrong.push((&["recorder.hosts", "database.socket"], what));
        }
        if own_hosts && self.settings.link.as_ref().is_some_and(|link| link.tunnel.is_some()) {
            let remedy = "tunnels lead to the host of the database only; leave link.tunnel out";
            let what = fault!("recorder.hosts is \"own\" and link.tunnel is given"; "{remedy}");
            wrong.push((&["recorder.hosts", "link.tunnel"], what));
        }
        wrong.into_iter().for_each(|(keys, what)| self.refuse(keys, what));
    }

    /// Checks that `recorder.tls` has an effect: records must go to a recorder or to a NATS server.
    fn protected_recorder(&mut self) {
        let Some(recorder) = self.settings.recorder.as_ref().filter(|recorder| recorder.tls.is_some()) else { return };
        let remedy = match recorder.path {
            RecorderPath::Http | RecorderPath::Nats => return,
            RecorderPath::Direct => {
                "leave it out: nothing is between clients and database, whose connections database.tls protects"
            }
            RecorderPath::Ftp => "take path = \"ftps\", which is the same with TLS",
            RecorderPath::Ftps => "it has TLS by itself; leave recorder.tls out",
            RecorderPath::Put => {
                "studies upload over HTTP PUT without it; take path = \"ftps\", or leave recorder.tls out"
            }
        };
        let path = recorder.path.name();
        self.refuse(
            &["recorder.tls", "recorder.path"],
            fault!("recorder.tls is for the paths http and nats, and recorder.path is \"{path}\""; "{remedy}"),
        );
    }
}
