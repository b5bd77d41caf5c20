//! How what is said of figures is stored and printed: as an object with its `kind`, its figures, and last the sentence itself, `says`.
//!
//! Main trait: [`Said`], which the macro `said!` implements for an enum with a variant for each kind. Invariant: the sentence is made of the
//! figures, and nobody reads it to decide.

use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;

/// Something that is said, as a value.
pub trait Said: Serialize + Display {
    /// Its kind: a stable word, as in `operations_failed`.
    fn kind(&self) -> String {
        let told = serde_json::to_value(self).ok();
        told.as_ref().and_then(|told| told.get("kind")).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// The schema of something that is said; what figures it has depends on its kind.
pub fn schema() -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "properties": {
            "kind": { "type": "string", "description": "What is said: a stable word, which decides the other members." },
            "says": { "type": "string", "description": "The sentence, made of the figures." }
        },
        "required": ["kind", "says"]
    })
}

/// Gives a type that is printed as something said its schema.
macro_rules! said_schema {
    ($what:ident) => {
        impl schemars::JsonSchema for $what {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($what).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                crate::said::schema()
            }
        }
    };
}

/// Gives an enum that derives `Serialize` with `#[serde(remote = "Self", tag = "kind")]` its form as an object that ends with the sentence.
macro_rules! said {
    ($what:ident) => {
        impl $what {
            /// Kind and figures without the sentence, for objects that have more members.
            pub(crate) fn figures<S: serde::Serializer>(what: &&Self, serializer: S) -> Result<S::Ok, S::Error> {
                $what::serialize(what, serializer)
            }
        }

        crate::said::said_schema!($what);
        impl crate::said::Said for $what {}

        impl serde::Serialize for $what {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(serde::Serialize)]
                struct Said<'a> {
                    #[serde(flatten, serialize_with = "Said::figures")]
                    what: &'a $what,
                    says: String,
                }
                impl Said<'_> {
                    fn figures<S: serde::Serializer>(what: &&$what, serializer: S) -> Result<S::Ok, S::Error> {
                        $what::figures(what, serializer)
                    }
                }
                Said { what: self, says: self.to_string() }.serialize(serializer)
            }
        }
    };
}

pub(crate) use {said, said_schema};
