//! Answers to queries as they arrive: `{"results": [{"series": [{"tags": {…}, "columns": […], "values": [[…], …]}, …]}]}` in MessagePack, with the time first in each row. Main type: [`Taking`].
//!
//! Invariant: no more of an answer is kept than one token that is incomplete, and the row it belongs to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::msgpack::{Token, token};
use crate::database::error::{TOLD_MOST, shown};
use crate::database::session::ANSWER_BYTES_MAX;
use crate::record::{Cell, Cells, ColumnKind};

/// The maximum depth of lists and maps within each other.
const DEPTH_MAX: usize = 16;

/// Where a value of a row of the answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The column with this index of the server's row; 0 for its time.
    Column(usize),
    /// The tag of the series that the row belongs to.
    Group,
}

/// A column of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Out {
    pub from: From,
    pub kind: ColumnKind,
    /// Whether a point can be without it.
    pub nullable: bool,
}

/// What is read from the rows of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reads {
    /// The number of columns of the server's rows, with the time.
    pub width: usize,
    /// The columns of the answer.
    pub outs: Vec<Out>,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// That of the server.
    AsItComes,
    /// By the second value, and rows with the same one by the first: the server leaves the order of readings with the same time open.
    ByTimeAndSource,
    /// The largest second value first: the server orders by time what it has ranked.
    Falling,
}

/// What a token belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Results,
    Result,
    SeriesList,
    Series,
    Tags,
    Columns,
    Values,
    Row,
    /// Something that is passed over.
    Other,
}

/// The name of a map's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Results,
    Error,
    Series,
    Tags,
    Columns,
    Values,
    Other,
}

/// A list or a map that has begun.
#[derive(Debug, Clone, Copy)]
struct Frame {
    place: Place,
    /// The number of values that are to come; each value of a map has its name in front.
    left: u32,
    is_map: bool,
    /// The name of the value that comes next, where the name is there.
    name: Option<Name>,
}

/// An answer that is taken in.
#[derive(Debug, Default)]
pub(super) struct Taking {
    frames: Vec<Frame>,
    /// The beginning of a token.
    rest: Vec<u8>,
    needed: usize,
    /// The values of the row that has begun.
    row: Cells,
    /// The tag of the series that has begun.
    group: Option<i64>,
    is_over: bool,
    /// The number of rows so far.
    pub rows: u64,
    /// The server's error.
    pub error: Option<String>,
    /// The first value that is none of its column's type.
    pub wrong: Option<String>,
    /// Whether a row that is kept is without a value that each point has: the server shows the fields of a point one by one while it is written.
    pub is_torn: bool,
}

impl Taking {
    /// Makes it ready for the next answer.
    pub(super) fn begin(&mut self) {
        self.frames.clear();
        self.rest.clear();
        self.row.clear();
        (self.needed, self.group, self.is_over, self.rows) = (1, None, false, 0);
        (self.error, self.wrong, self.is_torn) = (None, None, false);
    }

    /// Takes in bytes of an answer. Whole rows are appended to `kept`, if there is any.
    ///
    /// # Errors
    /// A sentence: it is no such answer.
    pub(super) fn take(&mut self, reads: &Reads, bytes: &[u8], mut kept: Option<&mut Cells>) -> Result<(), String> {
        let mut bytes = bytes;
        // Most tokens arrive as a whole, and are not copied.
        while !self.rest.is_empty() && !bytes.is_empty() {
            let missing = self.needed.saturating_sub(self.rest.len()).clamp(1, bytes.len());
            self.rest.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.rest.len() < self.needed {
                break;
            }
            let rest = std::mem::take(&mut self.rest);
            let taken = match token(&rest)? {
                Ok((token, _)) => self.token(reads, token, kept.as_deref_mut()).map(|()| true),
                Err(needed) => {
                    self.needed = needed;
                    Ok(false)
                }
            };
            self.rest = rest;
            if taken? {
                self.rest.clear();
            }
        }
        while !bytes.is_empty() {
            match token(bytes)? {
                Ok((token, length)) => {
                    self.token(reads, token, kept.as_deref_mut())?;
                    bytes = &bytes[length..];
                }
                Err(needed) => {
                    self.needed = needed;
                    self.rest.extend_from_slice(bytes);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Completes the answer.
    ///
    /// # Errors
    /// A sentence: it is cut.
    pub(super) fn end(&mut self) -> Result<(), String> {
        if self.is_over && self.rest.is_empty() { Ok(()) } else { Err("it is cut".to_owned()) }
    }

    fn token(&mut self, reads: &Reads, token: Token<'_>, kept: Option<&mut Cells>) -> Result<(), String> {
        let Some(frame) = self.frames.last_mut() else {
            return match token {
                _ if self.is_over => Err("something follows it".to_owned()),
                Token::Map(members) => self.open(Place::Root, members, true, reads, kept),
                _ => Err("it is no map".to_owned()),
            };
        };
        if frame.is_map && frame.name.is_none() {
            let Token::Text(name) = token else { return Err("a name is no text".to_owned()) };
            frame.name = Some(name_of(frame.place, name));
            return Ok(());
        }
        let (place, name) = (frame.place, frame.name.take());
        frame.left -= 1;
        match (place, name, token) {
            (Place::Root, Some(Name::Results), Token::List(results)) => {
                self.open(Place::Results, results, false, reads, kept)
            }
            (Place::Results, _, Token::Map(members)) => self.open(Place::Result, members, true, reads, kept),
            (Place::Root | Place::Result, Some(Name::Error), Token::Text(told)) => {
                let told = String::from_utf8_lossy(&told[..told.len().min(4 * TOLD_MOST)]);
                self.error.get_or_insert_with(|| shown(&told, TOLD_MOST));
                self.close(reads, kept)
            }
            (Place::Result, Some(Name::Series), Token::List(series)) => {
                self.open(Place::SeriesList, series, false, reads, kept)
            }
            (Place::SeriesList, _, Token::Map(members)) => {
                self.group = None;
                self.open(Place::Series, members, true, reads, kept)
            }
            (Place::Series, Some(Name::Tags), Token::Map(tags)) => self.open(Place::Tags, tags, true, reads, kept),
            (Place::Series, Some(Name::Columns), Token::List(columns)) if columns as usize != reads.width => {
                Err(format!("it has {columns} columns instead of {}", reads.width))
            }
            (Place::Series, Some(Name::Columns), Token::List(columns)) => {
                self.open(Place::Columns, columns, false, reads, kept)
            }
            (Place::Series, Some(Name::Values), Token::List(rows)) => {
                self.open(Place::Values, rows, false, reads, kept)
            }
            (Place::Values, _, Token::List(columns)) if columns as usize == reads.width => {
                self.row.clear();
                self.open(Place::Row, columns, false, reads, kept)
            }
            (Place::Values, ..) => Err(format!("a row is no list of {} values", reads.width)),
            (Place::Row, _, token) => {
                self.value(token)?;
                self.close(reads, kept)
            }
            (Place::Tags, _, Token::Text(tag)) => {
                self.group = std::str::from_utf8(tag).ok().and_then(|tag| tag.parse().ok());
                self.close(reads, kept)
            }
            (_, _, Token::List(members)) => self.open(Place::Other, members, false, reads, kept),
            (_, _, Token::Map(members)) => self.open(Place::Other, members, true, reads, kept),
            _ => self.close(reads, kept),
        }
    }

    /// Begins a list or map.
    fn open(
        &mut self,
        place: Place,
        left: u32,
        is_map: bool,
        reads: &Reads,
        kept: Option<&mut Cells>,
    ) -> Result<(), String> {
        if self.frames.len() == DEPTH_MAX {
            return Err("it is too deep".to_owned());
        }
        self.frames.push(Frame { place, left, is_map, name: None });
        self.close(reads, kept)
    }

    /// Ends the lists and maps that are complete.
    fn close(&mut self, reads: &Reads, mut kept: Option<&mut Cells>) -> Result<(), String> {
        while let Some(frame) = self.frames.last().filter(|frame| frame.left == 0) {
            if frame.place == Place::Row {
                self.rows += 1;
                if let Some(kept) = kept.as_deref_mut() {
                    self.keep(reads, kept);
                }
            }
            self.frames.pop();
            self.is_over = self.frames.is_empty();
        }
        Ok(())
    }

    /// Takes in a value of a row.
    fn value(&mut self, token: Token<'_>) -> Result<(), String> {
        match token {
            Token::Nil => self.row.null(),
            Token::Int(value) => self.row.int(value),
            Token::Float(value) => self.row.float(value),
            Token::Text(text) => {
                if self.row.text_bytes() + text.len() > ANSWER_BYTES_MAX {
                    return Err(format!("a row has more than {} MiB", ANSWER_BYTES_MAX >> 20));
                }
                self.row.blob(text);
            }
            Token::Bool(_) | Token::List(_) | Token::Map(_) => return Err("a value is of an unknown type".to_owned()),
        }
        Ok(())
    }

    /// Appends the row that is complete.
    fn keep(&mut self, reads: &Reads, kept: &mut Cells) {
        for Out { from, kind, nullable } in &reads.outs {
            let cell = match (from, self.group) {
                (From::Column(place), _) => self.row.get(*place),
                (From::Group, Some(group)) => Cell::Int(group),
                (From::Group, None) => Cell::Null,
            };
            self.is_torn |= cell == Cell::Null && !nullable;
            if keep_value(*kind, &self.row, cell, kept).is_none() {
                kept.null();
                let found = self.row.to_json(cell).to_string();
                self.wrong.get_or_insert_with(|| format!("{} is no value of the type {kind:?}", shown(&found, 80)));
            }
        }
    }
}

fn name_of(place: Place, name: &[u8]) -> Name {
    match (place, name) {
        (Place::Root, b"results") => Name::Results,
        (Place::Root | Place::Result, b"error") => Name::Error,
        (Place::Result, b"series") => Name::Series,
        (Place::Series, b"tags") => Name::Tags,
        (Place::Series, b"columns") => Name::Columns,
        (Place::Series, b"values") => Name::Values,
        _ => Name::Other,
    }
}

/// Appends a value as one of a type; `None` where it is none.
fn keep_value(kind: ColumnKind, row: &Cells, cell: Cell, kept: &mut Cells) -> Option<()> {
    match (kind, cell) {
        (_, Cell::Null) => kept.null(),
        (ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64, Cell::Int(value)) => kept.int(value),
        // A tag is a text.
        (ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64, Cell::Blob(span)) => {
            kept.int(std::str::from_utf8(row.bytes_of(span)).ok()?.parse().ok()?);
        }
        (ColumnKind::Float64, Cell::Float(value)) => kept.float(value),
        (ColumnKind::Text(_) | ColumnKind::Json, Cell::Blob(span)) => {
            kept.text(std::str::from_utf8(row.bytes_of(span)).ok()?);
        }
        (ColumnKind::Blob(_), Cell::Blob(span)) => kept.blob(&STANDARD.decode(row.bytes_of(span)).ok()?),
        _ => return None,
    }
    Some(())
}

/// Brings the rows from `first` on, each of `width` values, into their order.
pub(super) fn put_in_order(order: Order, width: usize, first: usize, kept: &mut Cells) {
    use std::cmp::Ordering;
    let number = |row: usize, place: usize| match kept.get(first + row * width + place) {
        Cell::Int(value) => (value as f64, value),
        Cell::Float(value) => (value, 0),
        _ => (f64::NEG_INFINITY, i64::MIN),
    };
    // Whole numbers are compared as such where they are equal as others.
    let by = |a: (f64, i64), b: (f64, i64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    let compare = |a: &usize, b: &usize| match order {
        Order::AsItComes => Ordering::Equal,
        Order::ByTimeAndSource => by(number(*a, 1), number(*b, 1)).then_with(|| by(number(*a, 0), number(*b, 0))),
        Order::Falling => by(number(*b, 1), number(*a, 1)),
    };
    let count = kept.len().saturating_sub(first) / width.max(1);
    if order == Order::AsItComes || width < 2 || (0..count).is_sorted_by(|a, b| compare(a, b) != Ordering::Greater) {
        return;
    }
    let mut rows: Vec<usize> = (0..count).collect();
    rows.sort_by(compare);
    let mut ordered = Cells::new();
    for place in rows.into_iter().flat_map(|row| row * width..(row + 1) * width) {
        ordered.copy_from(kept, kept.get(first + place));
    }
    kept.truncate(first);
    kept.append(&ordered);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(text: &str, out: &mut Vec<u8>) {
        out.push(0xd9);
        out.push(text.len() as u8);
        out.extend_from_slice(text.as_bytes());
    }

    /// An answer with two series of a row each: a time, a text and a number.
    fn answer() -> Vec<u8> {
        let mut out = vec![0x81];
        text("results", &mut out);
        out.extend_from_slice(&[0x91, 0x82]);
        text("statement_id", &mut out);
        out.push(0);
        text("series", &mut out);
        out.push(0x92);
        for (source, value) in [("7", 0xc0), ("-8", 0x05)] {
            out.push(0x84);
            text("name", &mut out);
            text("t", &mut out);
            text("tags", &mut out);
            out.push(0x81);
            text("source", &mut out);
            text(source, &mut out);
            text("columns", &mut out);
            out.push(0x93);
            ["time", "note", "v"].iter().for_each(|name| text(name, &mut out));
            text("values", &mut out);
            out.extend_from_slice(&[0x91, 0x93, 0x2a]);
            text("aGk=", &mut out);
            out.push(value);
        }
        out
    }

    fn reads() -> Reads {
        let out = |from, kind| Out { from, kind, nullable: true };
        let outs = vec![
            out(From::Group, ColumnKind::Int32),
            out(From::Column(2), ColumnKind::Int64),
            out(From::Column(1), ColumnKind::Blob(9)),
            out(From::Column(0), ColumnKind::Int64),
        ];
        Reads { width: 3, outs }
    }

    fn taken(bytes: &[u8], piece: usize) -> Result<(Taking, Cells), String> {
        let (mut taking, mut rows) = (Taking::default(), Cells::new());
        taking.begin();
        for piece in bytes.chunks(piece) {
            taking.take(&reads(), piece, Some(&mut rows))?;
        }
        taking.end()?;
        Ok((taking, rows))
    }

    #[test]
    fn rows_are_read_in_pieces_of_any_size() {
        let mut right = Cells::new();
        for (source, value) in [(7, None), (-8, Some(5))] {
            right.int(source);
            right.plain(value.map_or(Cell::Null, Cell::Int));
            right.blob(b"hi");
            right.int(42);
        }
        for piece in [1, 2, 7, 1_000] {
            let (taking, rows) = taken(&answer(), piece).unwrap();
            assert_eq!((taking.rows, taking.error, taking.wrong), (2, None, None));
            assert_eq!(rows, right, "{piece}");
        }
        for cut in 0..answer().len() {
            assert!(taken(&answer()[..cut], 5).is_err(), "{cut}");
        }
        assert!(taken(&[answer(), vec![0x80]].concat(), 9).is_err_and(|why| why.contains("follows")));
    }

    #[test]
    fn an_error_is_told_and_a_value_of_another_type_is_seen() {
        let mut error = vec![0x81];
        text("error", &mut error);
        text("no\u{1b}", &mut error);
        assert_eq!(taken(&error, 3).unwrap().0.error.as_deref(), Some("no?"));
        let mut other = answer();
        let last = other.len() - 1;
        other[last] = 0xcb;
        other.extend_from_slice(&1.5_f64.to_be_bytes());
        let wrong = taken(&other, 3).unwrap().0.wrong.unwrap();
        assert_eq!(wrong, "1.5 is no value of the type Int64");
        let deep = [vec![0x81, 0xa1, b'x'], vec![0x91; DEPTH_MAX + 1]].concat();
        assert!(taken(&deep, 2).is_err_and(|why| why.contains("deep")));
    }

    #[test]
    fn rows_are_put_in_order() {
        let ordered = |order, rows: &[(i64, i64)]| {
            let mut cells = Cells::new();
            cells.text("before");
            for (a, b) in rows {
                cells.int(*a);
                cells.int(*b);
            }
            put_in_order(order, 2, 1, &mut cells);
            let pairs = cells.as_slice()[1..].chunks(2).map(|pair| match pair {
                [Cell::Int(a), Cell::Int(b)] => (*a, *b),
                other => panic!("{other:?}"),
            });
            pairs.collect::<Vec<_>>()
        };
        let large = i64::MAX;
        assert_eq!(
            ordered(Order::Falling, &[(1, 3), (2, large - 1), (3, large)]),
            [(3, large), (2, large - 1), (1, 3)]
        );
        assert_eq!(ordered(Order::ByTimeAndSource, &[(2, 5), (1, 5), (9, 4)]), [(9, 4), (1, 5), (2, 5)]);
        assert_eq!(ordered(Order::AsItComes, &[(2, 5), (1, 5)]), [(2, 5), (1, 5)]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, piece in 1_usize..9) {
            prop_assert_eq!(taken(&bytes, piece).map(|(_, rows)| rows).ok(), taken(&bytes, 1_000).map(|(_, rows)| rows).ok());
        }

        #[test]
        fn damaged_answers_never_panic(at in 0_usize..100, byte: u8, piece in 1_usize..9) {
            let mut bytes = answer();
            let at = at % bytes.len();
            bytes[at] = byte;
            prop_assert_eq!(taken(&bytes, piece).map(|(_, rows)| rows).ok(), taken(&bytes, 1_000).map(|(_, rows)| rows).ok());
        }
    }
}
