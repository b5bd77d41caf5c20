//! The load line of a run, for sizing.
//!
//! Main function: [`load_line_of`]. Invariant: a figure other than the requested load line is never used without a note.

use std::path::Path;

use serde::Serialize;

use super::Failure;
use crate::finding::{Findings, LoadLine};
use crate::report;
use crate::report::factors::show_levels;
use crate::said::said;
use crate::sizing::Figure;
use crate::store::{Run, RunNote};
use crate::trial::Levels;
use crate::units::show_bit_rate;

/// A note on a sizing for its reader. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum SizeNote {
    /// A note on the files of the run.
    #[error("{note}")]
    OfRun {
        /// The note.
        note: RunNote,
    },
    /// The run's sizes and repeats were shrunk.
    #[error("{run} is a rehearsal: its figures are not to be quoted")]
    Rehearsal {
        /// The run.
        run: String,
    },
    /// The load line rests on the search alone.
    #[error("the load line of {run} was not verified by trials at it")]
    NotVerified {
        /// The run.
        run: String,
    },
    /// No rate above the load line was refuted.
    #[error("the load line of {run} has no interval")]
    NoInterval {
        /// The run.
        run: String,
    },
    /// The run searched for no load line.
    #[error(
        "{run} has no load line: the throughput of {} is taken, which knows no bound on response times; a study with [goal] finds one",
        show_levels(levels)
    )]
    NoLoadLine {
        /// The run.
        run: String,
        /// Levels of the case.
        levels: Levels,
    },
    /// Sources produce more than their links carry.
    #[error(
        "a source makes {} and its link carries {}: {:.1} % of its blocks arrive in time, and its backlog grows",
        show_bit_rate(*made_bits_per_s),
        show_bit_rate(*carried_bits_per_s),
        100.0 * carried_share
    )]
    LinkTooSlow {
        /// Bit rate that a source produces.
        made_bits_per_s: f64,
        /// Bit rate that its link carries.
        carried_bits_per_s: f64,
        /// Share of its blocks that arrive in time.
        carried_share: f64,
    },
    /// Only links were described, and no server.
    #[error("nothing is told of the server, so that only what the sources' links carry is known")]
    LinksOnly {},
}

said!(SizeNote);

/// Returns the load line of a run with its interval: the only one, or the one at the wanted levels. For a run without a search it
/// returns the highest throughput of a case, with a note.
///
/// # Errors
/// [`Failure::Usage`] if the run cannot be read, or has no load line or several that the levels do not tell apart.
pub fn load_line_of(path: &Path, wanted: &[String], notes: &mut Vec<SizeNote>) -> Result<Figure, Failure> {
    let run = Run::open(path).map_err(Failure::usage)?;
    let (study, environment) = (&run.file.study, &run.file.environment);
    let name = path.display().to_string();
    let findings = report::analyse(&name, study, environment, &run.measurements);
    notes.extend(run.notes.iter().chain(&run.left_out).cloned().map(|note| SizeNote::OfRun { note }));
    if findings.rehearsal {
        notes.push(SizeNote::Rehearsal { run: name.clone() });
    }
    pick(&findings, &name, wanted, notes).map_err(Failure::refused)
}

fn pick(findings: &Findings, name: &str, wanted: &[String], notes: &mut Vec<SizeNote>) -> Result<Figure, String> {
    for each in wanted {
        if !each.contains('=') {
            return Err(format!("--where: \"{each}\" has no \"=\"; write setting=level, as in layout.name=star"));
        }
    }
    let lines: Vec<&LoadLine> = findings.load_lines.iter().filter(|line| agrees(&line.levels, wanted)).collect();
    if findings.load_lines.is_empty() {
        return best_case(findings, name, wanted, notes);
    }
    let line = match lines[..] {
        [line] => line,
        [] => return Err(format!("{name}: no load line among {}; {}", wanted.join(", "), listed(findings))),
        _ => {
            return Err(format!(
                "{name} has {} load lines; choose one with --where, {}",
                lines.len(),
                listed(findings)
            ));
        }
    };
    let Some(rate) = line.arrival_rate_per_s else {
        return Err(format!("{name}: its search found no load line ({}); run it with another bound", line.outcome));
    };
    if !line.verified {
        notes.push(SizeNote::NotVerified { run: name.to_owned() });
    }
    match line.ci95.and_then(|[low, high]| Figure::between(rate, low.min(rate), high.max(rate))) {
        Some(figure) => Ok(figure),
        None => {
            notes.push(SizeNote::NoInterval { run: name.to_owned() });
            Ok(Figure::exact(rate))
        }
    }
}

/// Returns the highest throughput of the cases, for a run without a search.
fn best_case(findings: &Findings, name: &str, wanted: &[String], notes: &mut Vec<SizeNote>) -> Result<Figure, String> {
    let cases = findings.cases.iter().filter(|case| agrees(&case.levels, wanted));
    let best =
        cases.filter_map(|case| Some((case, case.throughput_per_s.mean?))).max_by(|(_, a), (_, b)| a.total_cmp(b));
    let (case, mean) = best
        .ok_or_else(|| format!("{name} has no valid trial to take a rate from; run it again, or give --load-line"))?;
    notes.push(SizeNote::NoLoadLine { run: name.to_owned(), levels: case.levels.clone() });
    let interval = case.throughput_per_s.ci95.and_then(|[low, high]| Figure::between(mean, low, high));
    Ok(interval.unwrap_or(Figure::exact(mean)))
}

/// Returns whether the levels match the wanted ones.
fn agrees(levels: &Levels, wanted: &[String]) -> bool {
    wanted.iter().filter_map(|each| each.split_once('=')).all(|(setting, level)| {
        levels
            .get(setting.trim())
            .is_some_and(|value| value.as_str().map_or(value.to_string(), str::to_owned) == level.trim())
    })
}

fn listed(findings: &Findings) -> String {
    let levels: Vec<String> = findings.load_lines.iter().map(|line| show_levels(&line.levels)).collect();
    format!("there are those of: {}", levels.join("; "))
}
