//! Makes fills for columns that do not belong to keys.
//!
//! Main function: [`fill_of`].

use super::keys::is_uuid;
use super::rounded::{number, rounded};
use crate::draft::catalogue::{Column, Holds, Server};
use crate::draft::fit::{Place, from_spread, is_recent, now, present_us, range_of};
use crate::trial::Fill;

/// The largest share of distinct texts among a column's rows at which rows are taken to share texts.
const SHARED_MOST: f64 = 0.5;
/// The most distinct texts for which each has its own share.
const WORDS_MOST: f64 = 50.0;
/// The most letters of an invented document.
const DOCUMENT_MOST: f64 = 200.0;

/// Returns a fill whose values resemble those of a column with this many rows; `None` if the database has to make them.
pub fn fill_of(place: &Place<'_>, column: &Column, rows: f64) -> Option<Fill> {
    let fill = match column.holds {
        Holds::Whole | Holds::Fraction => {
            let distinct = column.spread.distinct.unwrap_or(1_000.0).max(1.0);
            from_spread(place, column).unwrap_or(Fill::Uniform(1.0, number(distinct).max(1.0)))
        }
        Holds::Time { .. } if is_recent(place, column) => {
            let (low, _) = range_of(column)?;
            let back_s = (present_us(place, column.holds) as f64 - low) / 1e6;
            now(place, column.holds, -number(back_s.max(1.0)), 0.0)
        }
        Holds::Time { .. } | Holds::Date => {
            from_spread(place, column).unwrap_or_else(|| now(place, column.holds, -86_400.0, 0.0))
        }
        Holds::Truth => truths(place, column),
        Holds::Text => texts(place, column, rows),
        Holds::Other => return other(column),
    };
    Some(match fill {
        fill if place.keeps_values => fill,
        Fill::Number(value) => Fill::Number(number(value)),
        fill => rounded(fill),
    })
}

/// Returns a fill of true and false as the database writes them as text.
fn truths(place: &Place<'_>, column: &Column) -> Fill {
    let value = |is: bool| match place.server {
        Server::Postgres => Fill::Text(if is { "t" } else { "f" }.to_owned()),
        _ => Fill::Number(if is { 1.0 } else { 0.0 }),
    };
    let is_true = |text: &str| matches!(text, "t" | "true" | "1");
    let share = |is: bool| -> f64 {
        let shares = column.spread.frequent.iter().filter(|(text, _)| is_true(text) == is).map(|(_, share)| share);
        (1e3 * shares.sum::<f64>()).round() / 1e1
    };
    match (share(true), share(false)) {
        (yes, no) if yes > 0.0 && no > 0.0 => Fill::Weighted(vec![(value(true), yes), (value(false), no)]),
        (yes, _) if yes > 0.0 => value(true),
        (_, no) if no > 0.0 => value(false),
        _ => Fill::Weighted(vec![(value(true), 50.0), (value(false), 50.0)]),
    }
}

fn texts(place: &Place<'_>, column: &Column, rows: f64) -> Fill {
    let width = column.spread.width.unwrap_or(12.0).round().clamp(1.0, 65_535.0) as usize;
    let frequent = &column.spread.frequent;
    let are_few = column.spread.distinct.is_some_and(|distinct| distinct <= WORDS_MOST) && !frequent.is_empty();
    if !are_few {
        // Shared texts have as many distinct values as in the original; other texts are unique to their row.
        return match column.spread.distinct {
            Some(distinct) if distinct < SHARED_MOST * rows => {
                Fill::TextOf(width as u32, Box::new(Fill::Uniform(1.0, number(distinct.max(1.0)).round())))
            }
            _ => Fill::RandomText(width as u32),
        };
    }
    let percent = |share: f64| ((1e3 * share).round() / 1e1).max(0.1);
    let of = |(number, (text, share)): (usize, &(String, f64))| {
        let text = if place.keeps_values { text.clone() } else { word(number, width) };
        (Fill::Text(text), percent(*share))
    };
    Fill::Weighted(frequent.iter().enumerate().map(of).collect())
}

/// Returns an invented word of the given width, or longer if its number needs more letters.
fn word(number: usize, width: usize) -> String {
    const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
    let mut letters = Vec::new();
    let mut left = number;
    loop {
        letters.push(char::from(LETTERS[left % 26]));
        left /= 26;
        if left == 0 {
            break;
        }
    }
    while letters.len() < width {
        letters.push('x');
    }
    letters.into_iter().rev().collect()
}

/// Returns a fill for types other than numbers, times and texts; `None` if the database makes the values or accepts null.
fn other(column: &Column) -> Option<Fill> {
    let name = column.plain_type.as_deref().unwrap_or_default().to_lowercase();
    let width = column.spread.width.unwrap_or(16.0).round().clamp(1.0, 65_535.0);
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let text = |text: &str| Some(Fill::Text(text.to_owned()));
    match () {
        () if is_uuid(column) => None,
        () if name.ends_with("[]") => text("{}"),
        () if has(&["json"]) => Some(documents(width)),
        () if has(&["bytea", "blob", "binary"]) || name.is_empty() => Some(Fill::RandomBytes(width as u32)),
        () if has(&["inet", "cidr"]) => text("192.0.2.1"),
        () if has(&["interval"]) => text("1 hour"),
        () if name.starts_with("time") => text("12:00:00"),
        () if has(&["bit"]) => None,
        () => None,
    }
}

/// Returns a fill of several documents of about this length.
fn documents(width: f64) -> Fill {
    /// The number of documents.
    const COUNT: u8 = 8;
    let letters = (width.min(DOCUMENT_MOST) as usize).saturating_sub(9);
    let one = |number: u8| {
        // The letters do not repeat, so that they compress no better than those of a real document.
        let mut state = u32::from(number) * 2_654_435 + 1;
        let filler: String = (0..letters)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                char::from(b'a' + (state >> 24) as u8 % 26)
            })
            .collect();
        format!("{{\"a\": \"{filler}\"}}")
    };
    Fill::OneOf((1..=COUNT).map(one).collect())
}
