//! Describes the results of a durability test in words: names of cases, and a sentence for each kind of failure.
//!
//! Main functions: [`label`] and [`sentences`]. Invariant: a sentence gives the certainty of what was not observed.

use serde_json::Value;

use super::factors::{in_short, setting_word, show_level};
use crate::finding::{DurabilityCase, DurabilityTest};
use crate::trial::{FaultKind, Levels};
use crate::units::{show_number, show_seconds};

/// What is to be known of a test whose disk was synced before records were written.
pub const SYNC_FIRST: &str =
    "everything on the disk was synced before records were written, as behind a server that has run for longer";

/// The most characters of a database's message.
const SAYS_MOST: usize = 240;

/// Returns the short name of a case: `star, synchronous_commit = on`.
pub fn label(levels: &Levels) -> String {
    if levels.is_empty() {
        return "as set".to_owned();
    }
    let is_name = |setting: &str| matches!(setting_word(setting), "name" | "type");
    let short = |(setting, level): (&String, &Value)| match setting_word(setting) {
        word if !is_name(setting) => format!("{word} = {}", show_level(level)),
        _ => show_level(level),
    };
    let (names, others): (Vec<_>, Vec<_>) = levels.iter().partition(|(setting, _)| is_name(setting));
    names.into_iter().chain(others).map(short).collect::<Vec<_>>().join(", ")
}

/// Returns the name of a kind of failure, in the plural.
pub fn word_of(fault: FaultKind) -> &'static str {
    match fault {
        FaultKind::Power => "cuts of the power",
        FaultKind::Kill => "kills",
        FaultKind::Eio => "failures of the disk",
        FaultKind::Enospc => "times of a full disk",
        FaultKind::Bits => "restarts with flipped bits",
        FaultKind::Store => "failures of the store",
    }
}

/// Returns the sentences on each case, by its name.
pub fn sentences(test: &DurabilityTest) -> Vec<(String, Vec<String>)> {
    test.by_case().into_iter().map(|(levels, kinds)| (label(levels), of_case(&kinds))).collect()
}

fn of_case(kinds: &[&DurabilityCase]) -> Vec<String> {
    let mut lines: Vec<String> = kinds.iter().map(|kind| sentence(kind)).collect();
    let not_judged: u64 = kinds.iter().map(|kind| kind.not_judged).sum();
    if not_judged > 0 {
        let count = show_number(not_judged as f64);
        lines.push(format!("{count} failures could not be judged, and are not counted"));
    }
    let is_harmed_by_cuts = kinds.iter().any(|kind| kind.fault == FaultKind::Power && kind.harmed() > 0);
    let survives = match kinds.first().map_or("unknown", |kind| kind.level.as_str()) {
        "crash" => "what was acknowledged survives killed processes, and not every cut of the power",
        "none" => "what was acknowledged does not survive killed processes",
        "unknown" if is_harmed_by_cuts => "what was acknowledged does not survive every cut of the power",
        // The first sentence already says that nothing was lost.
        _ => return lines,
    };
    let is_promised = kinds.iter().any(|kind| kind.breaks_promise);
    lines.push(format!("{survives}{}", if is_promised { ", although its settings promise it" } else { "" }));
    lines
}

/// Returns a sentence on the result of one kind of failure.
fn sentence(case: &DurabilityCase) -> String {
    let (cuts, what) = (show_number(case.cuts as f64), word_of(case.fault));
    if case.harmed() == 0 {
        if case.telling() == 0 {
            return format!("{cuts} {what} found nothing that could have been lost, and show nothing");
        }
        let bound = format!("at 95 %, at most {:.1} % of such failures do harm", 100.0 * case.loss_share_upper95);
        let idle = match case.cuts - case.telling() {
            0 => String::new(),
            idle => format!(" ({} found everything synced, and are not counted)", show_number(idle as f64)),
        };
        return format!("0 of {} {what} lost anything{idle}; {bound}", show_number(case.telling() as f64));
    }
    let mut found = Vec::new();
    if case.cuts_with_loss > 0 {
        let harmed = show_number(case.cuts_with_loss as f64);
        found.push(format!("{harmed} of {cuts} {what} did harm: {}", harm(case).join("; ")));
    }
    if case.did_not_start > 0 {
        let silent = show_number(case.did_not_start as f64);
        found.push(format!("behind {silent} of {cuts} {what} the {} did not start", case.subject()));
    }
    let says = case.found.iter().find_map(|failure| failure.says.as_ref());
    let says = says.map(|says| format!(" (it says: {})", in_short(&one_line(says), SAYS_MOST)));
    format!("{}{}", found.join("; "), says.unwrap_or_default())
}

/// Returns phrases for what is gone, and what is wrong.
fn harm(case: &DurabilityCase) -> Vec<String> {
    let mut parts = Vec::new();
    if case.lost > 0 {
        parts.push(format!(
            "{} of {} acknowledged writes are gone, the oldest of them acknowledged {} before",
            show_number(case.lost as f64),
            show_number(case.acknowledged as f64),
            show_seconds(case.longest_lost_s)
        ));
    }
    let wrong = wrong(case);
    parts.extend(wrong.into_iter().map(|(count, what)| format!("{what}: {}", show_number(count as f64))));
    parts
}

/// Returns the kinds of errors with their numbers; kinds that did not occur are left out.
pub fn wrong(case: &DurabilityCase) -> Vec<(u64, &'static str)> {
    let mut counts = vec![
        (case.unreadable, "records that the database refuses to read"),
        (case.changed, "records with content that nobody has written"),
        (case.half_transactions, "transactions half there"),
        (case.reordered, "operations gone before later ones of the same connection"),
        (case.duplicated, "records that should not be there"),
        (case.out_of_order, "records behind later ones of their source"),
    ];
    counts.retain(|(count, _)| *count > 0);
    counts
}

/// Joins the lines of a text into one.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_called_by_its_database_first() {
        let levels = |pairs: &[(&str, &str)]| -> Levels {
            pairs.iter().map(|(setting, level)| ((*setting).to_owned(), Value::from(*level))).collect()
        };
        assert_eq!(label(&levels(&[])), "as set");
        let all = [("database.durability", "none"), ("database.name", "redis"), ("layout.name", "wide")];
        assert_eq!(label(&levels(&all)), "redis, wide, durability = none");
        assert_eq!(label(&levels(&[("database.config.synchronous", "full")])), "synchronous = full");
    }
}
