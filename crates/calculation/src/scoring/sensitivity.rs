//! Sensitivity of a choice to the weight of writing, and to the set of alternatives.
//!
//! Main functions: [`break_even`], [`first_between`], [`spans`], [`reversals`]. For more than [`LISTED_MAX`] alternatives only changes of the first place are
//! listed, and that many places: all pairs of a thousand would be half a million. Invariant: weights are 0 or more; totals are straight
//! lines in the weight, so that two alternatives change places at most once.

use super::{Evidence, ScoreError, Scores, Weighting};

/// Largest number of alternatives for which every change of places is listed, and of places that are listed of a ranking.
pub const LISTED_MAX: usize = 20;

/// The weight at which two alternatives have the same total.
#[derive(Debug, Clone, PartialEq)]
pub struct BreakEven {
    /// The alternative that is ahead above the weight.
    pub above: usize,
    /// The alternative that is ahead below it.
    pub below: usize,
    /// Weight of writing.
    pub write_weight: f64,
}

/// A range of weights with one ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Lower end.
    pub from: f64,
    /// Upper end; `None` for no limit.
    pub to: Option<f64>,
    /// Indexes of the alternatives, the best first.
    pub ranking: Vec<usize>,
}

/// A change in the order of the other alternatives when one is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reversal {
    /// The alternative that is removed.
    pub removed: String,
    /// The other alternatives in their order with it.
    pub before: Vec<String>,
    /// The other alternatives in their order without it.
    pub after: Vec<String>,
}

/// Returns the weights above 0 at which two alternatives change places, lowest first; of many alternatives only the weights at which the first one changes.
pub fn break_even(scores: &Scores) -> Vec<BreakEven> {
    let count = scores.alternatives.len();
    if count > LISTED_MAX {
        return first_changes(scores);
    }
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    let mut found: Vec<BreakEven> = pairs.filter_map(|(a, b)| change(scores, a, b)).collect();
    found.sort_by(|a, b| a.write_weight.total_cmp(&b.write_weight));
    found
}

/// Returns the weight at which two alternatives change places; `None` where they never do.
fn change(scores: &Scores, a: usize, b: usize) -> Option<BreakEven> {
    let faster = scores.writing[a] - scores.writing[b];
    let write_weight = (scores.reading[b] - scores.reading[a]) / faster;
    let (above, below) = if faster > 0.0 { (a, b) } else { (b, a) };
    (write_weight.is_finite() && write_weight > 0.0).then_some(BreakEven { above, below, write_weight })
}

/// Returns the weights at which another alternative becomes the first, lowest first: the corners of the upper envelope of the totals.
fn first_changes(scores: &Scores) -> Vec<BreakEven> {
    let mut found: Vec<BreakEven> = Vec::new();
    // Of equal totals, the alternative that writes faster is ahead at higher weights.
    let ahead = |a: &usize, b: &usize| {
        let (a, b) = (*a, *b);
        scores.reading[a].total_cmp(&scores.reading[b]).then(scores.writing[a].total_cmp(&scores.writing[b]))
    };
    let Some(mut first) = (0..scores.alternatives.len()).max_by(ahead) else { return found };
    loop {
        let changes = (0..scores.alternatives.len()).filter_map(|other| change(scores, first, other));
        // Of several changes at one weight, the alternative that writes fastest is ahead after it.
        let next = changes.filter(|change| change.below == first).min_by(|a, b| {
            let faster = || scores.writing[b.above].total_cmp(&scores.writing[a.above]);
            a.write_weight.total_cmp(&b.write_weight).then_with(faster)
        });
        let Some(next) = next else { return found };
        first = next.above;
        found.push(next);
    }
}

/// Returns the weights between which the alternative that is first at `write_weight` stays first; no upper end means no limit.
pub fn first_between(scores: &Scores, write_weight: f64) -> (f64, Option<f64>) {
    let Some(first) = scores.ranking(write_weight).first().copied() else { return (0.0, None) };
    let (mut low, mut high) = (0.0, None);
    for change in (0..scores.alternatives.len()).filter_map(|other| change(scores, first, other)) {
        if change.above == first && change.write_weight <= write_weight {
            low = f64::max(low, change.write_weight);
        }
        if change.below == first && change.write_weight >= write_weight {
            high = Some(high.map_or(change.write_weight, |known: f64| known.min(change.write_weight)));
        }
    }
    (low, high)
}

/// Returns the rankings over all weights, from 0 up; of many alternatives only the first places, wherever the first one changes.
pub fn spans(scores: &Scores) -> Vec<Span> {
    let mut ends: Vec<f64> = break_even(scores).iter().map(|change| change.write_weight).collect();
    ends.dedup();
    let mut spans: Vec<Span> = Vec::new();
    let mut from = 0.0;
    for to in ends.into_iter().map(Some).chain([None]) {
        let inside = to.map_or(from + 1.0, |to| (from + to) / 2.0);
        let mut ranking = scores.ranking(inside);
        ranking.truncate(LISTED_MAX);
        match spans.last_mut().filter(|last| last.ranking == ranking) {
            Some(last) => last.to = to,
            None => spans.push(Span { from, to, ranking }),
        }
        from = to.unwrap_or(from);
    }
    spans
}

/// Returns the alternatives whose removal changes the order of the others: points are relative to the best and the worst alternative.
/// Empty below three alternatives. Places after the first [`LISTED_MAX`] are not compared.
///
/// # Errors
/// As [`Evidence::check`].
pub fn reversals(evidence: &Evidence, weighting: Weighting, write_weight: f64) -> Result<Vec<Reversal>, ScoreError> {
    let scores = evidence.scores(weighting)?;
    let ranking = scores.names(&scores.ranking(write_weight));
    let mut found = Vec::new();
    for (place, removed) in evidence.alternatives.iter().enumerate().filter(|_| evidence.alternatives.len() > 2) {
        let rest = evidence.without(place).scores(weighting)?;
        let after = rest.ranking(write_weight);
        let after = rest.names(&after[..after.len().min(LISTED_MAX)]);
        let before: Vec<String> = ranking.iter().filter(|name| *name != removed).take(LISTED_MAX).cloned().collect();
        if before != after {
            found.push(Reversal { removed: removed.clone(), before, after });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoring::Measured;

    /// Tables 5.6 and 5.7 of Ruottinen 2015.
    fn published() -> Scores {
        Scores {
            alternatives: ["1", "2", "3"].map(str::to_owned).to_vec(),
            writing: vec![9.705, 10.0, 6.805],
            reading: vec![7.666, 9.116, 9.436],
            queries: Vec::new(),
        }
    }

    #[test]
    fn the_published_ranking_holds_above_a_weight_of_0_61_and_its_winner_above_0_10() {
        let changes = break_even(&published());
        assert_eq!(changes.len(), 2, "1 and 2 never change places: {changes:?}");
        assert!((changes[0].write_weight - 0.1002).abs() < 1e-3 && (changes[0].above, changes[0].below) == (1, 2));
        assert!((changes[1].write_weight - 0.6103).abs() < 1e-3 && (changes[1].above, changes[1].below) == (0, 2));
        let spans = spans(&published());
        assert_eq!(
            spans.iter().map(|span| span.ranking.clone()).collect::<Vec<_>>(),
            [[2, 1, 0], [1, 2, 0], [1, 0, 2]]
        );
        let (low, high) = first_between(&published(), 2.0);
        assert!((low - 0.1002).abs() < 1e-3 && high.is_none());
        assert_eq!(first_between(&published(), 0.05), (0.0, Some(changes[0].write_weight)));
    }

    #[test]
    fn an_alternative_that_is_better_in_both_is_first_at_any_weight() {
        let scores = Scores { writing: vec![10.0, 9.0], reading: vec![10.0, 9.0], ..published() };
        let scores = Scores { alternatives: vec!["a".to_owned(), "b".to_owned()], ..scores };
        assert_eq!((break_even(&scores).len(), first_between(&scores, 0.0)), (0, (0.0, None)));
        assert_eq!(spans(&scores).len(), 1);
    }

    #[test]
    fn of_many_alternatives_the_first_is_the_one_with_the_highest_total_at_any_weight() {
        let mut random = crate::statistics::random::Random::new(3);
        for count in [21, 200] {
            let mut points = || (0..count).map(|_| (random.below(1_000) as f64) / 100.0).collect::<Vec<f64>>();
            let (writing, reading) = (points(), points());
            let alternatives = (0..count).map(|number| number.to_string()).collect();
            let scores = Scores { alternatives, writing, reading, queries: Vec::new() };
            let (changes, spans) = (break_even(&scores), spans(&scores));
            assert!(!changes.is_empty() && changes.len() < count && spans.len() <= changes.len() + 1);
            for weight in (0..400).map(|step| f64::from(step) / 40.0 + 0.001) {
                let whole = scores.ranking(weight);
                let span =
                    spans.iter().find(|span| span.from <= weight && span.to.is_none_or(|to| weight < to)).unwrap();
                let totals = scores.totals(weight);
                assert!((totals[span.ranking[0]] - totals[whole[0]]).abs() < 1e-9, "{count}, {weight}");
                let (low, high) = first_between(&scores, weight);
                assert!(low <= weight && high.is_none_or(|high| high >= weight));
            }
        }
    }

    #[test]
    fn removing_the_worst_can_reverse_the_others() {
        let case = |case: &str, times: [f64; 3]| Measured {
            query: case.to_owned(),
            case: String::new(),
            values: times.iter().map(|time| vec![*time]).collect(),
        };
        // c is so slow in the first query that the others look alike there; without c, a's lead in that query decides.
        let evidence = Evidence {
            alternatives: ["a", "b", "c"].map(str::to_owned).to_vec(),
            writing: vec![Measured { values: vec![vec![1.0]; 3], ..Measured::default() }],
            reading: vec![case("1", [1.0, 2.0, 100.0]), case("2", [1.2, 1.0, 1.0])],
        };
        let found = reversals(&evidence, Weighting::ByQuery, 1.0).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].removed.as_str(), found[0].before[0].as_str(), found[0].after[0].as_str()),
            ("c", "b", "a")
        );
    }
}
