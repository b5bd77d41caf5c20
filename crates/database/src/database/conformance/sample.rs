//! The values written and read back: those at the limits of every type, and wide rows of plain ones.

use crate::random::Stream;
use crate::record::{Cells, ColumnKind};

/// The columns of a sample behind its key; all of them are nullable.
pub const KINDS: &[(&str, ColumnKind)] = &[
    ("small", ColumnKind::Int16),
    ("middle", ColumnKind::Int32),
    ("large", ColumnKind::Int64),
    ("real", ColumnKind::Float64),
    ("word", ColumnKind::Text(200)),
    ("story", ColumnKind::Text(20_000)),
    ("hash", ColumnKind::Blob(256)),
    ("image", ColumnKind::Blob(2_000_000)),
];

/// The number of [`edge`] samples.
pub const EDGES: i64 = 12;

/// Appends a sample without special values.
pub fn plain(id: i64, cells: &mut Cells) {
    cells.int(id);
    cells.int(id % 1000);
    cells.int(id * 3);
    cells.int(id << 32);
    cells.float(id as f64 / 8.0);
    cells.text("word");
    cells.null();
    cells.blob(&id.to_le_bytes());
    cells.null();
}

/// Appends a sample at the limits of the types; `case` is below [`EDGES`].
pub fn edge(id: i64, case: i64, cells: &mut Cells) {
    let smallest = f64::from_bits(1);
    let reals =
        [0.0, -0.0, 1e308, f64::MAX, f64::MIN, f64::MIN_POSITIVE, smallest, -smallest, 0.1, -1.5e-300, 1.0, 1e15];
    let words =
        ["", " ", "a", "Ääkköset ß 中文", "🚦🧪 𝄞", "it's \"quoted\" \\ \n\t`?` $1 %", "Null", "\u{10ffff}", "0"];
    cells.int(id);
    if case == 2 {
        KINDS.iter().for_each(|_| cells.null());
        return;
    }
    let case = case as usize;
    cells.int([i64::from(i16::MIN), i64::from(i16::MAX), 0, -1][case % 4]);
    cells.int([i64::from(i32::MAX), i64::from(i32::MIN), -1, 0][case % 4]);
    cells.int([i64::MIN, i64::MAX, -1, 0][case % 4]);
    cells.float(reals[case % reals.len()]);
    cells.text(words[case % words.len()]);
    cells.text(&["", "中", "é\r\n"][case % 3].repeat(if case == 7 { 5000 } else { case * 40 }));
    let all: Vec<u8> = (0..=255).collect();
    cells.blob([&all[..], &[], &[0]][case % 3]);
    match case {
        1 => cells.blob(&noise(1 << 20)),
        3 => cells.blob(&noise(70_000)),
        _ if case.is_multiple_of(2) => cells.null(),
        _ => cells.blob(&noise(case)),
    }
}

/// Returns the type of a column of the wide table.
pub fn wide_kind(number: usize) -> ColumnKind {
    [ColumnKind::Float64, ColumnKind::Int32, ColumnKind::Text(24), ColumnKind::Int64][number % 4]
}

/// Appends a row of the wide table.
pub fn wide(id: i64, cells: &mut Cells) {
    cells.int(id);
    for number in 1..super::WIDE_COLUMNS {
        let value = id * 61 + number as i64;
        match (wide_kind(number), value % 10) {
            (_, 0) => cells.null(),
            (ColumnKind::Float64, _) => cells.float(value as f64 / 7.0),
            (ColumnKind::Text(_), _) => cells.text(&format!("mesure n° {value}")),
            (ColumnKind::Int64, _) => cells.int(value << 30),
            _ => cells.int(value),
        }
    }
}

/// Returns bytes of every value, without a pattern that compresses.
fn noise(length: usize) -> Vec<u8> {
    let mut random = Stream::seeded(length as u64);
    (0..length).map(|_| random.below(256) as u8).collect()
}
