//! `violation.xml`: one element with seven elements in it, and nothing else. Main functions: [`read`] and [`write()`].
//!
//! Document types, custom entities, processing instructions, unknown or repeated elements and deeper nesting are refused, so
//! no document can expand or fetch anything.

use quick_xml::Reader;
use quick_xml::escape::escape;
use quick_xml::events::Event;

use super::BlockError;
use crate::data::violation::Violation;
use crate::units::{parse_utc, show_utc_ms};

/// Version of the format.
const VERSION: &str = "1";
/// Maximum length of a record in bytes.
const BYTES_MAX: usize = 16 << 10;
/// Maximum length of one value in characters.
const VALUE_MAX: usize = 200;
/// Maximum length in characters of an error of the reader, which may contain names that somebody else chose.
const ERROR_CHARACTERS: usize = 200;

const ELEMENTS: [&str; 7] = ["camera", "sequence", "time", "place", "speed", "limit", "plate"];

/// Returns a record as text.
pub fn write(violation: &Violation) -> String {
    let Violation { camera, sequence, time_ns, place, speed_kmh, limit_kmh, plate } = violation;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<violation version=\"{VERSION}\">\n  <camera>{}</camera>\n  \
         <sequence>{sequence}</sequence>\n  <time>{}</time>\n  <place>{}</place>\n  <speed unit=\"km/h\">{speed_kmh}</speed>\n  \
         <limit unit=\"km/h\">{limit_kmh}</limit>\n  <plate>{}</plate>\n</violation>\n",
        escape(camera),
        show_utc_ms(*time_ns),
        escape(place),
        escape(plate),
    )
}

/// Reads a record.
///
/// # Errors
/// [`BlockError::Record`]
pub fn read(bytes: &[u8]) -> Result<Violation, BlockError> {
    if bytes.len() > BYTES_MAX {
        return Err(wrong(format!("it has {} bytes; at most {BYTES_MAX}", bytes.len())));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
    Values::collect(text)?.into_violation()
}

/// The texts of the elements.
#[derive(Default)]
struct Values {
    texts: [Option<String>; ELEMENTS.len()],
}

/// The reader's place in the document.
enum Place {
    Before,
    Within,
    In(usize, String),
    Behind,
}

impl Values {
    fn collect(text: &str) -> Result<Self, BlockError> {
        let mut values = Values::default();
        let mut place = Place::Before;
        let mut reader = Reader::from_str(text);
        loop {
            let event = reader.read_event().map_err(|error| wrong(safe(&error.to_string(), ERROR_CHARACTERS)))?;
            place = match (event, place) {
                (Event::Eof, Place::Behind) => return Ok(values),
                (Event::Eof, _) => return Err(wrong("it is cut off")),
                (Event::Decl(_), Place::Before) => Place::Before,
                (Event::Comment(_), place) => place,
                (Event::Text(text), place @ (Place::Before | Place::Within | Place::Behind)) => {
                    match text.chars().all(char::is_whitespace) {
                        true => place,
                        false => return Err(wrong(format!("there is text between the elements: {}", shown(&text)))),
                    }
                }
                (Event::Start(start), Place::Before) if start.name().as_ref() == "violation" => {
                    let version = start.try_get_attribute("version").ok().flatten();
                    let is_known = version.as_ref().is_some_and(|version| &*version.value == VERSION);
                    match is_known {
                        true => Place::Within,
                        false => return Err(wrong(format!("it is not <violation version=\"{VERSION}\">"))),
                    }
                }
                (Event::Start(start), Place::Within) => values.begin(&start)?,
                (Event::Text(text), Place::In(element, value)) => {
                    Place::In(element, append(value, &text.xml10_content())?)
                }
                (Event::GeneralRef(reference), Place::In(element, value)) => {
                    Place::In(element, append(value, &resolved(&reference)?)?)
                }
                // The reader matches the names of end tags with those of start tags.
                (Event::End(_), Place::In(element, value)) => {
                    values.texts[element] = Some(value);
                    Place::Within
                }
                (Event::End(_), Place::Within) => Place::Behind,
                (event, _) => return Err(unexpected(&event)),
            };
        }
    }

    fn begin(&self, start: &quick_xml::events::BytesStart<'_>) -> Result<Place, BlockError> {
        let is_it = |element: &str| *start.name().as_ref() == *element;
        let Some(element) = ELEMENTS.iter().position(|element| is_it(element)) else {
            return Err(wrong(format!("element <{}> is not known", shown(start))));
        };
        if self.texts[element].is_some() {
            return Err(wrong(format!("<{}> is in it twice", ELEMENTS[element])));
        }
        if let Ok(Some(unit)) = start.try_get_attribute("unit")
            && &*unit.value != "km/h"
        {
            return Err(wrong(format!("the unit of <{}> is not km/h", ELEMENTS[element])));
        }
        Ok(Place::In(element, String::new()))
    }

    fn into_violation(self) -> Result<Violation, BlockError> {
        if let Some(missing) = self.texts.iter().position(Option::is_none) {
            return Err(wrong(format!("<{}> is missing", ELEMENTS[missing])));
        }
        let [camera, sequence, time, place, speed, limit, plate] = self.texts.map(Option::unwrap_or_default);
        let violation = Violation {
            sequence: whole(&sequence).ok_or_else(|| bad("sequence", &sequence, "a number from 0 to 2^53"))?,
            time_ns: parse_utc(&time).ok_or_else(|| bad("time", &time, "a time as in 2026-11-22T10:00:00.250Z"))?,
            speed_kmh: speed_of(&speed).ok_or_else(|| bad("speed", &speed, "a number from 0 to 1000"))?,
            limit_kmh: speed_of(&limit).ok_or_else(|| bad("limit", &limit, "a number from 0 to 1000"))?,
            camera,
            place,
            plate,
        };
        let texts = [
            ("camera", &violation.camera, 64),
            ("place", &violation.place, VALUE_MAX),
            ("plate", &violation.plate, 20),
        ];
        for (element, text, most) in texts {
            let count = text.chars().count();
            if count == 0 || count > most || text.chars().any(char::is_control) {
                return Err(bad(element, text, &format!("1 to {most} characters without control characters")));
            }
        }
        Ok(violation)
    }
}

fn append(mut value: String, more: &str) -> Result<String, BlockError> {
    if value.len() + more.len() > 4 * VALUE_MAX {
        return Err(wrong("a value is too long"));
    }
    value.push_str(more);
    Ok(value)
}

/// Returns the character of a reference to one of XML's five entities, or by number.
fn resolved(reference: &quick_xml::events::BytesRef<'_>) -> Result<String, BlockError> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Ok(character.to_string());
    }
    let known = quick_xml::escape::resolve_xml_entity(reference);
    known.map(str::to_owned).ok_or_else(|| wrong(format!("entity &{}; is not known", shown(reference))))
}

fn unexpected(event: &Event<'_>) -> BlockError {
    wrong(match event {
        Event::DocType(_) => "it has a document type, which is not taken".to_owned(),
        Event::PI(_) => "it has a processing instruction, which is not taken".to_owned(),
        Event::Start(start) | Event::Empty(start) => format!("element <{}> is out of place", shown(start)),
        Event::CData(_) => "it has a CDATA section, which is not taken".to_owned(),
        _ => "something is out of place".to_owned(),
    })
}

fn whole(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_digits && *number <= 1 << 53)
}

fn speed_of(text: &str) -> Option<f64> {
    let is_plain = text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|speed| is_plain && (0.0..=1000.0).contains(speed))
}

fn bad(element: &str, value: &str, must: &str) -> BlockError {
    wrong(format!("<{element}> is \"{}\"; it must be {must}", shown(value)))
}

fn shown(text: &str) -> String {
    safe(text, 40)
}

/// Returns the beginning of a text that somebody else wrote, made safe for logs and terminals: nothing in it acts as a command.
fn safe(text: &str, characters: usize) -> String {
    let mut left = characters;
    let fits = |escaped: &std::char::EscapeDebug| {
        let is_room = escaped.len() <= left;
        left = left.saturating_sub(escaped.len());
        is_room
    };
    text.chars().map(char::escape_debug).take_while(fits).flatten().collect()
}

fn wrong(what: impl Into<String>) -> BlockError {
    BlockError::Record(what.into())
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn what_is_quoted_is_no_longer_for_being_escaped() {
        assert_eq!(safe("a\u{1f}b", 40), "a\\u{1f}b");
        assert_eq!(safe(&"\u{1f}".repeat(100), 40), "\\u{1f}".repeat(6));
        assert_eq!(safe(&"a".repeat(100), 40), "a".repeat(40));
    }
}
