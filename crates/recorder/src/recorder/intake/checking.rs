//! Checks every line of a batch before it is made durable. Main type: [`Checked`].

use crate::recorder::access::Sender;
use crate::recorder::line::{LineBounds, LineError, Parser, Point, Precision};

/// The most errors of lines that the client is told.
pub(super) const ERRORS_MAX: usize = 20;

/// The result of checking a batch.
pub(super) struct Checked {
    /// The good lines.
    pub(super) body: Vec<u8>,
    pub(super) rows: u32,
    pub(super) errors: Vec<LineError>,
    pub(super) bad_lines: usize,
}

/// Checks every line; if the sender may not send a measurement, the result is that error alone, with its line.
pub(super) fn check(
    body: Vec<u8>,
    precision: Precision,
    bounds: LineBounds,
    sender: &Sender,
) -> Result<Checked, (usize, String)> {
    let mut parser = Parser::bounded(&body, precision, bounds);
    let mut point = Point::default();
    let (mut rows, mut errors, mut bad_lines) = (0, Vec::new(), 0);
    let may_send_all = sender.may_send_all();
    let mut allowed: &[u8] = &[];
    while let Some(read) = parser.next(&mut point) {
        match read {
            Ok(()) => {
                rows += 1;
                let measurement = point.measurement();
                // Most lines have the measurement of the one before.
                if !may_send_all && measurement.raw() != allowed {
                    sender.may_send(&measurement.resolve()).map_err(|sentence| (point.line, sentence))?;
                    allowed = measurement.raw();
                }
            }
            Err(error) => {
                bad_lines += 1;
                if errors.len() < ERRORS_MAX {
                    errors.push(error);
                }
            }
        }
    }
    if bad_lines == 0 {
        return Ok(Checked { body, rows, errors, bad_lines });
    }
    let mut good = Vec::with_capacity(body.len());
    let mut parser = Parser::bounded(&body, precision, bounds);
    let mut point = Point::default();
    while let Some(read) = parser.next(&mut point) {
        if read.is_ok() {
            good.extend_from_slice(point.bytes);
            good.push(b'\n');
        }
    }
    Ok(Checked { body: good, rows, errors, bad_lines })
}

/// Returns the reason for keeping lines in quarantine: the first error. All errors would be many times as long as the lines may be.
pub(super) fn reason_of(errors: &[LineError], bad_lines: usize) -> String {
    let first = errors.first().map(ToString::to_string).unwrap_or_default();
    match bad_lines {
        0 | 1 => first,
        more => format!("{first}; and {} more lines", more - 1),
    }
}

/// Returns the lines of a batch that are not points, with the comments before them and the number of lines. They stay in one piece, unless together they would
/// make points that nobody has sent, as two halves of strings do without the good lines between: then each is a piece of its own.
pub(super) fn bad_lines_of(body: &[u8], precision: Precision, bounds: LineBounds) -> Vec<(Vec<u8>, u32)> {
    let mut parser = Parser::bounded(body, precision, bounds);
    let mut point = Point::default();
    let (mut bad, mut start) = (Vec::new(), 0);
    while let Some(read) = parser.next(&mut point) {
        if read.is_err() {
            bad.push((body[start..parser.place()].to_vec(), 1));
        }
        start = parser.place();
    }
    let together = bad.iter().map(|(piece, _)| piece.as_slice()).collect::<Vec<_>>().concat();
    if has_points(&together, precision, bounds) { bad } else { vec![(together, bad.len() as u32)] }
}

fn has_points(body: &[u8], precision: Precision, bounds: LineBounds) -> bool {
    let mut parser = Parser::bounded(body, precision, bounds);
    let mut point = Point::default();
    while let Some(read) = parser.next(&mut point) {
        if read.is_ok() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::recorder::access::{Grant, Names, Owner, Senders, TokenHash};

    #[test]
    fn bad_lines_are_told_and_left_out() {
        let body = b"m f=1\nm f=\nm f=\"a\nb\"\n# c\nm f=2".to_vec();
        let sender = Sender::free(Owner::Tokens);
        let checked = check(body, Precision::Nanoseconds, LineBounds::default(), &sender).unwrap_or_else(|_| panic!());
        assert_eq!((checked.rows, checked.bad_lines), (3, 1));
        assert_eq!(checked.body, b"m f=1\nm f=\"a\nb\"\nm f=2\n");
        assert_eq!((checked.errors[0].line, checked.errors[0].column), (2, 5));
    }

    #[test]
    fn a_measurement_that_the_sender_may_not_send_is_found_by_its_line() {
        let grant = Grant {
            name: "probes".to_owned(),
            token: TokenHash::of("t"),
            sources: Names::ALL,
            measurements: Names::new(vec!["q s".to_owned(), "cpu".to_owned()]),
            rows_per_s: None,
            bytes_per_s: None,
        };
        let sender = Arc::clone(&Senders::named(&[grant], &[])[0]);
        let check = |body: &str| check(body.into(), Precision::default(), LineBounds::default(), &sender);
        let good = check("q\\ s f=1\n\ncpu f=1\n# x\n");
        assert_eq!(good.map(|checked| checked.rows).unwrap_or(0), 2);
        let (line, said) = check("cpu f=1\nbad line\n\ncpu f=2\nq f=1\n").err().unwrap();
        assert!(line == 5 && said.contains("measurement \"q\" is none of sender \"probes\""), "{line} {said}");
    }

    #[test]
    fn bad_lines_are_found_again() {
        let bad = bad_lines_of(b"m f=1\nm f=\nm f=2\n# c\nm\nm f=3", Precision::Nanoseconds, LineBounds::default());
        assert_eq!(bad, [(b"m f=\n# c\nm\n".to_vec(), 2)]);
    }

    #[test]
    fn bad_lines_do_not_become_points_when_the_good_ones_between_them_are_gone() {
        let (precision, bounds) = (Precision::Nanoseconds, LineBounds::default());
        // The string is closed by the quote of a good line, and the rest of that line is no value.
        let body = b"m f=\"a\nm g=\"b\",h=1\nm f=c\" 5\nm f=1\n";
        let bad = bad_lines_of(body, precision, bounds);
        let together = bad.iter().map(|(piece, _)| piece.as_slice()).collect::<Vec<_>>().concat();
        assert!(has_points(&together, precision, bounds), "{:?}", String::from_utf8_lossy(&together));
        assert!(bad.iter().all(|(piece, lines)| *lines == 1 && !has_points(piece, precision, bounds)), "{bad:?}");
    }
}
