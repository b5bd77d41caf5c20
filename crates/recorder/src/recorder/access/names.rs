//! Lists of names that a sender may use. Main type: [`Names`].

use crate::recorder::quote::in_quotes;

/// The most names of a list that are shown.
const SHOWN_MAX: usize = 10;

/// Names in which `*` stands for any characters; all names if there is no list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names(Option<Vec<String>>);

impl Names {
    /// Every name.
    pub const ALL: Names = Names(None);

    /// Creates a list of names.
    pub fn new(patterns: Vec<String>) -> Self {
        Names(Some(patterns))
    }

    /// Returns whether all names are allowed.
    pub fn are_all(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether this name is allowed.
    pub fn have(&self, name: &str) -> bool {
        let fits = |pattern: &String| fits(pattern.as_bytes(), name.as_bytes());
        self.0.as_ref().is_none_or(|patterns| patterns.iter().any(fits))
    }
}

/// Shows the names as in messages: `"north-*", "south"`.
impl std::fmt::Display for Names {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(patterns) = &self.0 else { return out.write_str("all") };
        let shown: Vec<_> = patterns.iter().take(SHOWN_MAX).map(|pattern| in_quotes(pattern)).collect();
        out.write_str(&shown.join(", "))?;
        match patterns.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(out, " and {more} more"),
        }
    }
}

/// Returns whether a name fits a pattern. Goes back to the last star only, since an earlier one could match nothing that the last one cannot: at most
/// one comparison for each pair of characters.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(character) if *character == name[seen] => (at, seen) = (at + 1, seen + 1),
            _ => match star {
                Some((place, from)) => {
                    star = Some((place, from + 1));
                    (at, seen) = (place + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|character| *character == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_and_nothing_else_does() {
        let fit = |pattern: &str, name: &str| Names::new(vec!["x".to_owned(), pattern.to_owned()]).have(name);
        for name in ["north-", "north-1", "north-*", "north-ä"] {
            assert!(fit("north-*", name), "{name}");
        }
        for name in ["north", "North-1", "a-north-1", ""] {
            assert!(!fit("north-*", name), "{name}");
        }
        assert!(fit("*", "") && fit("*a*b", "xxaxbab") && fit("a*", "a") && fit("a**b", "ab") && fit("q?s", "q?s"));
        assert!(!fit("*a*b", "xxaxba") && !fit("q?s", "qos") && !fit("a", "ab") && !fit("ab", "a"));
        assert!(Names::ALL.have("anything") && !Names::new(Vec::new()).have("anything"));
        assert_eq!(Names::new(vec!["a*".to_owned(), "b".to_owned()]).to_string(), "\"a*\", \"b\"");
        assert!(!fit(&"*a".repeat(200), &"a".repeat(199)) && fit(&"*a".repeat(200), &"a".repeat(5_000)));
    }
}
