//! Answers in the form of Prometheus's API. Main functions: [`matrix`], [`vector`], [`success`] and [`refused`].

use std::fmt::Write;

use hyper::StatusCode;
use serde_json::{Value, json};

use super::evaluate::Answered;
use super::labels::Labels;
use super::refusal::Refusal;
use super::steps::Steps;
use super::window::Values;
use crate::recorder::intake::response::{Answer, text};

/// Returns the answer with data.
pub(super) fn success(data: &Value) -> String {
    json!({ "status": "success", "data": data }).to_string()
}

/// Returns the answer to a refused question.
pub(super) fn refused(refusal: &Refusal) -> Answer {
    let (status, kind, says) = refusal.parts();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = json!({ "status": "error", "errorType": kind, "error": says });
    text(status, "application/json", body.to_string())
}

/// Returns the labels of a series as a JSON object.
pub(super) fn labels_of(labels: &Labels) -> Value {
    Value::Object(labels.iter().map(|(name, value)| (name.clone(), json!(value))).collect())
}

/// Returns the answer to a question over a stretch of time: the points of each series.
pub(super) fn matrix(answered: &Answered, steps: Steps) -> String {
    let mut out = "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[".to_owned();
    let mut between = "";
    let mut series = |labels: &str, values: &mut dyn Iterator<Item = (i64, f64)>| {
        // Writing to a string never fails.
        let _ = write!(out, "{between}{{\"metric\":{labels},\"values\":[");
        between = ",";
        let mut between = "";
        for (time_ns, value) in values {
            out.push_str(between);
            point(&mut out, time_ns, value);
            between = ",";
        }
        out.push_str("]}");
    };
    match answered {
        Answered::Number(number) => series("{}", &mut steps.times().map(|time_ns| (time_ns, *number))),
        Answered::Series(all) => all.iter().for_each(|(labels, values)| {
            let points = steps.times().zip(values).filter_map(|(time_ns, value)| Some((time_ns, (*value)?)));
            series(&labels_of(labels).to_string(), &mut { points });
        }),
    }
    out + "]}}"
}

/// Returns the answer to a question about one time.
pub(super) fn vector(answered: &Answered, steps: Steps) -> String {
    let (kind, mut out) = match answered {
        Answered::Number(number) => {
            let mut out = String::new();
            point(&mut out, steps.start_ns, *number);
            ("scalar", out)
        }
        Answered::Series(all) => {
            let mut out = "[".to_owned();
            let first = |values: &Values| values.first().copied().flatten();
            for (labels, value) in all.iter().filter_map(|(labels, values)| Some((labels, first(values)?))) {
                let between = if out.len() > 1 { "," } else { "" };
                let _ = write!(out, "{between}{{\"metric\":{},\"value\":", labels_of(labels));
                point(&mut out, steps.start_ns, value);
                out.push('}');
            }
            out.push(']');
            ("vector", out)
        }
    };
    out.insert_str(0, &format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"{kind}\",\"result\":"));
    out + "}}"
}

/// Writes a time in seconds, with up to three decimals, and a value as text.
fn point(out: &mut String, time_ns: i64, value: f64) {
    let ms = time_ns / 1_000_000;
    let (sign, ms) = (if ms < 0 { "-" } else { "" }, ms.unsigned_abs());
    let fraction = format!("{:03}", ms % 1_000);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let value = match value {
        value if value == f64::INFINITY => "+Inf".to_owned(),
        value if value == f64::NEG_INFINITY => "-Inf".to_owned(),
        value => value.to_string(),
    };
    let _ = write!(out, "[{sign}{}{point}{fraction},\"{value}\"]", ms / 1_000);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn answers_have_the_form_of_prometheus() {
        let labels = Labels::new(vec![("host".to_owned(), "a\"b".to_owned()), ("none".to_owned(), String::new())]);
        let answered = Answered::Series(BTreeMap::from([(labels, vec![Some(0.1), None, Some(f64::INFINITY)])]));
        let steps = Steps { start_ns: 1_500_000_000, step_ns: 1_000_000_000, count: 3 };
        assert_eq!(
            matrix(&answered, steps),
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"host":"a\"b"},"values":[[1.5,"0.1"],[3.5,"+Inf"]]}]}}"#
        );
        assert_eq!(
            vector(&answered, Steps::at(-1_250_000_000)),
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"host":"a\"b"},"value":[-1.25,"0.1"]}]}}"#
        );
        assert_eq!(
            vector(&Answered::Number(2.0), Steps::at(4_000_000_000)),
            r#"{"status":"success","data":{"resultType":"scalar","result":[4,"2"]}}"#
        );
        for text in [matrix(&answered, steps), matrix(&Answered::Number(1.0), steps)] {
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
        }
    }
}
