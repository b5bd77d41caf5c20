//! Single values: a [`Filler`] is a study's [`Fill`] after checks, with everything precomputed that does not depend on the index.

mod drawing;
mod drift;

use super::zipf::Zipf;
use crate::random::Stream;
use crate::record::{Cells, ColumnKind};
use crate::trial::{Fill, Times};
use crate::units::times::write_time;

use drawing::{count_below, letters, noise, now_us, standard_normal, time_between};
use drift::Drift;
pub use drift::index_in_track;

/// Maximum length of one text or bytes value, in bytes.
const LONGEST_BYTES: u32 = 1 << 20;

/// Whole numbers of a study are read as 64-bit floating-point numbers, which are exact up to this one.
const EXACT_MAX: f64 = (1_u64 << 53) as f64;

/// Makes the values of one column or parameter.
#[derive(Debug, Clone)]
pub struct Filler {
    make: Make,
    kind: ColumnKind,
}

#[derive(Debug, Clone)]
enum Make {
    /// Lowest value, and number of values.
    Whole(i64, u64),
    /// Lowest value, and width of the range.
    Fraction(f64, f64),
    /// The value of rank 1.
    Zipf(i64, Zipf),
    /// Mean, standard deviation, and the range that whole numbers are clamped to.
    Normal(f64, f64, Option<(i64, i64)>),
    Drift(Drift),
    /// First value, step, and number of values after which the sequence starts again.
    Sequence(i64, i64, u64),
    Letters(usize),
    Bytes(usize),
    Text(String),
    Int(i64),
    Float(f64),
    OneOf(Vec<String>),
    /// Bounds of intervals that are equally likely.
    Quantiles(Vec<f64>),
    Times(Times),
    /// Two bounds in microseconds from now, and the zone.
    Now(i64, i64, String),
    Null,
    Weighted(Weighted),
}

/// Several fillers, each with the share of all 64-bit words that choose it or one before it.
#[derive(Debug, Clone)]
struct Weighted {
    below: Vec<u64>,
    fillers: Vec<Filler>,
}

impl Filler {
    /// Creates the filler of a parameter. Numbers are whole if all numbers of the fill are; normally distributed ones never are.
    ///
    /// # Errors
    /// A sentence that names the value and the remedy.
    pub fn for_parameter(fill: &Fill) -> Result<Self, String> {
        Self::new(fill, kind_of(fill)?.unwrap_or(ColumnKind::Int64))
    }

    /// Creates the filler of a column of this kind. The width of text and blob columns is checked by their builder.
    ///
    /// # Errors
    /// A sentence that names the value and the remedy.
    pub fn new(fill: &Fill, kind: ColumnKind) -> Result<Self, String> {
        let make = match (fill, kind) {
            (Fill::Null, _) => Ok(Make::Null),
            (Fill::Weighted(choices), _) => weighted(choices, kind).map(Make::Weighted),
            _ => Self::make(fill, kind),
        }?;
        Ok(Filler { make, kind })
    }

    fn make(fill: &Fill, kind: ColumnKind) -> Result<Make, String> {
        match kind {
            ColumnKind::Int16 => whole(fill, i64::from(i16::MIN), i64::from(i16::MAX)),
            ColumnKind::Int32 => whole(fill, i64::from(i32::MIN), i64::from(i32::MAX)),
            ColumnKind::Int64 => whole(fill, i64::MIN, i64::MAX),
            ColumnKind::Float64 => fractional(fill),
            ColumnKind::Text(_) | ColumnKind::Json => text(fill),
            ColumnKind::Blob(_) => match fill {
                Fill::RandomBytes(length) => length_of(*length).map(Make::Bytes),
                _ => Err("bytes are filled by random_bytes only".to_owned()),
            },
        }
    }

    /// Returns the kind of the values. Text and bytes have a bound here, not their own length.
    pub fn kind(&self) -> ColumnKind {
        self.kind
    }

    /// Returns whether the values wander, each track on its own.
    pub fn drifts(&self) -> bool {
        matches!(self.make, Make::Drift(_))
    }

    /// Returns whether the values are texts.
    pub fn is_text(&self) -> bool {
        matches!(self.kind, ColumnKind::Text(_) | ColumnKind::Json | ColumnKind::Blob(_))
    }

    /// Appends the value of an index. Different columns of the same seed and index are independent of each other.
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
            Make::Drift(drift) => {
                let value = drift.value(seed, column, index);
                if self.kind == ColumnKind::Float64 { out.float(value) } else { out.int(value as i64) }
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
            Make::Quantiles(bounds) => self.quantile(bounds, &mut stream, out),
            Make::Times(times) => out.text_of(|bytes| time_between(times, &mut stream, bytes)),
            Make::Now(from, to, zone) => {
                let us = from.saturating_add(stream.below(to.abs_diff(*from).saturating_add(1)) as i64);
                out.text_of(|bytes| write_time(now_us().saturating_add(us), true, zone, bytes));
            }
            Make::Null => out.null(),
            Make::Weighted(weighted) => {
                let word = stream.word();
                let chosen = weighted.below.partition_point(|below| *below <= word).min(weighted.fillers.len() - 1);
                // Drawn from the same stream, the value would depend on the random number that chose it.
                weighted.fillers[chosen].fill(seed, index, column ^ CHOSEN.rotate_left(chosen as u32), out);
            }
        }
    }

    /// Appends a number from a random interval between neighbouring bounds.
    fn quantile(&self, bounds: &[f64], stream: &mut Stream, out: &mut Cells) {
        let stretch = stream.below(bounds.len() as u64 - 1) as usize;
        let (low, high) = (bounds[stretch], bounds[stretch + 1]);
        if self.kind == ColumnKind::Float64 {
            return out.float(low + (high - low) * stream.unit());
        }
        // A bound belongs to the interval above it, and the highest bound to the last interval.
        let count = (high - low) as u64 + u64::from(stretch + 2 == bounds.len() || high == low);
        out.int(low as i64 + stream.below(count) as i64);
    }

    fn number(&self, value: i64, out: &mut Cells) {
        if self.kind == ColumnKind::Float64 { out.float(value as f64) } else { out.int(value) }
    }
}

/// Separates the random numbers that choose from those of the chosen filler.
const CHOSEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the kind of a parameter with this fill; `None` if it has no value.
fn kind_of(fill: &Fill) -> Result<Option<ColumnKind>, String> {
    let number = |is_whole: bool| if is_whole { ColumnKind::Int64 } else { ColumnKind::Float64 };
    Ok(Some(match fill {
        Fill::Uniform(low, high) => number(is_whole(*low) && is_whole(*high)),
        Fill::Number(value) => number(is_whole(*value)),
        Fill::Drift(low, _, step) => number(is_whole(*low) && is_whole(*step)),
        Fill::Quantiles(bounds) => number(bounds.iter().all(|bound| is_whole(*bound))),
        Fill::Zipf(..) | Fill::Sequence(..) => ColumnKind::Int64,
        Fill::Normal(..) => ColumnKind::Float64,
        Fill::RandomBytes(_) => ColumnKind::Blob(LONGEST_BYTES),
        Fill::RandomText(_) | Fill::Text(_) | Fill::OneOf(_) | Fill::Times(_) | Fill::Now(..) => {
            ColumnKind::Text(LONGEST_BYTES)
        }
        Fill::Null => return Ok(None),
        Fill::Weighted(choices) => return kind_of_all(choices.iter().map(|(fill, _)| fill)),
        Fill::Same(_)
        | Fill::Plus(..)
        | Fill::From(_)
        | Fill::FromCsv(_)
        | Fill::RowOf(..)
        | Fill::AnswerOf(..)
        | Fill::SequenceFrom(..)
        | Fill::Array(..)
        | Fill::TextOf(..)
        | Fill::Blocks(..)
        | Fill::TimeBlocks(_)
        | Fill::Cycle(..) => {
            let what = "same, plus, from, from_csv, row_of, answer_of, array, text_of, blocks, cycle and a sequence from a query";
            return Err(format!("{what} are for parameters of statements, and for columns of [[tables]]"));
        }
    }))
}

/// Returns the common kind of several fills: fractional numbers if some are fractional and the others whole.
fn kind_of_all<'f>(fills: impl Iterator<Item = &'f Fill>) -> Result<Option<ColumnKind>, String> {
    let mut all = None;
    for fill in fills {
        all = match (all, kind_of(fill)?) {
            (None, kind) => kind,
            (kind, None) => kind,
            (Some(ColumnKind::Int64), Some(ColumnKind::Float64))
            | (Some(ColumnKind::Float64), Some(ColumnKind::Int64)) => Some(ColumnKind::Float64),
            (Some(one), Some(other)) if one == other => Some(one),
            _ => return Err("weighted has numbers and texts together; take one kind".to_owned()),
        };
    }
    Ok(all)
}

fn weighted(choices: &[(Fill, f64)], kind: ColumnKind) -> Result<Weighted, String> {
    let total: f64 = choices.iter().map(|(_, weight)| weight).sum();
    if choices.is_empty() || choices.iter().any(|(_, weight)| !(*weight > 0.0 && weight.is_finite())) {
        return Err("weighted needs at least one fill, each with a weight above 0".to_owned());
    }
    let mut sum = 0.0;
    let below = choices.iter().map(|(_, weight)| {
        sum += weight;
        // Conversion of a float stops at the largest word, which is where the last share ends.
        (sum / total * 2.0_f64.powi(64)) as u64
    });
    let below = below.collect();
    let fillers = choices.iter().map(|(fill, _)| Filler::new(fill, kind)).collect::<Result<_, _>>()?;
    Ok(Weighted { below, fillers })
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
        Fill::Drift(from, to, step) => {
            [from, to, step].into_iter().try_for_each(|number| whole_number(*number, low, high).map(drop))?;
            Drift::new(*from, *to, *step).map(Make::Drift)
        }
        Fill::Sequence(first, step) => {
            fits("sequence", *first, low, high)?;
            Ok(Make::Sequence(*first, *step, period(*first, *step, low, high)))
        }
        Fill::Number(value) => whole_number(*value, low, high).map(Make::Int),
        Fill::Quantiles(bounds) => {
            bounds.iter().try_for_each(|bound| whole_number(*bound, low, high).map(drop))?;
            quantiles(bounds)
        }
        _ => {
            Err("a column of whole numbers is filled by uniform, zipf, normal, drift, quantiles, sequence or a number"
                .to_owned())
        }
    }
}

fn fits(what: &str, value: i64, low: i64, high: i64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{what}: {value} does not fit the column's type, which holds {low} to {high}"))
    }
}

/// Returns the number of values after which a sequence would leave the range and starts again; 0 if it never does.
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
        Fill::Drift(low, high, step) => Drift::new(*low, *high, *step).map(Make::Drift),
        Fill::Sequence(first, step) => Ok(Make::Sequence(*first, *step, period(*first, *step, i64::MIN, i64::MAX))),
        Fill::Number(value) if value.is_finite() => Ok(Make::Float(*value)),
        Fill::Number(value) => Err(format!("{value} is not a number that databases store; write a finite one")),
        Fill::Quantiles(bounds) => quantiles(bounds),
        _ => {
            Err("a column of numbers is filled by uniform, zipf, normal, drift, quantiles, sequence or a number"
                .to_owned())
        }
    }
}

fn quantiles(bounds: &[f64]) -> Result<Make, String> {
    let ascends = bounds.windows(2).all(|pair| pair[0] <= pair[1]) && bounds.iter().all(|bound| bound.is_finite());
    let is_range = bounds.first().zip(bounds.last()).is_some_and(|(low, high)| (high - low).is_finite());
    if ascends && is_range && bounds.len() >= 2 {
        Ok(Make::Quantiles(bounds.to_vec()))
    } else {
        Err("quantiles need two or more numbers, none below the one before it".to_owned())
    }
}

fn times(times: &Times) -> Result<Make, String> {
    if times.bounds_us.len() >= 2 && times.bounds_us.is_sorted() {
        Ok(Make::Times(times.clone()))
    } else {
        Err("times need two or more points in time, none before the one in front of it".to_owned())
    }
}

/// Creates values around the present time; the bounds are in seconds.
fn now(from_s: f64, to_s: f64, zone: &str) -> Result<Make, String> {
    const FARTHEST_S: f64 = 1e10;
    if !(-FARTHEST_S..=FARTHEST_S).contains(&from_s) || !(from_s..=FARTHEST_S).contains(&to_s) {
        return Err(format!("now = [{from_s} s, {to_s} s] is no range; the earlier bound comes first"));
    }
    Ok(Make::Now((from_s * 1e6) as i64, (to_s * 1e6) as i64, zone.to_owned()))
}

fn text(fill: &Fill) -> Result<Make, String> {
    match fill {
        Fill::Times(bounds) => times(bounds),
        Fill::Now(from_s, to_s, zone) => now(*from_s, *to_s, zone),
        Fill::RandomText(length) => length_of(*length).map(Make::Letters),
        Fill::Text(value) => allowed_text(value).map(Make::Text),
        Fill::OneOf(values) if values.is_empty() => Err("one_of is empty; give it at least one text".to_owned()),
        Fill::OneOf(values) => {
            values.iter().map(|value| allowed_text(value)).collect::<Result<_, _>>().map(Make::OneOf)
        }
        _ => Err("a text column is filled by random_text, text, one_of, times or now".to_owned()),
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
mod tests;
