//! The stored and printed form of statements about figures: an object with its `kind`, its figures, and last the sentence itself, `says`.
//!
//! Main trait: [`Said`], which the macro `said!` implements for an enum with a variant for each kind. Invariant: the sentence is generated from the
//! figures, and no code reads it to decide.

use std::fmt::Display;

use schemars::Schema;
use serde::Serialize;
use serde_json::{Value, json};

/// A statement about figures, as a value.
pub trait Said: Serialize + Display {
    /// Returns its kind: a stable word, as in `operations_failed`.
    fn kind(&self) -> String {
        let told = serde_json::to_value(self).ok();
        told.as_ref().and_then(|told| told.get("kind")).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// Adds the sentence to the schema of an enum with a variant for each kind: `#[schemars(transform = with_says)]`.
pub fn with_says(schema: &mut Schema) {
    let Some(Value::Array(kinds)) = schema.get_mut("oneOf") else { return };
    for kind in kinds {
        kind["properties"]["says"] = json!({ "type": "string", "description": "The same in a sentence." });
        if let Some(required) = kind["required"].as_array_mut() {
            required.push("says".into());
        }
    }
}

/// Gives an enum that derives `Serialize` with `#[serde(remote = "Self", tag = "kind")]` its form as an object that ends with the sentence.
#[doc(hidden)]
#[macro_export]
macro_rules! said_with_its_sentence {
    ($what:ident) => {
        impl $what {
            /// Writes kind and figures without the sentence, for objects that have more members.
            pub fn figures<S: serde::Serializer>(what: &&Self, serializer: S) -> Result<S::Ok, S::Error> {
                $what::serialize(what, serializer)
            }
        }

        impl $crate::said::Said for $what {}

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

#[doc(inline)]
pub use said_with_its_sentence as said;
