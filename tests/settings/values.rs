//! Values of settings: right ones, wrong ones, and others than the default.

use loadline::written::{Absent, Kind, Setting, Span};
use toml::Value;

fn text(text: impl Into<String>) -> Value {
    Value::String(text.into())
}

fn seconds(seconds: f64) -> Value {
    text(format!("{seconds}s"))
}

fn bytes(bytes: u64) -> Value {
    text(format!("{bytes}B"))
}

fn bits(rate: f64) -> Value {
    text(format!("{rate}bit/s"))
}

fn example(literal: &str) -> Value {
    let table: toml::Table = format!("a = {literal}").parse().unwrap();
    table["a"].clone()
}

/// Values that a row allows: both ends of its range, each of its words.
pub fn right(kind: Kind) -> Vec<Value> {
    let words = |words: &[&str]| words.iter().map(|word| text(*word)).collect::<Vec<_>>();
    match kind {
        Kind::Text => vec![text("x9")],
        Kind::OneOf(choices) => words(choices),
        Kind::Listed(choices) | Kind::Named(choices) => words(&choices()),
        Kind::Whole(least, most) => vec![least.into(), most.into()],
        Kind::WholeOr(least, most, others) => [words(others), vec![least.into(), most.into()]].concat(),
        Kind::Number(least, most) => vec![least.into(), most.into()],
        Kind::Truth => vec![true.into(), false.into()],
        Kind::Duration(Span::Any) => vec![text("0s"), text("1.5 ms"), text("7d"), text("250us")],
        Kind::Duration(Span::AboveZero) => vec![text("1ns"), text("0.5m")],
        Kind::Duration(Span::AtMost(most)) => vec![text("0s"), seconds(most)],
        Kind::Duration(Span::Within(least, most)) => vec![seconds(least), seconds(most)],
        Kind::Size(least, most, others) => [words(others), vec![bytes(least), bytes(most)]].concat(),
        Kind::Bytes(least, most) => vec![bytes(least), bytes(most), (least as i64).into(), (most as i64).into()],
        Kind::BitRate(least, most, others) => [words(others), vec![bits(least), bits(most), text("1 Mbps")]].concat(),
        Kind::Texts => vec![Value::Array(vec![text("a9")]), Value::Array(Vec::new())],
        Kind::Own(form) => vec![example(form.example)],
        Kind::Part(_) | Kind::Parts(_) => Vec::new(),
    }
}

/// Values of the right type beyond the ends of a row's range.
pub fn beyond(kind: Kind) -> Vec<Value> {
    let below = |least: f64| if least > 0.0 { least / 2.0 } else { least - 1.0 };
    match kind {
        Kind::OneOf(_) | Kind::Listed(_) => vec![text("zzzzzz")],
        Kind::Whole(least, most) | Kind::WholeOr(least, most, _) => vec![(least - 1).into(), (most + 1).into()],
        Kind::Number(least, most) => vec![below(least).into(), (most * 2.0).into(), f64::NAN.into()],
        Kind::Duration(Span::AboveZero) => vec![text("0s")],
        Kind::Duration(Span::AtMost(most)) => vec![seconds(most * 2.0)],
        Kind::Duration(Span::Within(least, most)) if least > 0.0 => vec![seconds(least / 2.0), seconds(most * 2.0)],
        Kind::Duration(Span::Within(_, most)) => vec![seconds(most * 2.0)],
        Kind::Size(least, most, _) => vec![bytes(least - 1), bytes(most + 1)],
        Kind::Bytes(least, most) => {
            vec![bytes(least - 1), bytes(most + 1), (least as i64 - 1).into(), (most as i64 + 1).into()]
        }
        Kind::BitRate(least, most, _) => vec![bits(least / 2.0), bits(most * 2.0)],
        _ => Vec::new(),
    }
}

/// Values of another type.
pub fn wrong_type(kind: Kind) -> Vec<Value> {
    match kind {
        Kind::Text | Kind::OneOf(_) | Kind::Listed(_) | Kind::Named(_) => vec![5.into(), true.into()],
        Kind::Whole(..) | Kind::WholeOr(..) => vec![text("x"), 1.5.into()],
        Kind::Number(..) => vec![text("x"), true.into()],
        Kind::Truth => vec![text("yes"), 1.into()],
        Kind::Duration(_) => vec![10.into(), text("soon"), text("10"), text("-1s")],
        Kind::Size(..) => vec![4096.into(), text("4 gigs")],
        Kind::Bytes(..) => vec![true.into(), text("4 gigs")],
        Kind::BitRate(..) => vec![1000.into(), text("5 MB/s")],
        Kind::Texts => vec![text("a")],
        Kind::Part(_) | Kind::Parts(_) | Kind::Own(_) => Vec::new(),
    }
}

/// The default of a row as a value.
pub fn default(setting: &Setting) -> Option<Value> {
    match setting.absent {
        Absent::Text(default) => Some(text(default)),
        Absent::Whole(number) => Some(number.into()),
        Absent::Number(number) => Some(number.into()),
        Absent::Truth(truth) => Some(truth.into()),
        Absent::Means(_) | Absent::Refused => None,
    }
}

/// Values that are right and not the default.
pub fn others(setting: &Setting) -> Vec<Value> {
    let usual = default(setting);
    let more = match setting.kind {
        Kind::Duration(_) => vec![text("7s"), text("20ms")],
        Kind::Part(_) | Kind::Parts(_) => vec![1.into()],
        Kind::Number(least, most) => vec![((least + most) / 2.0).into()],
        _ => Vec::new(),
    };
    right(setting.kind).into_iter().chain(more).filter(|value| Some(value) != usual.as_ref()).collect()
}
