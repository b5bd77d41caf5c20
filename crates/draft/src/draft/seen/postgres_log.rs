//! PostgreSQL's log: as CSV, as JSON, and as text with any prefix.
//!
//! Main functions: [`read_csv`], [`read_json`], [`read_text`].

use super::collector::{Call, Collector};
use super::lines::{LINE_BYTES_MOST, Lines};
use crate::units::times::parse_time;

/// Places in a line of CSV, as "Using CSV-Format Log Output" of PostgreSQL's manual counts them.
const DATABASE: usize = 2;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
/// Whether a line is one of a log in CSV.
pub fn is_csv_line(line: &str) -> bool {
    let is_of_severity = |severity: &str| line.contains(&format!(",{severity},"));
    time_of(line).is_some() && ["LOG", "ERROR", "FATAL", "WARNING"].into_iter().any(is_of_severity)
}

/// The time that a line begins with.
fn time_of(line: &str) -> Option<i64> {
    let end = line.char_indices().nth(26).map_or(line.len(), |(end, _)| end);
    let clock = line[..end].find(|letter: char| {
        letter != ' ' && letter != '-' && letter != ':' && letter != '.' && !letter.is_ascii_digit()
    });
    parse_time(line[..clock.unwrap_or(end)].trim_end()).map(|time| time.us)
}

/// Takes in a log in CSV; how many statements.
pub fn read_csv(lines: &mut Lines<'_>, database: &str, collector: &mut Collector) -> std::io::Result<u64> {
    let mut taken = 0;
    let (mut record, mut is_open) = (String::new(), false);
    while let Some(line) = lines.next()? {
        if !record.is_empty() {
            record.push('\n');
        }
        record += &line;
        // A field that goes on over lines has an odd number of quotes so far.
        is_open ^= line.matches('"').count() % 2 == 1;
        if is_open && record.len() < LINE_BYTES_MOST {
            continue;
        }
        is_open = false;
        let fields = fields_of(&record);
        record.clear();
        let field = |place: usize| fields.get(place).map_or("", String::as_str);
        if field(DATABASE) != database && !field(DATABASE).is_empty() {
            continue;
        }
        taken += take(field(MESSAGE), field(DETAIL), time_of(field(0)), collector);
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

/// Takes in a log in JSON; how many statements.
pub fn read_json(lines: &mut Lines<'_>, database: &str, collector: &mut Collector) -> std::io::Result<u64> {
    let mut taken = 0;
    while let Some(line) = lines.next()? {
        let Ok(entry) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        let field = |name: &str| entry.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        if field("dbname") == database || field("dbname").is_empty() {
            taken += take(field("message"), field("detail"), time_of(field("timestamp")), collector);
        }
    }
    Ok(taken)
}

/// Where the message of a line begins, and what is before it: `LOG:  ` and the like.
pub fn severity_at(line: &str) -> Option<(usize, &'static str)> {
    ["LOG", "DETAIL", "ERROR", "STATEMENT", "HINT", "WARNING", "FATAL", "CONTEXT", "NOTICE"].into_iter().find_map(
        |severity| {
            let at = line.find(&format!("{severity}:  "))?;
            let is_word = line[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
            is_word.then_some((at + severity.len() + 3, severity))
        },
    )
}

/// Takes in a log as text; how many statements.
pub fn read_text(lines: &mut Lines<'_>, collector: &mut Collector) -> std::io::Result<u64> {
    /// A message that may go on.
    #[derive(Default)]
    struct Entry {
        message: String,
        detail: String,
        at_us: Option<i64>,
        is_detail: bool,
    }
    let mut taken = 0;
    let mut entry = Entry::default();
    while let Some(line) = lines.next()? {
        let is_going_on = line.starts_with('\t');
        match severity_at(&line).filter(|_| !is_going_on) {
            Some((from, "DETAIL")) => (entry.is_detail, entry.detail) = (true, line[from..].to_owned()),
            Some((from, severity)) => {
                taken += take(&entry.message, &entry.detail, entry.at_us, collector);
                let message = if severity == "LOG" { line[from..].to_owned() } else { String::new() };
                entry = Entry { message, at_us: time_of(&line), ..Entry::default() };
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
    Ok(taken + take(&entry.message, &entry.detail, entry.at_us, collector))
}

/// Takes in a message, where it tells of a statement that was executed; how many it tells of.
fn take(message: &str, detail: &str, at_us: Option<i64>, collector: &mut Collector) -> u64 {
    collector.pass_time(at_us);
    let (seconds, rest) = match message.strip_prefix("duration: ").and_then(|rest| rest.split_once(" ms")) {
        Some((number, rest)) => (number.trim().parse::<f64>().ok().map(|ms| ms / 1e3), rest.trim_start()),
        None => (None, message),
    };
    let executed = || rest.strip_prefix("execute ").and_then(|rest| rest.split_once(": ")).map(|(_, sql)| sql);
    let Some(sql) = rest.strip_prefix("statement: ").or_else(executed) else { return 0 };
    let parameters = parameters_of(detail);
    // One message may have several statements.
    let mut taken = 0;
    for sql in super::script::statements_of(sql, collector.grammar()) {
        collector.take(&Call { sql, parameters: &parameters, at_us, rows: None, seconds });
        taken += 1;
    }
    taken
}

/// The values of `parameters: $1 = 'a', $2 = NULL`.
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
    fn parameters_are_read_with_nulls_and_quotes() {
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(
            parameters_of("parameters: $1 = 'a, $2 = ''b''', $2 = NULL, $3 = ''"),
            [value("a, $2 = 'b'"), None, value("")]
        );
        assert_eq!(parameters_of("something else"), []);
    }
}
