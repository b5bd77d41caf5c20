//! Writes Parquet: tables and raw times as files with typed columns, which pandas, DuckDB, Spark and others read.
//!
//! Main type: [`ParquetFile`]. Invariant: memory is bounded by one group of 65,536 rows, however many are written.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::{Field, Kind, Table};

/// The number of rows that are collected and then written together, column by column.
const GROUP_ROWS: usize = 65_536;

/// A value for a column. Text is shared, so that repeating it costs no copy.
#[derive(Debug, Clone)]
pub enum Cell {
    /// Text; made once by [`text`] if it repeats.
    Text(ByteArray),
    /// A whole number.
    Count(u64),
    /// A number.
    Figure(f64),
    /// Yes or no.
    Flag(bool),
    /// Null.
    Missing,
}

/// Returns text as a cell.
pub fn text(text: &str) -> Cell {
    Cell::Text(ByteArray::from(text.as_bytes().to_vec()))
}

/// A Parquet file that is being written.
pub struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
}

impl<W: Write + Send> ParquetFile<W> {
    /// Creates a file with these columns, all of which may be null.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn new(out: W, columns: &[(String, Kind)]) -> std::io::Result<Self> {
        let fields: Result<Vec<Arc<Type>>, ParquetError> =
            columns.iter().map(|(name, kind)| field(name, *kind)).collect();
        let schema = fields.and_then(|fields| Type::group_type_builder("loadline").with_fields(fields).build());
        // The first version of the format, and Snappy, are understood by every reader.
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("loadline version ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = schema.and_then(|schema| SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)));
        let columns = columns.iter().map(|(_, kind)| Column::new(*kind)).collect();
        Ok(ParquetFile { writer: writer.map_err(broken)?, columns, rows: 0 })
    }

    /// Appends a row, which has a cell for each column.
    ///
    /// # Errors
    /// When a group of rows is full and cannot be written.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) -> std::io::Result<()> {
        self.columns.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.write_group().map_err(broken) } else { Ok(()) }
    }

    /// Writes the remaining rows, and the footer without which the file is not valid.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(mut self) -> std::io::Result<()> {
        if self.rows > 0 {
            self.write_group().map_err(broken)?;
        }
        self.writer.finish().map_err(broken)?;
        self.writer.inner_mut().flush()
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            if let Some(mut writer) = group.next_column()? {
                column.write(&mut writer)?;
                writer.close()?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

/// Writes a table as a Parquet file.
///
/// # Errors
/// When the file cannot be written.
pub fn write_table(table: &Table, out: impl Write + Send) -> std::io::Result<()> {
    let mut file = ParquetFile::new(out, &table.columns)?;
    for row in &table.rows {
        file.push(row.iter().map(|field| match field {
            Field::Text(value) => text(value),
            Field::Count(count) => Cell::Count(*count),
            Field::Figure(figure) => Cell::Figure(*figure),
            Field::Flag(flag) => Cell::Flag(*flag),
            Field::Missing => Cell::Missing,
        }))?;
    }
    file.finish()
}

/// The rows of one column that are not yet written.
struct Column {
    values: Values,
    /// 1 for each row with a value, 0 for null; a null has no value in the list.
    present: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Count(Vec<i64>),
    Figure(Vec<f64>),
    Flag(Vec<bool>),
}

impl Column {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Count => Values::Count(Vec::new()),
            Kind::Figure => Values::Figure(Vec::new()),
            Kind::Flag => Values::Flag(Vec::new()),
        };
        Column { values, present: Vec::new() }
    }

    fn push(&mut self, cell: Cell) {
        self.present.push(i16::from(!matches!(cell, Cell::Missing)));
        match (&mut self.values, cell) {
            (Values::Text(values), Cell::Text(value)) => values.push(value),
            // The column is marked as unsigned; the format stores its bits in the signed type.
            (Values::Count(values), Cell::Count(value)) => values.push(value as i64),
            (Values::Figure(values), Cell::Figure(value)) => values.push(value),
            (Values::Flag(values), Cell::Flag(value)) => values.push(value),
            (_, Cell::Missing) => {}
            (_, cell) => unreachable!("a column of another type was given {cell:?}"),
        }
    }

    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let present = Some(self.present.as_slice());
        match &mut self.values {
            Values::Text(values) => {
                writer.typed::<ByteArrayType>().write_batch(values, present, None)?;
                values.clear();
            }
            Values::Count(values) => {
                writer.typed::<Int64Type>().write_batch(values, present, None)?;
                values.clear();
            }
            Values::Figure(values) => {
                writer.typed::<DoubleType>().write_batch(values, present, None)?;
                values.clear();
            }
            Values::Flag(values) => {
                writer.typed::<BoolType>().write_batch(values, present, None)?;
                values.clear();
            }
        }
        self.present.clear();
        Ok(())
    }
}

fn field(name: &str, kind: Kind) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Count => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
        Kind::Figure => (PhysicalType::DOUBLE, None),
        Kind::Flag => (PhysicalType::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    field.with_logical_type(logical).build().map(Arc::new)
}

fn broken(error: ParquetError) -> std::io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    }
}
