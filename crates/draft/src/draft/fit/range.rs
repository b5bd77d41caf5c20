//! Fills for ranges of a column: their beginnings and widths.
//!
//! Invariant: both ends of a range move together, so that it finds about the same number of rows each time.

use super::column;
use super::numbers::{VALUES_LEAST, fit_numbers};
use super::statement::{CONSTANT_LEAST, Fitter, Width, Work, is_time, unknown};
use crate::draft::catalogue::Holds;
use crate::draft::seen::{Ran, Sample};
use crate::draft::sql::{ColumnPlace, Comparison, Role};
use crate::trial::{Fill, Times};
use crate::units::times::parse_time;

/// The share of a table that a range is assumed to cover if nothing is known.
const SHARE_UNKNOWN: f64 = 0.01;

impl Fitter<'_> {
    /// Keeps two bounds of one column as far apart as they were in the calls.
    pub(super) fn pair_bounds(&self, work: &mut Work<'_>) -> Result<(), String> {
        let bound = |place: usize| match work.roles[place] {
            Role::Compared { column, how: how @ (Comparison::AtLeast | Comparison::AtMost), is_plain: true } => {
                Some((column, how))
            }
            _ => None,
        };
        for place in 0..work.roles.len() {
            let Some((column, how)) = bound(place).filter(|_| work.fills[place].is_none()) else { continue };
            let other = (place + 1..work.roles.len()).find(|other| {
                work.fills[*other].is_none()
                    && bound(*other).is_some_and(|(same, otherwise)| same == column && otherwise != how)
            });
            let Some(other) = other else { continue };
            work.fills[place] = Some(self.bound(work, place, column)?);
            let sign = if how == Comparison::AtLeast { 1.0 } else { -1.0 };
            let asked = self.distances(work.ran, column, place, other);
            let width = match fit_numbers(&asked, None) {
                Some(Fill::Number(width)) => {
                    self.keep_within(work, place, column, width);
                    Fill::Number(width)
                }
                Some(width) => width,
                None => {
                    let (width, remark) = self.width(work, column);
                    work.remarks.extend(remark);
                    self.keep_within(work, place, column, sign * width);
                    let is_whole = self.table(column).columns[column.column].holds == Holds::Whole;
                    work.widths.push((other, if is_whole { Width::Whole } else { Width::Fraction }));
                    Fill::Number(sign * width)
                }
            };
            work.fills[other] = Some(Fill::Plus(place as u32 + 1, Box::new(width)));
        }
        Ok(())
    }

    /// Keeps the beginning of a range away from the end of the column, where the range would find fewer rows.
    pub(super) fn keep_within(&self, work: &mut Work<'_>, place: usize, column: ColumnPlace, width: f64) {
        let own = &self.table(column).columns[column.column];
        let (Some((low, high)), Some(fill)) = (column::range_of(own), work.fills[place].take()) else { return };
        let unit = if is_time(own.holds) { 1e6 } else { 1.0 };
        let (least, most) = (low - (width * unit).min(0.0), high - (width * unit).max(0.0));
        let whole = if is_time(own.holds) { |us: f64| us - us.rem_euclid(1e6) } else { |number: f64| number };
        work.fills[place] = Some(column::clipped(fill, whole(least), whole(most)));
    }

    /// Returns the distances of a value from an earlier one in the calls where both are known; in seconds for times.
    pub(super) fn distances(&self, ran: &Ran, column: ColumnPlace, from: usize, to: usize) -> Vec<f64> {
        let holds = self.table(column).columns[column.column].holds;
        let value = |sample: &Sample, place: usize| self.as_number(holds, sample.values.get(place)?.as_deref()?);
        let unit = if is_time(holds) { 1e6 } else { 1.0 };
        ran.samples.iter().filter_map(|sample| Some((value(sample, to)? - value(sample, from)?) / unit)).collect()
    }

    pub(super) fn as_number(&self, holds: Holds, text: &str) -> Option<f64> {
        if is_time(holds) { parse_time(text).map(|time| time.us as f64) } else { text.parse().ok() }
    }

    /// Returns the width at which a range finds as many rows as calls found, and the assumption that was made, if any.
    pub(super) fn width(&self, work: &Work<'_>, column: ColumnPlace) -> (f64, Option<String>) {
        let own = &self.table(column).columns[column.column];
        let (share, is_guess) = self.share_found(work, column);
        let stretch = column::stretch(own, share).unwrap_or(0.0);
        let whole = if own.holds == Holds::Whole || is_time(own.holds) {
            stretch.round().max(1.0) - f64::from(u8::from(own.holds == Holds::Whole))
        } else {
            stretch
        };
        let remark = format!("nothing tells how wide the range of {} is: it is a guess", self.column_name(column));
        (whole, is_guess.then_some(remark))
    }

    /// Returns the share of a table that a range of this column covers, and whether it is a guess.
    pub(super) fn share_found(&self, work: &Work<'_>, column: ColumnPlace) -> (f64, bool) {
        let table = self.table(column);
        let Some(rows) = work.rows_told.filter(|_| table.rows >= 1.0) else { return (SHARE_UNKNOWN, true) };
        // Other conditions reduce the rows found; each is taken as independent.
        let others: f64 = work
            .roles
            .iter()
            .filter_map(|role| match role {
                Role::Compared { column: other, how: Comparison::Equal, .. } if other.table == column.table => {
                    table.columns[other.column].spread.share_alike()
                }
                _ => None,
            })
            .product();
        ((rows / (table.rows * others)).clamp(0.0, 1.0), false)
    }

    /// Returns the fill of a bound that belongs to a range with two ends, or of which values are known.
    pub(super) fn bound(&self, work: &Work<'_>, place: usize, column: ColumnPlace) -> Result<Fill, String> {
        let own = &self.table(column).columns[column.column];
        if let Some(fill) = self.asked_times(work.ran, place, column) {
            return Ok(fill);
        }
        let values = work
            .ran
            .samples
            .iter()
            .filter_map(|sample| self.as_number(own.holds, sample.values.get(place)?.as_deref()?));
        let values: Vec<f64> = values.collect();
        if values.len() >= VALUES_LEAST && is_time(own.holds) {
            return column::times(&self.place, own.holds, values).ok_or_else(|| unknown(place));
        }
        if values.len() >= VALUES_LEAST {
            return fit_numbers(&values, column::range_of(own)).ok_or_else(|| unknown(place));
        }
        column::bound(&self.place, self.table(column), column.column)
    }

    /// Returns a fill relative to the present for times from calls, if they all were at about the same distance from it.
    pub(super) fn asked_times(&self, ran: &Ran, place: usize, column: ColumnPlace) -> Option<Fill> {
        let own = &self.table(column).columns[column.column];
        if !is_time(own.holds) {
            return None;
        }
        let value = |sample: &Sample| parse_time(sample.values.get(place)?.as_deref()?).map(|time| time.us);
        let offsets: Vec<f64> =
            ran.samples.iter().filter_map(|sample| Some((value(sample)? - sample.at_us?) as f64 / 1e6)).collect();
        let mut asked = ran.samples.iter().filter_map(value);
        let first = asked.next()?;
        // One time that is always used does not move with the present.
        if offsets.len() < CONSTANT_LEAST || asked.all(|other| other == first) {
            return None;
        }
        let (low, high) =
            offsets.iter().fold((f64::MAX, f64::MIN), |(low, high), offset| (low.min(*offset), high.max(*offset)));
        let (oldest, newest) = column::range_of(own)?;
        // The distance from now does not describe times that lie anywhere in the table.
        let is_near = (high - low) * 1e6 < 0.05 * (newest - oldest) && column::is_recent(&self.place, own);
        is_near.then(|| column::now(&self.place, own.holds, low.floor(), high.ceil()))
    }

    /// Returns the fill of a range with one bound: from the end of the column, it finds as many rows as calls found.
    pub(super) fn bound_alone(&self, work: &mut Work<'_>, place: usize, column: ColumnPlace) -> Result<Fill, String> {
        let own = &self.table(column).columns[column.column];
        let is_least = matches!(work.roles[place], Role::Compared { how: Comparison::AtLeast, .. });
        let known =
            work.ran.samples.iter().filter(|sample| sample.values.get(place).is_some_and(Option::is_some)).count();
        if known >= VALUES_LEAST || work.roles.contains(&Role::Limit) {
            return self.bound(work, place, column);
        }
        let (share, is_guess) = self.share_found(work, column);
        if is_guess {
            work.remarks
                .push(format!("nothing tells how much the range of {} finds: it is a guess", self.column_name(column)));
        }
        let (Some((low, high)), Some(stretch)) = (column::range_of(own), column::stretch(own, share)) else {
            return column::bound(&self.place, self.table(column), column.column);
        };
        let unit = if is_time(own.holds) { 1e6 } else { 1.0 };
        let value = if is_least { high - stretch * unit } else { low + stretch * unit };
        if !is_time(own.holds) {
            return Ok(Fill::Number(if own.holds == Holds::Whole { value.round() } else { value }));
        }
        let from_now_s = (value - column::present_us(&self.place, own.holds) as f64) / 1e6;
        if is_least && column::is_recent(&self.place, own) {
            return Ok(column::now(&self.place, own.holds, from_now_s.round(), from_now_s.round()));
        }
        let us = value as i64;
        let bounds_us = vec![us - us.rem_euclid(1_000_000); 2];
        Ok(Fill::Times(Times { bounds_us, zone: column::zone(&self.place, own.holds) }))
    }
}
