//! The tree of a study file: every value with the place where it was written.
//!
//! Main type: [`Table`]. Invariant: entries are in the order of the file, and each key occurs once.

use std::fmt;

use toml::de::{DeTable, DeValue};

use super::place::{Errors, Place};

/// A table: keys with values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Place at which the key was written.
    pub place: Place,
    /// The value.
    pub node: Node,
}

/// A value with the place where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Place at which the value begins.
    pub place: Place,
    /// Content of the value.
    pub content: Content,
}

/// A value of TOML.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A fractional number, finite or not.
    Float(f64),
    /// Yes or no.
    Boolean(bool),
    /// A value that no study uses, as it was written: a date, or a whole number beyond 64 bits.
    Other(String),
    /// Values in order.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

impl Table {
    /// Parses the text of a file. All syntax errors are collected in `errors`; the tree is then incomplete.
    pub fn parse(text: &str, errors: &mut Errors) -> Table {
        let lines = LineStarts::of(text);
        let (root, found) = DeTable::parse_recoverable(text);
        for error in found {
            let offset = error.span().map_or(0, |span| span.start);
            errors.push(lines.place(offset), format!("not valid TOML: {}", error.message()));
        }
        table_of(root.get_ref(), &|offset| lines.place(offset))
    }

    /// Returns the entry of a key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Removes the entry of a key.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    /// Returns the entry of a dotted setting such as `load.clients` or `database.config.name`.
    pub fn find(&self, setting: &str) -> Option<&Entry> {
        let mut path = split_setting(setting).into_iter();
        let mut entry = self.get(path.next()?)?;
        for key in path {
            let Content::Table(table) = &entry.node.content else { return None };
            entry = table.get(key)?;
        }
        Some(entry)
    }

    /// Sets the value of a dotted setting, replacing the existing one. Does nothing where something other than a
    /// table is in the way; the check of the file reports that.
    pub fn put(&mut self, setting: &str, place: Place, node: Node) {
        let path = split_setting(setting);
        let Some((last, sections)) = path.split_last() else { return };
        let Some(table) = self.descend(sections, place) else { return };
        match table.entries.iter_mut().find(|entry| entry.key == *last) {
            Some(entry) => (entry.place, entry.node) = (place, node),
            None => table.entries.push(Entry { key: (*last).to_owned(), place, node }),
        }
    }

    /// Removes a dotted setting and returns its entry; `None` when it is not there.
    pub fn take(&mut self, setting: &str) -> Option<Entry> {
        self.find(setting)?;
        let path = split_setting(setting);
        let (last, sections) = path.split_last()?;
        self.descend(sections, Place::Line(1))?.remove(last)
    }

    /// Returns the table under a path of sections, creating those that are missing; `None` when a section is not a table.
    fn descend(&mut self, sections: &[&str], place: Place) -> Option<&mut Table> {
        let mut table = self;
        for section in sections {
            let at = match table.entries.iter().position(|entry| entry.key == *section) {
                Some(at) => at,
                None => {
                    let node = Node { place, content: Content::Table(Table::default()) };
                    table.entries.push(Entry { key: (*section).to_owned(), place, node });
                    table.entries.len() - 1
                }
            };
            match &mut table.entries[at].node.content {
                Content::Table(inner) => table = inner,
                _ => return None,
            }
        }
        Some(table)
    }
}

/// Splits a dotted setting into its keys: two of them, and for the server's own settings `database`, `config` and the
/// rest, which may contain dots.
pub fn split_setting(setting: &str) -> Vec<&str> {
    match setting.strip_prefix("database.config.") {
        Some(name) => vec!["database", "config", name],
        None => setting.split('.').collect(),
    }
}

impl Node {
    /// Parses one value as it would be written in a file; `None` when it is not valid TOML.
    pub fn parse(text: &str, place: Place) -> Option<Node> {
        let value = DeValue::parse(text).ok()?;
        Some(Node { place, content: content_of(value.get_ref(), &|_| place) })
    }

    /// Returns a scalar as JSON; `None` for lists, tables, dates and numbers that are not finite.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        match &self.content {
            Content::Text(text) => Some(text.as_str().into()),
            Content::Integer(number) => Some((*number).into()),
            Content::Float(number) => serde_json::Number::from_f64(*number).map(Into::into),
            Content::Boolean(truth) => Some((*truth).into()),
            Content::Other(_) | Content::List(_) | Content::Table(_) => None,
        }
    }
}

/// Writes the value as messages show it.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Text(text) => write!(f, "{text:?}"),
            Content::Integer(number) => write!(f, "{number}"),
            Content::Float(number) => write!(f, "{number}"),
            Content::Boolean(truth) => write!(f, "{truth}"),
            Content::Other(text) => f.write_str(text),
            Content::List(items) => {
                let items: Vec<String> = items.iter().map(Node::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Content::Table(_) => f.write_str("a table"),
        }
    }
}

fn table_of(table: &DeTable<'_>, place: &dyn Fn(usize) -> Place) -> Table {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key_text: &std::borrow::Cow<'_, str> = key.get_ref();
        Entry {
            key: key_text.to_string(),
            place: place(key.span().start),
            node: Node { place: place(value.span().start), content: content_of(value.get_ref(), place) },
        }
    };
    Table { entries: entries.into_iter().map(entry).collect() }
}

fn content_of(value: &DeValue<'_>, place: &dyn Fn(usize) -> Place) -> Content {
    match value {
        DeValue::String(text) => Content::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(whole) => Content::Integer(whole),
            Err(_) => Content::Other(number.to_string()),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(fraction) => Content::Float(fraction),
            Err(_) => Content::Other(number.to_string()),
        },
        DeValue::Boolean(truth) => Content::Boolean(*truth),
        DeValue::Datetime(moment) => Content::Other(moment.to_string()),
        DeValue::Array(list) => Content::List(
            list.iter()
                .map(|item| Node { place: place(item.span().start), content: content_of(item.get_ref(), place) })
                .collect(),
        ),
        DeValue::Table(table) => Content::Table(table_of(table, place)),
    }
}

/// The offsets at which the lines of a text begin.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        LineStarts(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1).collect())
    }

    fn place(&self, offset: usize) -> Place {
        Place::Line(1 + self.0.partition_point(|start| *start <= offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Table {
        let mut errors = Errors::default();
        let table = Table::parse(text, &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        table
    }

    #[test]
    fn every_value_knows_its_line_and_the_order_of_the_file_is_kept() {
        let table = parse("z = 1\na = [\n  2,\n  3,\n]\n\n[load]\nclients = 4\n");
        assert_eq!(table.entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["z", "a", "load"]);
        let Content::List(items) = &table.entries[1].node.content else { panic!("a list") };
        assert_eq!(items[1].place, Place::Line(4));
        assert_eq!(table.find("load.clients").unwrap().place, Place::Line(8));
    }

    #[test]
    fn a_setting_of_the_server_may_contain_dots() {
        let mut table = parse("[database]\nconfig = { \"a.b\" = 1 }\n");
        assert!(table.find("database.config.a.b").is_some());
        table.put("database.config.c.d", Place::Argument(0), Node::parse("2", Place::Argument(0)).unwrap());
        assert_eq!(table.find("database.config.c.d").unwrap().node.content, Content::Integer(2));
        assert!(table.take("database.config.a.b").is_some());
        assert!(table.find("database.config.a.b").is_none());
        assert!(table.take("load.clients").is_none() && table.get("load").is_none());
    }

    #[test]
    fn all_syntax_errors_are_noted_with_their_lines() {
        let mut errors = Errors::default();
        Table::parse("a = \nb = 1\nc = [1, 2\nd = 1 2\n", &mut errors);
        let lines = errors.into_result(&Default::default()).unwrap_err().lines();
        assert!(lines.len() >= 2, "{lines:?}");
        assert!(lines[0].starts_with(":1: not valid TOML"), "{lines:?}");
    }

    #[test]
    fn numbers_beyond_64_bits_and_dates_are_kept_as_they_were_written() {
        let table = parse("a = 99999999999999999999\nb = 1979-05-27\nc = inf\n");
        assert_eq!(table.entries[0].node.to_string(), "99999999999999999999");
        assert_eq!(table.entries[1].node.to_string(), "1979-05-27");
        assert_eq!(table.entries[2].node.to_json(), None);
    }
}
