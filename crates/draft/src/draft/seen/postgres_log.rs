//! Reads PostgreSQL's log: as CSV, as JSON, and as text with any prefix.
//!
//! Main functions: [`read_csv`], [`read_json`], [`read_text`].

use super::collector::{Call, Takes};
use super::lines::{LINE_BYTES_MOST, Lines};
use crate::units::times::parse_time;

/// Indices of the columns of a CSV log, in the order of "Using CSV-Format Log Output" in PostgreSQL's manual.
const DATABASE: usize = 2;
const SESSION: usize = 5;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;

/// The origin of a message.
#[derive(Debug, Default, Clone, Copy)]
struct Whose<'a> {
    session: &'a str,
    database: &'a str,
}

/// Returns whether a line belongs to a CSV log.
pub fn is_csv_line(line: &str) -> bool {
    let is_of_severity = |severity: &str| line.contains(&format!(",{severity},"));
    time_of(line).is_some() && ["LOG", "ERROR", "FATAL", "WARNING"].into_iter().any(is_of_severity)
}

/// Returns the time with which a line begins.
fn time_of(line: &str) -> Option<i64> {
    let end = line.char_indices().nth(26).map_or(line.len(), |(end, _)| end);
    let clock = line[..end].find(|letter: char| {
        letter != ' ' && letter != '-' && letter != ':' && letter != '.' && !letter.is_ascii_digit()
    });
    parse_time(line[..clock.unwrap_or(end)].trim_end()).map(|time| time.us)
}

/// Takes in a CSV log, and returns the number of statements.
pub fn read_csv(lines: &mut Lines<'_>, database: &str, collector: &mut dyn Takes) -> std::io::Result<u64> {
    let mut taken = 0;
    let (mut record, mut is_open) = (String::new(), false);
    while let Some(line) = lines.next()? {
        if !record.is_empty() {
            record.push('\n');
        }
        record += &line;
        // A field that continues on the next line has an odd number of quotes so far.
        is_open ^= line.matches('"').count() % 2 == 1;
        if is_open && record.len() < LINE_BYTES_MOST {
            continue;
        }
        is_open = false;
        let fields = fields_of(&record);
        record.clear();
        let field = |place: usize| fields.get(place).map_or("", String::as_str);
        let own = field(DATABASE);
        if !database.is_empty() && own != database && !own.is_empty() {
            continue;
        }
        let whose = Whose { session: field(SESSION), database: own };
        taken += take((field(MESSAGE), field(DETAIL)), time_of(field(0)), whose, collector);
    }
    Ok(taken)
}

fn fields_of(record: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = record.chars().peekable();
    let mut is_quoted = false;
    while let Some(letter) = letters.next() {
        let last = fields.len() - 1;
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields[last].push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            letter => fields[last].push(letter),
        }
    }
    fields
}

/// Takes in a JSON log, and returns the number of statements.
pub fn read_json(lines: &mut Lines<'_>, database: &str, collector: &mut dyn Takes) -> std::io::Result<u64> {
    let mut taken = 0;
    while let Some(line) = lines.next()? {
        let Ok(entry) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        let field = |name: &str| entry.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        let own = field("dbname");
        if database.is_empty() || own == database || own.is_empty() {
            let whose = Whose { session: field("session_id"), database: own };
            taken += take((field("message"), field("detail")), time_of(field("timestamp")), whose, collector);
        }
    }
    Ok(taken)
}

/// Returns where the message of a line begins, and the severity before it: `LOG:  ` and the like.
pub fn severity_at(line: &str) -> Option<(usize, &'static str)> {
    ["LOG", "DETAIL", "ERROR", "STATEMENT", "HINT", "WARNING", "FATAL", "CONTEXT", "NOTICE"].into_iter().find_map(
        |severity| {
            let at = line.find(&format!("{severity}:  "))?;
            let is_word = line[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
            is_word.then_some((at + severity.len() + 3, severity))
        },
    )
}

/// Takes in a text log, and returns the number of statements.
pub fn read_text(lines: &mut Lines<'_>, database: &str, collector: &mut dyn Takes) -> std::io::Result<u64> {
    /// A message that may continue on the next line.
    #[derive(Default)]
    struct Entry {
        message: String,
        detail: String,
        at_us: Option<i64>,
        session: String,
        database: String,
        is_detail: bool,
    }
    let take_entry = |entry: &Entry, collector: &mut dyn Takes| {
        if !database.is_empty() && !entry.database.is_empty() && entry.database != database {
            return 0;
        }
        let whose = Whose { session: &entry.session, database: &entry.database };
        take((&entry.message, &entry.detail), entry.at_us, whose, collector)
    };
    let mut taken = 0;
    let mut entry = Entry::default();
    while let Some(line) = lines.next()? {
        let is_going_on = line.starts_with('\t');
        match severity_at(&line).filter(|_| !is_going_on) {
            Some((from, "DETAIL")) => (entry.is_detail, entry.detail) = (true, line[from..].to_owned()),
            Some((from, severity)) => {
                taken += take_entry(&entry, collector);
                let message = if severity == "LOG" { line[from..].to_owned() } else { String::new() };
                let Whose { session, database } = whose_prefix(&line[..from]);
                let (session, database) = (session.to_owned(), database.to_owned());
                entry = Entry { message, at_us: time_of(&line), session, database, ..Entry::default() };
            }
            None => {
                let to = if entry.is_detail { &mut entry.detail } else { &mut entry.message };
                if !to.is_empty() && to.len() < LINE_BYTES_MOST {
                    *to += "\n";
                    *to += line.trim_start_matches('\t');
                }
            }
        }
    }
    Ok(taken + take_entry(&entry, collector))
}

/// Returns the origin that the prefix of a line gives by `log_line_prefix`: the process in brackets (`[%p]`) or the session (`%c`), and `user@database`.
fn whose_prefix(prefix: &str) -> Whose<'_> {
    let is_process = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bracketed = prefix
        .split('[')
        .skip(1)
        .filter_map(|rest| rest.split_once(']'))
        .map(|(inner, _)| inner.split('-').next().unwrap_or(inner));
    let is_hex = |text: &str| (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = || {
        prefix.split(|letter: char| letter.is_whitespace() || "[](),=".contains(letter)).filter(|word| !word.is_empty())
    };
    // A time has colons, and its fraction a date before it; a session id has one dot and is hexadecimal on both sides.
    let is_session = |word: &&str| {
        word.split_once('.').is_some_and(|(start, process)| is_hex(start) && is_hex(process) && start.len() == 8)
    };
    let session = words().find(is_session).or_else(|| bracketed.clone().find(|text| is_process(text)));
    let database = words().find_map(|word| word.split_once('@')).map(|(_, database)| database.trim_end_matches(':'));
    Whose { session: session.unwrap_or_default(), database: database.unwrap_or_default() }
}

/// Takes in a message if it reports an executed statement, and returns the number of statements.
fn take((message, detail): (&str, &str), at_us: Option<i64>, whose: Whose<'_>, collector: &mut dyn Takes) -> u64 {
    collector.pass_time(at_us);
    let (seconds, rest) = match message.strip_prefix("duration: ").and_then(|rest| rest.split_once(" ms")) {
        Some((number, rest)) => (number.trim().parse::<f64>().ok().map(|ms| ms / 1e3), rest.trim_start()),
        None => (None, message),
    };
    // Fetching further rows of a cursor is logged with the text of the statement that opened it.
    let executed = || {
        let (name, sql) = rest.strip_prefix("execute ")?.split_once(": ")?;
        (!name.starts_with("fetch from ")).then_some(sql)
    };
    let Some(sql) = rest.strip_prefix("statement: ").or_else(executed) else { return 0 };
    let parameters = parameters_of(detail);
    // One message may contain several statements.
    let mut taken = 0;
    for sql in super::script::statements_of(sql, collector.grammar()) {
        let Whose { session, database } = whose;
        collector.take(&Call { sql, parameters: &parameters, at_us, rows: None, seconds, session, database });
        taken += 1;
    }
    taken
}

/// Returns the values of `parameters: $1 = 'a', $2 = NULL`.
fn parameters_of(detail: &str) -> Vec<Option<String>> {
    let list = detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: "));
    let Some(mut rest) = list else { return Vec::new() };
    let mut values = Vec::new();
    while let Some((_, value)) = rest.split_once(" = ") {
        if let Some(quoted) = value.strip_prefix('\'') {
            let mut text = String::new();
            let mut letters = quoted.char_indices().peekable();
            let mut end = quoted.len();
            while let Some((at, letter)) = letters.next() {
                if letter != '\'' {
                    text.push(letter);
                } else if letters.next_if(|(_, next)| *next == '\'').is_some() {
                    text.push('\'');
                } else {
                    end = at + 1;
                    break;
                }
            }
            values.push(Some(text));
            rest = &quoted[end..];
        } else {
            values.push(None);
            rest = value;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_tell_the_session_and_the_database() {
        let whose = |prefix| {
            let Whose { session, database } = whose_prefix(prefix);
            (session, database)
        };
        assert_eq!(whose("2026-11-26 06:22:55.250 UTC [123] LOG:  "), ("123", ""));
        assert_eq!(whose("2026-11-26 06:22:55.250 UTC [123-7] me@shop LOG:  "), ("123", "shop"));
        assert_eq!(whose("2026-11-26 06:22:55 UTC:127.0.0.1(5000):me@shop:[77]:LOG:  "), ("77", "shop"));
        assert_eq!(whose("1795674175.250 [9] LOG:  "), ("9", ""), "a time in seconds is no session");
        assert_eq!(whose("2026-11-26 06:22:55.250 UTC 65f1a2b3.3039 LOG:  "), ("65f1a2b3.3039", ""));
        assert_eq!(whose("LOG:  "), ("", ""));
    }

    #[test]
    fn parameters_are_read_with_nulls_and_quotes() {
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(
            parameters_of("parameters: $1 = 'a, $2 = ''b''', $2 = NULL, $3 = ''"),
            [value("a, $2 = 'b'"), None, value("")]
        );
        assert_eq!(parameters_of("something else"), []);
    }
}
