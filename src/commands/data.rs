//! `loadline data`: generated records as CSV, JSON lines or InfluxDB line protocol, one line for each record.

use std::io::Write;

use super::Failure;
use super::output::DOCUMENT_VERSION;
use crate::cli::DataFormat;
use crate::data;
use crate::record::{Cell, Cells, Generator, RecordType};
use crate::trial::RecordSettings;

/// Number of consecutive records that share one identity.
const PER_MEASUREMENT: u64 = 100;

/// Time stamp of the first record for types without a time of their own: 2015-01-01 00:00 UTC, in seconds since 1970.
const EPOCH_S: u64 = 1_420_070_400;

/// Writes records 0 to `rows` - 1. Ends without an error when the reader closes the output.
///
/// # Errors
/// [`Failure::Usage`] for an unknown record type, [`Failure::Broken`] for an error in writing.
pub fn data(record: &str, rows: u64, seed: u64, format: DataFormat, out: &mut dyn Write) -> Result<(), Failure> {
    if record == "custom" {
        let why = "custom records are described by a study file; name one of the other record types";
        return Err(Failure::refused(why.to_owned()));
    }
    let type_name = record.to_owned();
    let settings =
        RecordSettings { type_name, rows, per_measurement: PER_MEASUREMENT, seed, ..RecordSettings::default() };
    let generator = data::build(&settings).map_err(Failure::refused)?;
    match write_records(&*generator, rows, format, out) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::Broken(format!("the records cannot be written: {error}"))),
    }
}

/// Writes the first records of a generator.
fn write_records(generator: &dyn Generator, rows: u64, format: DataFormat, out: &mut dyn Write) -> std::io::Result<()> {
    let record_type = generator.record_type();
    let mut out = std::io::BufWriter::with_capacity(64 << 10, out);
    if format == DataFormat::Csv {
        let names: Vec<_> =
            record_type.identity.iter().chain(&record_type.values).map(|column| quoted(&column.name)).collect();
        writeln!(out, "{}", names.join(","))?;
    }
    let mut cells = Cells::new();
    let mut line = String::new();
    if format == DataFormat::Json {
        write!(out, "{{ \"version\": {DOCUMENT_VERSION}, \"records\": [")?;
    }
    for record in 0..rows {
        cells.clear();
        line.clear();
        if format == DataFormat::Json {
            line += if record == 0 { "\n" } else { ",\n" };
        }
        let measurement = generator.measurement_of(record);
        let records = record - generator.first_record_of(measurement) + 1;
        generator.identity(measurement, records, &mut cells);
        generator.values(record, &mut cells);
        match format {
            DataFormat::Csv => csv(&cells, &mut line),
            DataFormat::Jsonl | DataFormat::Json => json(record_type, &cells, &mut line),
            DataFormat::Line => line_protocol(record_type, record, &cells, &mut line),
        }
        if format != DataFormat::Json {
            line.push('\n');
        }
        out.write_all(line.as_bytes())?;
    }
    if format == DataFormat::Json {
        out.write_all(b"\n] }\n")?;
    }
    out.flush()
}

fn csv(cells: &Cells, line: &mut String) {
    for (place, cell) in cells.as_slice().iter().enumerate() {
        if place > 0 {
            line.push(',');
        }
        match cell {
            Cell::Null => {}
            Cell::Int(_) | Cell::Float(_) => *line += &number(*cell),
            Cell::Text(_) | Cell::Blob(_) => *line += &quoted(&text(cells, *cell)),
        }
    }
}

/// Returns a CSV field, quoted if necessary.
fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn json(record_type: &RecordType, cells: &Cells, line: &mut String) {
    let columns = record_type.identity.iter().chain(&record_type.values);
    for (place, (column, cell)) in columns.zip(cells.as_slice()).enumerate() {
        let name = serde_json::Value::from(column.name.as_str());
        *line += if place == 0 { "{" } else { "," };
        *line += &format!("{name}:{}", cells.to_json(*cell));
    }
    line.push('}');
}

/// Writes a record in line protocol. The column with the end of the measurement becomes the time stamp; nulls are left out, as are empty
/// tags, which the protocol does not permit.
fn line_protocol(record_type: &RecordType, record: u64, cells: &Cells, line: &mut String) {
    *line += &escaped(&record_type.name, &[',', ' ']);
    let identity = record_type.identity.len();
    for (place, column) in record_type.identity.iter().enumerate() {
        let value = match cells.get(place) {
            Cell::Null => continue,
            cell @ (Cell::Int(_) | Cell::Float(_)) => number(cell),
            cell => text(cells, cell),
        };
        if !value.is_empty() && Some(place) != record_type.identity_end {
            *line += &format!(",{}={}", escaped(&column.name, &TAG_MARKS), escaped(&value, &TAG_MARKS));
        }
    }
    let mut mark = ' ';
    for (place, column) in record_type.values.iter().enumerate() {
        let value = match cells.get(identity + place) {
            Cell::Null => continue,
            cell @ Cell::Int(_) => number(cell) + "i",
            cell @ Cell::Float(_) => number(cell),
            cell => format!("\"{}\"", text(cells, cell).replace('\\', "\\\\").replace('"', "\\\"")),
        };
        *line += &format!("{mark}{}={value}", escaped(&column.name, &TAG_MARKS));
        mark = ',';
    }
    *line += &format!(" {}", time_ns(record_type, record, cells));
}

/// Characters that a backslash must precede in tag keys, tag values and field keys.
const TAG_MARKS: [char; 3] = [',', '=', ' '];

/// Escapes text. Line breaks always end a line, so they become spaces. A backslash at the end would escape the next character,
/// so an escaped space is appended.
fn escaped(text: &str, marks: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let character = if character == '\n' || character == '\r' { ' ' } else { character };
        if marks.contains(&character) {
            out.push('\\');
        }
        out.push(character);
    }
    if text.ends_with('\\') {
        out += "\\ ";
    }
    out
}

/// Returns the record's time since 1970 in nanoseconds, exact to the microsecond, the resolution of a 64-bit float of seconds.
fn time_ns(record_type: &RecordType, record: u64, cells: &Cells) -> u64 {
    match record_type.identity_end.map(|place| cells.get(place)) {
        Some(Cell::Float(seconds)) => (seconds * 1e6).round() as u64 * 1000,
        _ => EPOCH_S.saturating_add(record).saturating_mul(1_000_000_000),
    }
}

fn number(cell: Cell) -> String {
    match cell {
        Cell::Int(value) => value.to_string(),
        Cell::Float(value) => value.to_string(),
        Cell::Null | Cell::Text(_) | Cell::Blob(_) => String::new(),
    }
}

fn text(cells: &Cells, cell: Cell) -> String {
    match cells.to_json(cell) {
        serde_json::Value::String(text) => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{CustomColumn, Fill};

    /// A writer that reports a closed pipe, like a reader that has seen enough.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(format: DataFormat, identity: &[(&str, Fill)], values: &[(&str, &str, Fill)]) -> String {
        let column = |name: &str, kind: &str, fill: &Fill| CustomColumn {
            name: name.to_owned(),
            kind: kind.to_owned(),
            fill: fill.clone(),
            hot: true,
        };
        let settings = RecordSettings {
            type_name: "custom".to_owned(),
            per_measurement: 1,
            identity: identity.iter().map(|(name, fill)| column(name, "text", fill)).collect(),
            values: values.iter().map(|(name, kind, fill)| column(name, kind, fill)).collect(),
            ..RecordSettings::default()
        };
        let mut out = Vec::new();
        write_records(&*data::build(&settings).unwrap(), 1, format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn qos_data_never_change_unnoticed() {
        let mut out = Vec::new();
        data("qos", 3, 1, DataFormat::Csv, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), include_str!("../../tests/golden/qos.csv"));
    }

    #[test]
    fn wisconsin_data_never_change_unnoticed() {
        let mut out = Vec::new();
        data("wisconsin", 8, 1, DataFormat::Csv, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), include_str!("../../tests/golden/wisconsin.csv"));
    }

    #[test]
    fn json_lines_parse_and_agree_with_csv() {
        let (mut csv, mut jsonl) = (Vec::new(), Vec::new());
        data("qos", 5, 9, DataFormat::Csv, &mut csv).unwrap();
        data("qos", 5, 9, DataFormat::Jsonl, &mut jsonl).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let mut csv = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = csv.next().unwrap();
        for (fields, line) in csv.zip(String::from_utf8(jsonl).unwrap().lines()) {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            for (name, field) in names.iter().zip(fields) {
                let (value, field) = (object[name].as_f64().unwrap(), field.parse::<f64>().unwrap());
                // serde_json reads numbers with an error of up to one unit in the last place.
                assert!((value - field).abs() <= 2.0 * f64::EPSILON * field.abs(), "{name}: {value} and {field}");
            }
        }
    }

    #[test]
    fn line_protocol_escapes_what_would_end_a_part() {
        let line = written(
            DataFormat::Line,
            &[("a b", Fill::Text("x, y=z\n\\".to_owned())), ("none", Fill::Text(String::new()))],
            &[
                ("n", "int", Fill::Number(7.0)),
                ("f", "float", Fill::Number(1.5)),
                ("t", "text", Fill::Text("say \"\\\"".to_owned())),
            ],
        );
        let expected = "custom,a\\ b=x\\,\\ y\\=z\\ \\\\  n=7i,f=1.5,t=\"say \\\"\\\\\\\"\" 1420070400000000000\n";
        assert_eq!(line, expected);
    }

    #[test]
    fn line_protocol_of_qos_has_the_time_of_each_record() {
        let mut out = Vec::new();
        data("qos", 2, 1, DataFormat::Line, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let times: Vec<u64> = out.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!(times[1] - times[0], 1_000_000_000);
        assert!(out.starts_with("qos,customerId=") && !out.contains("measurementEndTime"));
        assert!(out.contains(" ctrl_pk_num=") && out.contains("i,meas_duration="));
    }

    #[test]
    fn csv_quotes_what_would_break_a_line() {
        let csv = written(
            DataFormat::Csv,
            &[("a,b", Fill::Text("say \"ä\"".to_owned()))],
            &[("t", "text", Fill::Text(String::new())), ("x", "blob", Fill::RandomBytes(2))],
        );
        let (heading, row) = csv.trim_end().split_once('\n').unwrap();
        assert_eq!(heading, "\"a,b\",t,x");
        assert!(row.starts_with("\"say \"\"ä\"\"\",\"\",") && row.len() == "\"say \"\"ä\"\"\",\"\",".len() + 4);
    }

    #[test]
    fn a_closed_pipe_ends_quietly_and_a_wrong_name_does_not() {
        assert!(data("qos", 1000, 1, DataFormat::Csv, &mut Closed).is_ok());
        let error = data("qoss", 1, 1, DataFormat::Csv, &mut Closed).unwrap_err().to_string();
        assert!(error.contains("unknown record.type \"qoss\""), "{error}");
        assert!(data("custom", 1, 1, DataFormat::Csv, &mut Closed).is_err());
    }
}
