//! The text that a durability test prints: a table and sentences.
//!
//! Main function: [`text_of`].

use super::super::output::table;
use crate::finding::{DurabilityCase, DurabilityTest, NotTested};
use crate::report::durability_test::{SYNC_FIRST, label, one_line, sentences};
use crate::units::{show_number, show_seconds};

const HEADER: [&str; 10] = [
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

/// Returns the result as text.
pub fn text_of(test: &DurabilityTest) -> String {
    let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
    rows.extend(test.cases.iter().map(row));
    let rehearsal = if test.rehearsal { "note    a rehearsal: too few failures to be quoted\n" } else { "" };
    let sync_first = if test.sync_first { format!("note    {SYNC_FIRST}\n") } else { String::new() };
    let head =
        format!("target  {}\nserver  {}\nseed    {}\n{rehearsal}{sync_first}\n", test.target, test.server, test.seed);
    let of_case =
        |(case, lines): (String, Vec<String>)| lines.into_iter().map(move |line| format!("- {case}: {line}\n"));
    let sentences: Vec<String> = sentences(test).into_iter().flat_map(of_case).collect();
    let of_others = |other: &NotTested| format!("- {}: not tested: {}\n", label(&other.levels), one_line(&other.why));
    let others: Vec<String> = test.not_tested.iter().map(of_others).collect();
    format!("{head}{}\n{}{}", table(rows), sentences.concat(), others.concat())
}

fn row(case: &DurabilityCase) -> Vec<String> {
    let count = |number: u64| show_number(number as f64);
    vec![
        label(&case.levels),
        case.fault.name().to_owned(),
        count(case.cuts),
        count(case.cuts_with_loss),
        count(case.did_not_start),
        count(case.acknowledged),
        count(case.lost),
        count(case.wrong()),
        if case.lost > 0 { show_seconds(case.longest_lost_s) } else { String::new() },
        case.recovery_s.p50.map_or_else(String::new, show_seconds),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::life::Life;
    use super::super::oracle::Judged;
    use super::super::tally::{CaseTallies, Tally};
    use super::*;
    use crate::database::Level;
    use crate::trial::FaultKind;

    fn tally(fault: FaultKind, lives: &[Life]) -> Tally {
        let mut tally = Tally::new(fault);
        lives.iter().cloned().for_each(|life| tally.add(life));
        tally
    }

    fn case(number: u64, promised: Level, tallies: Vec<Tally>) -> Vec<DurabilityCase> {
        let levels = [("database.config.fsync".to_owned(), Value::from(format!("off{number}")))].into();
        CaseTallies { levels, server: "15.18".to_owned(), tallies, promised: Some(promised) }.told()
    }

    fn test(cases: Vec<DurabilityCase>) -> DurabilityTest {
        DurabilityTest { target: "postgres".to_owned(), server: "15.18".to_owned(), cases, ..Default::default() }
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
        let level = |tallies| case(0, Level::PowerCut, tallies)[0].level.clone();
        assert_eq!(level(vec![power(kept())]), "power-cut");
        assert_eq!(level(vec![power(lost()), kill(kept())]), "crash");
        assert_eq!(level(vec![power(lost()), kill(lost())]), "none");
        assert_eq!(level(vec![power(lost())]), "unknown");
        assert_eq!(level(vec![kill(kept())]), "unknown");
        let breaks = |promised, tallies| case(0, promised, tallies).iter().any(|case| case.breaks_promise);
        assert!(breaks(Level::PowerCut, vec![power(lost())]) && breaks(Level::Crash, vec![kill(lost())]));
        assert!(!breaks(Level::Crash, vec![power(lost()), kill(kept())]));
        assert!(!breaks(Level::PowerCut, vec![power(kept())]));
    }

    #[test]
    fn sentences_say_what_was_lost_and_what_was_not_seen() {
        let lossy = vec![tally(FaultKind::Power, &[kept(), lost()]), tally(FaultKind::Kill, &[kept()])];
        let safe = vec![tally(FaultKind::Power, &[kept(), Life { unsynced: 0, ..kept() }])];
        let cases = [case(1, Level::PowerCut, lossy), case(2, Level::PowerCut, safe)].concat();
        let text = text_of(&test(cases));
        for part in [
            "target  postgres\nserver  15.18\n",
            "fsync = off1: 1 of 2 cuts of the power did harm: 7 of 100 acknowledged writes are gone, the oldest of them acknowledged 400 ms before; operations \
             gone before later ones of the same connection: 2 (it says: a page is torn)",
            "fsync = off1: 0 of 1 kills lost anything; at 95 %, at most 95.0 % of such failures do harm",
            "fsync = off1: what was acknowledged survives killed processes, and not every cut of the power, although its settings promise it",
            "fsync = off2: 0 of 1 cuts of the power lost anything (1 found everything synced, and are not counted); at 95 %, at most 95.0 %",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
    }

    #[test]
    fn json_has_what_programs_rely_on_and_is_read_again() {
        let test = test(case(0, Level::PowerCut, vec![tally(FaultKind::Power, &[kept(), lost()])]));
        let told = serde_json::to_value(&test).unwrap();
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
        assert_eq!(case["levels"]["database.config.fsync"], "off0");
        assert_eq!(serde_json::from_value::<DurabilityTest>(told).unwrap(), test);
    }
}
