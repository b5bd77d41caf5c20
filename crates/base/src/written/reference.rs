//! The reference page of a file's settings, generated from their tables.
//!
//! Main functions: [`chapter`], and [`described`] for callers that need single settings. Invariant: every setting has a line, and each line contains only
//! what the setting's row says.

use super::section::show_bound;
use super::setting::{Absent, Kind, Part, Setting, Span};
use crate::units::{show_bit_rate, show_bytes, show_number, show_seconds};

/// Returns the chapter of a file with the given top: a section with a table of settings for each of its tables.
pub fn chapter(title: &str, top: &'static Part) -> String {
    let mut text = format!("## {title}\n\n{}\n", top.help);
    for part in top.all() {
        text += &section(part, top);
    }
    text
}

fn section(part: &'static Part, top: &'static Part) -> String {
    let mut text = String::new();
    if !std::ptr::eq(part, top) {
        text += &format!("\n### {}\n\n{}\n", heading(part, top), part.help);
    }
    let any_factor = part.settings.iter().any(|setting| setting.factor.is_some());
    text += match any_factor {
        true => "\n| setting | value | default | factor | what it says |\n|---|---|---|---|---|\n",
        false => "\n| setting | value | default | what it says |\n|---|---|---|---|\n",
    };
    for setting in part.settings {
        let Described { key, value, default, can_be_factor, says, .. } = Described::of(part, setting);
        let factor = match (any_factor, can_be_factor) {
            (false, _) => "",
            (true, true) => " yes |",
            (true, false) => " no |",
        };
        text += &format!("| `{key}` | {} | {default} |{factor} {} |\n", cell(&value), cell(&says));
    }
    text
}

/// The description of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its table, as written in a file: `[load]`; empty for the top of the file.
    pub table: String,
    /// Key of the setting.
    pub key: &'static str,
    /// Dotted name of the setting.
    pub path: String,
    /// The kind of value, in words.
    pub value: String,
    /// The default where the setting is not written.
    pub default: String,
    /// Whether the setting can be a factor.
    pub can_be_factor: bool,
    /// Description of the setting, and where it applies.
    pub says: String,
}

impl Described {
    fn of(part: &'static Part, setting: &'static Setting) -> Self {
        let only = if setting.only.is_empty() { String::new() } else { format!(" Only for {}.", setting.only) };
        Described {
            table: String::new(),
            key: setting.key,
            path: part.path(setting.key),
            value: value(setting.kind),
            default: default(setting),
            can_be_factor: setting.factor.is_some(),
            says: format!("{}{only}", setting.help),
        }
    }
}

/// Returns all settings of a file with the given top, in the order of the file, with the description of each table.
pub fn described(top: &'static Part) -> Vec<(String, &'static str, Vec<Described>)> {
    let of_part = |part: &'static Part| {
        let table = if std::ptr::eq(part, top) { String::new() } else { heading(part, top).replace('`', "") };
        let with_table = |setting| Described { table: table.clone(), ..Described::of(part, setting) };
        (part.name.to_owned(), part.help, part.settings.iter().map(with_table).collect())
    };
    top.all().into_iter().map(of_part).collect()
}

/// Returns the heading of a table: `[load]`, `[[claims]]`, or the name of a table inside a value.
fn heading(part: &'static Part, top: &'static Part) -> String {
    let holder = top.all().into_iter().flat_map(|above| above.settings).find(|setting| match setting.kind {
        Kind::Part(below) | Kind::Parts(below) => std::ptr::eq(below, part),
        _ => false,
    });
    match holder.map(|setting| setting.kind) {
        Some(Kind::Parts(_)) if !part.name.contains('.') => format!("`[[{}]]`", part.name),
        Some(Kind::Parts(_)) => format!("`{}`, each", part.name),
        _ => format!("`[{}]`", part.name),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn default(setting: &Setting) -> String {
    match setting.absent {
        Absent::Text("") => "nothing".to_owned(),
        Absent::Text(text) => format!("`\"{text}\"`"),
        Absent::Whole(number) => format!("`{number}`"),
        Absent::Number(number) => format!("`{number}`"),
        Absent::Truth(truth) => format!("`{truth}`"),
        Absent::Means(words) => words.to_owned(),
        Absent::Refused => "must be given".to_owned(),
    }
}

/// Describes the value of a setting in words.
fn value(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::OneOf(choices) => one_of(choices),
        Kind::Listed(choices) | Kind::Named(choices) => one_of(&choices()),
        Kind::Whole(least, most) => format!("whole number from {least} to {}", show_number(most as f64)),
        Kind::WholeOr(least, most, words) => {
            format!("whole number from {least} to {}{}", show_number(most as f64), or(words))
        }
        Kind::Number(least, most) => format!("number from {} to {}", show_bound(least), show_bound(most)),
        Kind::Truth => "`true` or `false`".to_owned(),
        Kind::Duration(span) => duration(span),
        Kind::Size(least, most, words) => {
            format!("size from {} to {}{}", show_bytes(least as f64), show_bytes(most as f64), or(words))
        }
        Kind::Bytes(least, most) => {
            format!("size from {} to {}, or a number of bytes", show_bytes(least as f64), show_bytes(most as f64))
        }
        Kind::BitRate(least, most, words) => {
            format!("rate from {} to {}{}", show_bit_rate(least), show_bit_rate(most), or(words))
        }
        Kind::Texts => "list of texts".to_owned(),
        Kind::Part(part) => format!("table, see `{}` below", part.name),
        Kind::Parts(part) => format!("list of tables, see `{}` below", part.name),
        Kind::Own(form) => form.says.to_owned(),
    }
}

fn duration(span: Span) -> String {
    match span {
        Span::Any => "duration".to_owned(),
        Span::AboveZero => "duration above zero".to_owned(),
        Span::AtMost(most) => format!("duration of at most {}", show_seconds(most)),
        Span::Within(least, most) => format!("duration from {} to {}", show_seconds(least), show_seconds(most)),
    }
}

fn one_of(choices: &[&str]) -> String {
    choices.iter().map(|choice| format!("`\"{choice}\"`")).collect::<Vec<_>>().join(", ")
}

fn or(words: &[&str]) -> String {
    words.iter().map(|word| format!(", or `\"{word}\"`")).collect()
}
