//! Parts shared by the readers of several sections: names from a list, CPUs, and the largest numbers.

use serde_json::json;

use super::names::NameList;
use crate::fault::fault;
use crate::written::Form;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Node};

/// Maximum number of rows and operations, and maximum seed: every store and JSON reader carries it exactly.
pub const LARGE: i64 = 1 << 53;

/// The form of a list of CPUs.
pub static CPUS: Form = Form {
    says: "CPUs, as in `\"0\"` or `\"0,2-3\"`",
    schema: || {
        let number = json!({ "type": "integer", "minimum": 0, "maximum": u16::MAX });
        json!({ "anyOf": [{ "type": "string", "pattern": "^[0-9, -]+$" }, number] })
    },
    example: "\"0\"",
};

/// Reads the name under a key and checks it against a list; returns the default of its row if it is missing or not a text.
pub(super) fn read_name(section: &Section, key: &str, list: &NameList, errors: &mut Errors) -> String {
    if let (Some(name), Some(entry)) = (section.text(key, errors), section.get(key))
        && let Err(sentence) = list.check(name)
    {
        errors.push(entry.node.place, sentence);
    }
    section.read(key, errors)
}

/// Reads CPUs, as in `0` or `0,2-3`.
pub(super) fn read_cpus(section: &Section, errors: &mut Errors) -> Option<String> {
    let entry = section.get("cpus")?;
    let text = match &entry.node.content {
        Content::Text(text) => text.replace(' ', ""),
        _ => entry.node.to_string(),
    };
    let is_number = |part: &str| part.parse::<u16>().is_ok();
    let is_range = |part: &str| match part.split_once('-') {
        Some((low, high)) => match (low.parse::<u16>(), high.parse::<u16>()) {
            (Ok(low), Ok(high)) => low <= high,
            _ => false,
        },
        None => is_number(part),
    };
    if text.split(',').all(is_range) {
        return Some(text);
    }
    let path = section.path("cpus");
    errors.push(entry.node.place, fault!("{path} is {}", entry.node; "it must name CPUs, as in \"0\" or \"0,2-3\""));
    None
}

/// Returns whether the node can be the level of a factor.
pub fn is_scalar(node: &Node) -> bool {
    node.to_json().is_some()
}
