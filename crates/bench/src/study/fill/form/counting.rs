//! Fills that count: [`cycle`] and [`blocks`].

use super::{items, signed_s, text, whole};
use crate::trial::{Fill, TimeBlocks};
use crate::units::times::parse_time;
use crate::written::tree::{Content, Node};

/// Reads `[first, step, count]`.
pub(super) fn cycle(node: &Node) -> Option<Fill> {
    match items(node) {
        [first, step, count] => Some(Fill::Cycle(whole(first)?, whole(step)?, counted(count)?)),
        _ => None,
    }
}

/// Returns the key and the value of a table with a single entry.
pub(super) fn table_of(node: &Node) -> Option<(&str, &Node)> {
    match &node.content {
        Content::Table(table) => match table.entries.as_slice() {
            [entry] => Some((entry.key.as_str(), &entry.node)),
            _ => None,
        },
        _ => None,
    }
}

/// Reads a whole number from 1 on.
fn counted(node: &Node) -> Option<u64> {
    whole(node).and_then(|number| u64::try_from(number).ok()).filter(|number| *number >= 1)
}

/// Reads `[first, step, times]`, of whole numbers or of a time and a duration.
pub(super) fn blocks(node: &Node) -> Option<Fill> {
    let [first, step, times] = items(node) else { return None };
    let times = counted(times)?;
    let Some(time) = text(first) else { return Some(Fill::Blocks(whole(first)?, whole(step)?, times)) };
    let time = parse_time(time)?;
    let step_us = (signed_s(step)? * 1e6).round() as i64;
    Some(Fill::TimeBlocks(TimeBlocks { first_us: time.us, step_us, times, zone: time.zone.to_owned() }))
}
