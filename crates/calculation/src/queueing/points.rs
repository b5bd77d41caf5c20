//! Points: measurements at arrival rates (or with numbers of clients), from a run or from a user's file.
//!
//! Main type: [`Points`]. Invariant: every number in it has been checked; a file is refused with all its errors at once.

use crate::quote::quoted;
use std::collections::BTreeMap;
use std::fmt;

/// One measured point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// Arrivals per second, above 0; `None` for a closed loop.
    pub arrival_rate_per_s: Option<f64>,
    /// Mean time in seconds, above 0; response time or residence time, depending on the timer.
    pub mean_s: Option<f64>,
    /// Standard error of the mean in seconds, above 0.
    pub se_s: Option<f64>,
    /// Number of trials behind the standard error, 2 or more; with few trials the errors are pooled over the points.
    pub trials: Option<u32>,
    /// Quantiles, in ascending order.
    pub quantiles: Vec<QuantilePoint>,
    /// Number of workers, or of clients of a closed loop.
    pub workers: Option<u32>,
    /// Operations completed per second.
    pub throughput_per_s: Option<f64>,
}

/// A measured quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantilePoint {
    /// The quantile, in (0, 1).
    pub quantile: f64,
    /// Its value in seconds, above 0.
    pub value_s: f64,
    /// Its standard error in seconds, above 0; `None` when it is not known.
    pub se_s: Option<f64>,
}

/// Measured points, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Points(pub Vec<Point>);

/// All errors in a file of points; each sentence names place, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PointsError(pub Vec<String>);

impl fmt::Display for PointsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("\n"))
    }
}

/// The columns of a file of points.
pub const COLUMNS: &[&str] =
    &["arrival_rate", "mean_s", "se_s", "trials", "p50_s", "p90_s", "p99_s", "p999_s", "workers", "throughput"];

const QUANTILES: &[(&str, f64)] = &[("p50_s", 0.5), ("p90_s", 0.9), ("p99_s", 0.99), ("p999_s", 0.999)];

/// Largest number of errors of one file that are shown.
const ERRORS_MAX: usize = 20;

impl Points {
    /// Reads comma-separated values with a heading; `name` is the file's name in messages. Columns may be in any order;
    /// optional values may be left out as a column or empty in a row. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// All errors, each with line, column, value and remedy.
    pub fn from_csv(name: &str, text: &str) -> Result<Points, PointsError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let Some((heading_line, heading)) = lines.next() else {
            let remedy = "begin with the heading arrival_rate,mean_s and a line for each point";
            return Err(PointsError(vec![format!("{name}:1: the file is empty; {remedy}")]));
        };
        let columns =
            read_heading(heading).map_err(|what| PointsError(vec![format!("{name}:{heading_line}: {what}")]))?;
        let mut points = Vec::new();
        let mut errors = Vec::new();
        for (number, line) in lines {
            match read_row(&columns, line) {
                Ok(point) => points.push(point),
                Err(found) => errors.extend(found.into_iter().map(|what| format!("{name}:{number}: {what}"))),
            }
        }
        if points.is_empty() && errors.is_empty() {
            errors.push(format!("{name}:{heading_line}: there are no points; write a line for each arrival rate"));
        }
        if errors.len() > ERRORS_MAX {
            let more = errors.len() - ERRORS_MAX;
            errors.truncate(ERRORS_MAX);
            errors.push(format!("{name}: {more} more errors"));
        }
        if errors.is_empty() { Ok(Points(points)) } else { Err(PointsError(errors)) }
    }
}

/// Returns the columns in the order of the file.
fn read_heading(line: &str) -> Result<Vec<&'static str>, String> {
    let known = COLUMNS.join(", ");
    let mut columns = Vec::new();
    for written in cells(line) {
        let Some(column) = COLUMNS.iter().find(|column| **column == written) else {
            return Err(format!("unknown column \"{}\"; known columns are {known}", quoted(written)));
        };
        if columns.contains(column) {
            return Err(format!("column {column} stands there twice; remove one"));
        }
        columns.push(*column);
    }
    let has = |column| columns.contains(&column);
    if has("workers") && has("throughput") || has("arrival_rate") && has("mean_s") {
        return Ok(columns);
    }
    let missing = if has("arrival_rate") { "mean_s" } else { "arrival_rate" };
    Err(format!("column {missing} is missing; needed are arrival_rate and mean_s (or workers and throughput)"))
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"').trim())
}

fn read_row(columns: &[&'static str], line: &str) -> Result<Point, Vec<String>> {
    let written: Vec<&str> = cells(line).collect();
    if written.len() != columns.len() {
        let (found, expected) = (written.len(), columns.len());
        return Err(vec![format!("there are {found} values for {expected} columns; write {}", columns.join(","))]);
    }
    let mut errors = Vec::new();
    let mut values = BTreeMap::new();
    for (column, text) in columns.iter().zip(written) {
        match read_value(column, text) {
            Ok(Some(value)) => drop(values.insert(*column, value)),
            Ok(None) => {}
            Err(what) => errors.push(format!("column {column}: {what}")),
        }
    }
    let mut quantiles: Vec<QuantilePoint> = Vec::new();
    for (column, quantile) in QUANTILES {
        let Some(value_s) = values.get(column).copied() else { continue };
        if let Some(lower) = quantiles.last().filter(|lower| lower.value_s > value_s) {
            let below = lower.value_s;
            errors.push(format!(
                "column {column}: \"{value_s}\" is below the lower quantile ({below}); check the columns"
            ));
        }
        quantiles.push(QuantilePoint { quantile: *quantile, value_s, se_s: None });
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let value = |column| values.get(column).copied();
    Ok(Point {
        arrival_rate_per_s: value("arrival_rate"),
        mean_s: value("mean_s"),
        se_s: value("se_s"),
        trials: value("trials").map(|trials| trials as u32),
        quantiles,
        workers: value("workers").map(|workers| workers as u32),
        throughput_per_s: value("throughput"),
    })
}

/// Reads the value of a cell; `None` when it is empty and may be so.
fn read_value(column: &str, text: &str) -> Result<Option<f64>, String> {
    if text.is_empty() {
        return match column {
            "arrival_rate" => Err("there is no value; write arrivals per second, as in 800".to_owned()),
            "mean_s" => Err("there is no value; write seconds, as in 0.0066".to_owned()),
            _ => Ok(None),
        };
    }
    let (form, is_good): (&str, fn(f64) -> bool) = match column {
        "arrival_rate" => ("a rate above 0 per second, as in 800", |value| value > 0.0 && value < 1e12),
        "throughput" => ("completed per second, as in 799.5", |value| (0.0..1e12).contains(&value)),
        "workers" => {
            ("a whole number from 1 to 1,000,000", |value| value.fract() == 0.0 && (1.0..=1e6).contains(&value))
        }
        _ => ("a time above 0 in seconds, as in 0.0066", |value| value > 0.0 && value < 1e9),
    };
    let value = text.parse::<f64>().map_err(|_| format!("\"{}\" is not a number; write {form}", quoted(text)))?;
    if is_good(value) { Ok(Some(value)) } else { Err(format!("\"{}\" is out of range; write {form}", quoted(text))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_in_any_order_and_optional_ones_may_be_left_out() {
        let text = "\u{feff}# E1\nmean_s, arrival_rate,p90_s,workers\r\n0.0066,800,,10\n\n0.0026,50,0.004,10\n";
        let Points(points) = Points::from_csv("f.csv", text).unwrap();
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].arrival_rate_per_s, points[0].mean_s), (Some(800.0), Some(0.0066)));
        assert!(points[0].quantiles.is_empty());
        assert_eq!(points[1].quantiles, [QuantilePoint { quantile: 0.9, value_s: 0.004, se_s: None }]);
        assert_eq!((points[1].workers, points[1].se_s), (Some(10), None));
    }

    #[test]
    fn a_closed_loop_needs_workers_and_throughput_only() {
        let Points(points) = Points::from_csv("f.csv", "workers,throughput\n1,955.16\n").unwrap();
        assert_eq!((points[0].workers, points[0].throughput_per_s), (Some(1), Some(955.16)));
    }

    #[test]
    fn what_is_quoted_of_a_file_is_short() {
        let long = "9".repeat(100_000);
        for text in [format!("arrival_rate,mean_s\n1,{long}\n"), format!("arrival_rate,{long}\n1,1\n")] {
            let error = Points::from_csv("f.csv", &text).unwrap_err().to_string();
            assert!(error.starts_with("f.csv:") && error.len() < 1_000, "{} bytes", error.len());
        }
    }

    #[test]
    fn errors_name_line_column_value_and_remedy_all_at_once() {
        let text = "arrival_rate,mean_s,se_s,workers\n100,soon,1e-5,4\n200,0.003,0,4.5\n300,0.004\n";
        let errors = Points::from_csv("f.csv", text).unwrap_err();
        assert_eq!(
            errors.0,
            [
                "f.csv:2: column mean_s: \"soon\" is not a number; write a time above 0 in seconds, as in 0.0066",
                "f.csv:3: column se_s: \"0\" is out of range; write a time above 0 in seconds, as in 0.0066",
                "f.csv:3: column workers: \"4.5\" is out of range; write a whole number from 1 to 1,000,000",
                "f.csv:4: there are 2 values for 4 columns; write arrival_rate,mean_s,se_s,workers",
            ]
        );
    }

    #[test]
    fn headings_that_cannot_be_understood_are_refused() {
        let refused = |text: &str| Points::from_csv("f.csv", text).unwrap_err().to_string();
        assert!(refused("").starts_with("f.csv:1: the file is empty; begin with"));
        assert!(
            refused("rate,mean_s\n1,2")
                .starts_with("f.csv:1: unknown column \"rate\"; known columns are arrival_rate,")
        );
        assert!(refused("arrival_rate,throughput\n1,2").contains("column mean_s is missing"));
        assert!(refused("mean_s\n1").contains("column arrival_rate is missing"));
        assert!(refused("arrival_rate,mean_s,mean_s\n1,2,3").contains("column mean_s stands there twice"));
        assert!(refused("arrival_rate,mean_s\n").contains("there are no points"));
    }

    #[test]
    fn quantiles_that_fall_and_numbers_that_are_none_are_refused() {
        let text = "arrival_rate,mean_s,p50_s,p90_s\n1,1,2,1\nnan,1,1,1\ninf,,1,1\n";
        let errors = Points::from_csv("f.csv", text).unwrap_err().0;
        assert_eq!(errors.len(), 4);
        assert!(errors[0].contains("column p90_s: \"1\" is below the lower quantile (2)"), "{errors:?}");
        assert!(errors[1].contains("\"nan\" is out of range"), "{errors:?}");
        assert!(errors[3].contains("column mean_s: there is no value"), "{errors:?}");
    }
}
