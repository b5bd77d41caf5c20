//! What the answers must be, computed from the records that were sent and nothing else.

use std::collections::BTreeMap;

use serde_json::Value;

pub const S: i64 = 1_000_000_000;
/// The time of the first record.
pub const BEGIN: i64 = 1_700_000_000 * S;

/// A record of the measurement `cpu`.
pub struct Sent {
    pub host: usize,
    pub time_ns: i64,
    /// A value of quarters, so that sums of doubles are exact.
    pub load: f64,
    /// A counter that begins anew now and then; `None` in some records.
    pub ticks: Option<i64>,
}

pub type Labels = BTreeMap<String, String>;
/// Points of each series: time in milliseconds and value.
pub type Series = BTreeMap<Labels, Vec<(i64, f64)>>;

/// A text with the signs that databases and PromQL escape.
pub const REGION: &str = "it's \"a\" \\o";

/// The labels of a host; one of them has no region.
pub fn labels(host: usize) -> Labels {
    let mut labels = Labels::from([("host".to_owned(), format!("h{host}"))]);
    if host > 0 {
        labels.insert("region".to_owned(), [REGION, "süd"][host % 2].to_owned());
    }
    labels
}

/// Records of some hosts, each at its own pace, with holes, two at one time, and some that come late.
pub fn records(hosts: usize) -> Vec<Sent> {
    let mut all = Vec::new();
    for host in 0..hosts {
        let mut ticks = 0;
        for number in 0..240_i64 {
            let pace_ms = 4_000 + 700 * host as i64;
            let jitter_ms = (number * 7_919 + host as i64 * 104_729) % 1_500;
            if (90..130).contains(&number) && host % 3 == 1 {
                continue;
            }
            ticks = if number % 50 == 49 { 3 } else { ticks + 10 + number % 4 };
            let time_ns = BEGIN + (number * pace_ms + jitter_ms) * 1_000_000 + 123;
            let load = ((number * 37 + host as i64 * 11) % 400) as f64 / 4.0 - 20.0;
            all.push(Sent { host, time_ns, load, ticks: (number % 5 != 3).then_some(ticks) });
            if number == 100 {
                all.push(Sent { host, time_ns, load: 7.25, ticks: None });
            }
        }
    }
    all
}

#[derive(Clone, Copy)]
pub enum Field {
    Load,
    Ticks,
}

/// Samples of a host in the order of time; of two at one time the one that was sent later comes later.
fn samples(records: &[Sent], host: usize, field: Field) -> Vec<(i64, f64)> {
    let value = |sent: &Sent| match field {
        Field::Load => Some(sent.load),
        Field::Ticks => sent.ticks.map(|ticks| ticks as f64),
    };
    let own = records.iter().filter(|sent| sent.host == host);
    let mut samples: Vec<_> = own.filter_map(|sent| Some((sent.time_ns, value(sent)?))).collect();
    samples.sort_by_key(|(time_ns, _)| *time_ns);
    samples
}

/// Applies a function to the samples within the range before each time, of each host that is asked for.
pub fn over(
    records: &[Sent],
    hosts: impl Fn(usize) -> bool,
    field: Field,
    (start_s, end_s, step_s): (i64, i64, i64),
    range_s: i64,
    function: impl Fn(&[(i64, f64)], i64) -> Option<f64>,
) -> Series {
    let mut series = Series::new();
    let most = records.iter().map(|sent| sent.host).max().unwrap();
    for host in (0..=most).filter(|host| hosts(*host)) {
        let samples = samples(records, host, field);
        let times = (start_s..=end_s).step_by(step_s as usize);
        let points = times.filter_map(|time_s| {
            let (from, to) = ((time_s - range_s) * S, time_s * S);
            let within: Vec<_> =
                samples.iter().copied().filter(|(time_ns, _)| from < *time_ns && *time_ns <= to).collect();
            Some((time_s * 1_000, function(&within, to)?))
        });
        let points: Vec<_> = points.collect();
        if !points.is_empty() {
            series.insert(labels(host), points);
        }
    }
    series
}

/// The increase per second as Prometheus's documentation says: extrapolated to both ends of the range, but not further than half a distance where the gap is
/// longer than 1.1 distances, and not to where the counter would have been below 0.
pub fn rate(samples: &[(i64, f64)], end_ns: i64, range_s: i64) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let mut increase = 0.0;
    for pair in samples.windows(2) {
        increase += if pair[1].1 >= pair[0].1 { pair[1].1 - pair[0].1 } else { pair[1].1 };
    }
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    let sampled = (last.0 - first.0) as f64 / 1e9;
    let distance = sampled / (samples.len() - 1) as f64;
    let mut to_start = (first.0 - (end_ns - range_s * S)) as f64 / 1e9;
    let mut to_end = (end_ns - last.0) as f64 / 1e9;
    if to_start >= distance * 1.1 {
        to_start = distance / 2.0;
    }
    if increase > 0.0 && first.1 >= 0.0 {
        to_start = to_start.min(sampled * first.1 / increase);
    }
    if to_end >= distance * 1.1 {
        to_end = distance / 2.0;
    }
    Some(increase * (sampled + to_start + to_end) / sampled / range_s as f64)
}

/// Puts the series of a group together.
pub fn group(series: &Series, by: &[&str], fold: impl Fn(&[f64]) -> f64) -> Series {
    let mut groups: BTreeMap<Labels, BTreeMap<i64, Vec<f64>>> = BTreeMap::new();
    for (labels, points) in series {
        let own = labels.iter().filter(|(name, _)| by.contains(&name.as_str()));
        let group = groups.entry(own.map(|(name, value)| (name.clone(), value.clone())).collect()).or_default();
        points.iter().for_each(|(time_ms, value)| group.entry(*time_ms).or_default().push(*value));
    }
    let points = |group: BTreeMap<i64, Vec<f64>>| group.into_iter().map(|(time, all)| (time, fold(&all))).collect();
    groups.into_iter().map(|(labels, group)| (labels, points(group))).collect()
}

/// Returns the series with the metric's name among their labels.
pub fn named(series: Series, name: &str) -> Series {
    let with = |mut labels: Labels| {
        labels.insert("__name__".to_owned(), name.to_owned());
        labels
    };
    series.into_iter().map(|(labels, points)| (with(labels), points)).collect()
}

/// Reads an answer of the type matrix.
pub fn read(body: &str) -> Series {
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["status"], &body["data"]["resultType"]), (&"success".into(), &"matrix".into()), "{body}");
    let point = |point: &Value| {
        let time_ms = (point[0].as_f64().unwrap() * 1e3).round() as i64;
        (time_ms, point[1].as_str().unwrap().parse().unwrap())
    };
    let series = body["data"]["result"].as_array().unwrap().iter().map(|series| {
        let labels: Labels = serde_json::from_value(series["metric"].clone()).unwrap();
        (labels, series["values"].as_array().unwrap().iter().map(point).collect())
    });
    let all: Vec<_> = series.collect();
    let count = all.len();
    let read: Series = all.into_iter().collect();
    assert_eq!(read.len(), count, "every series is there once");
    read
}

/// Compares value by value; rates may differ in their last digits.
pub fn assert_same(found: &Series, expected: &Series, what: &str) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
    for (labels, points) in expected {
        let own = &found[labels];
        assert_eq!(own.len(), points.len(), "{what} {labels:?}: {own:?} and not {points:?}");
        for (own, point) in own.iter().zip(points) {
            let is_near = (own.1 - point.1).abs() <= 1e-12 * point.1.abs();
            assert!(own.0 == point.0 && (own.1 == point.1 || is_near), "{what} {labels:?}: {own:?} and not {point:?}");
        }
    }
}
