//! Which source and which span of time an execution of a question is about: [`Spots`], [`Spot`].
//!
//! Invariant: a pure function of the settings and of the draw. Where records are added during a trial, spans end before the first time at which one of them can have a reading.

use super::super::retention::asked_from_ns;
use crate::data::Timeline;
use crate::question::{Ask, Places, Question};
use crate::random::Stream;
use crate::trial::RecordSettings;

/// Where the questions of a trial lie.
pub(super) struct Spots {
    timeline: Timeline,
    /// The times that spans lie in, in nanoseconds since 1970: the first one, and the one behind the last.
    first_ns: i64,
    end_ns: i64,
}

/// What one execution is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    /// The source, from 0; unused where a question concerns all.
    pub source: u64,
    /// The first time of the span, and the one behind its last, in nanoseconds since 1970.
    pub from_ns: i64,
    pub to_ns: i64,
}

impl Spots {
    /// Returns where the questions lie; `None` where the records have no sources and times. Where readings older than `keep_ns` are thrown away meanwhile, no span begins before the newer half of
    /// what is kept.
    pub(super) fn new(record: &RecordSettings, grows: bool, keep_ns: Option<i64>) -> Option<Self> {
        let timeline = Timeline::new(record.series.as_ref()?, record.seed);
        let first_ns = timeline.settled_ns(0);
        let end_ns = if grows { timeline.settled_ns(record.rows) } else { timeline.end_ns(record.rows) };
        let first_ns = keep_ns.map_or(first_ns, |keep_ns| first_ns.max(asked_from_ns(keep_ns, end_ns)));
        Some(Spots { timeline, first_ns, end_ns: end_ns.max(first_ns + 1) })
    }

    pub(super) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Returns what the execution of a question with this draw is about.
    pub(super) fn of(&self, question: &Question, draw: u64) -> Spot {
        let mut stream = Stream::new(draw, 0, 0);
        let source = stream.below(self.timeline.sources());
        let Some(span_ns) = question.span_ns else { return Spot { source, from_ns: i64::MIN, to_ns: i64::MAX } };
        let all_ns = self.end_ns.saturating_sub(self.first_ns);
        let span_ns = span_ns.clamp(1, all_ns.max(1));
        let unit = stream.unit();
        let behind_ns = match question.places {
            Places::Newest => 0.0,
            Places::Recent => -(1.0 - unit).ln() * 0.1 * all_ns as f64,
            Places::Uniform => unit * (all_ns - span_ns) as f64,
        };
        let to_ns = self.end_ns.saturating_sub((behind_ns as i64).min(all_ns - span_ns));
        let from_ns = to_ns - span_ns;
        if question.ask != Ask::Buckets {
            return Spot { source, from_ns, to_ns };
        }
        // Dashboards ask for whole buckets.
        let bucket_ns = question.bucket_ns.max(1);
        let from_ns = from_ns.div_euclid(bucket_ns) * bucket_ns;
        Spot { source, from_ns, to_ns: from_ns + span_ns }
    }
}

impl Spot {
    /// Returns what is wrong with an answer as a sentence that says what was asked.
    pub(super) fn said(&self, question: &Question, why: &str) -> String {
        let of = if question.all_sources { "all sources".to_owned() } else { format!("source {}", self.source + 1) };
        let within = match question.span_ns.filter(|_| question.ask != Ask::Newest) {
            Some(_) => format!(", times {} to {}", self.from_ns, self.to_ns),
            None => String::new(),
        };
        format!("question \"{}\" ({of}{within}): {why}", question.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Figure;
    use crate::trial::SeriesSettings;

    const SECOND_NS: i64 = 1_000_000_000;

    fn spots(grows: bool) -> Spots {
        let series = SeriesSettings {
            sources: 10,
            interval_ns: SECOND_NS,
            jitter: 0.1,
            missing: 0.01,
            late_share: 0.02,
            late_up_to_ns: 30 * SECOND_NS,
            repeated: 0.01,
        };
        let record = RecordSettings { rows: 100_000, seed: 1, series: Some(series), ..RecordSettings::default() };
        Spots::new(&record, grows, None).unwrap()
    }

    fn question(places: Places) -> Question {
        Question {
            name: "q".to_owned(),
            ask: Ask::Range,
            of: Vec::new(),
            all_sources: false,
            span_ns: Some(60 * SECOND_NS),
            bucket_ns: 0,
            above: 0.0,
            most: 0,
            by: Figure::Mean,
            figures: Vec::new(),
            places,
            weight: 1.0,
        }
    }

    #[test]
    fn spans_lie_where_they_should() {
        let spots = spots(false);
        let behind = |places| {
            let question = question(places);
            let of = |draw| {
                let spot = spots.of(&question, draw);
                assert_eq!(spot.to_ns - spot.from_ns, 60 * SECOND_NS);
                assert!(spot.from_ns >= spots.first_ns && spot.to_ns <= spots.end_ns, "{spot:?}");
                (spots.end_ns - spot.to_ns) as f64 / (spots.end_ns - spots.first_ns) as f64
            };
            (0..10_000).map(of).sum::<f64>() / 10_000.0
        };
        assert_eq!(behind(Places::Newest), 0.0);
        assert!((behind(Places::Recent) - 0.1).abs() < 0.005, "{}", behind(Places::Recent));
        assert!((behind(Places::Uniform) - 0.497).abs() < 0.01, "{}", behind(Places::Uniform));
    }

    #[test]
    fn while_records_are_added_spans_end_where_nothing_comes_in_any_more() {
        let (spots, question) = (spots(true), question(Places::Newest));
        let to_ns = spots.of(&question, 1).to_ns;
        let first = (100_000..200_000).map(|record| spots.timeline.time_ns(record)).min().unwrap();
        assert!(to_ns <= first, "{to_ns} > {first}");
    }

    #[test]
    fn all_sources_are_asked_about_equally_often() {
        let (spots, question) = (spots(false), question(Places::Uniform));
        let mut counts = [0.0_f64; 10];
        (0..10_000).for_each(|draw| counts[spots.of(&question, draw).source as usize] += 1.0);
        let chi2: f64 = counts.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 33.7, "chi-square {chi2} of {counts:?}; 33.7 with 9 degrees has a probability of 0.0001");
    }
}
