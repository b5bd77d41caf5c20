//! Writes field values into the columns of their fields. Main function: [`append`].

use super::catalogue::FieldKind;
use crate::record::Cells;
use crate::recorder::line::Value;

/// The most bytes of a text: longer ones do not fit into their columns everywhere, and not every server says so.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// The largest whole number up to which all are exact as 64-bit floats.
const EXACT_MAX: u64 = 1 << 53;

/// Returns the kind of column that a value gets when its field is new.
pub(super) fn kind_of(value: &Value<'_>) -> FieldKind {
    match value {
        Value::Float(_) => FieldKind::Float,
        Value::Int(_) | Value::Unsigned(_) => FieldKind::Int,
        Value::Boolean(_) => FieldKind::Boolean,
        Value::Text(_) => FieldKind::Text,
    }
}

/// Appends a value as its column holds it; returns false, and appends nothing, if the column cannot hold exactly this value.
pub(super) fn append(value: &Value<'_>, kind: FieldKind, cells: &mut Cells) -> bool {
    match (*value, kind) {
        (Value::Float(number), FieldKind::Float) => cells.float(number),
        (Value::Int(number), FieldKind::Int) => cells.int(number),
        (Value::Int(number), FieldKind::Float) if number.unsigned_abs() <= EXACT_MAX => cells.float(number as f64),
        (Value::Unsigned(number), FieldKind::Float) if number <= EXACT_MAX => cells.float(number as f64),
        (Value::Unsigned(number), FieldKind::Int) => match i64::try_from(number) {
            Ok(number) => cells.int(number),
            Err(_) => return false,
        },
        (Value::Float(number), FieldKind::Int) if number.trunc() == number && number.abs() <= EXACT_MAX as f64 => {
            cells.int(number as i64);
        }
        (Value::Boolean(truth), FieldKind::Boolean) => cells.int(i64::from(truth)),
        (Value::Text(text), FieldKind::Text) if text.raw().len() < TEXT_BYTES_MAX => cells.text(&text.resolve()),
        _ => return false,
    }
    true
}

/// Returns a value as JSON.
pub(super) fn to_json(value: &Value<'_>) -> serde_json::Value {
    match *value {
        Value::Float(number) => number.into(),
        Value::Int(number) => number.into(),
        Value::Unsigned(number) => number.into(),
        Value::Boolean(truth) => truth.into(),
        Value::Text(text) => text.resolve().into_owned().into(),
    }
}

/// Returns a value as it stands in messages, with its kind.
pub(super) fn shown(value: &Value<'_>) -> String {
    if let Value::Text(text) = value
        && text.raw().len() >= TEXT_BYTES_MAX
    {
        return format!("text of {} bytes, of which there may be {TEXT_BYTES_MAX},", text.raw().len());
    }
    let text: String = to_json(value).to_string().chars().take(40).collect();
    format!("{} {text}", value.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Cell;

    #[test]
    fn a_value_is_stored_exactly_or_not_at_all() {
        let stored = |value: Value<'static>, kind| {
            let mut cells = Cells::new();
            append(&value, kind, &mut cells).then(|| cells.get(0))
        };
        assert_eq!(stored(Value::Int(3), FieldKind::Float), Some(Cell::Float(3.0)));
        assert_eq!(stored(Value::Int((1 << 53) + 1), FieldKind::Float), None);
        assert_eq!(stored(Value::Float(3.0), FieldKind::Int), Some(Cell::Int(3)));
        assert_eq!(stored(Value::Float(3.5), FieldKind::Int), None);
        assert_eq!(stored(Value::Float(1e300), FieldKind::Int), None);
        assert_eq!(stored(Value::Unsigned(u64::MAX), FieldKind::Int), None);
        assert_eq!(stored(Value::Boolean(true), FieldKind::Boolean), Some(Cell::Int(1)));
        assert_eq!(stored(Value::Boolean(true), FieldKind::Int), None);
        assert_eq!(stored(Value::Int(1), FieldKind::Text), None);
    }
}
