//! The regular expressions that conditions may have: alternatives of plain text in which `.`, `.*` and `.+` stand for anything. Main type: [`Pattern`].
//!
//! Invariant: a match takes time proportional to the product of both lengths at most, whatever the pattern is.

use std::collections::HashSet;

/// The most bytes of a pattern.
const BYTES_MAX: usize = 16 << 10;

/// Which texts match, as a whole.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::recorder::prometheus) struct Pattern {
    /// Alternatives of plain text.
    plain: HashSet<String>,
    /// The other alternatives.
    loose: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// This character.
    Letter(char),
    /// Any character.
    One,
    /// Any text, even an empty one.
    Any,
}

impl Pattern {
    /// Reads a regular expression.
    ///
    /// # Errors
    /// A sentence about what is not supported.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("a regular expression has {} bytes; at most {BYTES_MAX} are read", text.len()));
        }
        let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let inner = inner.map(|inner| inner.strip_prefix("?:").unwrap_or(inner)).unwrap_or(text);
        let mut pattern = Pattern { plain: HashSet::new(), loose: Vec::new() };
        let mut pieces = Vec::new();
        let mut letters = inner.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '|' => pattern.add(std::mem::take(&mut pieces)),
                '.' => {
                    let repeats = letters.next_if(|next| matches!(next, '*' | '+'));
                    pieces.extend((repeats != Some('*')).then_some(Piece::One));
                    pieces.extend(repeats.map(|_| Piece::Any));
                }
                '\\' => match letters.next() {
                    Some(escaped) if !escaped.is_alphanumeric() => pieces.push(Piece::Letter(escaped)),
                    _ => return Err(unsupported(text)),
                },
                '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '^' | '$' => return Err(unsupported(text)),
                letter => pieces.push(Piece::Letter(letter)),
            }
        }
        pattern.add(pieces);
        Ok(pattern)
    }

    fn add(&mut self, pieces: Vec<Piece>) {
        let letter = |piece: &Piece| if let Piece::Letter(letter) = piece { Some(*letter) } else { None };
        match pieces.iter().map(letter).collect::<Option<String>>() {
            Some(plain) => drop(self.plain.insert(plain)),
            None => self.loose.push(pieces),
        }
    }

    /// Returns whether a whole text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        if self.plain.contains(text) {
            return true;
        }
        if self.loose.is_empty() {
            return false;
        }
        let letters: Vec<char> = text.chars().collect();
        self.loose.iter().any(|pieces| is_like(pieces, &letters))
    }
}

/// Goes through both from the left; where they differ, the last `Any` takes one more character.
fn is_like(pieces: &[Piece], letters: &[char]) -> bool {
    let (mut piece, mut letter) = (0, 0);
    let mut last_any: Option<(usize, usize)> = None;
    while letter < letters.len() {
        match pieces.get(piece) {
            Some(Piece::Any) => {
                last_any = Some((piece, letter));
                piece += 1;
                continue;
            }
            Some(Piece::One) => {}
            Some(Piece::Letter(own)) if *own == letters[letter] => {}
            _ => match &mut last_any {
                Some((any, taken)) => {
                    *taken += 1;
                    (piece, letter) = (*any + 1, *taken);
                    continue;
                }
                None => return false,
            },
        }
        (piece, letter) = (piece + 1, letter + 1);
    }
    pieces[piece..].iter().all(|piece| *piece == Piece::Any)
}

fn unsupported(text: &str) -> String {
    format!(
        "the regular expression {text:?} is not supported; alternatives of plain text are, in which ., .* and .+ stand for anything, and a \
         backslash stands before a sign that is meant itself"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        let cases = [
            ("a|b", "a", true),
            ("a|b", "ab", false),
            ("(a|b)", "b", true),
            ("(?:a|bc)", "bc", true),
            ("a.*z", "az", true),
            ("a.+z", "az", false),
            ("a.+z", "abcz", true),
            (".*b.*b.*", "abab", true),
            (".*b.*b.*", "ab", false),
            ("a\\.b", "a.b", true),
            ("a\\.b", "axb", false),
            ("a.b", "axb", true),
            ("", "", true),
            (".*", "", true),
            (".+", "", false),
            ("a|", "", true),
            ("ä.|x", "äö", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Pattern::read(pattern).unwrap().matches(text), expected, "{pattern} {text}");
        }
        for refused in ["[a-z]", "a*", "(a)(b)", "\\d", "a{2}", "^a", "\\"] {
            assert!(Pattern::read(refused).unwrap_err().contains("is not supported"), "{refused}");
        }
        assert!(Pattern::read(&"a".repeat(BYTES_MAX + 1)).is_err());
    }
}
