//! Writes the report as text for a terminal: first invalid trials, then a table with a line per case, then its meaning.
//!
//! Main function: [`terminal`]. Invariant: no line is wider than the terminal, except for a single long word or the table of cases, whose
//! levels and figures are never broken over lines; the text depends only on the findings and the study.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};

use crate::finding::{CaseFinding, Estimate, Findings, Found, Note, ResourceFinding, TimeFinding};
use crate::imported::TimeKind;
use crate::report::factors::{LEVEL_LONGEST, in_short, short_setting, show_level, show_levels};
use crate::report::instruments::INSTRUMENTS;
use crate::report::instruments::instrument::TextTable;
use crate::report::{durability, statements};
use crate::study::{RepeatRule, Study};
use crate::units::{show_count, show_number, show_seconds};

/// The number of columns of the terminal if it is unknown.
pub const WIDTH: u16 = 120;

/// The characters that a heading may have whatever the levels below it.
const HEADING_WIDTH: usize = 12;

/// The most characters of a statement below the table of cases.
const STATEMENT_MOST: usize = 100;

/// The most cases that are named for one reason.
const CASES_NAMED: usize = 4;

/// Returns the whole report. It ends with a line break.
pub fn terminal(findings: &Findings, study: &Study) -> String {
    terminal_of(findings, study, WIDTH)
}

/// Returns the whole report for a terminal with this many columns.
pub fn terminal_of(findings: &Findings, study: &Study, width: u16) -> String {
    let colon = if findings.question.is_empty() { "" } else { ": " };
    let mut out = Screen { text: String::new(), width };
    out.push_str(&format!("{}{colon}{}\n", findings.study, findings.question));
    if findings.rehearsal {
        out.push_str("REHEARSAL: sizes and repeats were shrunk; figures are not to be quoted.\n");
    }
    out.push('\n');
    push_invalid(&mut out, findings);
    if findings.cases.is_empty() {
        out.push_str("No trial has been finished yet.\n");
        return out.text;
    }
    let table = cases(findings, study, width);
    out.push_str(&table);
    for (short, level) in shortened_levels(findings) {
        push_wrapped(&mut out, &format!(" {short}  "), &level);
    }
    for (name, text) in statements::listed(study, STATEMENT_MOST) {
        push_wrapped(&mut out, &format!(" {name}  "), &text);
    }
    out.push('\n');
    let tables = INSTRUMENTS.iter().flat_map(|instrument| (instrument.tables)(findings));
    tables.for_each(|table| push_table(&mut out, table));
    // The heading already says that it is a rehearsal.
    for verdict in findings.verdicts.iter().filter(|verdict| verdict.found != Found::Rehearsal {}) {
        push_wrapped(&mut out, "- ", &verdict.to_string());
    }
    if !findings.claims.is_empty() {
        out.push_str("\nClaims\n");
    }
    for claim in &findings.claims {
        push_wrapped(&mut out, &format!("  {:<13}", claim.verdict), &claim.says);
        push_wrapped(&mut out, &" ".repeat(15), &format!("claimed {}: {}", claim.claimed, claim.evidence));
    }
    let notes: Vec<&Note> = findings.notes.iter().filter(|note| **note != Note::Rehearsal {}).collect();
    if !notes.is_empty() {
        out.push_str("\nNotes\n");
    }
    for note in notes {
        push_wrapped(&mut out, "- ", &note.to_string());
    }
    out.text
}

/// The text written so far, for a terminal with a number of columns.
struct Screen {
    text: String,
    width: u16,
}

impl Screen {
    fn push(&mut self, one: char) {
        self.text.push(one);
    }

    fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }
}

/// Writes a table with its title and the lines below it; nothing without rows.
fn push_table(out: &mut Screen, told: TextTable) {
    if told.rows.is_empty() {
        return;
    }
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(line).bottom_border(line));
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(out.width).set_header(told.headings.to_vec());
    table.add_rows(told.rows);
    for column in table.column_iter_mut().filter(|_| told.keeps_lines) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    out.push_str(&format!("{}\n{}\n\n", told.title, table.trim_fmt()));
    for (begin, line) in &told.below {
        push_wrapped(out, begin, line);
    }
    if !told.below.is_empty() {
        out.push('\n');
    }
}

/// Writes invalid trials with their reasons, and the messages of failed operations.
fn push_invalid(out: &mut Screen, findings: &Findings) {
    let repeated: u64 = findings.cases.iter().map(|case| case.repeated).sum();
    let invalid: u64 = findings.cases.iter().map(|case| case.trials - case.valid_trials).sum::<u64>() - repeated;
    let all: u64 = findings.cases.iter().map(|case| case.trials).sum();
    if invalid > 0 {
        out.push_str(&format!("INVALID: {invalid} of {all} trials; their figures are left out of everything below.\n"));
    }
    if repeated > 0 {
        out.push_str(&format!("REPEATED: {repeated} of {all} trials, whose load could not be sent as planned.\n"));
    }
    for (reason, cases) in grouped(findings, |case| case.invalid_because.iter().map(ToString::to_string).collect()) {
        push_wrapped(out, "  ", &format!("{reason}: {}", show_cases(&cases)));
    }
    let failures = |case: &CaseFinding| case.errors.keys().cloned().collect();
    for (message, cases) in grouped(findings, failures) {
        let count: u64 = findings.cases.iter().filter_map(|case| case.errors.get(&message)).sum();
        let operations = show_count(count, "operation");
        push_wrapped(out, "  ", &format!("{operations} failed with \"{message}\": {}", show_cases(&cases)));
    }
    if invalid + repeated > 0 || findings.cases.iter().any(|case| !case.errors.is_empty()) {
        out.push('\n');
    }
}

/// Formats the first few of some cases, and the number of the others.
fn show_cases(cases: &[String]) -> String {
    let first = &cases[..cases.len().min(CASES_NAMED)];
    let more = cases.len() - first.len();
    if more == 0 { first.join("; ") } else { format!("{}; and {more} more", first.join("; ")) }
}

/// Groups equal texts of cases, each with the cases from which it comes.
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

/// The columns of the table.
struct Columns<'a> {
    /// The factors with their levels.
    settings: Vec<&'a str>,
    /// Whether arrivals are scheduled.
    open: bool,
    /// The rates of the cases, formatted to the same width behind the mean.
    rates: Vec<String>,
    /// Whether the content bytes per second of a case are known, so that they are shown.
    contents: bool,
    /// Whether cases have more than one kind of operation.
    several: bool,
    /// Whether there is a server whose processes are watched.
    server: bool,
    /// Whether loadline itself was watched.
    client: bool,
    /// The rule by which a case counts as settled.
    repeats: RepeatRule,
    /// The kind of time of the operations, and the figures that are shown of it.
    times: (TimeKind, &'static [TimeColumn]),
}

/// A figure of times with its heading.
type TimeColumn = (&'static str, fn(&TimeFinding) -> Option<f64>);

const QUANTILES: &[TimeColumn] = &[("p50", |times| times.p50), ("p90", |times| times.p90), ("p99", |times| times.p99)];
/// The figures if another tool kept no histogram.
const STATED: &[TimeColumn] = &[("mean", |times| times.mean), ("p99", |times| times.p99), ("max", |times| times.max)];

/// Returns response times and their quantiles, or the figures that another tool states.
fn time_columns(findings: &Findings) -> (TimeKind, &'static [TimeColumn]) {
    let kinds = || findings.cases.iter().filter(|case| case.valid_trials > 0).map(CaseFinding::time_kind);
    let is_residence = kinds().next().is_some() && kinds().all(|kind| kind == TimeKind::ResidenceTime);
    let kind = if is_residence { TimeKind::ResidenceTime } else { TimeKind::ResponseTime };
    let times =
        || findings.cases.iter().flat_map(|case| case.operations.values()).map(|operation| operation.times(kind));
    let is_stated = times().any(|times| times.mean.is_some()) && times().all(|times| times.p50.is_none());
    (kind, if is_stated { STATED } else { QUANTILES })
}

fn cases(findings: &Findings, study: &Study, width: u16) -> String {
    let has = |setting: &&str| findings.cases.iter().any(|case| case.levels.contains_key(*setting));
    // If a transaction has several records, records are compared.
    let batched = findings.cases.iter().any(CaseFinding::is_batched);
    let rates = findings.cases.iter().map(|case| if batched { &case.records_per_s } else { &case.throughput_per_s });
    let is_imported = findings.imported_from.is_some();
    let columns = Columns {
        settings: study.factors.iter().map(|factor| factor.setting.as_str()).filter(has).collect(),
        open: findings.cases.iter().any(|case| case.offered_per_s.is_some()),
        rates: show_estimates(&rates.collect::<Vec<_>>()),
        contents: findings.cases.iter().any(|case| case.content_bytes_per_s.is_some()),
        several: findings.cases.iter().any(|case| case.operations.len() > 1),
        server: findings.cases.iter().filter_map(|case| case.resources.as_ref()).any(|used| used.server_cpu > 0.0),
        client: !is_imported,
        repeats: study.repeat.rule,
        times: time_columns(findings),
    };
    let mut heading: Vec<String> = columns.settings.iter().map(|setting| setting_heading(setting, findings)).collect();
    if columns.open {
        heading.extend(["offered\n/s".to_owned(), "load\n".to_owned()]);
    }
    let unit = if batched { "records/s" } else { "operations/s" };
    heading.push(format!("{unit}\n± 95 % interval"));
    heading.extend(columns.contents.then(|| "MB/s\n".to_owned()));
    heading.extend(["survives\n".to_owned(), "n".to_owned(), "settled".to_owned()]);
    if columns.several {
        heading.push("operation".to_owned());
    }
    let (kind, figures) = columns.times;
    heading.extend(figures.iter().map(|(figure, _)| format!("{}\n{figure}", kind.short())));
    heading.extend(columns.server.then(|| "server\nCPUs".to_owned()));
    heading.extend(columns.client.then(|| "client\nCPUs".to_owned()));
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table
        .load_style(TableStyle::new().header_separator(line).bottom_border(line))
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width).set_header(heading);
    for (number, case) in findings.cases.iter().enumerate() {
        push_rows(&mut table, case, number, &columns);
    }
    // A level broken over lines is hard to recognise, so a table of many columns may be somewhat wider.
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_constraint(ColumnConstraint::ContentWidth);
        if number >= columns.settings.len() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
}

/// Returns a setting's name above its levels, over as many lines as keep it from being much wider than they are.
fn setting_heading(setting: &str, findings: &Findings) -> String {
    let levels = findings.cases.iter().filter_map(|case| case.levels.get(setting));
    let room = levels.map(|level| level_in_short(level).chars().count()).max().unwrap_or(0).max(HEADING_WIDTH);
    let mut lines: Vec<String> = Vec::new();
    for word in short_setting(setting).split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

fn level_in_short(level: &serde_json::Value) -> String {
    in_short(&show_level(level), LEVEL_LONGEST)
}

/// Returns the levels that the table of cases shortens, each with its whole text.
fn shortened_levels(findings: &Findings) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for level in findings.cases.iter().flat_map(|case| case.levels.values()) {
        let pair = (level_in_short(level), show_level(level));
        if pair.0 != pair.1 && !found.contains(&pair) {
            found.push(pair);
        }
    }
    found
}

/// Writes one row per kind of operation; the first one has the case's own figures.
fn push_rows(table: &mut Table, case: &CaseFinding, number: usize, columns: &Columns) {
    let levels =
        columns.settings.iter().map(|setting| case.levels.get(*setting).map(level_in_short).unwrap_or_default());
    let mut first: Vec<String> = levels.collect();
    if columns.open {
        first.push(case.offered_per_s.map_or("-".to_owned(), show_number));
        first.push(show_load(case).to_owned());
    }
    first.push(columns.rates[number].clone());
    first.extend(
        columns.contents.then(|| case.content_bytes_per_s.as_ref().map_or("-".to_owned(), Estimate::show_megabytes)),
    );
    first.push(durability::word(&case.durability).to_owned());
    first.push(show_trials(case));
    first.push(show_settled(case, columns.repeats).to_owned());
    let cpus = |used: fn(&ResourceFinding) -> f64| {
        case.resources.as_ref().map_or("-".to_owned(), |resources| format!("{:.2}", used(resources)))
    };
    let mut used: Vec<String> = columns.server.then(|| cpus(|used| used.server_cpu)).into_iter().collect();
    used.extend(columns.client.then(|| cpus(|used| used.client_cpu)));
    let none = TimeFinding::default();
    let mut kinds: Vec<(&str, &TimeFinding, bool)> = case
        .operations
        .iter()
        .map(|(name, operation)| (name.as_str(), operation.times(columns.times.0), operation.response_time_at_least))
        .collect();
    if kinds.is_empty() {
        kinds.push(("-", &none, false));
    }
    for (place, (kind, times, is_least)) in kinds.into_iter().enumerate() {
        let mut row = if place == 0 { first.clone() } else { vec![String::new(); first.len()] };
        if columns.several {
            row.push(kind.to_owned());
        }
        let least = if is_least { "≥ " } else { "" };
        let show = |time: Option<f64>| time.map_or("-".to_owned(), |time_s| format!("{least}{}", show_seconds(time_s)));
        row.extend(columns.times.1.iter().map(|(_, figure)| show(figure(times))));
        row.extend(if place == 0 { used.clone() } else { vec![String::new(); used.len()] });
        table.add_row(row);
    }
}

/// Returns whether a case was repeated until its figure was certain: `yes`, `no`, or `fixed n` if the number of trials was fixed beforehand.
pub fn show_settled(case: &CaseFinding, rule: RepeatRule) -> &'static str {
    match rule {
        _ if !case.settled => "no",
        RepeatRule::Fixed => "fixed n",
        RepeatRule::Interval | RepeatRule::StandardError => "yes",
    }
}

/// Returns whether the database carried the offered load, in words.
fn show_load(case: &CaseFinding) -> &'static str {
    match case.overloaded {
        Some(true) => "overloaded",
        Some(false) if case.valid_trials > 0 => "carried",
        _ => "-",
    }
}

/// Formats `12`, or `10 of 12` if some are invalid.
fn show_trials(case: &CaseFinding) -> String {
    if case.valid_trials == case.trials {
        case.trials.to_string()
    } else {
        format!("{} of {}", case.valid_trials, case.trials)
    }
}

/// Formats each estimate as `7,512 ± 2.8 %`, with means aligned; only the mean for a single trial, and `-` without trials.
fn show_estimates(estimates: &[&Estimate]) -> Vec<String> {
    let half_width = |estimate: &Estimate| match (estimate.mean, estimate.ci95) {
        (Some(mean), Some([low, high])) if mean != 0.0 => {
            // An end that was cut off does not show the width; the other end does.
            let percent = 100.0 * (high - mean).max(if estimate.cut_off { 0.0 } else { mean - low }) / mean.abs();
            Some(if percent > 100.0 {
                "± > 100 %".to_owned()
            } else if percent < 9.95 {
                format!("± {percent:.1} %")
            } else {
                format!("± {} %", show_number(percent.round()))
            })
        }
        _ => None,
    };
    let widths: Vec<Option<String>> = estimates.iter().map(|estimate| half_width(estimate)).collect();
    let widest = widths.iter().flatten().map(|text| text.chars().count()).max().unwrap_or(0);
    let show = |(estimate, width): (&&Estimate, &Option<String>)| {
        let mean = estimate.show_mean(show_number);
        let width = width.as_deref().unwrap_or_default();
        if widest > 0 { format!("{mean} {width:>widest$}") } else { mean }
    };
    estimates.iter().zip(&widths).map(show).collect()
}

/// Appends text broken at spaces; lines after the first are indented by the width of `lead`.
fn push_wrapped(out: &mut Screen, lead: &str, text: &str) {
    let indent = " ".repeat(lead.chars().count());
    let mut line = lead.to_owned();
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > usize::from(out.width) {
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

/// Returns a line of a list, broken at spaces.
pub fn listed(note: &str) -> String {
    let (mut text, mut line) = (String::new(), "-".to_owned());
    for word in note.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > usize::from(WIDTH) {
            text.push_str(&line);
            text.push('\n');
            line = " ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    format!("{text}{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_stand_one_below_the_other_whatever_their_intervals() {
        let estimate = |mean, half: Option<f64>| Estimate {
            mean,
            ci95: half.zip(mean).map(|(half, mean)| [mean - half, mean + half]),
            ..Estimate::default()
        };
        let all = [
            estimate(Some(66_250.0), Some(4_402.0)),
            estimate(Some(1_710.0), Some(6_239.0)),
            estimate(Some(12.5), None),
            estimate(None, None),
        ];
        let shown = show_estimates(&all.iter().collect::<Vec<_>>());
        assert_eq!(shown, ["66,200   ± 6.6 %", "1,700 ± > 100 %", "12.5          ", "-          "]);
        assert_eq!(show_estimates(&[&all[2]]), ["12.5"]);
        assert_eq!(show_estimates(&[&estimate(Some(0.0), Some(0.0))]), ["0"], "no share of nothing");
    }

    #[test]
    fn long_sentences_are_broken_at_spaces_and_indented() {
        let mut out = Screen { text: String::new(), width: WIDTH };
        push_wrapped(&mut out, "- ", &"word ".repeat(60));
        let lines: Vec<&str> = out.text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() <= usize::from(WIDTH)));
        assert!(lines[0].starts_with("- word") && lines[1].starts_with("  word"));
    }
}
