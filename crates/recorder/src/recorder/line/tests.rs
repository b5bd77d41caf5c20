//! Tests of the line parser: the protocol's reference, places of errors, and properties over arbitrary input.

use proptest::prelude::*;

use super::*;
use crate::recorder::line::{OwnedPoint, OwnedValue, write_point};

fn owned(point: &Point<'_>) -> OwnedPoint {
    let value = |value: &Value<'_>| match value {
        Value::Float(value) => OwnedValue::Float(*value),
        Value::Int(value) => OwnedValue::Int(*value),
        Value::Unsigned(value) => OwnedValue::Unsigned(*value),
        Value::Boolean(value) => OwnedValue::Boolean(*value),
        Value::Text(text) => OwnedValue::Text(text.resolve().into_owned()),
    };
    let text = |text: &Text<'_>| text.resolve().into_owned();
    OwnedPoint {
        measurement: text(&point.measurement()),
        tags: point.tags.iter().map(|(key, value)| (text(key), text(value))).collect(),
        fields: point.fields.iter().map(|(key, field)| (text(key), value(field))).collect(),
        time: point.time_ns,
    }
}

fn read(input: &[u8], precision: Precision) -> (Vec<OwnedPoint>, Vec<String>) {
    let mut parser = Parser::new(input, precision);
    let mut point = Point::default();
    let (mut points, mut errors) = (Vec::new(), Vec::new());
    while let Some(outcome) = parser.next(&mut point) {
        match outcome {
            Ok(()) => points.push(owned(&point)),
            Err(error) => errors.push(error.to_string()),
        }
    }
    (points, errors)
}

fn one(input: &str) -> OwnedPoint {
    let (mut points, errors) = read(input.as_bytes(), Precision::Nanoseconds);
    assert!(errors.is_empty() && points.len() == 1, "{input}: {errors:?} {points:?}");
    points.remove(0)
}

fn text(text: &str) -> OwnedValue {
    OwnedValue::Text(text.to_owned())
}

#[test]
fn every_part_of_a_line_is_read() {
    let point = one("qos,host=a\\ b,line=x\\,y\\=z rtt=1.5,lost=3i,sum=4u,ok=t,note=\"say \\\"so\\\", then\" 17\n");
    assert_eq!(point.measurement, "qos");
    assert_eq!(point.tags, [("host".to_owned(), "a b".to_owned()), ("line".to_owned(), "x,y=z".to_owned())]);
    let fields = [
        ("rtt".to_owned(), OwnedValue::Float(1.5)),
        ("lost".to_owned(), OwnedValue::Int(3)),
        ("sum".to_owned(), OwnedValue::Unsigned(4)),
        ("ok".to_owned(), OwnedValue::Boolean(true)),
        ("note".to_owned(), text("say \"so\", then")),
    ];
    assert_eq!(point.fields, fields);
    assert_eq!(point.time, Some(17));
}

#[test]
fn strings_hold_line_ends_commas_and_backslashes() {
    let point = one("m f=\"a\nb\\\\\",g=\"c d=e,#\\n\"");
    assert_eq!(point.fields, [("f".to_owned(), text("a\nb\\")), ("g".to_owned(), text("c d=e,#\\n"))]);
    assert_eq!(point.time, None);
}

#[test]
fn comments_empty_lines_and_carriage_returns_are_no_points() {
    let (points, errors) =
        read(b"# a comment\r\n\r\n  \n  m f=1 5\r\n#m f=2\nm f=\"x\"\r\nm f=3i\r\n", Precision::Seconds);
    assert_eq!((points.len(), errors.len()), (3, 0), "{errors:?}");
    assert_eq!(points[0].time, Some(5_000_000_000));
    assert_eq!(points[2].fields, [("f".to_owned(), OwnedValue::Int(3))]);
}

#[test]
fn errors_name_line_and_column_and_the_good_lines_beside_them_are_read() {
    let cases = [
        ("m", "line 1, column 2: the fields are missing"),
        (",a=1 f=1", "line 1, column 1: the name of the measurement"),
        ("m,a f=1", "line 1, column 4: the tag \"a\" has no value"),
        ("m,a= f=1", "line 1, column 5: the value of the tag \"a\""),
        ("m,a=1,a=2 f=1", "line 1, column 7: the tag \"a\" occurs twice"),
        ("m,b=1,a=1,c=1,b=2 f=1", "line 1, column 15: the tag \"b\" occurs twice"),
        ("m,a=1=2 f=1", "line 1, column 6: there is a second ="),
        ("m,=1 f=1", "line 1, column 3: the name of a tag"),
        ("m f", "line 1, column 4: the field \"f\" has no value"),
        ("m f=", "line 1, column 5: the value is missing"),
        ("m =1", "line 1, column 3: the name of a field"),
        ("m f=1,", "line 1, column 7: the name of a field"),
        ("m f=abc", "line 1, column 5: \"abc\" is no value"),
        ("m f=1 1.5", "line 1, column 7: the time stamp is \"1.5\""),
        ("m f=1 5 6", "line 1, column 7: the time stamp is \"5 6\""),
        ("m f=1 9223372036854775807", "beyond the years"),
        ("m f=\"a\"b", "line 1, column 8: behind a string"),
        ("m f=\"abc", "line 1, column 5: the string that begins here"),
    ];
    for (line, expected) in cases {
        let batch = format!("m f=1\n{line}\nm f=2\n");
        let (points, errors) = read(batch.as_bytes(), Precision::Seconds);
        assert_eq!((points.len(), errors.len()), (2, 1), "{line}: {errors:?}");
        assert!(errors[0].contains(&expected.replace("line 1", "line 2")), "{line}: {}", errors[0]);
    }
}

#[test]
fn errors_behind_a_string_with_line_ends_are_placed_where_they_are() {
    let (points, errors) = read(b"m f=\"a\nb\",g=x 1\nm f=1\n", Precision::Nanoseconds);
    assert!(errors[0].starts_with("line 2, column 6: "), "{errors:?}");
    assert_eq!(points.len(), 1, "{points:?}");
}

#[test]
fn bytes_that_are_not_utf8_cost_their_line_only() {
    let (points, errors) = read(b"m f=1\nm f=\"\xff\"\nm f=2\n", Precision::Nanoseconds);
    assert_eq!(points.len(), 2);
    assert_eq!(errors, ["line 2, column 6: the bytes here are not UTF-8"]);
}

fn any_value() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(OwnedValue::Float),
        any::<i64>().prop_map(OwnedValue::Int),
        any::<u64>().prop_map(OwnedValue::Unsigned),
        any::<bool>().prop_map(OwnedValue::Boolean),
        "(?s).{0,12}".prop_map(OwnedValue::Text),
    ]
}

/// Names that the protocol can carry: no line ends, no backslash at their end, no leading # in a measurement.
fn any_name() -> impl Strategy<Value = String> {
    "[a-zA-Zä€ ,=_\"0-9]{1,8}".prop_map(|name| format!("n{name}"))
}

fn any_point() -> impl Strategy<Value = OwnedPoint> {
    let tags = proptest::collection::btree_map(any_name(), any_name(), 0..4);
    let fields = proptest::collection::vec((any_name(), any_value()), 1..6);
    (any_name(), tags, fields, any::<Option<i64>>()).prop_map(|(measurement, tags, fields, time)| OwnedPoint {
        measurement,
        tags: tags.into_iter().collect(),
        fields,
        time,
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(points in proptest::collection::vec(any_point(), 0..5)) {
        let mut batch = String::new();
        points.iter().for_each(|point| write_point(point, &mut batch));
        let (read, errors) = read(batch.as_bytes(), Precision::Nanoseconds);
        prop_assert_eq!(errors, Vec::<String>::new(), "{}", batch);
        prop_assert_eq!(read, points);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_always_end(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        read(&input, Precision::Hours);
    }

    #[test]
    fn bytes_of_the_protocol_never_panic_and_places_are_within_the_input(
        input in proptest::collection::vec(proptest::sample::select(b"m,= \\\"\n\r#1iutf.-e\xc3\xa4".to_vec()), 0..80),
    ) {
        let lines = input.split(|byte| *byte == b'\n').collect::<Vec<_>>();
        let mut parser = Parser::new(&input, Precision::Milliseconds);
        let mut point = Point::default();
        while let Some(outcome) = parser.next(&mut point) {
            if let Err(error) = outcome {
                prop_assert!(error.line <= lines.len() && error.column <= lines[error.line - 1].len() + 1, "{error}");
            }
        }
    }

    #[test]
    fn nothing_that_follows_changes_whole_lines(
        input in proptest::collection::vec(proptest::sample::select(b"m,= \\\"\n\r#1f".to_vec()), 0..60),
        cut in 0..60_usize,
    ) {
        let good = |bytes: &[u8]| {
            let (mut parser, mut point, mut good) = (Parser::new(bytes, Precision::Nanoseconds), Point::default(), Vec::new());
            while let Some(read) = parser.next(&mut point) {
                good.extend(read.is_ok().then(|| point.bytes.to_vec()));
            }
            good
        };
        let end = whole_lines(&input[..cut.min(input.len())]);
        let apart = [good(&input[..end]), good(&input[end..])].concat();
        prop_assert_eq!(apart, good(&input), "{:?}", String::from_utf8_lossy(&input[..end]));
    }
}
