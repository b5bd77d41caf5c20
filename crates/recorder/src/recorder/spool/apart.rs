//! Records that wait apart: the records of a measurement that the database refuses while it takes the others. They become entries of lanes of their
//! own, which are written like all lanes: in order, each with its row of the ledger. Main type: [`Apart`], the records taken out of an entry.
//!
//! Invariant: a record is in its entry or in the one that waits apart, never in both and never in neither: both change in one frame.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fact::StoredRefusal;
use super::group::{FactList, Group};
use super::{Entry, Offer, SpoolError, SpoolFile};

/// The lane of each measurement whose records wait apart.
pub type ApartLanes = BTreeMap<String, u32>;

/// The records that are taken out of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apart {
    /// The entry as it is now.
    pub entry: Arc<Entry>,
    /// Whether the entry is in the spool; if not, being set apart acknowledges the records.
    pub is_spooled: bool,
    /// The records that are taken out, by measurement.
    pub parts: Vec<ApartPart>,
    /// The lines that are left in the entry.
    pub rest: Vec<u8>,
}

/// Returns the message id for the records of one measurement of a message, where they wait apart; empty if the message has no id.
pub(super) fn part_id(offer: &Offer, measurement: &str) -> String {
    if offer.message_id.is_empty() { String::new() } else { format!("{} {measurement}", offer.message_id) }
}

/// The records of one measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApartPart {
    /// The measurement's name, as clients use it.
    pub measurement: String,
    /// The numbers of the records within the entry, ascending.
    pub rows: Vec<i64>,
    /// The lines of the records.
    pub body: Vec<u8>,
}

impl Apart {
    /// Returns the numbers of all records that are taken out, ascending.
    fn rows(&self) -> Vec<i64> {
        let mut rows: Vec<_> = self.parts.iter().flat_map(|part| part.rows.iter().copied()).collect();
        rows.sort_unstable();
        rows
    }

    fn offer(&self, part: &ApartPart, lane: u32) -> Offer {
        // An entry of the spool was already found to be no duplicate. For any other entry, each part has an id of its own.
        let message_id = if self.is_spooled { String::new() } else { part_id(&self.entry.offer, &part.measurement) };
        let rows = u32::try_from(part.rows.len()).unwrap_or(u32::MAX);
        Offer { lane, message_id, rows, body: part.body.clone(), ..self.entry.offer.without_body() }
    }
}

impl Group<'_> {
    /// Takes records out of an entry, to wait apart. If the entry has changed or gone meanwhile, nothing happens.
    ///
    /// # Errors
    /// [`SpoolError::Full`] if the records are not in the spool yet and do not fit; otherwise the error of the disk.
    pub fn set_apart(&mut self, apart: &Apart) -> Result<(), SpoolError> {
        if apart.is_spooled {
            return self.take_apart(apart);
        }
        for part in &apart.parts {
            let lane = self.lane_apart(&part.measurement);
            let offer = self.as_stored(apart.offer(part, lane));
            self.append(&offer)?;
        }
        Ok(())
    }

    fn take_apart(&mut self, apart: &Apart) -> Result<(), SpoolError> {
        let mut list = FactList::default();
        if !self.take_out(&apart.entry, &apart.rows(), &apart.rest, &mut list)? {
            return Ok(());
        }
        for part in &apart.parts {
            let lane = self.lane_apart(&part.measurement);
            let offer = self.as_stored(apart.offer(part, lane));
            self.insert(&offer, &mut list);
        }
        self.push(list);
        Ok(())
    }

    /// Takes records out of an entry, by their ascending numbers, and leaves it these lines. Returns whether the entry was still there unchanged.
    pub(super) fn take_out(
        &mut self,
        entry: &Entry,
        taken: &[i64],
        rest: &[u8],
        list: &mut FactList,
    ) -> Result<bool, SpoolError> {
        let before = self.entry(entry.offer.lane, entry.sequence);
        // An entry from which records were taken out has fewer rows.
        let Some(before) = before.filter(|now| now.rows == entry.offer.rows) else { return Ok(false) };
        let left = i64::from(entry.offer.rows) - taken.len() as i64;
        let rest = Offer {
            message_id: entry.offer.message_id.clone(),
            rows: u32::try_from(left).unwrap_or(0),
            body: rest.to_vec(),
            ..entry.offer.without_body()
        };
        self.renumber(entry.sequence, taken, list)?;
        let rest = if rest.rows == 0 { Offer { body: Vec::new(), ..rest } } else { self.as_stored(rest) };
        self.amend(entry.sequence, &rest, before, list);
        let kept_bytes = if rest.rows == 0 { 0 } else { rest.stored_bytes() };
        self.counts.spooled = self.counts.spooled.saturating_sub(taken.len() as u64);
        self.counts.spooled_bytes = (self.counts.spooled_bytes + kept_bytes).saturating_sub(before.bytes);
        self.counts.entries = self.counts.entries.saturating_sub(u64::from(rest.rows == 0));
        Ok(true)
    }

    /// Renumbers the entry's records in quarantine, because the records that were taken out stood before them.
    fn renumber(&mut self, sequence: i64, taken: &[i64], list: &mut FactList) -> Result<(), SpoolError> {
        let first = taken.first().copied().unwrap_or(i64::MAX);
        let refused: Vec<_> = self.file.shelf.index().refused(sequence, sequence).collect();
        for (_, row, id) in refused.into_iter().filter(|(_, row, _)| *row > first) {
            let before = taken.partition_point(|taken| *taken < row) as i64;
            // A record that can no longer be read keeps its number.
            if let Some(refusal) = self.read_refusal(id)? {
                self.put_refusal(StoredRefusal { row: row - before, ..refusal }, list);
            }
        }
        Ok(())
    }

    /// Returns the lane in which a measurement's records wait: the one they wait in already, or a free one, or one that is shared.
    fn lane_apart(&mut self, measurement: &str) -> u32 {
        let (lane, is_new) = self.state().lane_apart(measurement);
        if is_new {
            self.state_to_change().apart.insert(measurement.to_owned(), lane);
        }
        lane
    }

    /// Lets the measurements that wait in a lane go with all others again, if nothing waits there any more.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn rejoin(&mut self, lane: u32) -> Result<(), SpoolError> {
        if self.state().apart.values().any(|own| *own == lane) && !self.has_waiting(lane) {
            self.state_to_change().apart.retain(|_, own| *own != lane);
        }
        Ok(())
    }
}

impl SpoolFile {
    /// Returns the lane of each measurement whose records wait apart.
    pub fn apart(&self) -> ApartLanes {
        self.state.apart.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::recorder::spool::{APART_LANES, Refusal};

    fn open(directory: &std::path::Path) -> SpoolFile {
        SpoolFile::open(directory, 1 << 20, Duration::from_secs(60)).unwrap()
    }

    fn offer(message_id: &str, body: &str) -> Offer {
        let rows = body.lines().count() as u32;
        Offer { message_id: message_id.to_owned(), received_ns: 5, ..Offer::plain("s", rows, body.as_bytes()) }
    }

    fn part(measurement: &str, rows: &[i64], body: &str) -> ApartPart {
        ApartPart { measurement: measurement.to_owned(), rows: rows.to_vec(), body: body.as_bytes().to_vec() }
    }

    fn entries(file: &SpoolFile, lane: u32) -> Vec<(Offer, i64)> {
        let found = file.reader().read(lane, (0, i64::MAX), 1 << 20, 1 << 20).unwrap();
        found.into_iter().map(|found| found.map(|entry| (entry.offer, entry.sequence)).expect("it is whole")).collect()
    }

    #[test]
    fn what_waits_apart_leaves_its_entry_and_comes_back_to_the_others_when_nothing_is_left() {
        let directory = std::env::temp_dir().join(format!("loadline-apart-{}", std::process::id()));
        let mut file = open(&directory);
        let mut group = file.begin().unwrap();
        group.append(&offer("id", "a 0\nb 1\na 2\nc 3\n")).unwrap();
        group.append(&offer("", "a 0\n")).unwrap();
        let entry = |offer: &Offer, sequence| Arc::new(Entry { sequence, offer: offer.clone() });
        let (first, second) = (entry(&offer("id", "a 0\nb 1\na 2\nc 3\n"), 1), entry(&offer("", "a 0\n"), 2));
        let refusal = Refusal { row: 3, rows: 1, body: b"c 3\n".to_vec(), reason: "why".to_owned() };
        group.quarantine(&first, &refusal, 9).unwrap();
        group.commit().unwrap();
        let before = file.counts();
        let all = [
            Apart {
                entry: Arc::clone(&first),
                is_spooled: true,
                parts: vec![part("a", &[0, 2], "a 0\na 2\n")],
                rest: b"b 1\nc 3\n".to_vec(),
            },
            Apart { entry: second, is_spooled: true, parts: vec![part("a", &[0], "a 0\n")], rest: Vec::new() },
        ];
        let mut group = file.begin().unwrap();
        all.iter().for_each(|apart| group.set_apart(apart).unwrap());
        // Repeating the request, as after a lost answer, changes nothing.
        all.iter().for_each(|apart| group.set_apart(apart).unwrap());
        group.commit().unwrap();
        drop(file);
        let mut file = open(&directory);
        let after = file.counts();
        assert_eq!((after.acknowledged, after.spooled, after.quarantined), (before.acknowledged, before.spooled, 1));
        assert_eq!(after.entries, 3);
        let lane = file.apart()["a"];
        assert!(APART_LANES.contains(&lane));
        let left = entries(&file, 0);
        assert_eq!((left.len(), &left[0].0.body[..], left[0].1), (1, &b"b 1\nc 3\n"[..], 1));
        let apart: Vec<_> = entries(&file, lane).into_iter().map(|(offer, _)| offer.body).collect();
        assert_eq!(apart, [b"a 0\na 2\n".to_vec(), b"a 0\n".to_vec()]);
        // The record in quarantine stands one place behind the one that is left.
        assert_eq!(file.reader().quarantined(1, 1).unwrap(), [(1, 1)]);
        let rejoin = |file: &mut SpoolFile, through| {
            let mut group = file.begin().unwrap();
            group.settle(lane, through).unwrap();
            group.rejoin(lane).unwrap();
            group.commit().unwrap();
            file.apart().len()
        };
        assert_eq!((rejoin(&mut file, 3), rejoin(&mut file, 4)), (1, 0));
        let mut group = file.begin().unwrap();
        group.settle(0, 4).unwrap();
        group.commit().unwrap();
        let end = file.counts();
        assert_eq!((end.committed, end.spooled, end.quarantined, end.spooled_bytes, end.entries), (4, 0, 1, 0, 0));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn measurements_have_lanes_of_their_own_as_long_as_there_are_any() {
        let directory = std::env::temp_dir().join(format!("loadline-apart-lanes-{}", std::process::id()));
        let mut file = open(&directory);
        let mut group = file.begin().unwrap();
        for number in 0..6 {
            let measurement = format!("m{number}");
            let parts = vec![part(&measurement, &[0], "m 0\n")];
            let entry = Arc::new(Entry { sequence: -1, offer: offer(&format!("id{number}"), "m 0\n") });
            let apart = Apart { entry, is_spooled: false, parts, rest: Vec::new() };
            group.set_apart(&apart).unwrap();
            // The same message once more.
            group.set_apart(&apart).unwrap();
        }
        group.commit().unwrap();
        let lanes: Vec<_> = file.apart().into_values().collect();
        let own: std::collections::BTreeSet<_> = lanes[..4].iter().copied().collect();
        assert_eq!((own.len(), file.counts().acknowledged), (4, 6));
        assert!(lanes.iter().all(|lane| APART_LANES.contains(lane)), "{lanes:?}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
