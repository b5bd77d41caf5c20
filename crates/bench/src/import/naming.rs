//! Levels of a case that the user gives: `--level layout.name=json` for all files, and `--pattern
//! '{layout.name}-{*}.txt'`, which reads them from the files' names.
//!
//! Main type: [`Naming`]. Invariant: a level names a setting that a trial has, and its value has that setting's type.

use serde_json::Value;

use super::source::{ImportError, SourceFile, figure};
use crate::trial::Settings;
use crate::written::closest;

/// The settings that can be given, and whether they are numbers. `database.config.NAME` can be given too.
pub const SETTINGS: &[(&str, bool)] = &[
    ("database.name", false),
    ("database.engine", false),
    ("record.type", false),
    ("record.rows", true),
    ("layout.name", false),
    ("workload.name", false),
    ("workload.batch", true),
    ("load.clients", true),
    ("load.loops", true),
    ("load.rate", true),
    ("load.tolerated_failures", true),
];

/// A setting with its value.
pub type Level = (String, Value);

/// The levels that the user gives for the files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Naming {
    fixed: Vec<Level>,
    pattern: Option<Pattern>,
}

/// A pattern of file names.
#[derive(Debug, Clone, PartialEq)]
struct Pattern {
    text: String,
    tokens: Vec<Token>,
    /// Number of slashes, and so of directories, in the pattern.
    slashes: usize,
    /// Whether files are matched without their extension, because the pattern has none.
    stem: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Literal(char),
    /// Anything but a slash.
    Anything,
    /// The value of a setting.
    Setting(String),
}

impl Naming {
    /// Parses `--level` and `--pattern`.
    ///
    /// # Errors
    /// When one does not have the right form, or names a setting that does not exist.
    pub fn new(levels: &[String], pattern: Option<&str>) -> Result<Self, ImportError> {
        let mut fixed: Vec<Level> = Vec::new();
        for written in levels {
            let place = format!("--level {written}");
            let Some((setting, value)) = written.split_once('=') else {
                return Err(ImportError::new(place, "there is no =", "write --level layout.name=json"));
            };
            let level = level_of(setting.trim(), value.trim(), &place)?;
            if fixed.iter().any(|(known, _)| *known == level.0) {
                let remedy = "leave one out; levels that differ between files come from --pattern";
                return Err(ImportError::new(place, format!("{} is told twice", level.0), remedy));
            }
            fixed.push(level);
        }
        let pattern = pattern.map(Pattern::new).transpose()?;
        Ok(Naming { fixed, pattern })
    }

    /// Returns the levels of a file.
    ///
    /// # Errors
    /// When its name does not match the pattern.
    pub fn levels_of(&self, file: &SourceFile) -> Result<Vec<Level>, ImportError> {
        let mut levels = self.fixed.clone();
        let Some(pattern) = &self.pattern else { return Ok(levels) };
        for (setting, text) in pattern.matches(&file.name)? {
            let level = level_of(&setting, &text, &format!("{} (--pattern {})", file.name, pattern.text))?;
            match levels.iter().find(|(known, _)| *known == level.0) {
                Some((_, told)) if *told != level.1 => {
                    let found = format!("--level tells {setting} = {told}, the name {}", level.1);
                    return Err(ImportError::new(&file.name, found, "leave one of them out"));
                }
                Some(_) => {}
                None => levels.push(level),
            }
        }
        Ok(levels)
    }
}

fn level_of(setting: &str, text: &str, place: &str) -> Result<Level, ImportError> {
    let is_config = setting.strip_prefix("database.config.").is_some_and(|name| !name.is_empty());
    let known = SETTINGS.iter().find(|(known, _)| *known == setting);
    if known.is_none() && !is_config {
        let names = || SETTINGS.iter().map(|(name, _)| *name);
        let begun = format!("{setting}.");
        let meant = names().find(|name| name.starts_with(&begun)).or_else(|| closest(setting, names()));
        let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
        let remedy = format!(
            "{meant}Settings that can be told: {}; database.config.NAME for whatever else differs",
            names().collect::<Vec<_>>().join(", ")
        );
        return Err(ImportError::new(place, format!("there is no setting \"{setting}\""), remedy));
    }
    if text.is_empty() {
        return Err(ImportError::new(place, format!("{setting} has no value"), format!("write {setting}=VALUE")));
    }
    if !known.is_some_and(|(_, is_number)| *is_number) {
        return Ok((setting.to_owned(), text.into()));
    }
    let is_share = setting == "load.tolerated_failures";
    let value = figure(text).filter(|value| if is_share { *value < 1.0 } else { *value > 0.0 });
    let whole = !matches!(setting, "load.rate" | "load.tolerated_failures");
    match value {
        Some(value) if value.fract() == 0.0 && value < 9e15 => Ok((setting.to_owned(), (value as u64).into())),
        Some(value) if !whole => Ok((setting.to_owned(), value.into())),
        _ => {
            let must = if whole { "a whole number above 0" } else { "a number" };
            Err(ImportError::new(place, format!("{setting} is \"{text}\""), format!("it must be {must}")))
        }
    }
}

/// Applies a level to the settings.
pub fn apply(settings: &mut Settings, (setting, value): &Level) {
    let text = || value.as_str().unwrap_or_default().to_owned();
    let number = || value.as_u64().unwrap_or_default();
    match setting.as_str() {
        "database.name" => settings.database.name = text(),
        "database.engine" => settings.database.engine = Some(text()),
        "record.type" => settings.record.type_name = text(),
        "record.rows" => settings.record.rows = number(),
        "layout.name" => settings.layout.name = text(),
        "workload.name" => settings.workload.name = text(),
        "workload.batch" => settings.workload.batch = u32::try_from(number()).unwrap_or(u32::MAX),
        "load.clients" => settings.load.clients = u32::try_from(number()).unwrap_or(u32::MAX),
        "load.loops" => settings.load.loops = u32::try_from(number()).ok(),
        "load.rate" => settings.load.rate_per_s = value.as_f64(),
        "load.tolerated_failures" => settings.load.tolerated_failures = value.as_f64().unwrap_or_default(),
        other => {
            let name = other.strip_prefix("database.config.").unwrap_or(other);
            settings.database.config.insert(name.to_owned(), text());
        }
    }
}

impl Pattern {
    fn new(text: &str) -> Result<Self, ImportError> {
        let place = || format!("--pattern {text}");
        let mut tokens = Vec::new();
        let mut outside = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = &rest[first.len_utf8()..];
            match first {
                '*' => tokens.push(Token::Anything),
                '{' => {
                    let Some((inside, behind)) = rest.split_once('}') else {
                        return Err(ImportError::new(place(), "a { is not closed", "write {layout.name}"));
                    };
                    rest = behind;
                    tokens.push(if inside == "*" { Token::Anything } else { Token::Setting(inside.trim().to_owned()) });
                }
                other => {
                    outside.push(other);
                    tokens.push(Token::Literal(other));
                }
            }
        }
        let settings: Vec<&String> = tokens
            .iter()
            .filter_map(|token| if let Token::Setting(name) = token { Some(name) } else { None })
            .collect();
        if settings.is_empty() {
            let remedy = "write where a setting stands, as in '{layout.name}-{load.clients}-*.txt'";
            return Err(ImportError::new(place(), "it names no setting", remedy));
        }
        for setting in settings {
            level_of(setting, "1", &place())?;
        }
        let slashes = outside.matches('/').count();
        let stem = !outside.rsplit('/').next().unwrap_or_default().contains('.') && !text.ends_with('*');
        Ok(Pattern { text: text.to_owned(), tokens, slashes, stem })
    }

    /// Returns the settings of the pattern with their texts in the name.
    fn matches(&self, name: &str) -> Result<Vec<(String, String)>, ImportError> {
        let parts: Vec<&str> = name.split('/').collect();
        let mut tail = parts[parts.len().saturating_sub(self.slashes + 1)..].join("/");
        if self.stem
            && let Some((stem, extension)) = tail.rsplit_once('.')
            && !extension.contains('/')
        {
            tail = stem.to_owned();
        }
        let characters: Vec<char> = tail.chars().collect();
        let mut found = Vec::new();
        if matches_from(&self.tokens, &characters, &mut found) {
            found.reverse();
            return Ok(found);
        }
        let remedy = format!("give --pattern a form that all names have, or import \"{tail}\" on its own");
        Err(ImportError::new(name, format!("the name does not match --pattern '{}'", self.text), remedy))
    }
}

/// Returns whether the tokens match all characters; settings match as much as they can, numbers only digits and dots.
/// The matched texts are appended, the last first.
fn matches_from(tokens: &[Token], characters: &[char], found: &mut Vec<(String, String)>) -> bool {
    let Some((token, others)) = tokens.split_first() else { return characters.is_empty() };
    if let Token::Literal(literal) = token {
        return characters.first() == Some(literal) && matches_from(others, &characters[1..], found);
    }
    let is_number = |name: &String| SETTINGS.iter().any(|(known, is_number)| known == name && *is_number);
    let fits = |c: &char| match token {
        Token::Setting(name) if is_number(name) => c.is_ascii_digit() || *c == '.',
        _ => *c != '/',
    };
    let longest = characters.iter().take_while(|c| fits(c)).count();
    let least = usize::from(matches!(token, Token::Setting(_)));
    for taken in (least..=longest).rev() {
        if matches_from(others, &characters[taken..], found) {
            if let Token::Setting(name) = token {
                found.push((name.clone(), characters[..taken].iter().collect()));
            }
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(pattern: &str, name: &str) -> Result<Vec<Level>, ImportError> {
        let file = SourceFile { name: name.to_owned(), text: String::new() };
        Naming::new(&[], Some(pattern))?.levels_of(&file)
    }

    #[test]
    fn a_pattern_reads_levels_from_names_and_directories() {
        let found = levels("{layout.name}-{load.clients}-*.txt", "runs/star-hot-16-3.txt").unwrap();
        assert_eq!(found, [("layout.name".to_owned(), "star-hot".into()), ("load.clients".to_owned(), 16.into())]);
        let found = levels("{layout.name}/{workload.name}_*", "x/json/a_7.out").unwrap();
        assert_eq!(found, [("layout.name".to_owned(), "json".into()), ("workload.name".to_owned(), "a".into())]);
        let found = levels("{load.clients}", "dir.d/12.txt").unwrap();
        assert_eq!(found, [("load.clients".to_owned(), 12.into())]);
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_remedy() {
        let error = levels("{layout.name}-{load.clients}.txt", "star-many.txt").unwrap_err().to_string();
        assert!(error.starts_with("star-many.txt: the name does not match --pattern"), "{error}");
        let error = levels("{layout.nam}", "a").unwrap_err().to_string();
        assert!(error.contains("there is no setting \"layout.nam\"; did you mean layout.name?"), "{error}");
        for (level, says) in [
            ("layout.name", "there is no ="),
            ("load.clients=many", "it must be a whole number above 0"),
            ("load.clients=0", "it must be"),
            ("layout.name=", "has no value"),
        ] {
            let error = Naming::new(&[level.to_owned()], None).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--level {level}: ")) && error.contains(says), "{error}");
        }
        let twice = ["layout.name=a", "layout.name=b"].map(str::to_owned);
        assert!(Naming::new(&twice, None).unwrap_err().to_string().contains("told twice"));
    }

    #[test]
    fn levels_become_settings() {
        let mut settings = Settings::default();
        let told = ["layout.name=json", "load.clients=8", "load.rate=99.5", "database.config.index=btree"];
        let naming = Naming::new(&told.map(str::to_owned), None).unwrap();
        naming.fixed.iter().for_each(|level| apply(&mut settings, level));
        assert_eq!((settings.layout.name.as_str(), settings.load.clients), ("json", 8));
        assert_eq!((settings.load.rate_per_s, settings.database.config["index"].as_str()), (Some(99.5), "btree"));
    }
}
