//! The longer parts of the sentences of reasons.
//!
//! Main function: [`show_reasons`]. Invariant: the same figures give the same words.

use super::{EmptyReads, Failed, Little, Reason};

/// Shows all reasons in one line.
pub fn show_reasons(reasons: &[Reason]) -> String {
    reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

pub(super) const SAMPLES_REMOVED: &str = "; what was written of them is removed, to make room for the trial's figures";

pub(super) fn show_errors(errors: &[Failed]) -> String {
    errors.iter().map(|Failed { message, count }| format!("; {count} times: {message}")).collect()
}

pub(super) fn show_empty(empty: u64, reads: &[EmptyReads]) -> String {
    let head = if empty == 1 {
        "1 read found nothing although it".to_owned()
    } else {
        format!("{empty} reads found nothing although they")
    };
    let named = |EmptyReads { operation, sql, empty }: &EmptyReads| {
        let text = sql.as_ref().map(|sql| format!(" ({sql})")).unwrap_or_default();
        format!("{operation}{text} {empty} times")
    };
    let kinds: Vec<String> = reads.iter().map(named).collect();
    let is_own = reads.iter().any(|reads| reads.sql.is_some());
    let remedy =
        if is_own { "; ask for rows that there are, or write allow_empty = true on the statement" } else { "" };
    format!("{head} should have: {}{remedy}", kinds.join(", "))
}

pub(super) fn show_host(host: Option<&str>) -> String {
    host.map_or(String::new(), |host| format!(" on {host}"))
}

pub(super) fn show_little(between: Little, operations: f64, expected: f64) -> String {
    match between {
        Little::Clients => {
            format!("{operations:.2} operations were running on average with {expected:.0} clients")
        }
        Little::Counted => format!(
            "clients had {operations:.3} operations running on average, and throughput times residence time is {expected:.3}"
        ),
        Little::AtWork => {
            format!("{operations:.3} operations were running on average with {expected:.3} clients at work")
        }
        Little::InSystem => format!(
            "{operations:.3} operations were in the system on average, and those waiting and running were {expected:.3}"
        ),
    }
}

/// Shows the CPU time that a hypervisor took, on an agent's host if one is named, and the remedy.
pub fn show_stolen(share: f64, host: Option<&str>) -> String {
    format!(
        "the hypervisor gave {} % of the CPU time{} to other machines; take a machine whose CPUs are its own, or another hour",
        (1000.0 * share).round() / 10.0,
        show_host(host)
    )
}

/// Shows how long a load thread waited for its turn.
pub fn show_turn(connections: u32, ready_share: f64, cpu_share: f64) -> String {
    format!(
        "a load thread with {connections} connections was ready to run for {:.0} % of the time and had a CPU for {:.1} %",
        100.0 * ready_share,
        100.0 * cpu_share
    )
}
