//! Tests of fillers against the distributions that they are named after.

use super::*;
use crate::record::Cell;
use crate::units::times::parse_time;

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

#[test]
fn quantiles_are_as_often_between_any_two_bounds_and_reach_the_last() {
    let drawn = numbers(&Fill::Quantiles(vec![0.0, 10.0, 11.0, 11.0, 1000.0]), 40_000);
    let part = |value: &f64| match *value {
        value if value < 10.0 => 0,
        10.0 => 1,
        11.0 => 2,
        _ => 3,
    };
    let mut parts = [0.0_f64; 4];
    drawn.iter().for_each(|value| parts[part(value)] += 1.0);
    // In the last interval, one number in 990 is 11 itself.
    let expected = [10_000.0, 10_000.0, 10_010.1, 9_989.9];
    let chi2: f64 = parts.iter().zip(expected).map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    assert!(chi2 < 21.1, "chi-square {chi2} of {parts:?}; 21.1 with 3 degrees has a probability of 0.0001");
    assert!(drawn.contains(&1000.0) && drawn.iter().all(|value| value.fract() == 0.0));
    let fractions = numbers(&Fill::Quantiles(vec![0.5, 1.5]), 1_000);
    assert!(fractions.iter().all(|value| (0.5..1.5).contains(value)));
}

#[test]
fn weighted_choices_come_as_often_as_they_weigh_whatever_they_are() {
    let choices = vec![(Fill::Number(7.0), 90.0), (Fill::Uniform(1000.0, 1001.0), 8.0), (Fill::Null, 2.0)];
    let filler = Filler::for_parameter(&Fill::Weighted(choices)).unwrap();
    let mut cells = Cells::new();
    (0..50_000).for_each(|index| filler.fill(5, index, 2, &mut cells));
    let count = |cell: Cell| cells.as_slice().iter().filter(|drawn| **drawn == cell).count() as f64;
    let counts = [Cell::Int(7), Cell::Int(1000), Cell::Int(1001), Cell::Null].map(count);
    let expected = [45_000.0, 2_000.0, 2_000.0, 1_000.0];
    let chi2: f64 = counts.iter().zip(expected).map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    assert!(chi2 < 21.1, "chi-square {chi2} of {counts:?}; 21.1 with 3 degrees has a probability of 0.0001");
    let mixed = Fill::Weighted(vec![(Fill::Number(1.0), 1.0), (Fill::Text("a".to_owned()), 1.0)]);
    assert!(Filler::for_parameter(&mixed).err().unwrap().contains("numbers and texts together"));
}

#[test]
fn times_lie_between_their_bounds_and_whole_seconds_stay_whole() {
    let bounds = |texts: [&str; 2]| texts.map(|text| parse_time(text).unwrap().us).to_vec();
    let day = bounds(["2026-02-28 00:00:00+00", "2026-03-01 00:00:00+00"]);
    let drawn = texts(&Fill::Times(Times { bounds_us: day.clone(), zone: "+00".to_owned() }), 10_000);
    assert!(drawn.iter().all(|text| text.len() == "2026-02-28 00:00:00+00".len() && text.ends_with("+00")));
    let hours: Vec<i64> = drawn.iter().map(|text| (parse_time(text).unwrap().us - day[0]) / 3_600_000_000).collect();
    assert!((0..24).all(|hour| hours.iter().filter(|drawn| **drawn == hour).count() > 300), "416.7 an hour");
    let fine = Times { bounds_us: bounds(["2026-02-28 00:00:00.000001", "2026-02-28 00:00:01"]), zone: String::new() };
    assert_eq!(texts(&Fill::Times(fine), 1)[0].len(), "2026-02-28 00:00:00.000001".len());
}

#[test]
fn times_around_the_present_are_around_it() {
    let now_s = || now_us() as f64 / 1e6;
    let before = now_s();
    let drawn = texts(&Fill::Now(-3600.0, -1800.0, "-03:30".to_owned()), 100);
    let after = now_s();
    for text in drawn {
        let time = parse_time(&text).unwrap();
        let seconds = time.us as f64 / 1e6;
        assert!((before - 3600.0..=after - 1800.0).contains(&seconds) && time.zone == "-03:30", "{text}");
    }
}
