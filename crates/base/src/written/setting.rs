//! Settings as they are declared: one row of a table says all that there is to know of a setting.
//!
//! Main types: [`Part`], a table of a file, and [`Setting`], one of its keys. Invariant: readers, `--set`, factors, suggestions, schemas and
//! the reference page know of a setting what its row says, and there is no other list of keys.

use serde_json::Value as Json;

use crate::trial::Settings;

/// A table of a file: its settings in the order in which people are told them.
#[derive(Debug)]
pub struct Part {
    /// Its dotted name, as in `intake.http`; empty for the top of the file.
    pub name: &'static str,
    /// What it is about, in a sentence or more.
    pub help: &'static str,
    /// Its settings.
    pub settings: &'static [Setting],
}

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The key, without the name of its table.
    pub key: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// What holds where it is not written.
    pub absent: Absent,
    /// How a case's value of it is told, as a study file would state it; none for what cannot be a factor.
    pub factor: Option<Told>,
    /// What it applies to, as in `workload "recent"`; empty where it applies to everything.
    pub only: &'static str,
    /// What it says, in a sentence.
    pub help: &'static str,
}

/// How the value of a setting is told from a case. None where the case has none.
pub type Told = fn(&Settings) -> Option<Json>;

/// What holds where a setting is not written.
#[derive(Debug, Clone, Copy)]
pub enum Absent {
    /// This text, duration, size or word.
    Text(&'static str),
    /// This whole number.
    Whole(i64),
    /// This number.
    Number(f64),
    /// Yes or no.
    Truth(bool),
    /// What the words say: nothing, or what follows from other settings.
    Means(&'static str),
    /// It must be written.
    Refused,
}

/// What a value must be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Text.
    Text,
    /// Text that is one of these.
    OneOf(&'static [&'static str]),
    /// Text that is one of these, which another part of the program lists.
    Listed(fn() -> Vec<&'static str>),
    /// Text that is one of these, which its reader checks: it knows which of them are available.
    Named(fn() -> Vec<&'static str>),
    /// A whole number within both ends.
    Whole(i64, i64),
    /// A whole number within both ends, or one of these words.
    WholeOr(i64, i64, &'static [&'static str]),
    /// A number within both ends.
    Number(f64, f64),
    /// Yes or no.
    Truth,
    /// A duration: text with its unit.
    Duration(Span),
    /// A size within both ends, in bytes: text with its unit, or one of these words.
    Size(u64, u64, &'static [&'static str]),
    /// A size within both ends: text with its unit, or a whole number of bytes.
    Bytes(u64, u64),
    /// The rate of a link within both ends, in bits per second: text with its unit, or one of these words.
    BitRate(f64, f64, &'static [&'static str]),
    /// A list of texts that are not empty.
    Texts,
    /// A table of its own.
    Part(&'static Part),
    /// A list of tables.
    Parts(&'static Part),
    /// Something else, which its reader alone knows.
    Own(&'static Form),
}

/// Which durations are possible.
#[derive(Debug, Clone, Copy)]
pub enum Span {
    /// All.
    Any,
    /// All but zero.
    AboveZero,
    /// So many seconds at most.
    AtMost(f64),
    /// Seconds within both ends.
    Within(f64, f64),
}

/// The form of a value that has a reader of its own.
#[derive(Debug)]
pub struct Form {
    /// What it must be, in a few words.
    pub says: &'static str,
    /// Its JSON Schema.
    pub schema: fn() -> Json,
    /// A value that is right, as it stands in a file.
    pub example: &'static str,
}

impl Setting {
    /// A setting that applies to everything and cannot be a factor.
    pub const fn new(key: &'static str, kind: Kind, absent: Absent, help: &'static str) -> Self {
        Setting { key, kind, absent, factor: None, only: "", help }
    }

    /// The setting as one that can be a factor.
    pub const fn factor(self, told: Told) -> Self {
        Setting { factor: Some(told), ..self }
    }

    /// The setting as one that applies to this alone.
    pub const fn only(self, only: &'static str) -> Self {
        Setting { only, ..self }
    }
}

impl Part {
    /// The setting of a key.
    pub fn find(&self, key: &str) -> Option<&'static Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// The setting of a key that a reader asks for.
    pub(super) fn setting(&self, key: &str) -> &'static Setting {
        self.find(key).unwrap_or_else(|| panic!("a reader asks for {key}, which [{}] does not have", self.name))
    }

    /// All keys, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.settings.iter().map(|setting| setting.key)
    }

    /// The key of this table in the one above it.
    pub fn last_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// The dotted name of a key.
    pub fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Every setting that can be a factor, of this table and of those below it, by its dotted name and in order.
    pub fn factors(&'static self) -> Vec<(String, &'static Setting)> {
        let mut found = Vec::new();
        for setting in self.settings {
            match setting.kind {
                Kind::Part(part) => found.extend(part.factors()),
                _ if setting.factor.is_some() => found.push((self.path(setting.key), setting)),
                _ => {}
            }
        }
        found
    }

    /// The setting of a dotted name, of this table or of one below it.
    pub fn find_path(&self, path: &str) -> Option<&'static Setting> {
        let Some((first, rest)) = path.split_once('.') else { return self.find(path) };
        match self.find(first)?.kind {
            Kind::Part(part) => part.find_path(rest),
            _ => None,
        }
    }

    /// This table and all below it, each once, in the order of the file.
    pub fn all(&'static self) -> Vec<&'static Part> {
        let below = |setting: &Setting| match setting.kind {
            Kind::Part(part) | Kind::Parts(part) => part.all(),
            _ => Vec::new(),
        };
        let mut found: Vec<&'static Part> = vec![self];
        for part in self.settings.iter().flat_map(below) {
            if !found.iter().any(|known| std::ptr::eq(*known, part)) {
                found.push(part);
            }
        }
        found
    }
}
