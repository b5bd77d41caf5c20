//! The distribution of a column's values: the frequent ones, and bounds that divide the others evenly.
//!
//! Main type: [`Spread`].

use std::collections::HashMap;

/// The most frequent values that are kept.
const FREQUENT_MOST: usize = 50;
/// The most bounds that are kept.
const BOUNDS_MOST: usize = 21;

/// Returns the place of a value in an order, if it has one.
pub type Order<'o> = &'o dyn Fn(&str) -> Option<f64>;

/// The distribution of a column's values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spread {
    /// The share of rows with null.
    pub nulls: f64,
    /// The approximate number of distinct values.
    pub distinct: Option<f64>,
    /// The mean size of a value, in bytes or characters.
    pub width: Option<f64>,
    /// The least and the greatest value.
    pub range: Option<(String, String)>,
    /// Frequent values with their shares of all rows.
    pub frequent: Vec<(String, f64)>,
    /// Values in order that divide the other rows into parts of equal size.
    pub bounds: Vec<String>,
}

impl Spread {
    /// Returns the distribution of a sample out of this many rows. `order` orders the values that can be ordered.
    pub fn of(sample: &[Option<String>], rows: f64, order: Option<Order<'_>>) -> Self {
        let total = sample.len() as f64;
        let values: Vec<&str> = sample.iter().flatten().map(String::as_str).collect();
        if values.is_empty() {
            return Spread { nulls: if sample.is_empty() { 0.0 } else { 1.0 }, ..Spread::default() };
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        values.iter().for_each(|value| *counts.entry(value).or_default() += 1);
        let average = values.len() as f64 / counts.len() as f64;
        let mut frequent: Vec<(&str, usize)> = counts.iter().map(|(value, count)| (*value, *count)).collect();
        frequent.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let is_small = counts.len() <= FREQUENT_MOST && average >= 2.0;
        // As in PostgreSQL's ANALYZE, a value is frequent if its count is a quarter above the average.
        frequent.retain(|(_, count)| is_small || (*count > 1 && *count as f64 > 1.25 * average));
        frequent.truncate(FREQUENT_MOST);
        let is_frequent = |value: &str| frequent.iter().any(|(other, _)| *other == value);
        let mut rest: Vec<(f64, &str)> = match order {
            Some(order) => values
                .iter()
                .filter(|value| !is_frequent(value))
                .filter_map(|value| Some((order(value)?, *value)))
                .collect(),
            None => Vec::new(),
        };
        rest.sort_by(|a, b| a.0.total_cmp(&b.0));
        let steps = BOUNDS_MOST.min(rest.len()).saturating_sub(1);
        let bounds = (0..=steps).filter_map(|step| rest.get(step * rest.len().saturating_sub(1) / steps.max(1)));
        let mut ordered: Vec<(f64, &str)> = order
            .map_or_else(Vec::new, |order| values.iter().filter_map(|value| Some((order(value)?, *value))).collect());
        ordered.sort_by(|a, b| a.0.total_cmp(&b.0));
        let width = values.iter().map(|value| value.chars().count()).sum::<usize>() as f64 / values.len() as f64;
        Spread {
            nulls: 1.0 - values.len() as f64 / total,
            distinct: Some(distinct(&counts, values.len() as f64, rows * values.len() as f64 / total)),
            width: Some(width),
            range: ordered.first().zip(ordered.last()).map(|(low, high)| (low.1.to_owned(), high.1.to_owned())),
            frequent: frequent.iter().map(|(value, count)| ((*value).to_owned(), *count as f64 / total)).collect(),
            bounds: if rest.len() >= 2 { bounds.map(|(_, value)| (*value).to_owned()).collect() } else { Vec::new() },
        }
    }

    /// Returns the expected share of rows that have the same value as a randomly drawn row.
    pub fn share_alike(&self) -> Option<f64> {
        let distinct = self.distinct.filter(|distinct| *distinct >= 1.0)?;
        let frequent: f64 = self.frequent.iter().map(|(_, share)| share * share).sum();
        let rest = (1.0 - self.nulls - self.frequent.iter().map(|(_, share)| share).sum::<f64>()).max(0.0);
        let others = (distinct - self.frequent.len() as f64).max(1.0);
        Some(frequent + rest * rest / others)
    }
}

/// Estimates the number of distinct values among all rows from their counts in a sample: the estimator Duj1 of Haas and Stokes, "Estimating
/// the number of classes in a finite population", Journal of the American Statistical Association 93, 1998, which PostgreSQL's ANALYZE uses too.
fn distinct(counts: &HashMap<&str, usize>, sampled: f64, rows: f64) -> f64 {
    let once = counts.values().filter(|count| **count == 1).count() as f64;
    let seen = counts.len() as f64;
    let rows = rows.max(sampled);
    (sampled * seen / (sampled - once + once * sampled / rows)).clamp(seen, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: impl IntoIterator<Item = i64>) -> Vec<Option<String>> {
        values.into_iter().map(|value| Some(value.to_string())).collect()
    }

    const ORDER: Order<'static> = &|text| text.parse().ok();

    #[test]
    fn keys_are_seen_to_be_keys() {
        let spread = Spread::of(&texts((0..1000).map(|n| n * 97)), 100_000.0, Some(ORDER));
        assert_eq!(spread.frequent, []);
        assert_eq!(spread.distinct, Some(100_000.0));
        assert_eq!(spread.range, Some(("0".to_owned(), "96903".to_owned())));
        assert_eq!((spread.bounds.len(), spread.bounds[10].as_str()), (21, "48403"));
    }

    #[test]
    fn few_values_are_all_frequent_and_nulls_are_counted() {
        let mut sample = texts((0..900).map(|n| n % 3));
        sample.extend((0..100).map(|_| None));
        let spread = Spread::of(&sample, 1e6, Some(ORDER));
        assert_eq!(spread.frequent, [("0".to_owned(), 0.3), ("1".to_owned(), 0.3), ("2".to_owned(), 0.3)]);
        assert!((spread.nulls - 0.1).abs() < 1e-12 && spread.distinct == Some(3.0));
        assert!((spread.share_alike().unwrap() - 0.27).abs() < 1e-9);
    }

    #[test]
    fn distinct_values_are_estimated_within_a_factor() {
        // 1,000 of 100,000 rows, with 500 equally frequent values.
        let sample = texts((0..1000).map(|n| (n * 7919) % 500));
        let distinct = Spread::of(&sample, 100_000.0, None).distinct.unwrap();
        assert!((400.0..650.0).contains(&distinct), "{distinct}");
        assert_eq!(Spread::of(&[], 10.0, None), Spread::default());
        assert_eq!(Spread::of(&[None], 10.0, None).nulls, 1.0);
    }
}
