//! Reads published summaries: a file of means, standard deviations and numbers of values.
//!
//! Main function: [`read`]. Invariant: a file is rejected with all its errors at once; none of its lines is skipped.

use std::fmt;

use super::sample::{Figures, Sample};
use crate::csv::cells;
use crate::metric::{METRICS, Metric};
use crate::statistics::rounding::{Printed, unit_of};
use crate::statistics::t_test::Summary;

/// The columns that a file must have.
pub const COLUMNS: &[&str] = &["machine", "case", "variant", "mean", "sd", "n"];
/// The columns that a file may have: the metric of each row, and the kind of operation, by which figures are drawn together.
pub const OPTIONAL: &[&str] = &["metric", "operation"];
/// The most errors of one file that are shown.
const ERRORS_MAX: usize = 20;

/// All errors of a file of summaries; each sentence names place, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SummariesError(pub Vec<String>);

impl fmt::Display for SummariesError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("\n"))
    }
}

/// Reads comma-separated values with a heading; `name` is the file's name in messages. Columns may be in any order; lines that begin with `#`
/// are comments. `metric` applies to rows without a metric of their own.
///
/// # Errors
/// All errors, each with line, column, value and remedy; or that no case has two variants.
pub fn read(name: &str, text: &str, metric: &'static Metric) -> Result<Vec<Sample>, SummariesError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let all = COLUMNS.join(",");
    let refuse = |line: usize, what: String| SummariesError(vec![format!("{name}:{line}: {what}")]);
    let Some((heading_line, heading)) = lines.next() else {
        return Err(refuse(1, format!("the file is empty; begin with the heading {all} and a line for each variant")));
    };
    let columns = read_heading(heading).map_err(|what| refuse(heading_line, what))?;
    let (mut samples, mut errors): (Vec<Sample>, Vec<String>) = Default::default();
    let mut places: Vec<usize> = Vec::new();
    for (number, line) in lines {
        match read_row(&columns, line, metric) {
            Err(found) => errors.extend(found.into_iter().map(|what| format!("{name}:{number}: {what}"))),
            Ok(sample) => {
                let same = |known: &Sample| known.is_alternative_to(&sample) && known.variant == sample.variant;
                if let Some(known) = samples.iter().position(same) {
                    let (variant, case, machine) = (&sample.variant, &sample.case, &sample.machine);
                    errors.push(format!(
                        "{name}:{number}: variant \"{variant}\" of case \"{case}\" on machine \"{machine}\" is in line {} \
                         already; remove one, or name another case or machine",
                        places[known]
                    ));
                }
                samples.push(sample);
                places.push(number);
            }
        }
    }
    let has_pair = samples.iter().enumerate().any(|(at, a)| samples[at + 1..].iter().any(|b| a.is_alternative_to(b)));
    if errors.is_empty() && !has_pair {
        let what = "no case has two variants on the same machine, so there is nothing to compare; write a line for each variant";
        errors.push(format!("{name}:{heading_line}: {what}"));
    }
    if errors.len() > ERRORS_MAX {
        let more = errors.len() - ERRORS_MAX;
        errors.truncate(ERRORS_MAX);
        errors.push(format!("{name}: {more} more errors"));
    }
    if errors.is_empty() { Ok(samples) } else { Err(SummariesError(errors)) }
}

/// Returns the columns in the order of the file.
fn read_heading(line: &str) -> Result<Vec<&'static str>, String> {
    let mut columns = Vec::new();
    for written in cells(line)? {
        let known = COLUMNS.iter().chain(OPTIONAL).find(|column| **column == written);
        let Some(column) = known else {
            let (needed, optional) = (COLUMNS.join(", "), OPTIONAL.join(" and "));
            return Err(format!("unknown column \"{written}\"; needed are {needed}, and there may be {optional}"));
        };
        if columns.contains(column) {
            return Err(format!("column {column} stands there twice; remove one"));
        }
        columns.push(*column);
    }
    match COLUMNS.iter().find(|column| !columns.contains(column)) {
        Some(missing) => Err(format!("column {missing} is missing; needed are {}", COLUMNS.join(","))),
        None => Ok(columns),
    }
}

fn read_row(columns: &[&'static str], line: &str, metric: &'static Metric) -> Result<Sample, Vec<String>> {
    let written = cells(line).map_err(|what| vec![what])?;
    if written.len() != columns.len() {
        let (found, expected) = (written.len(), columns.len());
        return Err(vec![format!("there are {found} values for {expected} columns; write {}", columns.join(","))]);
    }
    let cell = |column: &str| {
        columns.iter().position(|known| *known == column).map_or("", |place| written[place].as_str()).to_owned()
    };
    let mut errors = Vec::new();
    for column in ["machine", "case", "variant"] {
        if cell(column).is_empty() {
            errors.push(format!("column {column}: there is no value; write a name"));
        }
    }
    let mut number = |column: &str, form: &str, is_good: fn(f64) -> bool| {
        let text = cell(column);
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && is_good(value) => value,
            Ok(_) => {
                errors.push(format!("column {column}: \"{text}\" is out of range; write {form}"));
                f64::NAN
            }
            Err(_) => {
                errors.push(format!("column {column}: \"{text}\" is not a number; write {form}"));
                f64::NAN
            }
        }
    };
    let mean = number("mean", "the mean, as in 1010", |_| true);
    let sd = number("sd", "the standard deviation, 0 or more, as in 48", |value| value >= 0.0);
    let n = number("n", "the number of values, 2 or more, as in 40", |value| {
        value >= 2.0 && value.fract() == 0.0 && value < 1e9
    });
    let own = cell("metric");
    let metric = match (own.as_str(), Metric::named(&own)) {
        ("", _) => metric,
        (_, Some(own)) => own,
        (_, None) => {
            let known: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            errors.push(format!("column metric: unknown metric \"{own}\"; there are {}", known.join(", ")));
            metric
        }
    };
    if !errors.is_empty() {
        return Err(errors);
    }
    let printed = Printed {
        summary: Summary { mean, sd, n: n as u64 },
        mean_unit: unit_of(&cell("mean")).unwrap_or(0.0),
        sd_unit: unit_of(&cell("sd")).unwrap_or(0.0),
    };
    Ok(Sample {
        machine: cell("machine"),
        case: cell("case"),
        variant: cell("variant"),
        factor: String::new(),
        metric,
        operation: cell("operation"),
        figures: Figures::Summary(printed),
        noise: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Sample>, SummariesError> {
        read("f.csv", text, &METRICS[0])
    }

    #[track_caller]
    fn assert_refused(text: &str, says: &str) {
        let refused = read_text(text).map(|samples| samples.len()).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }

    const HEADING: &str = "machine,case,variant,mean,sd,n\n";

    #[test]
    fn columns_stand_in_any_order_and_metric_and_operation_may_be_given() {
        let text = "\u{feff}# B.1\nn,variant,case,machine,sd,mean,metric,operation\r\n40,json,\"A, READ\",main,48,1010,\
                    response_time_mean,READ\n40,eav,\"A, READ\",main,26.0,991,response_time_mean,READ\n";
        let samples = read_text(text).unwrap();
        assert_eq!((samples[0].case.as_str(), samples[0].metric.name), ("A, READ", "response_time_mean"));
        let printed = samples[1].printed();
        assert_eq!(
            (printed.summary.mean, printed.summary.n, printed.mean_unit, printed.sd_unit),
            (991.0, 40, 1.0, 0.1)
        );
    }

    #[test]
    fn every_mistake_names_line_value_and_remedy() {
        assert_refused("", "f.csv:1: the file is empty; begin with the heading machine,case,variant,mean,sd,n");
        assert_refused("machine,case,variant,mean,sd\n", "f.csv:1: column n is missing; needed are machine,case");
        assert_refused("machine,case,variant,mean,sd,n,p\n", "f.csv:1: unknown column \"p\"");
        assert_refused("machine,case,variant,mean,sd,n,n\n", "column n stands there twice");
        let row = |row: &str| format!("{HEADING}{row}\n");
        assert_refused(
            &row("m,c,v,1,1,1"),
            "f.csv:2: column n: \"1\" is out of range; write the number of values, 2 or more",
        );
        assert_refused(&row("m,c,v,1,1,2.5"), "column n: \"2.5\" is out of range");
        assert_refused(
            &row("m,c,v,1,-1,4"),
            "f.csv:2: column sd: \"-1\" is out of range; write the standard deviation, 0 or",
        );
        assert_refused(&row("m,c,v,soon,1,4"), "column mean: \"soon\" is not a number; write the mean");
        assert_refused(&row("m,c,v,inf,1,4"), "column mean: \"inf\" is out of range");
        assert_refused(&row("m,,v,1,1,4"), "column case: there is no value; write a name");
        assert_refused(&row("m,c,v,1,1"), "there are 5 values for 6 columns");
        assert_refused(&row("m,c,v,1,1,4"), "no case has two variants on the same machine");
        assert_refused(
            &row("m,c,v,1,1,4\nm,c,v,2,1,4"),
            "f.csv:3: variant \"v\" of case \"c\" on machine \"m\" is in line 2",
        );
        assert_refused(&format!("{HEADING}{}", "m,c,v,x,1,4\n".repeat(30)), "f.csv: 10 more errors");
    }
}
