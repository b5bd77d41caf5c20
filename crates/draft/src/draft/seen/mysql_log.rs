//! Reads the slow log and the general log of MySQL and MariaDB.
//!
//! Main functions: [`read_slow`], [`read_general`].

use super::collector::{Call, Takes};
use super::lines::{LINE_BYTES_MOST, Lines};
use crate::units::times::parse_time;

/// The facts that a slow log states about the next statement.
#[derive(Debug, Default)]
struct Header {
    at_us: Option<i64>,
    seconds: Option<f64>,
    rows: Option<f64>,
    schema: Option<String>,
    session: String,
}

/// Takes in a slow log, and returns the number of statements.
pub fn read_slow(lines: &mut Lines<'_>, database: &str, collector: &mut dyn Takes) -> std::io::Result<u64> {
    let (mut header, mut sql, mut taken) = (Header::default(), String::new(), 0);
    let mut schema: Option<String> = None;
    while let Some(line) = lines.next()? {
        if let Some(told) = line.strip_prefix("# ") {
            if !sql.is_empty() {
                taken += take_slow(&mut sql, &header, database, collector);
                header = Header { at_us: header.at_us, schema: schema.clone(), ..Header::default() };
            }
            read_header(told, &mut header);
            schema.clone_from(&header.schema);
        } else if let Some(used) = line.strip_prefix("use ") {
            schema = Some(used.trim_end_matches(';').trim_matches('`').to_owned());
            header.schema.clone_from(&schema);
        } else if let Some(stamp) = line.strip_prefix("SET timestamp=") {
            let seconds: Option<f64> = stamp.trim_end_matches(';').parse().ok();
            header.at_us = header.at_us.or(seconds.map(|seconds| (seconds * 1e6) as i64));
        } else if !line.contains("started with:")
            && !line.starts_with("Tcp port:")
            && !line.starts_with("Time  ")
            && sql.len() < LINE_BYTES_MOST
        {
            sql += &line;
            sql.push('\n');
        }
    }
    Ok(taken + take_slow(&mut sql, &header, database, collector))
}

fn take_slow(sql: &mut String, header: &Header, database: &str, collector: &mut dyn Takes) -> u64 {
    let text = std::mem::take(sql);
    let text = text.trim();
    let schema = header.schema.as_deref().unwrap_or_default();
    let is_other = !database.is_empty() && !schema.is_empty() && schema != database;
    if text.is_empty() || text.starts_with("# administrator") || is_other {
        return 0;
    }
    collector.take(&Call {
        sql: text,
        parameters: &[],
        at_us: header.at_us,
        rows: header.rows,
        seconds: header.seconds,
        session: &header.session,
        database: schema,
    });
    1
}

/// Reads a line behind `# `: `Query_time: 0.000123  Lock_time: 0.000  Rows_sent: 1  Rows_affected: 0`.
fn read_header(told: &str, header: &mut Header) {
    if let Some(time) = told.strip_prefix("Time: ") {
        header.at_us = parse_time(time.trim()).map(|time| time.us).or_else(|| short_time(time));
        return;
    }
    let words: Vec<&str> = told.split_whitespace().collect();
    for pair in words.windows(2) {
        let number = || pair[1].parse::<f64>().ok();
        match pair[0] {
            "Query_time:" => header.seconds = number(),
            // A statement either returns rows or changes some.
            "Rows_sent:" | "Rows_affected:" => {
                header.rows = Some(header.rows.unwrap_or(0.0) + number().unwrap_or(0.0));
            }
            "Id:" | "Thread_id:" => pair[1].clone_into(&mut header.session),
            "Schema:" if !pair[1].ends_with(':') => header.schema = Some(pair[1].to_owned()),
            _ => {}
        }
    }
}

/// Reads a time as MariaDB writes it, `261126  6:22:55`, in microseconds since 1970.
fn short_time(text: &str) -> Option<i64> {
    let mut words = text.split_whitespace();
    let (day, clock) = (words.next()?, words.next()?);
    let (year, month, day) = (day.get(0..2)?, day.get(2..4)?, day.get(4..6).filter(|_| day.len() == 6)?);
    let clock = if clock.len() == 7 { format!("0{clock}") } else { clock.to_owned() };
    parse_time(&format!("20{year}-{month}-{day} {clock}")).map(|time| time.us)
}

/// The line that begins an entry of a general log.
struct GeneralEntry<'a> {
    time: &'a str,
    session: &'a str,
    command: &'a str,
    argument: &'a str,
}

fn general_entry(line: &str) -> Option<GeneralEntry<'_>> {
    let mut at = 0;
    for field in line.split('\t') {
        let mut words = field.split_whitespace();
        let session = words.next().unwrap_or_default();
        let is_id = !session.is_empty() && session.bytes().all(|byte| byte.is_ascii_digit());
        let command = field.trim_start().split_once(' ').map(|(_, command)| command);
        const COMMANDS: [&str; 12] = [
            "Query",
            "Execute",
            "Prepare",
            "Connect",
            "Quit",
            "Init DB",
            "Statistics",
            "Field List",
            "Ping",
            "Close stmt",
            "Reset stmt",
            "Change user",
        ];
        if let (true, Some(command)) = (is_id && at <= 64, command.filter(|command| COMMANDS.contains(command))) {
            let argument = line.get(at + field.len()..).unwrap_or_default();
            let (time, argument) = (line[..at].trim(), argument.strip_prefix('\t').unwrap_or(argument));
            return Some(GeneralEntry { time, session, command, argument });
        }
        at += field.len() + 1;
    }
    None
}

/// Returns whether a line begins an entry of a general log.
pub fn is_general_line(line: &str) -> bool {
    general_entry(line).is_some()
}

/// Takes in a general log, and returns the number of statements.
pub fn read_general(lines: &mut Lines<'_>, collector: &mut dyn Takes) -> std::io::Result<u64> {
    let (mut sql, mut at_us, mut is_statement, mut taken) = (String::new(), None, false, 0);
    let mut session = String::new();
    let take = |sql: &mut String, at_us: Option<i64>, session: &str, collector: &mut dyn Takes| {
        let text = std::mem::take(sql);
        if text.trim().is_empty() {
            return 0;
        }
        collector.take(&Call { sql: text.trim(), at_us, session, ..Call::default() });
        1
    };
    while let Some(line) = lines.next()? {
        if let Some(GeneralEntry { time, session: own, command, argument }) = general_entry(&line) {
            taken += take(&mut sql, at_us, &session, collector);
            own.clone_into(&mut session);
            is_statement = matches!(command, "Query" | "Execute");
            // A line without a time belongs to the same second as the line before it.
            at_us = parse_time(time).map(|time| time.us).or_else(|| short_time(time)).or(at_us);
            sql = if is_statement { argument.to_owned() } else { String::new() };
        } else if is_statement && sql.len() < LINE_BYTES_MOST {
            sql.push('\n');
            sql += &line;
        }
    }
    Ok(taken + take(&mut sql, at_us, &session, collector))
}
