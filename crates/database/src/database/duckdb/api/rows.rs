//! The rows of an answer. Main type: [`Rows`].
//!
//! Invariant: a value is read only where DuckDB says that it is there, and with the type that DuckDB says it has.

use std::ffi::c_int;
use std::sync::Arc;

use super::database::Connection;
use super::symbols::{Handle, RawResult, SUCCESS, State, text_at};
use crate::database::DatabaseError;
use crate::database::stepwise::Kept;
use crate::record::Cells;

/// Types of columns, as in `duckdb_type`.
pub mod types {
    use std::ffi::c_int;

    pub const BOOLEAN: c_int = 1;
    pub const TINYINT: c_int = 2;
    pub const SMALLINT: c_int = 3;
    pub const INTEGER: c_int = 4;
    pub const BIGINT: c_int = 5;
    pub const UTINYINT: c_int = 6;
    pub const USMALLINT: c_int = 7;
    pub const UINTEGER: c_int = 8;
    pub const UBIGINT: c_int = 9;
    pub const FLOAT: c_int = 10;
    pub const DOUBLE: c_int = 11;
    pub const HUGEINT: c_int = 16;
    pub const VARCHAR: c_int = 17;
    pub const BLOB: c_int = 18;
    pub const DECIMAL: c_int = 19;
    /// The type of a null without another type.
    pub const SQLNULL: c_int = 36;
}

/// `DUCKDB_RESULT_TYPE_QUERY_RESULT`
const QUERY_RESULT: c_int = 3;

/// The answer to a statement.
#[derive(Debug)]
pub struct Rows {
    raw: RawResult,
    is_of_changes: bool,
    connection: Arc<Connection>,
}

impl Rows {
    /// Takes over a result that a function of DuckDB has filled, and the state that it returned.
    ///
    /// # Errors
    /// DuckDB's message.
    ///
    /// # Safety
    /// The result must come from this connection, and nothing else may use it.
    pub(super) unsafe fn new(connection: Arc<Connection>, raw: RawResult, state: State) -> Result<Self, String> {
        let mut rows = Rows { raw, is_of_changes: false, connection };
        if state == SUCCESS {
            return Ok(rows);
        }
        // SAFETY: the result is alive; its message lives as long as it does, and is copied.
        Err(unsafe { text_at((rows.connection.symbols().result_error)(&mut rows.raw)) })
    }

    /// Marks the rows as those that a statement has changed.
    pub(super) fn of_changes(mut self) -> Self {
        self.is_of_changes = true;
        self
    }

    /// Returns whether the statement answers with rows, even if there are none.
    pub fn is_query(&self) -> bool {
        // SAFETY: the result is alive; the function only reads it.
        unsafe { (self.connection.symbols().result_return_type)(self.raw) == QUERY_RESULT }
    }

    /// Reads the answer. Returns the number of rows read and of rows changed.
    ///
    /// # Errors
    /// When a value that is to be kept has a type that is not known here.
    pub fn read(mut self, kept: &mut Kept<'_>) -> Result<(u64, u64), DatabaseError> {
        if !self.is_query() {
            // SAFETY: the result is alive.
            return Ok((0, unsafe { (self.connection.symbols().rows_changed)(&mut self.raw) }));
        }
        let kinds = if kept.is_none() { Vec::new() } else { self.kinds()? };
        let mut read = 0;
        while let Some(chunk) = self.next_chunk() {
            let rows = chunk.rows();
            if !kept.is_none() {
                let columns: Vec<Column<'_>> = (0..).zip(&kinds).map(|(at, kind)| chunk.column(at, *kind)).collect();
                for row in 0..rows {
                    for out in kept.all.as_deref_mut().into_iter().chain(kept.first.take()) {
                        columns.iter().for_each(|column| column.value(row).append(out));
                    }
                }
            }
            read += rows as u64;
        }
        Ok((read, if self.is_of_changes { read } else { 0 }))
    }

    /// Returns the rows as text, null as `None`.
    ///
    /// # Errors
    /// When a column has a type that is not known here.
    pub fn texts(mut self) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        let mut all = Vec::new();
        if !self.is_query() {
            return Ok(all);
        }
        let kinds = self.kinds()?;
        while let Some(chunk) = self.next_chunk() {
            let columns: Vec<Column<'_>> = (0..).zip(&kinds).map(|(at, kind)| chunk.column(at, *kind)).collect();
            let row = |row| columns.iter().map(|column| column.value(row).text()).collect();
            all.extend((0..chunk.rows()).map(row));
        }
        Ok(all)
    }

    fn next_chunk(&mut self) -> Option<Chunk<'_>> {
        // SAFETY: the result is alive; the chunk that is returned is ours, and null behind the last one.
        let handle = unsafe { (self.connection.symbols().fetch_chunk)(self.raw) };
        (!handle.is_null()).then(|| Chunk { handle, connection: &self.connection })
    }

    fn kinds(&mut self) -> Result<Vec<Kind>, DatabaseError> {
        // SAFETY: the result is alive.
        let count = unsafe { (self.connection.symbols().column_count)(&mut self.raw) };
        (0..count).map(|column| self.kind(column)).collect()
    }

    fn kind(&mut self, column: u64) -> Result<Kind, DatabaseError> {
        let symbols = self.connection.symbols();
        // SAFETY: the result is alive and has this column. The type that is asked for is ours, and freed here.
        let (kind, of_decimal) = unsafe {
            let kind = (symbols.column_type)(&mut self.raw, column);
            let mut of_decimal = (0, 0);
            if kind == types::DECIMAL {
                let mut logical = (symbols.column_logical_type)(&mut self.raw, column);
                of_decimal = ((symbols.decimal_internal_type)(logical), (symbols.decimal_scale)(logical));
                (symbols.destroy_logical_type)(&mut logical);
            }
            (kind, of_decimal)
        };
        let whole = |kind| {
            Some(match kind {
                types::BOOLEAN | types::UTINYINT => Whole::U8,
                types::TINYINT => Whole::I8,
                types::SMALLINT => Whole::I16,
                types::USMALLINT => Whole::U16,
                types::INTEGER => Whole::I32,
                types::UINTEGER => Whole::U32,
                types::BIGINT => Whole::I64,
                types::UBIGINT => Whole::U64,
                types::HUGEINT => Whole::I128,
                _ => return None,
            })
        };
        let found = match kind {
            types::FLOAT => Some(Kind::Float),
            types::DOUBLE => Some(Kind::Double),
            types::VARCHAR => Some(Kind::Text),
            types::BLOB => Some(Kind::Blob),
            types::SQLNULL => Some(Kind::Null),
            types::DECIMAL => whole(of_decimal.0).map(|whole| Kind::Decimal(whole, of_decimal.1)),
            plain => whole(plain).map(Kind::Whole),
        };
        found.ok_or_else(|| {
            let which = column + 1;
            let what = format!("value {which} of the answer has a type that is not read here (number {kind} of DuckDB's C interface); cast it to VARCHAR");
            DatabaseError::refused("Not implemented Error", what)
        })
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: the result is alive and is not used after this; one that holds an error is freed in the same way.
        unsafe { (self.connection.symbols().destroy_result)(&mut self.raw) };
    }
}

/// How whole numbers are stored.
#[derive(Debug, Clone, Copy)]
enum Whole {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    I128,
}

/// How the values of a column are stored.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Null,
    Whole(Whole),
    Float,
    Double,
    /// A whole number and the number of its digits behind the point.
    Decimal(Whole, u8),
    Text,
    Blob,
}

/// Some of the rows, column by column.
struct Chunk<'r> {
    handle: Handle,
    connection: &'r Arc<Connection>,
}

impl Chunk<'_> {
    fn rows(&self) -> usize {
        // SAFETY: the chunk is alive.
        unsafe { (self.connection.symbols().data_chunk_get_size)(self.handle) as usize }
    }

    /// Returns a column, which must have this kind of values.
    fn column(&self, at: u64, kind: Kind) -> Column<'_> {
        let symbols = self.connection.symbols();
        // SAFETY: the chunk is alive and has this column; what the vector points to lives as long as the chunk.
        unsafe {
            let vector = (symbols.data_chunk_get_vector)(self.handle, at);
            let (data, validity) = ((symbols.vector_get_data)(vector), (symbols.vector_get_validity)(vector));
            Column { data: data.cast(), validity, kind, rows: self.rows(), _chunk: std::marker::PhantomData }
        }
    }
}

impl Drop for Chunk<'_> {
    fn drop(&mut self) {
        // SAFETY: the chunk is alive and is not used after this.
        unsafe { (self.connection.symbols().destroy_data_chunk)(&mut self.handle) };
    }
}

/// The values of a column in a chunk.
struct Column<'c> {
    data: *const u8,
    /// A bit for each row, set where there is a value; null where all rows have one.
    validity: *const u64,
    kind: Kind,
    rows: usize,
    _chunk: std::marker::PhantomData<&'c ()>,
}

/// A value of a column.
enum Value<'c> {
    Null,
    Whole(i128),
    Real(f64),
    Text(&'c [u8]),
    Blob(&'c [u8]),
}

impl<'c> Column<'c> {
    /// Returns the value of a row of the chunk.
    fn value(&self, row: usize) -> Value<'c> {
        assert!(row < self.rows, "row {row} of a chunk of {}", self.rows);
        // SAFETY: the row is one of the chunk's, and the bits reach as far as its rows.
        let is_there = self.validity.is_null() || unsafe { *self.validity.add(row / 64) >> (row % 64) & 1 == 1 };
        if !is_there {
            return Value::Null;
        }
        // SAFETY: the row is one of the chunk's and has a value, of the kind that DuckDB stated for the column.
        unsafe {
            match self.kind {
                Kind::Null => Value::Null,
                Kind::Whole(whole) => Value::Whole(self.whole(row, whole)),
                Kind::Float => Value::Real(f64::from(self.at::<f32>(row))),
                Kind::Double => Value::Real(self.at(row)),
                Kind::Decimal(whole, scale) => {
                    Value::Real(self.whole(row, whole) as f64 / 10_f64.powi(i32::from(scale)))
                }
                Kind::Text => Value::Text(self.bytes(row)),
                Kind::Blob => Value::Blob(self.bytes(row)),
            }
        }
    }

    /// # Safety
    /// The row must be one of the chunk's, and values of the column must be stored as `T`.
    unsafe fn at<T: Copy>(&self, row: usize) -> T {
        // SAFETY: as the caller promises; a vector is aligned for its values, which is not relied on.
        unsafe { self.data.cast::<T>().add(row).read_unaligned() }
    }

    /// # Safety
    /// As for [`Column::at`].
    unsafe fn whole(&self, row: usize, whole: Whole) -> i128 {
        // SAFETY: as the caller promises.
        unsafe {
            match whole {
                Whole::I8 => self.at::<i8>(row).into(),
                Whole::U8 => self.at::<u8>(row).into(),
                Whole::I16 => self.at::<i16>(row).into(),
                Whole::U16 => self.at::<u16>(row).into(),
                Whole::I32 => self.at::<i32>(row).into(),
                Whole::U32 => self.at::<u32>(row).into(),
                Whole::I64 => self.at::<i64>(row).into(),
                Whole::U64 => self.at::<u64>(row).into(),
                // The lower half precedes the upper one, as on machines of this byte order.
                Whole::I128 => self.at::<i128>(row),
            }
        }
    }

    /// Returns the bytes of a text or blob. `duckdb_string_t` has a length of four bytes, and twelve more: the bytes themselves where they fit, else four of them and a pointer.
    ///
    /// # Safety
    /// The row must be one of the chunk's and have a text or blob.
    unsafe fn bytes(&self, row: usize) -> &'c [u8] {
        const SIZE: usize = 16;
        const INLINE_MOST: usize = 12;
        // SAFETY: as the caller promises. The bytes, inline or not, live as long as the chunk.
        unsafe {
            let place = self.data.add(row * SIZE);
            let length = place.cast::<u32>().read_unaligned() as usize;
            let start =
                if length <= INLINE_MOST { place.add(4) } else { place.add(8).cast::<*const u8>().read_unaligned() };
            std::slice::from_raw_parts(start, length)
        }
    }
}

impl Value<'_> {
    fn append(&self, out: &mut Cells) {
        match self {
            Value::Null => out.null(),
            Value::Whole(value) => match i64::try_from(*value) {
                Ok(value) => out.int(value),
                Err(_) => out.float(*value as f64),
            },
            Value::Real(value) => out.float(*value),
            Value::Text(bytes) => out.text(&String::from_utf8_lossy(bytes)),
            Value::Blob(bytes) => out.blob(bytes),
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Value::Null => None,
            Value::Whole(value) => Some(value.to_string()),
            Value::Real(value) => Some(value.to_string()),
            Value::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Value::Blob(bytes) => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }
}
