//! Maps each property of YCSB's core workload and of its client to a setting.
//!
//! Main function: [`map`]. Invariant: [`MEANINGS`] contains every property of `CoreWorkload` and of `Client`, package version 0.17.

use super::properties::Property;
use crate::fault::fault;
use crate::written::closest;
use crate::written::place::{Errors, Place};
use crate::written::tree::{Content, Node, Table};

/// The meaning of a property in a study.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// A whole number, the value of this setting.
    Whole(&'static str),
    /// A number.
    Number(&'static str),
    /// A percentage, which is a share here.
    Percent(&'static str),
    /// `true` or `false`, in upper or lower case.
    Truth(&'static str),
    /// Text.
    Text(&'static str),
    /// An order: `hashed` is hashed, and anything else is `ordered`.
    Order(&'static str),
    /// Seconds; 0 means none.
    Seconds(&'static str),
    /// Operations per second; 0 means none.
    Target,
    /// The workload class.
    Class,
    /// Whether the records are loaded, rather than worked on.
    Phase,
    /// Only this value, in lower case, is possible; the second text is the reason.
    Only(&'static str, &'static str),
    /// No effect here, for this reason; leads to a note.
    Note(&'static str),
    /// No effect here, and none in YCSB either that matters.
    Silent,
}

use Meaning::{Class, Note, Number, Only, Order, Percent, Phase, Seconds, Silent, Target, Text, Truth, Whole};

const OUTPUT: &str = "loadline reports in its own way";
const BINDING: &str =
    "it is for YCSB's own driver; name the database with --set database.name=mariadb, or database.url";

const MEANINGS: &[(&str, Meaning)] = &[
    ("workload", Class),
    ("table", Text("record.table")),
    ("recordcount", Whole("record.rows")),
    ("operationcount", Whole("load.operations")),
    ("maxexecutiontime", Seconds("load.at_most")),
    ("threadcount", Whole("load.clients")),
    ("target", Target),
    ("dotransactions", Phase),
    ("insertstart", Whole("workload.ycsb.first")),
    ("insertcount", Whole("workload.ycsb.records")),
    ("fieldcount", Whole("record.fields")),
    ("fieldlength", Whole("record.field_length")),
    ("minfieldlength", Whole("record.field_length_least")),
    ("fieldlengthdistribution", Text("record.field_lengths")),
    ("fieldlengthhistogram", Note("lengths of fields are constant, uniform or zipfian here")),
    ("fieldnameprefix", Text("record.field_prefix")),
    ("insertorder", Order("record.keys")),
    ("zeropadding", Whole("record.key_digits")),
    ("readproportion", Number("workload.ycsb.read")),
    ("updateproportion", Number("workload.ycsb.update")),
    ("insertproportion", Number("workload.ycsb.insert")),
    ("scanproportion", Number("workload.ycsb.scan")),
    ("readmodifywriteproportion", Number("workload.ycsb.read_modify_write")),
    ("requestdistribution", Text("workload.ycsb.requests")),
    ("hotspotdatafraction", Number("workload.ycsb.hot_records")),
    ("hotspotopnfraction", Number("workload.ycsb.hot_operations")),
    ("exponential.percentile", Percent("workload.ycsb.recent_operations")),
    ("exponential.frac", Number("workload.ycsb.recent_records")),
    ("readallfields", Truth("workload.ycsb.read_all_fields")),
    ("readallfieldsbyname", Silent),
    ("writeallfields", Truth("workload.ycsb.write_all_fields")),
    ("minscanlength", Whole("workload.ycsb.scan_least")),
    ("maxscanlength", Whole("workload.ycsb.scan_most")),
    ("scanlengthdistribution", Text("workload.ycsb.scan_lengths")),
    ("dataintegrity", Only("false", "what reads answer is counted and not compared")),
    ("core_workload_insertion_retry_limit", Only("0", "an insert that fails is counted and not tried again")),
    ("core_workload_insertion_retry_interval", Silent),
    ("db", Note(BINDING)),
    ("exporter", Note(OUTPUT)),
    ("exportfile", Note(OUTPUT)),
    ("measurementtype", Note(OUTPUT)),
    ("histogram.buckets", Note(OUTPUT)),
    ("timeseries.granularity", Note(OUTPUT)),
    ("status", Note(OUTPUT)),
    ("label", Note(OUTPUT)),
    ("silence", Note(OUTPUT)),
];

/// Prefixes of the names of properties that only change what YCSB prints.
const OUTPUT_PREFIXES: [&str; 7] =
    ["hdrhistogram.", "histogram.", "timeseries.", "measurement.", "status.", "reportlat", "latencytracked"];

/// Returns the setting whose value a property is; `None` if the property means something else or several things.
pub fn setting_of(property: &str) -> Option<&'static str> {
    match MEANINGS.iter().find(|(name, _)| *name == property)? {
        (_, Whole(setting) | Number(setting) | Text(setting) | Truth(setting)) => Some(setting),
        _ => None,
    }
}

/// Returns the study that the properties describe, and the notes on those without an effect.
pub fn map(properties: &[Property], errors: &mut Errors) -> (Table, Vec<(Place, String)>) {
    let mut mapped = Mapped { root: Table::default(), notes: Vec::new(), is_load: false };
    let text = |text: &str| Content::Text(text.to_owned());
    for (setting, content) in [
        ("record.type", text("usertable")),
        ("layout.name", text("wide")),
        ("workload.name", text("ycsb")),
        ("load.warmup", text("0s")),
    ] {
        mapped.put(setting, Place::Line(1), content);
    }
    for property in properties {
        match MEANINGS.iter().find(|(name, _)| *name == property.name) {
            Some((_, meaning)) => mapped.take(*meaning, property, errors),
            None => mapped.take_unknown(property, errors),
        }
    }
    mapped.finish(errors);
    (mapped.root, mapped.notes)
}

struct Mapped {
    root: Table,
    notes: Vec<(Place, String)>,
    is_load: bool,
}

impl Mapped {
    fn put(&mut self, setting: &str, place: Place, content: Content) {
        self.root.put(setting, place, Node { place, content });
    }

    fn note(&mut self, property: &Property, why: &str) {
        self.notes.push((property.place, format!("{}={} has no effect: {why}", property.name, property.value)));
    }

    /// Sets the setting of a property, or adds an error that says what its value must be.
    fn take(&mut self, meaning: Meaning, property: &Property, errors: &mut Errors) {
        let Property { name, value, place } = property;
        let number = || value.parse::<f64>().ok().filter(|number| number.is_finite());
        let content = match meaning {
            Whole(setting) => value.parse().ok().map(|number| (setting, Content::Integer(number))),
            Number(setting) => number().map(|number| (setting, Content::Float(number))),
            Percent(setting) => number().map(|number| (setting, Content::Float(number / 100.0))),
            Text(setting) => Some((setting, Content::Text(value.clone()))),
            Truth(setting) => truth(value).map(|truth| (setting, Content::Boolean(truth))),
            Order(setting) => {
                let keys = if value == "hashed" { "hashed" } else { "ordered" };
                Some((setting, Content::Text(keys.to_owned())))
            }
            Seconds(_) | Target if number() == Some(0.0) => return,
            Seconds(setting) => {
                number().filter(|number| *number > 0.0).map(|_| (setting, Content::Text(format!("{value}s"))))
            }
            Target => {
                self.put("load.arrivals", *place, Content::Text("constant".to_owned()));
                number().filter(|number| *number > 0.0).map(|rate| ("load.rate", Content::Float(rate)))
            }
            Class if value.rsplit('.').next() == Some("CoreWorkload") => return,
            Class => {
                let remedy = "only the core workload is possible: site.ycsb.workloads.CoreWorkload";
                return errors.push(*place, fault!("workload is {value:?}"; "{remedy}"));
            }
            Phase => {
                let Some(does) = truth(value) else { return refuse(property, meaning, errors) };
                self.is_load = !does;
                return;
            }
            Only(possible, why) => {
                if !value.eq_ignore_ascii_case(possible) {
                    errors.push(
                        *place,
                        fault!("{name} is {value:?}, which is not possible here: {why}"; "write {possible}"),
                    );
                }
                return;
            }
            Note(why) => return self.note(property, why),
            Silent => return,
        };
        match content {
            Some((setting, content)) => self.put(setting, *place, content),
            None => refuse(property, meaning, errors),
        }
    }

    /// Processes an unknown property: a name with a dot belongs to a driver; one without is probably misspelt.
    fn take_unknown(&mut self, property: &Property, errors: &mut Errors) {
        let Property { name, place, .. } = property;
        if OUTPUT_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            return self.note(property, OUTPUT);
        }
        if name.contains('.') {
            return self.note(property, BINDING);
        }
        let remedy = match closest(name, MEANINGS.iter().map(|(known, _)| *known)) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => "it is none of YCSB's core workload; remove it".to_owned(),
        };
        errors.push(*place, fault!("unknown property \"{name}\""; "{remedy}"));
    }

    /// Adds the settings that follow from several properties, and checks what YCSB requires.
    fn finish(&mut self, errors: &mut Errors) {
        let place = Place::Line(1);
        let whole = |root: &Table, setting: &str| match root.find(setting)?.node.content {
            Content::Integer(number) => Some(number),
            _ => None,
        };
        let rows = whole(&self.root, "record.rows").filter(|rows| *rows != 0);
        if rows.is_none() && self.root.find("record.rows").is_none_or(|entry| entry.node.content == Content::Integer(0))
        {
            let place = self.root.find("record.rows").map_or(place, |entry| entry.place);
            errors.push(
                place,
                fault!("recordcount is missing"; "write how many records there are, as in recordcount=1000"),
            );
        }
        if self.is_load {
            let first = whole(&self.root, "workload.ycsb.first").unwrap_or(0);
            let count = whole(&self.root, "workload.ycsb.records").or(rows.map(|rows| rows - first));
            self.put("workload.name", place, Content::Text("ycsb-load".to_owned()));
            self.put("workload.ycsb.first", place, Content::Integer(first));
            self.put("record.rows", place, Content::Integer(0));
            self.put("load.operations", place, Content::Integer(count.unwrap_or(1)));
            return;
        }
        if whole(&self.root, "load.operations") != Some(0) && self.root.find("load.operations").is_some() {
            return;
        }
        // Without a number of operations, only the time ends the run.
        let operations = self.root.take("load.operations");
        match self.root.take("load.at_most") {
            Some(entry) => self.put("load.duration", entry.place, entry.node.content),
            None => {
                let place = operations.map_or(place, |entry| entry.place);
                let remedy = "write operationcount=1000, or maxexecutiontime=60";
                errors.push(place, fault!("neither operationcount nor maxexecutiontime ends the run"; "{remedy}"));
            }
        }
    }
}

fn truth(value: &str) -> Option<bool> {
    [true, false].into_iter().find(|truth| value.eq_ignore_ascii_case(&truth.to_string()))
}

fn refuse(property: &Property, meaning: Meaning, errors: &mut Errors) {
    let must = match meaning {
        Whole(_) => "a whole number",
        Truth(_) | Phase => "true or false",
        _ => "a number",
    };
    errors.push(property.place, fault!("{} is {:?}", property.name, property.value; "it must be {must}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::table::is_factor;
    use crate::study::ycsb::properties::read_properties;

    fn mapped(text: &str) -> (Table, Vec<String>, Vec<String>) {
        let mut errors = Errors::default();
        let properties = read_properties(text, &mut errors);
        let (root, notes) = map(&properties, &mut errors);
        let lines = errors.into_result(&Default::default()).map_or_else(|errors| errors.lines(), |()| Vec::new());
        (root, notes.into_iter().map(|(_, note)| note).collect(), lines)
    }

    fn value(root: &Table, setting: &str) -> String {
        root.find(setting).map_or_else(|| "-".to_owned(), |entry| entry.node.to_string())
    }

    #[test]
    fn properties_are_settings_that_exist() {
        for (name, meaning) in MEANINGS {
            if let Whole(setting) | Number(setting) | Percent(setting) | Truth(setting) | Text(setting)
            | Order(setting) | Seconds(setting) = meaning
            {
                assert!(is_factor(setting), "{name}: {setting}");
            }
        }
    }

    #[test]
    fn target_and_time_are_an_open_loop_that_ends_with_whichever_is_first() {
        let (root, notes, errors) =
            mapped("recordcount=10\noperationcount=20\nmaxexecutiontime=60\nthreadcount=8\ntarget=500\n");
        assert_eq!((notes, errors), (Vec::new(), Vec::new()));
        let found = ["load.operations", "load.at_most", "load.clients", "load.rate", "load.arrivals", "load.warmup"];
        assert_eq!(found.map(|setting| value(&root, setting)), ["20", "\"60s\"", "8", "500", "\"constant\"", "\"0s\""]);
        let (root, ..) = mapped("recordcount=10\noperationcount=0\nmaxexecutiontime=60\ntarget=0\n");
        let found = ["load.operations", "load.at_most", "load.duration", "load.arrivals"];
        assert_eq!(found.map(|setting| value(&root, setting)), ["-", "-", "\"60s\"", "-"]);
    }

    #[test]
    fn the_load_phase_inserts_the_records_from_the_first_on() {
        let (root, _, errors) = mapped("recordcount=100\ndotransactions=false\ninsertstart=10\n");
        assert_eq!(errors, [""; 0]);
        let found = ["workload.name", "record.rows", "load.operations", "workload.ycsb.first"];
        assert_eq!(found.map(|setting| value(&root, setting)), ["\"ycsb-load\"", "0", "90", "10"]);
    }

    #[test]
    fn what_cannot_be_carried_out_is_an_error_with_its_line() {
        let (_, _, errors) = mapped(
            "recordcount=10\noperationcount=many\nreadproportoin=0.5\ndataintegrity=true\nworkload=x.TimeSeriesWorkload\n\
             readallfields=yes\nmagic=1\n",
        );
        assert_eq!(
            errors,
            [
                ":1: neither operationcount nor maxexecutiontime ends the run; write operationcount=1000, or maxexecutiontime=60",
                ":2: operationcount is \"many\"; it must be a whole number",
                ":3: unknown property \"readproportoin\"; did you mean \"readproportion\"?",
                ":4: dataintegrity is \"true\", which is not possible here: what reads answer is counted and not compared; write false",
                ":5: workload is \"x.TimeSeriesWorkload\"; only the core workload is possible: site.ycsb.workloads.CoreWorkload",
                ":6: readallfields is \"yes\"; it must be true or false",
                ":7: unknown property \"magic\"; it is none of YCSB's core workload; remove it",
            ]
        );
        assert!(mapped("operationcount=1").2[0].contains("recordcount is missing"));
    }

    #[test]
    fn what_has_no_effect_is_noted() {
        let (_, notes, errors) =
            mapped("recordcount=1\noperationcount=1\ndb.url=x\nmeasurementtype=raw\nhdrhistogram.fileoutput=1\n");
        assert_eq!(errors, [""; 0]);
        assert_eq!(notes.len(), 3);
        assert!(notes[0].starts_with("db.url=x has no effect: it is for YCSB's own driver"));
        assert!(notes[1].contains("loadline reports in its own way"));
    }
}
