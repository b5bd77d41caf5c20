//! Blocks of samples, and their conversion to compressed columns and back.
//!
//! Main type: [`SampleBlock`]. Invariant: decoding an encoded block gives the same samples, whatever their values;
//! decoding anything else is an error and never a panic.

use super::{BLOCK_SAMPLES_MAX, Sample, SampleOutcome};

/// Consecutive samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleBlock {
    /// Names of the kinds of operation that occur.
    pub kinds: Vec<String>,
    /// The samples, in the order in which their operations ended.
    pub samples: Vec<Sample>,
}

/// Bit in the byte of a run: the operation counts.
const MEASURED: u8 = 8;

impl SampleBlock {
    /// Appends the payload of the block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        push_varint(out, self.kinds.len() as u64);
        for kind in &self.kinds {
            push_varint(out, kind.len() as u64);
            out.extend_from_slice(kind.as_bytes());
        }
        let mut before_ns = 0_u64;
        for sample in &self.samples {
            push_varint(out, zigzag(sample.intended_ns.wrapping_sub(before_ns) as i64));
            before_ns = sample.intended_ns;
        }
        for sample in &self.samples {
            push_varint(out, sample.sent_ns.wrapping_sub(sample.intended_ns));
        }
        for sample in &self.samples {
            push_varint(out, sample.done_ns.wrapping_sub(sample.sent_ns));
        }
        for sample in &self.samples {
            push_varint(out, u64::from(sample.client));
        }
        for run in self.samples.chunk_by(|a, b| tag(a) == tag(b)) {
            let (code, kind) = tag(&run[0]);
            push_varint(out, run.len() as u64);
            out.push(code);
            push_varint(out, u64::from(kind));
        }
    }

    /// Replaces the block by the content of a payload of `count` samples.
    ///
    /// # Errors
    /// A sentence, if the payload is not valid.
    pub fn decode(&mut self, count: usize, payload: &[u8]) -> Result<(), String> {
        if count > BLOCK_SAMPLES_MAX {
            return Err(format!("a block of {count} samples; at most {BLOCK_SAMPLES_MAX} are possible"));
        }
        let mut bytes = Bytes(payload);
        self.kinds.clear();
        for _ in 0..bytes.varint()?.min(1 << 16) {
            let length = bytes.varint()? as usize;
            let name = std::str::from_utf8(bytes.take(length)?).map_err(|_| "a name is not UTF-8".to_owned())?;
            self.kinds.push(name.to_owned());
        }
        self.samples.clear();
        let mut intended_ns = 0_u64;
        for _ in 0..count {
            intended_ns = intended_ns.wrapping_add(unzigzag(bytes.varint()?) as u64);
            self.samples.push(Sample { intended_ns, ..BLANK });
        }
        for sample in &mut self.samples {
            sample.sent_ns = sample.intended_ns.wrapping_add(bytes.varint()?);
        }
        for sample in &mut self.samples {
            sample.done_ns = sample.sent_ns.wrapping_add(bytes.varint()?);
        }
        for sample in &mut self.samples {
            sample.client = u32::try_from(bytes.varint()?).map_err(|_| "a client's number is too large".to_owned())?;
        }
        self.decode_runs(&mut bytes)?;
        if bytes.0.is_empty() { Ok(()) } else { Err("there is more in a block than its samples".to_owned()) }
    }

    fn decode_runs(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let mut rest = &mut self.samples[..];
        while !rest.is_empty() {
            let length = bytes.varint()? as usize;
            let code = bytes.take(1)?[0];
            let kind = bytes.varint()?;
            let outcome = SampleOutcome::ALL.get(usize::from(code & !MEASURED));
            let (Some(outcome), true) = (outcome, (kind as usize) < self.kinds.len()) else {
                return Err(format!("outcome {code} of kind {kind} is not known"));
            };
            let (run, after) = rest.split_at_mut_checked(length.max(1)).ok_or("a run is too long")?;
            for sample in run {
                (sample.outcome, sample.is_measured, sample.kind) = (*outcome, code & MEASURED != 0, kind as u16);
            }
            rest = after;
        }
        Ok(())
    }
}

const BLANK: Sample = Sample {
    intended_ns: 0,
    sent_ns: 0,
    done_ns: 0,
    client: 0,
    kind: 0,
    outcome: SampleOutcome::Completed,
    is_measured: false,
};

fn tag(sample: &Sample) -> (u8, u16) {
    (sample.outcome as u8 + if sample.is_measured { MEASURED } else { 0 }, sample.kind)
}

/// Maps small numbers of either sign to small unsigned ones: 0, -1, 1, -2 ... to 0, 1, 2, 3 ...
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends a varint: one to ten bytes.
pub fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that are read from the front.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("a block is shorter than its samples")?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads the next varint.
    ///
    /// # Errors
    /// When the bytes end within the varint, or it has more than 64 bits.
    pub fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for (place, byte) in self.0.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.0 = &self.0[place + 1..];
                return if place == 9 && *byte > 1 { Err("a number is too large".to_owned()) } else { Ok(value) };
            }
        }
        Err("a block ends within a number".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_sample() -> impl Strategy<Value = Sample> {
        let times = (any::<u64>(), any::<u64>(), any::<u64>());
        (times, any::<u32>(), 0u16..3, 0usize..5, any::<bool>()).prop_map(
            |(times, client, kind, outcome, is_measured)| {
                let (intended_ns, sent_ns, done_ns) = times;
                Sample {
                    intended_ns,
                    sent_ns,
                    done_ns,
                    client,
                    kind,
                    outcome: SampleOutcome::ALL[outcome],
                    is_measured,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn decoding_gives_back_whatever_was_encoded(samples in prop::collection::vec(any_sample(), 0..80)) {
            let kinds = ["insert", "read", ""].map(str::to_owned).to_vec();
            let block = SampleBlock { kinds, samples };
            let mut payload = Vec::new();
            block.encode(&mut payload);
            let mut back = SampleBlock::default();
            back.decode(block.samples.len(), &payload).unwrap();
            prop_assert_eq!(back, block);
        }

        #[test]
        fn bytes_of_any_kind_are_no_reason_to_panic(count in 0usize..100, payload in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = SampleBlock::default().decode(count, &payload);
        }
    }
}
