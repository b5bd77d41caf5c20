//! A study before it is checked: the tree of the file, the factors taken out of it, and `--set` applied to both.
//!
//! Main type: [`Unchecked`]. Invariant: a setting is either a factor or in the tree's base, and `--set` takes precedence.

use super::load::LENGTHS;
use super::reading::is_scalar;
use super::table::{STUDY, factors, is_factor, sections};
use crate::fault::{Fault, fault};
use crate::written::closest;
use crate::written::place::{Errors, Place};
use crate::written::tree::{Content, Node, Table};

/// The tree of a study file and its factors.
#[derive(Debug, Clone)]
pub struct Unchecked {
    /// The file without `[factors]`.
    pub root: Table,
    /// The factors, in the order of the file.
    pub factors: Vec<UncheckedFactor>,
}

/// A factor with the places of its levels.
#[derive(Debug, Clone)]
pub struct UncheckedFactor {
    /// Dotted name of the setting.
    pub setting: String,
    /// Place where it was written.
    pub place: Place,
    /// The levels: scalars, all different, at least one.
    pub levels: Vec<Node>,
}

impl Unchecked {
    /// Takes the factors out of a tree.
    pub fn new(mut root: Table, errors: &mut Errors) -> Self {
        let mut unchecked = Unchecked { root: Table::default(), factors: Vec::new() };
        if let Some(entry) = root.remove("factors") {
            match &entry.node.content {
                Content::Table(table) => unchecked.add_factors("", table, errors),
                _ => {
                    let must = "it must be a table [factors] of dotted settings and lists of levels";
                    errors.push(entry.place, fault!("factors is {}", entry.node; "{must}"));
                }
            }
        }
        unchecked.root = root;
        unchecked
    }

    /// Adds the factors of a table; unquoted dots in settings make tables, which are joined again.
    fn add_factors(&mut self, prefix: &str, table: &Table, errors: &mut Errors) {
        for entry in &table.entries {
            let setting = format!("{prefix}{}", entry.key);
            match &entry.node.content {
                Content::Table(inner) => self.add_factors(&format!("{setting}."), inner, errors),
                _ => self.add_factor(setting, entry.place, &entry.node, errors),
            }
        }
    }

    /// Adds a factor; replaces one with the same setting.
    fn add_factor(&mut self, setting: String, place: Place, node: &Node, errors: &mut Errors) {
        if let Err(sentence) = check_setting(&setting) {
            errors.push(place, sentence);
            return;
        }
        let Content::List(items) = &node.content else {
            errors.push(place, fault!("factor {setting} is {node}"; "it must be a list of levels, as in [1, 2, 4]"));
            return;
        };
        if items.is_empty() {
            errors.push(place, fault!("factor {setting} has no levels"; "list at least one"));
            return;
        }
        let mut levels: Vec<Node> = Vec::with_capacity(items.len());
        for item in items {
            if !is_scalar(item) {
                let must = "it must be text, a finite number, or true or false";
                errors.push(item.place, fault!("a level of {setting} is {item}"; "{must}"));
            } else if levels.iter().any(|level| level.content == item.content) {
                errors.push(item.place, fault!("level {item} of {setting} occurs twice"; "remove one"));
            } else {
                levels.push(item.clone());
            }
        }
        if levels.is_empty() {
            return;
        }
        let factor = UncheckedFactor { setting, place, levels };
        match self.factors.iter_mut().find(|existing| existing.setting == factor.setting) {
            Some(existing) => *existing = factor,
            None => self.factors.push(factor),
        }
    }

    /// Applies one `key=value`, written at `place`.
    pub fn set(&mut self, assignment: &str, place: Place, errors: &mut Errors) {
        let Some((key, value)) = assignment.split_once('=') else {
            errors.push(place, fault!("there is no \"=\""; "write --set key=value, as in --set load.clients=4"));
            return;
        };
        let (key, value) = (key.trim(), value.trim());
        let key = key.strip_prefix("factors.").unwrap_or(key);
        if key == "factors" {
            errors.push(place, "factors are set one by one, as in --set load.clients=[1,2,4]");
            return;
        }
        if key.is_empty() {
            errors.push(
                place,
                fault!("there is no key before \"=\""; "write --set key=value, as in --set load.clients=4"),
            );
            return;
        }
        if value.is_empty() {
            self.root.take(key);
            self.factors.retain(|factor| factor.setting != key);
            return;
        }
        let Some(node) = read_value(value, place) else {
            errors.push(place, fault!("{value} is not a value"; "write a number, a word, \"text\" or a list [1, 2]"));
            return;
        };
        let is_known = STUDY.find_path(key).is_some();
        let is_setting = key.split_once('.').is_some_and(|(section, _)| sections().any(|known| known == section));
        if is_setting
            && !is_known
            && let Err(sentence) = check_setting(key)
        {
            errors.push(place, sentence);
            return;
        }
        if LENGTHS.contains(&key) {
            for other in LENGTHS.iter().filter(|other| **other != key) {
                self.root.take(other);
            }
        }
        if check_setting(key).is_ok() && matches!(node.content, Content::List(_)) {
            self.root.take(key);
            self.add_factor(key.to_owned(), place, &node, errors);
        } else {
            self.factors.retain(|factor| factor.setting != key);
            self.root.put(key, place, node);
        }
    }
}

/// Checks that a dotted setting can be varied.
fn check_setting(setting: &str) -> Result<(), Fault> {
    if is_factor(setting) {
        return Ok(());
    }
    let section = setting.split('.').next().unwrap_or_default();
    let names = || factors().iter().map(String::as_str);
    let remedy = match closest(setting, names()) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None if sections().any(|known| known == section) => {
            let same = names().filter(|known| known.split('.').next() == Some(section));
            format!("known: {}", same.collect::<Vec<_>>().join(", "))
        }
        None => format!("settings begin with {}.", sections().collect::<Vec<_>>().join("., ")),
    };
    Err(fault!("unknown setting \"{setting}\""; "{remedy}"))
}

/// Reads a value as TOML, and bare words as text, also those in a list.
fn read_value(text: &str, place: Place) -> Option<Node> {
    if let Some(node) = Node::parse(text, place) {
        return Some(node);
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let items: Option<Vec<Node>> = inner
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(|item| read_value(item, place))
            .collect();
        return Some(Node { place, content: Content::List(items?) });
    }
    let is_bare = !text.contains(['"', '\'', '[', ']', '{', '}']) && !text.chars().any(char::is_control);
    is_bare.then(|| Node { place, content: Content::Text(text.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unchecked(text: &str, sets: &[&str]) -> (Unchecked, Vec<String>) {
        let mut errors = Errors::default();
        let root = Table::parse(text, &mut errors);
        let mut unchecked = Unchecked::new(root, &mut errors);
        for (number, set) in sets.iter().enumerate() {
            unchecked.set(set, Place::Argument(number), &mut errors);
        }
        let lines = errors.into_result(&Default::default()).map_or_else(|errors| errors.lines(), |()| Vec::new());
        (unchecked, lines)
    }

    fn level_texts(unchecked: &Unchecked) -> Vec<String> {
        let show = |factor: &UncheckedFactor| {
            let levels: Vec<_> = factor.levels.iter().map(Node::to_string).collect();
            format!("{}: {}", factor.setting, levels.join(" "))
        };
        unchecked.factors.iter().map(show).collect()
    }

    #[test]
    fn factors_keep_the_order_of_the_file_with_and_without_quotes() {
        let text = "[factors]\n\"load.clients\" = [4, 2]\nlayout.name = [\"star\"]\n\"database.config.a.b\" = [true]\n";
        let (unchecked, errors) = unchecked(text, &[]);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(
            level_texts(&unchecked),
            ["load.clients: 4 2", "layout.name: \"star\"", "database.config.a.b: true"]
        );
    }

    #[test]
    fn set_replaces_base_values_factors_and_levels() {
        let text =
            "[load]\nduration = \"1s\"\n[factors]\n\"load.clients\" = [1, 2]\n\"layout.name\" = [\"wide\", \"star\"]\n";
        let sets = ["load.clients=8", "layout.name=[star, star-hot]", "workload.batch=[1, 10]", "load.operations=100"];
        let (unchecked, errors) = unchecked(text, &sets);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(level_texts(&unchecked), ["layout.name: \"star\" \"star-hot\"", "workload.batch: 1 10"]);
        assert_eq!(unchecked.root.find("load.clients").unwrap().node.content, Content::Integer(8));
        assert!(unchecked.root.find("load.duration").is_none(), "one length takes the place of the other");
    }

    #[test]
    fn set_without_a_value_takes_a_setting_out() {
        let (unchecked, errors) = unchecked("[database]\nengine = \"innodb\"\n", &["database.engine="]);
        assert!(errors.is_empty() && unchecked.root.find("database.engine").is_none());
    }

    #[test]
    fn settings_that_cannot_be_varied_can_be_set() {
        let sets = ["load.trace=times.txt", "workload.explain=true", "record.runs=[[1, 2]]", "repeat.least=2"];
        let (unchecked, errors) = unchecked("", &sets);
        assert!(errors.is_empty(), "{errors:?}");
        assert!(
            unchecked.factors.is_empty()
                && sets.iter().all(|set| unchecked.root.find(set.split_once('=').unwrap().0).is_some())
        );
    }

    #[test]
    fn bare_words_are_text() {
        let text = |value| read_value(value, Place::Line(1)).map(|node| node.content);
        assert_eq!(text("mariadb"), Some(Content::Text("mariadb".to_owned())));
        assert_eq!(text("1s"), Some(Content::Text("1s".to_owned())));
        assert_eq!(text("true"), Some(Content::Boolean(true)));
        assert_eq!(text("[1, two"), None);
    }

    #[test]
    fn what_cannot_be_set_or_varied_is_said() {
        let (_, errors) = unchecked(
            "[factors]\n\"load.cleints\" = [1]\n\"load.rate\" = 5\n\"load.think\" = []\n\"load.loops\" = [1, 1]\n",
            &["clients", "load.clinets=3"],
        );
        assert_eq!(
            errors,
            [
                ":2: unknown setting \"load.cleints\"; did you mean \"load.clients\"?",
                ":3: factor load.rate is 5; it must be a list of levels, as in [1, 2, 4]",
                ":4: factor load.think has no levels; list at least one",
                ":5: level 1 of load.loops occurs twice; remove one",
                ": there is no \"=\"; write --set key=value, as in --set load.clients=4",
                ": unknown setting \"load.clinets\"; did you mean \"load.clients\"?",
            ]
        );
    }
}
