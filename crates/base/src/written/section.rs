//! Reads the values of one table of a file by the declarations of its part: types, ranges, defaults and unknown keys.
//!
//! Main type: [`Section`]. Invariant: a missing value is the default and no error; a wrong value is the default and one error,
//! which names the place, the value and what the value must be.

use std::ops::RangeInclusive;

use super::place::{Errors, Place};
use super::setting::{Kind, Part, Setting, Span};
use super::suggest::closest;
use super::tree::{Content, Entry, Node, Table};
use super::value::{FromValue, Value};
use crate::fault::{Fault, fault};
use crate::units::{parse_bit_rate, parse_bytes, parse_duration, show_bit_rate, show_bytes, show_number, show_seconds};

/// A table that is being read.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    /// Name in messages, as in `load`; empty for the top of the file.
    pub name: &'a str,
    /// Place at which the table begins.
    pub place: Place,
    part: &'static Part,
    table: Option<&'a Table>,
}

impl<'a> Section<'a> {
    /// Opens the whole file as a section.
    pub fn top(root: &'a Table, part: &'static Part, errors: &mut Errors) -> Self {
        Section::of(root, "", part, Place::Line(1), errors)
    }

    /// Opens the table of a part in the table that contains it; empty when it is missing or, with an error, when it is not a table.
    pub fn open(above: &'a Table, part: &'static Part, errors: &mut Errors) -> Self {
        let name = part.name;
        match above.get(part.last_name()) {
            Some(entry) => match &entry.node.content {
                Content::Table(table) => Section::of(table, name, part, entry.place, errors),
                _ => {
                    errors.push(entry.place, fault!("{name} is {}", entry.node; "it must be a table [{name}]"));
                    Section { name, place: entry.place, part, table: None }
                }
            },
            None => Section { name, place: Place::Line(1), part, table: None },
        }
    }

    /// Opens a value that must be a table, as in the lists of columns and claims; messages call it `name`.
    pub fn of_node(node: &'a Node, name: &'a str, part: &'static Part, errors: &mut Errors) -> Option<Self> {
        match &node.content {
            Content::Table(table) => Some(Section::of(table, name, part, node.place, errors)),
            _ => {
                let keys = part.keys().collect::<Vec<_>>().join(" = ..., ");
                errors.push(node.place, fault!("{name} is {node}"; "it must be a table {{ {keys} = ... }}"));
                None
            }
        }
    }

    fn of(table: &'a Table, name: &'a str, part: &'static Part, place: Place, errors: &mut Errors) -> Self {
        let section = Section { name, place, part, table: Some(table) };
        section.check_keys(errors);
        section
    }

    fn check_keys(&self, errors: &mut Errors) {
        for entry in self.entries().iter().filter(|entry| self.part.find(&entry.key).is_none()) {
            let whole = if self.name.is_empty() { String::new() } else { format!(" in {}", self.name) };
            let remedy = match closest(&entry.key, self.part.keys()) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("known: {}", self.part.keys().collect::<Vec<_>>().join(", ")),
            };
            errors.push(entry.place, fault!("unknown key \"{}\"{whole}", entry.key; "{remedy}"));
        }
    }

    /// Returns all entries, in the order of the file.
    pub fn entries(&self) -> &'a [Entry] {
        self.table.map_or(&[], |table| &table.entries)
    }

    /// Returns the entry of a key.
    pub fn get(&self, key: &str) -> Option<&'a Entry> {
        self.table?.get(key)
    }

    /// Returns whether the declaration of the table has a setting with this key.
    pub fn has(&self, key: &str) -> bool {
        self.part.find(key).is_some()
    }

    /// Returns the name of a key in messages, as in `load.clients`.
    pub fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Reads the value of a key, or its default. Where there is neither, or the value is a word in place of a number, returns the
    /// default of the type: `None` for an option, zero for a number.
    pub fn read<T: FromValue<'a> + Default>(&self, key: &str, errors: &mut Errors) -> T {
        self.find(key, errors).unwrap_or_default()
    }

    /// Reads as [`Section::read`] does; `None` where there is neither a value nor a default, or the value is a word in place of a number.
    pub fn find<T: FromValue<'a>>(&self, key: &str, errors: &mut Errors) -> Option<T> {
        let setting = self.part.setting(key);
        let value = self.value(setting, errors).or_else(|| setting.absent.value(setting.kind));
        value.and_then(T::from_value)
    }

    /// Reads the value of a key as written; `None` where it is missing or wrong.
    pub fn given<T: FromValue<'a>>(&self, key: &str, errors: &mut Errors) -> Option<T> {
        self.value(self.part.setting(key), errors).and_then(T::from_value)
    }

    /// Reads the text of a key as written.
    pub fn text(&self, key: &str, errors: &mut Errors) -> Option<&'a str> {
        self.given(key, errors)
    }

    /// Reads a text that must be one of `choices`, for a form that has other values too.
    pub fn one_of(&self, key: &str, choices: &[&str], errors: &mut Errors) -> Option<&'a str> {
        self.chosen(self.get(key)?, choices, errors)
    }

    /// Reads a number within both bounds, for a form that has other values too.
    pub fn number(&self, key: &str, range: RangeInclusive<f64>, errors: &mut Errors) -> Option<f64> {
        let value = self.measured(self.get(key)?, *range.start(), *range.end(), errors)?;
        f64::from_value(value)
    }

    /// Reads a duration in seconds, for a form that has other values too.
    pub fn seconds(&self, key: &str, errors: &mut Errors) -> Option<f64> {
        self.lasting(self.get(key)?, Span::Any, errors).and_then(f64::from_value)
    }

    /// Reads a list; empty when it is missing.
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

    /// Reads a list of non-empty texts.
    pub fn texts(&self, key: &str, errors: &mut Errors) -> Vec<String> {
        let mut texts = Vec::new();
        for Node { place, content } in self.list(key, errors) {
            match content {
                Content::Text(text) if !text.is_empty() => texts.push(text.clone()),
                _ => errors.push(*place, format!("{} must be a list of texts that are not empty", self.path(key))),
            }
        }
        texts
    }

    /// Opens the table under a key as a section.
    pub fn part(&self, key: &str, errors: &mut Errors) -> Option<Section<'a>> {
        let Kind::Part(part) = self.part.setting(key).kind else { return None };
        Section::of_node(&self.get(key)?.node, part.name, part, errors)
    }

    /// Adds the error that a value is not what it must be.
    fn refuse(&self, entry: &Entry, must: &str, errors: &mut Errors) {
        let shown = shown(&entry.key, &entry.node);
        errors.push(entry.node.place, fault!("{} is {shown}", self.path(&entry.key); "it must be {must}"));
    }

    /// Adds the error that a text cannot be read; `fault` quotes the text.
    fn unreadable(&self, entry: &Entry, fault: Fault, words: &[&str], errors: &mut Errors) {
        let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let wrong = fault.about(self.path(&entry.key));
        let or = (!words.is_empty()).then(|| format!("or write {}", words.join(" or ")));
        let remedy = [wrong.remedy, or].into_iter().flatten().collect::<Vec<_>>().join("; ");
        errors.push(entry.node.place, Fault::new(wrong.what, remedy));
    }

    /// Reads the value of a setting as written; `None` where it is missing or wrong.
    fn value(&self, setting: &Setting, errors: &mut Errors) -> Option<Value<'a>> {
        let entry = self.get(setting.key)?;
        let text = if let Content::Text(text) = &entry.node.content { Some(text.as_str()) } else { None };
        let is_word = |words: &[&str]| text.is_some_and(|text| words.contains(&text));
        match setting.kind {
            Kind::WholeOr(_, _, words) | Kind::Size(_, _, words) | Kind::BitRate(_, _, words) if is_word(words) => {
                text.map(Value::Text)
            }
            Kind::Whole(least, most) | Kind::WholeOr(least, most, _) => self.whole(entry, least, most, errors),
            Kind::Number(least, most) => self.measured(entry, least, most, errors),
            Kind::Truth => self.truth(entry, errors),
            Kind::Duration(span) => self.lasting(entry, span, errors),
            Kind::Size(least, most, words) => self.size(entry, least..=most, words, errors),
            Kind::Bytes(least, most) => self.bytes(entry, least..=most, errors),
            Kind::BitRate(least, most, words) => self.bit_rate(entry, least..=most, words, errors),
            Kind::OneOf(choices) => self.chosen(entry, choices, errors).map(Value::Text),
            Kind::Listed(choices) => self.chosen(entry, &choices(), errors).map(Value::Text),
            _ => self.quoted(entry, errors).map(Value::Text),
        }
    }

    fn quoted(&self, entry: &'a Entry, errors: &mut Errors) -> Option<&'a str> {
        if let Content::Text(text) = &entry.node.content {
            return Some(text);
        }
        self.refuse(entry, &format!("text in quotes, as in {} = \"...\"", entry.key), errors);
        None
    }

    fn chosen(&self, entry: &'a Entry, choices: &[&str], errors: &mut Errors) -> Option<&'a str> {
        let text = self.quoted(entry, errors)?;
        if choices.contains(&text) {
            return Some(text);
        }
        let remedy = match closest(text, choices.iter().copied()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("choose one of: {}", choices.join(", ")),
        };
        errors.push(entry.node.place, fault!("unknown {} \"{text}\"", self.path(&entry.key); "{remedy}"));
        None
    }

    fn whole(&self, entry: &Entry, least: i64, most: i64, errors: &mut Errors) -> Option<Value<'a>> {
        match entry.node.content {
            Content::Integer(number) if (least..=most).contains(&number) => Some(Value::Whole(number)),
            _ => {
                self.refuse(entry, &format!("a whole number from {least} to {}", show_number(most as f64)), errors);
                None
            }
        }
    }

    fn measured(&self, entry: &Entry, least: f64, most: f64, errors: &mut Errors) -> Option<Value<'a>> {
        let number = number_of(&entry.node).filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.refuse(entry, &format!("a number from {} to {}", show_bound(least), show_bound(most)), errors);
        }
        number.map(Value::Number)
    }

    fn truth(&self, entry: &Entry, errors: &mut Errors) -> Option<Value<'a>> {
        if let Content::Boolean(truth) = entry.node.content {
            return Some(Value::Truth(truth));
        }
        self.refuse(entry, "true or false", errors);
        None
    }

    fn lasting(&self, entry: &Entry, span: Span, errors: &mut Errors) -> Option<Value<'a>> {
        let Content::Text(text) = &entry.node.content else {
            self.refuse(entry, "a duration with its unit in quotes, as in \"500ms\" or \"10s\"", errors);
            return None;
        };
        let seconds = match parse_duration(text) {
            Ok(duration) => duration.as_secs_f64(),
            Err(fault) => {
                self.unreadable(entry, fault, &[], errors);
                return None;
            }
        };
        match span {
            Span::AboveZero if seconds <= 0.0 => self.refuse(entry, "more than zero", errors),
            Span::AtMost(most) if seconds > most => {
                self.refuse(entry, &format!("at most {}", show_seconds(most)), errors);
            }
            Span::Within(least, most) if !(least..=most).contains(&seconds) => {
                let range = format!("a duration from {} to {}", show_seconds(least), show_seconds(most));
                self.refuse(entry, &range, errors);
            }
            _ => return Some(Value::Number(seconds)),
        }
        None
    }

    fn size(
        &self,
        entry: &'a Entry,
        range: RangeInclusive<u64>,
        words: &[&str],
        errors: &mut Errors,
    ) -> Option<Value<'a>> {
        match parse_bytes(self.quoted(entry, errors)?) {
            Ok(bytes) if range.contains(&bytes) => Some(Value::Whole(bytes as i64)),
            Ok(_) => {
                self.refuse(entry, &format!("from {} KiB to {} KiB", range.start() >> 10, range.end() >> 10), errors);
                None
            }
            Err(fault) => {
                self.unreadable(entry, fault, words, errors);
                None
            }
        }
    }

    fn bytes(&self, entry: &Entry, range: RangeInclusive<u64>, errors: &mut Errors) -> Option<Value<'a>> {
        let bytes = match &entry.node.content {
            Content::Text(text) => match parse_bytes(text) {
                Ok(bytes) => bytes,
                Err(fault) => {
                    self.unreadable(entry, fault, &[], errors);
                    return None;
                }
            },
            Content::Integer(number) => u64::try_from(*number).unwrap_or(0),
            _ => {
                self.refuse(entry, "a size, as in \"4GiB\"", errors);
                return None;
            }
        };
        if range.contains(&bytes) {
            return Some(Value::Whole(bytes as i64));
        }
        let shown = |bytes: &u64| show_bytes(*bytes as f64);
        self.refuse(entry, &format!("a size from {} to {}", shown(range.start()), shown(range.end())), errors);
        None
    }

    fn bit_rate(
        &self,
        entry: &'a Entry,
        range: RangeInclusive<f64>,
        words: &[&str],
        errors: &mut Errors,
    ) -> Option<Value<'a>> {
        match parse_bit_rate(self.quoted(entry, errors)?) {
            Ok(rate) if range.contains(&rate) => Some(Value::Number(rate)),
            Ok(_) => {
                let (least, most) = (show_bit_rate(*range.start()), show_bit_rate(*range.end()));
                self.refuse(entry, &format!("from {least} to {most}"), errors);
                None
            }
            Err(fault) => {
                self.unreadable(entry, fault, words, errors);
                None
            }
        }
    }
}

/// Returns a value as messages show it: tokens are hidden, and addresses are shown without passwords.
pub fn shown(key: &str, node: &Node) -> String {
    match (key, &node.content) {
        ("token" | "tokens", _) => "something else (not shown)".to_owned(),
        ("url", Content::Text(url)) => format!("{:?}", masked_url(url)),
        _ => node.to_string(),
    }
}

/// Returns an address without the user and password that it may contain; several addresses may be separated by commas.
pub fn masked_url(url: &str) -> String {
    let one = |url: &str| {
        let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
        let Some((_, host)) = rest.rsplit_once('@') else { return url.to_owned() };
        let begin = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
        format!("{begin}***@{host}")
    };
    match url.contains("://") && url.matches("://").count() > 1 {
        true => url.split(',').map(one).collect::<Vec<_>>().join(","),
        // A password may contain a comma.
        false => one(url),
    }
}

/// Returns the value of a number, whole or fractional.
pub fn number_of(node: &Node) -> Option<f64> {
    match node.content {
        Content::Integer(number) => Some(number as f64),
        Content::Float(number) => Some(number),
        _ => None,
    }
}

/// Shows a bound: exactly below 1000, with separators above.
pub(super) fn show_bound(bound: f64) -> String {
    if bound.abs() < 1000.0 { bound.to_string() } else { show_number(bound) }
}

#[cfg(test)]
mod tests {
    use super::super::setting::Absent;
    use super::*;

    static LOAD: Part = Part {
        name: "load",
        help: "",
        settings: &[
            Setting::new("clients", Kind::Whole(1, 1000), Absent::Whole(1), ""),
            Setting::new("duration", Kind::Duration(Span::Any), Absent::Means("nothing"), ""),
            Setting::new("rate", Kind::Number(0.0, 1e9), Absent::Means("nothing"), ""),
            Setting::new("token", Kind::Text, Absent::Means("nothing"), ""),
            Setting::new("url", Kind::Text, Absent::Means("nothing"), ""),
            Setting::new("tokens", Kind::Texts, Absent::Means("none"), ""),
        ],
    };

    fn errors_of(text: &str, read: impl Fn(&Section, &mut Errors)) -> Vec<String> {
        let mut errors = Errors::default();
        let root = Table::parse(text, &mut errors);
        let section = Section::open(&root, &LOAD, &mut errors);
        read(&section, &mut errors);
        errors.into_result(&Default::default()).map_or_else(|errors| errors.lines(), |()| Vec::new())
    }

    #[test]
    fn a_wrong_value_is_one_error_that_says_what_it_must_be() {
        let found = errors_of("[load]\nclients = 0\nduration = 10\nrate = nan\n", |section, errors| {
            assert_eq!(section.given::<u32>("clients", errors), None);
            assert_eq!(section.read::<u32>("clients", errors), 1);
            assert_eq!(section.read::<Option<f64>>("duration", errors), None);
            assert_eq!(section.read::<f64>("rate", errors), 0.0);
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
            assert_eq!(section.read::<u32>("clients", errors), 1);
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
