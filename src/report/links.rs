//! What the links of a run carried, in sentences.
//!
//! Main function: [`notes`]. Invariant: figures are medians over the trials, valid or not, because a link is measured before a trial.

use crate::measurement::LinkMeasurement;
use crate::report::analyse::CaseTrials;
use crate::trial::LinkSettings;
use crate::units::{show_bit_rate, show_seconds};

/// A link that carries less than this share of its rate is not what it was to stand for.
const SHORT_SHARE: f64 = 0.85;

/// A sentence for each link.
pub fn notes(groups: &[CaseTrials<'_>]) -> Vec<String> {
    let mut links: Vec<(&LinkSettings, Vec<&LinkMeasurement>)> = Vec::new();
    for group in groups {
        let Some(link) = &group.case.settings.link else { continue };
        let seen = group.trials.iter().filter_map(|trial| trial.link.as_ref());
        match links.iter_mut().find(|(known, _)| *known == link) {
            Some((_, all)) => all.extend(seen),
            None => links.push((link, seen.collect())),
        }
    }
    links.iter().filter_map(|(link, seen)| sentence(link, seen)).collect()
}

fn sentence(link: &LinkSettings, seen: &[&LinkMeasurement]) -> Option<String> {
    let up = median(seen, |link| link.up_bits_per_s)?;
    let down = median(seen, |link| link.down_bits_per_s)?;
    let payload = median(seen, |link| link.up_payload_bits_per_s)?;
    let round_trip = median(seen, |link| link.round_trip_s)?;
    let rate = link.rate_bits_per_s.map_or("without a limit".to_owned(), show_bit_rate);
    let delay = if link.delay_s > 0.0 { format!(", delay {}", show_seconds(link.delay_s)) } else { String::new() };
    let suite = seen.iter().find_map(|link| link.suite.as_deref()).unwrap_or_default();
    let tunnel = link.tunnel.as_ref().map_or(String::new(), |name| format!(", tunnel {name} ({suite})"));
    let short = link.rate_bits_per_s.filter(|rate| up.min(down) < SHORT_SHARE * rate);
    let short = short.map_or("", |_| "; that is LESS than its rate: this machine is too slow for it, or was busy");
    Some(format!(
        "link {rate}{delay}{tunnel}: before the trials it carried {} to the server ({} of payload) and {} from it, round trip {}; \
         median, n = {}{short}",
        show_bit_rate(up),
        show_bit_rate(payload),
        show_bit_rate(down),
        show_seconds(round_trip),
        seen.len()
    ))
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
        let text = sentence(&link, &[&slow, &slow, &fast]).unwrap();
        assert!(text.contains("500 Mbit/s to the server") && text.contains("n = 3; that is LESS"), "{text}");
        assert!(text.contains("tunnel aes128-sha1 (AES_CBC_128/HMAC_SHA1_96)"), "{text}");
        assert!(!sentence(&link, &[&fast]).unwrap().contains("LESS"));
        assert_eq!(sentence(&link, &[]), None);
    }
}
