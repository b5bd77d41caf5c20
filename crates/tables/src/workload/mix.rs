//! The workload `mix`: each operation is one of another workload, chosen by `workload.mix`. Every part continues as it would alone,
//! with its own random numbers, and is reported under its own kind of operation.

use super::{Client, Entry, Workload, find};
use crate::layout::Access;
use crate::operation::Operation;
use crate::random::Stream;
use crate::record::Cells;
use crate::trial::{Settings, WorkloadSettings};

/// Registry entry.
pub(super) static MIX: Entry = Entry {
    name: "mix",
    summary: "operations of several workloads, chosen by the shares in workload.mix",
    needs_tables: true,
    keeps_records: true,
    access: |settings, record_type| {
        let mut access = Access::default();
        for (entry, _) in parts(&settings.workload)? {
            access.merge((entry.access)(settings, record_type)?);
        }
        Ok(access)
    },
    build: |settings, client| Ok(Box::new(Mix::new(settings, client)?)),
};

/// Workloads that a mix can have.
pub const PARTS: [&str; 5] = ["select", "update", "read", "scan", "write"];

/// Separates the random numbers that choose from those of the parts.
const LANE: u64 = 0x6d69_7800;

struct Mix {
    parts: Vec<Part>,
    choice: Stream,
}

struct Part {
    /// Share of all 64-bit words that choose this part or one before it.
    below: u64,
    workload: Box<dyn Workload>,
}

impl Mix {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        let chosen = parts(&settings.workload)?;
        let total: f64 = chosen.iter().map(|(_, share)| share).sum();
        let mut sum = 0.0;
        let mut parts = Vec::with_capacity(chosen.len());
        for (entry, share) in chosen {
            sum += share;
            // Conversion of a float stops at the largest word, which is where the last share ends.
            let below = (sum / total * 2.0_f64.powi(64)) as u64;
            parts.push(Part { below, workload: (entry.build)(settings, client)? });
        }
        Ok(Mix { parts, choice: Stream::new(client.seed, u64::from(client.number), LANE) })
    }
}

/// Returns the workloads that have a share of the mix, with their shares; at least one.
///
/// # Errors
/// A sentence that names the share and the remedy.
pub(super) fn parts(workload: &WorkloadSettings) -> Result<Vec<(&'static Entry, f64)>, String> {
    let mut parts = Vec::with_capacity(workload.mix.len());
    for (name, share) in &workload.mix {
        let known = PARTS.contains(&name.as_str()).then(|| find(name)).flatten();
        let Some(entry) = known else {
            return Err(format!("workload.mix cannot have \"{name}\"; it takes {}", PARTS.join(", ")));
        };
        if !(*share >= 0.0 && share.is_finite()) {
            return Err(format!("workload.mix.{name} is {share}; write a number that is 0 or more"));
        }
        if *share > 0.0 {
            parts.push((entry, *share));
        }
    }
    if parts.is_empty() {
        let example = "mix = { select = 0.8, update = 0.2 }";
        return Err(format!("workload.mix has no share above 0; write the shares as in {example}"));
    }
    Ok(parts)
}

impl Workload for Mix {
    fn works_long(&self) -> bool {
        self.parts.iter().any(|part| part.workload.works_long())
    }

    #[inline]
    fn next(&mut self, parameters: &mut Cells) -> Operation {
        let last = self.parts.len() - 1;
        let chosen = match last {
            0 => 0,
            last => {
                let word = self.choice.word();
                self.parts.partition_point(|part| part.below <= word).min(last)
            }
        };
        self.parts[chosen].workload.next(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::OperationKind;

    fn settings(mix: &[(&str, f64)]) -> Settings {
        let mut settings = Settings::default();
        settings.record.type_name = "qos".to_owned();
        settings.record.rows = 100;
        settings.record.per_measurement = 10;
        settings.workload.batch = 1;
        settings.workload.mix = mix.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect();
        settings
    }

    fn kinds(mix: &[(&str, f64)], number: u32, count: usize) -> Vec<OperationKind> {
        let mut mix = Mix::new(&settings(mix), Client { number, of: 2, seed: 1 }).unwrap();
        (0..count).map(|_| mix.next(&mut Cells::new()).kind()).collect()
    }

    #[test]
    fn operations_have_the_shares_of_the_mix() {
        let kinds = kinds(&[("select", 0.8), ("update", 0.15), ("write", 0.05)], 0, 20_000);
        let count = |kind| kinds.iter().filter(|each| **each == kind).count() as f64;
        let expected =
            [(OperationKind::Select, 16_000.0), (OperationKind::Update, 3000.0), (OperationKind::Insert, 1000.0)];
        let chi2: f64 = expected.iter().map(|(kind, expected)| (count(*kind) - expected).powi(2) / expected).sum();
        assert!(chi2 < 18.5, "chi-square {chi2}; 18.5 with 2 degrees has a probability of 0.0001");
    }

    #[test]
    fn clients_mix_in_orders_of_their_own_that_repeat() {
        let mix = [("select", 1.0), ("update", 1.0)];
        assert_eq!(kinds(&mix, 0, 100), kinds(&mix, 0, 100));
        assert_ne!(kinds(&mix, 0, 100), kinds(&mix, 1, 100));
    }

    #[test]
    fn a_share_of_zero_is_a_part_that_never_comes() {
        assert!(kinds(&[("read", 0.0), ("update", 3.0)], 0, 1000).iter().all(|kind| *kind == OperationKind::Update));
    }

    #[test]
    fn mixes_that_cannot_be_made_are_refused() {
        let refusal =
            |mix: &[(&str, f64)]| Mix::new(&settings(mix), Client { number: 0, of: 1, seed: 1 }).err().unwrap();
        assert!(refusal(&[]).contains("no share above 0"));
        assert!(refusal(&[("select", 0.0)]).contains("mix = { select = 0.8, update = 0.2 }"));
        assert_eq!(
            refusal(&[("mix", 1.0)]),
            "workload.mix cannot have \"mix\"; it takes select, update, read, scan, write"
        );
        assert!(refusal(&[("select", f64::NAN)]).contains("workload.mix.select is NaN"));
        let mut empty = settings(&[("select", 1.0)]);
        empty.record.rows = 0;
        assert!(Mix::new(&empty, Client { number: 0, of: 1, seed: 1 }).err().unwrap().contains("record.rows"));
    }
}
