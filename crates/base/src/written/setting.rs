//! Declarations of settings: one row of a table contains everything that is known of a setting.
//!
//! Main types: [`Part`], a table of a file, and [`Setting`], one of its keys. Invariant: readers, `--set`, factors, suggestions, schemas and
//! the reference page take all their knowledge of a setting from its row, and there is no other list of keys.

use serde_json::Value as Json;

use crate::trial::Settings;

/// A table of a file, with its settings in the order in which they are shown.
#[derive(Debug)]
pub struct Part {
    /// Dotted name, as in `intake.http`; empty for the top of the file.
    pub name: &'static str,
    /// Description of the table, in a sentence or more.
    pub help: &'static str,
    /// The settings of the table.
    pub settings: &'static [Setting],
}

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The key, without the name of its table.
    pub key: &'static str,
    /// The kind of value that the setting takes.
    pub kind: Kind,
    /// The value or meaning of the setting where it is not written.
    pub absent: Absent,
    /// Reads the setting's value from a case, in the form of a study file; `None` where the setting cannot be a factor.
    pub factor: Option<Told>,
    /// The condition under which the setting applies, as in `workload "recent"`; empty where it always applies.
    pub only: &'static str,
    /// Description of the setting, in a sentence.
    pub help: &'static str,
}

/// A function that reads the value of a setting from a case. It returns `None` where the case has no value.
pub type Told = fn(&Settings) -> Option<Json>;

/// The value or meaning of a setting that is not written.
#[derive(Debug, Clone, Copy)]
pub enum Absent {
    /// A text, duration, size or word.
    Text(&'static str),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Truth(bool),
    /// A meaning in words: nothing, or a value that follows from other settings.
    Means(&'static str),
    /// The setting must be written.
    Refused,
}

/// The kind of value that a setting takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Text.
    Text,
    /// One of a list of texts.
    OneOf(&'static [&'static str]),
    /// One of a list of texts that another part of the program provides.
    Listed(fn() -> Vec<&'static str>),
    /// One of a list of texts, checked by the setting's reader, which knows which of them are available.
    Named(fn() -> Vec<&'static str>),
    /// A whole number within both bounds.
    Whole(i64, i64),
    /// A whole number within both bounds, or one of the words.
    WholeOr(i64, i64, &'static [&'static str]),
    /// A number within both bounds.
    Number(f64, f64),
    /// Yes or no.
    Truth,
    /// A duration: text with its unit.
    Duration(Span),
    /// A size in bytes within both bounds: text with its unit, or one of the words.
    Size(u64, u64, &'static [&'static str]),
    /// A size in bytes within both bounds: text with its unit, or a whole number of bytes.
    Bytes(u64, u64),
    /// The rate of a link in bits per second within both bounds: text with its unit, or one of the words.
    BitRate(f64, f64, &'static [&'static str]),
    /// A list of non-empty texts.
    Texts,
    /// A table.
    Part(&'static Part),
    /// A list of tables.
    Parts(&'static Part),
    /// A value of another form, which only its own reader knows.
    Own(&'static Form),
}

/// The range of a duration.
#[derive(Debug, Clone, Copy)]
pub enum Span {
    /// Any duration.
    Any,
    /// Any duration but zero.
    AboveZero,
    /// At most this many seconds.
    AtMost(f64),
    /// Seconds within both bounds.
    Within(f64, f64),
}

/// The form of a value that has its own reader.
#[derive(Debug)]
pub struct Form {
    /// Description of the value, in a few words.
    pub says: &'static str,
    /// Its JSON Schema.
    pub schema: fn() -> Json,
    /// A valid value, as written in a file.
    pub example: &'static str,
}

impl Setting {
    /// Creates a setting that applies to everything and cannot be a factor.
    pub const fn new(key: &'static str, kind: Kind, absent: Absent, help: &'static str) -> Self {
        Setting { key, kind, absent, factor: None, only: "", help }
    }

    /// Makes the setting one that can be a factor.
    pub const fn factor(self, told: Told) -> Self {
        Setting { factor: Some(told), ..self }
    }

    /// Restricts the setting to the given condition.
    pub const fn only(self, only: &'static str) -> Self {
        Setting { only, ..self }
    }
}

impl Part {
    /// Returns the setting of a key, if there is one.
    pub fn find(&self, key: &str) -> Option<&'static Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// Returns the setting of a key for which a reader asks.
    pub(super) fn setting(&self, key: &str) -> &'static Setting {
        self.find(key).unwrap_or_else(|| panic!("a reader asks for {key}, which [{}] does not have", self.name))
    }

    /// Returns all keys, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.settings.iter().map(|setting| setting.key)
    }

    /// Returns the key of this table in the table that contains it.
    pub fn last_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Returns the dotted name of a key.
    pub fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Returns every setting that can be a factor, of this table and of the tables in it, by dotted name and in order.
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

    /// Returns the setting with a dotted name, from this table or one of the tables in it.
    pub fn find_path(&self, path: &str) -> Option<&'static Setting> {
        let Some((first, rest)) = path.split_once('.') else { return self.find(path) };
        match self.find(first)?.kind {
            Kind::Part(part) => part.find_path(rest),
            _ => None,
        }
    }

    /// Returns this table and all tables in it, each once, in the order of the file.
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
