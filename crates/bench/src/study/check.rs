//! Finds settings of a case that cannot be combined.
//!
//! Main function: [`check`]. Invariant: settings without an error here can be carried out, as far as the file alone
//! decides.

mod background;
mod database;
mod profile;
mod recorder;
mod tables;

use std::collections::BTreeSet;

use super::agents::{check_agents, check_readers};
use super::cluster::{check_cluster, clash_with_nodes};
use super::events::clash_of_events;
use super::evolve::check_evolve;
use super::freshness::check_freshness;
use super::link::check_link;
use super::load::LENGTHS;
use super::names::Names;
use super::replay::check_replay;
use super::retention::check_retention;
use super::table::factors;
use super::tables::check_tables;
use super::ycsb::settings::usertable_keys;
use crate::fault::{Fault, fault};
use crate::trial::{Arrivals, Length, RecorderPath, Settings};
use crate::units::show_seconds;
use crate::workload::writing_statement;
use crate::written::place::{Errors, Place};
use crate::written::tree::{Content, Entry, Table};

/// Checks the settings of a case against each other. `root` is the tree that they were read from. If nothing is wrong
/// with the case so far, the parts that it is made of are checked too.
pub fn check(settings: &Settings, root: &Table, names: &Names, errors: &mut Errors) {
    let mut rules = Rules { settings, root, names, errors };
    rules.database();
    rules.record();
    rules.workload();
    rules.tables();
    rules.ycsb();
    rules.load();
    rules.background();
    for (keys, message) in check_freshness(settings, root).into_iter().chain(check_retention(settings, root)) {
        rules.refuse(keys, message);
    }
    for (keys, message) in check_replay(settings, root) {
        rules.refuse(&keys, message);
    }
    for (place, message) in check_tables(settings, root) {
        rules.errors.push(place, message);
    }
    let has_server = names.database(&settings.database.name).is_some_and(|facts| facts.has_private_server);
    if let Some(message) = clash_of_events(settings, has_server).or_else(|| clash_with_nodes(settings)) {
        rules.refuse(&["events"], message);
    }
    for (keys, message) in check_cluster(settings) {
        rules.refuse(keys, message);
    }
    for (keys, message) in check_agents(settings, has_server).into_iter().chain(check_readers(settings)) {
        rules.refuse(keys, message);
    }
    rules.link();
    rules.sources();
    rules.recorder();
    rules.shared_recorders();
    if rules.errors.is_empty()
        && let Err(sentence) = (names.try_build)(settings)
    {
        let names = factors().iter().map(String::as_str).chain(["workload.statements"]);
        let named: Vec<&str> = names.filter(|setting| is_named(&sentence, setting)).collect();
        rules.refuse(&named, sentence);
    }
}

/// Returns whether a sentence names a setting, and not one whose name merely ends in the same way.
fn is_named(sentence: &str, setting: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    sentence.match_indices(setting).any(|(at, _)| !sentence[..at].ends_with(is_of_name))
}

struct Rules<'a> {
    settings: &'a Settings,
    root: &'a Table,
    names: &'a Names,
    errors: &'a mut Errors,
}

impl Rules<'_> {
    /// Returns the last place where one of these settings was written: the one that made the combination impossible. If
    /// none was written, returns their section, or the first line.
    fn place(&self, settings: &[&str]) -> Place {
        let written = settings.iter().filter_map(|setting| self.root.find(setting)).map(|entry| entry.node.place).max();
        let section = || settings.iter().filter_map(|setting| self.root.get(setting.split('.').next()?)).next();
        written.or_else(|| section().map(|entry| entry.place)).unwrap_or(Place::Line(1))
    }

    fn refuse(&mut self, settings: &[&str], message: impl Into<Fault>) {
        self.errors.push(self.place(settings), message);
    }

    /// Returns the text of a setting.
    fn text_at(&self, setting: &str) -> Option<&str> {
        match &self.root.find(setting)?.node.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether a list is missing or has no items.
    fn is_empty(&self, setting: &str) -> bool {
        match self.root.find(setting).map(|entry| &entry.node.content) {
            None => true,
            Some(Content::List(items)) => items.is_empty(),
            Some(_) => false,
        }
    }

    fn record(&mut self) {
        let record = &self.settings.record;
        let is_custom = record.type_name == "custom";
        for (key, columns) in [("record.identity", &record.identity), ("record.values", &record.values)] {
            if !is_custom && self.root.find(key).is_some() {
                let remedy = "write type = \"custom\", or leave the columns out";
                let type_name = &record.type_name;
                let message = fault!("{key} is for custom records and record.type is \"{type_name}\""; "{remedy}");
                self.refuse(&[key, "record.type"], message);
            } else if is_custom && columns.is_empty() && self.is_empty(key) && key == "record.values" {
                let remedy = "write values = [ { name = \"...\", kind = \"...\", fill = { ... } } ]";
                self.refuse(&[key, "record.type"], fault!("record.type is \"custom\" and has no values"; "{remedy}"));
            }
        }
        let mut seen = BTreeSet::new();
        for column in record.identity.iter().chain(&record.values) {
            if !seen.insert(column.name.to_lowercase()) {
                let remedy = "names must differ in more than case";
                self.refuse(
                    &["record.identity", "record.values"],
                    fault!("column \"{}\" occurs twice", column.name; "{remedy}"),
                );
            }
        }
        let is_wisconsin = record.type_name == "wisconsin";
        if let (false, Some(permutation)) = (is_wisconsin, &record.permutation) {
            let remedy = "write type = \"wisconsin\", or leave it out";
            let type_name = &record.type_name;
            self.refuse(
                &["record.permutation", "record.type"],
                fault!("record.permutation is \"{permutation}\" and record.type is \"{type_name}\""; "{remedy}"),
            );
        }
        if let (false, Some(length)) = (record.type_name == "sensor", record.length) {
            let remedy = "write type = \"sensor\", or leave it out";
            let message = fault!("record.length is {length} and record.type is \"{}\"", record.type_name; "{remedy}");
            self.refuse(&["record.length", "record.type"], message);
        }
        let written = self.root.find("record.per_measurement").map(|entry| &entry.node.content);
        if (is_wisconsin || record.type_name == "usertable") && written.is_some() {
            let remedy = "each of its records is a measurement of its own, leave it out";
            self.refuse(
                &["record.per_measurement", "record.type"],
                fault!("record.per_measurement is given and record.type is \"{}\"", record.type_name; "{remedy}"),
            );
        }
        let batch = self.settings.workload.batch;
        if let Some(Content::Integer(number)) = written
            && *number < i64::from(batch)
        {
            let remedy = "a batch belongs to one measurement, so that it must be at least as much";
            self.refuse(
                &["record.per_measurement", "workload.batch"],
                fault!("record.per_measurement is {number} and workload.batch is {batch}"; "{remedy}"),
            );
        }
    }

    fn workload(&mut self) {
        let workload = &self.settings.workload;
        let is_sql = workload.name == "sql";
        let has_statements = is_sql || workload.name == "connect";
        let is_written = self.root.find("workload.statements").is_some();
        if is_sql && self.is_empty("workload.statements") {
            let remedy = "write statements = [ { sql = \"SELECT ...\" } ]";
            let keys = ["workload.statements", "workload.name"];
            self.refuse(&keys, fault!("workload.name is \"sql\" and there are no statements"; "{remedy}"));
        }
        if is_written && !has_statements {
            let remedy = "write name = \"sql\", or leave the statements out";
            let message = fault!(
                "workload.statements is for the workload sql and workload.name is \"{}\"", workload.name; "{remedy}"
            );
            self.refuse(&["workload.statements", "workload.name"], message);
        }
        let name = workload.name.as_str();
        self.queries();
        self.questions();
        self.sources_of_records();
        let workload = &self.settings.workload;
        let needs_rows = |name: &str| matches!(name, "read" | "select" | "update");
        if needs_rows(name) && self.settings.record.rows == 0 {
            let what = if name == "read" { "read" } else { "found" };
            let remedy = format!("set the number of rows that are there to be {what}, as in rows = 100000");
            self.refuse(
                &["workload.name", "record.rows"],
                fault!("workload.name is \"{name}\" and record.rows is 0"; "{remedy}"),
            );
        }
        if needs_rows(name) && workload.batch > 1 {
            let remedy = format!("{name}s are of one record each, leave it out");
            let message = fault!("workload.batch is {} and workload.name is \"{name}\"", workload.batch; "{remedy}");
            self.refuse(&["workload.batch", "workload.name"], message);
        }
        self.mix();
    }

    /// Refuses sources where records are numbered, written or sent in another way.
    fn sources_of_records(&mut self) {
        if self.settings.record.series.is_none() {
            return;
        }
        let settings = &self.settings;
        let name = settings.workload.name.as_str();
        let is_other = matches!(name, "delete" | "turnover" | "additions" | "freshness") || name.starts_with("ycsb");
        let tables = settings.layout.tables_as_recorded || settings.layout.tables_per_client;
        let others = [
            (is_other, "workload.name", format!("workload.name is \"{name}\"")),
            (settings.recorder.is_some(), "recorder", "there is a [recorder]".to_owned()),
            (tables, "layout.tables", "layout.tables is not \"one\"".to_owned()),
        ];
        for (is_so, key, what) in others {
            if is_so {
                let message =
                    fault!("record.sources is set and {what}"; "they do not go together, leave one of them out");
                self.refuse(&["record.sources", key], message);
            }
        }
    }

    fn questions(&mut self) {
        let name = self.settings.workload.name.as_str();
        let has_queries = matches!(name, "query" | "recent");
        if !has_queries && name != "questions" && self.root.find("workload.explain").is_some() {
            let message = fault!("workload.explain is for the workloads query and questions and workload.name is \"{name}\""; "leave it out");
            self.refuse(&["workload.explain", "workload.name"], message);
        }
        if name == "questions" && self.is_empty("workload.questions") {
            let remedy = "write questions = [ { ask = \"newest\", of = [\"ul_delay\"] } ]";
            let keys = ["workload.questions", "workload.name"];
            self.refuse(&keys, fault!("workload.name is \"{name}\" and there are no questions"; "{remedy}"));
        }
        for key in ["workload.questions", "workload.question"] {
            if name != "questions" && self.root.find(key).is_some() {
                let message =
                    fault!("{key} is for the workload questions and workload.name is \"{name}\""; "leave it out");
                self.refuse(&[key, "workload.name"], message);
            }
        }
    }

    fn queries(&mut self) {
        let workload = &self.settings.workload;
        let name = workload.name.as_str();
        let has_queries = matches!(name, "query" | "recent");
        if has_queries && self.is_empty("workload.queries") {
            let remedy = "write queries = [ { name = \"slow\", where = \"ul_delay > 100\" } ]";
            let keys = ["workload.queries", "workload.name"];
            self.refuse(&keys, fault!("workload.name is \"{name}\" and there are no queries"; "{remedy}"));
        }
        for key in ["workload.queries", "workload.query"] {
            if !has_queries && self.root.find(key).is_some() {
                let message = fault!("{key} is for the workload query and workload.name is \"{name}\""; "leave it out");
                self.refuse(&[key, "workload.name"], message);
            }
        }
        if name == "recent" && self.root.find("workload.window").is_none() {
            let remedy = "write how many of the last records its queries look at, as in window = 1000, or 0 for all";
            self.refuse(
                &["workload.name"],
                fault!("workload.name is \"recent\" and workload.window is missing"; "{remedy}"),
            );
        }
        if let (Some(window), true) = (workload.window, name != "recent") {
            let remedy = "write name = \"recent\", or leave it out";
            let message = fault!("workload.window is {window} and workload.name is \"{name}\""; "{remedy}");
            self.refuse(&["workload.window", "workload.name"], message);
        }
        let database = &self.settings.database;
        let is_foreign = database.url.is_some() || database.path.is_some();
        if let (true, true, false, Some(sql)) =
            (matches!(name, "sql" | "connect"), is_foreign, workload.writes, writing_statement(&workload.statements))
        {
            let remedy = "write writes = true in [workload] if it may be changed";
            let message =
                fault!("workload.statements changes a database that is not loadline's own: {sql}"; "{remedy}");
            self.refuse(&["workload.statements"], message);
        }
        for (key, sql) in [("workload.set_up", &workload.set_up), ("workload.clean_up", &workload.clean_up)] {
            let Some(sql) = sql.first() else { continue };
            let (message, remedy) = match (matches!(name, "sql" | "connect" | "replay"), is_foreign && !workload.writes)
            {
                (false, _) => {
                    (format!("{key} is for the workload sql and workload.name is \"{name}\""), "leave it out")
                }
                (true, true) => {
                    let what = format!("{key} changes a database that is not loadline's own: {sql}");
                    (what, "write writes = true in [workload] if it may be changed")
                }
                (true, false) => continue,
            };
            self.refuse(&[key, "workload.name"], fault!("{message}"; "{remedy}"));
        }
        if workload.writes && !matches!(name, "sql" | "connect" | "replay") {
            let message =
                fault!("workload.writes is for the workload sql and workload.name is \"{name}\""; "leave it out");
            self.refuse(&["workload.writes", "workload.name"], message);
        }
    }

    fn link(&mut self) {
        let is_known =
            |entry: &Entry| matches!(&entry.node.content, Content::Text(path) if RecorderPath::named(path).is_some());
        let is_path_known = self.root.find("recorder.path").is_none_or(is_known);
        if let Some((settings, message)) = check_link(self.settings, self.names, is_path_known) {
            self.refuse(settings, message);
        }
    }

    /// Checks the settings that only `usertable` and YCSB's workloads have, and those for existing tables.
    fn ycsb(&mut self) {
        let Settings { database, record, workload, .. } = self.settings;
        let written = usertable_keys().map(|key| format!("record.{key}")).find(|key| self.root.find(key).is_some());
        if let Some(key) = written.filter(|_| record.type_name != "usertable") {
            let remedy = "write type = \"usertable\", or leave it out";
            let message = fault!("{key} is for usertable and record.type is \"{}\"", record.type_name; "{remedy}");
            self.refuse(&[&key, "record.type"], message);
        }
        if self.root.find("workload.ycsb").is_some() && !workload.name.starts_with("ycsb") {
            let remedy = "write name = \"ycsb\", or leave it out";
            let message =
                fault!("workload.ycsb is for YCSB's workloads and workload.name is \"{}\"", workload.name; "{remedy}");
            self.refuse(&["workload.ycsb", "workload.name"], message);
        }
        if record.existing && database.url.is_none() && database.path.is_none() {
            let remedy = "name the database that has it with database.url, or database.path";
            self.refuse(
                &["record.existing"],
                fault!("record.existing is true and a private database has no table yet"; "{remedy}"),
            );
        }
    }

    fn mix(&mut self) {
        let workload = &self.settings.workload;
        let is_mix = workload.name == "mix";
        let keys = ["workload.mix", "workload.name"];
        if is_mix && self.root.find("workload.mix").is_none() {
            let remedy = "write mix = { select = 0.8, update = 0.2 }";
            self.refuse(&keys, fault!("workload.name is \"mix\" and there are no shares"; "{remedy}"));
        }
        if is_mix && self.errors.is_empty() && workload.mix.values().all(|share| *share == 0.0) {
            let remedy = "write the shares as in mix = { select = 0.8, update = 0.2 }";
            self.refuse(&["workload.mix"], fault!("workload.mix has no share above 0"; "{remedy}"));
        }
        if !is_mix && self.root.find("workload.mix").is_some() {
            let remedy = "write name = \"mix\", or leave the shares out";
            let message =
                fault!("workload.mix is for the workload mix and workload.name is \"{}\"", workload.name; "{remedy}");
            self.refuse(&keys, message);
        }
        if let Some(evolve_s) = workload.evolve_s {
            self.evolution(evolve_s);
        }
        check_evolve(self.settings).into_iter().for_each(|(keys, message)| self.refuse(keys, message));
        if let Some(attribute) = &workload.attribute
            && !matches!(workload.name.as_str(), "select" | "update" | "mix")
        {
            let remedy = "it is the column that select reads and update sets; leave it out";
            let message =
                fault!("workload.attribute is \"{attribute}\" and workload.name is \"{}\"", workload.name; "{remedy}");
            self.refuse(&["workload.attribute", "workload.name"], message);
        }
    }

    /// Checks schema changes: they need loadline's own tables with records in them, and time.
    fn evolution(&mut self, evolve_s: f64) {
        let (workload, rows) = (&self.settings.workload, self.settings.record.rows);
        if matches!(workload.name.as_str(), "sql" | "connect") || rows == 0 {
            let remedy = "set record.rows to at least 1 and take another workload.name than \"sql\", or leave it out";
            let message = fault!("workload.evolve changes the tables of records, and there are none"; "{remedy}");
            self.refuse(&["workload.evolve", "record.rows", "workload.name"], message);
        } else if let Length::Seconds(seconds) = self.settings.load.length
            && seconds <= evolve_s / 2.0
        {
            let remedy = "the first change comes after half of it; make load.duration longer";
            let message = fault!(
                "workload.evolve is {} and load.duration {}", show_seconds(evolve_s), show_seconds(seconds); "{remedy}"
            );
            self.refuse(&["workload.evolve", "load.duration"], message);
        }
    }

    fn load(&mut self) {
        let load = &self.settings.load;
        if self.settings.workload.name == "connect" && self.text_at("load.connect").is_some_and(|each| each != "each") {
            let remedy = "its operations begin with a new connection, leave it out";
            self.refuse(
                &["load.connect", "workload.name"],
                fault!("load.connect is \"once\" and workload.name is \"connect\""; "{remedy}"),
            );
        }
        let lengths: Vec<&str> = LENGTHS.into_iter().filter(|key| self.root.find(key).is_some()).collect();
        if lengths.len() > 1 {
            let message =
                fault!("{} are both given", lengths.join(" and "); "a trial ends by one of them, leave the other out");
            self.refuse(&lengths, message);
        }
        let is_open = load.arrivals != Arrivals::Closed;
        let arrivals = self.root.find("load.arrivals").map_or("\"closed\"".to_owned(), |entry| entry.node.to_string());
        if load.rate_per_s.is_some() && !is_open && self.names.arrivals.check(arrivals.trim_matches('"')).is_ok() {
            let remedy = "a closed loop has no rate; leave it out, or set arrivals = \"poisson\" for an open loop";
            self.refuse(
                &["load.rate", "load.arrivals"],
                fault!("load.rate is given and load.arrivals is {arrivals}"; "{remedy}"),
            );
        }
        if matches!(load.arrivals, Arrivals::Poisson | Arrivals::Constant)
            && load.rate_per_s.is_none()
            && self.root.find("load.rate").is_none()
            && self.root.get("goal").is_none()
        {
            let remedy = "an open loop needs it, as in rate = 1000";
            self.refuse(&["load.arrivals"], fault!("load.arrivals is {arrivals} and load.rate is missing"; "{remedy}"));
        }
        if self.root.get("goal").is_some()
            && !matches!(load.arrivals, Arrivals::Poisson | Arrivals::Constant | Arrivals::Replay)
            && self.names.arrivals.check(arrivals.trim_matches('"')).is_ok()
        {
            let remedy = "the load line is an arrival rate; write arrivals = \"poisson\", or leave it out";
            self.refuse(&["load.arrivals"], fault!("[goal] is given and load.arrivals is {arrivals}"; "{remedy}"));
        }
        if (load.arrivals == Arrivals::Trace) != load.trace.is_some() && self.names.arrivals.check("trace").is_ok() {
            let remedy = "arrivals = \"trace\" and trace = \"FILE\", a file of times in seconds, go together";
            self.refuse(&["load.trace", "load.arrivals"], fault!("load.arrivals is {arrivals}"; "{remedy}"));
        }
        if is_open && load.count_connecting {
            let remedy = "an open loop's throughput does not depend on it; leave it out";
            self.refuse(
                &["load.count_connecting", "load.arrivals"],
                fault!("load.count_connecting is true and load.arrivals is {arrivals}"; "{remedy}"),
            );
        }
        if is_open && load.think_s > 0.0 {
            let remedy = "only a closed loop has think time; leave it out";
            self.refuse(
                &["load.think", "load.arrivals"],
                fault!("load.think is given and load.arrivals is {arrivals}"; "{remedy}"),
            );
        }
        if !load.profile.is_empty() {
            self.profile();
        }
        if let Some(loops) = load.loops
            && loops > load.clients
        {
            let remedy = "each loop needs a client of its own, use fewer loops";
            self.refuse(
                &["load.loops", "load.clients"],
                fault!("load.loops is {loops} and load.clients is {}", load.clients; "{remedy}"),
            );
        }
    }
}
