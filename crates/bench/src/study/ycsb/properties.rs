//! Reads the text of Java property files, the format of YCSB's workloads.
//!
//! Main function: [`read_properties`]. Invariant: each property has the number of the line where it begins; of two
//! properties with the same name, the later one counts, as in Java.

use crate::fault::{Fault, fault};
use crate::written::place::{Errors, Place};

/// A property: a name and a value, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// Name, as in `recordcount`.
    pub name: String,
    /// Value without surrounding blanks.
    pub value: String,
    /// Where it was written.
    pub place: Place,
}

/// Reads the properties of a file, in their order; comments begin with `#` or `!`, and a line that ends with `\` continues in the next one.
pub fn read_properties(text: &str, errors: &mut Errors) -> Vec<Property> {
    let mut properties = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let mut logical = line.trim_start().to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while goes_on(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start());
        }
        let (name, value) = split(&logical);
        let place = Place::Line(number);
        match (unescaped(name), unescaped(value.trim_end())) {
            (Ok(name), Ok(_)) if name.is_empty() => {
                errors.push(place, fault!("{line:?} has no name"; "write name=value, as in recordcount=1000"));
            }
            (Ok(name), Ok(value)) => set(&mut properties, Property { name, value, place }),
            (Err(why), _) | (_, Err(why)) => errors.push(place, why),
        }
    }
    properties
}

/// Adds a property; replaces one with the same name.
pub fn set(properties: &mut Vec<Property>, property: Property) {
    properties.retain(|known| known.name != property.name);
    properties.push(property);
}

/// Returns whether a line ends with an odd number of backslashes, and so continues.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Splits a line into name and value at the first `=`, `:` or blank that is not escaped by a backslash.
fn split(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let is_end = |(_, sign): &(usize, char)| {
        let ends = !is_escaped && matches!(sign, '=' | ':' | ' ' | '\t');
        is_escaped = *sign == '\\' && !is_escaped;
        ends
    };
    let Some((end, _)) = line.char_indices().find(is_end) else { return (line, "") };
    let rest = line[end..].trim_start();
    (&line[..end], rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start())
}

fn unescaped(text: &str) -> Result<String, Fault> {
    let mut out = String::new();
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        match (sign, if sign == '\\' { signs.next() } else { None }) {
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some('f')) => out.push('\u{c}'),
            ('\\', Some('u')) => {
                let digits: String = signs.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                let sign = code.and_then(char::from_u32);
                out.push(sign.ok_or_else(|| fault!("\\u{digits} is no character"; "write four hexadecimal digits"))?);
            }
            ('\\', Some(other)) => out.push(other),
            (sign, _) => out.push(sign),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, Place)> {
        let mut errors = Errors::default();
        let properties = read_properties(text, &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        properties.into_iter().map(|property| (property.name, property.value, property.place)).collect()
    }

    fn property(name: &str, value: &str, line: usize) -> (String, String, Place) {
        (name.to_owned(), value.to_owned(), Place::Line(line))
    }

    #[test]
    fn names_and_values_are_separated_as_java_does() {
        let text = "# comment\n! too\n\n a = 1 \nb: 2\nc 3\nd\ne=f=g\nh\\=i=j\n";
        assert_eq!(
            read(text),
            [
                property("a", "1", 4),
                property("b", "2", 5),
                property("c", "3", 6),
                property("d", "", 7),
                property("e", "f=g", 8),
                property("h=i", "j", 9)
            ]
        );
    }

    #[test]
    fn a_line_goes_on_after_a_backslash_and_the_last_value_counts() {
        assert_eq!(read("a=1,\\\n   2\nb=x\\u0041\\\\\na=3"), [property("b", "xA\\", 3), property("a", "3", 4)]);
        assert_eq!(read("a=\\"), [property("a", "", 1)]);
        assert_eq!(read("a=1\r\nb=2\r\n"), [property("a", "1", 1), property("b", "2", 2)]);
    }

    #[test]
    fn what_is_no_property_is_named_by_its_line() {
        let mut errors = Errors::default();
        assert!(read_properties("=5\na=\\u00\n", &mut errors).is_empty());
        let lines = errors.into_result(&Default::default()).unwrap_err().lines();
        assert!(lines[0].starts_with(":1: \"=5\" has no name") && lines[1].starts_with(":2: \\u00"), "{lines:?}");
    }
}
