//! The records that operations ask for: the request distributions of YCSB's core workloads. Main type: [`Requests`].
//!
//! Invariant: a record is chosen among the existing ones, by random numbers of the client's own.

use super::key_space::KeySpace;
use super::plan::{NAMES, Plan};
use crate::data::key_hash;
use crate::data::skew::Skew;
use crate::random::Stream;
use crate::workload::Client;

/// Ranks that `zipfian` draws from, whatever the number of records: 0 to ten thousand million, as in YCSB.
const RANKS: u64 = 10_000_000_001;

/// ζ of ten thousand million, with YCSB's value.
const RANKS_ZETA: f64 = 26.469_028_201_783_02;

/// A distribution over the records.
#[derive(Debug, Clone)]
pub enum Requests {
    /// First number, and how many numbers there are.
    Uniform(u64, u64),
    /// A rank, scattered by its hash over `count` numbers from the first on, some of which may not exist yet.
    Zipfian {
        /// First number.
        first: u64,
        /// How many numbers there are, including records still to be inserted.
        count: u64,
        /// The ranks.
        skew: Skew,
    },
    /// A rank, counted back from the record inserted last.
    Latest(Skew),
    /// A part of the records takes a part of the operations.
    Hotspot {
        /// First number.
        first: u64,
        /// How many are hot: the first ones.
        hot: u64,
        /// How many are not hot.
        cold: u64,
        /// Share of the operations on hot records.
        hot_operations: f64,
    },
    /// A distance with this mean, counted back from the record inserted last.
    Exponential(f64),
    /// One after another from the first on, round and round: first number, how many there are, the client's next, number of clients.
    Sequential(u64, u64, u64, u64),
}

impl Requests {
    /// Creates the distribution of a plan.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and the remedy.
    pub fn new(plan: &Plan, client: Client) -> Result<Self, String> {
        let (first, count) = (plan.first, plan.count);
        match plan.requests.as_str() {
            "uniform" => Ok(Requests::Uniform(first, count)),
            // YCSB's range includes its end, so that it has one number more than there are records.
            "zipfian" => Ok(Requests::Zipfian {
                first,
                count: count + plan.inserts_expected + 1,
                skew: Skew::with_zeta(RANKS, RANKS_ZETA),
            }),
            // YCSB counts from the number of the last record, which is one less than there are records.
            "latest" => Ok(Requests::Latest(Skew::new(plan.rows.saturating_sub(1).max(1)))),
            "hotspot" => {
                let hot = (count as f64 * plan.hot_records) as u64;
                if (hot == 0 && plan.hot_operations > 0.0) || (hot == count && plan.hot_operations < 1.0) {
                    return Err(format!(
                        "workload.ycsb.hot_records = {} of {count} records leaves none for a part of the operations; choose another \
                         share, or more record.rows",
                        plan.hot_records
                    ));
                }
                Ok(Requests::Hotspot { first, hot, cold: count - hot, hot_operations: plan.hot_operations })
            }
            "exponential" => {
                let range = plan.rows as f64 * plan.recent_records;
                let mean = -range / (1.0 - plan.recent_operations).ln();
                if !(mean > 0.0 && mean.is_finite()) {
                    return Err(format!(
                        "workload.ycsb.recent_records = {} and recent_operations = {} make no distribution; write numbers between 0 \
                         and 1",
                        plan.recent_records, plan.recent_operations
                    ));
                }
                Ok(Requests::Exponential(mean))
            }
            "sequential" => {
                Ok(Requests::Sequential(first, count, u64::from(client.number), u64::from(client.of.max(1))))
            }
            other => Err(format!("workload.ycsb.requests is \"{other}\"; write one of: {}", NAMES.join(", "))),
        }
    }

    /// Returns the next record to ask for.
    #[inline]
    pub fn next(&mut self, stream: &mut Stream, keys: &KeySpace) -> u64 {
        match self {
            Requests::Uniform(first, count) => *first + stream.below(*count),
            Requests::Zipfian { first, count, skew } => {
                let there = keys.count();
                loop {
                    let number = *first + key_hash(skew.rank(stream.unit())) % *count;
                    if number < there {
                        return number;
                    }
                }
            }
            Requests::Latest(skew) => {
                let last = keys.count() - 1;
                skew.grow(last);
                last - skew.rank(stream.unit()).min(last)
            }
            Requests::Hotspot { first, hot, cold, hot_operations } => {
                if stream.unit() < *hot_operations {
                    *first + stream.below(*hot)
                } else {
                    *first + *hot + stream.below(*cold)
                }
            }
            Requests::Exponential(mean) => {
                let last = keys.count() - 1;
                loop {
                    // 1 - u is in (0, 1], so that its logarithm is finite.
                    let back = (-(1.0 - stream.unit()).ln() * *mean) as u64;
                    if back <= last {
                        return last - back;
                    }
                }
            }
            Requests::Sequential(first, count, next, clients) => {
                let number = *first + *next % *count;
                *next += *clients;
                number
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Settings;

    const CLIENT: Client = Client { number: 0, of: 1, seed: 1 };

    fn requests(name: &str, rows: u64, change: impl FnOnce(&mut Settings)) -> Requests {
        let mut settings = Settings::default();
        settings.workload.name = "ycsb-c".to_owned();
        settings.workload.ycsb.requests = Some(name.to_owned());
        settings.record.rows = rows;
        settings.record.type_name = "usertable".to_owned();
        change(&mut settings);
        Requests::new(&Plan::new(&settings).unwrap(), CLIENT).unwrap()
    }

    fn counts(requests: &mut Requests, rows: u64, draws: u32) -> Vec<f64> {
        let (keys, mut stream) = (KeySpace::new(rows), Stream::new(42, rows, 7));
        let mut counts = vec![0.0; rows as usize];
        for _ in 0..draws {
            counts[requests.next(&mut stream, &keys) as usize] += 1.0;
        }
        counts
    }

    /// Checks by Pearson's chi-square that counts agree with probabilities; bins with fewer than ten expected are merged.
    fn agree(counts: &[f64], probabilities: &[f64]) -> Result<(), String> {
        let draws: f64 = counts.iter().sum();
        let total: f64 = probabilities.iter().sum();
        let (mut chi2, mut bins, mut expected, mut seen) = (0.0, 0.0, 0.0, 0.0);
        for (count, probability) in counts.iter().zip(probabilities) {
            expected += probability / total * draws;
            seen += count;
            if expected >= 10.0 {
                chi2 += (seen - expected) * (seen - expected) / expected;
                bins += 1.0;
                (expected, seen) = (0.0, 0.0);
            }
        }
        let freedom: f64 = bins - 1.0;
        // Chi-square is close to normal with this mean and variance; four and a half standard deviations.
        let bound = freedom + 4.5 * (2.0 * freedom).sqrt() + 5.0;
        if chi2 < bound { Ok(()) } else { Err(format!("chi-square {chi2:.1} with {freedom} degrees")) }
    }

    /// The probability of each rank.
    fn probabilities(skew: &Skew, ranks: u64) -> Vec<f64> {
        (0..ranks).map(|rank| skew.begin_of(rank + 1) - skew.begin_of(rank)).collect()
    }

    #[test]
    fn scrambled_ranks_have_the_popularity_of_ycsb() {
        let rows = 1000;
        let skew = Skew::with_zeta(RANKS, RANKS_ZETA);
        let head = 200_000;
        // There are so many ranks behind the head that each number has an equal part of them.
        let mut popularity = vec![(1.0 - skew.begin_of(head)) / 1001.0; 1001];
        for (rank, probability) in (0..).zip(probabilities(&skew, head)) {
            popularity[(key_hash(rank) % 1001) as usize] += probability;
        }
        // YCSB draws again when it has drawn the number behind the last record.
        popularity.truncate(1000);
        let drawn = counts(&mut requests("zipfian", rows, |_| {}), rows, 1_000_000);
        agree(&drawn, &popularity).unwrap();
        let hottest = (0..1000).max_by(|a, b| drawn[*a].total_cmp(&drawn[*b]));
        assert_eq!(hottest, Some(144));
        assert!(agree(&drawn, &vec![1.0; 1000]).is_err(), "a uniform distribution would be noticed");
    }

    #[test]
    fn the_latest_records_have_the_popularity_of_the_lowest_ranks() {
        let rows = 1000;
        let mut popularity = probabilities(&Skew::new(999), 999);
        popularity.push(0.0);
        popularity.reverse();
        let drawn = counts(&mut requests("latest", rows, |_| {}), rows, 500_000);
        agree(&drawn[1..], &popularity[1..]).unwrap();
        assert_eq!(drawn[0], 0.0, "YCSB never reaches the first record");
    }

    #[test]
    fn the_latest_record_is_the_one_inserted_last() {
        let mut latest = requests("latest", 1000, |_| {});
        let (keys, mut stream) = (KeySpace::new(1000), Stream::new(1, 1, 1));
        for _ in 0..500 {
            let number = keys.claim(1);
            keys.settle(number, 1);
        }
        let drawn: Vec<u64> = (0..20_000).map(|_| latest.next(&mut stream, &keys)).collect();
        let share = drawn.iter().filter(|record| **record == 1499).count() as f64 / 20_000.0;
        let expected = Skew::new(1499).begin_of(1);
        assert!((share - expected).abs() < 5.0 * (expected / 20_000.0).sqrt(), "{share} and {expected}");
        assert_eq!(drawn.iter().max(), Some(&1499));
    }

    #[test]
    fn zipfian_requests_leave_the_popular_records_as_they_are_when_others_are_inserted() {
        let mut zipfian = requests("zipfian", 1000, |settings| {
            settings.workload.name = "ycsb-e".to_owned();
            settings.workload.ycsb.operations_expected = Some(1000);
        });
        assert!(matches!(zipfian, Requests::Zipfian { count: 1101, .. }), "twice the inserts expected, {zipfian:?}");
        let hottest = |zipfian: &mut Requests, keys: &KeySpace| {
            let mut stream = Stream::new(3, 3, 3);
            let mut counts = vec![0; 1101];
            (0..20_000).for_each(|_| counts[zipfian.next(&mut stream, keys) as usize] += 1);
            (0..1101).max_by_key(|number| counts[*number])
        };
        let (before, after) = (KeySpace::new(1000), KeySpace::new(1050));
        assert_eq!(hottest(&mut zipfian, &before), hottest(&mut zipfian, &after));
    }

    #[test]
    fn hot_records_take_their_part_of_the_operations() {
        let mut popularity = vec![0.8 / 20.0; 20];
        popularity.extend([0.2 / 80.0; 80]);
        agree(&counts(&mut requests("hotspot", 100, |_| {}), 100, 100_000), &popularity).unwrap();
    }

    #[test]
    fn recent_records_take_their_part_of_the_operations_exponentially() {
        let rows = 1000;
        let gamma = -(0.05_f64.ln()) / (1000.0 * 0.857_142_857_1);
        let popularity: Vec<f64> = (0..rows).map(|record| (-gamma * (rows - 1 - record) as f64).exp()).collect();
        agree(&counts(&mut requests("exponential", rows, |_| {}), rows, 300_000), &popularity).unwrap();
    }

    #[test]
    fn uniform_requests_spread_evenly_and_a_range_limits_them() {
        agree(&counts(&mut requests("uniform", 100, |_| {}), 100, 100_000), &[1.0; 100]).unwrap();
        let mut part = requests("uniform", 100, |settings| {
            (settings.workload.ycsb.first, settings.workload.ycsb.records) = (Some(30), Some(20));
        });
        let counts = counts(&mut part, 100, 10_000);
        assert!(counts.iter().enumerate().all(|(at, count)| (*count > 0.0) == (30..50).contains(&at)));
    }

    #[test]
    fn clients_share_a_sequence() {
        let mut settings = Settings::default();
        settings.workload.name = "ycsb-c".to_owned();
        settings.workload.ycsb.requests = Some("sequential".to_owned());
        settings.record.rows = 5;
        let plan = Plan::new(&settings).unwrap();
        let (keys, mut stream) = (KeySpace::new(5), Stream::new(1, 1, 1));
        let mut numbers = |number| {
            let mut requests = Requests::new(&plan, Client { number, of: 2, seed: 1 }).unwrap();
            (0..4).map(|_| requests.next(&mut stream, &keys)).collect::<Vec<_>>()
        };
        assert_eq!((numbers(0), numbers(1)), (vec![0, 2, 4, 1], vec![1, 3, 0, 2]));
    }
}
