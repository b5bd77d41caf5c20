//! Raw times: a user's file of single response times, one per line with its arrival rate, turned into points.
//!
//! Main type: [`RawTimes`]. Invariant: memory grows with the number of arrival rates, which is bounded, and not with the number of
//! times; standard errors are those of batch means, so that times must be in the order in which they were measured.

use super::points::{Point, Points, QuantilePoint};
use crate::quote::quoted;
use crate::statistics::batches::Batches;
use crate::units::NS_PER_S;

/// Largest number of arrival rates: each takes up to 1.2 MB.
const RATES_MOST: usize = 64;
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// The times of a file so far.
#[derive(Debug)]
pub struct RawTimes {
    /// Indexes of the arrival rate, the time and the workers in a line.
    columns: (usize, usize, Option<usize>),
    width: usize,
    rates: Vec<Rate>,
}

#[derive(Debug)]
struct Rate {
    per_s: f64,
    workers: Option<u32>,
    times: Batches,
}

impl RawTimes {
    /// Reads a heading; `None` unless it is a heading of raw times: `arrival_rate,time_s`, in any order, with `workers` or without.
    pub fn from_heading(line: &str) -> Option<Self> {
        let names: Vec<&str> = line.trim_start_matches('\u{feff}').trim().split(',').map(str::trim).collect();
        let place = |name| names.iter().position(|column| *column == name);
        let (rate, time, workers) = (place("arrival_rate")?, place("time_s")?, place("workers"));
        let width = 2 + usize::from(workers.is_some());
        (names.len() == width).then(|| RawTimes { columns: (rate, time, workers), width, rates: Vec::new() })
    }

    /// Reads a line. Empty lines and comments are skipped.
    ///
    /// # Errors
    /// A sentence with file, line, value and remedy.
    pub fn read_line(&mut self, name: &str, number: usize, line: &str) -> Result<(), String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let wrong = |what: String| format!("{name}:{number}: {what}");
        let mut cells = [""; 3];
        let mut count = 0;
        for cell in line.split(',') {
            if let Some(place) = cells.get_mut(count) {
                *place = cell.trim();
            }
            count += 1;
        }
        if count != self.width {
            return Err(wrong(format!("there are {count} values for {} columns", self.width)));
        }
        let positive = |place: usize, column: &str, form: &str| {
            let value = cells[place].parse::<f64>().ok().filter(|value| *value > 0.0 && *value < 1e9);
            value.ok_or_else(|| wrong(format!("column {column}: \"{}\" is not {form}", quoted(cells[place]))))
        };
        let per_s = positive(self.columns.0, "arrival_rate", "a rate above 0 per second, as in 800")?;
        let time_s = positive(self.columns.1, "time_s", "a time above 0 in seconds, as in 0.0066")?;
        let workers = self.columns.2.map(|place| positive(place, "workers", "a number from 1")).transpose()?;
        let workers = workers.map(|workers| workers as u32);
        // Lines of one rate are mostly adjacent, so that the last rate is checked first.
        let known = self.rates.iter().rposition(|rate| rate.per_s == per_s && rate.workers == workers);
        let place = match known {
            Some(place) => place,
            None if self.rates.len() < RATES_MOST => {
                self.rates.push(Rate { per_s, workers, times: Batches::default() });
                self.rates.len() - 1
            }
            None => return Err(wrong(format!("more than {RATES_MOST} arrival rates; join those close to each other"))),
        };
        self.rates[place].times.record((time_s * NS_PER_S) as u64);
        Ok(())
    }

    /// Returns the points of all rates, in the order in which the rates first appeared.
    ///
    /// # Errors
    /// When there are no times.
    pub fn points(&self, name: &str) -> Result<Points, String> {
        if self.rates.is_empty() {
            return Err(format!("{name}:1: there are no times; write a line for each operation"));
        }
        Ok(Points(self.rates.iter().map(point_of).collect()))
    }
}

fn point_of(rate: &Rate) -> Point {
    let all = rate.times.all();
    let quantile = |quantile: f64| QuantilePoint {
        quantile,
        value_s: all.quantile_ns(quantile) as f64 / NS_PER_S,
        se_s: rate.times.quantile_error_ns(quantile).map(|error_ns| error_ns / NS_PER_S),
    };
    Point {
        arrival_rate_per_s: Some(rate.per_s),
        mean_s: Some(all.mean_ns() / NS_PER_S).filter(|mean_s| *mean_s > 0.0),
        se_s: rate.times.mean_error_ns().map(|error_ns| error_ns / NS_PER_S),
        quantiles: QUANTILES.map(quantile).into_iter().filter(|point| point.value_s > 0.0).collect(),
        workers: rate.workers,
        ..Point::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Points, String> {
        let mut times = RawTimes::from_heading(lines[0]).unwrap();
        for (number, line) in lines.iter().enumerate().skip(1) {
            times.read_line("f.csv", number + 1, line)?;
        }
        times.points("f.csv")
    }

    #[test]
    fn times_of_a_rate_become_its_point_in_any_order_of_columns() {
        let points =
            read(&["time_s, arrival_rate", "0.002,100", "# a comment", "", "0.004,100", "0.01,200"]).unwrap().0;
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].arrival_rate_per_s, points[0].mean_s, points[0].se_s), (Some(100.0), Some(0.003), None));
        assert_eq!(points[1].quantiles.len(), 3);
    }

    #[test]
    fn other_headings_are_not_those_of_raw_times() {
        assert!(RawTimes::from_heading("arrival_rate,mean_s").is_none());
        assert!(RawTimes::from_heading("arrival_rate,time_s,mean_s").is_none());
        assert!(RawTimes::from_heading("workers,arrival_rate,time_s\n").is_some());
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        let heading = "arrival_rate,time_s";
        assert_eq!(
            read(&[heading, "100,soon"]).unwrap_err(),
            "f.csv:2: column time_s: \"soon\" is not a time above 0 in seconds, as in 0.0066"
        );
        assert!(read(&[heading, "100"]).unwrap_err().contains("there are 1 values for 2 columns"));
        assert!(read(&[heading, "0,1"]).unwrap_err().contains("column arrival_rate: \"0\""));
        assert!(read(&[heading]).unwrap_err().contains("there are no times"));
        let many: Vec<String> = (1..=65).map(|rate| format!("{rate},0.1")).collect();
        let lines: Vec<&str> = std::iter::once(heading).chain(many.iter().map(String::as_str)).collect();
        assert!(read(&lines).unwrap_err().contains("f.csv:66: more than 64 arrival rates"));
    }
}
