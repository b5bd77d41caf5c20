//! Reads a server's statement counters: `pg_stat_statements` and `performance_schema`.
//!
//! Main type: [`Counters`]. Invariant: the difference of two readings is the workload between them.

use std::collections::HashMap;

use super::Seen;
use super::collector::{Collector, OTHER_KIND, Ran, STATEMENT_BYTES_MOST};
use super::digest::Digests;
use crate::database::{DatabaseError, Session};
use crate::draft::catalogue::{MARK, Server};
use crate::draft::sql::{Grammar, Known, shape_of, verb_of};

/// The most statements that are read: those with the most calls.
const STATEMENTS_MOST: usize = 2_000;

/// The counters of a server at one point in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    /// The counts by the identity of the statement.
    counted: HashMap<String, Counted>,
    /// Seconds since the counters were reset, if the server reports it.
    seconds: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Counted {
    text: String,
    calls: f64,
    rows: f64,
    seconds: f64,
}

/// The reason for which there are no counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountersError {
    /// The server keeps no counters; the text tells how to enable them.
    Absent(String),
    /// The query failed.
    Database(DatabaseError),
}

impl Counters {
    /// Reads the counters.
    ///
    /// # Errors
    /// When the server keeps no counters, or the query fails.
    pub fn read(server: Server, session: &mut dyn Session) -> Result<Self, CountersError> {
        match server {
            Server::Postgres => postgres(session),
            Server::MySql | Server::MariaDb => mysql(session),
            Server::Sqlite => Err(CountersError::Absent("SQLite counts no statements".to_owned())),
        }
    }

    /// Returns the workload between an earlier reading and this one, over the given seconds; without an earlier reading, since the counters began.
    pub fn since(&self, earlier: Option<&Counters>, seconds: f64, server: Server, known: &[Known]) -> Seen {
        let mut collector = Collector::new(grammar_of(server));
        let digests = Digests::new(known);
        for (id, counted) in &self.counted {
            let before =
                earlier.and_then(|earlier| earlier.counted.get(id)).filter(|before| before.calls <= counted.calls);
            let less = |of: fn(&Counted) -> f64| of(counted) - before.map_or(0.0, of);
            let (calls, rows, took) = (less(|one| one.calls), less(|one| one.rows), less(|one| one.seconds));
            if calls < 1.0 || counted.text.contains(MARK) {
                continue;
            }
            if verb_of(&counted.text).is_none() || counted.text.len() > STATEMENT_BYTES_MOST {
                collector.pass_over(OTHER_KIND, calls);
                continue;
            }
            let (text, broken) = match server {
                Server::MySql | Server::MariaDb => match digests.expanded(&counted.text, rows / calls) {
                    Ok(text) => (text, None),
                    Err(why) => (counted.text.clone(), Some(why)),
                },
                _ => (counted.text.clone(), None),
            };
            let ran = Ran {
                text: String::new(),
                literals: Vec::new(),
                calls,
                rows: Some(rows),
                seconds: Some(took),
                samples: Vec::new(),
                broken,
            };
            collector.add(shape_of(&text, collector.grammar()), ran);
        }
        let span = if earlier.is_some() { Some(seconds) } else { self.seconds };
        Seen { seconds: span, ..collector.seen() }
    }
}

/// Returns the grammar of a server's statements.
pub fn grammar_of(server: Server) -> Grammar {
    match server {
        Server::Postgres => Grammar::POSTGRES,
        Server::MySql | Server::MariaDb => Grammar::MYSQL,
        Server::Sqlite => Grammar::SQLITE,
    }
}

fn postgres(session: &mut dyn Session) -> Result<Counters, CountersError> {
    const REMEDY: &str = "as a superuser write shared_preload_libraries = 'pg_stat_statements' into postgresql.conf, restart, and run CREATE EXTENSION \
         pg_stat_statements in this database; or name a log with --statements";
    let found = session.query(&format!(
        "SELECT quote_ident(n.nspname) AS {MARK} FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements'",
    ));
    let found = found.map_err(CountersError::Database)?;
    let Some(schema) = found.first().and_then(|row| row.first().cloned().flatten()) else {
        return Err(CountersError::Absent(format!(
            "the extension pg_stat_statements is not in this database; {REMEDY}"
        )));
    };
    // Before PostgreSQL 13 the column has another name, and before 14 the server does not report when the counters began.
    let read = |time: &str| {
        format!(
            "SELECT userid::text || '/' || queryid AS {MARK}, query, calls, rows, {time} / 1000 FROM {schema}.pg_stat_statements \
             WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND queryid IS NOT NULL \
             ORDER BY calls DESC LIMIT {STATEMENTS_MOST}"
        )
    };
    let rows = session.query(&read("total_exec_time")).or_else(|_| session.query(&read("total_time")));
    let rows = rows.map_err(|error| match error {
        DatabaseError::Refused { message, .. } => {
            CountersError::Absent(format!("pg_stat_statements cannot be read: {message}; {REMEDY}"))
        }
        error => CountersError::Database(error),
    })?;
    let since = session.query(&format!(
        "SELECT extract(epoch FROM now() - stats_reset) AS {MARK} FROM {schema}.pg_stat_statements_info"
    ));
    let counters = counted(&rows, since.ok().and_then(|rows| number(rows.first()?, 0)));
    let hidden = counters.counted.values().filter(|one| one.text == "<insufficient privilege>").count();
    if hidden > 0 && hidden == counters.counted.len() {
        return Err(CountersError::Absent(
            "pg_stat_statements shows this user no statements of others; GRANT pg_read_all_stats to it, or name a log with --statements".to_owned(),
        ));
    }
    Ok(counters)
}

fn mysql(session: &mut dyn Session) -> Result<Counters, CountersError> {
    const REMEDY: &str = "start the server with performance_schema=ON, or log its statements (SET GLOBAL slow_query_log=ON, long_query_time=0, in a quiet \
         hour) and name the log with --statements";
    let on = session.query(&format!("SELECT @@performance_schema AS {MARK}")).map_err(CountersError::Database)?;
    if on.first().and_then(|row| row.first().cloned().flatten()).as_deref() != Some("1") {
        return Err(CountersError::Absent(format!("performance_schema is off on this server; {REMEDY}")));
    }
    let rows = session.query(&format!(
        "SELECT DIGEST AS {MARK}, DIGEST_TEXT, COUNT_STAR, SUM_ROWS_SENT + SUM_ROWS_AFFECTED, SUM_TIMER_WAIT / 1e12 \
         FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = DATABASE() AND DIGEST IS NOT NULL \
         ORDER BY COUNT_STAR DESC LIMIT {STATEMENTS_MOST}"
    ));
    let rows = rows.map_err(|error| match error {
        DatabaseError::Refused { message, .. } => CountersError::Absent(format!(
            "performance_schema cannot be read: {message}; GRANT SELECT ON performance_schema.* to this user, or name a log with --statements"
        )),
        error => CountersError::Database(error),
    })?;
    let since = session.query(&format!(
        "SELECT VARIABLE_VALUE AS {MARK} FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Uptime'"
    ));
    Ok(counted(&rows, since.ok().and_then(|rows| number(rows.first()?, 0))))
}

fn counted(rows: &[Vec<Option<String>>], seconds: Option<f64>) -> Counters {
    let read = |row: &Vec<Option<String>>| {
        let id = row.first()?.clone()?;
        let text = row.get(1)?.clone()?;
        Some((
            id,
            Counted {
                text,
                calls: number(row, 2)?,
                rows: number(row, 3).unwrap_or(0.0),
                seconds: number(row, 4).unwrap_or(0.0),
            },
        ))
    };
    Counters { counted: rows.iter().filter_map(read).collect(), seconds }
}

fn number(row: &[Option<String>], place: usize) -> Option<f64> {
    row.get(place)?.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(calls: [u32; 2]) -> Vec<Vec<Option<String>>> {
        let row = |id: &str, text: &str, calls: u32| {
            [id.to_owned(), text.to_owned(), calls.to_string(), (2 * calls).to_string(), "0.5".to_owned()]
                .map(Some)
                .to_vec()
        };
        vec![row("1", "SELECT a FROM t WHERE b = $1", calls[0]), row("2", "SET x = 1", calls[1])]
    }

    #[test]
    fn what_ran_between_two_readings_is_their_difference() {
        let (earlier, later) = (counted(&rows([10, 3]), Some(99.0)), counted(&rows([25, 4]), Some(109.0)));
        let seen = later.since(Some(&earlier), 10.0, Server::Postgres, &[]);
        assert_eq!((seen.statements[0].calls, seen.statements[0].rows), (15.0, Some(30.0)));
        assert_eq!((seen.seconds, seen.passed_over), (Some(10.0), vec![(OTHER_KIND, 1.0)]));
        let all = later.since(None, 0.0, Server::Postgres, &[]);
        assert_eq!((all.statements[0].calls, all.seconds), (25.0, Some(109.0)));
        // Counters that were reset between the readings.
        let fresh = earlier.since(Some(&later), 10.0, Server::Postgres, &[]);
        assert_eq!(fresh.statements[0].calls, 10.0);
    }
}
