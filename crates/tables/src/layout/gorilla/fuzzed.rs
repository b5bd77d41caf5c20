//! Fuzzing: what a database gives back as packed readings.

use super::packing::{Packing, Scratch};
use crate::fuzzed::Target;
use crate::record::{Cell, Cells, Column, ColumnKind, RecordType, SeriesColumns};

const KINDS: [ColumnKind; 6] = [
    ColumnKind::Int32,
    ColumnKind::Int64,
    ColumnKind::Int16,
    ColumnKind::Float64,
    ColumnKind::Text(20),
    ColumnKind::Blob(20),
];

/// Returns how readings with columns of these kinds are packed, of which those from a place on can be null.
pub(super) fn packing_of(kinds: &[ColumnKind], nullable_from: usize) -> Option<Packing> {
    let column = |(place, kind): (usize, &ColumnKind)| Column {
        name: format!("c{place}"),
        kind: *kind,
        nullable: place >= nullable_from,
        hot: true,
    };
    Packing::of(&RecordType {
        name: "fuzzed".to_owned(),
        identity: Vec::new(),
        identity_key: 0,
        identity_end: None,
        series: Some(SeriesColumns { source: 0, time: 1, again: None }),
        key: None,
        values: kinds.iter().enumerate().map(column).collect(),
    })
}

fn packing() -> Option<Packing> {
    packing_of(&KINDS, 4)
}

/// Returns the readings of packed bytes as rows of all columns; `None` where the bytes are damaged.
fn unpacked(packing: &Packing, bytes: &[u8]) -> Option<Cells> {
    let packed = packing.open(bytes)?;
    assert!(packed.readings() <= 8 * bytes.len());
    let (mut times, mut columns) = (Vec::new(), Vec::new());
    packed.times(&mut times)?;
    for place in 2..KINDS.len() {
        let mut column = Cells::new();
        packed.column(place, &mut column)?;
        assert_eq!(column.len(), packed.readings());
        columns.push(column);
    }
    let mut rows = Cells::new();
    for (reading, time_ns) in times.iter().enumerate() {
        rows.int(1);
        rows.int(*time_ns);
        columns.iter().for_each(|column| rows.copy_from(column, column.get(reading)));
    }
    Some(rows)
}

/// Returns whether two cells are the same to the last bit.
pub(super) fn is_same((one, of_one): (Cell, &Cells), (other, of_other): (Cell, &Cells)) -> bool {
    match (one, other) {
        (Cell::Float(one), Cell::Float(other)) => one.to_bits() == other.to_bits(),
        (Cell::Text(one), Cell::Text(other)) | (Cell::Blob(one), Cell::Blob(other)) => {
            of_one.bytes_of(one) == of_other.bytes_of(other)
        }
        _ => one == other,
    }
}

/// Readings that could be unpacked are the same after they were packed again.
pub static PACKED_READINGS: Target = Target {
    name: "packed-readings",
    run: |input| {
        let Some(packing) = packing() else { return };
        let Some(rows) = unpacked(&packing, input) else { return };
        let mut again = Vec::new();
        packing.pack(&rows, &mut Scratch::default(), &mut again);
        let Some(found) = unpacked(&packing, &again) else { panic!("what was packed cannot be unpacked") };
        assert_eq!(found.len(), rows.len());
        assert!((0..rows.len()).all(|cell| is_same((found.get(cell), &found), (rows.get(cell), &rows))));
    },
    seeds: || {
        let mut rows = Cells::new();
        for reading in 0..40_i64 {
            rows.int(1);
            rows.int(1_700_000_000_000_000_000 + reading * 1_000_000_000);
            rows.int(reading * reading % 7);
            rows.float(20.0 + (reading / 5) as f64 / 10.0);
            rows.text(["up", "down"][(reading / 9 % 2) as usize]);
            if reading % 3 == 0 {
                rows.null()
            } else {
                rows.blob(&[1, 2])
            };
        }
        let mut bytes = Vec::new();
        if let Some(packing) = packing() {
            packing.pack(&rows, &mut Scratch::default(), &mut bytes);
        }
        vec![bytes]
    },
    words: &["\x01"],
    // A few bits stand for a text that is repeated, up to a bound.
    memory: (256 << 20, 2048),
    is_linear: false,
};
