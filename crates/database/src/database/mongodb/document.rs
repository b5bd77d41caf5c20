//! Documents of JSON as documents of BSON, and back. Main functions: [`append`] and [`write`].
//!
//! Whole numbers of 64 bits become `long`, all others `double`. Members keep their order, so that a document comes back as the text that it was where numbers are written as loadline writes them. Invariant: no document is deeper than
//! [`DEPTH_MAX`], whoever sends it.

use std::borrow::Cow;
use std::io::Write;

use super::bson::{self, Document, Value};
use crate::quote::write_json_string;

/// The documents within documents that are followed.
const DEPTH_MAX: u32 = 64;

/// Appends a text of JSON as a member of a document; `None` where it is none.
pub(super) fn append(name: &str, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut json = Json(std::str::from_utf8(text).ok()?);
    json.append(name, DEPTH_MAX, out)?;
    json.pass_blanks();
    json.0.is_empty().then_some(())
}

/// What is left of a text of JSON.
struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    fn pass_blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes a character that must come next, behind blanks.
    fn take(&mut self, letter: char) -> Option<()> {
        self.pass_blanks();
        self.0 = self.0.strip_prefix(letter)?;
        Some(())
    }

    fn is_next(&mut self, letter: char) -> bool {
        self.pass_blanks();
        self.0.starts_with(letter)
    }

    /// Appends the value that comes next.
    fn append(&mut self, name: &str, depth: u32, out: &mut Vec<u8>) -> Option<()> {
        self.pass_blanks();
        match self.0.bytes().next()? {
            b'{' => self.append_object(name, depth.checked_sub(1)?, out)?,
            b'[' => self.append_array(name, depth.checked_sub(1)?, out)?,
            b'"' => bson::text(name, self.string()?.as_bytes(), out),
            b't' => self.word("true").map(|()| bson::boolean(name, true, out))?,
            b'f' => self.word("false").map(|()| bson::boolean(name, false, out))?,
            b'n' => self.word("null").map(|()| bson::null(name, out))?,
            _ => self.append_number(name, out)?,
        }
        Some(())
    }

    fn append_object(&mut self, name: &str, depth: u32, out: &mut Vec<u8>) -> Option<()> {
        let from = bson::begin_document(name, out);
        self.take('{')?;
        while !self.is_next('}') {
            let member = self.string()?;
            self.take(':')?;
            // It would end the name.
            if member.contains('\0') {
                return None;
            }
            self.append(&member, depth, out)?;
            if !self.is_next('}') {
                self.take(',')?;
                self.is_next('"').then_some(())?;
            }
        }
        self.take('}')?;
        bson::end(from, out);
        Some(())
    }

    fn append_array(&mut self, name: &str, depth: u32, out: &mut Vec<u8>) -> Option<()> {
        let from = bson::begin_array(name, out);
        self.take('[')?;
        let mut place = 0_u32;
        while !self.is_next(']') {
            self.append(&place.to_string(), depth, out)?;
            place += 1;
            if !self.is_next(']') {
                self.take(',')?;
                (!self.is_next(']')).then_some(())?;
            }
        }
        self.take(']')?;
        bson::end(from, out);
        Some(())
    }

    fn append_number(&mut self, name: &str, out: &mut Vec<u8>) -> Option<()> {
        let is_part = |letter: char| letter.is_ascii_digit() || matches!(letter, '-' | '+' | '.' | 'e' | 'E');
        let end = self.0.find(|letter| !is_part(letter)).unwrap_or(self.0.len());
        let (number, rest) = self.0.split_at(end);
        self.0 = rest;
        match number.parse::<i64>() {
            // A zero below zero is a floating-point number.
            Ok(whole) if number != "-0" => bson::int64(name, whole, out),
            _ => bson::double(name, number.parse().ok().filter(|number: &f64| number.is_finite())?, out),
        }
        Some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(word)?;
        Some(())
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.take('"')?;
        let end = self.0.find(['"', '\\'])?;
        if self.0.as_bytes()[end] == b'"' {
            let (text, rest) = self.0.split_at(end);
            self.0 = &rest[1..];
            return Some(Cow::Borrowed(text));
        }
        // Long enough for everything in front of the end.
        let mut text = String::new();
        loop {
            let end = self.0.find(['"', '\\'])?;
            let (plain, rest) = self.0.split_at(end);
            text.push_str(plain);
            let mut letters = rest.chars();
            if letters.next() == Some('"') {
                self.0 = letters.as_str();
                return Some(Cow::Owned(text));
            }
            let escaped = letters.next()?;
            self.0 = letters.as_str();
            text.push(match escaped {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => self.unicode()?,
                '"' | '\\' | '/' => escaped,
                _ => return None,
            });
        }
    }

    /// Takes the digits behind `\u`, and those of the second half of a pair.
    fn unicode(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.0 = self.0.strip_prefix("\\u")?;
        let second = self.four_digits()?.checked_sub(0xdc00).filter(|second| *second < 0x400)?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + second)
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.0.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        self.0 = &self.0[4..];
        u32::from_str_radix(digits, 16).ok()
    }
}

/// Writes a value as JSON; `None` where JSON has no such value.
pub(super) fn write(value: Value<'_>, out: &mut Vec<u8>) -> Option<()> {
    write_value(value, DEPTH_MAX, out)
}

fn write_value(value: Value<'_>, depth: u32, out: &mut Vec<u8>) -> Option<()> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::Int(number) => write!(out, "{number}").ok()?,
        Value::Double(number) if number.is_finite() => write!(out, "{number}").ok()?,
        Value::Text(text) => write_json_string(std::str::from_utf8(text).ok()?.as_bytes(), out),
        Value::Document(document) => write_members(document, [b'{', b'}'], depth.checked_sub(1)?, out)?,
        Value::Array(values) => write_members(values, [b'[', b']'], depth.checked_sub(1)?, out)?,
        Value::Double(_) | Value::Binary(_) | Value::Other(_) => return None,
    }
    Some(())
}

fn write_members(document: Document<'_>, [first, last]: [u8; 2], depth: u32, out: &mut Vec<u8>) -> Option<()> {
    let mut before = first;
    for member in document.members() {
        let member = member.ok()?;
        out.push(before);
        before = b',';
        if first == b'{' {
            write_json_string(std::str::from_utf8(member.name).ok()?.as_bytes(), out);
            out.push(b':');
        }
        write_value(member.value, depth, out)?;
    }
    if before == first {
        out.push(first);
    }
    out.push(last);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A text of JSON as it comes back.
    fn again(text: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let from = bson::begin(&mut bytes);
        append("d", text.as_bytes(), &mut bytes)?;
        bson::end(from, &mut bytes);
        let mut out = Vec::new();
        write(Document::whole(&bytes).unwrap().get("d").unwrap().unwrap(), &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn documents_come_back_as_they_were() {
        for text in [
            "{}",
            "[]",
            r#"{"b":1,"a":null,"c":[true,false,{"d":""}],"e":"\u0000\"\\ä🚦"}"#,
            r#"{"a":0.1,"b":-9223372036854775808,"c":100000000000000000000,"d":-0,"e":3}"#,
            "\"alone\"",
        ] {
            assert_eq!(again(text).as_deref(), Some(text));
        }
        assert_eq!(
            again(" { \"a\" : [ 1 , 2.50 ] , \"b\" : \"\\ud83d\\udea6\\n\\/\" } ").as_deref(),
            Some(r#"{"a":[1,2.5],"b":"🚦\u000a/"}"#)
        );
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "{\"a\":1,}",
            "[1,]",
            "{\"a\"}",
            "{a:1}",
            "nul",
            "1e999",
            "\"\\x\"",
            "\"\\ud83d\"",
            "\"open",
            "1 2",
            "{\"\\u0000\":1}",
            "--1",
        ] {
            assert_eq!(again(text), None, "{text}");
        }
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(again(&deep(64)).is_some() && again(&deep(65)).is_none());
    }

    proptest! {
        #[test]
        fn numbers_and_texts_come_back(real: f64, whole: i64, word in "\\PC{0,9}[\0-\u{1f}\"\\\\]{0,3}") {
            let number = if real.is_finite() { real } else { 0.5 };
            let mut text = format!("{{\"a\":{number},\"b\":{whole},\"c\":").into_bytes();
            write_json_string(word.as_bytes(), &mut text);
            text.push(b'}');
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(again(&text), Some(text));
        }

        #[test]
        fn arbitrary_texts_never_panic(text in "[\\[\\]{}:,\"\\\\u0-9a-f.+ -]{0,40}") {
            let _ = again(&text);
        }
    }
}
