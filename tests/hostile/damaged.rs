//! Damages a file as disks, editors and accidents do. Main function: [`damage`].

use std::path::Path;

use loadline::random::Stream;

fn below(random: &mut Stream, bound: usize) -> usize {
    random.below(bound.max(1) as u64) as usize
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Where one of the digits stands.
fn digit(bytes: &[u8], random: &mut Stream) -> Option<usize> {
    let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
    digits.get(below(random, digits.len())).copied()
}

/// Damages a file; how.
pub fn damage(file: &Path, random: &mut Stream) -> &'static str {
    let mut bytes = std::fs::read(file).unwrap();
    let how = match random.below(11) {
        0 if !bytes.is_empty() => {
            let at = below(random, bytes.len());
            bytes[at] ^= 1 << random.below(8);
            "a bit that is another"
        }
        1 => {
            if let Some(at) = digit(&bytes, random) {
                bytes[at] = b'0' + random.below(10) as u8;
            }
            "a digit that is another"
        }
        2 => {
            bytes.truncate(below(random, bytes.len()));
            "an end that is missing"
        }
        3 => {
            let mut lines = lines(&bytes);
            let at = below(random, lines.len());
            lines.insert(at, lines.get(at).cloned().unwrap_or_default());
            bytes = lines.concat();
            "a line that is there twice"
        }
        4 => {
            let mut lines = lines(&bytes);
            let (one, other) = (below(random, lines.len()), below(random, lines.len()));
            if !lines.is_empty() {
                lines.swap(one, other);
            }
            bytes = lines.concat();
            "two lines that have changed places"
        }
        5 => {
            let at = below(random, bytes.len());
            let noise: Vec<u8> = (0..1 + random.below(60)).map(|_| random.below(256) as u8).collect();
            bytes.splice(at..at, noise);
            "bytes between others"
        }
        6 => {
            let (at, count) = (below(random, bytes.len()), 1 + below(random, 4_096));
            let end = (at + count).min(bytes.len());
            bytes[at..end].fill(0);
            "a piece of zeros"
        }
        7 => {
            if let Some(at) = digit(&bytes, random) {
                bytes.splice(at..at, b"999999999999999999999999".iter().copied());
            }
            "a number that is very large"
        }
        8 => {
            let at = below(random, bytes.len());
            bytes.splice(at..at, b"[".repeat(200_000));
            "brackets without an end"
        }
        9 => {
            std::fs::remove_file(file).unwrap();
            return "the loss";
        }
        _ => {
            bytes.clear();
            "the content gone"
        }
    };
    std::fs::write(file, bytes).unwrap();
    how
}
