//! The oracle: compares what is there after a failure with what was acknowledged before it.
//!
//! Main function: [`judge`]. It judges one client, which sends each operation only after the previous one was answered.
//! Invariant: if what is there has several explanations, the one with the least loss counts; a write counted as lost is lost in all of them.

use std::collections::BTreeMap;

/// An operation that a client has sent, or may have sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent<C> {
    /// The records it touches, each with its content after the operation; `None` if the operation deletes it.
    pub effects: Vec<(u64, Option<C>)>,
    /// Time of the received acknowledgement, in nanoseconds of the caller's clock; `None` without one, so that the effect may be there or not.
    pub acknowledged_ns: Option<u64>,
}

/// The content of a record after the failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds<C> {
    /// The record is not there.
    Nothing,
    /// The record is there, with this content.
    Content(C),
    /// The database refuses to read the record.
    Unreadable,
}

/// The outcome of a client's operations, in numbers of records unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Judged {
    /// Writes of records that were acknowledged.
    pub acknowledged: u64,
    /// Acknowledged writes whose effect is gone.
    pub lost: u64,
    /// Records with a content that was never written to them.
    pub changed: u64,
    /// Records that the database refuses to read; their acknowledged writes are lost as well.
    pub unreadable: u64,
    /// Transactions that are there in part only, acknowledged or not.
    pub half_transactions: u64,
    /// Operations that are gone although a later one of the same connection is there.
    pub reordered: u64,
    /// Writes that are there without having been acknowledged, which is allowed.
    pub unacknowledged: u64,
    /// Records that are there.
    pub there: u64,
    /// Time of the acknowledgement of the first lost write, in nanoseconds of the caller's clock; `None` without a loss.
    pub first_lost_ns: Option<u64>,
}

impl Judged {
    /// Adds two judgements.
    #[must_use]
    pub fn and(self, other: Judged) -> Judged {
        Judged {
            acknowledged: self.acknowledged + other.acknowledged,
            lost: self.lost + other.lost,
            changed: self.changed + other.changed,
            unreadable: self.unreadable + other.unreadable,
            half_transactions: self.half_transactions + other.half_transactions,
            reordered: self.reordered + other.reordered,
            unacknowledged: self.unacknowledged + other.unacknowledged,
            there: self.there + other.there,
            first_lost_ns: self.first_lost_ns.into_iter().chain(other.first_lost_ns).min(),
        }
    }

    /// Returns whether anything is not as promised.
    pub fn is_harmed(&self) -> bool {
        self.lost + self.changed + self.unreadable + self.half_transactions + self.reordered > 0
    }
}

/// What is known about the parts of an operation.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    /// Whether a part is certainly there.
    is_there: bool,
    /// Whether a part is certainly missing.
    is_missing: bool,
    /// Whether a part is missing although it was acknowledged.
    is_lost: bool,
}

/// One write of a record: the index of its operation, and the record's content after it.
type Written<'a, C> = (usize, Option<&'a C>);

/// Judges one client's operations, in the order in which they were sent. `read` returns the content of a record.
pub fn judge<C: PartialEq>(sent: &[Sent<C>], mut read: impl FnMut(u64) -> Holds<C>) -> Judged {
    let mut judged = Judged::default();
    let mut of_records: BTreeMap<u64, Vec<Written<'_, C>>> = BTreeMap::new();
    for (place, operation) in sent.iter().enumerate() {
        for (record, content) in &operation.effects {
            of_records.entry(*record).or_default().push((place, content.as_ref()));
        }
        judged.acknowledged += operation.acknowledged_ns.map_or(0, |_| operation.effects.len() as u64);
    }
    let mut parts = vec![Parts::default(); sent.len()];
    for (record, writes) in &of_records {
        judge_record(&read(*record), writes, sent, &mut parts, &mut judged);
    }
    judged.half_transactions = parts.iter().filter(|part| part.is_there && part.is_missing).count() as u64;
    let last_there = parts.iter().rposition(|part| part.is_there).unwrap_or(0);
    judged.reordered = parts[..last_there].iter().filter(|part| part.is_lost).count() as u64;
    judged
}

/// Explains the content of a record by the last write that could have produced it; later writes are gone.
fn judge_record<C: PartialEq>(
    holds: &Holds<C>,
    writes: &[Written<'_, C>],
    sent: &[Sent<C>],
    parts: &mut [Parts],
    judged: &mut Judged,
) {
    let found = match holds {
        Holds::Nothing => None,
        Holds::Content(content) => Some(content),
        Holds::Unreadable => {
            judged.unreadable += 1;
            lose(writes, sent, parts, judged);
            return;
        }
    };
    judged.there += u64::from(found.is_some());
    let mut explains = writes.iter().enumerate().filter(|(_, (_, content))| *content == found).map(|(at, _)| at);
    let (first, last) = (explains.next(), explains.next_back());
    let (at, is_certain) = match (first, last.or(first)) {
        (Some(first), Some(last)) => (last, first == last && found.is_some()),
        _ if found.is_none() => {
            // The record is as it was before the first write.
            lose(writes, sent, parts, judged);
            return;
        }
        _ => {
            judged.changed += 1;
            return;
        }
    };
    let place = writes[at].0;
    parts[place].is_there |= is_certain;
    judged.unacknowledged += u64::from(is_certain && sent[place].acknowledged_ns.is_none());
    lose(&writes[at + 1..], sent, parts, judged);
}

/// Counts writes that are not there.
fn lose<C>(writes: &[Written<'_, C>], sent: &[Sent<C>], parts: &mut [Parts], judged: &mut Judged) {
    for (place, _) in writes {
        parts[*place].is_missing = true;
        if let Some(acknowledged_ns) = sent[*place].acknowledged_ns {
            parts[*place].is_lost = true;
            judged.lost += 1;
            judged.first_lost_ns =
                Some(judged.first_lost_ns.map_or(acknowledged_ns, |first| first.min(acknowledged_ns)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sent(effects: &[(u64, Option<&str>)], acknowledged_ns: Option<u64>) -> Sent<String> {
        let effects = effects.iter().map(|(record, content)| (*record, content.map(str::to_owned))).collect();
        Sent { effects, acknowledged_ns }
    }

    fn judge_map(sent: &[Sent<String>], there: &[(u64, &str)]) -> Judged {
        let there: BTreeMap<u64, &str> = there.iter().copied().collect();
        judge(sent, |record| there.get(&record).map_or(Holds::Nothing, |content| Holds::Content((*content).to_owned())))
    }

    #[test]
    fn what_is_there_as_it_was_acknowledged_is_no_loss() {
        let history = [
            sent(&[(1, Some("a")), (2, Some("b"))], Some(10)),
            sent(&[(1, Some("c"))], Some(20)),
            sent(&[(2, None)], Some(30)),
            sent(&[(3, Some("d")), (4, Some("e"))], None),
        ];
        let all = judge_map(&history, &[(1, "c")]);
        assert_eq!(all, Judged { acknowledged: 4, there: 1, ..Judged::default() });
        let with_unanswered = judge_map(&history, &[(1, "c"), (3, "d"), (4, "e")]);
        assert_eq!(with_unanswered, Judged { acknowledged: 4, there: 3, unacknowledged: 2, ..Judged::default() });
    }

    #[test]
    fn losses_are_counted_by_what_is_gone_and_when_it_was_promised() {
        let history = [
            sent(&[(1, Some("a"))], Some(10)),
            sent(&[(2, Some("b")), (3, Some("c"))], Some(20)),
            sent(&[(1, Some("d"))], Some(30)),
            sent(&[(4, Some("e"))], Some(40)),
        ];
        // The last writes are gone, in order.
        let tail = judge_map(&history, &[(1, "a"), (2, "b"), (3, "c")]);
        assert_eq!((tail.lost, tail.reordered, tail.half_transactions, tail.first_lost_ns), (2, 0, 0, Some(30)));
        // A write in the middle is gone.
        let middle = judge_map(&history, &[(1, "d"), (4, "e")]);
        assert_eq!((middle.lost, middle.reordered, middle.half_transactions), (2, 1, 0));
        // Half of a transaction is gone.
        let half = judge_map(&history, &[(1, "d"), (2, "b"), (4, "e")]);
        assert_eq!((half.lost, half.reordered, half.half_transactions), (1, 1, 1));
        // The content was never written.
        let wrong = judge_map(&history, &[(1, "d"), (2, "x"), (3, "c"), (4, "e")]);
        assert_eq!((wrong.lost, wrong.changed), (0, 1));
        assert!([tail, middle, half, wrong].iter().all(Judged::is_harmed));
    }

    #[test]
    fn half_a_transaction_that_nobody_was_promised_is_told_too() {
        let history = [sent(&[(1, Some("a")), (2, Some("b"))], None)];
        let half = judge_map(&history, &[(1, "a")]);
        assert_eq!((half.lost, half.half_transactions, half.unacknowledged), (0, 1, 1));
        assert!(half.is_harmed());
    }

    #[test]
    fn what_could_be_explained_without_a_loss_is_none() {
        // The record was lost or deleted: both leave nothing.
        let history =
            [sent(&[(1, Some("a"))], Some(10)), sent(&[(2, Some("b"))], Some(20)), sent(&[(1, None)], Some(30))];
        let judged = judge_map(&history, &[]);
        assert_eq!((judged.lost, judged.reordered), (1, 0), "the deletion is no proof of what came before it");
        let again =
            [sent(&[(1, Some("a"))], Some(10)), sent(&[(1, Some("b"))], Some(20)), sent(&[(1, Some("a"))], Some(30))];
        assert_eq!(judge_map(&again, &[(1, "a")]).lost, 0);
    }

    #[test]
    fn what_cannot_be_read_is_lost_and_said() {
        let history = [sent(&[(1, Some("a"))], Some(10)), sent(&[(2, Some("b"))], Some(20))];
        let judged =
            judge(&history, |record| if record == 1 { Holds::Unreadable } else { Holds::Content("b".to_owned()) });
        assert_eq!((judged.unreadable, judged.lost, judged.there), (1, 1, 1));
    }

    proptest! {
        /// Carries out a history up to a moment, like a database that loses its end, and compares the oracle's judgement with what was done.
        #[test]
        fn an_end_that_is_gone_is_counted_exactly(
            drawn in prop::collection::vec((0_u64..6, 0_u8..3, any::<bool>()), 1..40),
            kept in 0_usize..40,
        ) {
            let mut living = BTreeMap::new();
            let mut states = vec![living.clone()];
            let mut history = Vec::new();
            for (place, (record, kind, is_pair)) in drawn.into_iter().enumerate() {
                let content = (kind > 0).then(|| format!("{place}"));
                let mut effects = vec![(record, content.clone())];
                if is_pair {
                    effects.push((record + 100, content));
                }
                for (record, content) in &effects {
                    match content {
                        Some(content) => living.insert(*record, content.clone()),
                        None => living.remove(record),
                    };
                }
                history.push(Sent { effects, acknowledged_ns: Some(place as u64) });
                states.push(living.clone());
            }
            let kept = kept.min(history.len());
            let there = &states[kept];
            let judged = judge(&history, |record| there.get(&record).map_or(Holds::Nothing, |content| Holds::Content(content.clone())));
            prop_assert_eq!((judged.changed, judged.half_transactions, judged.reordered, judged.unreadable), (0, 0, 0, 0));
            prop_assert_eq!(judged.there, there.len() as u64);
            let gone: u64 = history[kept..].iter().map(|operation| operation.effects.len() as u64).sum();
            prop_assert!(judged.lost <= gone);
            if kept == history.len() {
                prop_assert_eq!(judged.lost, 0);
            }
            // All written contents differ: only deletions can hide earlier writes.
            let has_deletions = history.iter().any(|operation| operation.effects.iter().any(|(_, content)| content.is_none()));
            if !has_deletions {
                prop_assert_eq!(judged.lost, gone);
            }
        }
    }
}
