//! The lines of YCSB's output: `[READ], Operations, 500` or the same as JSON, raw times, status lines, and the command line.
//!
//! Main type: [`Output`]. Invariant: a line that begins like one of YCSB's and does not continue like one is an error
//! and never skipped; other lines, which drivers print, are skipped.

use std::collections::BTreeMap;

use serde_json::Value;

use super::command::Command;
use super::section::Section;
use super::status::Status;
use crate::import::source::{ImportError, SourceFile, shortened};

/// The content of an output file.
#[derive(Debug, Default)]
pub struct Output {
    /// Sections in the order of the file.
    pub sections: Vec<(String, Section)>,
    /// Raw times in microseconds, by section.
    pub raw: BTreeMap<String, Vec<u64>>,
    /// Version of YCSB; `None` if it is not printed.
    pub version: Option<String>,
    /// The command line; `None` if it is not in the file.
    pub command: Option<Command>,
    /// The status lines.
    pub status: Vec<Status>,
}

const REMEDY: &str = "the file is torn, or was changed; copy it again, or leave it out";

/// Parses a file.
pub fn read(file: &SourceFile) -> Result<Output, ImportError> {
    let mut output = Output::default();
    let mut raw_section: Option<String> = None;
    let mut at = 0;
    for (number, line) in file.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("[ {") || trimmed.starts_with("[{") || trimmed.starts_with('{') {
            return json(file, number, at, output);
        }
        at += file.text[at..].find('\n').map_or(file.text.len() - at, |end| end + 1);
        if let Some(section) = raw_heading(line) {
            output.raw.entry(section.to_owned()).or_default();
            raw_section = Some(section.to_owned());
            continue;
        }
        if let Some(section) = raw_section.as_ref().filter(|section| line.starts_with(&format!("{section},"))) {
            let value = line.rsplit(',').next().and_then(|value| value.trim().parse().ok());
            let Some(value) = value.filter(|_| line.split(',').count() == 3) else {
                return Err(file.error(number, format!("\"{}\" is no raw time", shortened(line)), REMEDY));
            };
            output.raw.entry(section.clone()).or_default().push(value);
            continue;
        }
        let Some((section, rest)) = heading(line) else {
            other_line(line, &mut output);
            continue;
        };
        let entry = rest.rsplit_once(',').map(|(name, value)| (name.trim(), value.trim()));
        let is_taken = entry.is_some_and(|(name, value)| push(&mut output, section, name, value));
        if !is_taken {
            return Err(file.error(number, format!("\"{}\" has no figure at its end", shortened(line)), REMEDY));
        }
    }
    file.check_ended()?;
    Ok(output)
}

/// Returns the section of `READ latency raw data: op, timestamp(ms), latency(us)`.
fn raw_heading(line: &str) -> Option<&str> {
    line.strip_suffix(" latency raw data: op, timestamp(ms), latency(us)")
}

/// Splits `[READ], ...` into section and rest.
fn heading(line: &str) -> Option<(&str, &str)> {
    let inside = line.strip_prefix('[')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_% .".contains(c);
    let (section, rest) = inside.split_once("],").unwrap_or((inside, ""));
    let is_torn = rest.is_empty() && !section.is_empty() && section.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    (section.chars().all(is_name) && (inside.contains("],") || is_torn)).then_some((section, rest))
}

fn push(output: &mut Output, section: &str, name: &str, value: &str) -> bool {
    let place = output.sections.iter().position(|(known, _)| known == section).unwrap_or_else(|| {
        output.sections.push((section.to_owned(), Section::default()));
        output.sections.len() - 1
    });
    // The heading of the summary of raw times has the value -1.
    name.starts_with("Below is a summary") || output.sections[place].1.push(name, value)
}

/// Processes a line of stderr, which may have been kept with the output.
fn other_line(line: &str, output: &mut Output) {
    if let Some(version) = line.strip_prefix("YCSB Client ") {
        output.version = Some(version.trim().to_owned());
    } else if let Some(command) = Command::of_line(line) {
        output.command = Some(command);
    } else {
        output.status.extend(Status::of_line(line));
    }
}

/// Parses the JSON form: an array of objects, or objects one after the other, from this line on.
fn json(file: &SourceFile, first_line: usize, from: usize, mut output: Output) -> Result<Output, ImportError> {
    let values = serde_json::Deserializer::from_str(&file.text[from..]).into_iter::<Value>();
    let mut entries: Vec<Value> = Vec::new();
    for value in values {
        match value {
            Ok(Value::Array(items)) => entries.extend(items),
            Ok(other) => entries.push(other),
            Err(error) if entries.is_empty() || error.is_eof() => {
                let line = first_line + error.line().saturating_sub(1);
                return Err(file.error(line, format!("the JSON is not whole: {error}"), REMEDY));
            }
            // Text printed after the measurements.
            Err(_) => break,
        }
    }
    for (place, entry) in entries.iter().enumerate() {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let value = entry.get("value").map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let is_taken = match (text("metric"), text("measurement"), value) {
            (Some(section), Some(name), Some(value)) => push(&mut output, section, name, &value),
            _ => false,
        };
        if !is_taken {
            let found =
                format!("entry {} is no {{metric, measurement, value}}: {}", place + 1, shortened(&entry.to_string()));
            return Err(file.error(first_line, found, REMEDY));
        }
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile { name: "out.txt".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn text_and_json_tell_the_same() {
        let text = "YCSB Client 0.17.0\nCommand line: -t -threads 2\nadding shard\n[OVERALL], RunTime(ms), 1000\n[READ], Operations, 5\n";
        let json = "[ {\n  \"metric\" : \"OVERALL\", \"measurement\" : \"RunTime(ms)\", \"value\" : 1000\n}, {\n \"metric\":\"READ\",\
                    \"measurement\":\"Operations\",\"value\":5 } ]\n";
        let (text, json) = (read(&file(text)).unwrap(), read(&file(json)).unwrap());
        assert_eq!(text.sections, json.sections);
        assert_eq!((text.version.as_deref(), text.command.unwrap().threads), (Some("0.17.0"), 2));
        let objects = "{\"metric\":\"OVERALL\",\"measurement\":\"RunTime(ms)\",\"value\":1000}\n{\"metric\":\"READ\",\
                       \"measurement\":\"Operations\",\"value\":5}\n";
        assert_eq!(read(&file(objects)).unwrap().sections, json.sections);
    }

    #[test]
    fn torn_lines_are_named() {
        for (text, place) in [
            ("[OVERALL], RunTime(ms), 10\n[READ], Oper", "out.txt:2: "),
            ("[OVERALL], RunTime(ms), 10\n[READ], Operations, 12", "out.txt:2: the last line ends within"),
            ("[OVERALL], RunTime(ms), 10\n[REA", "out.txt:2: "),
            ("READ latency raw data: op, timestamp(ms), latency(us)\nREAD,17,3\nREAD,1\n", "out.txt:3: "),
            ("[ {\"metric\":\"READ\",", "out.txt:1: the JSON is not whole"),
            ("[ {\"metric\":\"READ\"} ]\n", "out.txt:1: entry 1"),
        ] {
            let error = read(&file(text)).unwrap_err().to_string();
            assert!(error.starts_with(place), "{error}");
        }
    }

    #[test]
    fn what_drivers_print_is_left_alone() {
        let output = read(&file("[main] INFO pool - started\n[2026-01-01 10:00] connected\nTime 3\n")).unwrap();
        assert!(output.sections.is_empty());
    }
}
