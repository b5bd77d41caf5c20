//! The form of a trace: lines of JSON. First the head, then each statement before its first use, then the events in the order of time, as
//! `[microseconds, session, statement, [values]]`, and last the number of events, with a checksum over all lines before.
//!
//! Main function: [`Trace::read`]. Invariant: a trace that was cut off or changed is refused.

use std::io::{BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use super::{
    Does, EVENTS_MOST, Event, LINE_BYTES_MOST, STATEMENTS_MOST, Trace, TracedStatement, VALUES_BYTES_MOST, Value,
    append_value,
};
use crate::fault::{Fault, fault};
use crate::operation::KindNames;
use crate::statement::parameters_of;

/// The version of the form.
pub const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`VERSION`].
    pub loadline_trace: u32,
    /// The files that the trace was made from; for people.
    #[serde(default)]
    pub from: Vec<String>,
    /// When the trace was made; for people.
    #[serde(default)]
    pub written: String,
}

/// The line of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its number, from 0, in the order of the lines.
    pub statement: u32,
    /// As in [`TracedStatement`].
    pub name: String,
    /// As in [`TracedStatement`].
    pub sql: String,
    /// As in [`TracedStatement`].
    pub does: Does,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Number of events.
    pub events: u64,
    /// Checksum over all lines before.
    pub sum: String,
}

impl Event {
    /// Appends the line of the event, without its end; the values are a JSON list.
    ///
    /// # Errors
    /// Never: writing to a vector does not fail.
    pub fn write(&self, values: &[u8], to: &mut Vec<u8>) -> std::io::Result<()> {
        write!(to, "[{},{},{},", self.at_us, self.session, self.statement)?;
        to.extend_from_slice(values);
        to.push(b']');
        Ok(())
    }
}

/// A checksum over lines: FNV-1a of 64 bits over their bytes, each with a line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Sum(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    /// Adds a line.
    pub fn add(&mut self, line: &[u8]) {
        for byte in line.iter().chain(b"\n") {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the checksum so far, as 16 hexadecimal digits.
    pub fn shown(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// The form in which a line of an event is read.
type EventLine = (u64, u32, u32, Vec<Value>);

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// The first error in the trace, with its line.
    pub fn read(file: &mut dyn BufRead) -> Result<Self, Fault> {
        let mut reading = Reading { trace: Trace::default(), sum: Sum::default(), end: None, number: 0 };
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = file.take(LINE_BYTES_MOST as u64 + 1).read_until(b'\n', &mut line);
            let length = length
                .map_err(|error| fault!("it cannot be read: {error}"; "name a file written by loadline capture"))?;
            if length == 0 {
                break;
            }
            reading.number += 1;
            if length > LINE_BYTES_MOST {
                let mib = LINE_BYTES_MOST >> 20;
                return Err(
                    fault!("line {} has more than {mib} MiB", reading.number; "name a file written by loadline capture"),
                );
            }
            let content = line.strip_suffix(b"\n").unwrap_or(&line);
            let number = reading.number;
            reading.take(content).map_err(|fault| fault.about(format!("line {number}")))?;
        }
        reading.finish()
    }
}

/// A trace in the course of being read.
struct Reading {
    trace: Trace,
    sum: Sum,
    end: Option<End>,
    /// Number of the current line, from 1.
    number: u64,
}

impl Reading {
    fn take(&mut self, line: &[u8]) -> Result<(), Fault> {
        if self.end.is_some() {
            return Err(fault!("something stands behind the end of the trace"; "capture it again"));
        }
        if self.number == 1 {
            self.head(line)?;
        } else if line.first() == Some(&b'[') {
            self.event(line)?;
        } else if line.starts_with(b"{\"statement\"") {
            self.statement(line)?;
        } else {
            let end: End = serde_json::from_slice(line).map_err(not_understood)?;
            self.end = Some(end);
            return Ok(());
        }
        self.sum.add(line);
        Ok(())
    }

    fn head(&self, line: &[u8]) -> Result<(), Fault> {
        let not_one = || fault!("it is no trace of loadline"; "make one with: loadline capture LOG --out TRACE");
        let head: Head = serde_json::from_slice(line).map_err(|_| not_one())?;
        match head.loadline_trace {
            VERSION => Ok(()),
            other => Err(
                fault!("it is a trace of version {other}, and this loadline reads {VERSION}"; "capture it again, or take the loadline that wrote it"),
            ),
        }
    }

    fn statement(&mut self, line: &[u8]) -> Result<(), Fault> {
        let Named { statement, name, sql, does } = serde_json::from_slice(line).map_err(not_understood)?;
        let statements = &mut self.trace.statements;
        if statement as usize != statements.len() {
            return Err(fault!("statement {statement} comes where {} should", statements.len(); "capture it again"));
        }
        if statements.len() == STATEMENTS_MOST {
            return Err(fault!("it has more than {STATEMENTS_MOST} different statements"; "capture less at once"));
        }
        if name.is_empty() || name.chars().any(char::is_control) || KindNames::is_taken(&name) {
            return Err(fault!("\"{name}\" is no name for a statement"; "take another one"));
        }
        let parameters = parameters_of(&sql) as u32;
        statements.push(TracedStatement { name, sql, parameters, does });
        Ok(())
    }

    fn event(&mut self, line: &[u8]) -> Result<(), Fault> {
        let (at_us, session, statement, values): EventLine = serde_json::from_slice(line).map_err(not_understood)?;
        let trace = &mut self.trace;
        let known = trace.statements.get(statement as usize);
        let known = known.ok_or_else(|| fault!("statement {statement} is not known"; "name it on a line before"))?;
        if values.len() != known.parameters as usize {
            let (wanted, given) = (known.parameters, values.len());
            return Err(fault!("statement {statement} has {wanted} parameters and {given} values"; "capture it again"));
        }
        if trace.events.last().is_some_and(|last| last.at_us > at_us) {
            return Err(fault!("{at_us} µs is before the time of the line above"; "sort the lines by their times"));
        }
        if at_us > TIME_US_MOST {
            return Err(fault!("{at_us} µs is more than 30 days after the beginning"; "capture less at once"));
        }
        if trace.events.len() == EVENTS_MOST || trace.values.len() > VALUES_BYTES_MOST {
            return Err(fault!("more ran than {EVENTS_MOST} statements with 4 GiB of values"; "capture less at once"));
        }
        let values_at = trace.values.len() as u64;
        for value in &values {
            append_value(value, &mut trace.values).map_err(|what| fault!("{what}"; "capture it again"))?;
        }
        trace.events.push(Event { at_us, session, statement: statement as u16, values_at });
        Ok(())
    }

    fn finish(self) -> Result<Trace, Fault> {
        let Reading { mut trace, sum, end, .. } = self;
        let Some(end) = end else {
            return Err(fault!("its end is missing, so that something of it is"; "capture it again"));
        };
        let (events, own) = (trace.events.len() as u64, sum.shown());
        if end.events != events || end.sum != own {
            let what = format!(
                "it was changed: {events} statements with the sum {own}, and its end says {} with {}",
                end.events, end.sum
            );
            return Err(Fault::new(what, "capture it again"));
        }
        if events == 0 {
            return Err(fault!("nothing ran in it"; "capture a log in which statements are"));
        }
        trace.sum = own;
        Ok(trace)
    }
}

/// 30 days: the largest time that is accepted.
const TIME_US_MOST: u64 = 30 * 86_400 * 1_000_000;

fn not_understood(error: serde_json::Error) -> Fault {
    fault!("it is not understood: {error}"; "capture it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a trace of these lines, with its end.
    fn trace_of(lines: &[&str]) -> String {
        let mut sum = Sum::default();
        lines.iter().for_each(|line| sum.add(line.as_bytes()));
        let events = lines.iter().filter(|line| line.starts_with('[')).count() as u64;
        let end = serde_json::to_string(&End { events, sum: sum.shown() }).unwrap();
        format!("{}\n{end}\n", lines.join("\n"))
    }

    fn read(text: &str) -> Result<Trace, String> {
        Trace::read(&mut text.as_bytes()).map_err(String::from)
    }

    const HEAD: &str = r#"{"loadline_trace":1}"#;
    const ONE: &str = r#"{"statement":0,"name":"select t","sql":"SELECT a FROM t WHERE b = ?","does":"reads"}"#;

    #[test]
    fn a_trace_is_read_and_one_that_was_changed_is_not() {
        let whole = trace_of(&[HEAD, ONE, "[0,7,0,[1]]", "[12,7,0,[\"x\"]]"]);
        let trace = read(&whole).unwrap();
        assert_eq!(trace.statements[0].parameters, 1);
        assert_eq!(
            trace.events.iter().map(|event| (event.at_us, event.session)).collect::<Vec<_>>(),
            [(0, 7), (12, 7)]
        );
        let mut cells = crate::record::Cells::new();
        trace.append_values(&trace.events[1], &mut cells);
        assert_eq!(cells.to_json(cells.get(0)), serde_json::json!("x"));
        let changed = whole.replace("[12,", "[13,");
        assert!(read(&changed).unwrap_err().starts_with("it was changed: 2 statements"), "{:?}", read(&changed));
        let cut = whole.lines().take(3).collect::<Vec<_>>().join("\n");
        assert!(read(&cut).unwrap_err().starts_with("its end is missing"));
        for (lines, why) in [
            (&["a"][..], "line 1: it is no trace of loadline"),
            (&[r#"{"loadline_trace":2}"#], "line 1: it is a trace of version 2"),
            (&[HEAD, "[0,1,0,[]]"], "line 2: statement 0 is not known"),
            (&[HEAD, ONE, "[0,1,0,[]]"], "line 3: statement 0 has 1 parameters and 0 values"),
            (&[HEAD, ONE, "[9,1,0,[1]]", "[8,1,0,[1]]"], "line 4: 8 µs is before"),
            (&[HEAD, ONE, "[0,1,0,[true]]"], "line 3: it is not understood"),
            (&[HEAD, ONE, "[0,-1,0,[1]]"], "line 3: it is not understood"),
            (&[HEAD, ONE, ONE], "line 3: statement 0 comes where 1 should"),
            (&[HEAD, &ONE.replace("select t", "read")], "line 2: \"read\" is no name for a statement"),
            (&[HEAD, ONE], "nothing ran in it"),
            (&[HEAD, ONE, "[2592000000001,1,0,[1]]"], "line 3: 2592000000001 µs is more than 30 days"),
        ] {
            let error = read(&trace_of(lines)).unwrap_err();
            assert!(error.starts_with(why), "{error} instead of {why}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut line = Vec::new();
        let event = Event { at_us: 5, session: 3, statement: 0, values_at: 0 };
        event.write(b"[\"a'b\"]", &mut line).unwrap();
        let trace = read(&trace_of(&[HEAD, ONE, std::str::from_utf8(&line).unwrap()])).unwrap();
        assert_eq!(trace.events, [event]);
    }
}
