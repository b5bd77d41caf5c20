//! Statements, prepared or executed once, and their rows. Main type: [`Statement`].

use std::sync::Arc;

use super::connection::{Connection, is_done};
use super::parameters::Parameters;
use super::refusal::{self, records};
use super::symbols::{Handle, NO_DATA, NO_TOTAL, NULL, Return, SUCCESS, WITH_INFO, held, kind, types};
use crate::database::DatabaseError;
use crate::database::channel::ANSWER_BYTES_MAX;
use crate::record::{Cells, ColumnKind};

/// `SQL_CLOSE`
const CLOSE: u16 = 0;
/// Bytes of a value that one call takes in.
const PIECE_BYTES: usize = 64 << 10;

/// A statement of an open connection.
#[derive(Debug)]
pub struct Statement {
    handle: Handle,
    connection: Arc<Connection>,
    parameters: Parameters,
    /// What the columns of its answer hold; `None` before they were described. Empty for a statement without an answer.
    columns: Option<Vec<Held>>,
    piece: Vec<u64>,
}

// SAFETY: a statement belongs to one session, which one thread uses at a time.
unsafe impl Send for Statement {}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Whole,
    Number,
    Text,
    Bytes,
}

impl Statement {
    fn new(connection: &Arc<Connection>, kinds: Vec<Option<ColumnKind>>) -> Result<Self, DatabaseError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the connection is open, and the result is a place on this stack.
        let code = unsafe { (connection.symbols().AllocHandle)(kind::STATEMENT, connection.handle(), &mut handle) };
        if !is_done(code) || handle.is_null() {
            let says = "the driver gives no further statement".to_owned();
            return Err(if connection.is_dead() {
                DatabaseError::Lost(says)
            } else {
                DatabaseError::refused("HY014", says)
            });
        }
        let (connection, parameters) = (Arc::clone(connection), Parameters::new(kinds, connection.takes_utf8()));
        Ok(Statement { handle, connection, parameters, columns: None, piece: Vec::new() })
    }

    /// Prepares a statement whose parameters have these kinds. With `describes`, the driver is asked now what the columns of the answer hold, for which it may look into the
    /// catalogue of the database, and not when the statement was executed first.
    ///
    /// # Errors
    /// The driver's error, with the statement's text; a text with another number of parameters is refused.
    pub fn prepared(
        connection: &Arc<Connection>,
        sql: &str,
        kinds: Vec<Option<ColumnKind>>,
        describes: bool,
    ) -> Result<Self, DatabaseError> {
        let mut statement = Statement::new(connection, kinds)?;
        let symbols = connection.symbols();
        let (text, length) = wide(sql)?;
        // SAFETY: the statement is alive, and the text has this length.
        statement.checked(unsafe { (symbols.PrepareW)(statement.handle, text.as_ptr(), length) }, Some(sql))?;
        let (mut count, mut columns) = (0, 0);
        // SAFETY: the statement is prepared, and the results are places on this stack. Some drivers ask the database about the text only when its columns are asked for.
        unsafe {
            statement.checked((symbols.NumParams)(statement.handle, &mut count), Some(sql))?;
            statement.checked((symbols.NumResultCols)(statement.handle, &mut columns), Some(sql))?;
        }
        let wanted = statement.parameters.len();
        if usize::try_from(count) != Ok(wanted) {
            let message = format!("the driver sees {count} parameters where there are {wanted} values in: {sql}");
            return Err(DatabaseError::refused("07001", message));
        }
        if describes {
            statement.columns = Some(statement.described()?);
        }
        Ok(statement)
    }

    /// Executes a text without values.
    pub(super) fn executed(connection: &Arc<Connection>, sql: &str) -> Result<Self, DatabaseError> {
        let statement = Statement::new(connection, Vec::new())?;
        let (text, length) = wide(sql)?;
        let symbols = connection.symbols();
        // SAFETY: the statement is alive, and the text has this length.
        let execute = || unsafe { (symbols.ExecDirectW)(statement.handle, text.as_ptr(), length) };
        statement.checked(connection.executing(statement.handle, execute), None)?;
        Ok(statement)
    }

    /// Returns the number of values that one execution takes.
    pub fn parameters(&self) -> usize {
        self.parameters.len()
    }

    /// Executes the statement once, with the values from `first` on. Its rows must be closed before the next execution.
    ///
    /// # Errors
    /// The driver's error; missing values are refused.
    pub fn execute(&mut self, cells: &Cells, first: usize) -> Result<(), DatabaseError> {
        let count = self.parameters.len();
        let Some(values) = cells.as_slice().get(first..first + count) else {
            let message = format!("{} values for {count} parameters", cells.len().saturating_sub(first));
            return Err(DatabaseError::refused("07002", message));
        };
        let (symbols, handle) = (self.connection.symbols(), self.handle);
        // SAFETY: the statement is alive, and is executed here only, while its parameters and the cells are borrowed.
        let bound = unsafe { self.parameters.bind(symbols, handle, (values, cells), is_done) };
        if let Some(code) = bound.map_err(|why| DatabaseError::refused("22021", why))? {
            self.checked(code, None)?;
        }
        // SAFETY: the statement is prepared and all of its parameters are bound to memory that is alive until the call returns.
        let code = self.connection.executing(handle, || unsafe { (symbols.Execute)(handle) });
        self.checked(code, None)
    }

    /// Returns whether the statement has an answer with rows.
    ///
    /// # Errors
    /// The driver's error.
    pub fn is_query(&mut self) -> Result<bool, DatabaseError> {
        if self.columns.is_none() {
            self.columns = Some(self.described()?);
        }
        Ok(self.columns.as_ref().is_some_and(|columns| !columns.is_empty()))
    }

    /// Returns the number of rows that the last execution changed.
    ///
    /// # Errors
    /// The driver's error.
    pub fn changed(&self) -> Result<u64, DatabaseError> {
        let mut rows = 0;
        // SAFETY: the statement was executed, and the result is a place on this stack.
        self.checked(unsafe { (self.connection.symbols().RowCount)(self.handle, &mut rows) }, None)?;
        u64::try_from(rows)
            .map_err(|_| DatabaseError::Wrong("the driver does not tell how many rows were changed".to_owned()))
    }

    /// Goes to the next row. Returns false behind the last one.
    ///
    /// # Errors
    /// The driver's error.
    pub fn fetch(&mut self) -> Result<bool, DatabaseError> {
        // SAFETY: the statement was executed and has rows.
        let code = unsafe { (self.connection.symbols().Fetch)(self.handle) };
        self.checked(code, None)?;
        Ok(code != NO_DATA)
    }

    /// Appends the values of the row to those kept. `rounds` says that the driver gives floating-point numbers with fewer digits than they have.
    ///
    /// # Errors
    /// The driver's error; a number that would lose digits is refused.
    pub fn read(&mut self, rows: &mut Cells, rounds: bool) -> Result<(), DatabaseError> {
        for column in 0..self.width() {
            let is = self.columns.as_ref().and_then(|columns| columns.get(column)).copied().unwrap_or(Held::Text);
            match is {
                Held::Whole => match self.plain(column, held::WHOLE)? {
                    Some(bits) => rows.int(bits as i64),
                    None => rows.null(),
                },
                Held::Number => match self.plain(column, held::NUMBER)? {
                    Some(_) if rounds => {
                        let message = "the driver rounds floating-point numbers to 15 digits when it reads them; read other columns, or take another database";
                        return Err(DatabaseError::refused("22003", message));
                    }
                    Some(bits) => rows.float(f64::from_bits(bits)),
                    None => rows.null(),
                },
                Held::Text => match self.text(column)? {
                    Some(text) => rows.text(&text),
                    None => rows.null(),
                },
                Held::Bytes => match self.long(column, held::BYTES)? {
                    Some(bytes) => rows.blob(&bytes),
                    None => rows.null(),
                },
            }
        }
        Ok(())
    }

    /// Returns the values of the row as texts.
    ///
    /// # Errors
    /// The driver's error.
    pub fn texts(&mut self) -> Result<Vec<Option<String>>, DatabaseError> {
        (0..self.width()).map(|column| self.text(column)).collect()
    }

    /// Closes the rows of the last execution.
    ///
    /// # Errors
    /// The driver's error.
    pub fn close(&self) -> Result<(), DatabaseError> {
        // SAFETY: the statement is alive; to close what is not open is no error.
        self.checked(unsafe { (self.connection.symbols().FreeStmt)(self.handle, CLOSE) }, None)
    }

    /// Goes through all answers of a text of several statements, for the error of a later one.
    ///
    /// # Errors
    /// The driver's error.
    pub fn finish(self) -> Result<(), DatabaseError> {
        loop {
            // SAFETY: the statement was executed.
            let code = unsafe { (self.connection.symbols().MoreResults)(self.handle) };
            self.checked(code, None)?;
            if code == NO_DATA {
                return Ok(());
            }
        }
    }

    fn width(&self) -> usize {
        self.columns.as_ref().map_or(0, Vec::len)
    }

    fn described(&self) -> Result<Vec<Held>, DatabaseError> {
        let symbols = self.connection.symbols();
        let mut count = 0;
        // SAFETY: the statement was prepared or executed, and the result is a place on this stack.
        self.checked(unsafe { (symbols.NumResultCols)(self.handle, &mut count) }, None)?;
        let mut columns = Vec::new();
        for number in 1..=u16::try_from(count).unwrap_or(0) {
            let (mut name, mut length, mut kind, mut size, mut digits, mut nullable) = ([0; 256], 0, 0, 0, 0, 0);
            // SAFETY: the statement has this column, and the results are places on this stack with the size that is given.
            let code = unsafe {
                let name: *mut u16 = name.as_mut_ptr();
                (symbols.DescribeColW)(
                    self.handle,
                    number,
                    name,
                    256,
                    &mut length,
                    &mut kind,
                    &mut size,
                    &mut digits,
                    &mut nullable,
                )
            };
            self.checked(code, None)?;
            columns.push(held_in(kind));
        }
        Ok(columns)
    }

    /// Returns the bits of a number; `None` for null.
    fn plain(&mut self, column: usize, as_type: i16) -> Result<Option<u64>, DatabaseError> {
        let (mut bits, mut length) = (0_u64, 0_isize);
        let number = column as u16 + 1;
        // SAFETY: the statement stands at a row and has this column; both results are places on this stack, and numbers of this type have 8 bytes.
        let code = unsafe {
            let place = (&raw mut bits).cast();
            (self.connection.symbols().GetData)(self.handle, number, as_type, place, 8, &mut length)
        };
        match (code, length) {
            (SUCCESS | WITH_INFO, NULL) => Ok(None),
            (SUCCESS, _) => Ok(Some(bits)),
            // Digits behind the point, or others that do not fit, are lost.
            (WITH_INFO, _) => Err(self.error(None)),
            _ => self.checked(code, None).and_then(|()| Err(no_value(number))),
        }
    }

    fn text(&mut self, column: usize) -> Result<Option<String>, DatabaseError> {
        let wrong =
            |form| DatabaseError::Wrong(format!("the driver gives a text in column {} that is no {form}", column + 1));
        if self.connection.takes_utf8() {
            let bytes = self.long(column, held::UTF8)?;
            return bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| wrong("UTF-8"))).transpose();
        }
        let Some(bytes) = self.long(column, held::TEXT)? else { return Ok(None) };
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect();
        if bytes.len() % 2 != 0 {
            return Err(wrong("UTF-16"));
        }
        String::from_utf16(&units).map(Some).map_err(|_| wrong("UTF-16"))
    }

    /// Returns a text or bytes, taken in piece by piece; `None` for null. A text has no zero at its end.
    fn long(&mut self, column: usize, as_type: i16) -> Result<Option<Vec<u8>>, DatabaseError> {
        self.piece.resize(PIECE_BYTES / size_of::<u64>(), 0);
        let number = column as u16 + 1;
        // The driver writes a zero behind each piece of a text.
        let room = match as_type {
            held::TEXT => PIECE_BYTES - size_of::<u16>(),
            held::UTF8 => PIECE_BYTES - 1,
            _ => PIECE_BYTES,
        };
        let mut all = Vec::new();
        loop {
            let mut left = 0_isize;
            // SAFETY: the statement stands at a row and has this column; the piece has the size that is given, and the other result is a place on this stack.
            let code = unsafe {
                let place = self.piece.as_mut_ptr().cast();
                let bytes = PIECE_BYTES as isize;
                (self.connection.symbols().GetData)(self.handle, number, as_type, place, bytes, &mut left)
            };
            if code == NO_DATA && !all.is_empty() {
                return Ok(Some(all));
            }
            if code != SUCCESS && code != WITH_INFO {
                return self.checked(code, None).and_then(|()| Err(no_value(number)));
            }
            if left == NULL {
                return Ok(None);
            }
            let taken = match usize::try_from(left) {
                Ok(left) => left.min(room),
                Err(_) if left == NO_TOTAL && code == WITH_INFO => room,
                Err(_) => return Err(no_value(number)),
            };
            // SAFETY: the piece has this many bytes: `taken` is at most its size.
            all.extend_from_slice(unsafe { std::slice::from_raw_parts(self.piece.as_ptr().cast::<u8>(), taken) });
            if all.len() > 2 * ANSWER_BYTES_MAX {
                let most = ANSWER_BYTES_MAX >> 20;
                return Err(DatabaseError::Lost(format!("the driver gives a value of more than {most} MiB")));
            }
            let is_whole = usize::try_from(left).is_ok_and(|left| left <= room);
            if is_whole {
                return Ok(Some(all));
            }
        }
    }

    fn checked(&self, code: Return, sql: Option<&str>) -> Result<(), DatabaseError> {
        if is_done(code) { Ok(()) } else { Err(self.error(sql)) }
    }

    #[cold]
    fn error(&self, sql: Option<&str>) -> DatabaseError {
        // SAFETY: the statement is alive, and only this thread uses it.
        let records = unsafe { records(self.connection.symbols(), kind::STATEMENT, self.handle) };
        refusal::of(&records, sql, self.connection.is_dead())
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: the statement is alive and is not used after this; its connection is open.
        unsafe { (self.connection.symbols().FreeHandle)(kind::STATEMENT, self.handle) };
    }
}

fn no_value(number: u16) -> DatabaseError {
    DatabaseError::Wrong(format!("the driver gives no value, or no length of it, for column {number}"))
}

fn held_in(kind: i16) -> Held {
    match kind {
        types::BIT | types::TINYINT | types::SMALLINT | types::INTEGER | types::BIGINT => Held::Whole,
        types::FLOAT | types::REAL | types::DOUBLE => Held::Number,
        types::BINARY | types::VARBINARY | types::LONGVARBINARY => Held::Bytes,
        _ => Held::Text,
    }
}

/// Returns a text as UTF-16 with its length in units.
fn wide(sql: &str) -> Result<(Vec<u16>, i32), DatabaseError> {
    let text: Vec<u16> = sql.encode_utf16().collect();
    let refused = |why: &str| DatabaseError::refused("HY090", format!("a statement {why}"));
    if text.contains(&0) {
        return Err(refused("has a zero character; leave it out"));
    }
    let length = i32::try_from(text.len()).map_err(|_| refused("is too long"))?;
    Ok((text, length))
}
