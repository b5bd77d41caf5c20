//! A drawn scene of a violation: a road, a car with its plate, and a strip with the camera's measurements, so that a person can
//! see that the right picture arrived. Main function: [`draw`].

use jpeg_encoder::{ColorType, Encoder};

use super::canvas::{Canvas, Colour};
use crate::block::BlockError;
use crate::data::violation::Violation;
use crate::random::{Stream, derive};
use crate::units::show_utc_ms;

/// Settings of a drawn scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scene {
    /// Width in pixels; the height is three quarters of it.
    pub width: u16,
    /// Quality of the JPEG, 1 to 100. Together with the width it determines the size.
    pub quality: u8,
    /// Amplitude of the noise, in steps of brightness of 256. Real sensors are noisy.
    pub noise: u8,
}

impl Default for Scene {
    fn default() -> Self {
        Scene { width: 1280, quality: 85, noise: 6 }
    }
}

const PAINTS: [Colour; 6] = [[176, 28, 36], [32, 64, 128], [220, 220, 224], [40, 44, 48], [44, 96, 60], [196, 160, 48]];

/// Draws a violation as a JPEG; the same seed gives the same picture.
///
/// # Errors
/// If the size cannot be encoded.
pub fn draw(violation: &Violation, scene: &Scene, seed: u64) -> Result<Vec<u8>, BlockError> {
    let mut stream = Stream::seeded(derive(seed, violation.sequence));
    let (width, height) = (u32::from(scene.width), u32::from(scene.width) * 3 / 4);
    let mut canvas = Canvas::new(width, height);
    // All places are in 160ths of the width.
    let unit = |share: i32| share * width as i32 / 160;
    surroundings(&mut canvas, &mut stream, &unit);
    car(&mut canvas, &mut stream, &unit, &violation.plate);
    noise(&mut canvas, &mut stream, scene.noise);
    strip(&mut canvas, violation, &unit);
    let mut jpeg = Vec::new();
    let encoder = Encoder::new(&mut jpeg, scene.quality.clamp(1, 100));
    let encoded = encoder.encode(&canvas.pixels, width as u16, height as u16, ColorType::Rgb);
    encoded.map_err(|error| BlockError::Image(error.to_string()))?;
    Ok(jpeg)
}

fn surroundings(canvas: &mut Canvas, stream: &mut Stream, unit: &dyn Fn(i32) -> i32) {
    let light = 150 + stream.below(70) as i32;
    let horizon = unit(44);
    for y in 0..horizon {
        let share = 60 * y / horizon.max(1);
        let colour = [(light - 60 + share) as u8, (light - 30 + share / 2) as u8, light.min(250) as u8];
        canvas.rectangle(0, y, canvas.width as i32, 1, colour);
    }
    canvas.rectangle(0, horizon, canvas.width as i32, canvas.height as i32 - horizon, [70, 104, 58]);
    for tree in 0..9 {
        let (x, size) = (unit(tree * 19 + stream.below(9) as i32), unit(4 + stream.below(5) as i32));
        canvas.rectangle(x - unit(1) / 2, horizon - size / 2, unit(1), size, [72, 52, 36]);
        canvas.circle(x, horizon - size, size * 2 / 3, [38, 78 + stream.below(40) as u8, 40]);
    }
    let bottom = canvas.height as i32;
    canvas.slope((horizon, unit(70), unit(90)), (bottom, unit(-20), unit(180)), [86, 88, 92]);
    canvas.slope((horizon, unit(70), unit(71)), (bottom, unit(-20), unit(-16)), [228, 228, 220]);
    canvas.slope((horizon, unit(89), unit(90)), (bottom, unit(176), unit(180)), [228, 228, 220]);
    for dash in 0..6 {
        let (top, length) = (horizon + (bottom - horizon) * dash * dash / 30, unit(1 + 2 * dash));
        canvas.slope(
            (top, unit(80) - length / 8, unit(80) + length / 8 + 1),
            (top + length, unit(80) - length / 6, unit(80) + length / 6 + 1),
            [228, 228, 220],
        );
    }
}

fn car(canvas: &mut Canvas, stream: &mut Stream, unit: &dyn Fn(i32) -> i32, plate: &str) {
    let paint = PAINTS[stream.below(PAINTS.len() as u64) as usize];
    let dark = paint.map(|part| part / 2);
    let (left, top) = (unit(40 + stream.below(36) as i32), unit(56 + stream.below(6) as i32));
    let at = |x: i32| left + unit(x);
    let down = |y: i32| top + unit(y);
    canvas.slope((down(44), at(2), at(48)), (down(48), at(-2), at(52)), [40, 42, 46]);
    for wheel in [5, 39] {
        canvas.rectangle(at(wheel), down(36), unit(7), unit(10), [20, 20, 22]);
    }
    canvas.slope((down(0), at(12), at(38)), (down(17), at(5), at(45)), paint);
    canvas.slope((down(2), at(14), at(36)), (down(15), at(8), at(42)), [168, 200, 216]);
    canvas.rectangle(at(17), down(8), unit(6), unit(7), [60, 56, 60]);
    canvas.circle(at(20), down(7), unit(3), [92, 76, 66]);
    canvas.slope((down(17), at(3), at(47)), (down(40), at(1), at(49)), paint);
    canvas.rectangle(at(12), down(25), unit(26), unit(3), dark);
    for lamp in [7, 43] {
        canvas.circle(at(lamp), down(24), unit(3), [250, 246, 220]);
    }
    canvas.rectangle(at(2), down(38), unit(46), unit(3), dark);
    let dot = (unit(30) / Canvas::text_width(plate, 1).max(1)).clamp(1, unit(1).max(1));
    let (width, height) = (Canvas::text_width(plate, dot) + 4 * dot, 11 * dot);
    let x = at(25) - width / 2;
    canvas.rectangle(x - dot, down(30) - dot, width + 2 * dot, height + 2 * dot, [16, 16, 16]);
    canvas.rectangle(x, down(30), width, height, [246, 246, 240]);
    canvas.text(x + 2 * dot, down(30) + 2 * dot, dot, plate, [10, 10, 10]);
}

fn noise(canvas: &mut Canvas, stream: &mut Stream, most: u8) {
    if most == 0 {
        return;
    }
    let span = i16::from(most) * 2 + 1;
    for eight in canvas.pixels.chunks_mut(8) {
        for (part, random) in eight.iter_mut().zip(stream.word().to_le_bytes()) {
            let change = i16::from(random) % span - i16::from(most);
            *part = (i16::from(*part) + change).clamp(0, 255) as u8;
        }
    }
}

/// Draws the camera's measurements at the lower edge.
fn strip(canvas: &mut Canvas, violation: &Violation, unit: &dyn Fn(i32) -> i32) {
    let height = unit(13);
    let top = canvas.height as i32 - height;
    canvas.rectangle(0, top, canvas.width as i32, height, [12, 12, 14]);
    let Violation { camera, sequence, time_ns, place, speed_kmh, limit_kmh, plate } = violation;
    let first = format!("{}  {plate}  {speed_kmh:.1} KM/H IN {limit_kmh:.0}", show_utc_ms(*time_ns));
    let second = format!("{camera} #{sequence}  {place}");
    for (text, y, colour) in [(first, 1, [255, 214, 64]), (second, 7, [220, 220, 220])] {
        let dot = (unit(156) / Canvas::text_width(&text, 1).max(1)).clamp(1, (unit(5) / 7).max(1));
        canvas.text(unit(2), top + unit(y), dot, &text, colour);
    }
}
