//! The values of a prepared statement, in memory that the driver reads while it executes the statement. Main type: [`Parameters`].
//!
//! Invariant: the memory of numbers and lengths stays in its place as long as the statement lives; that of texts and bytes is bound anew at each execution.

use super::symbols::{Handle, NULL, Return, Symbols, held, types};
use crate::record::{Cell, Cells, ColumnKind};

/// `SQL_PARAM_INPUT`
const INPUT: i16 = 1;
/// Longest text, in units of UTF-16, and most bytes that have an ordinary type. Longer ones have the types that all systems take in any length.
const ORDINARY_MOST: usize = 4_000;
/// Digits of a whole number, and binary digits of a floating-point number, as ODBC counts them.
const DIGITS: [usize; 2] = [19, 53];

/// What a parameter is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Unbound,
    Whole,
    Number,
    /// Text or bytes, whose place changes.
    Elsewhere,
}

/// The values of a statement.
#[derive(Debug)]
pub struct Parameters {
    /// The kind of each parameter; `None` where only the value determines it.
    kinds: Vec<Option<ColumnKind>>,
    forms: Vec<Form>,
    /// Numbers as bits, and for texts where they begin in `units`.
    values: Vec<u64>,
    /// Lengths in bytes, or [`NULL`].
    lengths: Vec<isize>,
    units: Vec<u16>,
    /// Whether texts go to the driver in UTF-8.
    is_utf8: bool,
}

impl Parameters {
    /// Creates the memory for parameters of these kinds. Texts go to the driver in UTF-8 or in UTF-16.
    pub fn new(kinds: Vec<Option<ColumnKind>>, is_utf8: bool) -> Self {
        let count = kinds.len();
        Parameters {
            kinds,
            forms: vec![Form::Unbound; count],
            values: vec![0; count],
            lengths: vec![0; count],
            units: Vec::new(),
            is_utf8,
        }
    }

    /// Returns the number of parameters.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Takes over the values of an execution, as many as there are parameters, and binds what has another place than before. Returns the first code that says a call failed.
    ///
    /// # Errors
    /// A sentence if a value cannot be given to a driver.
    ///
    /// # Safety
    /// The statement must be alive and be executed only while these parameters and the cells are alive and unchanged.
    pub unsafe fn bind(
        &mut self,
        symbols: &Symbols,
        statement: Handle,
        (values, cells): (&[Cell], &Cells),
        is_done: impl Fn(Return) -> bool,
    ) -> Result<Option<Return>, &'static str> {
        self.take_in(values, cells)?;
        for (place, cell) in values.iter().enumerate() {
            let form = match (cell, self.forms[place], self.kinds[place]) {
                (Cell::Int(_), ..) => Form::Whole,
                (Cell::Float(_), ..) => Form::Number,
                (Cell::Text(_) | Cell::Blob(_), ..) => Form::Elsewhere,
                (Cell::Null, Form::Unbound, kind) => form_of(kind),
                (Cell::Null, bound, _) => bound,
            };
            if form == self.forms[place] && form != Form::Elsewhere {
                continue;
            }
            let bound = match (form, cell) {
                (Form::Whole, _) => (held::WHOLE, types::BIGINT, DIGITS[0], self.value_at(place), 8),
                (Form::Number, _) => (held::NUMBER, types::DOUBLE, DIGITS[1], self.value_at(place), 8),
                (_, Cell::Blob(span)) => {
                    let bytes = cells.bytes_of(*span);
                    let kind = if bytes.len() > ORDINARY_MOST { types::LONGVARBINARY } else { types::VARBINARY };
                    (held::BYTES, kind, bytes.len().max(1), bytes.as_ptr().cast_mut().cast(), bytes.len())
                }
                (_, Cell::Text(span)) if self.is_utf8 => {
                    let text = cells.bytes_of(*span);
                    let kind = if text.len() > ORDINARY_MOST { types::LONGVARCHAR } else { types::VARCHAR };
                    (held::UTF8, kind, text.len().max(1), text.as_ptr().cast_mut().cast(), text.len())
                }
                (_, Cell::Null) if self.is_bytes(place) => (held::BYTES, types::VARBINARY, 1, self.value_at(place), 8),
                _ => {
                    let bytes = usize::try_from(self.lengths[place]).unwrap_or(0);
                    let units = bytes / size_of::<u16>();
                    let kind = if units > ORDINARY_MOST { types::WLONGVARCHAR } else { types::WVARCHAR };
                    let start = usize::try_from(self.values[place]).unwrap_or(0).min(self.units.len());
                    // SAFETY: the start is within the units or at their end.
                    let text = unsafe { self.units.as_mut_ptr().add(start) };
                    (held::TEXT, kind, units.max(1), text.cast(), bytes)
                }
            };
            let (of_program, of_sql, size, address, length) = bound;
            let number = place as u16 + 1;
            // SAFETY: the statement is alive, as the caller promises, and the parameter is one of its. The addresses stay valid until the statement has been executed: numbers and
            // lengths never move, units move only in `take_in`, and bytes are the caller's.
            let code = unsafe {
                let length_at = self.lengths.as_mut_ptr().add(place);
                let length = isize::try_from(length).unwrap_or(isize::MAX);
                (symbols.BindParameter)(
                    statement, number, INPUT, of_program, of_sql, size, 0, address, length, length_at,
                )
            };
            self.forms[place] = form;
            if !is_done(code) {
                return Ok(Some(code));
            }
        }
        Ok(None)
    }

    /// Copies numbers, lengths, and the texts that become UTF-16.
    fn take_in(&mut self, values: &[Cell], cells: &Cells) -> Result<(), &'static str> {
        self.units.clear();
        for (place, cell) in values.iter().enumerate() {
            let (value, length) = match cell {
                Cell::Null => (0, NULL),
                Cell::Int(value) => (*value as u64, size_of::<i64>() as isize),
                Cell::Float(value) => (value.to_bits(), size_of::<f64>() as isize),
                Cell::Blob(span) => (0, cells.bytes_of(*span).len() as isize),
                Cell::Text(span) => {
                    let text = cells.bytes_of(*span);
                    if text.contains(&0) {
                        return Err("a text has a zero character, at which drivers end texts; leave it out");
                    }
                    if self.is_utf8 {
                        (self.values[place], self.lengths[place]) = (0, text.len() as isize);
                        continue;
                    }
                    let start = self.units.len();
                    if text.is_ascii() {
                        self.units.extend(text.iter().map(|byte| u16::from(*byte)));
                    } else {
                        let text = str::from_utf8(text).map_err(|_| "a text is not UTF-8")?;
                        self.units.extend(text.encode_utf16());
                    }
                    (start as u64, (size_of::<u16>() * (self.units.len() - start)) as isize)
                }
            };
            (self.values[place], self.lengths[place]) = (value, length);
        }
        // An empty text has a place too.
        self.units.push(0);
        Ok(())
    }

    fn value_at(&mut self, place: usize) -> *mut std::ffi::c_void {
        (&raw mut self.values[place]).cast()
    }

    fn is_bytes(&self, place: usize) -> bool {
        matches!(self.kinds[place], Some(ColumnKind::Blob(_)))
    }
}

/// Returns what a parameter is bound to whose first value is null.
fn form_of(kind: Option<ColumnKind>) -> Form {
    match kind {
        Some(ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64) => Form::Whole,
        Some(ColumnKind::Float64) => Form::Number,
        Some(ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json) | None => Form::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_utf_16_and_zero_characters_are_refused() {
        let mut cells = Cells::new();
        cells.text("a🚦");
        cells.text("");
        cells.float(0.5);
        let mut parameters = Parameters::new(vec![None; 3], false);
        parameters.take_in(cells.as_slice(), &cells).unwrap();
        assert_eq!((&parameters.lengths[..], &parameters.values[..2]), (&[6, 0, 8][..], &[0, 3][..]));
        assert_eq!(String::from_utf16(&parameters.units[..3]).unwrap(), "a🚦");
        assert_eq!(f64::from_bits(parameters.values[2]), 0.5);
        cells.clear();
        cells.text("a\0b");
        assert!(parameters.take_in(cells.as_slice(), &cells).is_err());
    }
}
