//! The record type `usertable`: the table of the YCSB core workloads (Cooper and others, "Benchmarking cloud serving systems with
//! YCSB", SoCC 2010): a key and `record.fields` text fields of `record.field_length` characters.
//!
//! A key is `user` and a number: that of the record, or its hash, which scatters neighbours over the table. Fields hold random
//! printable characters, drawn as YCSB draws them: six from each 32 random bits. The numbers of record and field replace
//! YCSB's thread-local random numbers, so that any client makes any record.
//!
//! Invariant: keys are exactly those of YCSB, and each character has the same probability as there.

use std::sync::Arc;

use super::Entry;
use super::skew::Skew;
use crate::random::{Stream, derive};
use crate::record::{Cells, Column, ColumnKind, Generator, RecordType};
use crate::trial::{RecordSettings, UsertableSettings};

/// Registry entry.
pub(super) static USERTABLE: Entry = Entry {
    name: "usertable",
    summary: "the table of the YCSB core workloads: a key and record.fields text fields (10) of record.field_length (100)",
    build: |settings| Ok(Arc::new(Usertable::new(settings)?)),
};

/// Length of the key column, and minimum length of the field columns, as in YCSB's table for relational databases.
const COLUMN_LENGTH: u32 = 255;

/// Maximum number of fields: together with the key, as many columns as every database allows in one table.
const FIELDS_MAX: u16 = 1000;

/// Maximum length of a field in characters.
const FIELD_LENGTH_MAX: u32 = 1 << 20;

/// Maximum length of a key in characters, including `user`.
const KEY_LENGTH_MAX: usize = COLUMN_LENGTH as usize;

/// Separates the random numbers of lengths from those of characters.
const LENGTHS: u64 = 0x6c65_6e67_7468;

/// Returns YCSB's hash of a number: FNV-1a over its eight bytes, the lowest first, without its sign.
#[inline]
pub fn key_hash(number: u64) -> u64 {
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    (hash as i64).unsigned_abs()
}

struct Usertable {
    record_type: RecordType,
    is_hashed: bool,
    /// Minimum number of digits of a key; shorter numbers begin with zeros.
    digits: usize,
    lengths: Lengths,
    /// One for each field: the trial's seed with the field in it.
    seeds: Vec<u64>,
}

/// Lengths of fields, in characters.
enum Lengths {
    Constant(u32),
    /// Minimum length, and number of lengths.
    Uniform(u32, u64),
    /// Minimum length, and the distribution of the additional length.
    Skewed(u32, Skew),
}

impl Usertable {
    fn new(settings: &RecordSettings) -> Result<Self, String> {
        let UsertableSettings { fields, key_digits, .. } = settings.usertable;
        if !(1..=FIELDS_MAX).contains(&fields) {
            return Err(format!("record.fields is {fields}; write 1 to {FIELDS_MAX}"));
        }
        let digits = key_digits as usize;
        if digits + 4 > KEY_LENGTH_MAX {
            return Err(format!("record.key_digits is {digits}; write at most {}", KEY_LENGTH_MAX - 4));
        }
        let is_hashed = match settings.usertable.keys.as_str() {
            "hashed" => true,
            "ordered" => false,
            other => return Err(format!("record.keys is \"{other}\"; write \"hashed\" or \"ordered\"")),
        };
        Ok(Usertable {
            record_type: record_type(&settings.usertable),
            is_hashed,
            digits,
            lengths: Lengths::new(&settings.usertable)?,
            seeds: (0..u64::from(fields)).map(|field| derive(settings.seed, field)).collect(),
        })
    }
}

impl Generator for Usertable {
    fn record_type(&self) -> &RecordType {
        &self.record_type
    }

    fn records_per_measurement(&self) -> u64 {
        1
    }

    fn identity(&self, measurement: u64, _records: u64, out: &mut Cells) {
        let mut number = if self.is_hashed { key_hash(measurement) } else { measurement };
        let digits = self.digits.max(number.checked_ilog10().unwrap_or(0) as usize + 1);
        out.text_with(4 + digits, |key| {
            key[..4].copy_from_slice(b"user");
            for digit in key[4..].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        });
    }

    fn values(&self, record: u64, out: &mut Cells) {
        for seed in &self.seeds {
            let length = self.lengths.at(*seed, record);
            out.text_with(length, |text| fill(&mut Stream::at(*seed, record), text));
        }
    }
}

impl Lengths {
    fn new(settings: &UsertableSettings) -> Result<Self, String> {
        let (least, most) = (settings.field_length_least, settings.field_length);
        if !(1..=FIELD_LENGTH_MAX).contains(&most) {
            return Err(format!("record.field_length is {most}; write 1 to {FIELD_LENGTH_MAX}"));
        }
        if settings.field_lengths != "constant" && !(1..=most).contains(&least) {
            return Err(format!(
                "record.field_length_least is {least}; write 1 to record.field_length, which is {most}"
            ));
        }
        match settings.field_lengths.as_str() {
            "constant" => Ok(Lengths::Constant(most)),
            "uniform" => Ok(Lengths::Uniform(least, u64::from(most - least) + 1)),
            "zipfian" => Ok(Lengths::Skewed(least, Skew::new(u64::from(most - least) + 1))),
            other => {
                Err(format!("record.field_lengths is \"{other}\"; write \"constant\", \"uniform\" or \"zipfian\""))
            }
        }
    }

    #[inline]
    fn at(&self, seed: u64, record: u64) -> usize {
        let stream = || Stream::at(seed ^ LENGTHS, record);
        let length = match self {
            Lengths::Constant(length) => u64::from(*length),
            Lengths::Uniform(least, count) => u64::from(*least) + stream().below(*count),
            Lengths::Skewed(least, skew) => u64::from(*least) + skew.rank(stream().unit()),
        };
        length as usize
    }
}

/// Number of characters made at once, from eight words of 64 random bits.
const BLOCK: usize = 96;

/// Fills a text with printable characters, twelve from each 64 random bits.
#[inline]
fn fill(stream: &mut Stream, text: &mut [u8]) {
    let mut blocks = text.chunks_exact_mut(BLOCK);
    for block in &mut blocks {
        let mut words = [0; BLOCK / 6];
        for pair in words.chunks_exact_mut(2) {
            let (first, second) = stream.pair();
            (pair[0], pair[1]) = (u64::from(first), u64::from(second));
        }
        let groups = words.map(characters);
        // Each group is stored with two more bytes, which the next one overwrites.
        for (place, group) in groups[..groups.len() - 1].iter().enumerate() {
            block[6 * place..6 * place + 8].copy_from_slice(&group.to_le_bytes());
        }
        block[BLOCK - 6..].copy_from_slice(&groups[groups.len() - 1].to_le_bytes()[..6]);
    }
    for chunk in blocks.into_remainder().chunks_mut(12) {
        let (first, second) = stream.pair();
        for (part, word) in chunk.chunks_mut(6).zip([first, second]) {
            part.copy_from_slice(&characters(u64::from(word)).to_le_bytes()[..part.len()]);
        }
    }
}

/// Returns six characters from 32 bits: 5, 6 and 6 bits of each 16, in turn, which overlap at the ends. Character k takes the bits from 5k on,
/// under a mask of 31, 63 or 95, and a space is added; all six are made at once, each in its byte.
#[inline]
fn characters(word: u64) -> u64 {
    const MASKS: [u64; 6] = [31, 63, 95, 31, 63, 95];
    const SPACES: u64 = 0x2020_2020_2020;
    let mut bits = SPACES;
    let mut k = 0;
    while k < 6 {
        bits += (word << (3 * k)) & (MASKS[k] << (8 * k));
        k += 1;
    }
    bits
}

fn record_type(settings: &UsertableSettings) -> RecordType {
    let column =
        |name: String, length: u32, hot: bool| Column { name, kind: ColumnKind::Text(length), nullable: false, hot };
    let length = settings.field_length.max(COLUMN_LENGTH);
    let fields =
        (0..settings.fields).map(|field| column(format!("{}{field}", settings.field_prefix), length, field == 0));
    RecordType {
        name: "usertable".to_owned(),
        identity: vec![column("ycsb_key".to_owned(), COLUMN_LENGTH, true)],
        identity_key: 1,
        identity_end: None,
        series: None,
        key: Some(0),
        values: fields.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Cell;

    fn usertable(change: impl FnOnce(&mut RecordSettings)) -> Result<Arc<dyn Generator>, String> {
        let mut settings = RecordSettings {
            type_name: "usertable".to_owned(),
            seed: 1,
            per_measurement: 1,
            ..RecordSettings::default()
        };
        change(&mut settings);
        crate::data::build(&settings)
    }

    fn key(generator: &dyn Generator, record: u64) -> serde_json::Value {
        let mut cells = Cells::new();
        generator.identity(record, 1, &mut cells);
        cells.to_json(cells.get(0))
    }

    fn lengths(generator: &dyn Generator, records: u64) -> Vec<usize> {
        let mut cells = Cells::new();
        (0..records).for_each(|record| generator.values(record, &mut cells));
        let length = |cell: &Cell| match cell {
            Cell::Text(span) => cells.bytes_of(*span).len(),
            other => panic!("{other:?} is no text"),
        };
        cells.as_slice().iter().map(length).collect()
    }

    #[test]
    fn keys_are_hashed_or_ordered_and_filled_with_zeros() {
        assert_eq!(key(&*usertable(|_| {}).unwrap(), 0), "user6284781860667377211");
        let ordered = usertable(|settings| settings.usertable.keys = "ordered".to_owned()).unwrap();
        assert_eq!((key(&*ordered, 0), key(&*ordered, 120)), ("user0".into(), "user120".into()));
        let padded = usertable(|settings| {
            settings.usertable.keys = "ordered".to_owned();
            settings.usertable.key_digits = 5;
        });
        let padded = padded.unwrap();
        assert_eq!((key(&*padded, 42), key(&*padded, 1_234_567)), ("user00042".into(), "user1234567".into()));
    }

    #[test]
    fn characters_are_made_of_the_bits_that_ycsb_takes() {
        for word in [0_u32, u32::MAX, 0x8000_0000, 0x1234_5678, 0xdead_beef] {
            let signed = word as i32;
            let expected: Vec<u8> = [(0, 31), (5, 63), (10, 95), (15, 31), (20, 63), (25, 95)]
                .iter()
                .map(|(shift, mask)| ((signed >> shift) & mask) as u8 + b' ')
                .collect();
            assert_eq!(characters(u64::from(word)).to_le_bytes()[..6], expected, "{word:x}");
        }
    }

    #[test]
    fn each_character_comes_as_often_as_it_does_in_ycsb() {
        let generator = usertable(|settings| settings.usertable.fields = 1).unwrap();
        let mut counts = [[0_u32; 256]; 6];
        let records = 6000;
        for record in 0..records {
            let mut cells = Cells::new();
            generator.values(record, &mut cells);
            let Cell::Text(span) = cells.get(0) else { panic!() };
            cells.bytes_of(span).iter().enumerate().for_each(|(at, byte)| counts[at % 6][usize::from(*byte)] += 1);
        }
        for (at, counts) in counts.iter().enumerate() {
            let possible: Vec<usize> = match at % 3 {
                0 => (32..64).collect(),
                1 => (32..96).collect(),
                _ => (32..64).chain(96..128).collect(),
            };
            let total: u32 = counts.iter().sum();
            assert_eq!(
                possible.iter().map(|byte| counts[*byte]).sum::<u32>(),
                total,
                "place {at} has other characters"
            );
            let expected = f64::from(total) / possible.len() as f64;
            let chi2: f64 = possible.iter().map(|byte| (f64::from(counts[*byte]) - expected).powi(2) / expected).sum();
            let freedom = possible.len() as f64 - 1.0;
            assert!(chi2 < freedom + 4.5 * (2.0 * freedom).sqrt(), "place {at}: chi-square {chi2}");
        }
    }

    #[test]
    fn fields_of_a_record_differ_and_come_again() {
        let generator = usertable(|_| {}).unwrap();
        let texts = |record| {
            let mut cells = Cells::new();
            generator.values(record, &mut cells);
            cells.as_slice().iter().map(|cell| cells.to_json(*cell)).collect::<Vec<_>>()
        };
        let first = texts(7);
        assert_eq!((first.len(), first.clone()), (10, texts(7)));
        assert!((1..10).all(|field| first[field] != first[0]) && texts(8)[0] != first[0]);
        assert_eq!(generator.record_type().values[9].name, "field9");
    }

    #[test]
    fn lengths_are_constant_uniform_or_skewed_within_their_bounds() {
        let of = |name: &str| {
            let generator = usertable(|settings| {
                settings.usertable.field_lengths = name.to_owned();
                (settings.usertable.field_length_least, settings.usertable.field_length) = (5, 24);
            });
            lengths(&*generator.unwrap(), 1000)
        };
        assert!(of("constant").iter().all(|length| *length == 24));
        let mean = |lengths: &[usize]| lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        let (uniform, skewed) = (of("uniform"), of("zipfian"));
        for lengths in [&uniform, &skewed] {
            assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&5), Some(&24)));
        }
        // Standard error of a uniform mean of 10,000: 5.77 / 100.
        assert!((mean(&uniform) - 14.5).abs() < 0.25, "{}", mean(&uniform));
        assert!(mean(&skewed) < 12.0, "{}", mean(&skewed));
    }

    #[test]
    fn what_cannot_be_made_is_refused_with_the_remedy() {
        let refusal = |change: fn(&mut RecordSettings)| usertable(change).err().unwrap();
        assert!(refusal(|settings| settings.usertable.fields = 0).contains("record.fields is 0"));
        assert!(refusal(|settings| settings.usertable.field_length = 0).contains("record.field_length is 0"));
        assert!(
            refusal(|settings| settings.usertable.keys = "random".to_owned()).contains("record.keys is \"random\"")
        );
        assert!(refusal(|settings| settings.usertable.field_lengths = "normal".to_owned()).contains("\"uniform\""));
        assert!(refusal(|settings| settings.usertable.key_digits = 300).contains("record.key_digits is 300"));
        let empty = |settings: &mut RecordSettings| {
            settings.usertable.field_lengths = "uniform".to_owned();
            settings.usertable.field_length_least = 200;
        };
        assert!(usertable(empty).err().unwrap().contains("record.field_length_least is 200"));
    }
}
