//! Values of settings after reading: numbers in the unit of their kind, and the types of settings.
//!
//! Main type: [`Value`]. Invariant: durations are seconds, sizes are bytes, rates of links are bits per second.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};

use crate::trial::{Arrivals, DiskSync, EventPath, Poll, RunAs, SchemaChangeKind};
use crate::units::{parse_bit_rate, parse_bytes, parse_duration};

use super::setting::{Absent, Kind};

/// The value of a setting that was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Text, or a word.
    Text(&'a str),
    /// A whole number; a size in bytes.
    Whole(i64),
    /// A number; a duration in seconds, or a rate of a link in bits per second.
    Number(f64),
    /// Yes or no.
    Truth(bool),
}

impl Absent {
    /// Returns the value that applies where nothing is written; `None` where there is none, or where it follows from other settings.
    pub fn value(self, kind: Kind) -> Option<Value<'static>> {
        let text = match self {
            Absent::Text(text) => text,
            Absent::Whole(number) => return Some(Value::Whole(number)),
            Absent::Number(number) => return Some(Value::Number(number)),
            Absent::Truth(truth) => return Some(Value::Truth(truth)),
            Absent::Means(_) | Absent::Refused => return None,
        };
        let number = match kind {
            Kind::Duration(_) => parse_duration(text).ok().map(|time| Value::Number(time.as_secs_f64())),
            Kind::Size(..) | Kind::Bytes(..) => parse_bytes(text).ok().map(|bytes| Value::Whole(bytes as i64)),
            Kind::BitRate(..) => parse_bit_rate(text).ok().map(Value::Number),
            _ => None,
        };
        Some(number.unwrap_or(Value::Text(text)))
    }
}

/// A type that settings can be read as. A word in place of a number is `None`.
pub trait FromValue<'a>: Sized {
    /// Returns the value, if it is one of this type.
    fn from_value(value: Value<'a>) -> Option<Self>;
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Option<T> {
    fn from_value(value: Value<'a>) -> Option<Self> {
        Some(T::from_value(value))
    }
}

impl<'a> FromValue<'a> for &'a str {
    fn from_value(value: Value<'a>) -> Option<Self> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }
}

impl FromValue<'_> for String {
    fn from_value(value: Value<'_>) -> Option<Self> {
        <&str>::from_value(value).map(str::to_owned)
    }
}

impl FromValue<'_> for PathBuf {
    fn from_value(value: Value<'_>) -> Option<Self> {
        <&str>::from_value(value).map(PathBuf::from)
    }
}

impl FromValue<'_> for bool {
    fn from_value(value: Value<'_>) -> Option<Self> {
        if let Value::Truth(truth) = value { Some(truth) } else { None }
    }
}

impl FromValue<'_> for f64 {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Number(number) => Some(number),
            Value::Whole(number) => Some(number as f64),
            Value::Text(_) | Value::Truth(_) => None,
        }
    }
}

impl FromValue<'_> for Duration {
    fn from_value(value: Value<'_>) -> Option<Self> {
        f64::from_value(value).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

/// Implements reading of whole numbers, as far as they fit the type.
macro_rules! whole {
    ($($kind:ty),*) => { $(
        impl FromValue<'_> for $kind {
            fn from_value(value: Value<'_>) -> Option<Self> {
                if let Value::Whole(number) = value { <$kind>::try_from(number).ok() } else { None }
            }
        }
    )* };
}

whole!(u16, u32, u64, usize);

/// Implements reading of types with names in study files: the names of their stored form.
macro_rules! named {
    ($($kind:ty),*) => { $(
        impl FromValue<'_> for $kind {
            fn from_value(value: Value<'_>) -> Option<Self> {
                by_name(<&str>::from_value(value)?)
            }
        }
    )* };
}

named!(Arrivals, DiskSync, EventPath, Poll, RunAs, SchemaChangeKind);

/// Returns the value with this name in its stored form.
fn by_name<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<Error>::new(name)).ok()
}
