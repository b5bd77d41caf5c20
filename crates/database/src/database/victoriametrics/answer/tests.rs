//! Answers of the server, whole and damaged.

use proptest::prelude::*;

use super::*;
use crate::record::Cell;

fn out(from: From, kind: ColumnKind) -> Out {
    Out { from, kind, nullable: kind == ColumnKind::Float64 }
}

fn of_points() -> Reads {
    let outs = vec![
        out(From::Source, ColumnKind::Int32),
        out(From::Time, ColumnKind::Int64),
        out(From::Field(1), ColumnKind::Float64),
        out(From::Field(2), ColumnKind::Int32),
    ];
    let series = ["t_id", "t_v", "t_n"].map(str::to_owned).to_vec();
    Reads { form: Form::Points(series), outs, source: Some("source".to_owned()), round: None }
}

fn values(cells: &Cells) -> Vec<Option<f64>> {
    let value = |cell: &Cell| match *cell {
        Cell::Int(value) => Some(value as f64),
        Cell::Float(value) => Some(value),
        _ => None,
    };
    cells.as_slice().iter().map(value).collect()
}

fn read(reads: &Reads, body: &str) -> Result<(Taken, Vec<Option<f64>>), String> {
    let mut kept = Cells::new();
    reads.read(body.as_bytes(), Some(&mut kept)).map(|taken| (taken, values(&kept)))
}

const POINTS: &str = r#"{"metric":{"__name__":"t_v","source":"2"},"values":[0.5],"timestamps":[7]}
{"metric":{"__name__":"t_id","source":"2"},"values":[8,9],"timestamps":[7,8]}
{"metric":{"__name__":"t_id","source":"1"},"values":[3],"timestamps":[7]}
{"metric":{"__name__":"t_n","source":"2"},"values":[-4,5],"timestamps":[7,8]}
{"metric":{"__name__":"t_n","source":"1"},"values":[6],"timestamps":[7]}
"#;

#[test]
fn rows_are_put_together_from_series_in_the_order_of_time_and_source() {
    let (taken, rows) = read(&of_points(), POINTS).unwrap();
    assert_eq!(taken, Taken { rows: 3, ..Taken::default() });
    let row = |source: f64, time: f64, v, n: f64| [Some(source), Some(time), v, Some(n)];
    let right = [row(1.0, 7e6, None, 6.0), row(2.0, 7e6, Some(0.5), -4.0), row(2.0, 8e6, None, 5.0)].concat();
    assert_eq!(rows, right);
    assert_eq!(of_points().read(POINTS.as_bytes(), None), Ok(Taken { rows: 3, ..Taken::default() }));
    assert_eq!(read(&of_points(), "").unwrap().0, Taken::default());
}

#[test]
fn rows_that_are_not_whole_are_seen() {
    let without = |name: &str| POINTS.lines().filter(|line| !line.contains(name)).collect::<Vec<_>>().join("\n");
    assert!(read(&of_points(), &without("t_id")).unwrap().0.is_torn, "a row has no number");
    assert!(read(&of_points(), &without("t_n")).unwrap().0.is_torn, "a row has no value that each has");
    assert!(!read(&of_points(), &without("t_v")).unwrap().0.is_torn, "a null is believed");
    let twice = POINTS.replace("[8,9],\"timestamps\":[7,8]", "[8,8],\"timestamps\":[7,7]");
    assert!(read(&of_points(), &twice).unwrap().0.wrong.unwrap().contains("there twice"));
    let half = POINTS.replace("[6]", "[6.5]");
    assert_eq!(read(&of_points(), &half).unwrap().0.wrong.unwrap(), "6.5 is no value of the type Int32");
    for damaged in [
        POINTS.replace("t_v", "t_w"),
        POINTS.replace("\"2\"", "\"x\""),
        POINTS.replace("[6]", "[6,7]"),
        POINTS.replace("[6]", "[Infinity]"),
    ] {
        assert!(read(&of_points(), &damaged).is_err(), "{damaged}");
    }
}

fn vector(series: &[(&str, &str)]) -> String {
    let series = series.iter().map(|(labels, value)| format!("{{\"metric\":{{{labels}}},{value}}}"));
    format!("{{\"status\":\"success\",\"data\":{{\"result\":[{}]}}}}", series.collect::<Vec<_>>().join(","))
}

fn newest(parts: &[(&str, &str, &str)]) -> Result<(Taken, Vec<Option<f64>>), String> {
    let reads = Reads { form: Form::Newest(3), round: Some("round".to_owned()), ..of_points() };
    let parts: Vec<_> = parts
        .iter()
        .map(|(round, part, value)| {
            let labels = format!("\"source\":\"1\",\"round\":\"{round}\",\"{PART}\":\"{part}\"");
            (labels, format!("\"value\":[4000000000,\"{value}\"]"))
        })
        .collect();
    let parts: Vec<_> = parts.iter().map(|(labels, value)| (labels.as_str(), value.as_str())).collect();
    read(&reads, &vector(&parts))
}

#[test]
fn the_newest_row_has_the_values_of_its_own_time_alone() {
    let row = [("0", "t0", "7.003"), ("0", "2", "4"), ("0", "t2", "7.003"), ("0", "1", "9"), ("0", "t1", "7.002")];
    let right = vec![Some(1.0), Some(7.003e9), None, Some(4.0)];
    assert_eq!(newest(&row), Ok((Taken { rows: 1, ..Taken::default() }, right.clone())), "its v is older");
    let other = [("1", "t0", "7.002"), ("1", "2", "5"), ("1", "t2", "7.002")];
    assert_eq!(newest(&[&row[..], &other].concat()).unwrap().1, right, "the other round is older");
    let newer = other.map(|(round, part, value)| (round, part, if value == "7.002" { "7.004" } else { value }));
    assert_eq!(newest(&[&row[..], &newer].concat()).unwrap().1, [Some(1.0), Some(7.004e9), None, Some(5.0)]);
    let torn = [("0", "t0", "7.003"), ("0", "2", "4"), ("0", "t2", "7.004")];
    assert!(newest(&torn).unwrap().0.is_torn, "a value is there, and the number of its row is not");
    assert!(newest(&row[..1]).unwrap().0.is_torn, "a value that each row has is missing");
    assert!(newest(&[("0", "9", "1")]).is_err() && newest(&[("0", "t", "1")]).is_err());
}

#[test]
fn figures_have_their_places() {
    let (count, figure) = (out(From::Time, ColumnKind::Int64), out(From::Time, ColumnKind::Float64));
    let reads = |form, outs: &[Out]| Reads { form, outs: outs.to_vec(), ..of_points() };
    let part = |part: &str| format!("\"{PART}\":\"{part}\"");
    let aggregate = reads(Form::Aggregate, &[count, count, figure]);
    let told = vector(&[(&part("2"), "\"value\":[1,\"0.5\"]"), (&part("0"), "\"value\":[1,\"12\"]")]);
    assert_eq!(read(&aggregate, &told).unwrap().1, [Some(12.0), None, Some(0.5)]);
    assert_eq!(read(&aggregate, &vector(&[])).unwrap().1, [Some(0.0), None, None]);
    assert!(read(&aggregate, &vector(&[(&part("3"), "\"value\":[1,\"1\"]")])).is_err());
    let whole = read(&aggregate, &vector(&[(&part("1"), "\"value\":[1,\"1e+18\"]")])).unwrap().0;
    assert!(whole.wrong.is_some(), "beyond 2^53 a sum of whole numbers is not exact");

    let buckets = reads(Form::Buckets(7_000), &[count, count, figure]);
    let told = vector(&[
        (&part("0"), "\"values\":[[1700000006.999,\"2\"],[1700000020.999,\"1\"]]"),
        (&part("1"), "\"values\":[[1700000020.999,\"0.5\"],[1700000006.999,\"1.5\"]]"),
    ]);
    let right = [Some(1.7e18), Some(2.0), Some(1.5), Some(1.700_000_014e18), Some(1.0), Some(0.5)];
    assert_eq!(read(&buckets, &told).unwrap().1, right);

    let top = reads(Form::Top, &[count, figure]);
    let told = vector(&[("\"source\":\"4\"", "\"value\":[1,\"0.5\"]"), ("\"source\":\"9\"", "\"value\":[1,\"7\"]")]);
    assert_eq!(read(&top, &told).unwrap().1, [Some(9.0), Some(7.0), Some(4.0), Some(0.5)]);
}

proptest! {
    #[test]
    fn damaged_answers_never_panic(at in 0_usize..400, byte: u8) {
        let mut bytes = POINTS.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = of_points().read(&bytes, None);
        let _ = Vector::read(&bytes);
    }
}
