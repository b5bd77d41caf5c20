//! Reads the top of a study file, `[repeat]` and `[goal]`.
//!
//! Main functions: [`read_header`], [`read_repeat`], [`read_goal`]. Invariant: a rule that was read has `least <=
//! most`.

use super::{Goal, Repeat, RepeatRule};
use crate::fault::fault;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting, Span};

/// `name`: the name of a study.
pub const NAME: Setting = Setting::new(
    "name",
    Kind::Text,
    Absent::Means("that of its file"),
    "A short name with which run directories begin: 1 to 60 letters, digits and the signs - _ .",
);

/// `question`: what is to be found out.
pub const QUESTION: Setting =
    Setting::new("question", Kind::Text, Absent::Text(""), "The question that the study answers.");

/// `source`: where a study comes from.
pub const SOURCE: Setting = Setting::new(
    "source",
    Kind::Text,
    Absent::Text(""),
    "Where the study comes from, such as a paper and its section.",
);

/// `where_possible`: whether cases that cannot be carried out here are left out.
pub const WHERE_POSSIBLE: Setting = Setting::new(
    "where_possible",
    Kind::Truth,
    Absent::Truth(false),
    "Whether cases that cannot be carried out here are left out, and reported with the reason: the database cannot do what they need, or its server is not installed. Otherwise they are errors.",
);

/// The settings of `[repeat]`.
pub static REPEAT: Part = Part {
    name: "repeat",
    help: "How often each case is repeated.",
    settings: &[
        Setting::new(
            "rule",
            Kind::OneOf(&["interval", "standard-error", "fixed"]),
            Absent::Text("interval"),
            "When a case has enough trials: when the half-width of the 95 % interval is at most `within` of the mean (`interval`), when the standard error is below `within` of the mean (`standard-error`, the Oulu rule), or after `least` trials (`fixed`).",
        ),
        Setting::new(
            "within",
            Kind::Number(1e-6, 1.0),
            Absent::Number(0.05),
            "The bound of the rule, relative to the mean.",
        ),
        Setting::new("least", Kind::Whole(1, 10_000), Absent::Whole(5), "Minimum number of trials of a case."),
        Setting::new(
            "most",
            Kind::Whole(1, 10_000),
            Absent::Means("30, or `least` if that is more; `least` with `rule = \"fixed\"`"),
            "Maximum number of trials of a case.",
        ),
        Setting::new(
            "discard_first",
            Kind::Truth,
            Absent::Truth(false),
            "Whether the first trial of each case is left out of all analyses.",
        ),
    ],
};

/// The settings of `[goal]`.
pub static GOAL: Part = Part {
    name: "goal",
    help: "The load line to search for: the highest arrival rate at which a quantile of response time stays below a bound.",
    settings: &[
        Setting::new("quantile", Kind::Number(0.001, 0.9999), Absent::Number(0.9), "The quantile of response time."),
        Setting::new("below", Kind::Duration(Span::AboveZero), Absent::Refused, "Its bound."),
        Setting::new(
            "within",
            Kind::Number(1e-4, 1.0),
            Absent::Number(0.05),
            "Maximum distance between the ends of the answer, relative to it.",
        ),
    ],
};

/// The settings at the top of a study file.
pub struct Header {
    /// Short name, used for run directories.
    pub name: String,
    /// The question that the study answers; empty if the file does not say.
    pub question: String,
    /// Where the study comes from; empty if it is the author's own.
    pub source: String,
    /// Whether cases that cannot be carried out here are left out.
    pub where_possible: bool,
}

/// Reads the top of the file. A study without a name gets the name of its file.
pub fn read_header(top: &Section, file: &str, errors: &mut Errors) -> Header {
    let stem = std::path::Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let is_sign = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let default = stem.unwrap_or_default().chars().map(|c| if is_sign(c) { c } else { '-' }).collect::<String>();
    let name = top.text("name", errors).unwrap_or(&default).to_owned();
    let is_name = (1..=60).contains(&name.len()) && name.chars().all(is_sign) && !name.starts_with(['.', '-']);
    if let (false, Some(entry)) = (is_name, top.get("name")) {
        let must = "it must be 1 to 60 letters, digits and the signs - _ . and begin with a letter, a digit or _";
        errors.push(entry.node.place, fault!("name is {}", entry.node; "{must}"));
    }
    Header {
        name: if is_name { name } else { "study".to_owned() },
        question: top.text("question", errors).unwrap_or_default().to_owned(),
        source: top.text("source", errors).unwrap_or_default().to_owned(),
        where_possible: top.read("where_possible", errors),
    }
}

/// Reads `[repeat]`.
pub fn read_repeat(root: &Table, errors: &mut Errors) -> Repeat {
    let section = Section::open(root, &REPEAT, errors);
    let rule = match section.find("rule", errors) {
        Some("standard-error") => RepeatRule::StandardError,
        Some("fixed") => RepeatRule::Fixed,
        _ => RepeatRule::Interval,
    };
    let least = section.read("least", errors);
    let written_most: Option<u32> = section.read("most", errors);
    if rule != RepeatRule::Fixed && least < 2 {
        let place = section.get("least").map_or(section.place, |entry| entry.node.place);
        let remedy = "the rule needs the spread of at least 2 trials; raise it, or set rule = \"fixed\"";
        errors.push(place, fault!("repeat.least is {least}"; "{remedy}"));
    }
    if let (Some(most), true) = (written_most, rule != RepeatRule::Fixed)
        && most < least
    {
        let entries = ["least", "most"].into_iter().filter_map(|key| section.get(key));
        let place = entries.map(|entry| entry.node.place).max().unwrap_or(section.place);
        errors.push(place, fault!("repeat.most is {most} and repeat.least is {least}"; "raise most, or lower least"));
    }
    let most = match rule {
        RepeatRule::Fixed => least,
        RepeatRule::Interval | RepeatRule::StandardError => written_most.unwrap_or(30).max(least),
    };
    let within = section.read("within", errors);
    Repeat { rule, within, least, most, discard_first: section.read("discard_first", errors) }
}

/// Reads `[goal]`; returns `None` if there is no such table.
pub fn read_goal(root: &Table, errors: &mut Errors) -> Option<Goal> {
    let table = root.get("goal")?;
    let section = Section::open(root, &GOAL, errors);
    if section.get("below").is_none() {
        errors.push(table.place, fault!("goal.below is missing"; "write the bound, as in below = \"100ms\""));
    }
    Some(Goal {
        quantile: section.read("quantile", errors),
        below_s: section.find("below", errors).unwrap_or(0.1),
        within: section.read("within", errors),
    })
}
