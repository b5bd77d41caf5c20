//! The log of transactions (`-l`): `client transaction time script epoch microseconds [lag] [retries]` for each.
//!
//! Main type: [`Log`]. Invariant: every line is one transaction that succeeded, failed or was skipped; times are exact.

use std::collections::BTreeMap;

use super::summary::{SKIPPED, Summary};
use crate::import::Repetition;
use crate::import::source::{ImportError, SourceFile, shortened};
use crate::measurement::{ClientMeasurement, IntervalMeasurement, OperationMeasurement};
use crate::trial::Arrivals;
use crate::units::show_utc;

const TORN: &str = "the log is torn, or was changed; copy it again, or leave it out";

/// A line of the log.
#[derive(Debug, Clone, PartialEq)]
struct Transaction {
    client: u64,
    script: usize,
    /// End of the transaction since 1970, in microseconds.
    done_us: u64,
    /// Time in microseconds, or the reason why there is none.
    outcome: Result<u64, &'static str>,
    lag_us: Option<u64>,
}

/// The transactions of a run, of all its threads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Log {
    transactions: Vec<Transaction>,
}

/// Returns whether a file is a log of pgbench: its first line is numbers, possibly with the word for a failed transaction among them.
pub fn is_log(file: &SourceFile) -> bool {
    let Some(first) = file.text.lines().next() else { return false };
    let words: Vec<&str> = first.split_whitespace().collect();
    let numbers = words.iter().filter(|word| word.parse::<u64>().is_ok()).count();
    words.len() >= 6 && numbers + 1 >= words.len()
}

impl Log {
    /// Reads the files of a run.
    ///
    /// # Errors
    /// The first line that does not have the right form.
    pub fn read(files: &[&SourceFile], summary: Option<&Summary>) -> Result<Self, ImportError> {
        let mut transactions = Vec::new();
        for file in files {
            file.check_ended()?;
            for (number, line) in file.lines() {
                let has_lag = has_lag(file, number, line, summary)?;
                let Some(transaction) = Transaction::of_line(line, has_lag) else {
                    return Err(file.error(number, format!("\"{}\" is no transaction", shortened(line)), TORN));
                };
                transactions.push(transaction);
            }
        }
        transactions.sort_by_key(|transaction| transaction.done_us);
        Ok(Log { transactions })
    }

    /// Returns the number of transactions that succeeded.
    pub fn completed(&self) -> u64 {
        self.transactions.iter().filter(|transaction| transaction.outcome.is_ok()).count() as u64
    }

    /// Returns the number of transactions that failed or were skipped.
    pub fn failed(&self) -> u64 {
        self.transactions.len() as u64 - self.completed()
    }

    /// Returns the start of the first transaction since 1970, in microseconds.
    fn start_us(&self) -> u64 {
        let begin = |each: &Transaction| each.done_us.saturating_sub(each.outcome.unwrap_or(0));
        self.transactions.iter().map(begin).min().unwrap_or(0)
    }

    /// Fills in all that a log says; the length of the run comes from the summary, if there is one.
    pub fn fill(&self, repetition: &mut Repetition, summary: Option<&Summary>) {
        let is_scheduled = self.transactions.iter().any(|transaction| transaction.lag_us.is_some());
        if is_scheduled {
            repetition.arrivals = Arrivals::Poisson;
        }
        let start_us = self.start_us();
        let end_us = self.transactions.last().map_or(start_us, |last| last.done_us);
        let logged_s = (end_us - start_us) as f64 / 1e6;
        let measured_s = summary.map(Summary::measured_s).filter(|seconds| *seconds > 0.0).unwrap_or(logged_s);
        let several = self.transactions.iter().any(|transaction| transaction.script > 0);
        let clients = self.clients(start_us);
        if summary.is_none() {
            repetition.tell("load.clients", clients.len() as u64);
            repetition.note(
                "without its summary, the run is taken to last from the first transaction of the log to the last",
            );
        }
        let measurement = &mut repetition.measurement;
        for transaction in &self.transactions {
            let name = match (several, summary) {
                (true, Some(summary)) => summary.script(transaction.script),
                (true, None) => format!("script-{}", transaction.script),
                (false, _) => "transaction".to_owned(),
            };
            transaction.count(measurement.operations.entry(name).or_default());
            if let Err(reason) = transaction.outcome {
                *measurement.errors.entry(reason.to_owned()).or_default() += 1;
            }
        }
        (measurement.measured_s, measurement.total_s) = (measured_s, measured_s);
        measurement.started = show_utc(start_us / 1_000_000);
        measurement.clients = clients;
        measurement.series = self.series(start_us, is_scheduled);
    }

    /// Returns the measurement of each client.
    fn clients(&self, start_us: u64) -> Vec<ClientMeasurement> {
        let mut clients: BTreeMap<u64, ClientMeasurement> = BTreeMap::new();
        for transaction in &self.transactions {
            let client = clients.entry(transaction.client).or_default();
            match transaction.outcome {
                Ok(_) => client.completed += 1,
                Err(_) => client.failed += 1,
            }
            client.elapsed_s = transaction.done_us.saturating_sub(start_us) as f64 / 1e6;
        }
        clients.into_values().collect()
    }

    /// Returns the seconds of the run; their response times are known if transactions were scheduled.
    fn series(&self, start_us: u64, is_scheduled: bool) -> Vec<IntervalMeasurement> {
        let mut seconds: Vec<(IntervalMeasurement, u128)> = Vec::new();
        for transaction in &self.transactions {
            let place = (transaction.done_us.saturating_sub(start_us) / 1_000_000) as usize;
            // A log that claims to span years is not worth its memory.
            while seconds.len() <= place && seconds.len() < 100_000 {
                let end_s = seconds.len() as f64 + 1.0;
                seconds.push((IntervalMeasurement { end_s, ..IntervalMeasurement::default() }, 0));
            }
            let last = seconds.len() - 1;
            let (interval, all_us) = &mut seconds[place.min(last)];
            interval.scheduled += 1;
            match transaction.outcome {
                Ok(time_us) => {
                    interval.completed += 1;
                    *all_us += u128::from(time_us);
                    interval.response_time_max_s = interval.response_time_max_s.max(time_us as f64 / 1e6);
                }
                Err(_) => interval.failed += 1,
            }
        }
        let with_times = |(interval, all_us): (IntervalMeasurement, u128)| match is_scheduled {
            true if interval.completed > 0 => {
                let response_time_mean_s = all_us as f64 / 1e6 / interval.completed as f64;
                IntervalMeasurement { response_time_mean_s, ..interval }
            }
            true => interval,
            false => IntervalMeasurement { response_time_max_s: 0.0, ..interval },
        };
        seconds.into_iter().map(with_times).collect()
    }
}

/// Returns whether the seventh number is the schedule lag: of eight numbers it is; of seven, the summary decides whether it is the lag or the retries.
fn has_lag(file: &SourceFile, number: usize, line: &str, summary: Option<&Summary>) -> Result<bool, ImportError> {
    match (line.split_whitespace().count(), summary) {
        (8, _) => Ok(true),
        (7, Some(summary)) if summary.is_scheduled() != (summary.tries != 1) => Ok(summary.is_scheduled()),
        (7, Some(summary)) => {
            let remedy = "give the summary of this log's own run";
            let told = if summary.is_scheduled() { "both -R and --max-tries" } else { "neither -R nor --max-tries" };
            Err(file.error(
                number,
                format!("the seventh number is a lag or retries, and the summary tells {told}"),
                remedy,
            ))
        }
        (7, None) => {
            let remedy = "give the summary of the run too: it tells -R and --max-tries";
            Err(file.error(number, "the seventh number can be the schedule lag or the retries", remedy))
        }
        _ => Ok(false),
    }
}

impl Transaction {
    fn of_line(line: &str, has_lag: bool) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [client, _, time, script, epoch_s, fraction_us, more @ ..] = &words[..] else { return None };
        let number = |word: &str| word.parse::<u64>().ok();
        let outcome = match *time {
            "skipped" => Err(SKIPPED),
            "failed" => Err("a failure that pgbench does not name"),
            "serialization" => Err("serialization failure"),
            "deadlock" => Err("deadlock failure"),
            time => Ok(number(time)?),
        };
        (more.len() <= 2 && more.iter().all(|word| number(word).is_some())).then_some(())?;
        Some(Transaction {
            client: number(client)?,
            script: usize::try_from(number(script)?).ok()?,
            done_us: number(epoch_s)?.checked_mul(1_000_000)?.checked_add(number(fraction_us)?)?,
            outcome,
            lag_us: if has_lag { Some(number(more.first()?)?) } else { None },
        })
    }

    fn count(&self, operation: &mut OperationMeasurement) {
        operation.scheduled += 1;
        let Ok(time_us) = self.outcome else {
            operation.failed += 1;
            return;
        };
        operation.completed += 1;
        match self.lag_us {
            Some(lag_us) => {
                operation.response_time.record(time_us * 1_000);
                operation.schedule_lag.record(lag_us * 1_000);
                operation.residence_time.record(time_us.saturating_sub(lag_us) * 1_000);
            }
            None => operation.residence_time.record(time_us * 1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduled_transaction_has_all_three_times() {
        let mut operation = OperationMeasurement::default();
        Transaction::of_line("0 199 2241 0 1175850568 995598 241", true).unwrap().count(&mut operation);
        Transaction::of_line("0 200 skipped 0 1175850569 0 9000", true).unwrap().count(&mut operation);
        assert_eq!((operation.scheduled, operation.completed, operation.failed), (2, 1, 1));
        assert_eq!(operation.response_time.max_ns(), 2_241_000);
        assert_eq!((operation.schedule_lag.max_ns(), operation.residence_time.max_ns()), (241_000, 2_000_000));
    }

    #[test]
    fn lines_of_another_form_are_refused() {
        for line in ["0 1 2 3 4", "0 1 x 3 4 5", "0 1 2 3 4 5 6 7 8", "a b c d e f"] {
            assert_eq!(Transaction::of_line(line, false), None, "{line}");
        }
        let file = SourceFile { name: "l.1".to_owned(), text: "0 1 2 0 1175850568 1 7\n".to_owned() };
        let error = Log::read(&[&file], None).unwrap_err().to_string();
        assert!(error.starts_with("l.1:1: the seventh number can be"), "{error}");
    }
}
