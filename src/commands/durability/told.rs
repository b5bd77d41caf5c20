//! What a durability run says: a table and sentences, or JSON.
//!
//! Main functions: [`text_of`] and [`json_of`].

use serde_json::{Value, json};

use super::super::output::table;
use super::tally::Tally;
use crate::cli::FaultKind;
use crate::database::Level;
use crate::report::durability::name as level_name;
use crate::report::factors::{in_short, setting_word};
use crate::trial::{Levels, show_level};
use crate::units::{show_number, show_seconds};

/// Characters of what a database says, at most.
const SAYS_MOST: usize = 240;

/// A case with its failures.
pub struct CaseTold {
    /// Its levels.
    pub levels: Levels,
    /// The version of its server.
    pub server: String,
    /// Its failures, by what failed.
    pub tallies: Vec<Tally>,
    /// What its settings promise.
    pub promised: Option<Level>,
}

impl CaseTold {
    /// The level that its failures have proved; none where what failed does not tell.
    pub fn proved(&self) -> Option<Level> {
        let of = |fault| self.tallies.iter().find(|tally| tally.fault == fault);
        let (power, kill) = (of(FaultKind::Power), of(FaultKind::Kill));
        let is_harmed = |tally: Option<&Tally>| tally.is_some_and(|tally| tally.harmed() > 0);
        if power.is_some_and(Tally::is_harmless) {
            return Some(Level::PowerCut);
        }
        match (is_harmed(power), kill) {
            (_, Some(kill)) if kill.harmed() > 0 => Some(Level::Nothing),
            (true, Some(kill)) if kill.is_harmless() => Some(Level::Crash),
            _ => None,
        }
    }

    /// Whether a cut of the power did harm.
    fn is_harmed_by_cuts(&self) -> bool {
        self.tallies.iter().any(|tally| tally.fault == FaultKind::Power && tally.harmed() > 0)
    }

    /// Whether less was found than its settings promise.
    pub fn breaks_promise(&self) -> bool {
        match (self.promised, self.proved()) {
            (Some(promised), Some(proved)) => proved < promised,
            (promised, None) => promised == Some(Level::PowerCut) && self.is_harmed_by_cuts(),
            (None, _) => false,
        }
    }
}

/// All cases of a target.
pub struct Told<'a> {
    /// Name of the database or study.
    pub target: &'a str,
    /// The cases.
    pub cases: &'a [CaseTold],
}

impl Told<'_> {
    /// The versions of the servers, each once.
    fn servers(&self) -> String {
        let mut servers: Vec<&str> = Vec::new();
        for case in self.cases {
            if !servers.contains(&case.server.as_str()) {
                servers.push(&case.server);
            }
        }
        servers.join(", ")
    }
}

/// As text.
pub fn text_of(told: &Told<'_>) -> String {
    let header = [
        "case",
        "fault",
        "failures",
        "with loss",
        "not started",
        "acknowledged",
        "lost",
        "wrong",
        "longest lost",
        "answers after",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for case in told.cases {
        rows.extend(case.tallies.iter().map(|tally| row(case, tally)));
    }
    let head = format!("durability of {}: {}\n\n", told.target, told.servers());
    let sentences: Vec<String> = told.cases.iter().flat_map(sentences).map(|line| format!("- {line}\n")).collect();
    format!("{head}{}\n{}", table(rows), sentences.concat())
}

/// A case in short: `star, synchronous_commit = on`.
pub fn label(levels: &Levels) -> String {
    if levels.is_empty() {
        return "as set".to_owned();
    }
    let short = |(setting, level): (&String, &Value)| match setting_word(setting) {
        "name" | "type" => show_level(level),
        word => format!("{word} = {}", show_level(level)),
    };
    levels.iter().map(short).collect::<Vec<_>>().join(", ")
}

fn row(case: &CaseTold, tally: &Tally) -> Vec<String> {
    let count = |number: u64| show_number(number as f64);
    let judged = &tally.judged;
    vec![
        label(&case.levels),
        tally.fault.name().to_owned(),
        count(tally.cuts),
        count(tally.cuts_with_loss),
        count(tally.did_not_start),
        count(judged.acknowledged),
        count(judged.lost),
        count(judged.changed + judged.half_transactions + judged.reordered + tally.duplicated),
        if judged.lost > 0 { show_seconds(tally.longest_lost_s) } else { String::new() },
        median(&tally.recoveries_s).map_or_else(String::new, show_seconds),
    ]
}

fn median(values: &[f64]) -> Option<f64> {
    crate::statistics::summary::median(values)
}

fn word_of(fault: FaultKind) -> &'static str {
    match fault {
        FaultKind::Power => "cuts of the power",
        FaultKind::Kill => "kills",
        FaultKind::Eio => "failures of the disk",
        FaultKind::Enospc => "times of a full disk",
        FaultKind::Bits => "restarts with flipped bits",
    }
}

fn sentences(case: &CaseTold) -> Vec<String> {
    let name = label(&case.levels);
    let mut lines: Vec<String> = case.tallies.iter().map(|tally| format!("{name}: {}", sentence(tally))).collect();
    let unjudged: u64 = case.tallies.iter().map(|tally| tally.unjudged).sum();
    if unjudged > 0 {
        let count = show_number(unjudged as f64);
        lines.push(format!(
            "{name}: {count} failures could not be judged, and are not counted; the messages above say why"
        ));
    }
    let survives = match case.proved() {
        Some(Level::Crash) => "what was acknowledged survives killed processes, and not every cut of the power",
        Some(Level::Nothing) => "what was acknowledged does not survive killed processes",
        None if case.is_harmed_by_cuts() => "what was acknowledged does not survive every cut of the power",
        // That nothing was lost stands there already.
        None | Some(Level::PowerCut) => return lines,
    };
    let promise = if case.breaks_promise() { ", although its settings promise it" } else { "" };
    lines.push(format!("{name}: {survives}{promise}"));
    lines
}

fn sentence(tally: &Tally) -> String {
    let (cuts, what) = (show_number(tally.cuts as f64), word_of(tally.fault));
    if tally.harmed() == 0 {
        if tally.telling() == 0 {
            return format!("{cuts} {what} found nothing that could have been lost, and show nothing");
        }
        let bound = format!("at 95 %, at most {:.1} % of such failures do harm", 100.0 * tally.share_at_most());
        let idle = match tally.cuts - tally.telling() {
            0 => String::new(),
            idle => format!(" ({} found everything synced, and are not counted)", show_number(idle as f64)),
        };
        return format!("0 of {} {what} lost anything{idle}; {bound}", show_number(tally.telling() as f64));
    }
    let judged = &tally.judged;
    let mut parts = Vec::new();
    if judged.lost > 0 {
        parts.push(format!(
            "{} of {} acknowledged writes are gone, the oldest of them acknowledged {} before",
            show_number(judged.lost as f64),
            show_number(judged.acknowledged as f64),
            show_seconds(tally.longest_lost_s)
        ));
    }
    let counts = [
        (judged.unreadable, "records that the database refuses to read"),
        (judged.changed, "records with content that nobody has written"),
        (judged.half_transactions, "transactions half there"),
        (judged.reordered, "operations gone before later ones of the same connection"),
        (tally.duplicated, "records that should not be there"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    parts.extend(counts.map(|(count, what)| format!("{what}: {}", show_number(*count as f64))));
    let mut found = Vec::new();
    if tally.cuts_with_loss > 0 {
        let harmed = show_number(tally.cuts_with_loss as f64);
        found.push(format!("{harmed} of {cuts} {what} did harm: {}", parts.join("; ")));
    }
    if tally.did_not_start > 0 {
        let silent = show_number(tally.did_not_start as f64);
        found.push(format!("behind {silent} of {cuts} {what} the database did not start"));
    }
    let says = tally.told.iter().find_map(|life| life.says.as_ref());
    let says = says.map(|says| format!(" (it says: {})", in_short(&one_line(says), SAYS_MOST)));
    format!("{}{}", found.join("; "), says.unwrap_or_default())
}

/// A text of several lines as one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As JSON.
pub fn json_of(told: &Told<'_>) -> Value {
    let cases: Vec<Value> =
        told.cases.iter().flat_map(|case| case.tallies.iter().map(move |tally| json_case(case, tally))).collect();
    json!({ "target": told.target, "server": told.servers(), "cases": cases })
}

fn json_case(case: &CaseTold, tally: &Tally) -> Value {
    let judged = &tally.judged;
    let longest = tally.recoveries_s.iter().copied().reduce(f64::max);
    json!({
        "levels": case.levels,
        "server": case.server,
        "fault": tally.fault.name(),
        "cuts": tally.cuts,
        "cuts_with_loss": tally.cuts_with_loss,
        "cuts_unsynced": tally.unsynced_cuts,
        "acknowledged": judged.acknowledged,
        "lost": judged.lost,
        "changed": judged.changed,
        "unreadable": judged.unreadable,
        "half_transactions": judged.half_transactions,
        "reordered": judged.reordered,
        "duplicated": tally.duplicated,
        "did_not_start": tally.did_not_start,
        "not_judged": tally.unjudged,
        "loss_share_upper95": tally.share_at_most(),
        "longest_lost_s": tally.longest_lost_s,
        "recovery_s": { "p50": median(&tally.recoveries_s), "max": longest },
        "level": case.proved().map_or("unknown", level_name),
        "promised": case.promised.map(level_name),
        "found": tally.told,
    })
}

#[cfg(test)]
mod tests {
    use super::super::life::Life;
    use super::super::oracle::Judged;
    use super::*;

    fn tally(fault: FaultKind, lives: &[Life]) -> Tally {
        let mut tally = Tally::new(fault);
        lives.iter().cloned().for_each(|life| tally.add(life));
        tally
    }

    fn case(promised: Level, tallies: Vec<Tally>) -> CaseTold {
        let levels = [("database.config.fsync".to_owned(), Value::from("off"))].into();
        CaseTold { levels, server: "15.18".to_owned(), tallies, promised: Some(promised) }
    }

    fn kept() -> Life {
        let judged = Judged { acknowledged: 50, there: 50, ..Judged::default() };
        Life { unsynced: 3, judged, recovery_s: Some(0.25), ..Life::default() }
    }

    fn lost() -> Life {
        let judged = Judged { acknowledged: 50, lost: 7, reordered: 2, first_lost_ns: Some(1), ..Judged::default() };
        Life { unsynced: 9, judged, lost_s: Some(0.4), says: Some("a page\n is torn".to_owned()), ..Life::default() }
    }

    #[test]
    fn what_is_proved_follows_from_what_failed() {
        let power = |life: Life| tally(FaultKind::Power, &[life]);
        let kill = |life: Life| tally(FaultKind::Kill, &[life]);
        let of = |tallies| case(Level::PowerCut, tallies);
        assert_eq!(of(vec![power(kept())]).proved(), Some(Level::PowerCut));
        assert_eq!(of(vec![power(lost()), kill(kept())]).proved(), Some(Level::Crash));
        assert_eq!(of(vec![power(lost()), kill(lost())]).proved(), Some(Level::Nothing));
        assert_eq!(of(vec![power(lost())]).proved(), None);
        assert_eq!(of(vec![kill(kept())]).proved(), None);
        let breaks = |promised, tallies| case(promised, tallies).breaks_promise();
        assert!(breaks(Level::PowerCut, vec![power(lost())]) && breaks(Level::Crash, vec![kill(lost())]));
        assert!(!breaks(Level::Crash, vec![power(lost()), kill(kept())]));
        assert!(!breaks(Level::PowerCut, vec![power(kept())]));
    }

    #[test]
    fn sentences_say_what_was_lost_and_what_was_not_seen() {
        let cases = [
            case(Level::PowerCut, vec![tally(FaultKind::Power, &[kept(), lost()]), tally(FaultKind::Kill, &[kept()])]),
            case(Level::PowerCut, vec![tally(FaultKind::Power, &[kept(), Life { unsynced: 0, ..kept() }])]),
        ];
        let text = text_of(&Told { target: "postgres", cases: &cases });
        for part in [
            "durability of postgres: 15.18\n",
            "fsync = off: 1 of 2 cuts of the power did harm: 7 of 100 acknowledged writes are gone, the oldest of them acknowledged 400 ms before; operations \
             gone before later ones of the same connection: 2 (it says: a page is torn)",
            "fsync = off: 0 of 1 kills lost anything; at 95 %, at most 95.0 % of such failures do harm",
            "survives killed processes, and not every cut of the power, although its settings promise it",
            "0 of 1 cuts of the power lost anything (1 found everything synced, and are not counted); at 95 %, at most 95.0 %",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
    }

    #[test]
    fn json_has_what_programs_rely_on() {
        let cases = [case(Level::PowerCut, vec![tally(FaultKind::Power, &[kept(), lost()])])];
        let told = json_of(&Told { target: "postgres", cases: &cases });
        assert_eq!((&told["target"], &told["server"]), (&Value::from("postgres"), &Value::from("15.18")));
        let case = &told["cases"][0];
        let counts = [("cuts", 2), ("cuts_with_loss", 1), ("acknowledged", 100), ("lost", 7), ("changed", 0)];
        let more = [("half_transactions", 0), ("reordered", 2), ("duplicated", 0), ("did_not_start", 0)];
        for (name, count) in counts.into_iter().chain(more) {
            assert_eq!(case[name], count, "{name}: {case}");
        }
        assert_eq!((&case["fault"], &case["level"]), (&Value::from("power"), &Value::from("unknown")));
        assert_eq!((&case["longest_lost_s"], &case["recovery_s"]["p50"]), (&Value::from(0.4), &Value::from(0.25)));
        assert!(case["loss_share_upper95"].as_f64().is_some_and(|share| share > 0.5 && share < 1.0));
        assert_eq!(case["levels"]["database.config.fsync"], "off");
    }
}
