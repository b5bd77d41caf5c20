//! Suggestions for misspelt names.
//!
//! Main function: [`closest`]. Invariant: a suggestion is always one of the names given.

/// Returns the name nearest to the written text, if it is near enough to be meant; `None` otherwise or when there are no
/// names. Case is ignored. Of several equally near names the first is taken.
pub fn closest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written: Vec<char> = written.to_lowercase().chars().collect();
    let edits_max = 1 + written.len() / 4;
    // Each edit adds or takes one character at most. A text of a hundred thousand is not compared with every name.
    let may_be_near = |name: &&str| written.len().abs_diff(name.chars().count()) <= edits_max;
    names
        .into_iter()
        .filter(may_be_near)
        .map(|name| (edit_distance(&written, &name.to_lowercase().chars().collect::<Vec<_>>()), name))
        .filter(|(edits, name)| *edits <= edits_max && *edits < name.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn one text into the other
/// (optimal string alignment).
fn edit_distance(from: &[char], to: &[char]) -> usize {
    let width = to.len() + 1;
    let mut cost = vec![0; (from.len() + 1) * width];
    let at = |row: usize, column: usize| row * width + column;
    for row in 0..=from.len() {
        for column in 0..=to.len() {
            cost[at(row, column)] = if row == 0 || column == 0 {
                row + column
            } else {
                let replaced = cost[at(row - 1, column - 1)] + usize::from(from[row - 1] != to[column - 1]);
                let inserted_or_deleted = cost[at(row - 1, column)].min(cost[at(row, column - 1)]) + 1;
                let is_swap =
                    row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1];
                let swapped = if is_swap { cost[at(row - 2, column - 2)] + 1 } else { usize::MAX };
                replaced.min(inserted_or_deleted).min(swapped)
            };
        }
    }
    cost[at(from.len(), to.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let layouts = ["wide", "star", "star-hot", "eav"];
        assert_eq!(closest("eva", layouts), Some("eav"));
        assert_eq!(closest("Satr", layouts), Some("star"));
        assert_eq!(closest("starhot", layouts), Some("star-hot"));
        assert_eq!(closest("mariadbb", ["mysql", "mariadb"]), Some("mariadb"));
    }

    #[test]
    fn what_resembles_nothing_gets_no_suggestion() {
        assert_eq!(closest("columnar", ["wide", "star"]), None);
        assert_eq!(closest("x", ["y"]), None);
        assert_eq!(closest("", ["a"]), None);
        assert_eq!(closest("wide", []), None);
    }

    #[test]
    fn a_long_text_is_not_compared_with_every_name() {
        assert_eq!(closest(&"[".repeat(10 << 20), ["star-hot"; 10_000]), None);
    }
}
