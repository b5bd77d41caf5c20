//! The parser, which reads a batch point by point. Main types: [`Parser`] and [`Point`].

use std::collections::HashSet;

use super::bounds::LineBounds;
use super::error::{LineError, shown};
use super::number::{field_value, short_number, whole};
use super::text::{Escapes, Text};
use super::{Precision, Value};

/// The content of a line. The caller keeps it and has it filled again for every line, so that nothing is allocated per line.
#[derive(Debug, Default)]
pub struct Point<'a> {
    /// The number of the line in the batch, from 1.
    pub line: usize,
    /// The whole line as sent, without its line end.
    pub bytes: &'a [u8],
    /// Measurement and tags as sent; equal bytes mean the same series.
    pub series: &'a [u8],
    /// The tags in the order sent; no key occurs twice.
    pub tags: Vec<(Text<'a>, Text<'a>)>,
    /// The fields in the order sent; at least one.
    pub fields: Vec<(Text<'a>, Value<'a>)>,
    /// The time in nanoseconds since 1970; `None` if the line has none.
    pub time_ns: Option<i64>,
    measurement: Option<Text<'a>>,
}

impl<'a> Point<'a> {
    /// Returns the name of the measurement; empty before the first line is read.
    pub fn measurement(&self) -> Text<'a> {
        self.measurement.unwrap_or(Text::new(&[], Escapes::None))
    }

    fn clear(&mut self) {
        self.tags.clear();
        self.fields.clear();
        (self.bytes, self.series, self.measurement, self.time_ns) = (&[], &[], None, None);
    }
}

/// Reads the lines of a batch, one after the other.
#[derive(Debug)]
pub struct Parser<'a> {
    input: &'a [u8],
    precision: Precision,
    at: usize,
    /// The number of the line that `at` is in, from 1, and the place where it starts.
    line: usize,
    line_start: usize,
    /// True if the whole batch is known to be UTF-8, so that lines need not be checked one by one.
    is_utf8: bool,
    /// True while each tag key of this line is greater than the one before.
    tags_rise: bool,
    /// The tag keys of this line, if they are not in order and there are many.
    keys: HashSet<&'a [u8]>,
    bounds: LineBounds,
}

/// The message for a string without its closing quote.
const NEVER_CLOSED: &str = "the string that begins here is never closed";
/// Up to this number of tags, a key is searched for linearly.
const FEW_TAGS: usize = 16;
/// An error: its place in the input, and the message. Boxed, so that a success is returned in a register.
type Wrong = Box<(usize, String)>;

impl<'a> Parser<'a> {
    /// Creates a parser at the start of a batch.
    pub fn new(input: &'a [u8], precision: Precision) -> Self {
        Self::bounded(input, precision, LineBounds::NONE)
    }

    /// Creates a parser at the start of a batch whose lines must stay within `bounds`.
    pub fn bounded(input: &'a [u8], precision: Precision, bounds: LineBounds) -> Self {
        let is_utf8 = std::str::from_utf8(input).is_ok();
        let keys = HashSet::new();
        Parser { input, precision, at: 0, line: 1, line_start: 0, is_utf8, tags_rise: true, keys, bounds }
    }

    /// Reads the next point, past empty lines and comments; `None` at the end.
    ///
    /// # Errors
    /// The error of the line and its place. The parser then stands behind that line, and can go on.
    pub fn next(&mut self, point: &mut Point<'a>) -> Option<Result<(), LineError>> {
        self.skip_to_content()?;
        point.clear();
        self.keys.clear();
        let (start, start_line) = (self.at, (self.line, self.line_start));
        point.line = self.line;
        let read = self.point(point).and_then(|()| self.check_text(start));
        match read {
            Ok(()) => {
                let end = self.at;
                point.bytes = trim_carriage_return(&self.input[start..end]);
                self.pass_line_end();
                Some(Ok(()))
            }
            Err(wrong) => {
                let (place, message) = *wrong;
                let error = self.error(place, message, start_line);
                // A string that is never closed swallowed the following lines; they are read again as lines. That happens once at
                // most: a quote that opens a later string would have closed this one.
                self.at = start;
                (self.line, self.line_start) = start_line;
                self.skip_line();
                Some(Err(error))
            }
        }
    }

    /// Returns an error at a place of the point that begins on this line, which starts at `line_start`. The place may be on a later line.
    fn error(&self, place: usize, message: String, (line, line_start): (usize, usize)) -> LineError {
        let before = &self.input[line_start.min(place)..place];
        let within = before.iter().filter(|byte| **byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(line_start, |end| line_start + end + 1);
        LineError { line: line + within, column: place - start + 1, message }
    }

    /// Returns how many bytes have been read.
    pub fn place(&self) -> usize {
        self.at
    }

    fn check_text(&self, start: usize) -> Result<(), Wrong> {
        if self.is_utf8 {
            return Ok(());
        }
        match std::str::from_utf8(&self.input[start..self.at]) {
            Ok(_) => Ok(()),
            Err(error) => wrong(start + error.valid_up_to(), "the bytes here are not UTF-8"),
        }
    }

    fn point(&mut self, point: &mut Point<'a>) -> Result<(), Wrong> {
        let start = self.at;
        let (measurement, mut end) = self.name(MEASUREMENT, Escapes::InMeasurement);
        if measurement.raw().is_empty() {
            return wrong(start, "the name of the measurement is missing");
        }
        if measurement.raw().len() > self.bounds.name_bytes {
            return self.long_name(start, "measurement", measurement);
        }
        point.measurement = Some(measurement);
        while end == Some(b',') {
            self.at += 1;
            end = self.tag(point)?;
        }
        point.series = &self.input[start..self.at];
        let most = self.bounds.series_bytes;
        if point.series.len() > most {
            return wrong(
                start,
                format!("measurement and tags have more than {most} bytes; limits.series bounds them"),
            );
        }
        if end != Some(b' ') {
            return wrong(self.at, "the fields are missing; write a space and name=value behind the tags");
        }
        self.skip_spaces();
        loop {
            self.field(point)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.time(point)
    }

    fn tag(&mut self, point: &mut Point<'a>) -> Result<Option<u8>, Wrong> {
        let start = self.at;
        let (key, key_end) = self.name(KEY, Escapes::InKey);
        let is_whole = !key.raw().is_empty() && key_end == Some(b'=') && key.raw().len() <= self.bounds.name_bytes;
        if !is_whole || point.tags.len() >= self.bounds.tags {
            return self.wrong_key("tag", self.bounds.tags, start, key, key_end);
        }
        self.at += 1;
        let value_start = self.at;
        let (value, end) = self.name(KEY, Escapes::InKey);
        if value.raw().is_empty() || end == Some(b'=') {
            return self.wrong_tag_value(value_start, key, value);
        }
        // Where keys rise, as most clients sort them, a comparison with the last one shows that this one is new.
        let rises = point.tags.last().is_none_or(|(last, _)| last.raw() < key.raw());
        self.tags_rise = rises && (self.tags_rise || point.tags.is_empty());
        if !self.tags_rise && !self.is_new_key(point, key) {
            return wrong(start, format!("the tag {} occurs twice", shown(key.raw())));
        }
        point.tags.push((key, value));
        Ok(end)
    }

    /// Returns whether none of the tags so far has this key. A few keys are searched linearly; many are kept in a set.
    fn is_new_key(&mut self, point: &Point<'a>, key: Text<'a>) -> bool {
        if point.tags.len() < FEW_TAGS {
            return point.tags.iter().all(|(other, _)| other.raw() != key.raw());
        }
        if self.keys.len() < point.tags.len() {
            self.keys.clear();
            self.keys.extend(point.tags.iter().map(|(other, _)| other.raw()));
        }
        self.keys.insert(key.raw())
    }

    fn field(&mut self, point: &mut Point<'a>) -> Result<(), Wrong> {
        let start = self.at;
        let (key, end) = self.name(KEY, Escapes::InKey);
        let is_whole = !key.raw().is_empty() && end == Some(b'=') && key.raw().len() <= self.bounds.name_bytes;
        if !is_whole || point.fields.len() >= self.bounds.fields {
            return self.wrong_key("field", self.bounds.fields, start, key, end);
        }
        self.at += 1;
        if let Some((value, length)) = short_number(&self.input[self.at..]) {
            self.at += length;
            point.fields.push((key, value));
            return Ok(());
        }
        let value_start = self.at;
        let value = if self.peek() == Some(b'"') { self.string()? } else { self.plain_value()? };
        if let Value::Unsigned(number) = value
            && number > self.bounds.whole_max
        {
            return self.large_number(value_start, key, number);
        }
        point.fields.push((key, value));
        Ok(())
    }

    fn plain_value(&mut self) -> Result<Value<'a>, Wrong> {
        let start = self.at;
        if self.peek() == Some(b'=') {
            let remedy = "tell the sender to use version 1, as in protocol_version=1";
            return wrong(start, format!("the value is binary, as in version 2 of QuestDB's protocol; {remedy}"));
        }
        let length = self.input[start..].iter().position(|byte| matches!(byte, b',' | b' ' | b'\n' | b'\r'));
        let end = length.map_or(self.input.len(), |length| start + length);
        let value = field_value(&self.input[start..end]).or_else(|message| wrong(start, message))?;
        self.at = end;
        Ok(value)
    }

    fn string(&mut self) -> Result<Value<'a>, Wrong> {
        let open = self.at;
        let mut at = open + 1;
        let mut escapes = Escapes::None;
        loop {
            match self.input.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escapes = Escapes::InString;
                    // The escaped byte is skipped as well, so that \\" ends the string and \" does not.
                    at += if self.input.get(at + 1).is_some_and(|next| escapes.are_of(*next)) { 2 } else { 1 };
                }
                Some(byte) => {
                    at += 1;
                    if *byte == b'\n' {
                        (self.line, self.line_start) = (self.line + 1, at);
                    }
                }
                None => return wrong(open, NEVER_CLOSED),
            }
        }
        self.at = at + 1;
        let text = Text::new(&self.input[open + 1..at], escapes);
        match self.peek() {
            None | Some(b',' | b' ' | b'\n' | b'\r') => Ok(Value::Text(text)),
            Some(_) => wrong(self.at, "behind a string there must be a comma, a space or the end of the line"),
        }
    }

    fn time(&mut self, point: &mut Point<'a>) -> Result<(), Wrong> {
        self.skip_spaces();
        let start = self.at;
        let rest = &self.input[start..];
        let end = start + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let token = trim_carriage_return(&self.input[start..end]).trim_ascii_end();
        self.at = end;
        if token.is_empty() {
            return Ok(());
        }
        let Some(units) = whole(token) else {
            let must = "it must be a whole number, and nothing may follow it";
            return wrong(start, format!("the time stamp is {}; {must}", shown(token)));
        };
        match self.precision.to_ns(units) {
            Some(time_ns) => point.time_ns = Some(time_ns),
            None => {
                let hint = "the precision of the request does not seem to be that of the line";
                return wrong(start, format!("the time stamp {units} is beyond the years 1677 to 2262; {hint}"));
            }
        }
        Ok(())
    }

    /// Reads a name up to the byte that ends it. That byte stays unread and is returned; `None` at the end of the batch.
    #[inline]
    fn name(&mut self, class: u8, escapes: Escapes) -> (Text<'a>, Option<u8>) {
        let (input, start) = (self.input, self.at);
        let mut at = start;
        let mut used = Escapes::None;
        let end = loop {
            match input.get(at) {
                Some(byte) if CLASSES[usize::from(*byte)] & class == 0 => at += 1,
                Some(b'\\') => {
                    used = escapes;
                    at += if input.get(at + 1).is_some_and(|next| escapes.are_of(*next)) { 2 } else { 1 };
                }
                end => break end.copied(),
            }
        };
        self.at = at;
        (Text::new(&input[start..at], used), end)
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Skips empty lines and comments; `None` at the end of the batch.
    fn skip_to_content(&mut self) -> Option<()> {
        loop {
            match self.peek()? {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => self.pass_line_end(),
                b'#' => self.skip_line(),
                _ => return Some(()),
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.input[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        self.pass_line_end();
    }

    fn pass_line_end(&mut self) {
        if self.peek() == Some(b'\n') {
            self.at += 1;
            (self.line, self.line_start) = (self.line + 1, self.at);
        }
    }
}

/// Error messages of lines, kept out of the parsing functions so that the path of good lines stays short.
impl<'a> Parser<'a> {
    /// Returns the error for a bad key of a tag or a field (`what`), of which a line may have at most `most`.
    #[cold]
    fn wrong_key<T>(&self, what: &str, most: usize, start: usize, key: Text<'a>, end: Option<u8>) -> Result<T, Wrong> {
        if key.raw().is_empty() {
            return wrong(start, format!("the name of a {what} is missing"));
        }
        if end != Some(b'=') {
            return wrong(self.at, format!("the {what} {} has no value; write name=value", shown(key.raw())));
        }
        if key.raw().len() > self.bounds.name_bytes {
            return self.long_name(start, what, key);
        }
        wrong(start, format!("the line has more than {most} {what}s; limits.{what}s bounds them"))
    }

    #[cold]
    fn wrong_tag_value<T>(&self, start: usize, key: Text<'a>, value: Text<'a>) -> Result<T, Wrong> {
        let key = shown(key.raw());
        if value.raw().is_empty() {
            return wrong(start, format!("the value of the tag {key} is missing"));
        }
        let remedy = "write \\= for one that belongs to it";
        wrong(self.at, format!("there is a second = in the tag {key}; {remedy}"))
    }

    #[cold]
    fn long_name<T>(&self, start: usize, what: &str, name: Text<'a>) -> Result<T, Wrong> {
        let (most, shown) = (self.bounds.name_bytes, shown(name.raw()));
        let bound = "limits.name bounds them";
        wrong(start, format!("the name of the {what} {shown} has more than {most} bytes; {bound}"))
    }

    #[cold]
    fn large_number<T>(&self, start: usize, key: Text<'a>, number: u64) -> Result<T, Wrong> {
        let (most, key) = (self.bounds.whole_max, shown(key.raw()));
        wrong(start, format!("the field {key} is {number}, and whole numbers are stored up to {most}"))
    }
}

#[cold]
fn wrong<T>(place: usize, message: impl Into<String>) -> Result<T, Wrong> {
    Err(Box::new((place, message.into())))
}

/// Returns how many bytes at the beginning of a batch are complete lines, which nothing that follows can change: all are ended, and no string is open.
pub fn whole_lines(beginning: &[u8]) -> usize {
    let Some(end) = beginning.iter().rposition(|byte| *byte == b'\n') else { return 0 };
    let mut parser = Parser::new(&beginning[..=end], Precision::default());
    let mut point = Point::default();
    let mut whole = 0;
    while let Some(read) = parser.next(&mut point) {
        if read.is_err_and(|error| error.message == NEVER_CLOSED) {
            return whole;
        }
        whole = parser.place();
    }
    end + 1
}

fn trim_carriage_return(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Bytes that end or escape the name of a measurement.
const MEASUREMENT: u8 = 1;
/// Bytes that end or escape a key or the value of a tag.
const KEY: u8 = 2;

/// The kinds of names in which each byte is special, as bits.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b',' | b' ' | b'\n' | b'\\' => MEASUREMENT | KEY,
            b'=' => KEY,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
