//! Reads the text form of Prometheus strictly (exposition formats, version 0.0.4). Main function: [`read`].

use std::collections::{BTreeMap, HashSet};

/// A metric by its name.
#[derive(Debug, Default)]
pub struct Metric {
    pub kind: String,
    pub samples: Vec<Sample>,
}

/// One line with a value.
#[derive(Debug, Clone)]
pub struct Sample {
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

impl Sample {
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

const KINDS: [&str; 5] = ["counter", "gauge", "histogram", "summary", "untyped"];

/// All metrics of a page, each of which must have one HELP and one TYPE before its samples, which stand together.
pub fn read(page: &str) -> BTreeMap<String, Metric> {
    assert!(page.ends_with('\n'), "the last line ends");
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let (mut helped, mut series, mut current) = (HashSet::new(), HashSet::new(), String::new());
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, says) = help.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert!(is_name(name) && !says.trim().is_empty() && helped.insert(name.to_owned()), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert!(helped.contains(name) && KINDS.contains(&kind), "{line}");
            let metric = Metric { kind: kind.to_owned(), samples: Vec::new() };
            assert!(metrics.insert(name.to_owned(), metric).is_none(), "{line}: it is there twice");
            name.clone_into(&mut current);
        } else {
            let sample = read_sample(line);
            let metric = metrics.get_mut(&current).unwrap_or_else(|| panic!("{line}: nothing said what it is"));
            assert_eq!(family(&sample.name, &metric.kind), current, "{line}: it stands apart from its kind");
            let key = (sample.name.clone(), sample.labels.clone());
            assert!(series.insert(key), "{line}: it is there twice");
            assert!(metric.kind != "counter" || sample.value >= 0.0, "{line}");
            metric.samples.push(sample);
        }
    }
    metrics.iter().filter(|(_, metric)| metric.kind == "histogram").for_each(|(name, metric)| check(name, metric));
    metrics
}

fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == ':';
    name.starts_with(is_letter) && name.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
}

/// The name that HELP and TYPE have.
fn family<'a>(name: &'a str, kind: &str) -> &'a str {
    let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[] };
    suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

fn read_sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line}"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, behind) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
            assert!(is_name(label) && !label.contains(':'), "{line}");
            let (value, behind) = read_value(behind, line);
            labels.push((label.to_owned(), value));
            rest = behind.strip_prefix(',').unwrap_or(behind);
        }
        rest = &rest[1..];
    }
    let text = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    let value = match text {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        text => {
            assert!(!text.contains(|letter: char| letter.is_alphabetic() && letter != 'e'), "{line}");
            text.parse().unwrap_or_else(|_| panic!("{line}"))
        }
    };
    Sample { name: name.to_owned(), labels, value }
}

/// A label's value up to its closing quote, and what follows.
fn read_value<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let (mut value, mut letters) = (String::new(), text.char_indices());
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[place + 1..]),
            '\\' => match letters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                _ => panic!("{line}: a wrong escape"),
            },
            letter => value.push(letter),
        }
    }
    panic!("{line}: a label does not end")
}

/// Classes rise to `+Inf`, which is the count.
fn check(name: &str, metric: &Metric) {
    let of = |suffix: &str| {
        let name = format!("{name}{suffix}");
        metric.samples.iter().filter(move |sample| sample.name == name).collect::<Vec<_>>()
    };
    let buckets = of("_bucket");
    assert!(buckets.is_sorted_by(|a, b| a.value <= b.value), "{name}");
    let bounds: Vec<f64> =
        buckets.iter().map(|sample| sample.label("le").unwrap().parse().unwrap_or(f64::INFINITY)).collect();
    assert!(bounds.is_sorted_by(|a, b| a < b) && bounds.last() == Some(&f64::INFINITY), "{name}: {bounds:?}");
    assert_eq!(buckets.last().unwrap().value, of("_count")[0].value, "{name}");
    assert_eq!(of("_sum").len(), 1, "{name}");
}
