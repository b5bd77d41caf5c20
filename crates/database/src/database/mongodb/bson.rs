//! BSON: documents are appended to bytes that are sent, and those that arrive are read where they lie.
//!
//! Main types: [`Document`], which is read, and [`Value`]. Invariant: no length that a server states is believed: every value that is read lies within its document, and no
//! memory is reserved for it.

use crate::database::DatabaseError;

/// The types of values that are written.
mod kind {
    pub const DOUBLE: u8 = 0x01;
    pub const TEXT: u8 = 0x02;
    pub const DOCUMENT: u8 = 0x03;
    pub const ARRAY: u8 = 0x04;
    pub const BINARY: u8 = 0x05;
    pub const BOOLEAN: u8 = 0x08;
    pub const NULL: u8 = 0x0a;
    pub const INT32: u8 = 0x10;
    pub const INT64: u8 = 0x12;
}

/// The bytes of the smallest document: its length and its end.
const LEAST_BYTES: usize = 5;

/// A document that was received.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Document<'a>(&'a [u8]);

/// A value that was received.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Double(f64),
    /// Not yet known to be UTF-8.
    Text(&'a [u8]),
    Document(Document<'a>),
    Array(Document<'a>),
    Binary(&'a [u8]),
    Boolean(bool),
    Null,
    Int(i64),
    /// A value of a type that loadline does not write.
    Other(u8),
}

/// A member of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Member<'a> {
    pub name: &'a [u8],
    pub value: Value<'a>,
    /// The offset of the next member in the document.
    pub next: usize,
}

impl<'a> Document<'a> {
    /// The offset of the first member.
    pub(super) const FIRST: usize = 4;

    /// Returns the document that these bytes are.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] where its length is not that of the bytes.
    pub(super) fn whole(bytes: &'a [u8]) -> Result<Self, DatabaseError> {
        let mut rest = bytes;
        let document = take_document(&mut rest)?;
        if rest.is_empty() { Ok(document) } else { Err(broken("sends a document that is followed by something")) }
    }

    /// Returns the member at an offset; `None` at the end.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] where there is no member of a document.
    #[inline]
    pub(super) fn member(&self, at: usize) -> Result<Option<Member<'a>>, DatabaseError> {
        let early = || broken("sends a document that ends too early");
        let mut rest = self.0.get(at..).ok_or_else(early)?;
        let (kind, after) = rest.split_first().ok_or_else(early)?;
        if *kind == 0 {
            return if after.is_empty() {
                Ok(None)
            } else {
                Err(broken("sends a document that goes on behind its end"))
            };
        }
        rest = after;
        let name = take_name(&mut rest)?;
        let value = take_value(*kind, &mut rest)?;
        Ok(Some(Member { name, value, next: self.0.len() - rest.len() }))
    }

    /// Returns the members one after another.
    pub(super) fn members(self) -> impl Iterator<Item = Result<Member<'a>, DatabaseError>> {
        let mut at = Some(Document::FIRST);
        std::iter::from_fn(move || {
            let found = self.member(at?).transpose();
            at = found.as_ref().and_then(|member| Some(member.as_ref().ok()?.next));
            found
        })
    }

    /// Returns the value of the first member with a name; `None` where there is none.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] where the members in front of it are none.
    pub(super) fn get(&self, name: &str) -> Result<Option<Value<'a>>, DatabaseError> {
        for member in self.members() {
            let member = member?;
            if member.name == name.as_bytes() {
                return Ok(Some(member.value));
            }
        }
        Ok(None)
    }
}

impl<'a> Value<'a> {
    /// Returns a whole number, in whichever type of numbers the server sent it.
    pub(super) fn whole(self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(number),
            // Exact up to this size.
            Value::Double(number) if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 => {
                Some(number as i64)
            }
            _ => None,
        }
    }

    /// Returns a text with each control character as a blank, for messages.
    pub(super) fn shown(self, most: usize) -> Option<String> {
        let Value::Text(bytes) = self else { return None };
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * most)]);
        Some(text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(most).collect())
    }

    /// Returns whether it is what servers say for yes.
    pub(super) fn is_true(self) -> bool {
        self == Value::Boolean(true) || self.whole() == Some(1)
    }
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], DatabaseError> {
    let (taken, left) =
        rest.split_at_checked(bytes).ok_or_else(|| broken("sends a document with a value that is cut off"))?;
    *rest = left;
    Ok(taken)
}

fn take_chunk<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], DatabaseError> {
    take(rest, N)?.try_into().map_err(|_| broken("sends a document with a value that is cut off"))
}

fn take_length(rest: &mut &[u8]) -> Result<usize, DatabaseError> {
    let length = i32::from_le_bytes(take_chunk(rest)?);
    usize::try_from(length).map_err(|_| broken("sends a length below zero"))
}

/// Takes bytes up to a zero.
fn take_name<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], DatabaseError> {
    let end = rest.iter().position(|byte| *byte == 0);
    let name = take(rest, end.ok_or_else(|| broken("sends a name without an end"))?)?;
    take(rest, 1)?;
    Ok(name)
}

fn take_document<'a>(rest: &mut &'a [u8]) -> Result<Document<'a>, DatabaseError> {
    let length = take_length(&mut { *rest })?;
    if length < LEAST_BYTES {
        return Err(broken("sends a document that is shorter than one can be"));
    }
    let document = take(rest, length)?;
    match document.last() {
        Some(0) => Ok(Document(document)),
        _ => Err(broken("sends a document without an end")),
    }
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], DatabaseError> {
    let length = take_length(rest)?;
    match take(rest, length)?.split_last() {
        Some((0, text)) => Ok(text),
        _ => Err(broken("sends a text without an end")),
    }
}

fn take_value<'a>(kind: u8, rest: &mut &'a [u8]) -> Result<Value<'a>, DatabaseError> {
    Ok(match kind {
        kind::DOUBLE => Value::Double(f64::from_le_bytes(take_chunk(rest)?)),
        kind::TEXT => Value::Text(take_text(rest)?),
        kind::DOCUMENT => Value::Document(take_document(rest)?),
        kind::ARRAY => Value::Array(take_document(rest)?),
        kind::BINARY => {
            let length = take_length(rest)?;
            let subtype = take(rest, 1)?;
            let bytes = take(rest, length)?;
            if subtype == [0] { Value::Binary(bytes) } else { Value::Other(kind) }
        }
        kind::BOOLEAN => Value::Boolean(take(rest, 1)? != [0]),
        kind::NULL => Value::Null,
        kind::INT32 => Value::Int(i32::from_le_bytes(take_chunk(rest)?).into()),
        kind::INT64 => Value::Int(i64::from_le_bytes(take_chunk(rest)?)),
        other => {
            pass_over(other, rest)?;
            Value::Other(other)
        }
    })
}

/// Passes over a value of a type that loadline does not write.
fn pass_over(kind: u8, rest: &mut &[u8]) -> Result<(), DatabaseError> {
    match kind {
        // Undefined, and the ends of the order of all values.
        0x06 | 0x7f | 0xff => {}
        // Names of objects.
        0x07 => drop(take(rest, 12)?),
        // Times.
        0x09 | 0x11 => drop(take(rest, 8)?),
        // Regular expressions.
        0x0b => {
            take_name(rest)?;
            take_name(rest)?;
        }
        // Programs and symbols.
        0x0d | 0x0e => drop(take_text(rest)?),
        // Decimal numbers.
        0x13 => drop(take(rest, 16)?),
        _ => return Err(broken("sends a value of an unknown type")),
    }
    Ok(())
}

/// Appends the beginning of a document; returns its offset, for [`end`].
#[inline]
pub(super) fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

/// Appends the end of the document that begins at an offset.
#[inline]
pub(super) fn end(from: usize, out: &mut Vec<u8>) {
    out.push(0);
    let length = (out.len() - from) as u32;
    out[from..from + 4].copy_from_slice(&length.to_le_bytes());
}

#[inline]
fn head(kind: u8, name: &str, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// Appends a member that is a document, which `fill` fills.
pub(super) fn document(name: &str, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let from = begin_document(name, out);
    fill(out);
    end(from, out);
}

/// Appends the beginning of a member that is a document; returns its offset, for [`end`].
pub(super) fn begin_document(name: &str, out: &mut Vec<u8>) -> usize {
    head(kind::DOCUMENT, name, out);
    begin(out)
}

/// Appends a member that is an array, which `fill` fills with members named by their places.
pub(super) fn array(name: &str, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let from = begin_array(name, out);
    fill(out);
    end(from, out);
}

/// Appends the beginning of a member that is an array; returns its offset, for [`end`].
pub(super) fn begin_array(name: &str, out: &mut Vec<u8>) -> usize {
    head(kind::ARRAY, name, out);
    begin(out)
}

pub(super) fn text(name: &str, value: &[u8], out: &mut Vec<u8>) {
    head(kind::TEXT, name, out);
    out.extend_from_slice(&(value.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(value);
    out.push(0);
}

/// Appends the beginning of a member that is a text; returns its offset, for [`end_text`].
#[inline]
pub(super) fn begin_text(name: &str, out: &mut Vec<u8>) -> usize {
    head(kind::TEXT, name, out);
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

/// Appends the end of the text whose length is at an offset.
#[inline]
pub(super) fn end_text(from: usize, out: &mut Vec<u8>) {
    out.push(0);
    let length = (out.len() - from - 4) as u32;
    out[from..from + 4].copy_from_slice(&length.to_le_bytes());
}

pub(super) fn binary(name: &str, value: &[u8], out: &mut Vec<u8>) {
    head(kind::BINARY, name, out);
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.push(0);
    out.extend_from_slice(value);
}

pub(super) fn double(name: &str, value: f64, out: &mut Vec<u8>) {
    head(kind::DOUBLE, name, out);
    out.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn int32(name: &str, value: i32, out: &mut Vec<u8>) {
    head(kind::INT32, name, out);
    out.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn int64(name: &str, value: i64, out: &mut Vec<u8>) {
    head(kind::INT64, name, out);
    out.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn boolean(name: &str, value: bool, out: &mut Vec<u8>) {
    head(kind::BOOLEAN, name, out);
    out.push(value.into());
}

pub(super) fn null(name: &str, out: &mut Vec<u8>) {
    head(kind::NULL, name, out);
}

/// Returns the error for a server that does this.
pub(super) fn broken(does: &str) -> DatabaseError {
    DatabaseError::Lost(format!("the server {does}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        let from = begin(&mut out);
        fill(&mut out);
        end(from, &mut out);
        out
    }

    #[test]
    fn documents_are_those_of_the_specification() {
        // The examples of bsonspec.org.
        assert_eq!(written(|out| text("hello", b"world", out)), b"\x16\0\0\0\x02hello\0\x06\0\0\0world\0\0");
        let list = written(|out| {
            array("BSON", out, |out| {
                text("0", b"awesome", out);
                double("1", 5.05, out);
                int32("2", 1986, out);
            });
        });
        let right = b"1\0\0\0\x04BSON\0&\0\0\0\x020\0\x08\0\0\0awesome\0\x011\x00333333\x14@\x102\0\xc2\x07\0\0\0\0";
        assert_eq!(list, right);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for bytes in [
            &b""[..],
            b"\x05\0\0\0",
            b"\x04\0\0\0",
            b"\xff\xff\xff\xff\0",
            b"\x05\0\0\0\x01",
            b"\x06\0\0\0\0\0\0",
            b"\x05\0\0\0\0\0",
        ] {
            assert!(Document::whole(bytes).is_err(), "{bytes:?}");
        }
        for inside in [&b"\x02a\0\x09\0\0\0abc\0"[..], b"\x02a\0\0\0\0\0", b"\x03a\0\x05\0\0\0", b"\x20a\0", b"\x08a"] {
            let bytes = written(|out| out.extend_from_slice(inside));
            let read = Document::whole(&bytes).unwrap().members().collect::<Result<Vec<_>, _>>();
            assert!(read.is_err(), "{inside:?}: {read:?}");
        }
        let early = written(|out| out.extend_from_slice(b"\0\x0aa\0"));
        assert!(Document::whole(&early).unwrap().get("b").is_err(), "members behind the end");
    }

    #[test]
    fn types_of_others_are_passed_over() {
        let others = [
            &b"\x06u\0"[..],
            b"\x07o\x000123456789ab",
            b"\x09t\x0012345678",
            b"\x0br\0a\0b\0",
            b"\x0dc\0\x02\0\0\0x\0",
            b"\x11s\x0012345678",
            b"\x13d\x000123456789abcdef",
            b"\x05b\0\x01\0\0\0\x04x",
            b"\xffl\0",
            b"\x7fh\0",
        ];
        let bytes = written(|out| {
            others.iter().for_each(|other| out.extend_from_slice(other));
            int64("last", 7, out);
        });
        let document = Document::whole(&bytes).unwrap();
        assert_eq!(document.get("last").unwrap(), Some(Value::Int(7)));
        let kinds = document.members().map(|member| member.unwrap().value);
        assert_eq!(kinds.filter(|value| matches!(value, Value::Other(_))).count(), others.len());
    }

    proptest! {
        #[test]
        fn every_value_comes_back(bits: u64, whole: i64, small: i32, word in "\\PC{0,9}", bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let real = f64::from_bits(bits);
            let out = written(|out| {
                double("a", real, out);
                int64("b", whole, out);
                int32("c", small, out);
                text("d", word.as_bytes(), out);
                binary("e", &bytes, out);
                boolean("f", true, out);
                null("g", out);
                document("h", out, |out| int32("i", 1, out));
            });
            let document = Document::whole(&out).unwrap();
            let get = |name: &str| document.get(name).unwrap().unwrap();
            prop_assert!(matches!(get("a"), Value::Double(found) if found.to_bits() == bits));
            prop_assert_eq!(get("b"), Value::Int(whole));
            prop_assert_eq!(get("c"), Value::Int(small.into()));
            prop_assert_eq!(get("d"), Value::Text(word.as_bytes()));
            prop_assert_eq!(get("e"), Value::Binary(&bytes));
            prop_assert_eq!((get("f"), get("g")), (Value::Boolean(true), Value::Null));
            let Value::Document(inner) = get("h") else { panic!("no document") };
            prop_assert_eq!(inner.get("i").unwrap(), Some(Value::Int(1)));
        }

        #[test]
        fn arbitrary_bytes_never_panic(inside in proptest::collection::vec(any::<u8>(), 0..64)) {
            let bytes = written(|out| out.extend_from_slice(&inside));
            for member in Document::whole(&bytes).unwrap().members() {
                prop_assert!(member.is_err() || member.unwrap().next <= bytes.len());
            }
        }
    }
}
