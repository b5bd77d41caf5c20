//! page
use crate::{
    finding::Findings,
    measurement::{Environment, Measurement},
    study::Study,
};
/// x
pub fn html(_findings: &Findings, _study: &Study, _environment: &Environment, _measurements: &[Measurement]) -> String {
    String::new()
}
