//! The table of `[[claims]]`: the settings of a claim. Main: [`CLAIM`].

use serde_json::json;

use crate::metric::NAMES;
use crate::queueing::fit::model_names;
use crate::written::schema::duration;
use crate::written::{Absent, Form, Kind, Part, Setting, Span};

/// The settings of a claim.
pub static CLAIM: Part = Part {
    name: "claims",
    help: "What the source claims, as exactly one of a ratio, a bound or a model. The report says reproduced, contradicted or undecided.",
    settings: &[
        Setting::new("says", Kind::Text, Absent::Refused, "The claim in words."),
        Setting::new(
            "metric",
            Kind::OneOf(&NAMES),
            Absent::Means("none: it must be given with `ratio` and `bound`"),
            "The figure that the claim is about.",
        ),
        Setting::new(
            "ratio",
            Kind::Part(&RATIO),
            Absent::Means("none"),
            "The claim that the metric's ratio between cases lies in a range.",
        ),
        Setting::new(
            "bound",
            Kind::Part(&BOUND),
            Absent::Means("none"),
            "The claim that the metric itself lies in a range.",
        ),
        Setting::new(
            "model",
            Kind::Part(&MODEL),
            Absent::Means("none"),
            "The claim that response times grow with the arrival rate as a queueing model says, or do not.",
        ),
    ],
};

const NO_END: Absent = Absent::Means("exactly one of `between`, `above` and `below` must be given");

/// The settings of a claim's `ratio`.
pub(super) static RATIO: Part = Part {
    name: "claims.ratio",
    help: "A ratio between two sets of cases. Cases are matched by the factors that are not named.",
    settings: &[
        Setting::new("of", Kind::Own(&LEVELS), Absent::Refused, "Levels of the numerator."),
        Setting::new("to", Kind::Own(&LEVELS), Absent::Refused, "Levels of the denominator."),
        Setting::new("where", Kind::Own(&LEVELS), Absent::Means("none"), "Further levels that both have."),
        Setting::new(
            "best",
            Kind::Truth,
            Absent::Truth(false),
            "Whether the best cases of both are compared, rather than each matched pair.",
        ),
        Setting::new("between", Kind::Own(&BETWEEN), NO_END, "The range of the ratio."),
        Setting::new("above", Kind::Number(0.0, 1e12), NO_END, "The lower end of a range without an upper one."),
        Setting::new("below", Kind::Number(1e-9, 1e12), NO_END, "The upper end of a range from zero."),
    ],
};

/// The settings of a claim's `bound`.
pub(super) static BOUND: Part = Part {
    name: "claims.bound",
    help: "A range of the metric, in its unit. Times can be written as durations.",
    settings: &[
        Setting::new("of", Kind::Own(&LEVELS), Absent::Means("all cases"), "Levels of the cases."),
        Setting::new("between", Kind::Own(&BETWEEN), NO_END, "The range."),
        Setting::new("above", Kind::Own(&END), NO_END, "The lower end of a range without an upper one."),
        Setting::new("below", Kind::Own(&END), NO_END, "The upper end of a range from zero."),
    ],
};

/// The settings of a claim's `model`.
pub(super) static MODEL: Part = Part {
    name: "claims.model",
    help: "A queueing model, and whether it fits.",
    settings: &[
        Setting::new(
            "name",
            Kind::Listed(model_names),
            Absent::Refused,
            "The model, by the name that `loadline fit` prints.",
        ),
        Setting::new("where", Kind::Own(&LEVELS), Absent::Means("all cases"), "Levels of the cases."),
        Setting::new("fits", Kind::Truth, Absent::Truth(true), "Whether the claim is that it fits."),
    ],
};

static LEVELS: Form = Form {
    says: "table of settings with a level each, as in `{ \"layout.name\" = \"star\" }`",
    schema: || json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "object"] } }),
    example: "{ \"load.clients\" = 1 }",
};

static BETWEEN: Form = Form {
    says: "`[low, high]`, two numbers",
    schema: || json!({ "type": "array", "items": { "type": "number", "minimum": 0 }, "minItems": 2, "maxItems": 2 }),
    example: "[0.5, 2]",
};

static END: Form = Form {
    says: "number, or a duration",
    schema: || json!({ "anyOf": [{ "type": "number", "minimum": 0 }, duration(Span::Any)] }),
    example: "1",
};

/// The form of a ratio, for messages.
pub(super) const RATIO_FORM: &str = "write ratio = { of = { \"layout.name\" = \"star\" }, to = { \"layout.name\" = \"wide\" }, \
     between = [0.9, 1.1] }";
