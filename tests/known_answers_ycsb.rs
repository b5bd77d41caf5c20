//! Known answers: hashes, keys and ranks of YCSB, computed elsewhere.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

use loadline::data::skew::Skew;
use loadline::data::{self, key_hash};
use loadline::record::Cells;
use loadline::trial::RecordSettings;
use serde_json::Value;

fn known() -> Value {
    let all: Value = serde_json::from_str(include_str!("known-answers.json")).unwrap();
    all["ycsb"]["expected"].clone()
}

/// Ranks of YCSB's scrambled zipfian distribution.
fn scrambled() -> Skew {
    Skew::with_zeta(10_000_000_001, 26.469_028_201_783_02)
}

#[track_caller]
fn assert_close(found: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((found / expected - 1.0).abs() < 1e-12, "{found} instead of {expected}");
}

#[test]
fn hashes_and_keys_agree() {
    let expected = known();
    for (number, hash) in expected["fnv"].as_object().unwrap() {
        assert_eq!(key_hash(number.parse().unwrap()).to_string(), hash.as_str().unwrap(), "of {number}");
    }
    let settings =
        RecordSettings { type_name: "usertable".to_owned(), per_measurement: 1, ..RecordSettings::default() };
    let generator = data::build(&settings).unwrap();
    for (record, key) in (0..).zip(expected["keys"].as_array().unwrap()) {
        let mut cells = Cells::new();
        generator.identity(record, 1, &mut cells);
        assert_eq!(cells.to_json(cells.get(0)), *key);
    }
}

#[test]
fn the_constants_of_the_skew_agree() {
    let expected = known();
    let skew = Skew::new(1000);
    assert_close(skew.zeta(), &expected["zeta1000"]);
    assert_close(Skew::new(2).zeta(), &expected["zeta2"]);
    assert_close(skew.eta(), &expected["eta1000"]);
    assert_close(1.0 / skew.zeta(), &expected["p0"]);
    assert_close(0.5_f64.powf(0.99) / skew.zeta(), &expected["p1"]);
    assert_close(1.0 / scrambled().zeta(), &expected["hottest_key_fraction"]);
}

#[test]
fn ranks_of_given_random_numbers_agree() {
    let (expected, skew, scrambled) = (known(), Skew::new(1000), scrambled());
    for (u, rank) in expected["zipf_u"].as_object().unwrap() {
        assert_eq!(skew.rank(u.parse().unwrap()), rank.as_u64().unwrap(), "u = {u}");
    }
    for (u, pair) in expected["scrambled_1001"].as_object().unwrap() {
        let rank = scrambled.rank(u.parse().unwrap());
        let (expected_rank, record) = (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
        // The power function may differ in its last bit between libraries, which a large rank shows.
        assert!(rank.abs_diff(expected_rank) <= expected_rank / 1_000_000_000, "u = {u}: {rank}");
        assert_eq!(key_hash(rank) % 1001, record, "u = {u}");
    }
    assert_eq!(key_hash(0) % 1001, expected["hot_key_index_1001"].as_u64().unwrap());
}
