//! Tests of how reasons are written and read.

use super::*;
use crate::said::Said;

#[test]
fn a_reason_is_an_object_with_its_kind_its_figures_and_its_sentence() {
    let errors = vec![Failed { message: "disk is full (13)".to_owned(), count: 3 }];
    let reason = Reason::OperationsFailed { failed: 3, scheduled: 10, errors };
    let told = serde_json::to_value(&reason).unwrap();
    assert_eq!(
        told,
        serde_json::json!({
            "kind": "operations_failed", "failed": 3, "scheduled": 10, "errors": [{"message": "disk is full (13)", "count": 3}],
            "says": "3 of 10 operations failed; 3 times: disk is full (13)"
        })
    );
    assert_eq!(serde_json::from_value::<Reason>(told).unwrap(), reason);
    assert_eq!(reason.kind(), "operations_failed");
    let nested = Reason::InBackground { reason: Box::new(Reason::SentLate { late_s: 0.5, mean_s: 1.0 }) };
    let told = serde_json::to_string(&nested).unwrap();
    assert_eq!(serde_json::from_str::<Reason>(&told).unwrap(), nested);
    assert!(told.ends_with("\"says\":\"in the background: loadline sent operations late: 500 ms on average, and the mean response time is 1 s\"}"));
}

#[test]
fn sentences_of_version_1_and_kinds_of_newer_versions_keep_what_they_say() {
    let read = |text: &str| serde_json::from_str::<Reason>(text);
    assert_eq!(read("\"no operation was completed\"").unwrap(), Reason::told("no operation was completed"));
    let newer = "{\"kind\":\"moon_full\",\"lit_share\":1.0,\"says\":\"the moon was full\"}";
    assert_eq!(read(newer).unwrap(), Reason::told("the moon was full"));
    let changed = "{\"kind\":\"stolen\",\"says\":\"much was stolen\"}";
    assert_eq!(read(changed).unwrap(), Reason::told("much was stolen"), "its figures are not those that are known");
    let other = Reason::told("the moon was full");
    assert_eq!(serde_json::to_string(&other).unwrap(), "{\"kind\":\"other\",\"says\":\"the moon was full\"}");
    assert_eq!(read(&serde_json::to_string(&other).unwrap()).unwrap(), other);
    assert!(read("{\"kind\":\"stolen\"}").is_err() && read("7").is_err());
}

#[test]
fn a_valid_trial_costs_no_memory_for_reasons() {
    assert_eq!(Vec::<Reason>::new().capacity(), 0);
    assert!(size_of::<Reason>() <= 72, "{}", size_of::<Reason>());
}
