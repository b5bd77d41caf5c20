//! Reads the values of one table of a study file, with their types and ranges.
//!
//! Main type: [`Section`]. Invariant: a value that is missing is none and no error; a value that is wrong is none
//! and one error, which names the place, the value and what it must be.

use std::ops::RangeInclusive;

use super::place::{Errors, Place};
use super::suggest::closest;
use super::tree::{Content, Entry, Node, Table};
use crate::units::{parse_duration, show_number};

/// One table that is being read.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    /// Its name in messages, as in `load`; empty for the top of the file.
    pub name: &'a str,
    /// Where it begins.
    pub place: Place,
    table: Option<&'a Table>,
}

impl<'a> Section<'a> {
    /// The whole file, with its known keys.
    pub fn top(root: &'a Table, keys: &[&str], errors: &mut Errors) -> Self {
        let section = Section { name: "", place: Place::Line(1), table: Some(root) };
        section.check_keys(keys, errors);
        section
    }

    /// The table under a key of `root`, empty when it is missing or, with an error, no table.
    pub fn open(root: &'a Table, name: &'a str, keys: &[&str], errors: &mut Errors) -> Self {
        match root.get(name) {
            Some(entry) => match &entry.node.content {
                Content::Table(table) => Section::of(table, name, entry.place, keys, errors),
                _ => {
                    errors.push(entry.place, format!("{name} is {}; it must be a table [{name}]", entry.node));
                    Section { name, place: entry.place, table: None }
                }
            },
            None => Section { name, place: Place::Line(1), table: None },
        }
    }

    /// A value that must be a table, as in the lists of columns and claims.
    pub fn of_node(node: &'a Node, name: &'a str, keys: &[&str], errors: &mut Errors) -> Option<Self> {
        match &node.content {
            Content::Table(table) => Some(Section::of(table, name, node.place, keys, errors)),
            _ => {
                errors.push(
                    node.place,
                    format!("{name} is {node}; it must be a table {{ {} = ... }}", keys.join(" = ..., ")),
                );
                None
            }
        }
    }

    fn of(table: &'a Table, name: &'a str, place: Place, keys: &[&str], errors: &mut Errors) -> Self {
        let section = Section { name, place, table: Some(table) };
        section.check_keys(keys, errors);
        section
    }

    fn check_keys(&self, keys: &[&str], errors: &mut Errors) {
        for entry in self.entries() {
            if keys.contains(&entry.key.as_str()) {
                continue;
            }
            let whole = if self.name.is_empty() { String::new() } else { format!(" in {}", self.name) };
            let remedy = match closest(&entry.key, keys.iter().copied()) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("known: {}", keys.join(", ")),
            };
            errors.push(entry.place, format!("unknown key \"{}\"{whole}; {remedy}", entry.key));
        }
    }

    /// All entries, in the order of the file.
    pub fn entries(&self) -> &'a [Entry] {
        self.table.map_or(&[], |table| &table.entries)
    }

    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<&'a Entry> {
        self.table?.get(key)
    }

    /// The name of a key in messages, as in `load.clients`.
    pub fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Notes that a value is not what it must be.
    fn refuse(&self, entry: &Entry, must: &str, errors: &mut Errors) {
        let shown = shown(&entry.key, &entry.node);
        errors.push(entry.node.place, format!("{} is {shown}; it must be {must}", self.path(&entry.key)));
    }

    /// Text.
    pub fn text(&self, key: &str, errors: &mut Errors) -> Option<&'a str> {
        let entry = self.get(key)?;
        match &entry.node.content {
            Content::Text(text) => Some(text),
            _ => {
                self.refuse(entry, &format!("text in quotes, as in {key} = \"...\""), errors);
                None
            }
        }
    }

    /// Text that is one of these.
    pub fn one_of(&self, key: &str, choices: &[&str], errors: &mut Errors) -> Option<&'a str> {
        let text = self.text(key, errors)?;
        if choices.contains(&text) {
            return Some(text);
        }
        let remedy = match closest(text, choices.iter().copied()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("choose one of: {}", choices.join(", ")),
        };
        let place = self.get(key).map_or(self.place, |entry| entry.node.place);
        errors.push(place, format!("unknown {} \"{text}\"; {remedy}", self.path(key)));
        None
    }

    /// A whole number.
    pub fn whole(&self, key: &str, range: RangeInclusive<i64>, errors: &mut Errors) -> Option<i64> {
        let entry = self.get(key)?;
        match entry.node.content {
            Content::Integer(number) if range.contains(&number) => Some(number),
            _ => {
                self.refuse(entry, &format!("a whole number {}", show_range(*range.start(), *range.end())), errors);
                None
            }
        }
    }

    /// A whole number that counts something: `least` or more, and at most `most`.
    pub fn count(&self, key: &str, least: u32, most: u32, errors: &mut Errors) -> Option<u32> {
        self.whole(key, i64::from(least)..=i64::from(most), errors).and_then(|number| u32::try_from(number).ok())
    }

    /// A number, whole or fractional, in a range.
    pub fn number(&self, key: &str, range: RangeInclusive<f64>, errors: &mut Errors) -> Option<f64> {
        let entry = self.get(key)?;
        match number_of(&entry.node).filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                let must = format!("a number from {} to {}", show_bound(*range.start()), show_bound(*range.end()));
                self.refuse(entry, &must, errors);
                None
            }
        }
    }

    /// Yes or no.
    pub fn truth(&self, key: &str, errors: &mut Errors) -> Option<bool> {
        let entry = self.get(key)?;
        match entry.node.content {
            Content::Boolean(truth) => Some(truth),
            _ => {
                self.refuse(entry, "true or false", errors);
                None
            }
        }
    }

    /// A duration, in seconds: text with a unit.
    pub fn seconds(&self, key: &str, errors: &mut Errors) -> Option<f64> {
        let entry = self.get(key)?;
        let Content::Text(text) = &entry.node.content else {
            self.refuse(entry, "a duration with its unit in quotes, as in \"500ms\" or \"10s\"", errors);
            return None;
        };
        match parse_duration(text) {
            Ok(duration) => Some(duration.as_secs_f64()),
            Err(sentence) => {
                errors.push(entry.node.place, format!("{}: {sentence}", self.path(key)));
                None
            }
        }
    }

    /// A list; empty when it is missing.
    pub fn list(&self, key: &str, errors: &mut Errors) -> &'a [Node] {
        let Some(entry) = self.get(key) else { return &[] };
        match &entry.node.content {
            Content::List(items) => items,
            _ => {
                self.refuse(entry, "a list [ ... ]", errors);
                &[]
            }
        }
    }
}

/// A value as it stands in messages: those of tokens are not shown, and those of addresses without passwords.
pub fn shown(key: &str, node: &Node) -> String {
    match (key, &node.content) {
        ("token" | "tokens", _) => "something else (not shown)".to_owned(),
        ("url", Content::Text(url)) => format!("{:?}", masked_url(url)),
        _ => node.to_string(),
    }
}

/// An address without the user and password that it may hold; several may stand behind each other, with commas.
pub fn masked_url(url: &str) -> String {
    let one = |url: &str| {
        let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
        let Some((_, host)) = rest.rsplit_once('@') else { return url.to_owned() };
        let begin = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
        format!("{begin}***@{host}")
    };
    match url.contains("://") && url.matches("://").count() > 1 {
        true => url.split(',').map(one).collect::<Vec<_>>().join(","),
        // A password may hold a comma.
        false => one(url),
    }
}

/// The value of a number, whole or fractional.
pub fn number_of(node: &Node) -> Option<f64> {
    match node.content {
        Content::Integer(number) => Some(number as f64),
        Content::Float(number) => Some(number),
        _ => None,
    }
}

/// Exact below 1000, with separators above.
fn show_bound(bound: f64) -> String {
    if bound.abs() < 1000.0 { bound.to_string() } else { show_number(bound) }
}

fn show_range(low: i64, high: i64) -> String {
    match (low, high) {
        (low, i64::MAX) => format!("that is {low} or more"),
        (low, high) => format!("from {low} to {}", show_number(high as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors_of(text: &str, read: impl Fn(&Section, &mut Errors)) -> Vec<String> {
        let mut errors = Errors::default();
        let root = Table::parse(text, &mut errors);
        let section = Section::open(&root, "load", &["clients", "duration", "rate"], &mut errors);
        read(&section, &mut errors);
        errors.into_result(&Default::default()).map_or_else(|errors| errors.lines, |()| Vec::new())
    }

    #[test]
    fn a_wrong_value_is_one_error_that_says_what_it_must_be() {
        let found = errors_of("[load]\nclients = 0\nduration = 10\nrate = nan\n", |section, errors| {
            assert_eq!(section.count("clients", 1, 1000, errors), None);
            assert_eq!(section.seconds("duration", errors), None);
            assert_eq!(section.number("rate", 0.0..=1e9, errors), None);
        });
        assert_eq!(
            found,
            [
                ":2: load.clients is 0; it must be a whole number from 1 to 1,000",
                ":3: load.duration is 10; it must be a duration with its unit in quotes, as in \"500ms\" or \"10s\"",
                ":4: load.rate is NaN; it must be a number from 0 to 1,000,000,000",
            ]
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(masked_url("nats://user:pa@s,s@host:4222"), "nats://***@host:4222");
        assert_eq!(masked_url("nats://token@a:1,tls://u:p@b:2"), "nats://***@a:1,tls://***@b:2");
        assert_eq!(masked_url("u:p@h"), "***@h");
        assert_eq!(masked_url("tls://host"), "tls://host");
        let found = errors_of("[load]\ntoken = 8123\nurl = 3\ntokens = \"8123\"\n", |section, errors| {
            section.text("token", errors);
            section.list("tokens", errors);
        });
        assert!(found.len() > 1 && found.iter().all(|line| !line.contains("8123")), "{found:?}");
    }

    #[test]
    fn a_missing_value_is_no_error() {
        let found = errors_of("", |section, errors| {
            assert_eq!(section.count("clients", 1, 1000, errors), None);
            assert!(section.list("rate", errors).is_empty());
        });
        assert!(found.is_empty());
    }

    #[test]
    fn unknown_keys_are_errors_even_in_tables_that_nobody_reads() {
        let found = errors_of("[load]\ncleints = 4\n", |_, _| {});
        assert_eq!(found, [":2: unknown key \"cleints\" in load; did you mean \"clients\"?"]);
        let found = errors_of("load = 4\n", |_, _| {});
        assert_eq!(found, [":1: load is 4; it must be a table [load]"]);
    }
}
