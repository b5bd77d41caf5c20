//! The KTH study's appendix B against its own tables 8.1 and 8.2, its marks and its claims.

use loadline::metric::METRICS;
use loadline::report::compare::{Adjustment, Comparison, Comparisons, MarkWord, Options, Sample, compare, summaries};
use loadline::statistics::Verdict;
use loadline::statistics::rounding::p_range;
use loadline::statistics::t_test::{Summary, TTest, pooled, welch};

const APPENDIX: &str = include_str!("../../studies/kth-2018/appendix-b.csv");
const TABLES: &str = include_str!("../../studies/kth-2018/tables-8.csv");

/// p as printed, in percent with two decimals, is within this of the true one.
const PRINTED_HALF: f64 = 0.005;

fn samples() -> Vec<Sample> {
    summaries::read("appendix-b.csv", APPENDIX, &METRICS[0]).unwrap()
}

fn compared() -> Comparisons {
    let options = Options { alpha: 0.05, margin: 0.05, adjustment: Adjustment::Holm, seed: 1 };
    compare(&samples(), &options)
}

/// machine, case, a, b, p in percent.
fn published() -> Vec<(&'static str, &'static str, &'static str, &'static str, f64)> {
    let cell = |line: &'static str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[0], cells[1], cells[2], cells[3], cells[4].parse().unwrap())
    };
    TABLES.lines().skip(1).map(cell).collect()
}

/// Cells whose published p a test gives for some figures that round to the printed ones.
fn reproduced(test: fn(Summary, Summary) -> Option<TTest>) -> usize {
    let samples = samples();
    let find = |machine: &str, case: &str, variant: &str| {
        let found = samples.iter().find(|one| (&*one.machine, &*one.case, &*one.variant) == (machine, case, variant));
        found.unwrap().printed()
    };
    let is_reproduced = |(machine, case, a, b, percent): &(&str, &str, &str, &str, f64)| {
        let range = p_range(find(machine, case, a), find(machine, case, b), test).unwrap();
        100.0 * range.low <= percent + PRINTED_HALF && 100.0 * range.high >= percent - PRINTED_HALF
    };
    published().iter().filter(|cell| is_reproduced(cell)).count()
}

#[test]
fn welchs_test_gives_every_published_p_and_the_pooled_test_does_not() {
    assert_eq!(published().len(), 96);
    assert_eq!(reproduced(welch), 96);
    assert_eq!(reproduced(pooled), 88);
}

fn find<'c>(found: &'c Comparisons, machine: &str, case: &str, a: &str, b: &str) -> &'c Comparison {
    let is_it = |one: &&Comparison| (&*one.machine, &*one.case, &*one.a, &*one.b) == (machine, case, a, b);
    found.comparisons.iter().find(is_it).unwrap()
}

#[test]
fn every_cell_of_the_tables_is_compared() {
    let found = compared();
    assert_eq!((found.comparisons.len(), found.family), (96, 96));
    for one in &found.comparisons {
        let [low, high] = one.p_welch_rounding.unwrap();
        assert!((low..=high).contains(&one.p_welch.unwrap()), "{one:?}");
        assert_eq!(one.ratio_ci95, None, "a summary has no interval over trials");
        let [low, high] = one.fieller_ci95.unwrap();
        assert!((low..=high).contains(&one.ratio.unwrap()));
    }
    let insert = find(&found, "main", "D INSERT", "json", "eav");
    assert!((insert.t.unwrap() - 0.453_706_627).abs() < 1e-8 && (insert.df.unwrap() - 65.383_988_546).abs() < 1e-8);
    assert!((insert.p_pooled.unwrap() - 0.651_299_840).abs() < 1e-8);
}

#[test]
fn the_marks_are_those_of_the_rule() {
    let found = compared();
    let count = |word| found.marks.iter().filter(|mark| mark.mark == word).count();
    assert_eq!((count(MarkWord::Contradicts), count(MarkWord::Direction), count(MarkWord::Both)), (8, 8, 0));
    let uncertain: Vec<(&str, &str, &str)> =
        found.marks.iter().filter(|mark| !mark.certain).map(|mark| (&*mark.case, &*mark.a, &*mark.b)).collect();
    // The validation machine's load throughput is printed as 36 three times, with a standard deviation of 1.
    assert!(uncertain.contains(&("Load", "json", "eav")) && uncertain.contains(&("Load", "json", "osc")));
    assert!(!uncertain.iter().any(|(case, ..)| case.contains("READ") || case.contains("INSERT")), "{uncertain:?}");
}

#[test]
fn findings_that_one_machine_alone_has_are_named_where_the_rule_is_silent() {
    let found = compared();
    let named: Vec<(&str, &str, &str)> = found.unconfirmed.iter().map(|one| (&*one.case, &*one.a, &*one.b)).collect();
    let expected = [
        ("A UPDATE", "json", "eav"),
        ("Load INSERT", "json", "eav"),
        ("Load INSERT", "eav", "osc"),
        ("A", "json", "eav"),
        ("A", "eav", "osc"),
        ("F", "eav", "osc"),
    ];
    assert_eq!(named.len(), expected.len(), "{named:?}");
    assert!(expected.iter().all(|one| named.contains(one)), "{named:?}");
    assert!(found.unconfirmed.iter().all(|one| one.machines == ["main", "validation"]));
    let is_marked = |one: &(&str, &str, &str)| found.marks.iter().any(|m| (&*m.case, &*m.a, &*m.b) == *one);
    assert!(!named.iter().any(is_marked), "what the rule marks is not named again");
}

/// Verdicts on a pair, over all cases of an operation and both machines.
fn verdicts(found: &Comparisons, operation: &str, a: &str, b: &str) -> Vec<Verdict> {
    let own = found.comparisons.iter().filter(|one| one.operation == operation && (&*one.a, &*one.b) == (a, b));
    own.map(|one| one.verdict).collect()
}

#[test]
fn osc_reads_fastest_everywhere_as_the_source_says() {
    let found = compared();
    for other in ["json", "eav"] {
        let verdicts = verdicts(&found, "READ", other, "osc");
        assert_eq!(verdicts, vec![Verdict::Slower; 10], "{other}");
    }
}

#[test]
fn json_reads_faster_than_eav_but_for_workload_a_on_the_main_machine() {
    let found = compared();
    let verdicts = verdicts(&found, "READ", "json", "eav");
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Faster).count(), 9);
    let exception = find(&found, "main", "A READ", "json", "eav");
    assert!(exception.ratio.unwrap() > 1.0 && exception.verdict == Verdict::Equal, "{exception:?}");
}

#[test]
fn no_insert_or_update_differs_on_both_machines_as_the_source_says() {
    let found = compared();
    for one in found.comparisons.iter().filter(|one| one.machine == "main" && one.operation != "READ") {
        if one.operation.is_empty() {
            continue;
        }
        let other = find(&found, "validation", &one.case, &one.a, &one.b);
        let both = one.p_welch.unwrap() < 0.05 && other.p_welch.unwrap() < 0.05;
        assert!(!both, "{} {} {}", one.case, one.a, one.b);
    }
}

#[test]
fn the_times_can_only_be_microseconds() {
    // One client at a time: its operations per second times their mean time cannot exceed the seconds in a second.
    let samples = samples();
    for machine in ["main", "validation"] {
        for variant in ["json", "eav", "osc"] {
            let mean = |case: &str| {
                let is_it = |one: &&Sample| (&*one.machine, &*one.case, &*one.variant) == (machine, case, variant);
                samples.iter().find(is_it).unwrap().summary().mean
            };
            let busy_per_unit = mean("C") * mean("C READ");
            assert!(busy_per_unit * 1e-3 > 100.0, "with milliseconds a client would be busy a hundredfold");
            assert!((0.3..1.0).contains(&(busy_per_unit * 1e-6)), "with microseconds most of the time");
        }
    }
}
