//! Records that wait apart: those of a measurement that the database refuses while it takes the others. They are entries of lanes of their
//! own, which are written like all lanes: in order, each with its row of the ledger. Main type: [`Apart`], what is taken out of an entry.
//!
//! Invariant: a record is in its entry, or in the one that waits apart, never in both and never in neither: both change in one frame.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fact::StoredRefusal;
use super::group::{FactList, Group};
use super::{Entry, Offer, SpoolError, SpoolFile};

/// The lane in which the records of each measurement wait, of those that do.
pub type ApartLanes = BTreeMap<String, u32>;

/// What is taken out of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apart {
    /// The entry as it is.
    pub entry: Arc<Entry>,
    /// Whether it is in the spool; if not, what waits apart is acknowledged by that.
    pub is_spooled: bool,
    /// What is taken out, each measurement apart.
    pub parts: Vec<ApartPart>,
    /// The lines that are left.
    pub rest: Vec<u8>,
}

/// The id of those records of a message that are of one measurement, where they wait apart; empty where the message has none.
pub(super) fn part_id(offer: &Offer, measurement: &str) -> String {
    if offer.message_id.is_empty() { String::new() } else { format!("{} {measurement}", offer.message_id) }
}

/// The records of one measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApartPart {
    /// What clients call it.
    pub measurement: String,
    /// Their numbers within the entry, ascending.
    pub rows: Vec<i64>,
    /// Their lines.
    pub body: Vec<u8>,
}

impl Apart {
    /// The numbers of all that is taken out, ascending.
    fn rows(&self) -> Vec<i64> {
        let mut rows: Vec<_> = self.parts.iter().flat_map(|part| part.rows.iter().copied()).collect();
        rows.sort_unstable();
        rows
    }

    fn offer(&self, part: &ApartPart, lane: u32) -> Offer {
        // An entry of the spool was found to be no duplicate before. Of any other, each part has an id of its own.
        let message_id = if self.is_spooled { String::new() } else { part_id(&self.entry.offer, &part.measurement) };
        let rows = u32::try_from(part.rows.len()).unwrap_or(u32::MAX);
        Offer { lane, message_id, rows, body: part.body.clone(), ..self.entry.offer.without_body() }
    }
}

impl Group<'_> {
    /// Takes records out of an entry, to wait apart. An entry that is not there any more as it was is left alone.
    ///
    /// # Errors
    /// [`SpoolError::Full`] where they are not in the spool yet and do not fit; otherwise as the disk fails.
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

    /// Takes records, by their ascending numbers, out of an entry of which these lines are left; whether it was still there as it was.
    pub(super) fn take_out(
        &mut self,
        entry: &Entry,
        taken: &[i64],
        rest: &[u8],
        list: &mut FactList,
    ) -> Result<bool, SpoolError> {
        let before = self.entry(entry.offer.lane, entry.sequence);
        // Whatever was taken out of it has left fewer.
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

    /// The entry's records in quarantine have other numbers now, because those that were taken out stood before them.
    fn renumber(&mut self, sequence: i64, taken: &[i64], list: &mut FactList) -> Result<(), SpoolError> {
        let first = taken.first().copied().unwrap_or(i64::MAX);
        let refused: Vec<_> = self.file.shelf.index().refused(sequence, sequence).collect();
        for (_, row, id) in refused.into_iter().filter(|(_, row, _)| *row > first) {
            let before = taken.partition_point(|taken| *taken < row) as i64;
            // What cannot be read any more keeps its number.
            if let Some(refusal) = self.read_refusal(id)? {
                self.put_refusal(StoredRefusal { row: row - before, ..refusal }, list);
            }
        }
        Ok(())
    }

    /// The lane in which a measurement's records wait: the one that they wait in, or one that is free, or one that others wait in too.
    fn lane_apart(&mut self, measurement: &str) -> u32 {
        let (lane, is_new) = self.state().lane_apart(measurement);
        if is_new {
            self.state_to_change().apart.insert(measurement.to_owned(), lane);
        }
        lane
    }

    /// Nothing waits in a lane any more: its measurements go with all others again. Nothing happens where something does.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn rejoin(&mut self, lane: u32) -> Result<(), SpoolError> {
        if self.state().apart.values().any(|own| *own == lane) && !self.has_waiting(lane) {
            self.state_to_change().apart.retain(|_, own| *own != lane);
        }
        Ok(())
    }
}

impl SpoolFile {
    /// The lane in which the records of each measurement wait, of those that do.
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
        // Whoever asks again, as after an answer that was lost, changes nothing.
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
