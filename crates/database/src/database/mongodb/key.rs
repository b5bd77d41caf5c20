//! The key of a document: `_id`, a text that has the values of the key's columns in it. Main types: [`Key`], which is made of values, and [`Range`], of keys.
//!
//! A text stands for itself. Whole numbers have as many digits as their type needs; one below zero is a minus sign and its distance from the least one. Several columns have a colon between them. So the texts have the order of
//! the values, and a range of keys is one of texts, which servers find in the index that every collection has. FerretDB finds nothing but texts (and MongoDB's own identifiers) in it.

use super::bson;
use crate::database::DatabaseError;
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::Comparison;

/// The name of the member that every document has, and no other document has with this value.
pub(super) const ID: &str = "_id";
/// The character between two columns, and the next one, which is behind every text that begins with the same columns.
const BETWEEN: u8 = b':';
const BEHIND: u8 = b';';

/// The value of a column of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub kind: ColumnKind,
    /// Index among a statement's values.
    pub place: usize,
    /// Whether it is the last column of the key.
    pub is_last: bool,
}

/// The construction of a key, or of its beginning, from values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(pub Vec<Part>);

/// A range of keys: bounds, all of which must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range(Vec<Bound>);

/// A bound of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    operator: &'static str,
    key: Key,
    /// What follows the values.
    suffix: Option<u8>,
}

/// Returns the number of digits of whole numbers of a kind, and the least one.
fn whole_of(kind: ColumnKind) -> Option<(usize, i64)> {
    match kind {
        ColumnKind::Int16 => Some((5, i16::MIN.into())),
        ColumnKind::Int32 => Some((10, i32::MIN.into())),
        ColumnKind::Int64 => Some((19, i64::MIN)),
        _ => None,
    }
}

/// Returns whether a column can be in a key, and whether texts of it have the order of its values.
///
/// # Errors
/// [`DatabaseError::Refused`] for a kind that no key has.
pub(super) fn check_kind(name: &str, kind: ColumnKind, is_last: bool) -> Result<bool, DatabaseError> {
    match kind {
        ColumnKind::Text(_) => Ok(is_last),
        kind if whole_of(kind).is_some() => Ok(true),
        _ => Err(refused(&format!("keys are of whole numbers and texts, and {name} is neither"))),
    }
}

fn append_part(part: Part, cells: &Cells, cell: Cell, out: &mut Vec<u8>) -> Option<()> {
    match (cell, whole_of(part.kind)) {
        (Cell::Int(value), Some((digits, least))) => {
            if value < least || value > -(least + 1) {
                return None;
            }
            if value < 0 {
                out.push(b'-');
            }
            let mut left = if value < 0 { value.wrapping_sub(least) } else { value };
            let from = out.len();
            out.resize(from + digits, b'0');
            for digit in out[from..].iter_mut().rev() {
                *digit += (left % 10) as u8;
                left /= 10;
            }
        }
        (Cell::Text(span), None) if part.is_last => out.extend_from_slice(cells.bytes_of(span)),
        (Cell::Text(span), None) => {
            for byte in cells.bytes_of(span) {
                if matches!(*byte, BETWEEN | b'\\') {
                    out.push(b'\\');
                }
                out.push(*byte);
            }
        }
        _ => return None,
    }
    Some(())
}

impl Key {
    /// Appends the key as a member of this name, with what follows it; `None` where a value is null, or none of its column's kind.
    #[inline]
    pub(super) fn append(
        &self,
        name: &str,
        suffix: Option<u8>,
        cells: &Cells,
        first: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let from = bson::begin_text(name, out);
        for (number, part) in self.0.iter().enumerate() {
            if number > 0 {
                out.push(BETWEEN);
            }
            append_part(*part, cells, cells.get(first + part.place), out)?;
        }
        out.extend(suffix);
        bson::end_text(from, out);
        Some(())
    }
}

impl Range {
    /// Returns the range of keys that begin with these values, and in whose next column these comparisons hold.
    pub(super) fn of(beginning: &[Part], tests: &[(Comparison, Part)]) -> Self {
        let bound = |operator, key: Vec<Part>, suffix| Bound { operator, key: Key(key), suffix };
        let with = |part: Part| beginning.iter().copied().chain([part]).collect::<Vec<_>>();
        let mut bounds: Vec<Bound> = Vec::new();
        for (comparison, part) in tests {
            let (operator, suffix) = match (comparison, part.is_last) {
                (Comparison::Equal, _) => ("$eq", None),
                (Comparison::NotEqual, _) => ("$ne", None),
                (Comparison::Less, _) => ("$lt", None),
                (Comparison::GreaterOrEqual, _) => ("$gte", None),
                (Comparison::LessOrEqual, true) => ("$lte", None),
                (Comparison::Greater, true) => ("$gt", None),
                (Comparison::LessOrEqual, false) => ("$lt", Some(BEHIND)),
                (Comparison::Greater, false) => ("$gte", Some(BEHIND)),
            };
            bounds.push(bound(operator, with(*part), suffix));
        }
        if !beginning.is_empty() {
            let has = |side: &str| bounds.iter().any(|bound| bound.operator.starts_with(side));
            let (has_lower, has_upper) = (has("$gt"), has("$lt"));
            if !has_lower {
                bounds.push(bound("$gte", beginning.to_vec(), Some(BETWEEN)));
            }
            if !has_upper {
                bounds.push(bound("$lt", beginning.to_vec(), Some(BEHIND)));
            }
        }
        Range(bounds)
    }

    /// Appends the range as a member of a filter; `None` where a value is null, or none of its column's kind.
    pub(super) fn append(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Option<()> {
        let from = bson::begin_document(ID, out);
        for Bound { operator, key, suffix } in &self.0 {
            key.append(operator, *suffix, cells, first, out)?;
        }
        bson::end(from, out);
        Some(())
    }

    /// Returns whether a bound takes the place of another one, because both have the same operator.
    pub(super) fn is_ambiguous(&self) -> bool {
        let operators = || self.0.iter().map(|bound| bound.operator);
        operators().enumerate().any(|(number, operator)| operators().skip(number + 1).any(|other| other == operator))
    }
}

/// Appends the value of a column of the key to `rows`, from the text of a key whose columns have these kinds; `None`, with nothing appended, where the text is no such key.
pub(super) fn keep(kinds: &[ColumnKind], column: usize, text: &[u8], rows: &mut Cells) -> Option<()> {
    let mut rest = text;
    for (number, kind) in kinds.iter().enumerate() {
        let is_last = number + 1 == kinds.len();
        let length = match whole_of(*kind) {
            Some((digits, _)) => digits + usize::from(rest.first() == Some(&b'-')),
            None if is_last => rest.len(),
            None => end_of_text(rest)?,
        };
        let (own, behind) = rest.split_at_checked(length)?;
        if number == column {
            return keep_part(*kind, is_last, own, rows);
        }
        rest = behind.strip_prefix(&[BETWEEN])?;
    }
    None
}

/// Returns where a text ends that has backslashes in front of its own colons and backslashes.
fn end_of_text(text: &[u8]) -> Option<usize> {
    let mut place = 0;
    while *text.get(place)? != BETWEEN {
        place += if text[place] == b'\\' { 2 } else { 1 };
    }
    Some(place)
}

fn keep_part(kind: ColumnKind, is_last: bool, own: &[u8], rows: &mut Cells) -> Option<()> {
    if let Some((_, least)) = whole_of(kind) {
        let (is_below, digits) = own.strip_prefix(b"-").map_or((false, own), |digits| (true, digits));
        let number: i64 = std::str::from_utf8(digits).ok().filter(|_| digits[0] != b'+')?.parse().ok()?;
        let most = -(least + 1);
        if number > most {
            return None;
        }
        rows.int(if is_below { number + least } else { number });
        return Some(());
    }
    let text = std::str::from_utf8(own).ok()?;
    if is_last || !text.contains('\\') {
        rows.text(text);
        return Some(());
    }
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next()? } else { letter });
    }
    rows.text(&plain);
    Some(())
}

/// Returns the error for what MongoDB does not do.
pub(super) fn refused(why: &str) -> DatabaseError {
    DatabaseError::refused("mongodb", why)
}

#[cfg(test)]
mod tests {
    use super::super::bson::{Document, Value};
    use super::*;
    use proptest::prelude::*;

    const TEXT: ColumnKind = ColumnKind::Text(20);

    /// The text of a key with these kinds of columns.
    fn text_of(kinds: &[ColumnKind], fill: impl FnOnce(&mut Cells)) -> Option<Vec<u8>> {
        let (mut cells, mut out) = (Cells::new(), Vec::new());
        fill(&mut cells);
        let part = |(place, kind): (usize, &ColumnKind)| Part { kind: *kind, place, is_last: place + 1 == kinds.len() };
        let from = bson::begin(&mut out);
        Key(kinds.iter().enumerate().map(part).collect()).append(ID, None, &cells, 0, &mut out)?;
        bson::end(from, &mut out);
        match Document::whole(&out).unwrap().get(ID).unwrap() {
            Some(Value::Text(text)) => Some(text.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    fn kept(kinds: &[ColumnKind], text: &[u8]) -> Option<Cells> {
        let mut rows = Cells::new();
        (0..kinds.len()).try_for_each(|column| keep(kinds, column, text, &mut rows))?;
        Some(rows)
    }

    #[test]
    fn people_can_read_keys() {
        let of = |kind, value| String::from_utf8(text_of(&[kind], |cells| cells.int(value)).unwrap()).unwrap();
        assert_eq!(of(ColumnKind::Int64, 5), "0000000000000000005");
        assert_eq!(of(ColumnKind::Int16, -1), "-32767");
        assert_eq!(text_of(&[TEXT], |cells| cells.text("a:b\\")).unwrap(), b"a:b\\");
        let both = text_of(&[ColumnKind::Int32, TEXT], |cells| {
            cells.int(7);
            cells.text("rtt:ms");
        });
        assert_eq!(both.unwrap(), b"0000000007:rtt:ms");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        assert_eq!(text_of(&[ColumnKind::Int16], |cells| cells.int(40_000)), None);
        assert_eq!(text_of(&[ColumnKind::Int64], Cells::null), None);
        assert_eq!(text_of(&[TEXT], |cells| cells.int(1)), None);
        for text in [&b""[..], b"5", b"00000000000000000x5", b"99999999999999999999", b"+000000000000000005", b"\xff"] {
            assert!(kept(&[ColumnKind::Int64], text).is_none(), "{text:?}");
            assert!(kept(&[ColumnKind::Int64, TEXT], text).is_none(), "{text:?}");
        }
        assert!(kept(&[TEXT, TEXT], b"a\\").is_none());
        assert!(check_kind("x", ColumnKind::Float64, true).is_err());
    }

    proptest! {
        #[test]
        fn keys_come_back_and_have_the_order_of_their_values(a: i64, b: i64, c in "[a:\\\\ß]{0,4}", d in "[a:\\\\ß]{0,4}") {
            let whole = |value: i64| text_of(&[ColumnKind::Int64], |cells| cells.int(value)).unwrap();
            prop_assert_eq!(whole(a).cmp(&whole(b)), a.cmp(&b));
            prop_assert_eq!(kept(&[ColumnKind::Int64], &whole(a)).unwrap().get(0), Cell::Int(a));
            let kinds = [ColumnKind::Int64, TEXT];
            let of = |number: i64, text: &str| text_of(&kinds, |cells| {
                cells.int(number);
                cells.text(text);
            }).unwrap();
            prop_assert_eq!(of(a, &c).cmp(&of(b, &d)), (a, &c).cmp(&(b, &d)));
            let words = [TEXT, TEXT];
            let key = text_of(&words, |cells| {
                cells.text(&c);
                cells.text(&d);
            }).unwrap();
            let found = kept(&words, &key).unwrap();
            for (place, right) in [&c, &d].into_iter().enumerate() {
                let Cell::Text(span) = found.get(place) else { panic!("no text") };
                prop_assert_eq!(found.bytes_of(span), right.as_bytes());
            }
        }

        #[test]
        fn arbitrary_texts_never_panic(text in proptest::collection::vec(any::<u8>(), 0..30)) {
            for kinds in [&[ColumnKind::Int64][..], &[TEXT, ColumnKind::Int16], &[ColumnKind::Int32, TEXT, TEXT]] {
                let _ = kept(kinds, &text);
            }
        }
    }
}
