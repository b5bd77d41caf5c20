//! YCSB's command line, which it prints to stderr: clients, target, workload.
//!
//! Main type: [`Command`]. Invariant: only values on the command line are used, except YCSB's own default of one client.

/// The settings on the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The value of `-threads`, or 1, YCSB's default.
    pub threads: u64,
    /// The value of `-target`, operations per second; `None` if operations follow each other at once.
    pub target_per_s: Option<f64>,
    /// The workload: `ycsb-a` for `workloads/workloada`, `ycsb-load` for the load phase.
    pub workload: Option<String>,
    /// The value of `recordcount`.
    pub records: Option<u64>,
}

impl Command {
    /// Parses a line such as `Command line: -db ... -P workloads/workloada -threads 8 -t`; `None` for another line.
    pub fn of_line(line: &str) -> Option<Self> {
        let arguments = match line.split_once("Command line:") {
            Some((_, arguments)) => arguments,
            None => line.split_once("ycsb.Client ").filter(|(before, _)| before.contains("java"))?.1,
        };
        let mut command = Command { threads: 1, target_per_s: None, workload: None, records: None };
        let mut is_load = false;
        let mut words = arguments.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "-load" => is_load = true,
                "-threads" => command.property("threadcount", words.next()),
                "-target" => command.property("target", words.next()),
                "-P" => command.workload = words.next().map(workload_of),
                "-p" => match words.next().and_then(|property| property.split_once('=')) {
                    Some(("dotransactions", value)) => is_load = value == "false",
                    Some((name, value)) => command.property(name, Some(value)),
                    None => {}
                },
                _ => {}
            }
        }
        if is_load {
            command.workload = Some("ycsb-load".to_owned());
        }
        Some(command)
    }

    fn property(&mut self, name: &str, value: Option<&str>) {
        let number = value.and_then(|value| value.parse::<u64>().ok()).filter(|number| *number > 0);
        match (name, number) {
            ("threadcount", Some(threads)) => self.threads = threads,
            ("target", Some(target)) => self.target_per_s = Some(target as f64),
            ("recordcount", Some(records)) => self.records = Some(records),
            _ => {}
        }
    }
}

/// Returns `ycsb-a` and so on for YCSB's own workloads, else the file's name.
fn workload_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.strip_prefix("workload") {
        Some(letter @ ("a" | "b" | "c" | "d" | "e" | "f")) => format!("ycsb-{letter}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_target_and_workload_are_read() {
        let line = "Command line: -db site.ycsb.db.JdbcDBClient -P workloads/workloadb -threads 8 -target 500 -p recordcount=1000 -s -t";
        let command = Command::of_line(line).unwrap();
        assert_eq!((command.threads, command.target_per_s), (8, Some(500.0)));
        assert_eq!((command.workload.as_deref(), command.records), (Some("ycsb-b"), Some(1000)));
        let load =
            Command::of_line("/usr/bin/java -cp x site.ycsb.Client -load -P own.properties -p threadcount=2").unwrap();
        assert_eq!((load.threads, load.workload.as_deref()), (2, Some("ycsb-load")));
        assert_eq!(Command::of_line("[OVERALL], RunTime(ms), 10"), None);
        assert_eq!(Command::of_line("Command line: -P mine -t").unwrap().threads, 1);
    }
}
