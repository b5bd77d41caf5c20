//! Single values: [`Filler`] is a [`Fill`] of a study, checked, with everything computed that does not depend on the index.

use super::zipf::Zipf;
use crate::random::{Stream, below32};
use crate::record::{Cells, ColumnKind};
use crate::trial::Fill;

/// Text and bytes of one value are at most this long, in bytes.
const LONGEST_BYTES: u32 = 1 << 20;

/// Whole numbers of a study are read as 64-bit floating-point numbers, which are exact up to here.
const EXACT_MAX: f64 = (1_u64 << 53) as f64;

/// Makes the values of one column or parameter.
#[derive(Debug, Clone)]
pub struct Filler {
    make: Make,
    kind: ColumnKind,
}

#[derive(Debug, Clone)]
enum Make {
    /// Low, and the number of values.
    Whole(i64, u64),
    /// Low and width.
    Fraction(f64, f64),
    /// The value of rank 1.
    Zipf(i64, Zipf),
    /// Mean, standard deviation, and the range that whole numbers are kept in.
    Normal(f64, f64, Option<(i64, i64)>),
    /// First, step, and after how many values it starts again.
    Sequence(i64, i64, u64),
    Letters(usize),
    Bytes(usize),
    Text(String),
    Int(i64),
    Float(f64),
    OneOf(Vec<String>),
}

impl Filler {
    /// The filler of a parameter. Numbers are whole when all numbers of the fill are; normally distributed ones never are.
    ///
    /// # Errors
    /// A sentence that names the value and the remedy.
    pub fn for_parameter(fill: &Fill) -> Result<Self, String> {
        let whole = match fill {
            Fill::Uniform(low, high) => is_whole(*low) && is_whole(*high),
            Fill::Number(value) => is_whole(*value),
            Fill::Zipf(..) | Fill::Sequence(..) => true,
            Fill::Normal(..) => false,
            Fill::RandomBytes(_) => return Self::new(fill, ColumnKind::Blob(LONGEST_BYTES)),
            Fill::RandomText(_) | Fill::Text(_) | Fill::OneOf(_) => {
                return Self::new(fill, ColumnKind::Text(LONGEST_BYTES));
            }
        };
        Self::new(fill, if whole { ColumnKind::Int64 } else { ColumnKind::Float64 })
    }

    /// The filler of a column of this kind. The width of text and blob columns is checked by their builder.
    ///
    /// # Errors
    /// A sentence that names the value and the remedy.
    pub fn new(fill: &Fill, kind: ColumnKind) -> Result<Self, String> {
        let make = match kind {
            ColumnKind::Int16 => whole(fill, i64::from(i16::MIN), i64::from(i16::MAX)),
            ColumnKind::Int32 => whole(fill, i64::from(i32::MIN), i64::from(i32::MAX)),
            ColumnKind::Int64 => whole(fill, i64::MIN, i64::MAX),
            ColumnKind::Float64 => fractional(fill),
            ColumnKind::Text(_) | ColumnKind::Json => text(fill),
            ColumnKind::Blob(_) => match fill {
                Fill::RandomBytes(length) => length_of(*length).map(Make::Bytes),
                _ => Err("bytes are filled by random_bytes only".to_owned()),
            },
        }?;
        Ok(Filler { make, kind })
    }

    /// What the values are. Text and bytes have a bound here, not their own length.
    pub fn kind(&self) -> ColumnKind {
        self.kind
    }

    /// Appends the value of an index. Different columns of the same seed and index have nothing to do with each other.
    pub fn fill(&self, seed: u64, index: u64, column: u64, out: &mut Cells) {
        let mut stream = Stream::new(seed, index, column);
        match &self.make {
            Make::Whole(low, count) => out.int(low.wrapping_add(count_below(&mut stream, *count) as i64)),
            Make::Fraction(low, width) => out.float(low + width * stream.unit()),
            Make::Zipf(first, zipf) => {
                let value = first.wrapping_add((zipf.rank(&mut stream) - 1) as i64);
                self.number(value, out);
            }
            Make::Normal(mean, deviation, range) => {
                let value = mean + deviation * standard_normal(&mut stream);
                match range {
                    Some((low, high)) => out.int((value.round() as i64).clamp(*low, *high)),
                    None => out.float(value),
                }
            }
            Make::Sequence(first, step, period) => {
                let place = if *period == 0 { index } else { index % period };
                self.number(first.wrapping_add(step.wrapping_mul(place as i64)), out);
            }
            Make::Letters(length) => out.text_with(*length, |bytes| letters(&mut stream, bytes)),
            Make::Bytes(length) => out.blob_with(*length, |bytes| noise(&mut stream, bytes)),
            Make::Text(value) => out.text(value),
            Make::Int(value) => out.int(*value),
            Make::Float(value) => out.float(*value),
            Make::OneOf(values) => out.text(&values[stream.below(values.len() as u64) as usize]),
        }
    }

    fn number(&self, value: i64, out: &mut Cells) {
        if self.kind == ColumnKind::Float64 { out.float(value as f64) } else { out.int(value) }
    }
}

/// A number below a count; a count of 0 stands for all 2^64.
fn count_below(stream: &mut Stream, count: u64) -> u64 {
    if count == 0 { stream.word() } else { stream.below(count) }
}

/// The Box-Muller transform: one of its two values, so that a value stays a function of its own stream.
fn standard_normal(stream: &mut Stream) -> f64 {
    let radius = (-2.0 * (1.0 - stream.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * stream.unit()).cos()
}

fn letters(stream: &mut Stream, bytes: &mut [u8]) {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for pair in bytes.chunks_mut(2) {
        let (first, second) = stream.pair();
        for (byte, word) in pair.iter_mut().zip([first, second]) {
            *byte = LETTERS[below32(word, 62) as usize];
        }
    }
}

fn noise(stream: &mut Stream, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&stream.word().to_le_bytes()[..chunk.len()]);
    }
}

fn is_whole(value: f64) -> bool {
    value.trunc() == value && value.abs() <= EXACT_MAX
}

fn whole_number(value: f64, low: i64, high: i64) -> Result<i64, String> {
    if !is_whole(value) {
        return Err(format!("{value} is not a whole number up to 2^53; write one, or make the column a float"));
    }
    let number = value as i64;
    if (low..=high).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} does not fit the column's type, which holds {low} to {high}"))
    }
}

fn whole(fill: &Fill, low: i64, high: i64) -> Result<Make, String> {
    match fill {
        Fill::Uniform(from, to) => {
            let (from, to) = (whole_number(*from, low, high)?, whole_number(*to, low, high)?);
            if from > to {
                return Err(format!("uniform = [{from}, {to}] is empty; the lower bound comes first"));
            }
            Ok(Make::Whole(from, (to.wrapping_sub(from) as u64).wrapping_add(1)))
        }
        Fill::Zipf(from, to, exponent) => {
            fits("zipf", *from, low, high)?;
            fits("zipf", *to, low, high)?;
            zipf(*from, *to, *exponent)
        }
        Fill::Normal(mean, deviation) => normal(*mean, *deviation, Some((low, high))),
        Fill::Sequence(first, step) => {
            fits("sequence", *first, low, high)?;
            Ok(Make::Sequence(*first, *step, period(*first, *step, low, high)))
        }
        Fill::Number(value) => whole_number(*value, low, high).map(Make::Int),
        _ => Err("a column of whole numbers is filled by uniform, zipf, normal, sequence or a number".to_owned()),
    }
}

fn fits(what: &str, value: i64, low: i64, high: i64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{what}: {value} does not fit the column's type, which holds {low} to {high}"))
    }
}

/// How many values a sequence has before it would leave the range and starts again; 0 when it never does.
fn period(first: i64, step: i64, low: i64, high: i64) -> u64 {
    let room = if step > 0 { high.abs_diff(first) } else { first.abs_diff(low) };
    match step.unsigned_abs() {
        0 => 0,
        step => (room / step).saturating_add(1),
    }
}

fn zipf(low: i64, high: i64, exponent: f64) -> Result<Make, String> {
    if low > high {
        return Err(format!("zipf = [{low}, {high}, {exponent}] is empty; the lower bound comes first"));
    }
    if !(exponent > 0.0 && exponent <= 100.0) {
        return Err(format!("zipf exponent {exponent} is out of range; write one above 0 and up to 100, as in 0.99"));
    }
    Ok(Make::Zipf(low, Zipf::new(high.abs_diff(low).saturating_add(1), exponent)))
}

fn normal(mean: f64, deviation: f64, range: Option<(i64, i64)>) -> Result<Make, String> {
    if mean.is_finite() && deviation.is_finite() && deviation >= 0.0 {
        Ok(Make::Normal(mean, deviation, range))
    } else {
        Err(format!(
            "normal = [{mean}, {deviation}] has no meaning; write a mean and a standard deviation of 0 or more"
        ))
    }
}

fn fractional(fill: &Fill) -> Result<Make, String> {
    match fill {
        Fill::Uniform(low, high) if low <= high && (high - low).is_finite() => Ok(Make::Fraction(*low, high - low)),
        Fill::Uniform(low, high) => {
            Err(format!("uniform = [{low}, {high}] is no range; the lower bound comes first, and both are finite"))
        }
        Fill::Zipf(low, high, exponent) => zipf(*low, *high, *exponent),
        Fill::Normal(mean, deviation) => normal(*mean, *deviation, None),
        Fill::Sequence(first, step) => Ok(Make::Sequence(*first, *step, period(*first, *step, i64::MIN, i64::MAX))),
        Fill::Number(value) if value.is_finite() => Ok(Make::Float(*value)),
        Fill::Number(value) => Err(format!("{value} is not a number that databases store; write a finite one")),
        _ => Err("a column of numbers is filled by uniform, zipf, normal, sequence or a number".to_owned()),
    }
}

fn text(fill: &Fill) -> Result<Make, String> {
    match fill {
        Fill::RandomText(length) => length_of(*length).map(Make::Letters),
        Fill::Text(value) => allowed_text(value).map(Make::Text),
        Fill::OneOf(values) if values.is_empty() => Err("one_of is empty; give it at least one text".to_owned()),
        Fill::OneOf(values) => {
            values.iter().map(|value| allowed_text(value)).collect::<Result<_, _>>().map(Make::OneOf)
        }
        _ => Err("a text column is filled by random_text, text or one_of".to_owned()),
    }
}

fn allowed_text(value: &str) -> Result<String, String> {
    if value.contains('\0') {
        return Err(format!("the text {value:?} has a zero byte, which PostgreSQL cannot store; leave it out"));
    }
    length_of(u32::try_from(value.len()).unwrap_or(u32::MAX)).map(|_| value.to_owned())
}

fn length_of(bytes: u32) -> Result<usize, String> {
    if bytes <= LONGEST_BYTES {
        Ok(bytes as usize)
    } else {
        Err(format!("a value of {bytes} bytes is too long; at most {LONGEST_BYTES} (1 MiB) are allowed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Cell;

    fn numbers(fill: &Fill, count: u64) -> Vec<f64> {
        let filler = Filler::for_parameter(fill).unwrap();
        let mut cells = Cells::new();
        (0..count).for_each(|index| filler.fill(11, index, 0, &mut cells));
        cells
            .as_slice()
            .iter()
            .map(|cell| match cell {
                Cell::Int(value) => *value as f64,
                Cell::Float(value) => *value,
                other => panic!("{other:?} is not a number"),
            })
            .collect()
    }

    fn texts(fill: &Fill, count: u64) -> Vec<String> {
        let filler = Filler::for_parameter(fill).unwrap();
        let mut cells = Cells::new();
        (0..count).for_each(|index| filler.fill(11, index, 0, &mut cells));
        cells.as_slice().iter().map(|cell| cells.to_json(*cell).as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn uniform_whole_numbers_are_even_and_reach_both_ends() {
        let drawn = numbers(&Fill::Uniform(-2.0, 2.0), 50_000);
        let chi2: f64 = (-2..=2)
            .map(|value| drawn.iter().filter(|drawn| **drawn == f64::from(value)).count() as f64 - 10_000.0)
            .map(|difference| difference * difference / 10_000.0)
            .sum();
        assert!(chi2 < 23.5, "chi-square {chi2} with 4 degrees of freedom; 23.5 has a probability of 0.0001");
        let full = Filler::for_parameter(&Fill::Uniform(-EXACT_MAX, EXACT_MAX)).unwrap();
        full.fill(1, 1, 1, &mut Cells::new());
    }

    #[test]
    fn uniform_fractions_stay_within_their_range_and_have_its_mean() {
        let drawn = numbers(&Fill::Uniform(0.5, 1.5), 40_000);
        assert!(drawn.iter().all(|value| (0.5..1.5).contains(value)));
        let mean = drawn.iter().sum::<f64>() / 40_000.0;
        assert!((mean - 1.0).abs() < 5.0 * (1.0 / 12.0_f64 / 40_000.0).sqrt(), "mean {mean}");
    }

    #[test]
    fn normal_numbers_fall_into_equally_likely_parts_evenly() {
        // Quartiles of the standard normal distribution are at 0 and ±0.674490.
        let drawn = numbers(&Fill::Normal(20.0, 5.0), 40_000);
        let mut parts = [0.0_f64; 4];
        for value in &drawn {
            let standard = (value - 20.0) / 5.0;
            let part = [-0.674_490, 0.0, 0.674_490].iter().filter(|bound| standard > **bound).count();
            parts[part] += 1.0;
        }
        let chi2: f64 = parts.iter().map(|count| (count - 10_000.0) * (count - 10_000.0) / 10_000.0).sum();
        assert!(chi2 < 21.1, "chi-square {chi2} with 3 degrees of freedom; 21.1 has a probability of 0.0001");
        let beyond = drawn.iter().filter(|value| (**value - 20.0).abs() > 10.0).count() as f64;
        assert!((beyond - 40_000.0 * 0.0455).abs() < 5.0 * (40_000.0_f64 * 0.0455).sqrt(), "{beyond} beyond 2 sd");
    }

    #[test]
    fn zipf_numbers_start_at_the_lower_bound_and_favour_it() {
        let drawn = numbers(&Fill::Zipf(100, 199, 0.99), 10_000);
        assert!(drawn.iter().all(|value| (100.0..=199.0).contains(value)));
        let lowest = drawn.iter().filter(|value| **value == 100.0).count();
        assert!(lowest > drawn.iter().filter(|value| **value == 101.0).count());
    }

    #[test]
    fn sequences_count_and_start_again_before_they_leave_their_type() {
        assert_eq!(numbers(&Fill::Sequence(10, -5), 4), [10.0, 5.0, 0.0, -5.0]);
        let small = Filler::new(&Fill::Sequence(32_766, 1), ColumnKind::Int16).unwrap();
        let mut cells = Cells::new();
        (0..3).for_each(|index| small.fill(0, index, 0, &mut cells));
        assert_eq!(cells.as_slice(), [Cell::Int(32_766), Cell::Int(32_767), Cell::Int(32_766)]);
        assert_eq!(numbers(&Fill::Sequence(7, 0), 2), [7.0, 7.0]);
    }

    #[test]
    fn texts_have_their_length_and_bytes_theirs() {
        let drawn = texts(&Fill::RandomText(7), 100);
        assert!(drawn.iter().all(|text| text.len() == 7 && text.chars().all(|c| c.is_ascii_alphanumeric())));
        assert_ne!(drawn[0], drawn[1]);
        assert_eq!(texts(&Fill::RandomBytes(9), 1)[0].len(), 18, "hexadecimal");
        assert_eq!(texts(&Fill::Text("ä".to_owned()), 2), ["ä", "ä"]);
        let either = texts(&Fill::OneOf(vec!["a".to_owned(), "b".to_owned()]), 100);
        assert!(either.contains(&"a".to_owned()) && either.contains(&"b".to_owned()));
    }

    #[test]
    fn whole_bounds_in_a_float_column_give_fractions() {
        let filler = Filler::new(&Fill::Uniform(0.0, 1.0), ColumnKind::Float64).unwrap();
        let mut cells = Cells::new();
        filler.fill(1, 1, 1, &mut cells);
        assert!(matches!(cells.get(0), Cell::Float(value) if value > 0.0 && value < 1.0));
    }

    #[test]
    fn fills_without_meaning_are_refused_with_the_remedy() {
        let refusal = |fill| Filler::for_parameter(&fill).err().unwrap();
        assert!(refusal(Fill::Uniform(2.0, 1.0)).contains("the lower bound comes first"));
        assert!(refusal(Fill::Uniform(0.0, f64::INFINITY)).contains("finite"));
        assert!(refusal(Fill::Zipf(1, 10, 0.0)).contains("exponent 0 is out of range"));
        assert!(refusal(Fill::Zipf(10, 1, 1.0)).contains("the lower bound comes first"));
        assert!(refusal(Fill::Normal(0.0, -1.0)).contains("standard deviation of 0 or more"));
        assert!(refusal(Fill::OneOf(Vec::new())).contains("one_of is empty"));
        assert!(refusal(Fill::RandomText(u32::MAX)).contains("too long"));
        assert!(refusal(Fill::Number(f64::NAN)).contains("finite"));
    }
}
