//! sysbench 1.0 and 1.1: report lines, histogram and summary of a run.
//!
//! Main function: [`read`]. Without `--rate` its times begin at sending; with it they begin when an event was put into its
//! queue, which makes them response times. Invariant: ignored errors are failed operations.

use super::source::{ImportError, SourceFile, after, figure, leading_figure, shortened};
use super::times::{Counted, ms, stated};
use super::{Repetition, Tool};
use crate::imported::TimeKind;
use crate::measurement::{IntervalMeasurement, OperationMeasurement};
use crate::reason::Reason;
use crate::trial::Arrivals;

const TORN: &str = "give all that sysbench prints to stdout, of a run that ended; leave this file out if it did not";
/// Heading of the histogram that `--histogram` prints.
const HISTOGRAM: &str = "Latency histogram (values are in milliseconds)";

/// The figures of the lines of a file.
#[derive(Debug, Default, PartialEq)]
struct Lines {
    version: Option<String>,
    threads: Option<f64>,
    rate_per_s: Option<f64>,
    intervals: Vec<(f64, f64)>,
    histogram: Vec<(u64, u64)>,
    is_sql: bool,
    ignored_errors: f64,
    reconnects: f64,
    total_s: Option<f64>,
    events: Option<f64>,
    /// Smallest, largest and sum of the times, in milliseconds.
    min_ms: Option<f64>,
    max_ms: Option<f64>,
    sum_ms: Option<f64>,
    /// A percentage and its value in milliseconds.
    percentile: Option<(f64, f64)>,
    fatal: Option<String>,
}

/// Reads the output of a run.
pub fn read(file: &SourceFile) -> Result<Repetition, ImportError> {
    let lines = Lines::of(file)?;
    if lines.version.is_none() && lines.threads.is_none() {
        let remedy = "sysbench names its version and its number of threads first; is it another tool's output?";
        return Err(file.error(1, format!("\"{}\" is not how sysbench begins", first_text(file)), remedy));
    }
    let mut repetition = Repetition::of(Tool::Sysbench, file);
    repetition.from().version.clone_from(&lines.version);
    if let Some(threads) = lines.threads {
        repetition.tell("load.clients", threads as u64);
    }
    if let Some(rate) = lines.rate_per_s {
        repetition.tell("load.rate", rate as u64);
        repetition.arrivals = Arrivals::Poisson;
    }
    repetition.measurement.series = lines.series();
    let (Some(total_s), Some(events)) = (lines.total_s, lines.events) else {
        let Some(fatal) = lines.fatal else {
            return Err(file.error(
                file.last_line(),
                "the summary is missing (total time, total number of events)",
                TORN,
            ));
        };
        // A failed trial is an outcome too.
        repetition.measurement.invalid_because.push(ended_with(&fatal));
        return Ok(repetition);
    };
    file.check_ended()?;
    if events > 0.0 && lines.sum_ms.is_none() {
        return Err(file.error(file.last_line(), "the times are missing (Latency (ms), sum)", TORN));
    }
    lines.fill(&mut repetition, total_s, events as u64);
    Ok(repetition)
}

fn ended_with(fatal: &str) -> Reason {
    Reason::ToolEnded { tool: "sysbench".to_owned(), message: fatal.to_owned() }
}

fn first_text(file: &SourceFile) -> String {
    shortened(file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default())
}

impl Lines {
    fn of(file: &SourceFile) -> Result<Self, ImportError> {
        let mut lines = Lines::default();
        let mut in_histogram = false;
        for (number, line) in file.lines() {
            if !line.starts_with("FATAL:") && !line.starts_with("ALERT:") {
                file.check_numbers(number, line)?;
            }
            if line.starts_with(HISTOGRAM) {
                in_histogram = true;
                continue;
            }
            if in_histogram {
                match line.split_once('|') {
                    Some((value, rest)) => {
                        let count = rest.trim().trim_start_matches('*').trim().parse().ok();
                        let Some((value, count)) = figure(value).zip(count) else {
                            return Err(file.error(
                                number,
                                format!("\"{}\" is no line of a histogram", shortened(line)),
                                TORN,
                            ));
                        };
                        lines.histogram.push((ms(value), count));
                        continue;
                    }
                    None if line.contains("distribution") => continue,
                    None => in_histogram = false,
                }
            }
            if line.starts_with('[') && line.contains("thds:") {
                let Some(interval) = interval(line) else {
                    return Err(file.error(number, format!("\"{}\" is no report line", shortened(line)), TORN));
                };
                lines.intervals.push(interval);
            } else {
                lines.take(line);
            }
        }
        Ok(lines)
    }

    /// Processes a line that is a label and a figure.
    fn take(&mut self, line: &str) {
        if let Some(rest) = after(line, "sysbench ").filter(|_| self.version.is_none()) {
            self.version =
                rest.split_whitespace().next().filter(|word| leading_figure(word).is_some()).map(str::to_owned);
        }
        if let Some(message) = after(line, "FATAL:") {
            self.fatal.get_or_insert(message.to_owned());
        }
        self.is_sql |= after(line, "SQL statistics:").is_some();
        if let Some((percent, value)) = line.trim().split_once("th percentile:") {
            self.percentile = figure(percent).zip(figure(value));
        }
        let fields: [(&str, &mut Option<f64>); 7] = [
            ("Number of threads:", &mut self.threads),
            ("Target transaction rate:", &mut self.rate_per_s),
            ("total time:", &mut self.total_s),
            ("total number of events:", &mut self.events),
            ("min:", &mut self.min_ms),
            ("max:", &mut self.max_ms),
            ("sum:", &mut self.sum_ms),
        ];
        for (label, field) in fields {
            if let Some(value) = after(line, label).and_then(leading_figure) {
                field.get_or_insert(value);
            }
        }
        // Version 1.1 has this label.
        if let Some(elapsed_s) = after(line, "time elapsed:").and_then(leading_figure) {
            self.total_s.get_or_insert(elapsed_s);
        }
        for (label, count) in [("ignored errors:", &mut self.ignored_errors), ("reconnects:", &mut self.reconnects)] {
            *count += after(line, label).and_then(leading_figure).unwrap_or(0.0);
        }
    }

    /// Returns the report lines as intervals; their response times stay 0, because the lines have only a percentile.
    fn series(&self) -> Vec<IntervalMeasurement> {
        let mut before_s = 0.0;
        let interval = |(end_s, per_s): &(f64, f64)| {
            let completed = (per_s * (end_s - before_s)).round() as u64;
            before_s = *end_s;
            IntervalMeasurement { end_s: *end_s, scheduled: completed, completed, ..IntervalMeasurement::default() }
        };
        self.intervals.iter().map(interval).collect()
    }

    fn fill(&self, repetition: &mut Repetition, total_s: f64, events: u64) {
        let failed = self.ignored_errors as u64;
        let kind = if self.rate_per_s.is_some() { TimeKind::ResponseTime } else { TimeKind::ResidenceTime };
        let mut operation = OperationMeasurement {
            scheduled: events.saturating_add(failed),
            completed: events,
            failed,
            ..OperationMeasurement::default()
        };
        let seconds = |milliseconds: Option<f64>| milliseconds.filter(|value| *value > 0.0).map(|value| value / 1e3);
        let mean_s = self.sum_ms.filter(|_| events > 0).map(|sum_ms| sum_ms / 1e3 / events as f64);
        let (min_s, max_s) = (seconds(self.min_ms), seconds(self.max_ms));
        let counted = Counted { values: self.histogram.clone(), mean_s, min_s, max_s };
        let is_whole = counted.count() == events;
        if events > 0 && is_whole {
            let histogram = counted.histogram();
            if kind == TimeKind::ResponseTime {
                operation.response_time = histogram
            } else {
                operation.residence_time = histogram
            }
            repetition
                .note("times are rebuilt from its histogram, which is printed to the microsecond with steps of 2 %");
        } else if events > 0 {
            let quantiles =
                self.percentile.iter().filter(|(_, ms)| *ms > 0.0).map(|(percent, ms)| (percent / 100.0, ms / 1e3));
            operation.stated.insert(kind, stated(mean_s, min_s, max_s, quantiles.collect()));
            repetition.note("it keeps one percentile and no histogram; run it with --histogram to have all of them");
        }
        if counted.count() > 0 && !is_whole {
            repetition.note("the histogram counts another number of events than the summary and is left out");
        }
        let name = if self.is_sql { "transaction" } else { "event" };
        let measurement = &mut repetition.measurement;
        (measurement.measured_s, measurement.total_s) = (total_s, total_s);
        measurement.operations.insert(name.to_owned(), Box::new(operation));
        if failed > 0 {
            measurement.errors.insert("an error that sysbench ignored and does not name".to_owned(), failed);
        }
        if self.reconnects > 0.0 {
            measurement.invalid_because.push(Reason::Reconnects { reconnects: self.reconnects as u64 });
        }
        if let Some(fatal) = &self.fatal {
            measurement.invalid_because.push(ended_with(fatal));
        }
        measurement.carried = self.rate_per_s.map(|_| events);
        repetition.note(
            "it does not tell whether reads found anything, how many records were carried, or which script was run",
        );
        if kind == TimeKind::ResidenceTime {
            repetition.note(
                "threads wait for their answers and times begin at sending: what waits behind a slow answer is in no time \
                 (coordinated omission), and response times are not known; --rate would tell them",
            );
        }
    }
}

/// Parses `[ 2s ] thds: 4 tps: 1605.79 qps: ...` to the end in seconds and the rate; uses eps if there is no tps.
fn interval(line: &str) -> Option<(f64, f64)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    let end_s = figure(inside.trim().strip_suffix('s')?)?;
    let rate = ["tps:", "eps:"].into_iter().find_map(|label| rest.split_once(label)).map(|(_, rate)| rate)?;
    // A torn line ends before its last figure.
    (rest.contains("lat (ms") && line.contains("):")).then_some(())?;
    Some((end_s, leading_figure(rate)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_lines_are_read_and_torn_ones_are_not() {
        let line = "[ 2s ] thds: 4 tps: 1605.79 qps: 3.00 (r/w/o: 1.00/2.00/0.00) lat (ms,95%): 4.91 err/s: 26.01 reconn/s: 0.00";
        assert_eq!(interval(line), Some((2.0, 1605.79)));
        assert_eq!(interval("[ 1s ] thds: 1 eps: 2400.00 lat (ms,95%): 0.33"), Some((1.0, 2400.0)));
        assert_eq!(interval("[ 2s ] thds: 4 tps: 16"), None);
    }

    #[test]
    fn a_run_that_died_is_an_invalid_trial_and_a_torn_file_an_error() {
        let head = "sysbench 1.0.20 (using system LuaJIT)\n\nNumber of threads: 2\n";
        let file = |text: String| SourceFile { name: "s.txt".to_owned(), text };
        let died = read(&file(format!("{head}FATAL: mysql_drv_query() returned error 1146\n"))).unwrap();
        assert_eq!(died.measurement.invalid_because.len(), 1);
        let torn = read(&file(format!("{head}[ 1s ] thds: 2 tps: 4.00 lat (ms,95%): 1.00\n"))).unwrap_err().to_string();
        assert!(torn.starts_with("s.txt:4: the summary is missing"), "{torn}");
        let foreign = read(&file("pgbench (15.18)\n".to_owned())).unwrap_err().to_string();
        assert!(foreign.starts_with("s.txt:1: \"pgbench (15.18)\" is not how sysbench begins"), "{foreign}");
        let line = read(&file(format!("{head}{HISTOGRAM}\n  0.01 |*** x\n"))).unwrap_err().to_string();
        assert!(line.starts_with("s.txt:5: "), "{line}");
    }
}
