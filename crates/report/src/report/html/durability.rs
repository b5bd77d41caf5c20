//! Writes the page of a durability test: what survived, with which certainty, and the counts of each kind of failure.
//!
//! Main function: [`durability_page`]. Invariant: every drawing has a table with its numbers.

use maud::{Markup, html};

use super::bars::{Bar, Bars};
use super::environment::environment;
use super::page::whole;
use super::scale::Scale;
use super::unit::Unit;
use crate::finding::{DurabilityCase, DurabilityTest, Findings};
use crate::report::durability_test::{SYNC_FIRST, label, one_line, sentences, wrong};
use crate::report::factors::in_short;
use crate::store::RunFile;
use crate::trial::FaultKind;
use crate::units::{show_number, show_seconds};

/// The width of the drawings.
const WIDTH: f64 = 760.0;
/// The most characters of a reason why a case was not tested.
const WHY_MOST: usize = 600;
/// The colours of cases that kept everything, and of cases that did not.
const KEPT: usize = 2;
const LOST: usize = 1;

/// Returns the page of a test whose run is at the path `run`.
pub fn durability_page(test: &DurabilityTest, run: &str, file: &RunFile) -> String {
    let study = &file.study;
    let findings = Findings { run: run.to_owned(), ..Findings::default() };
    let header = html! {
        p.over { (run) }
        h1 { (study.name) }
        p.question { @if study.question.is_empty() { "What survives of what " (test.target) " has acknowledged?" } @else { (study.question) } }
    };
    let main = html! {
        @if test.rehearsal {
            div.box.bad { h2 { "This is a rehearsal" } "There were too few failures to be quoted." }
        }
        (verdict(test, &study.name))
        (not_tested(test))
        @if test.sync_first { div.box { h2 { "The disk was synced first" } (capitalised(SYNC_FIRST)) "." } }
        (harm(test))
        (oldest(test))
        (counts(test))
        (one_by_one(test))
        (environment(&findings, study, &file.environment, &[]))
    };
    let footer = html! {
        "Made by loadline " (file.environment.loadline) ". Bounds are of Clopper and Pearson, one-sided, at 95 %."
    };
    whole(&format!("{} - loadline durability", study.name), &header, &main, &footer)
}

/// The names of the cases, by the result of the failures.
#[derive(Default)]
struct Shown {
    /// Cases without a loss, in which every kind of failure had something to lose.
    kept: Vec<String>,
    /// Cases without a loss, in which some kind of failure had nothing to lose.
    open: Vec<String>,
    /// Cases with a loss.
    harmed: Vec<String>,
}

impl Shown {
    fn by(test: &DurabilityTest) -> Self {
        let mut shown = Shown::default();
        for (levels, kinds) in test.by_case() {
            let list = if kinds.iter().any(|kind| kind.harmed() > 0) {
                &mut shown.harmed
            } else if kinds.iter().all(|kind| kind.is_harmless()) {
                &mut shown.kept
            } else {
                &mut shown.open
            };
            list.push(label(levels));
        }
        shown
    }

    /// Returns the answer in a sentence.
    fn answer(&self) -> String {
        let Shown { kept, open, harmed } = self;
        match (kept.len(), open.len(), harmed.len()) {
            (0, 0, 0) => "Nothing was found.".to_owned(),
            (_, 0, 0) => "Nothing that was acknowledged was lost.".to_owned(),
            (1.., ..) => format!("Nothing that was acknowledged was lost with {}.", kept.join("; ")),
            (0, _, 0) => {
                "Nothing that was acknowledged was lost, but some kinds of failure found nothing that could have been."
                    .to_owned()
            }
            (0, 0, 1) => "Not everything that was acknowledged survived.".to_owned(),
            (0, 0, _) => "In no case did everything that was acknowledged survive.".to_owned(),
            (0, ..) => format!("Not everything that was acknowledged survived with {}.", harmed.join("; ")),
        }
    }
}

fn verdict(test: &DurabilityTest, study: &str) -> Markup {
    let shown = Shown::by(test);
    let breaks = test.cases.iter().any(|case| case.breaks_promise);
    html! {
        div class={ "box verdict" @if shown.kept.is_empty() { " open" } @if breaks { " loss" } } {
            p.first { strong { (shown.answer()) } @if test.target != study { (test.target) " " } (test.server) }
            ul { @for (case, lines) in sentences(test) { li { strong { (case) } ": " (lines.iter().map(|line| capitalised(line)).collect::<Vec<_>>().join(". ")) "." } } }
        }
    }
}

/// Names the cases that could not be tested, with the reasons.
fn not_tested(test: &DurabilityTest) -> Markup {
    html! {
        @if !test.not_tested.is_empty() {
            div.box.bad {
                h2 { "Not tested" }
                ul { @for case in &test.not_tested { li { strong { (label(&case.levels)) } ": " (in_short(&one_line(&case.why), WHY_MOST)) } } }
            }
        }
    }
}

/// Capitalises the first letter of a text.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Draws a bar for each case and kind of failure.
fn bars(
    test: &DurabilityTest,
    (title, description): (&str, &str),
    unit: Unit,
    bar: impl Fn(&DurabilityCase) -> (f64, Option<[f64; 2]>, String),
) -> Markup {
    let bars: Vec<Bar> = test
        .cases
        .iter()
        .map(|case| {
            let (value, interval, text) = bar(case);
            let kind = if case.fault == FaultKind::Power { String::new() } else { format!(" ({})", case.fault.name()) };
            let label = format!("{}{kind}", label(&case.levels));
            let style = if case.harmed() > 0 { LOST } else { KEPT };
            Bar { label, style, value: Some(value), interval, text }
        })
        .collect();
    let ends = |bar: &Bar| bar.interval.map_or(bar.value.unwrap_or(0.0), |[_, high]| high);
    let largest = bars.iter().map(ends).fold(0.0, f64::max);
    let (title, description) = (title.to_owned(), description.to_owned());
    Bars { title, description, width: WIDTH, scale: Scale::from_zero(largest, unit), bars }.draw()
}

fn harm(test: &DurabilityTest) -> Markup {
    let bar = |case: &DurabilityCase| {
        let share = case.harmed() as f64 / case.telling().max(1) as f64;
        let (harmed, telling) = (show_number(case.harmed() as f64), show_number(case.telling() as f64));
        (share, Some([share, case.loss_share_upper95]), format!("{harmed} of {telling}"))
    };
    let words =
        ("Failures that did harm", "The share of failures behind which something acknowledged could not be had");
    html! {
        section #harm {
            h2 { "How often something was lost" }
            p.about {
                "Cuts of the power, and other failures where it says so; a cut that found everything synced tells nothing and is left out. The line goes on to the largest share that is \
                 consistent with what was seen, at 95 %."
            }
            (bars(test, words, Unit::Share, bar))
        }
    }
}

fn oldest(test: &DurabilityTest) -> Markup {
    let bar = |case: &DurabilityCase| {
        let text = if case.lost > 0 { show_seconds(case.longest_lost_s) } else { "nothing".to_owned() };
        (case.longest_lost_s, None, text)
    };
    let words = (
        "Age of the oldest write that was lost",
        "From its acknowledgement to the failure, the longest of all failures",
    );
    html! {
        @if test.cases.iter().any(|case| case.lost > 0) {
            section #oldest {
                h2 { "How far back" }
                p.about { "From the acknowledgement of the oldest write that is gone to the failure; the longest of all failures. What is damaged may be older than the failure's last moments." }
                (bars(test, words, Unit::Seconds, bar))
            }
        }
    }
}

/// Returns a table with the counts of each kind of failure.
fn counts(test: &DurabilityTest) -> Markup {
    let count = |number: u64| show_number(number as f64);
    html! {
        section #counts {
            h2 { "In numbers" }
            p.about { "Writes of records are counted, and transactions and operations where it says so. \"Answers after\" is the median time from the start of what was tested to its first answer." }
            div.scroll { table {
                thead { tr {
                    th { "Case" } th { "What failed" }
                    @for heading in ["Failures", "Nothing unsynced", "With loss", "Not started", "Not judged", "Acknowledged", "Lost", "Oldest lost", "At most (95 %)", "Answers after"] {
                        th.number { (heading) }
                    }
                    th { "Wrong" } th { "Proved" } th { "Promised" }
                } }
                tbody { @for case in &test.cases { tr {
                    th scope="row" { (label(&case.levels)) }
                    th { (case.fault.name()) }
                    td { (count(case.cuts)) }
                    td { (count(case.cuts - case.telling().min(case.cuts))) }
                    td { (count(case.cuts_with_loss)) }
                    td { (count(case.did_not_start)) }
                    td { (count(case.not_judged)) }
                    td { (count(case.acknowledged)) }
                    td { (count(case.lost)) }
                    td { @if case.lost > 0 { (show_seconds(case.longest_lost_s)) } @else { "-" } }
                    td { (format!("{:.1} %", 100.0 * case.loss_share_upper95)) }
                    td { (case.recovery_s.p50.map_or("-".to_owned(), show_seconds)) }
                    td.text { (wrong_of(case)) }
                    th { (case.level) }
                    th { (case.promised.as_deref().unwrap_or("unknown")) }
                } } }
            } }
        }
    }
}

fn wrong_of(case: &DurabilityCase) -> String {
    let parts: Vec<String> =
        wrong(case).into_iter().map(|(count, what)| format!("{what}: {}", show_number(count as f64))).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

/// Lists the first failures that did harm.
fn one_by_one(test: &DurabilityTest) -> Markup {
    html! {
        @if test.cases.iter().any(|case| !case.found.is_empty()) {
            section #found {
                h2 { "Failures that did harm, one by one" }
                p.about { "The first of each case. With the same seed the same is drawn for a failure of the same number; how far it has come by then is not." }
                @for case in test.cases.iter().filter(|case| !case.found.is_empty()) {
                    details {
                        summary { (label(&case.levels)) ", " (case.fault.name()) ": " (case.found.len()) " of " (show_number(case.harmed() as f64)) }
                        ul { @for failure in &case.found { li {
                            (failure.number) ": " (failure.what) "; " (show_number(failure.lost as f64)) " writes lost"
                            @if failure.changed > 0 { ", " (show_number(failure.changed as f64)) " records changed" }
                            @if let Some(says) = &failure.says { "; it says " code { (one_line(says)) } }
                        } } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a case with four power cuts, of which the given numbers found something unsynced and did harm.
    fn case(level: &str, cuts_unsynced: u64, cuts_with_loss: u64) -> DurabilityCase {
        let levels = [("database.config.synchronous".to_owned(), level.into())].into_iter().collect();
        DurabilityCase { levels, cuts: 4, cuts_unsynced, cuts_with_loss, ..DurabilityCase::default() }
    }

    fn answer(cases: &[DurabilityCase]) -> String {
        Shown::by(&DurabilityTest { cases: cases.to_vec(), ..DurabilityTest::default() }).answer()
    }

    #[test]
    fn nothing_is_called_lost_where_nothing_was_and_nothing_kept_where_nothing_could_be_lost() {
        let (normal, full) = (case("normal", 4, 3), case("full", 2, 0));
        assert_eq!(
            answer(&[normal.clone(), full.clone()]),
            "Nothing that was acknowledged was lost with synchronous = full."
        );
        assert_eq!(answer(&[case("normal", 4, 0), full]), "Nothing that was acknowledged was lost.");
        // No cut of this case found anything unsynced.
        let idle = case("full", 0, 0);
        let nothing_to_lose =
            "Nothing that was acknowledged was lost, but some kinds of failure found nothing that could have been.";
        assert_eq!(answer(std::slice::from_ref(&idle)), nothing_to_lose);
        assert_eq!(
            answer(&[normal.clone(), idle]),
            "Not everything that was acknowledged survived with synchronous = normal."
        );
        assert_eq!(answer(std::slice::from_ref(&normal)), "Not everything that was acknowledged survived.");
        assert_eq!(answer(&[normal, case("off", 4, 4)]), "In no case did everything that was acknowledged survive.");
        assert_eq!(answer(&[]), "Nothing was found.");
    }
}
