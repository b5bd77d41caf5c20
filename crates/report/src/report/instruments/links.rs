//! Reports what the links of a run carried.
//!
//! Main function: [`notes`]. Invariant: figures are medians over the trials, valid or not, because a link is measured before a trial.

use crate::finding::Note;
use crate::measurement::LinkMeasurement;
use crate::report::case_trials::CaseTrials;
use crate::report::instruments::instrument::Instrument;
use crate::trial::LinkSettings;

/// The share of its rate below which a link does not represent what it was meant to.
const SHORT_SHARE: f64 = 0.85;

/// The report on links.
pub const INSTRUMENT: Instrument = Instrument { notes, ..Instrument::SILENT };

/// Returns a note for each link.
fn notes(groups: &[CaseTrials<'_>]) -> Vec<Note> {
    let mut links: Vec<(&LinkSettings, Vec<&LinkMeasurement>)> = Vec::new();
    for group in groups {
        let Some(link) = &group.case.settings.link else { continue };
        let seen = group.trials.iter().filter_map(|trial| trial.link.as_ref());
        match links.iter_mut().find(|(known, _)| *known == link) {
            Some((_, all)) => all.extend(seen),
            None => links.push((link, seen.collect())),
        }
    }
    links.iter().filter_map(|(link, seen)| note(link, seen)).collect()
}

fn note(link: &LinkSettings, seen: &[&LinkMeasurement]) -> Option<Note> {
    let up = median(seen, |link| link.up_bits_per_s)?;
    let down = median(seen, |link| link.down_bits_per_s)?;
    let payload = median(seen, |link| link.up_payload_bits_per_s)?;
    let round_trip = median(seen, |link| link.round_trip_s)?;
    let suite = seen.iter().find_map(|link| link.suite.clone()).unwrap_or_default();
    Some(Note::Link {
        rate_bits_per_s: link.rate_bits_per_s,
        delay_s: link.delay_s,
        tunnel: link.tunnel.clone().map(|name| [name, suite]),
        up_bits_per_s: up,
        up_payload_bits_per_s: payload,
        down_bits_per_s: down,
        round_trip_s: round_trip,
        n: seen.len(),
        is_short: link.rate_bits_per_s.is_some_and(|rate| up.min(down) < SHORT_SHARE * rate),
    })
}

fn median(seen: &[&LinkMeasurement], figure: fn(&LinkMeasurement) -> f64) -> Option<f64> {
    let mut values: Vec<f64> = seen.iter().map(|link| figure(link)).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let high = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { high } else { (values[middle - 1] + high) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_falls_short_of_its_rate_is_pointed_out() {
        let link = LinkSettings {
            rate_bits_per_s: Some(1e9),
            delay_s: 0.0,
            tunnel: Some("aes128-sha1".to_owned()),
            ..LinkSettings::default()
        };
        let carried = |up_bits_per_s| LinkMeasurement {
            up_bits_per_s,
            down_bits_per_s: 9.8e8,
            up_payload_bits_per_s: 0.95 * up_bits_per_s,
            round_trip_s: 1e-4,
            suite: Some("AES_CBC_128/HMAC_SHA1_96".to_owned()),
            ..LinkMeasurement::default()
        };
        let (slow, fast) = (carried(5e8), carried(9.9e8));
        let text = note(&link, &[&slow, &slow, &fast]).unwrap().to_string();
        assert!(text.contains("500 Mbit/s to the server") && text.contains("n = 3; that is LESS"), "{text}");
        assert!(text.contains("tunnel aes128-sha1 (AES_CBC_128/HMAC_SHA1_96)"), "{text}");
        assert!(matches!(note(&link, &[&fast]), Some(Note::Link { is_short: false, n: 1, .. })));
        assert_eq!(note(&link, &[]), None);
    }
}
