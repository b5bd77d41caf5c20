//! The two files, and documents around one setting of them in which that setting means something.

use loadline::database::{Endpoint, REGISTRY};
use loadline::recorder::config::{self, RECORDER_FILE};
use loadline::study::{self, DatabaseFacts, Names, STUDY, Study};
use loadline::written::{Kind, Part};
use loadline::{data, layout, workload};
use toml::{Table, Value};

/// A kind of file.
pub struct File {
    /// Its table.
    pub top: &'static Part,
    /// What it is read as, or what is wrong with it, as text.
    read: fn(&str) -> String,
    /// What must stand around a setting.
    around: fn(&str, &str) -> &'static str,
}

/// Study files.
pub static STUDY_FILE: File = File {
    top: &STUDY,
    read: |text| study(text).map_or_else(|lines| lines, |study| format!("{study:?}")),
    around: around_study,
};

/// The recorder's files.
pub static RECORDER_CONFIG: File = File {
    top: &RECORDER_FILE,
    read: |text| config::read(text, "c.toml").map_or_else(|lines| lines.to_string(), |config| format!("{config:?}")),
    around: around_recorder,
};

/// A table with the way to it: keys, and whether a list of tables is there.
#[derive(Debug, Clone)]
pub struct Place {
    /// The table.
    pub part: &'static Part,
    way: Vec<(&'static str, bool)>,
}

/// All tables of a file.
pub fn places(top: &'static Part) -> Vec<Place> {
    below(Place { part: top, way: Vec::new() })
}

fn below(place: Place) -> Vec<Place> {
    let mut found = vec![place.clone()];
    for setting in place.part.settings {
        let (part, is_list) = match setting.kind {
            Kind::Part(part) => (part, false),
            Kind::Parts(part) => (part, true),
            _ => continue,
        };
        let way = [place.way.clone(), vec![(setting.key, is_list)]].concat();
        found.extend(below(Place { part, way }));
    }
    found
}

impl File {
    /// What is read, or said, of a document with this value at a key; without the key where there is none.
    pub fn said(&self, place: &Place, key: &str, value: Option<&Value>) -> String {
        (self.read)(&toml::to_string(&self.table(place, key, value)).unwrap())
    }

    /// What is read, or said, of a document with several values in a table.
    pub fn said_of(&self, place: &Place, values: &[(&str, Value)]) -> String {
        let [(key, value), rest @ ..] = values else { return String::new() };
        let mut root = self.table(place, key, Some(value));
        table_at(&mut root, place).extend(rest.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        (self.read)(&toml::to_string(&root).unwrap())
    }

    /// That document.
    pub fn document(&self, place: &Place, key: &str, value: Option<&Value>) -> serde_json::Value {
        serde_json::to_value(self.table(place, key, value)).unwrap()
    }

    fn table(&self, place: &Place, key: &str, value: Option<&Value>) -> Table {
        let around = (self.around)(place.part.name, key);
        let mut root: Table = around.parse().unwrap_or_else(|error| panic!("{error}\n{around}"));
        let table = table_at(&mut root, place);
        table.remove(key);
        table.extend(value.map(|value| (key.to_owned(), value.clone())));
        root
    }
}

/// The table of a document, made where it is not there.
fn table_at<'t>(root: &'t mut Table, place: &Place) -> &'t mut Table {
    let mut table = root;
    for (name, is_list) in &place.way {
        let empty = || Value::Table(Table::new());
        let new = || if *is_list { Value::Array(vec![empty()]) } else { empty() };
        table = match table.entry(*name).or_insert_with(new) {
            Value::Array(list) => list[0].as_table_mut().unwrap(),
            other => other.as_table_mut().unwrap(),
        };
    }
    table
}

/// Whether lines say that the value of a setting is of a wrong type or out of its range.
pub fn refuses(lines: &str, path: &str) -> bool {
    lines.lines().filter_map(|line| line.split_once(": ")).any(|(_, line)| {
        let is_range = line.starts_with(&format!("{path} is ")) && line.contains("; it must be ");
        let is_list = line.starts_with(&format!("{path} must be "));
        is_range || is_list || line.starts_with(&format!("{path}: ")) || line.starts_with(&format!("unknown {path} "))
    })
}

/// Reads a study with all names that there are.
pub fn study(text: &str) -> Result<Study, String> {
    let facts = REGISTRY.iter().map(|entry| DatabaseFacts {
        name: entry.name.to_owned(),
        engines: entry.engines.iter().map(|engine| (*engine).to_owned()).collect(),
        has_private_server: entry.recipe.is_some(),
        read_url: entry.read_url.map(|_| (|_| Ok(Endpoint::default())) as fn(&str) -> _),
    });
    let records: Vec<_> = data::REGISTRY.iter().map(|entry| entry.name).collect();
    let layouts: Vec<_> = layout::REGISTRY.iter().map(|entry| entry.name).collect();
    let workloads: Vec<_> = workload::REGISTRY.iter().map(|entry| entry.name).collect();
    let mut names = Names::new(facts.collect(), &records, &layouts, &workloads);
    names.cannot = |settings| (settings.database.name == "mysql").then(|| "it is not here".to_owned());
    study::load_text("s.toml", text, &[], None, false, &names)
        .map(|(study, _)| study)
        .map_err(|errors| errors.to_string())
}

const VIOLATIONS: &str =
    "[database]\nname = \"mariadb\"\n[record]\ntype = \"violation\"\n[recorder]\npath = \"ftp\"\n[link]\n";
const CUSTOM: &str = "[record]\ntype = \"custom\"\n\
    identity = [ { name = \"a\", kind = \"text\", fill = { random_text = 4 } } ]\n\
    values = [ { name = \"b\", kind = \"text\", fill = { random_text = 4 } } ]\n";
const QUERY: &str = "[workload]\nname = \"query\"\nqueries = [ { name = \"x9\" }, { name = \"y\" } ]\n";
const SOURCES: &str = "[record]\nsources = 10\nlate = { share = 0.1 }\n";
const RETENTION: &str = "[record]\nrows = 10\nsources = 2\n[layout]\nname = \"wide\"\n[workload]\nname = \"write\"\n[retention]\nkeep = \"1h\"\n";
const QUESTIONS: &str = "[record]\nrows = 10\nsources = 2\n[workload]\nname = \"questions\"\n\
    questions = [ { ask = \"aggregate\", name = \"x9\", of = [\"a9\"] }, { ask = \"newest\" } ]\n";
const BUCKETS: &str = "[record]\nrows = 10\nsources = 2\n[workload]\nname = \"questions\"\n\
    questions = [ { ask = \"buckets\", bucket = \"1s\" } ]\n";
const ABOVE: &str = "[record]\nrows = 10\nsources = 2\n[workload]\nname = \"questions\"\n\
    questions = [ { ask = \"above\", of = [\"ul_delay\"], above = 1 } ]\n";
const TOP: &str = "[record]\nrows = 10\nsources = 2\n[workload]\nname = \"questions\"\n\
    questions = [ { ask = \"top\", of = [\"ul_delay\"] } ]\n";
const CLAIM: &str = "[factors]\n\"load.clients\" = [1, 2]\n[[claims]]\nsays = \"a\"\nmetric = \"throughput\"\n";
const OWN_TABLE: &str = "[workload]\nname = \"sql\"\nstatements = [ { sql = \"SELECT 1\" } ]\n\
    [[tables]]\nname = \"t\"\ncreate = [\"CREATE TABLE t (a INT)\"]\nrows = 1\ncolumns = [ { name = \"a\", fill = 1 } ]\n";
const FRESHNESS: &str = "[workload]\nname = \"freshness\"\n[layout]\nname = \"wide\"\n\
    [load]\narrivals = \"poisson\"\nrate = 1\n[freshness]\n";
const PUBLISHED: &str = "[workload]\nname = \"freshness\"\n[layout]\nname = \"wide\"\n\
    [load]\narrivals = \"poisson\"\nrate = 1\n[freshness]\npath = \"subscribe\"\n";

/// What a study says besides, so that a setting of this table means something.
fn around_study(part: &str, key: &str) -> &'static str {
    match (part, key) {
        ("database", "engine" | "url" | "binary" | "base" | "socket" | "cpus" | "memory" | "encryption") => {
            "[database]\nname = \"mariadb\"\n"
        }
        ("database", "tls") => "[database]\nname = \"mariadb\"\nsocket = \"tcp\"\n",
        ("layout", "recorded_index") => "[layout]\ntables = \"recorder\"\n",
        ("record", "permutation") => "[record]\ntype = \"wisconsin\"\nrows = 1000\n",
        ("record", "scale") => "[record]\nruns = [[2, 100]]\n",
        ("record", "length") => "[record]\ntype = \"sensor\"\n",
        ("record", "identity" | "values") | ("record.identity" | "record.values", _) => CUSTOM,
        ("record", _) if key.starts_with("field") || key.starts_with("key") => "[record]\ntype = \"usertable\"\n",
        ("record", "sources" | "interval" | "jitter" | "missing" | "late" | "repeated") | ("record.late", _) => SOURCES,
        ("layout", "time_index") => SOURCES,
        ("layout", "partition") => RETENTION,
        ("layout", "readings_per_row") => "[record]\nsources = 10\n[layout]\nname = \"gorilla\"\n",
        ("workload.questions", "bucket") => BUCKETS,
        ("workload.questions", "above") => ABOVE,
        ("workload.questions", "most" | "by") => TOP,
        ("workload", "questions" | "question") | ("workload.questions", _) => QUESTIONS,
        ("workload", "queries" | "query" | "explain") | ("workload.queries", _) => QUERY,
        ("workload", "window") => {
            "[workload]\nname = \"recent\"\nqueries = [ { name = \"x9\" } ]\n[record]\nrows = 10\n"
        }
        ("workload.statements", "transaction") => "[workload]\nname = \"sql\"\nstatements = [ { weight = 1 } ]\n",
        ("workload", "statements" | "writes") | ("workload.statements", _) => {
            "[workload]\nname = \"sql\"\nstatements = [ { sql = \"SELECT 1\" } ]\n"
        }
        ("workload.statements.transaction", _) => {
            "[workload]\nname = \"sql\"\nstatements = [ { transaction = [ { sql = \"SELECT 1\" } ] } ]\n"
        }
        ("workload" | "workload.mix", "mix" | "select" | "update" | "read" | "scan" | "write") => {
            "[workload]\nname = \"mix\"\nmix = { }\n[record]\nrows = 10\n"
        }
        ("workload" | "workload.ycsb", _) if part.ends_with("ycsb") || key == "ycsb" => {
            "[workload]\nname = \"ycsb\"\n[workload.ycsb]\n[record]\ntype = \"usertable\"\nrows = 10\n"
        }
        ("workload", _) if key.starts_with("evolve") => {
            "[workload]\nevolve = \"1s\"\n[record]\nrows = 10\n[layout]\nname = \"wide\"\n[database]\nname = \"mariadb\"\n"
        }
        ("load", "rate") => "[load]\narrivals = \"poisson\"\n",
        ("load", "source_rate") => "[load]\narrivals = \"sources\"\n",
        ("load", "trace") => "[load]\narrivals = \"trace\"\n",
        ("load", "at_most") => "[load]\noperations = 10\n",
        ("background", _) => "[background]\nrate = 5\n",
        ("retention", _) => RETENTION,
        ("freshness", "window") => {
            "[workload]\nname = \"freshness\"\n[layout]\nname = \"wide\"\n[load]\narrivals = \"poisson\"\nrate = 1\n\
             [freshness]\npoll = \"window\"\n"
        }
        ("freshness", "tls") => PUBLISHED,
        ("freshness", _) => FRESHNESS,
        ("link", _) => VIOLATIONS,
        ("recorder", _) => "[database]\nname = \"mariadb\"\n[recorder]\n",
        ("blocks", _) => {
            "[database]\nname = \"mariadb\"\n[record]\ntype = \"violation\"\n[recorder]\npath = \"ftp\"\n[blocks]\n"
        }
        ("goal", _) => "[goal]\nbelow = \"100ms\"\n",
        ("tables" | "tables.columns", _) => OWN_TABLE,
        ("events", _) => {
            "[database]\nname = \"postgres\"\n[load]\nduration = \"1h\"\n[[events]]\nat = \"2s\"\ndo = \"kill\"\nlasts = \"1s\"\n"
        }
        ("", "where_possible") => "[factors]\n\"database.name\" = [\"sqlite\", \"mysql\"]\n",
        _ => around_claims(part, key),
    }
}

fn around_claims(part: &str, key: &str) -> &'static str {
    match (part, key) {
        ("claims", "model") => "[[claims]]\nsays = \"a\"\n",
        ("claims.model", "where") => {
            "[factors]\n\"load.clients\" = [1, 2]\n[[claims]]\nsays = \"a\"\nmodel = { name = \"mm1\" }\n"
        }
        ("claims.model", _) => "[[claims]]\nsays = \"a\"\nmodel = { name = \"mm1\" }\n",
        ("claims", "ratio" | "bound") => CLAIM,
        ("claims", _) => "[[claims]]\nsays = \"a\"\nmetric = \"throughput\"\nbound = { above = 1 }\n",
        ("claims.ratio", "between" | "above" | "below") => {
            "[factors]\n\"load.clients\" = [1, 2]\n[[claims]]\nsays = \"a\"\nmetric = \"throughput\"\n\
             ratio = { of = { \"load.clients\" = 1 }, to = { \"load.clients\" = 2 } }\n"
        }
        ("claims.ratio", _) => {
            "[factors]\n\"load.clients\" = [1, 2]\n[[claims]]\nsays = \"a\"\nmetric = \"throughput\"\n\
             ratio = { of = { \"load.clients\" = 1 }, to = { \"load.clients\" = 2 }, above = 0.5 }\n"
        }
        ("claims.bound", "of") => {
            "[factors]\n\"load.clients\" = [1, 2]\n[[claims]]\nsays = \"a\"\nmetric = \"throughput\"\nbound = { above = 1 }\n"
        }
        ("claims.bound", _) => "[[claims]]\nsays = \"a\"\nmetric = \"throughput\"\nbound = { }\n",
        _ => "",
    }
}

/// What the recorder's file says besides.
fn around_recorder(part: &str, key: &str) -> &'static str {
    const SQLITE: &str = "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n\
                          certificate = \"c\"\nkey = \"k\"\n";
    match (part, key) {
        ("database", "name" | "engine" | "url" | "binary" | "base" | "socket" | "cpus") | ("writer", _) => {
            "[database]\nname = \"mariadb\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n"
        }
        ("layout", "hot") => {
            "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[layout]\nname = \"star-hot\"\n"
        }
        ("intake", "request") => {
            "[database]\npath = \"m.db\"\n[intake]\nmemory = \"64GiB\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n"
        }
        ("intake.tcp", _) => {
            "[database]\npath = \"m.db\"\n[intake.tcp]\nlisten = \"127.0.0.1:0\"\ncertificate = \"c\"\nkey = \"k\"\n"
        }
        ("intake.nats", "shared") => {
            "[database]\nname = \"mariadb\"\n[intake.nats]\nurl = \"nats://h\"\nstream = \"s\"\nconsumer = \"c\"\n"
        }
        ("intake.nats", "partitions" | "lease" | "publish") => {
            "[database]\nname = \"mariadb\"\n[intake.nats]\nurl = \"nats://h\"\nstream = \"s\"\nconsumer = \"c\"\nshared = true\n"
        }
        ("intake.nats", _) => {
            "[database]\npath = \"m.db\"\n[intake.nats]\nurl = \"nats://h\"\nstream = \"s\"\nconsumer = \"c\"\n"
        }
        ("intake.store", _) => "[intake.store]\nurl = \"nats://h\"\nbucket = \"b\"\n",
        ("intake.blocks", _) => "[intake.ftp]\nlisten = \"127.0.0.1:0\"\n[intake.blocks]\n",
        ("intake.ftp", _) => "[intake.ftp]\nlisten = \"127.0.0.1:0\"\ncertificate = \"c\"\nkey = \"k\"\n",
        ("intake.put", _) => "[intake.put]\nlisten = \"127.0.0.1:0\"\ncertificate = \"c\"\nkey = \"k\"\n",
        ("access", _) => {
            "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[[access]]\nname = \"a\"\n\
             token_hash = \"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a09\"\n"
        }
        ("retention", "keep") => {
            "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[retention]\nmeasurements = { cpu = \"7d\" }\n"
        }
        ("retention", _) => {
            "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[retention]\nkeep = \"30d\"\n"
        }
        ("inbox", _) => {
            "[inbox]\nblock = \"1KiB\"\nbound_per_camera = \"1MiB\"\n[intake.ftp]\nlisten = \"127.0.0.1:0\"\n"
        }
        ("processing", _) => "[database]\npath = \"m.db\"\n[processing]\nidentity = \"i\"\nsigners = \"s\"\n",
        ("forward", _) => "[forward]\nurl = \"nats://h\"\nbucket = \"b\"\n",
        ("office", _) => {
            "[database]\npath = \"m.db\"\n[office]\nlisten = \"127.0.0.1:0\"\nreaders = { desk = \"0123456789abcdef\" }\n\
             certificate = \"c\"\nkey = \"k\"\n"
        }
        ("metrics", _) => {
            "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n\
             certificate = \"c\"\nkey = \"k\"\n"
        }
        ("query", _) => {
            "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[query]\nlisten = \"127.0.0.1:0\"\n\
             certificate = \"c\"\nkey = \"k\"\n"
        }
        _ => SQLITE,
    }
}
