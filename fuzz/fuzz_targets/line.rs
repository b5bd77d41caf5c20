//! Arbitrary bytes as line protocol: nothing panics, the parser ends, and every point or error lies within the input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline::recorder::line::{Parser, Point, Precision};

fuzz_target!(|input: &[u8]| {
    let lines = 1 + input.iter().filter(|byte| **byte == b'\n').count();
    for code in 0..6 {
        let mut parser = Parser::new(input, Precision::from_code(code).unwrap_or_default());
        let mut point = Point::default();
        while let Some(outcome) = parser.next(&mut point) {
            match outcome {
                Ok(()) => {
                    assert!(!point.fields.is_empty() && point.line <= lines);
                    point.fields.iter().for_each(|(key, _)| assert!(!key.resolve().is_empty()));
                }
                Err(error) => assert!(error.line <= lines && error.column <= input.len() + 1),
            }
        }
    }
});
