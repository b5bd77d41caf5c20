//! The load line of a run, for sizing.
//!
//! Main function: [`load_line_of`]. Invariant: a figure that is not the load line that was asked for is never taken silently.

use std::path::Path;

use super::Failure;
use crate::finding::{Findings, LoadLine};
use crate::report;
use crate::report::factors::show_levels;
use crate::sizing::Figure;
use crate::store::Run;
use crate::trial::Levels;

/// The load line of a run, with its interval: the only one, or the one among these levels. Of a run without a search, the
/// highest throughput of a case, with a note.
///
/// # Errors
/// [`Failure::Usage`] when the run cannot be read, has several load lines that are not told apart, or none.
pub fn load_line_of(path: &Path, wanted: &[String], notes: &mut Vec<String>) -> Result<Figure, Failure> {
    let run = Run::open(path).map_err(Failure::usage)?;
    let (study, environment) = (&run.file.study, &run.file.environment);
    let name = path.display().to_string();
    let findings = report::analyse(&name, study, environment, &run.measurements);
    notes.extend(run.notes.iter().chain(&run.left_out).cloned());
    if findings.rehearsal {
        notes.push(format!("{name} is a rehearsal: its figures are not to be quoted"));
    }
    pick(&findings, &name, wanted, notes).map_err(Failure::refused)
}

fn pick(findings: &Findings, name: &str, wanted: &[String], notes: &mut Vec<String>) -> Result<Figure, String> {
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
        notes.push(format!("the load line of {name} was not verified by trials at it"));
    }
    match line.ci95.and_then(|[low, high]| Figure::between(rate, low.min(rate), high.max(rate))) {
        Some(figure) => Ok(figure),
        None => {
            notes.push(format!("the load line of {name} has no interval"));
            Ok(Figure::exact(rate))
        }
    }
}

/// Without a search: the case with the highest throughput.
fn best_case(findings: &Findings, name: &str, wanted: &[String], notes: &mut Vec<String>) -> Result<Figure, String> {
    let cases = findings.cases.iter().filter(|case| agrees(&case.levels, wanted));
    let best =
        cases.filter_map(|case| Some((case, case.throughput_per_s.mean?))).max_by(|(_, a), (_, b)| a.total_cmp(b));
    let (case, mean) = best
        .ok_or_else(|| format!("{name} has no valid trial to take a rate from; run it again, or give --load-line"))?;
    notes.push(format!(
        "{name} has no load line: the throughput of {} is taken, which knows no bound on response times; a study with [goal] finds one",
        show_levels(&case.levels)
    ));
    let interval = case.throughput_per_s.ci95.and_then(|[low, high]| Figure::between(mean, low, high));
    Ok(interval.unwrap_or(Figure::exact(mean)))
}

/// Whether levels are those that were asked for.
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
