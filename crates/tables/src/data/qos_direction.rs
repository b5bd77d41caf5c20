//! The values of one direction of a network path, which the record type `qos` has once for uplink and once for downlink.
//!
//! Main function: [`direction`]. Invariant: the values of a record are consistent with each other, as those of one measured second are.

use crate::random::{Stream, below32};
use crate::record::{Cell, ColumnKind};

use ColumnKind::{Float64, Int32};

/// Values that exist for uplink (`ul_`) and downlink (`dl_`): name, type, hot. Times are in milliseconds, except that those of the
/// connection breaks (`cb_`) are in seconds; loss in percent; load and throughput in kbit/s; sizes and volume in bytes.
pub(super) const PAIRS: [(&str, ColumnKind, bool); PAIR_COUNT] = [
    ("delay", Float64, true),
    ("d_samples", Int32, true),
    ("jitter", Float64, true),
    ("ave_jitter", Float64, true),
    ("pk_loss", Float64, true),
    ("load", Float64, true),
    ("throughput", Float64, true),
    ("min_delay", Float64, false),
    ("max_delay", Float64, false),
    ("max_jitter", Float64, false),
    ("lost_pks", Int32, false),
    ("dupl", Int32, false),
    ("out_of_order", Int32, false),
    ("cb_count", Int32, false),
    ("cb_total", Float64, false),
    ("cb_longest", Float64, false),
    ("pk_size_min", Int32, false),
    ("pk_size_ave", Int32, false),
    ("pk_size_max", Int32, false),
    ("packets", Int32, false),
    ("volume", Int32, false),
    ("r_factor", Float64, false),
    ("mos", Float64, false),
];

const PAIR_COUNT: usize = 23;

/// Returns the values of one direction, in the order of [`PAIRS`]. They are consistent: packets times size is the volume,
/// lost packets do not arrive, the minimum is not above the mean.
#[inline]
pub(super) fn direction(stream: &mut Stream, two_points: bool) -> [Cell; PAIR_COUNT] {
    let milli = |thousandths: u32| Cell::Float(f64::from(thousandths) / 1000.0);
    let whole = |number: u32| Cell::Int(i64::from(number));
    let traffic = Traffic::draw(stream);
    let path = Path::draw(stream, traffic.packets);
    let path = if two_points { path } else { Path::default() };
    let load = f64::from(traffic.packets * traffic.size) * 8.0 / 1000.0;
    [
        milli(path.delay_us),
        whole(path.samples),
        milli(path.jitter_us),
        milli(path.mean_jitter_us),
        Cell::Float(path.loss_share * 100.0),
        Cell::Float(load),
        Cell::Float(load * (1.0 - path.loss_share)),
        milli(path.least_us),
        milli(path.most_us),
        milli(path.most_jitter_us),
        whole(path.lost),
        whole(path.duplicates),
        whole(path.disordered),
        whole(traffic.breaks),
        milli(traffic.breaks_ms),
        milli(traffic.longest_ms),
        whole(traffic.smallest),
        whole(traffic.size),
        whole(traffic.largest),
        whole(traffic.packets),
        whole(traffic.packets * traffic.size),
        Cell::Float(path.rating),
        Cell::Float(path.opinion),
    ]
}

/// The traffic that a single point sees.
struct Traffic {
    packets: u32,
    smallest: u32,
    size: u32,
    largest: u32,
    breaks: u32,
    breaks_ms: u32,
    longest_ms: u32,
}

impl Traffic {
    #[inline]
    fn draw(stream: &mut Stream) -> Self {
        let (packets, size) = stream.pair();
        let (smallest, largest) = stream.pair();
        let (breaks, total) = stream.pair();
        let (longest, _) = stream.pair();
        let size = 100 + below32(size, 1200);
        let breaks = sometimes(breaks, 2);
        let breaks_ms = if breaks == 0 { 0 } else { 20 + below32(total, 400) };
        let mean_ms = breaks_ms / breaks.max(1);
        Traffic {
            packets: 20 + below32(packets, 2000),
            smallest: 40 + below32(smallest, size - 39),
            size,
            largest: size + below32(largest, 1501 - size),
            breaks,
            breaks_ms,
            longest_ms: if breaks < 2 { breaks_ms } else { mean_ms + below32(longest, breaks_ms - mean_ms) },
        }
    }
}

/// The measurements of two points together; all zeros for a single one.
#[derive(Default)]
struct Path {
    delay_us: u32,
    least_us: u32,
    most_us: u32,
    jitter_us: u32,
    mean_jitter_us: u32,
    most_jitter_us: u32,
    samples: u32,
    lost: u32,
    loss_share: f64,
    duplicates: u32,
    disordered: u32,
    rating: f64,
    opinion: f64,
}

impl Path {
    #[inline]
    fn draw(stream: &mut Stream, packets: u32) -> Self {
        let (wide, narrow) = stream.pair();
        let (least, most) = stream.pair();
        let (jitter, mean_jitter) = stream.pair();
        let (most_jitter, lost) = stream.pair();
        let (duplicates, disordered) = stream.pair();
        // The product of two uniform distributions: many short delays and a few long ones, up to 120 ms.
        let delay_us = 800 + below32(narrow, below32(wide, 120_000));
        let jitter_us = below32(jitter, delay_us / 4);
        let mean_jitter_us = jitter_us / 2 + below32(mean_jitter, jitter_us + 1);
        let lost = sometimes(lost, packets / 20);
        let loss_share = f64::from(lost) / f64::from(packets);
        let rating = rating(f64::from(delay_us) / 1000.0, loss_share * 100.0);
        Path {
            delay_us,
            least_us: delay_us - below32(least, delay_us / 2),
            most_us: delay_us + below32(most, delay_us * 2),
            jitter_us,
            mean_jitter_us,
            most_jitter_us: jitter_us.max(mean_jitter_us) + below32(most_jitter, delay_us),
            samples: packets - lost,
            lost,
            loss_share,
            duplicates: sometimes(duplicates, packets / 40),
            disordered: sometimes(disordered, packets / 40),
            rating,
            opinion: opinion(rating),
        }
    }
}

/// Returns zero in three of four cases, otherwise a uniform number up to `most`.
fn sometimes(word: u32, most: u32) -> u32 {
    below32(word, 4 * (most + 1)).saturating_sub(3 * (most + 1) - 1).min(most)
}

/// Returns the transmission rating R of the E-model for G.711 (ITU-T G.107, with the delay impairment of Cole and Rosenbluth 2001):
/// delay in milliseconds, loss in percent.
fn rating(delay_ms: f64, loss_percent: f64) -> f64 {
    let delay_impairment = 0.024 * delay_ms + 0.11 * (delay_ms - 177.3).max(0.0);
    let loss_impairment = 95.0 * loss_percent / (loss_percent + 25.1);
    (93.2 - delay_impairment - loss_impairment).max(0.0)
}

/// Returns the mean opinion score, 1 to 4.5, of a rating (ITU-T G.107, annex B).
fn opinion(rating: f64) -> f64 {
    1.0 + 0.035 * rating + rating * (rating - 60.0) * (100.0 - rating) * 7e-6
}
