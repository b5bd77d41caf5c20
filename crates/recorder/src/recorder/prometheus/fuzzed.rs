//! Fuzzing: questions, selectors, parameters and times.

use super::form::Form;
use super::labels::Labels;
use super::language::{Expression, NAME, parse, selector};
use super::steps::Steps;
use crate::fuzzed::{Target, assert_told, texts};

/// The whole input is read as a question, as a selector, and as the parameters of a request. A refused question names a place within it.
pub static QUESTIONS: Target = Target {
    name: "questions",
    run: |input| {
        let text = String::from_utf8_lossy(input);
        match parse(&text) {
            Ok(Expression::Number(number)) => assert!(!number.is_nan()),
            Ok(_) => {}
            Err(reason) => {
                let place = reason.strip_prefix("1:").and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
                assert!(place.is_some_and(|place| (1..=text.chars().count() + 1).contains(&place)), "{reason}");
            }
        }
        if let Ok(selector) = selector(&text) {
            let labels = Labels::new(vec![("a".to_owned(), "bb".to_owned())]);
            let _ = (selector.takes(&labels), selector.takes_name("m_f"));
            assert!(selector.fixed(NAME).is_none_or(|name| !name.is_empty()));
        }
        match Form::read(&text, "") {
            Ok(form) => {
                let get = |name: &str| form.get(name).unwrap_or("1");
                if let Ok(steps) = Steps::read(get("start"), get("end"), get("step")) {
                    assert!((1..=11_000).contains(&steps.count) && steps.end_ns() >= steps.start_ns);
                }
            }
            Err(refusal) => assert_told(refusal.parts().2, 4 * input.len() + 300),
        }
    },
    seeds: || {
        texts(&[
            "sum by (host) (rate(cpu_idle{host=~\"a|b.*\",region!='x'}[1h30m]))",
            "max(avg(m_f) by (a,))",
            "1+1-.5",
            "{__name__=~\".+_idle\",a!~`b\\.c`}",
            "query=up&start=1700000000.5&end=2026-01-01T00:00:00Z&step=15s&match%5B%5D=a",
        ])
    },
    words: &["by", "rate", "[5m]", "=~", "{", "}", "(", ")", "\"", "\\", "&step=", "&end="],
    memory: (256 << 10, 64),
    is_linear: false,
};
