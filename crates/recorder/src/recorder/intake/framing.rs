//! Ends of batches in a stream of lines that has no other frames. Main functions: [`batch_end`] and [`has_id`].

/// Returns where the first batch ends, including its empty line; the search begins at `from`.
pub(super) fn batch_end(input: &[u8], from: usize) -> Option<usize> {
    // An empty line may also be the very first.
    match input {
        [b'\n', ..] => return Some(1),
        [b'\r', b'\n', ..] => return Some(2),
        _ => {}
    }
    let mut at = from;
    while let Some(end) = input[at..].iter().position(|byte| *byte == b'\n').map(|place| at + place) {
        match &input[end + 1..] {
            [b'\n', ..] => return Some(end + 2),
            [b'\r', b'\n', ..] => return Some(end + 3),
            _ => at = end + 1,
        }
    }
    None
}

/// Returns the `key=value`s of the comment that a batch may begin with.
pub(super) fn head(batch: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let line = batch.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let head = line.strip_prefix(b"#").and_then(|head| std::str::from_utf8(head).ok()).unwrap_or_default();
    head.split_whitespace().filter_map(|word| word.split_once('='))
}

/// Returns whether a batch begins with an id. Such a batch ends only at its empty line: storing a part under its id would make the whole a duplicate.
pub(super) fn has_id(batch: &[u8]) -> bool {
    head(batch).any(|(key, _)| key == "id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_with_an_empty_line() {
        assert_eq!(batch_end(b"m f=1\n\nm", 0), Some(7));
        assert_eq!(batch_end(b"m f=1\r\n\r\nm", 0), Some(9));
        assert_eq!(batch_end(b"m f=1\nm f=2\n", 0), None);
        assert_eq!(batch_end(b"\nm f=1", 0), Some(1));
        assert_eq!(batch_end(b"\r\nm f=1", 0), Some(2));
        assert_eq!(batch_end(b"", 0), None);
        let long = b"m f=1\nm f=2\n\n";
        (0..long.len()).for_each(|cut| assert_eq!(batch_end(&long[..cut], cut.saturating_sub(3)), None));
        assert_eq!(batch_end(long, long.len() - 3), Some(13));
    }

    #[test]
    fn an_id_stands_in_the_first_line() {
        assert!(has_id(b"# source=a id=7\nm f=1\n") && has_id(b"#id=7"));
        assert!(!has_id(b"# source=a\nm f=1\n# id=7\n") && !has_id(b"m,id=7 f=1\n") && !has_id(b""));
    }
}
