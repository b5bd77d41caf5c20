//! Images: [`check`] checks that bytes are a JPEG of an acceptable size, [`draw`] draws scenes.

mod canvas;
mod font;
mod scene;

pub use scene::{Scene, draw};

use super::BlockError;

/// Checks that these bytes are a complete JPEG: follows its markers up to the size of the image, and looks for the end marker. Returns width and height.
///
/// # Errors
/// [`BlockError::Image`]
pub fn check(bytes: &[u8], pixels_max: u64) -> Result<(u16, u16), BlockError> {
    let wrong = |what: String| BlockError::Image(what);
    let is_framed = bytes.starts_with(&[0xff, 0xd8, 0xff]) && bytes.ends_with(&[0xff, 0xd9]);
    if !is_framed {
        return Err(wrong("it is no whole JPEG".to_owned()));
    }
    let (width, height) = size(bytes).ok_or_else(|| wrong("it is a JPEG without a size".to_owned()))?;
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 || pixels > pixels_max {
        return Err(wrong(format!("it has {width} x {height} pixels; at most {pixels_max} in all")));
    }
    Ok((width, height))
}

/// Returns width and height from the marker that begins a frame.
fn size(bytes: &[u8]) -> Option<(u16, u16)> {
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1).filter(|_| bytes[at] == 0xff)?;
        let length = usize::from(u16::from_be_bytes([*bytes.get(at + 2)?, *bytes.get(at + 3)?]));
        match marker {
            0xc0..=0xcf if ![0xc4, 0xc8, 0xcc].contains(&marker) => {
                let number = |place: usize| Some(u16::from_be_bytes([*bytes.get(place)?, *bytes.get(place + 1)?]));
                return Some((number(at + 7)?, number(at + 5)?));
            }
            // A scan is followed by data instead of markers, and the other codes have no length.
            0xda | 0xd8 | 0xd9 | 0xff | 0x00..=0x01 => return None,
            _ => at += 2 + length.max(2),
        }
    }
}
