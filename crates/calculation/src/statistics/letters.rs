//! Letter groups: alternatives that share a letter are not distinguished (the insert-and-absorb algorithm of Piepho 2004).
//!
//! Main function: [`letters`]. Invariant: two alternatives share no letter exactly where they differ.

/// Returns the letters of `count` alternatives, best first, from whether each pair differs: `a`, `ab`, `b`. After `z` come `za`, `zb`.
/// Alternatives without any difference all get `a`; empty without alternatives.
pub fn letters(count: usize, differs: impl Fn(usize, usize) -> bool) -> Vec<String> {
    let mut groups: Vec<Vec<bool>> = vec![vec![true; count]];
    for a in 0..count {
        for b in a + 1..count {
            if !differs(a, b) {
                continue;
            }
            let mut split = Vec::new();
            for group in groups {
                if group[a] && group[b] {
                    for left_out in [b, a] {
                        let mut part = group.clone();
                        part[left_out] = false;
                        split.push(part);
                    }
                } else {
                    split.push(group);
                }
            }
            groups = without_parts_of_others(split);
        }
    }
    // The group with the best alternatives comes first.
    groups.sort_by(|x, y| y.cmp(x));
    (0..count)
        .map(|member| (0..groups.len()).filter(|group| groups[*group][member]).map(name).collect::<String>())
        .collect()
}

/// Returns the groups that no other group contains; of equal ones the first.
fn without_parts_of_others(groups: Vec<Vec<bool>>) -> Vec<Vec<bool>> {
    let is_part = |small: &[bool], large: &[bool]| small.iter().zip(large).all(|(inside, whole)| !inside || *whole);
    let keep = |place: usize| {
        !groups.iter().enumerate().any(|(other, group)| {
            other != place && is_part(&groups[place], group) && (group != &groups[place] || other < place)
        })
    };
    (0..groups.len()).filter(|place| keep(*place)).map(|place| groups[place].clone()).collect()
}

fn name(group: usize) -> String {
    let letter = char::from(b'a' + (group % 26) as u8);
    format!("{}{letter}", "z".repeat(group / 26))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_share_letters_and_the_ends_do_not() {
        assert_eq!(letters(3, |a, b| (a, b) == (0, 2)), ["a", "ab", "b"]);
        assert_eq!(letters(3, |_, _| true), ["a", "b", "c"]);
        assert_eq!(letters(2, |_, _| false), ["a", "a"]);
        assert_eq!(letters(0, |_, _| true), Vec::<String>::new());
        assert_eq!(letters(1, |_, _| true), ["a"]);
    }

    proptest! {
        #[test]
        fn letters_are_shared_exactly_where_nothing_differs(count in 1usize..7, bits in any::<u32>()) {
            let differs = |a: usize, b: usize| (bits >> ((a.min(b) * count + a.max(b)) % 32)) & 1 == 1;
            let found = letters(count, differs);
            for a in 0..count {
                for b in a + 1..count {
                    let shared = found[a].chars().any(|letter| found[b].contains(letter));
                    prop_assert_eq!(shared, !differs(a, b), "{} {} {:?}", a, b, &found);
                }
            }
        }
    }
}
