//! Fuzzing: names against patterns, and hashes of tokens.

use super::{Names, TokenHash};
use crate::fuzzed::{Target, assert_told, texts};

/// The first line is a name, each other one a pattern; then the whole input is read as the hash of a token.
pub static NAMES: Target = Target {
    name: "names",
    run: |input| {
        let text = String::from_utf8_lossy(input);
        let mut lines = text.split('\n').map(str::to_owned);
        let name = lines.next().unwrap_or_default();
        let patterns: Vec<_> = lines.collect();
        let fits = patterns.iter().any(|pattern| plainly_fits(pattern, &name));
        assert_eq!(Names::new(patterns).have(&name), fits, "{text:?}");
        match TokenHash::read(&text) {
            Ok(hash) => assert!(TokenHash::read(&hash.text()).is_ok_and(|again| again.is(&hash))),
            Err(reason) => assert_told(&reason, 300),
        }
    },
    seeds: || {
        texts(&[
            "north-1\nnorth-*\nsouth",
            "aab\na*b\n*a*b*\n**",
            "sha256:f95db7a3a36b44df7aa39d1e868edf53452e8b2cfc5b303916ec442c33eefe05",
        ])
    },
    words: &["*", "sha256:"],
    memory: (64 << 10, 64),
    is_linear: false,
};

/// A slow and plain reference for matching: keeps which beginnings of the name match the part of the pattern read so far.
fn plainly_fits(pattern: &str, name: &str) -> bool {
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    for character in pattern.bytes() {
        let before = fits.clone();
        for end in 0..fits.len() {
            fits[end] = match character {
                b'*' => before[..=end].contains(&true),
                _ => end > 0 && before[end - 1] && name.as_bytes()[end - 1] == character,
            };
        }
    }
    fits[name.len()]
}
