//! The report as text for a terminal: what is invalid first, then a table with a line per case, then what it means.
//!
//! Main function: [`terminal`]. Invariant: no line is wider than [`WIDTH`] columns unless a single word is, and the text
//! depends on the findings and the study alone.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use crate::finding::{CaseFinding, Estimate, Findings, TimeFinding};
use crate::report::factors::{short_setting, show_level, show_levels};
use crate::study::Study;
use crate::units::{show_number, show_seconds};

/// Columns of the terminal that is written for.
pub const WIDTH: u16 = 120;

/// The whole report. It ends with a line break.
pub fn terminal(findings: &Findings, study: &Study) -> String {
    let mut out = format!("{}: {}\n", findings.study, findings.question);
    if findings.rehearsal {
        out.push_str("REHEARSAL: sizes and repeats were shrunk; figures are not to be quoted.\n");
    }
    out.push('\n');
    push_invalid(&mut out, findings);
    if findings.cases.is_empty() {
        out.push_str("No trial has been finished yet.\n");
        return out;
    }
    out.push_str(&cases(findings, study));
    out.push('\n');
    for verdict in &findings.verdicts {
        push_wrapped(&mut out, "- ", verdict);
    }
    if !findings.claims.is_empty() {
        out.push_str("\nClaims\n");
    }
    for claim in &findings.claims {
        let high = claim.between.1.map_or("any".to_owned(), |high| high.to_string());
        push_wrapped(&mut out, &format!("  {:<13}", claim.verdict), &claim.says);
        push_wrapped(&mut out, &" ".repeat(15), &format!("claimed {} to {high}: {}", claim.between.0, claim.evidence));
    }
    let notes: Vec<&String> = findings.notes.iter().filter(|note| !note.starts_with("rehearsal")).collect();
    if !notes.is_empty() {
        out.push_str("\nNotes\n");
    }
    for note in notes {
        push_wrapped(&mut out, "- ", note);
    }
    out
}

/// Invalid trials with their reasons, and the messages of failed operations.
fn push_invalid(out: &mut String, findings: &Findings) {
    let invalid: u64 = findings.cases.iter().map(|case| case.trials - case.valid_trials).sum();
    let all: u64 = findings.cases.iter().map(|case| case.trials).sum();
    if invalid > 0 {
        out.push_str(&format!("INVALID: {invalid} of {all} trials; their figures are left out of everything below.\n"));
    }
    for (reason, cases) in grouped(findings, |case| case.invalid_because.clone()) {
        push_wrapped(out, "  ", &format!("{reason}: {}", cases.join("; ")));
    }
    let failures = |case: &CaseFinding| case.errors.keys().cloned().collect();
    for (message, cases) in grouped(findings, failures) {
        let count: u64 = findings.cases.iter().filter_map(|case| case.errors.get(&message)).sum();
        let count = show_number(count as f64);
        push_wrapped(out, "  ", &format!("{count} operations failed with \"{message}\": {}", cases.join("; ")));
    }
    if invalid > 0 || findings.cases.iter().any(|case| !case.errors.is_empty()) {
        out.push('\n');
    }
}

/// Texts of cases, equal ones together with the cases that they come from.
pub fn grouped(findings: &Findings, texts: impl Fn(&CaseFinding) -> Vec<String>) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for case in &findings.cases {
        for text in texts(case) {
            let levels = show_levels(&case.levels);
            match groups.iter_mut().find(|(known, _)| *known == text) {
                Some((_, cases)) => cases.push(levels),
                None => groups.push((text, vec![levels])),
            }
        }
    }
    groups
}

fn cases(findings: &Findings, study: &Study) -> String {
    let settings: Vec<&str> = study
        .factors
        .iter()
        .map(|factor| factor.setting.as_str())
        .filter(|setting| findings.cases.iter().any(|case| case.levels.contains_key(*setting)))
        .collect();
    let several = findings.cases.iter().any(|case| case.operations.len() > 1);
    let batched = findings.cases.iter().any(|case| case.records_per_s.mean != case.throughput_per_s.mean);
    let open = findings.cases.iter().any(|case| case.offered_per_s.is_some());
    let mut heading: Vec<String> = settings.iter().map(|setting| short_setting(setting)).collect();
    let texts = heading.len();
    if open {
        heading.push("offered\n/s".to_owned());
    }
    heading.push("operations/s\n[95 % interval]".to_owned());
    if batched {
        heading.push("records/s\n[95 % interval]".to_owned());
    }
    heading.push("n".to_owned());
    heading.push("settled".to_owned());
    if several {
        heading.push("operation".to_owned());
    }
    heading.extend(["p50", "p90", "p99"].map(|quantile| format!("response\n{quantile}")));
    heading.extend(["server", "client"].map(|side| format!("{side}\nCPUs")));
    let columns = heading.len();
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table
        .load_style(TableStyle::new().header_separator(line).bottom_border(line))
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(WIDTH).set_header(heading);
    for case in &findings.cases {
        let levels = settings.iter().map(|setting| case.levels.get(*setting).map(show_level).unwrap_or_default());
        let mut first: Vec<String> = levels.collect();
        if open {
            first.push(case.offered_per_s.map_or("-".to_owned(), show_number));
        }
        first.push(show_interval(&case.throughput_per_s));
        if batched {
            first.push(show_interval(&case.records_per_s));
        }
        first.push(show_trials(case));
        first.push(if case.settled { "yes" } else { "no" }.to_owned());
        push_rows(&mut table, first, case, several);
    }
    for place in texts..columns {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
}

/// One row per kind of operation; the case's own figures stand in the first.
fn push_rows(table: &mut Table, first: Vec<String>, case: &CaseFinding, several: bool) {
    let cpu = |figure: Option<f64>| figure.map_or("-".to_owned(), |cpus| format!("{cpus:.2}"));
    let used = [
        cpu(case.resources.as_ref().map(|resources| resources.server_cpu)),
        cpu(case.resources.as_ref().map(|resources| resources.client_cpu)),
    ];
    let none = TimeFinding::default();
    let mut kinds: Vec<(&str, &TimeFinding)> =
        case.operations.iter().map(|(kind, operation)| (kind.as_str(), &operation.response_time_s)).collect();
    if kinds.is_empty() {
        kinds.push(("-", &none));
    }
    for (place, (kind, times)) in kinds.into_iter().enumerate() {
        let mut row = if place == 0 { first.clone() } else { vec![String::new(); first.len()] };
        if several {
            row.push(kind.to_owned());
        }
        let show = |time: Option<f64>| time.map_or("-".to_owned(), show_seconds);
        row.extend([show(times.p50), show(times.p90), show(times.p99)]);
        row.extend(if place == 0 { used.clone() } else { [String::new(), String::new()] });
        table.add_row(row);
    }
}

/// `12`, or `10 of 12` when some are invalid.
fn show_trials(case: &CaseFinding) -> String {
    if case.valid_trials == case.trials {
        case.trials.to_string()
    } else {
        format!("{} of {}", case.valid_trials, case.trials)
    }
}

/// `7,512 [7,301, 7,723]`; `-` without trials.
fn show_interval(estimate: &Estimate) -> String {
    match (estimate.mean, estimate.ci95) {
        (Some(mean), Some([low, high])) => {
            format!("{} [{}, {}]", show_number(mean), show_number(low), show_number(high))
        }
        (Some(mean), None) => show_number(mean),
        (None, _) => "-".to_owned(),
    }
}

/// Appends text broken at spaces; lines after the first are indented by as much as `lead` is wide.
fn push_wrapped(out: &mut String, lead: &str, text: &str) {
    let indent = " ".repeat(lead.chars().count());
    let mut line = lead.to_owned();
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > usize::from(WIDTH) {
            out.push_str(line.trim_end());
            out.push('\n');
            line = indent.clone();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_are_broken_at_spaces_and_indented() {
        let mut out = String::new();
        push_wrapped(&mut out, "- ", &"word ".repeat(60));
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() <= usize::from(WIDTH)));
        assert!(lines[0].starts_with("- word") && lines[1].starts_with("  word"));
    }
}
