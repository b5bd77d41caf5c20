//! Paces: how long things took on this machine, so that a plan need not guess.
//!
//! Main types: [`Pace`], [`Paces`]. Invariant: a pace is finite and positive, and belongs to one build of the program and to one subject; it says nothing about another.

use serde::{Deserialize, Serialize};

use super::rates;
use super::subject::{Filling, Kind, Subject};

/// The time that an amount of a subject took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// The thing that took the time.
    pub subject: Subject,
    /// The amount of it, in the subject's unit.
    pub amount: u64,
    /// Time that the whole amount took, in seconds.
    pub lasted_s: f64,
}

/// The basis of an estimated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The same subject was measured on this machine.
    Measured,
    /// Rates of another machine, scaled by how much faster or slower similar subjects were on this one.
    Related,
    /// Rates of another machine.
    Guessed,
}

/// All known paces, the oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paces(pub Vec<Pace>);

/// Number of most recent similar paces that are considered.
const LOOKED_AT: usize = 9;
/// Amounts are similar up to this ratio.
const ALIKE: f64 = 2.0;

impl Pace {
    /// Returns whether the pace is plausible: finite and positive.
    pub fn is_sound(&self) -> bool {
        self.amount > 0 && self.lasted_s.is_finite() && self.lasted_s > 0.0
    }

    /// Returns whether another pace is of the same subject and a similar amount.
    fn is_like(&self, other: &Pace) -> bool {
        self.subject == other.subject && distance(self.amount, other.amount) < ALIKE.ln()
    }

    fn each_s(&self) -> f64 {
        self.lasted_s / self.amount as f64
    }
}

impl Paces {
    /// Adds a plausible pace; it replaces the oldest similar one if there are enough of them.
    pub fn add(&mut self, pace: Pace) {
        if !pace.is_sound() {
            return;
        }
        let alike: Vec<usize> = (0..self.0.len()).filter(|place| self.0[*place].is_like(&pace)).collect();
        if alike.len() >= LOOKED_AT {
            self.0.remove(alike[0]);
        }
        self.0.push(pace);
    }

    /// Returns how long an amount of a subject takes, in seconds: by the median of the most recent paces with a similar
    /// amount, or else of those with the closest amount. `None` if the subject was never measured.
    pub fn lasts_s(&self, subject: &Subject, amount: u64) -> Option<f64> {
        let of_it = || self.0.iter().filter(|pace| pace.subject == *subject && pace.is_sound());
        let closest = of_it().map(|pace| distance(pace.amount, amount)).min_by(f64::total_cmp)?;
        let near = closest.max(ALIKE.ln());
        let each_s: Vec<f64> = of_it().filter(|pace| distance(pace.amount, amount) <= near).map(Pace::each_s).collect();
        Some(median(&each_s[each_s.len().saturating_sub(LOOKED_AT)..])? * amount as f64)
    }

    /// Returns how long filling tables with this many records takes, in seconds, and the basis of that figure.
    pub fn filling_s(&self, filling: &Filling, records: u64) -> (f64, Basis) {
        if let Some(lasts_s) = self.lasts_s(&Subject::Filling(filling.clone()), records) {
            return (lasts_s, Basis::Measured);
        }
        let guess_s = rates::record_s(filling) * records as f64;
        match self.slowness(&filling.database) {
            Some(slowness) => (guess_s * slowness, Basis::Related),
            None => (guess_s, Basis::Guessed),
        }
    }

    /// Returns how many times as long as guessed filling took here: for the same database, or else for others. `None` if nothing was measured.
    fn slowness(&self, database: &Kind) -> Option<f64> {
        let mut ratios: Vec<(bool, f64)> = Vec::new();
        for pace in self.0.iter().filter(|pace| pace.is_sound()) {
            if let Subject::Filling(filling) = &pace.subject {
                ratios.push((filling.database == *database, pace.each_s() / rates::record_s(filling)));
            }
        }
        let of = |same: bool| {
            median(&ratios.iter().filter(|(is, _)| *is || !same).map(|(_, ratio)| *ratio).collect::<Vec<_>>())
        };
        of(true).or_else(|| of(false))
    }
}

/// Returns the distance between two amounts: the absolute logarithm of their ratio.
fn distance(one: u64, other: u64) -> f64 {
    (one.max(1) as f64 / other.max(1) as f64).ln().abs()
}

/// Returns the middle value, or the mean of the two middle values; `None` for an empty list.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some((sorted[last / 2] + sorted[sorted.len() / 2]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filling(layout: &str, columns: u32) -> Filling {
        let kind = Kind { name: "sqlite".to_owned(), engine: None, is_elsewhere: false };
        let (layout, record) = (layout.to_owned(), "qos".to_owned());
        Filling { database: kind, layout, record, columns, bytes: 488, indexes: 0 }
    }

    fn pace(layout: &str, amount: u64, lasted_s: f64) -> Pace {
        Pace { subject: Subject::Filling(filling(layout, 61)), amount, lasted_s }
    }

    fn paces(all: &[Pace]) -> Paces {
        let mut paces = Paces::default();
        all.iter().for_each(|pace| paces.add(pace.clone()));
        paces
    }

    #[test]
    fn the_median_of_the_last_few_counts() {
        let lasted_s = [90.0, 70.0, 80.0, 4.0, 1.0, 2.0, 50.0, 3.0, 2.5, 9.0, 1.5, 3.0];
        let paces = paces(&lasted_s.map(|lasted_s| pace("wide", 1000, lasted_s)));
        assert_eq!(paces.0.len(), LOOKED_AT, "those before them are forgotten");
        assert_eq!(paces.lasts_s(&Subject::Filling(filling("wide", 61)), 1000), Some(3.0), "the median of nine");
        assert_eq!(paces.filling_s(&filling("wide", 61), 500), (1.5, Basis::Measured));
    }

    #[test]
    fn what_was_about_as_much_counts_before_what_was_more_or_less() {
        let paces = paces(&[pace("wide", 2_000, 2.0), pace("wide", 100_000, 10.0), pace("wide", 90_000, 11.0)]);
        let lasts_s = |amount| paces.lasts_s(&Subject::Filling(filling("wide", 61)), amount).unwrap();
        assert_eq!(lasts_s(2_000), 2.0);
        let each_s = f64::midpoint(10.0 / 100_000.0, 11.0 / 90_000.0);
        assert!((lasts_s(100_000) / (100_000.0 * each_s) - 1.0).abs() < 1e-9);
        assert_eq!(lasts_s(10), 0.01, "a few are told from the fewest there were");
        assert_eq!(lasts_s(1_000_000), 100.0, "and many from the most");
    }

    #[test]
    fn what_cannot_be_true_is_not_taken_in() {
        let unsound = [pace("wide", 0, 1.0), pace("wide", 1, 0.0), pace("wide", 1, -1.0), pace("wide", 1, f64::NAN)];
        assert_eq!(paces(&unsound), Paces::default());
        assert_eq!(paces(&[pace("wide", 1, f64::INFINITY)]), Paces::default());
    }

    #[test]
    fn what_was_never_measured_is_guessed_at_the_pace_of_what_was() {
        let (known, wanted) = (filling("wide", 61), filling("eav", 61));
        let (guess_s, basis) = Paces::default().filling_s(&wanted, 1000);
        assert_eq!((guess_s, basis), (1000.0 * rates::record_s(&wanted), Basis::Guessed));
        let paces = paces(&[pace("wide", 1000, 7.0 * 1000.0 * rates::record_s(&known))]);
        let (lasts_s, basis) = paces.filling_s(&wanted, 1000);
        assert!((lasts_s / guess_s - 7.0).abs() < 1e-9 && basis == Basis::Related, "{lasts_s} and {guess_s}");
        let elsewhere = Filling { database: Kind { name: "postgres".to_owned(), ..wanted.database.clone() }, ..wanted };
        assert_eq!(paces.filling_s(&elsewhere, 1).1, Basis::Related, "this machine may be slow for all of them");
    }
}
