//! The form in which histograms are stored and exchanged: exact figures, and HdrHistogram's V2 format, deflated, in base64.
//!
//! Invariant: the form is read without a histogram of HdrHistogram's own, which takes half a megabyte and is filled with zeros each time; text
//! in another form than the one that loadline writes is left to HdrHistogram's reader.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer as HdrReader, Serializer as HdrWriter, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::packed::{Packed, read};
use super::{HIGHEST_NS, Histogram, bucket_of, middle_of};

/// A histogram in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHistogram {
    count: u64,
    sum_ns: f64,
    min_ns: u64,
    max_ns: u64,
    hdr_v2: String,
}

/// First bytes of the deflated form, and of the inflated content: cookies with the word size of LEB128.
const COOKIE_DEFLATED: u32 = 0x1c84_9314;
const COOKIE: u32 = 0x1c84_9313;
/// Number of bytes before the counts.
const HEADER: usize = 40;
/// The form that loadline writes is exact to three digits from 1 on: 2048 buckets at first, 1024 for each further power of two.
const DIGITS: u32 = 3;
const HALF: u64 = 1024;

impl Histogram {
    fn to_stored(&self) -> StoredHistogram {
        let mut hdr = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HIGHEST_NS, 3)
            .expect("the bounds are constants within HdrHistogram's range");
        for (bucket, count) in self.filled() {
            hdr.saturating_record_n(middle_of(bucket).max(1), count);
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&hdr, &mut bytes).expect("writing to memory does not fail");
        StoredHistogram {
            count: self.count,
            sum_ns: self.sum_ns as f64,
            min_ns: self.min_ns(),
            max_ns: self.max_ns,
            hdr_v2: BASE64.encode(&bytes),
        }
    }

    fn from_stored(stored: &StoredHistogram) -> Result<Self, String> {
        let mut histogram = Histogram::new();
        if stored.count == 0 {
            return Ok(histogram);
        }
        let bytes =
            BASE64.decode(&stored.hdr_v2).map_err(|error| format!("the histogram's text is not base64: {error}"))?;
        match pack(&bytes) {
            Some((packed, count)) => (histogram.packed, histogram.count) = (packed, count),
            None => histogram = by_hdr(&bytes)?,
        }
        if histogram.count != stored.count {
            return Err(format!("the histogram holds {} values and says {}", histogram.count, stored.count));
        }
        (histogram.sum_ns, histogram.min_ns, histogram.max_ns) = (stored.sum_ns as u128, stored.min_ns, stored.max_ns);
        Ok(histogram)
    }
}

/// Reads any form that HdrHistogram knows.
fn by_hdr(bytes: &[u8]) -> Result<Histogram, String> {
    let mut histogram = Histogram::new();
    let hdr: hdrhistogram::Histogram<u64> = HdrReader::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| format!("the histogram's text is damaged: {error:?}"))?;
    for value in hdr.iter_recorded() {
        histogram.counts()[bucket_of(value.value_iterated_to())] += value.count_at_value();
        histogram.count += value.count_at_value();
    }
    Ok(histogram.packed())
}

/// Reads the counts of the form that loadline writes, and their sum; `None` where the form is another one or is damaged.
fn pack(bytes: &[u8]) -> Option<(Packed, u64)> {
    let word = |bytes: &[u8], at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if word(bytes, 0)? != COOKIE_DEFLATED {
        return None;
    }
    let mut inner = Vec::new();
    ZlibDecoder::new(bytes.get(8..)?).read_to_end(&mut inner).ok()?;
    let (length, offset, digits) = (word(&inner, 4)?, word(&inner, 8)?, word(&inner, 12)?);
    let lowest = u64::from_be_bytes(inner.get(16..24)?.try_into().ok()?);
    let is_ours = word(&inner, 0)? == COOKIE && offset == 0 && digits == DIGITS && lowest == 1;
    let mut rest = inner.get(HEADER..)?;
    if !is_ours || rest.len() != length as usize {
        return None;
    }
    let (mut place, mut total) = (0_u64, 0_u64);
    let mut filled: Vec<(usize, u64)> = Vec::new();
    while !rest.is_empty() {
        // Numbers from 0 on are counts, and negative numbers are runs of empty places; the sign is the last bit (zigzag).
        let coded = read(&mut rest)?;
        if coded & 1 == 1 {
            place = place.checked_add((coded >> 1).checked_add(1)?)?;
            continue;
        }
        let count = coded >> 1;
        if count > 0 {
            let bucket = bucket_of(highest_at(place)?);
            match filled.last_mut() {
                Some(last) if last.0 == bucket => last.1 = last.1.checked_add(count)?,
                _ => filled.push((bucket, count)),
            }
            total = total.checked_add(count)?;
        }
        place += 1;
    }
    Some((filled.into_iter().collect(), total))
}

/// Returns the highest value of a place in HdrHistogram's counts; `None` beyond the values that loadline counts.
fn highest_at(place: u64) -> Option<u64> {
    if place < 2 * HALF {
        return Some(place);
    }
    let power = u32::try_from(place / HALF - 1).ok().filter(|power| *power < 54)?;
    let sub = place % HALF + HALF;
    Some((sub << power) + (1 << power) - 1)
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_stored().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredHistogram::deserialize(deserializer)?;
        Histogram::from_stored(&stored).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_fast_is_what_hdrhistogram_reads() {
        for round in 0..30_u64 {
            let mut histogram = Histogram::new();
            // Values of every magnitude.
            for place in 0..1 + 40 * round {
                histogram.record((place * place * 7_919 + round) % (1 << (1 + place % 43)));
            }
            histogram.record(0);
            histogram.record(u64::MAX);
            let bytes = BASE64.decode(histogram.to_stored().hdr_v2).unwrap();
            let (packed, count) = pack(&bytes).expect("loadline's own form");
            let by_hdr = by_hdr(&bytes).unwrap();
            assert_eq!(count, by_hdr.count);
            assert!(packed.iter().eq(by_hdr.filled()), "round {round}");
        }
    }

    #[test]
    fn other_forms_are_left_to_hdrhistogram() {
        let mut hdr = hdrhistogram::Histogram::<u64>::new(2).unwrap();
        (1..100).for_each(|value| hdr.record(value * 1000).unwrap());
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&hdr, &mut bytes).unwrap();
        assert!(pack(&bytes).is_none());
        assert_eq!(by_hdr(&bytes).unwrap().count, 99);
        assert!(pack(&bytes[..10]).is_none() && pack(&[]).is_none());
    }
}
